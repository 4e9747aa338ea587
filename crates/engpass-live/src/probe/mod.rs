//! The probe: measures the memory, kernel, buses and sockets of this host within a minute, and applies the copy model to the results.
//!
//! It needs no privileges and leaves nothing behind: its files have no names, its sockets use loopback, and its threads end with each step.

mod bandwidth_survey;
mod devices;
mod direct_io;
mod gpu;
mod host;
mod host_table;
mod kernel_copy;
mod memory;
mod packets;
mod prediction;
mod sample_stats;
mod socket;
mod sys;
#[cfg(test)]
mod temp_dir;
mod timer;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

use crate::time::SECOND;
use bandwidth_survey::Survey;

pub use bandwidth_survey::measure;
pub use devices::{Device, DeviceKind, Link};
pub use direct_io::Block;
pub use gpu::Gpu;
pub use host::{CacheLevel, Host};
pub use kernel_copy::KernelCopy;
pub use memory::{BLOCK, Effort, Kernel, Point, Width, sizes, work};
pub use packets::{Calls, Packets};
pub use prediction::{Bandwidths, Basis, Ceiling, LEAVES_OUT, Outcome, Roofline, Verdict};
pub use sample_stats::{Spread, spread};
pub use socket::{Receiving, Sending, Stream};
pub use timer::Timer;

/// A measured value, or the reason why it was not measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section<T> {
    /// The measured value.
    Measured(T),
    /// The reason why nothing was measured.
    NotMeasured(String),
}

impl<T> Section<T> {
    fn not_yet() -> Self {
        Self::NotMeasured("its step of the probe did not run".to_owned())
    }

    fn of<E: ToString>(result: Result<T, E>) -> Self {
        result.map_or_else(|why| Self::NotMeasured(why.to_string()), Self::Measured)
    }

    /// Returns the value, if it was measured.
    pub fn measured(&self) -> Option<&T> {
        match self {
            Self::Measured(value) => Some(value),
            Self::NotMeasured(_) => None,
        }
    }
}

/// The schema: an object with one of two keys.
impl<T: JsonSchema> JsonSchema for Section<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Section", T::schema_name().trim_start_matches("Array_of_")).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut measured = generator.subschema_for::<Option<T>>();
        measured.insert("description".to_owned(), "What was measured.".into());
        json_schema!({
            "type": "object",
            "description": "What was measured, or why it was not.",
            "properties": {
                "measured": measured,
                "not_measured": { "type": ["string", "null"], "description": "Why it was not." },
            },
        })
    }
}

/// Returns the JSON Schema of a [`Report`], from which the Python types are generated.
pub fn schema() -> Value {
    schemars::schema_for!(Report).to_value()
}

/// The results of a probe.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// Version of Engpass.
    pub version: &'static str,
    /// Whether it was a quick probe.
    pub quick: bool,
    /// The host.
    pub host: Host,
    /// Clock and timers.
    pub timer: Option<Timer>,
    /// Vector registers that were used.
    pub width: Width,
    /// Memory bandwidth.
    pub memory: Section<Vec<Point>>,
    /// Memory bandwidth in the terms of the model.
    pub bandwidths: Option<Bandwidths>,
    /// The kernel's copies, over a small and a large file in memory.
    pub kernel: Section<Vec<KernelCopy>>,
    /// TCP over loopback.
    pub sockets: Section<Vec<Stream>>,
    /// UDP datagrams over loopback.
    pub packets: Section<Vec<Packets>>,
    /// Devices on PCI Express.
    pub devices: Vec<Device>,
    /// Disk transfers that bypass the page cache.
    pub block: Section<Block>,
    /// Copies to and from GPUs.
    pub gpus: Section<Vec<Gpu>>,
    /// The points from which the model's bandwidths were taken.
    pub basis: Vec<Basis>,
    /// Fraction of the CPUs' time that other programs or a hypervisor used while memory was measured; `None` if the kernel does not report it.
    pub others: Option<f64>,
    /// Whether all of `basis` was confirmed, and others used less than 5 % of the CPUs.
    pub steady: bool,
    /// Highest throughput of each data path, by network device.
    pub rooflines: Vec<Roofline>,
    /// Highest throughput of the paths that differ, over buses from slow to fast.
    pub over_buses: Vec<Roofline>,
    /// Comparison of the model with sockets and GPU copies.
    pub verdicts: Vec<Verdict>,
    /// What the model does not count.
    pub leaves_out: &'static str,
}

/// A step of the probe, which takes between some tenths of a second and some seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Timer,
    /// First visit of a place of the survey: one array size with one number of threads.
    Memory {
        place: usize,
    },
    /// More visits of points that are not settled; `left` such steps remain, this one included.
    More {
        left: u64,
    },
    Kernel,
    Sockets,
    Packets,
    Devices,
    Block,
    Gpus,
}

/// A probe whose steps run one after the other, followed by its report.
pub struct Probe {
    steps: Vec<Step>,
    cpus: Vec<usize>,
    directory: PathBuf,
    survey: Survey,
    /// When the first step began, in nanoseconds.
    begun: Option<u64>,
    watch: Watch,
    report: Report,
}

/// CPU time while memory was measured, in nanoseconds, summed over the CPUs: wall-clock time, busy time, and time used by this process.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    time: u64,
    busy: u64,
    own: u64,
}

impl Watch {
    /// Returns the fraction of the time that others used.
    fn others(self) -> Option<f64> {
        (self.time > 0).then(|| self.busy.saturating_sub(self.own) as f64 / self.time as f64)
    }
}

/// Operations that are measured with several threads.
const TOGETHER: [Kernel; 6] = [
    Kernel::Read,
    Kernel::Write,
    Kernel::WriteNonTemporal,
    Kernel::CopyLibrary,
    Kernel::CopyNonTemporal,
    Kernel::CopyString,
];

/// Fraction of the time that others may use in a steady probe.
const OTHERS: f64 = 0.05;

/// Number of steps with further visits, after the first visits.
const MORE: u64 = 10;

/// Returns the time budget of the probe, in nanoseconds.
const fn time(quick: bool) -> u64 {
    if quick { 7 * SECOND } else { 45 * SECOND }
}

impl Probe {
    /// Prepares a probe of this host. Disk transfers are measured in `directory`.
    pub fn new(quick: bool, directory: &Path) -> Self {
        let cpus = sys::cpus();
        let host = host::host(Path::new("/"), cpus.len());
        let sizes = sizes(host.last_cache(), host.available_bytes, quick);
        let mut survey = Survey::new(if quick { 10 } else { 20 });
        let largest = sizes.last().copied().unwrap_or(BLOCK);
        let cached = prediction::cached(sizes.iter().map(|bytes| *bytes as u64), host.last_cache());
        for bytes in sizes.iter().copied() {
            survey.add(bytes, 1, bytes == largest || Some(bytes as u64) == cached, &Kernel::ALL);
        }
        let mut threads: Vec<usize> =
            (1..).map(|power| 1 << power).take_while(|count| *count < cpus.len()).collect();
        threads.extend([cpus.len()].into_iter().filter(|count| *count > 1));
        // All threads together work on at least as much memory as one thread alone.
        let share = |threads: usize| (largest / threads).next_multiple_of(4096);
        if let (false, Some(all)) = (quick, threads.last().copied()) {
            for bytes in sizes.iter().copied().filter(|bytes| *bytes < share(all)) {
                survey.add(bytes, all, false, &TOGETHER);
            }
        }
        for threads in threads {
            survey.add(share(threads), threads, true, &TOGETHER);
        }
        let mut steps = vec![Step::Timer];
        steps.extend((0..survey.places()).map(|place| Step::Memory { place }));
        let others = [Step::Kernel, Step::Sockets, Step::Packets, Step::Devices, Step::Block, Step::Gpus];
        let mut left = MORE;
        for other in others {
            steps.extend([other, Step::More { left }]);
            left -= 1;
        }
        steps.extend((1..=left).rev().map(|left| Step::More { left }));
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
            basis: Vec::new(),
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
            survey,
            begun: None,
            watch: Watch::default(),
            report,
        }
    }

    /// Returns a label for each step, in order.
    pub fn steps(&self) -> Vec<String> {
        let name = |step: &Step| match step {
            Step::Timer => "clock and timers".to_owned(),
            Step::Memory { place } => match self.survey.place(*place) {
                (bytes, 1) => format!("memory, {} KiB", bytes >> 10),
                (bytes, threads) => format!("memory, {} KiB, {threads} threads", bytes >> 10),
            },
            Step::More { .. } => "memory, until the results repeat".to_owned(),
            Step::Kernel => "copies by the kernel".to_owned(),
            Step::Sockets => "sockets".to_owned(),
            Step::Packets => "packets".to_owned(),
            Step::Devices => "devices".to_owned(),
            Step::Block => "disk".to_owned(),
            Step::Gpus => "GPUs".to_owned(),
        };
        self.steps.iter().map(name).collect()
    }

    /// Runs a step, given its index in `steps`.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn run(&mut self, step: usize) {
        let quick = self.report.quick;
        let first = self.cpus[0];
        let begun = *self.begun.get_or_insert_with(sys::now);
        let memory = matches!(self.steps[step], Step::Memory { .. } | Step::More { .. });
        let before = memory.then(|| self.now()).flatten();
        match self.steps[step] {
            Step::Timer => self.report.timer = timer::timer(first, quick).ok(),
            Step::Memory { place } => self.visit(place),
            Step::More { left } => {
                let after = self.steps[step + 1..].iter().map(|step| step.takes(quick)).sum::<u64>();
                let end = begun + time(quick);
                let until = sys::now() + end.saturating_sub(sys::now() + after) / left;
                while let Some(place) = self.survey.next().filter(|_| sys::now() < until) {
                    self.visit(place);
                }
            }
            Step::Kernel => {
                let large = (2 * self.report.host.last_cache()).min(128 << 20);
                let copies = [1 << 20, large]
                    .into_iter()
                    .map(|bytes| kernel_copy::kernel_copy(first, bytes, if quick { 3 } else { 9 }));
                self.report.kernel = Section::of(copies.collect::<Result<_, _>>());
            }
            Step::Sockets => {
                let (rounds, each) = if quick { (8, 33) } else { (24, 66) };
                self.report.sockets = loopback(socket::streams(rounds, Duration::from_millis(each)));
            }
            Step::Packets => {
                let (rounds, each) = if quick { (3, 50) } else { (8, 100) };
                self.report.packets = loopback(packets::packets(rounds, Duration::from_millis(each)));
            }
            Step::Devices => self.report.devices = devices::devices(Path::new("/")),
            Step::Block => {
                let (bytes, repeats) = if quick { (16 << 20, 1) } else { (64 << 20, 3) };
                self.report.block = Section::of(direct_io::block(&self.directory, bytes, repeats));
            }
            Step::Gpus => {
                let repeats = if quick { 3 } else { 9 };
                self.report.gpus = Section::of(gpu::gpus(256 << 20, repeats));
            }
        }
        if let (Some(before), Some(after)) = (before, memory.then(|| self.now()).flatten()) {
            self.watch.time += after.time - before.time;
            self.watch.busy += after.busy.saturating_sub(before.busy);
            self.watch.own += after.own - before.own;
        }
    }

    /// Reads the clocks of the CPUs that the probe may use.
    fn now(&self) -> Option<Watch> {
        let busy = host::busy(Path::new("/"), &self.cpus)?;
        Some(Watch { time: sys::now() * self.cpus.len() as u64, busy, own: sys::process_cpu() })
    }

    /// Visits a place again, each time on other CPUs, because another guest of the machine may disturb only some of them.
    fn visit(&mut self, place: usize) {
        let (cpus, quick) = (&self.cpus, self.report.quick);
        self.survey.visit(place, sys::now(), |kernels, bytes, threads, visit| {
            let on: Vec<usize> = (0..threads).map(|one| cpus[(visit + one) % cpus.len()]).collect();
            let sample = if quick { 16 << 20 } else { 64 << 20 };
            memory::visit(kernels, bytes, &on, Effort { repeats: if bytes > sample { 1 } else { 2 }, sample })
        });
    }

    /// Returns all results so far, with the predictions of the model.
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        let last_cache = report.host.last_cache();
        report.others = self.watch.others();
        let points = self.survey.points();
        report.bandwidths = prediction::bandwidths(&points, last_cache);
        report.basis = prediction::basis(&points, last_cache);
        report.steady = report.timer.as_ref().is_none_or(|timer| timer.stolen < OTHERS)
            && report.others.is_none_or(|share| share < OTHERS)
            && !report.basis.is_empty()
            && report.basis.iter().all(|basis| basis.confirmed);
        report.memory = match (self.survey.failed(), points.is_empty()) {
            (_, false) => Section::Measured(points),
            (Some(why), true) => Section::NotMeasured(why.to_owned()),
            (None, true) => Section::not_yet(),
        };
        if let Some(bandwidths) = &report.bandwidths {
            report.rooflines = prediction::rooflines(bandwidths, &report.devices);
            report.over_buses = prediction::over_buses(bandwidths);
            if let Section::Measured(streams) = &report.sockets {
                report.verdicts = prediction::verdicts(bandwidths, streams);
            }
            if let Section::Measured(gpus) = &report.gpus {
                report.verdicts.extend(prediction::copies_to_gpus(bandwidths, gpus, &report.devices));
            }
        }
        report
    }
}

/// Wraps a measurement over loopback and explains failures: in a new network namespace the loopback interface is down at first.
fn loopback<T>(result: io::Result<T>) -> Section<T> {
    Section::of(result.map_err(|why| match why.kind() {
        io::ErrorKind::NetworkUnreachable => {
            format!("the loopback interface is down: {why}; help: `ip link set lo up`")
        }
        _ => format!("the loopback interface cannot be used: {why}"),
    }))
}

impl Step {
    /// Returns the step's approximate duration in nanoseconds, so that the further visits leave it enough time.
    const fn takes(&self, quick: bool) -> u64 {
        let tenths = match (self, quick) {
            (Self::Sockets, false) => 100,
            (Self::Sockets, true) => 18,
            (Self::Packets, false) => 26,
            (Self::Packets, true) => 6,
            (Self::Block, false) => 20,
            (Self::Kernel, false) => 10,
            (Self::Gpus, false) => 10,
            (Self::Block | Self::Kernel | Self::Gpus, true) => 3,
            (Self::Timer | Self::Memory { .. } | Self::More { .. } | Self::Devices, _) => 0,
        };
        tenths * SECOND / 10
    }
}

impl Report {
    /// Returns the host as a table for a testbed file, under this name.
    pub fn table(&self, name: &str) -> String {
        host_table::table(self, name)
    }
}

#[cfg(test)]
mod tests;
