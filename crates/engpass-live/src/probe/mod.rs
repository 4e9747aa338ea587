//! The probe: what this host's memory, kernel, buses and sockets give, measured in some seconds, and what the copy model makes of it.
//!
//! It needs no privileges and leaves nothing behind: files have no names, sockets are loopback's, threads are its own and end with each step.

mod block;
mod calls;
mod devices;
#[cfg(test)]
mod folder;
mod gpu;
mod host;
mod judge;
mod memory;
mod packets;
mod saved;
mod socket;
mod statistic;
mod sys;
mod timer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

pub use block::Block;
pub use calls::KernelCopy;
pub use devices::{Device, DeviceKind, Link};
pub use gpu::Gpu;
pub use host::{CacheLevel, Host};
pub use judge::{Bandwidths, Ceiling, LEAVES_OUT, Roofline, Verdict};
pub use memory::{BLOCK, Effort, Kernel, Point, Width, measure, sizes, work};
pub use packets::{Calls, Packets};
pub use socket::{Receiving, Sending, Stream};
pub use statistic::{Spread, spread};
pub use timer::Timer;

/// What was measured, or why it was not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section<T> {
    /// It was.
    Measured(T),
    /// It was not, for this reason.
    NotMeasured(String),
}

impl<T> Section<T> {
    fn not_yet() -> Self {
        Self::NotMeasured("its step did not run".to_owned())
    }

    fn of<E: ToString>(result: Result<T, E>) -> Self {
        result.map_or_else(|why| Self::NotMeasured(why.to_string()), Self::Measured)
    }

    /// What was measured.
    pub fn measured(&self) -> Option<&T> {
        match self {
            Self::Measured(value) => Some(value),
            Self::NotMeasured(_) => None,
        }
    }
}

/// A point that was measured again at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Again {
    /// What and where.
    pub kernel: Kernel,
    /// Bytes of an array.
    pub bytes: u64,
    /// The best at first and at the end, bytes per second.
    pub first: f64,
    /// See `first`.
    pub last: f64,
}

/// All that was found out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of Engpass.
    pub version: &'static str,
    /// Whether it was a quick look.
    pub quick: bool,
    /// The host.
    pub host: Host,
    /// Clock and timers.
    pub timer: Option<Timer>,
    /// Vector registers that were used.
    pub width: Width,
    /// Bandwidth of memory.
    pub memory: Section<Vec<Point>>,
    /// The same in the terms of the model.
    pub bandwidths: Option<Bandwidths>,
    /// The kernel's own copies, over small and large files in memory.
    pub kernel: Section<Vec<KernelCopy>>,
    /// TCP over loopback.
    pub sockets: Section<Vec<Stream>>,
    /// Datagrams over loopback.
    pub packets: Section<Vec<Packets>>,
    /// Devices on PCI Express.
    pub devices: Vec<Device>,
    /// Transfers past the page cache.
    pub block: Section<Block>,
    /// Copies to and from GPUs.
    pub gpus: Section<Vec<Gpu>>,
    /// What was measured twice.
    pub again: Vec<Again>,
    /// Share of the CPUs' time that others took, other programs or a hypervisor, while memory was measured; nothing where the kernel does
    /// not tell.
    pub others: Option<f64>,
    /// Whether all of that was the same within 5 %, and others took less than 5 % of the CPUs.
    pub steady: bool,
    /// The most that each data path can carry.
    pub rooflines: Vec<Roofline>,
    /// The same of the paths that differ, over buses from slow to fast.
    pub over_buses: Vec<Roofline>,
    /// The model against the sockets.
    pub verdicts: Vec<Verdict>,
    /// What the model leaves out.
    pub leaves_out: &'static str,
}

/// A piece of the work, some tenths of a second to some seconds long.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Timer,
    Memory { bytes: usize, threads: usize },
    Kernel,
    Sockets,
    Packets,
    Devices,
    Block,
    Gpus,
    Again,
}

/// The probe: its steps are run one after the other, and then it gives its report.
pub struct Probe {
    steps: Vec<Step>,
    cpus: Vec<usize>,
    directory: PathBuf,
    points: Vec<Point>,
    failed: Option<String>,
    watch: Watch,
    report: Report,
}

/// What the CPUs did while memory was measured, in nanoseconds: all of them together, whatever they did, and for this process.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    time: u64,
    busy: u64,
    own: u64,
}

impl Watch {
    /// Share of the time that others took.
    fn others(self) -> Option<f64> {
        (self.time > 0).then(|| self.busy.saturating_sub(self.own) as f64 / self.time as f64)
    }
}

/// What is measured with several threads.
const TOGETHER: [Kernel; 6] = [
    Kernel::Read,
    Kernel::Write,
    Kernel::WriteNonTemporal,
    Kernel::CopyLibrary,
    Kernel::CopyNonTemporal,
    Kernel::CopyString,
];

/// What is measured again at the end.
const TWICE: [Kernel; 3] = [Kernel::Read, Kernel::Write, Kernel::CopyLibrary];

/// How far two measurements of the same may be apart.
const APART: f64 = 0.05;

impl Probe {
    /// A probe of this host. Transfers past the page cache are tried in `directory`.
    pub fn new(quick: bool, directory: &Path) -> Self {
        let cpus = sys::cpus();
        let host = host::host(Path::new("/"), cpus.len());
        let sizes = sizes(host.last_cache(), host.available_bytes, quick);
        let mut steps = vec![Step::Timer];
        steps.extend(sizes.iter().map(|bytes| Step::Memory { bytes: *bytes, threads: 1 }));
        let largest = sizes.last().copied().unwrap_or(BLOCK);
        let mut threads: Vec<usize> =
            (1..).map(|power| 1 << power).take_while(|count| *count < cpus.len()).collect();
        threads.extend([cpus.len()].into_iter().filter(|count| *count > 1));
        // The threads together work on no less than one did.
        let share = |threads: usize| (largest / threads).next_multiple_of(4096);
        if let (false, Some(all)) = (quick, threads.last().copied()) {
            let smaller = sizes.iter().copied().filter(|bytes| *bytes < share(all));
            steps.extend(smaller.map(|bytes| Step::Memory { bytes, threads: all }));
        }
        steps.extend(threads.into_iter().map(|threads| Step::Memory { bytes: share(threads), threads }));
        steps.extend([
            Step::Kernel,
            Step::Sockets,
            Step::Packets,
            Step::Devices,
            Step::Block,
            Step::Gpus,
            Step::Again,
        ]);
        let report = Report {
            version: env!("CARGO_PKG_VERSION"),
            quick,
            host,
            timer: None,
            width: Width::widest(),
            memory: Section::not_yet(),
            bandwidths: None,
            kernel: Section::not_yet(),
            sockets: Section::not_yet(),
            packets: Section::not_yet(),
            devices: Vec::new(),
            block: Section::not_yet(),
            gpus: Section::not_yet(),
            again: Vec::new(),
            others: None,
            steady: false,
            rooflines: Vec::new(),
            over_buses: Vec::new(),
            verdicts: Vec::new(),
            leaves_out: LEAVES_OUT,
        };
        Self {
            steps,
            cpus,
            directory: directory.to_owned(),
            points: Vec::new(),
            failed: None,
            watch: Watch::default(),
            report,
        }
    }

    /// What the steps are about, in their order.
    pub fn steps(&self) -> Vec<String> {
        let name = |step: &Step| match step {
            Step::Timer => "clock and timers".to_owned(),
            Step::Memory { bytes, threads: 1 } => format!("memory, {} KiB", bytes >> 10),
            Step::Memory { bytes, threads } => format!("memory, {} KiB, {threads} threads", bytes >> 10),
            Step::Kernel => "copies of the kernel".to_owned(),
            Step::Sockets => "sockets".to_owned(),
            Step::Packets => "packets".to_owned(),
            Step::Devices => "devices".to_owned(),
            Step::Block => "disk".to_owned(),
            Step::Gpus => "GPUs".to_owned(),
            Step::Again => "memory again".to_owned(),
        };
        self.steps.iter().map(name).collect()
    }

    /// Run a step, by its place in `steps`.
    ///
    /// # Panics
    /// When there is no such step.
    pub fn run(&mut self, step: usize) {
        let quick = self.report.quick;
        let effort = self.effort();
        let first = self.cpus[0];
        let memory = matches!(self.steps[step], Step::Memory { .. } | Step::Again);
        let before = memory.then(|| self.now()).flatten();
        match self.steps[step] {
            Step::Timer => self.report.timer = Some(timer::timer(first, quick)),
            Step::Memory { bytes, threads } => {
                let kernels: &[Kernel] = if threads == 1 { &Kernel::ALL } else { &TOGETHER };
                match measure(kernels, bytes, &self.cpus[..threads], effort) {
                    Ok(points) => self.points.extend(points),
                    Err(error) => self.failed = Some(error.to_string()),
                }
            }
            Step::Kernel => {
                let large = (2 * self.report.host.last_cache()).min(128 << 20);
                let copies = [1 << 20, large]
                    .into_iter()
                    .map(|bytes| calls::kernel_copy(first, bytes, effort.repeats));
                self.report.kernel = Section::of(copies.collect::<Result<_, _>>());
            }
            Step::Sockets => {
                let (rounds, each) = if quick { (2, 200) } else { (5, 500) };
                self.report.sockets = Section::of(socket::streams(rounds, Duration::from_millis(each)));
            }
            Step::Packets => {
                let each = Duration::from_millis(if quick { 150 } else { 800 });
                self.report.packets = Section::of(packets::packets(each));
            }
            Step::Devices => self.report.devices = devices::devices(Path::new("/")),
            Step::Block => {
                let (bytes, repeats) = if quick { (16 << 20, 1) } else { (64 << 20, 3) };
                self.report.block = Section::of(block::block(&self.directory, bytes, repeats));
            }
            Step::Gpus => {
                let repeats = if quick { 3 } else { 9 };
                self.report.gpus = Section::of(gpu::gpus(256 << 20, repeats));
            }
            Step::Again => self.again(effort),
        }
        if let (Some(before), Some(after)) = (before, memory.then(|| self.now()).flatten()) {
            self.watch.time += after.time - before.time;
            self.watch.busy += after.busy.saturating_sub(before.busy);
            self.watch.own += after.own - before.own;
        }
    }

    /// The clocks of the CPUs that the probe may use.
    fn now(&self) -> Option<Watch> {
        let busy = host::busy(Path::new("/"), &self.cpus)?;
        Some(Watch { time: sys::now() * self.cpus.len() as u64, busy, own: sys::process_cpu() })
    }

    fn effort(&self) -> Effort {
        match self.report.quick {
            true => Effort { repeats: 3, sample: 16 << 20 },
            false => Effort { repeats: 9, sample: 64 << 20 },
        }
    }

    /// A cached and an uncached size once more, minutes or seconds after the first time.
    fn again(&mut self, effort: Effort) {
        let alone: Vec<u64> =
            self.points.iter().filter(|point| point.threads == 1).map(|point| point.bytes).collect();
        let (Some(small), Some(large)) = (alone.iter().min(), alone.iter().max()) else { return };
        for bytes in [*small, *large] {
            let Ok(points) = measure(&TWICE, bytes as usize, &self.cpus[..1], effort) else { continue };
            for point in points {
                let same =
                    |first: &&Point| (first.kernel, first.bytes, first.threads) == (point.kernel, bytes, 1);
                let Some(first) = self.points.iter().find(same) else { continue };
                let (first, last) = (first.rate.best, point.rate.best);
                self.report.again.push(Again { kernel: point.kernel, bytes, first, last });
            }
        }
    }

    /// All that the steps found out, and what the model makes of it.
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        let last_cache = report.host.last_cache();
        report.others = self.watch.others();
        report.memory = match (&self.failed, self.points.is_empty()) {
            (_, false) => Section::Measured(self.points.clone()),
            (Some(why), true) => Section::NotMeasured(why.clone()),
            (None, true) => Section::not_yet(),
        };
        let alone = report.timer.as_ref().is_none_or(|timer| timer.stolen < APART)
            && report.others.is_none_or(|share| share < APART);
        report.steady = alone
            && !report.again.is_empty()
            && report.again.iter().all(|again| (again.last / again.first - 1.0).abs() <= APART);
        report.bandwidths = judge::bandwidths(&self.points, last_cache);
        if let Some(bandwidths) = &report.bandwidths {
            report.rooflines = judge::rooflines(bandwidths, &report.devices);
            report.over_buses = judge::over_buses(bandwidths);
            if let Section::Measured(streams) = &report.sockets {
                report.verdicts = judge::verdicts(bandwidths, streams);
            }
            if let Section::Measured(gpus) = &report.gpus {
                report.verdicts.extend(judge::copies_to_gpus(bandwidths, gpus, &report.devices));
            }
        }
        report
    }
}

impl Report {
    /// The host as a table of a testbed, under this name.
    pub fn table(&self, name: &str) -> String {
        saved::table(self, name)
    }
}

#[cfg(test)]
mod tests;
