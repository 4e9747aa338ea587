//! Bandwidth of the memory, over the size of what is worked on and the number of threads.

mod kernel;

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use schemars::JsonSchema;
use serde::Serialize;

pub use kernel::{BLOCK, Kernel, Width, work};

use super::statistic::Spread;
use super::sys;

/// What was measured at one size, with so many threads, each with arrays of its own.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// What was done.
    pub kernel: Kernel,
    /// Bytes of one array; a copy works on two.
    pub bytes: u64,
    /// Threads, each on a CPU of its own.
    pub threads: usize,
    /// Bytes per second of all threads together, every byte counted once, whatever a copy does with it.
    pub rate: Spread,
    /// How often it was visited, each time with some samples.
    pub visits: usize,
    /// Whether a visit of another time came within 3 % of the best.
    pub confirmed: bool,
}

/// Bytes between the two arrays of a thread. On the machine where we looked, copies between arrays that begin a power of two apart are slower by
/// 8 to 10 % than with any other distance, perhaps for the banks of the memory; that says little of copies as they are.
const BETWEEN: usize = 320 << 10;

/// How long and how often to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Samples of each point.
    pub repeats: usize,
    /// Bytes that a sample works on, at least; arrays that are larger are gone through once.
    pub sample: usize,
}

/// The samples of one visit, in bytes per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Taken {
    /// Those during which nothing else took the CPU.
    pub undisturbed: Vec<f64>,
    /// The others, by their CPU time.
    pub stand_in: Vec<f64>,
}

/// Measure kernels that are here once, each with `effort.repeats` samples, in their order.
///
/// # Errors
/// When there is not so much memory.
pub(super) fn visit(
    kernels: &[Kernel],
    bytes: usize,
    cpus: &[usize],
    effort: Effort,
) -> io::Result<Vec<Taken>> {
    let meeting = Meeting::new(cpus.len());
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
        let join =
            |worker: std::thread::ScopedJoinHandle<'_, _>| worker.join().expect("a worker only moves memory");
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
                    let begin = all.iter().map(|one| one[repeat].begin).min().expect("there is a thread");
                    let end = all.iter().map(|one| one[repeat].end).max().expect("there is a thread");
                    rate(end - begin)
                });
                Taken { undisturbed: together.collect(), stand_in: Vec::new() }
            }
        }
    });
    Ok(all.collect())
}

/// Begin and end of a sample by the wall clock, and its CPU time; nanoseconds.
#[derive(Clone, Copy)]
struct Sample {
    begin: u64,
    end: u64,
    cpu: u64,
}

/// The rates of one thread. Samples during which nothing else took the CPU are told by both clocks being the same.
fn undisturbed(samples: &[Sample], rate: impl Fn(u64) -> f64) -> Taken {
    let quiet = |sample: &&Sample| (sample.end - sample.begin) <= sample.cpu + sample.cpu / 50;
    Taken {
        undisturbed: samples.iter().filter(quiet).map(|sample| rate(sample.end - sample.begin)).collect(),
        stand_in: samples.iter().filter(|sample| !quiet(sample)).map(|sample| rate(sample.cpu)).collect(),
    }
}

/// Where threads wait for each other awake: one that sleeps comes some 50 us late, in a sample of a millisecond.
struct Meeting {
    threads: usize,
    here: AtomicUsize,
    held: AtomicUsize,
    /// Whether one of them has no memory, or is not there at all.
    failed: AtomicBool,
}

impl Meeting {
    fn new(threads: usize) -> Self {
        Self { threads, here: AtomicUsize::new(0), held: AtomicUsize::new(0), failed: AtomicBool::new(false) }
    }

    /// A thread could not be started: the others meet once without it, and go home.
    fn never_comes(&self) {
        self.failed.store(true, Ordering::Relaxed);
        self.come(self.held.load(Ordering::Acquire));
    }

    /// One more is here; whether it is the last.
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
            // The last may not have its CPU.
            if turns.is_multiple_of(1 << 16) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// One thread's samples: all kernels, and then again.
fn thread(
    kernels: &[Kernel],
    bytes: usize,
    cpu: usize,
    (repeats, inner): (usize, usize),
    meeting: &Meeting,
) -> io::Result<Vec<Sample>> {
    sys::pin(cpu);
    // In huge pages, small arrays too: which sets of a cache small pages share is luck.
    let region = sys::Region::new((2 * bytes + BETWEEN).max(2 << 20));
    meeting.failed.fetch_or(region.is_err(), Ordering::Relaxed);
    // Nobody waits for one that has no memory: all of them come here, and then all go on or none.
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
            // The caches are in the state that this kernel leaves them in.
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
    fn large_arrays_begin_where_a_huge_page_can() {
        for bytes in [4096, (2 << 20) - 4096, 2 << 20, (4 << 20) + BETWEEN] {
            let region = sys::Region::new(bytes).unwrap();
            assert_eq!(region.bytes().len(), bytes);
            assert!(bytes < 2 << 20 || region.bytes().as_ptr().addr().is_multiple_of(2 << 20), "{bytes}");
            assert!(region.bytes().iter().all(|byte| *byte == 1));
        }
    }

    #[test]
    fn those_who_wait_for_one_that_cannot_be_started_go_home() {
        let meeting = Meeting::new(3);
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
    fn what_was_disturbed_is_not_believed() {
        let sample = |wall, cpu| Sample { begin: 0, end: wall, cpu };
        let rate = |ns: u64| 1e3 / ns as f64;
        // Two quiet samples of 10 and 8 ns; the one that lasted 50 and claims 2 does not count.
        let found = undisturbed(&[sample(10, 10), sample(50, 2), sample(8, 8)], rate);
        assert_eq!((found.undisturbed, found.stand_in), (vec![100.0, 125.0], vec![500.0]));
    }

    #[test]
    fn threads_work_together_or_not_at_all() {
        let effort = Effort { repeats: 3, sample: 1 << 14 };
        let cpus = sys::cpus();
        // More threads than CPUs meet, too.
        let many = [cpus[0], cpus[0], cpus[cpus.len() - 1]];
        for taken in visit(&[Kernel::Read, Kernel::Write], 1 << 13, &many, effort).unwrap() {
            assert_eq!((taken.undisturbed.len(), taken.stand_in.len()), (3, 0));
        }
        assert!(visit(&[Kernel::Read], 1 << 60, &many, effort).is_err());
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
