//! Bandwidth of the memory, over the size of what is worked on and the number of threads.

mod kernel;

use std::hint::black_box;
use std::io;
use std::sync::Barrier;

use serde::Serialize;

pub use kernel::{BLOCK, Kernel, Width, work};

use super::statistic::{Spread, spread};
use super::sys;

/// What was measured at one size, with so many threads, each with arrays of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// What was done.
    pub kernel: Kernel,
    /// Bytes of one array; a copy works on two.
    pub bytes: u64,
    /// Threads, each on a CPU of its own.
    pub threads: usize,
    /// Bytes per second of all threads together, every byte counted once, whatever a copy does with it.
    pub rate: Spread,
}

/// Bytes between the two arrays of a thread. Arrays that begin a power of two apart share the banks of the memory, of which one row at a time
/// is open: copies are then slower by some 10 % than with any other distance, which says little of copies as they are.
const BETWEEN: usize = 320 << 10;

/// How long and how often to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Samples of each point.
    pub repeats: usize,
    /// Bytes that a sample works on, at least; arrays that are larger are gone through once.
    pub sample: usize,
}

/// Measure kernels at one size. The samples of the kernels take turns, so that what disturbs the machine for a while disturbs them all.
///
/// # Errors
/// When there is not so much memory.
pub fn measure(kernels: &[Kernel], bytes: usize, cpus: &[usize], effort: Effort) -> io::Result<Vec<Point>> {
    let kernels: Vec<Kernel> = kernels.iter().copied().filter(|kernel| kernel.is_here()).collect();
    let barrier = Barrier::new(cpus.len());
    let inner = (effort.sample / bytes).max(1);
    let taken: io::Result<Vec<Vec<Sample>>> = std::thread::scope(|scope| {
        let (kernels, barrier) = (&kernels, &barrier);
        let workers: Vec<_> = cpus
            .iter()
            .map(|cpu| scope.spawn(move || thread(kernels, bytes, *cpu, (effort.repeats, inner), barrier)))
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker only moves memory")).collect()
    });
    let taken = taken?;
    let points = kernels.iter().enumerate().map(|(index, kernel)| {
        let of = |one: &[Sample]| -> Vec<Sample> {
            one.iter().skip(index).step_by(kernels.len()).copied().collect()
        };
        let rate = |nanoseconds: u64| (bytes * inner * cpus.len()) as f64 * 1e9 / nanoseconds.max(1) as f64;
        let rate = match taken.as_slice() {
            [alone] => undisturbed(&of(alone), rate),
            all => {
                let all: Vec<Vec<Sample>> = all.iter().map(|one| of(one)).collect();
                let together = (0..effort.repeats).map(|repeat| {
                    let begin = all.iter().map(|one| one[repeat].begin).min().expect("there is a thread");
                    let end = all.iter().map(|one| one[repeat].end).max().expect("there is a thread");
                    rate(end - begin)
                });
                spread(&together.collect::<Vec<_>>())
            }
        };
        Point { kernel: *kernel, bytes: bytes as u64, threads: cpus.len(), rate }
    });
    Ok(points.collect())
}

/// Begin and end of a sample by the wall clock, and its CPU time; nanoseconds.
#[derive(Clone, Copy)]
struct Sample {
    begin: u64,
    end: u64,
    cpu: u64,
}

/// The rates of one thread. Samples during which nothing else took the CPU are told by both clocks being the same; where there is none,
/// the CPU time stands in, which a hypervisor can make too short: of those the median is all that is believed.
fn undisturbed(samples: &[Sample], rate: impl Fn(u64) -> f64) -> Spread {
    let quiet = samples.iter().filter(|sample| (sample.end - sample.begin) <= sample.cpu + sample.cpu / 50);
    let quiet: Vec<f64> = quiet.map(|sample| rate(sample.end - sample.begin)).collect();
    if !quiet.is_empty() {
        return spread(&quiet);
    }
    let all = spread(&samples.iter().map(|sample| rate(sample.cpu)).collect::<Vec<_>>());
    Spread { best: all.median, ..all }
}

/// One thread's samples: all kernels, and then again.
fn thread(
    kernels: &[Kernel],
    bytes: usize,
    cpu: usize,
    (repeats, inner): (usize, usize),
    barrier: &Barrier,
) -> io::Result<Vec<Sample>> {
    sys::pin(cpu);
    let region = sys::Region::new(2 * bytes + BETWEEN);
    // Nobody waits for one that has no memory: all of them come here, and then go on or not.
    barrier.wait();
    let mut region = region?;
    let (from, rest) = region.bytes_mut().split_at_mut(bytes);
    let from = &*from;
    let to = &mut rest[BETWEEN..];
    let width = Width::widest();
    let mut times = Vec::with_capacity(kernels.len() * repeats);
    for _ in 0..repeats {
        for kernel in kernels {
            // The caches are in the state that this kernel leaves them in.
            black_box(work(*kernel, width, from, to));
            barrier.wait();
            let (begin, cpu) = (sys::now(), sys::thread_cpu());
            for _ in 0..inner {
                black_box(work(*kernel, width, from, to));
            }
            let cpu = sys::thread_cpu() - cpu;
            times.push(Sample { begin, end: sys::now(), cpu });
        }
    }
    Ok(times)
}

/// Sizes of arrays to measure: doubling from 8 KiB to four times the last cache, so that the last is the memory's; of them every
/// third for a quick look. None is larger than half a gibibyte or than an eighth of what memory is free.
pub fn sizes(last_cache: u64, available: u64, quick: bool) -> Vec<usize> {
    const FIRST: u64 = 8 << 10;
    let most = (4 * last_cache).clamp(64 << 20, 512 << 20).min((available / 8).max(FIRST));
    let all: Vec<usize> =
        (0..).map(|step| FIRST << step).take_while(|bytes| *bytes <= most).map(|b| b as usize).collect();
    let step = if quick { 3 } else { 1 };
    let (last, rest) = all.split_last().expect("the first is never too large");
    rest.iter().rev().skip(step - 1).step_by(step).rev().chain([last]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_here_is_measured() {
        let effort = Effort { repeats: 2, sample: 1 << 14 };
        let points = measure(&Kernel::ALL, 1 << 13, &sys::cpus()[..1], effort).unwrap();
        assert_eq!(points.len(), Kernel::ALL.into_iter().filter(|kernel| kernel.is_here()).count());
        for point in points {
            assert!(point.rate.least > 0.0 && point.rate.least <= point.rate.median, "{point:?}");
            assert!(point.rate.median <= point.rate.best, "{point:?}");
        }
    }

    #[test]
    fn large_arrays_begin_where_a_huge_page_can() {
        for bytes in [4096, (2 << 20) - 4096, 2 << 20, (4 << 20) + BETWEEN] {
            let region = sys::Region::new(bytes).unwrap();
            assert_eq!(region.bytes().len(), bytes);
            assert!(bytes < 2 << 20 || region.bytes().as_ptr().addr().is_multiple_of(2 << 20), "{bytes}");
            assert!(region.bytes().iter().all(|byte| *byte == 1));
        }
    }

    #[test]
    fn what_was_disturbed_is_not_believed() {
        let sample = |wall, cpu| Sample { begin: 0, end: wall, cpu };
        let rate = |ns: u64| 1e3 / ns as f64;
        // Two quiet samples of 10 and 8 ns; the one that lasted 50 and claims 2 does not count.
        let found = undisturbed(&[sample(10, 10), sample(50, 2), sample(8, 8)], rate);
        assert_eq!((found.best, found.least), (125.0, 100.0));
        let none = undisturbed(&[sample(50, 2), sample(50, 10), sample(50, 20)], rate);
        assert_eq!((none.best, none.median), (100.0, 100.0));
    }

    #[test]
    fn sizes_end_beyond_the_last_cache() {
        let all = sizes(32 << 20, 24 << 30, false);
        assert_eq!((all[0], all[all.len() - 1], all.len()), (8 << 10, 128 << 20, 15));
        let quick = sizes(32 << 20, 24 << 30, true);
        assert_eq!((quick[quick.len() - 1], quick.len()), (128 << 20, 5));
        assert_eq!(sizes(1 << 30, 24 << 30, false).last(), Some(&(512 << 20)));
        assert_eq!(sizes(32 << 20, 1 << 20, false).last(), Some(&(128 << 10)));
    }
}
