//! Measures the memory bandwidth for one array size, to compare with other programs: `memory KIB [REPEATS [THREADS]]`. Prints a line for each kernel: its
//! name, and the best and median rate of the repeats in bytes per second. Every byte counts once.

use engpass_live::probe::{BLOCK, Effort, Kernel, measure};

fn main() -> std::io::Result<()> {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let bytes = (given.first().copied().unwrap_or(128 << 10) << 10).next_multiple_of(BLOCK.max(4096));
    let repeats = given.get(1).copied().unwrap_or(9);
    let cpus: Vec<usize> = (0..given.get(2).copied().unwrap_or(1)).collect();
    for point in measure(&Kernel::ALL, bytes, &cpus, Effort { repeats, sample: 64 << 20 })? {
        let name = serde_json::to_value(point.kernel)?;
        println!("{} {:.0} {:.0}", name.as_str().unwrap_or_default(), point.rate.best, point.rate.median);
    }
    Ok(())
}
