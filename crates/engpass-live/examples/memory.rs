//! Bandwidth of one array size, to compare with other tools in alternation: `memory KIB [REPEATS [THREADS]]`.

use engpass_live::probe::{BLOCK, Effort, Kernel, measure};

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let bytes = (given.first().copied().unwrap_or(128 << 10) << 10).next_multiple_of(BLOCK.max(4096));
    let repeats = given.get(1).copied().unwrap_or(9);
    let cpus: Vec<usize> = (0..given.get(2).copied().unwrap_or(1)).collect();
    match measure(&Kernel::ALL, bytes, &cpus, Effort { repeats, sample: 400 << 20 }) {
        Ok(points) => {
            for point in points {
                let rate = point.rate;
                println!(
                    "{:?} median {:.2} best {:.2} GB/s",
                    point.kernel,
                    rate.median / 1e9,
                    rate.best / 1e9
                );
            }
        }
        Err(error) => eprintln!("{error}"),
    }
}
