//! Memory bandwidth as a function of array size and number of threads.

mod kernel;

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use schemars::JsonSchema;
use serde::Serialize;

pub use kernel::{BLOCK, Kernel, Width, work};

use super::sample_stats::Spread;
use super::sys;

/// Result for one operation, array size and number of threads; each thread has its own arrays.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Operation that was measured.
    pub kernel: Kernel,
    /// Size of one array in bytes; a copy uses two.
    pub bytes: u64,
    /// Number of threads, each on its own CPU.
    pub threads: usize,
    /// Bytes per second of all threads together. Each byte counts once, also in a copy.
    pub rate: Spread,
    /// Number of visits, each with some samples.
    pub visits: usize,
    /// Whether another visit came within 3 % of the best one.
    pub confirmed: bool,
}

/// Bytes between the two arrays of a thread. On the machine that we tested, copies between arrays whose starts are a power of two apart are 8 to 10 % slower
/// than with any other distance, perhaps because of memory banks. That special case says little about copies in general.
const BETWEEN: usize = 320 << 10;

/// How long and how often to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Samples per point.
    pub repeats: usize,
    /// Least number of bytes per sample. Larger arrays are processed once per sample.
    pub sample: usize,
}

/// The samples of one visit, in bytes per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Taken {
    /// Samples during which nothing else used the CPU.
    pub undisturbed: Vec<f64>,
    /// The other samples, with their CPU time in place of wall-clock time.
    pub stand_in: Vec<f64>,
}

/// Measures each kernel with `effort.repeats` samples, with one thread per entry of `cpus`. The host must support all of them.
///
/// # Errors
/// Fails when there is not enough memory or a thread cannot be started.
pub(super) fn visit(
    kernels: &[Kernel],
    bytes: usize,
    cpus: &[usize],
    effort: Effort,
) -> io::Result<Vec<Taken>> {
    let meeting = SpinBarrier::new(cpus.len());
    let inner = (effort.sample / bytes).max(1);
    let taken: io::Result<Vec<Vec<Sample>>> = std::thread::scope(|scope| {
        let meeting = &meeting;
        let workers: Vec<io::Result<_>> = cpus
            .iter()
            .map(|cpu| {
                let work = move || thread(kernels, bytes, *cpu, (effort.repeats, inner), meeting);
                let started = std::thread::Builder::new().spawn_scoped(scope, work);
                started.inspect_err(|_| meeting.never_comes())
            })
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().expect("a memory worker does not panic")
        };
        let (started, missing): (Vec<_>, Vec<_>) = workers.into_iter().partition(Result::is_ok);
        let taken = started.into_iter().flatten().map(join).collect();
        missing.into_iter().find_map(Result::err).map_or(taken, Err)
    });
    let taken = taken?;
    let all = kernels.iter().enumerate().map(|(index, _)| {
        let of = |one: &[Sample]| -> Vec<Sample> {
            one.iter().skip(index).step_by(kernels.len()).copied().collect()
        };
        let rate = |nanoseconds: u64| (bytes * inner * cpus.len()) as f64 * 1e9 / nanoseconds.max(1) as f64;
        match taken.as_slice() {
            [alone] => undisturbed(&of(alone), rate),
            all => {
                let all: Vec<Vec<Sample>> = all.iter().map(|one| of(one)).collect();
                let together = (0..effort.repeats).map(|repeat| {
                    let begin =
                        all.iter().map(|one| one[repeat].begin).min().expect("there is at least one thread");
                    let end =
                        all.iter().map(|one| one[repeat].end).max().expect("there is at least one thread");
                    rate(end - begin)
                });
                Taken { undisturbed: together.collect(), stand_in: Vec::new() }
            }
        }
    });
    Ok(all.collect())
}

/// Begin and end of a sample by the wall clock, and its CPU time, in nanoseconds.
#[derive(Clone, Copy)]
struct Sample {
    begin: u64,
    end: u64,
    cpu: u64,
}

/// Splits the samples of one thread. A sample is undisturbed if its wall-clock time exceeds its CPU time by at most 2 %.
fn undisturbed(samples: &[Sample], rate: impl Fn(u64) -> f64) -> Taken {
    let quiet = |sample: &&Sample| (sample.end - sample.begin) <= sample.cpu + sample.cpu / 50;
    Taken {
        undisturbed: samples.iter().filter(quiet).map(|sample| rate(sample.end - sample.begin)).collect(),
        stand_in: samples.iter().filter(|sample| !quiet(sample)).map(|sample| rate(sample.cpu)).collect(),
    }
}

/// A spinning barrier. A thread that sleeps would wake about 50 us late, which is too much for a sample of a millisecond.
struct SpinBarrier {
    threads: usize,
    here: AtomicUsize,
    held: AtomicUsize,
    /// Whether a thread has no memory or could not be started.
    failed: AtomicBool,
}

impl SpinBarrier {
    fn new(threads: usize) -> Self {
        Self { threads, here: AtomicUsize::new(0), held: AtomicUsize::new(0), failed: AtomicBool::new(false) }
    }

    /// Reports a thread that could not be started. The others pass the barrier once more without it and then give up.
    fn never_comes(&self) {
        self.failed.store(true, Ordering::Relaxed);
        self.come(self.held.load(Ordering::Acquire));
    }

    /// Counts one more thread at the barrier. Returns whether it is the last one.
    fn come(&self, held: usize) -> bool {
        let last = self.here.fetch_add(1, Ordering::AcqRel) + 1 == self.threads;
        if last {
            self.here.store(0, Ordering::Relaxed);
            self.held.store(held + 1, Ordering::Release);
        }
        last
    }

    fn wait(&self) {
        let held = self.held.load(Ordering::Acquire);
        if self.come(held) {
            return;
        }
        let mut turns = 0_u32;
        while self.held.load(Ordering::Acquire) == held {
            turns += 1;
            // The last thread may be waiting for a CPU.
            if turns.is_multiple_of(1 << 16) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// Takes the samples of one thread: in each repeat, one of every kernel.
fn thread(
    kernels: &[Kernel],
    bytes: usize,
    cpu: usize,
    (repeats, inner): (usize, usize),
    meeting: &SpinBarrier,
) -> io::Result<Vec<Sample>> {
    sys::pin(cpu);
    // Small arrays use huge pages too: which cache sets small pages share is luck.
    let region = sys::Region::new((2 * bytes + BETWEEN).max(2 << 20));
    meeting.failed.fetch_or(region.is_err(), Ordering::Relaxed);
    // Threads without memory come to the barrier too, so that either all threads go on or none does.
    meeting.wait();
    let mut region = region?;
    if meeting.failed.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let (from, rest) = region.bytes_mut().split_at_mut(bytes);
    let from = &*from;
    let to = &mut rest[BETWEEN..BETWEEN + bytes];
    let width = Width::widest();
    let mut times = Vec::with_capacity(kernels.len() * repeats);
    for _ in 0..repeats {
        for kernel in kernels {
            // A first run brings the caches into the state that this kernel leaves behind.
            black_box(work(*kernel, width, from, to));
            meeting.wait();
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

/// Returns the array sizes to measure in bytes. They double from 8 KiB to four times the last-level cache, so that the last one measures memory; a quick
/// probe takes every third. No size exceeds 512 MiB or an eighth of the available memory.
pub fn sizes(last_cache: u64, available: u64, quick: bool) -> Vec<usize> {
    const FIRST: u64 = 8 << 10;
    let most = (4 * last_cache).clamp(64 << 20, 512 << 20).min((available / 8).max(FIRST));
    let all: Vec<usize> =
        (0..).map(|step| FIRST << step).take_while(|bytes| *bytes <= most).map(|b| b as usize).collect();
    let step = if quick { 3 } else { 1 };
    let (last, rest) = all.split_last().expect("the first size is within the limit");
    rest.iter().rev().skip(step - 1).step_by(step).rev().chain([last]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_regions_are_aligned_to_huge_pages() {
        for bytes in [4096, (2 << 20) - 4096, 2 << 20, (4 << 20) + BETWEEN] {
            let region = sys::Region::new(bytes).unwrap();
            assert_eq!(region.bytes().len(), bytes);
            assert!(bytes < 2 << 20 || region.bytes().as_ptr().addr().is_multiple_of(2 << 20), "{bytes}");
            assert!(region.bytes().iter().all(|byte| *byte == 1));
        }
    }

    #[test]
    fn barrier_releases_threads_if_one_fails_to_start() {
        let meeting = SpinBarrier::new(3);
        std::thread::scope(|scope| {
            let region = || thread(&[Kernel::Read], 1 << 13, sys::cpus()[0], (1, 1), &meeting);
            let waiting = [scope.spawn(region), scope.spawn(region)];
            meeting.never_comes();
            for one in waiting {
                assert!(one.join().unwrap().is_err());
            }
        });
    }

    #[test]
    fn disturbed_samples_are_set_aside() {
        let sample = |wall, cpu| Sample { begin: 0, end: wall, cpu };
        let rate = |ns: u64| 1e3 / ns as f64;
        // Two quiet samples of 10 and 8 ns. The sample of 50 ns with a CPU time of 2 ns is disturbed.
        let found = undisturbed(&[sample(10, 10), sample(50, 2), sample(8, 8)], rate);
        assert_eq!((found.undisturbed, found.stand_in), (vec![100.0, 125.0], vec![500.0]));
    }

    #[test]
    fn memory_threads_all_run_or_all_fail() {
        let effort = Effort { repeats: 3, sample: 1 << 14 };
        let cpus = sys::cpus();
        // It works with more threads than CPUs too.
        let many = [cpus[0], cpus[0], cpus[cpus.len() - 1]];
        for taken in visit(&[Kernel::Read, Kernel::Write], 1 << 13, &many, effort).unwrap() {
            assert_eq!((taken.undisturbed.len(), taken.stand_in.len()), (3, 0));
        }
        assert!(visit(&[Kernel::Read], 1 << 60, &many, effort).is_err());
    }

    #[test]
    fn array_sizes_end_beyond_the_last_cache() {
        let all = sizes(32 << 20, 24 << 30, false);
        assert_eq!((all[0], all[all.len() - 1], all.len()), (8 << 10, 128 << 20, 15));
        let quick = sizes(32 << 20, 24 << 30, true);
        assert_eq!((quick[quick.len() - 1], quick.len()), (128 << 20, 5));
        assert_eq!(sizes(1 << 30, 24 << 30, false).last(), Some(&(512 << 20)));
        assert_eq!(sizes(32 << 20, 1 << 20, false).last(), Some(&(128 << 10)));
    }
}
