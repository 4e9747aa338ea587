//! Predictions of the copy model for this host, compared with the throughput of its sockets.
//!
//! Each prediction is an upper bound, because the model has no protocol, no interrupts and no wake-ups. The fair test of copies is therefore a difference:
//! two streams that differ by one copy should differ by about the time of that copy.

use engpass_model::host::{Cache, DataPath, IoBus, Memory, Side, Transfer};
use engpass_model::unit::{ByteRate, Size};
use schemars::JsonSchema;
use serde::Serialize;

use super::devices::{Device, DeviceKind};
use super::gpu::Gpu;
use super::memory::{Kernel, Point};
use super::sample_stats::{median_between, spread};
use super::socket::{Receiving, Sending, Stream};

/// Memory bandwidths in the terms of the model, in bytes per second unless a field says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bandwidths {
    /// Highest bus throughput of one thread with any kernel; a copy counts twice.
    pub memory_one: f64,
    /// Highest bus throughput of all threads together, counted as in `memory_one`.
    pub memory_all: f64,
    /// Copy in memory by one thread: the faster of the C library's `memcpy` and `rep movsb`, which operating system kernels use.
    pub copy: f64,
    /// Copy of data that stays in the last-level cache.
    pub copy_cached: f64,
    /// Rate at which one thread sums up data in memory for the Internet checksum.
    pub checksum: f64,
    /// Rate at which one thread sums up data in the last-level cache for the Internet checksum.
    pub checksum_cached: f64,
    /// Array size in bytes at which `copy_cached` and `checksum_cached` were measured.
    pub cached_bytes: u64,
    /// Usable size of the last-level cache in bytes: the largest working set (both arrays) whose copies are nearer to `copy_cached` than to `copy`. Other
    /// guests of the processor may occupy the rest of the cache.
    pub cache_bytes: u64,
    /// Array size in bytes at which the other figures were measured.
    pub memory_bytes: u64,
}

/// A data path with its highest possible throughput.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Ceiling {
    /// The data path, as in a testbed.
    pub path: DataPath,
    /// Bytes per second with data in memory; `None` if the bound is unknown.
    pub from_memory: Option<f64>,
    /// Bytes per second with data in the last-level cache and DMA from memory; `None` if the bound is unknown.
    pub from_cache: Option<f64>,
}

/// The ceilings of all data paths over one network device, or of memory alone.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Roofline {
    /// Name of the device; `None` if only memory bounds the paths.
    pub device: Option<String>,
    /// Payload throughput of the device's bus in bytes per second.
    pub bus: Option<f64>,
    /// The data paths with their ceilings.
    pub ceilings: Vec<Ceiling>,
}

/// A prediction of the model, compared with a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// The compared quantity, in words.
    pub what: String,
    /// Prediction of the model.
    pub predicted: f64,
    /// Measured value.
    pub measured: f64,
    /// Unit of both values: `B/s` or `s/GB`.
    pub unit: &'static str,
    /// Confidence interval (95 %) of the median, if the measurement is a set of differences.
    pub between: Option<[f64; 2]>,
    /// The rule that the measurement must obey: "at most", or "within a factor of 2".
    pub rule: &'static str,
    /// Whether the rule holds.
    pub outcome: Outcome,
}

/// Result of checking a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The rule holds.
    Holds,
    /// The rule does not hold.
    Fails,
    /// Undecided: the confidence interval lies partly inside and partly outside the rule's range.
    NotToldApart,
}

impl Outcome {
    fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }

    /// Compares the interval `low` to `high` with the rule's range `least` to `most`.
    fn between([low, high]: [f64; 2], least: f64, most: f64) -> Self {
        if low >= least && high <= most {
            Self::Holds
        } else if high < least || low > most {
            Self::Fails
        } else {
            Self::NotToldApart
        }
    }
}

/// What the model does not count, as a text for users.
pub const LEAVES_OUT: &str = "The model counts copies, memory and bus. It has no protocol work, system calls, interrupts, wake-ups, page faults or \
    scheduling, which is most of what a socket costs; so a prediction is an upper bound, and on loopback there is no DMA and no bus at all.";

/// The measurement point from which a figure of the model was taken.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Basis {
    /// Name of the figure in [`Bandwidths`].
    pub figure: &'static str,
    /// Operation that was measured.
    pub kernel: Kernel,
    /// Array size in bytes.
    pub bytes: u64,
    /// Number of threads.
    pub threads: usize,
    /// Whether the point was confirmed by a later visit.
    pub confirmed: bool,
}

/// The points from which the model takes its figures.
struct Picked<'a> {
    memory_one: &'a Point,
    memory_all: &'a Point,
    copy: &'a Point,
    copy_cached: &'a Point,
    checksum: &'a Point,
    checksum_cached: &'a Point,
}

impl<'a> Picked<'a> {
    /// Picks the points. Returns `None` if one of them was not measured.
    fn of(points: &'a [Point], last_cache: u64) -> Option<Self> {
        let alone = || points.iter().filter(|point| point.threads == 1);
        let largest = alone().map(|point| point.bytes).max()?;
        let in_memory = || points.iter().filter(|point| point.bytes * point.threads as u64 >= largest);
        let most = |one: &&Point, other: &&Point| moved(one).total_cmp(&moved(other));
        let cached_bytes = cached(alone().map(|point| point.bytes), last_cache)?;
        let checksum = |bytes| alone().find(|point| (point.kernel, point.bytes) == (Kernel::Checksum, bytes));
        Some(Self {
            memory_one: in_memory().filter(|point| point.threads == 1).max_by(most)?,
            memory_all: in_memory().max_by(most)?,
            copy: fastest(points, largest)?,
            copy_cached: fastest(points, cached_bytes)?,
            checksum: checksum(largest)?,
            checksum_cached: checksum(cached_bytes)?,
        })
    }
}

/// Returns the array size at which cached copies are measured: the largest whose two arrays fill at most an eighth of the last-level cache, so that other
/// users of the cache matter little.
pub(super) fn cached(sizes: impl Iterator<Item = u64>, last_cache: u64) -> Option<u64> {
    sizes.filter(|bytes| bytes * 16 <= last_cache).max()
}

/// Returns the throughput over the memory bus in bytes per second; copies count twice.
fn moved(point: &Point) -> f64 {
    point.rate.best * point.kernel.transfers() as f64
}

/// Returns one thread's faster copy of the two that kernels use, over arrays of `bytes` bytes.
fn fastest(points: &[Point], bytes: u64) -> Option<&Point> {
    let copies = points.iter().filter(|point| {
        (point.bytes, point.threads) == (bytes, 1)
            && matches!(point.kernel, Kernel::CopyLibrary | Kernel::CopyString)
    });
    copies.max_by(|one, other| one.rate.best.total_cmp(&other.rate.best))
}

/// Returns the points behind the model's figures, or an empty list if one of them was not measured.
pub(super) fn basis(points: &[Point], last_cache: u64) -> Vec<Basis> {
    let Some(picked) = Picked::of(points, last_cache) else { return Vec::new() };
    let all = [
        ("memory_all", picked.memory_all),
        ("memory_one", picked.memory_one),
        ("copy", picked.copy),
        ("copy_cached", picked.copy_cached),
        ("checksum", picked.checksum),
        ("checksum_cached", picked.checksum_cached),
    ];
    let basis = |(figure, point): (_, &Point)| {
        let Point { kernel, bytes, threads, confirmed, .. } = *point;
        Basis { figure, kernel, bytes, threads, confirmed }
    };
    all.map(basis).to_vec()
}

/// Computes the model's bandwidths from the points, or `None` if one of them was not measured.
pub(super) fn bandwidths(points: &[Point], last_cache: u64) -> Option<Bandwidths> {
    let picked = Picked::of(points, last_cache)?;
    let (copy, copy_cached) = (picked.copy.rate.best, picked.copy_cached.rate.best);
    let cached_bytes = picked.copy_cached.bytes;
    let cached = |point: &&Point| {
        point.threads == 1
            && point.bytes >= cached_bytes
            && point.bytes * 2 <= last_cache
            && fastest(points, point.bytes).is_some_and(|found| found.rate.best > (copy * copy_cached).sqrt())
    };
    let cache_bytes = 2 * points.iter().filter(cached).map(|point| point.bytes).max().unwrap_or(cached_bytes);
    Some(Bandwidths {
        memory_one: moved(picked.memory_one),
        memory_all: moved(picked.memory_all),
        copy,
        copy_cached,
        checksum: picked.checksum.rate.best,
        checksum_cached: picked.checksum_cached.rate.best,
        cached_bytes,
        cache_bytes,
        memory_bytes: picked.copy.bytes,
    })
}

impl Bandwidths {
    /// Returns the memory as a testbed describes it. `set` is the working set in bytes.
    pub fn memory(&self, set: Option<u64>) -> Memory {
        let rate = |bytes_per_s: f64| ByteRate((bytes_per_s / 1e6).round() as u64 * 1_000_000);
        Memory {
            bandwidth: rate(self.memory_all),
            copy: Some(rate(self.copy)),
            write_allocate: false,
            checksum: Some(rate(self.checksum)),
            encryption: None,
            cache: Some(Cache {
                size: Size(self.cache_bytes),
                copy: rate(self.copy_cached),
                checksum: Some(rate(self.checksum_cached)),
                dma: false,
            }),
            working_set: set.map(Size),
        }
    }
}

/// Returns the ceilings of all paths: first bounded by memory alone, then over each network device whose bus throughput is known.
pub(super) fn rooflines(bandwidths: &Bandwidths, devices: &[Device]) -> Vec<Roofline> {
    let buses = devices.iter().filter(|device| device.kind == DeviceKind::Network).filter_map(|device| {
        let link = device.link.as_ref()?;
        Some((Some(device.name.clone()), Some(link.payload_per_s)))
    });
    let roofline = |(device, bus): (Option<String>, Option<f64>)| {
        // Without a bus, a path that does not touch memory has no known bound.
        let bounded = |path: &DataPath| bus.is_some() || path.uses().copies + path.uses().dma > 0;
        let paths = DataPath::ALL.into_iter();
        let ceilings = paths
            .filter(|path| path.serves(Side::Send) && *path != DataPath::OneCopyAsPrinted && bounded(path))
            .map(|path| ceiling(bandwidths, path, bus))
            .collect();
        Roofline { device, bus, ceilings }
    };
    std::iter::once((None, None)).chain(buses).map(roofline).collect()
}

/// Data paths that differ in their use of memory and CPU.
const DIFFERENT: [DataPath; 5] = [
    DataPath::ZeroCopy,
    DataPath::OneCopyPipelined,
    DataPath::OneCopy,
    DataPath::CopyAndChecksum,
    DataPath::ReadWrite,
];

/// Returns the ceilings of these paths over buses from 0.25 to 128 GB/s, at each doubling and at each knee, where a path stops following its bus.
pub(super) fn over_buses(bandwidths: &Bandwidths) -> Vec<Roofline> {
    let mut buses: Vec<f64> = (0..10).map(|doubled| 0.25e9 * f64::from(1 << doubled)).collect();
    let (slow, fast) = (buses[0], buses[buses.len() - 1]);
    for path in DIFFERENT {
        let Ceiling { from_memory, from_cache, .. } = ceiling(bandwidths, path, None);
        buses.extend(
            [from_memory, from_cache].into_iter().flatten().filter(|knee| (slow..fast).contains(knee)),
        );
    }
    buses.sort_by(f64::total_cmp);
    buses.dedup();
    let over = |bus| Roofline {
        device: None,
        bus: Some(bus),
        ceilings: DIFFERENT.map(|path| ceiling(bandwidths, path, Some(bus))).to_vec(),
    };
    buses.into_iter().map(over).collect()
}

/// Computes the ceiling of a path, over a bus with this payload throughput if there is one.
fn ceiling(bandwidths: &Bandwidths, path: DataPath, bus: Option<f64>) -> Ceiling {
    let bus = bus.map(|rate| IoBus {
        bandwidth: ByteRate(rate as u64),
        to_device: None,
        from_device: None,
        half_duplex: false,
    });
    // The probe does not measure encryption, so paths that encrypt have no bound.
    let unknown = path.uses().encryptions > 0;
    let of = |set| {
        let transfer = Transfer::new(path, Side::Send, Some(&bandwidths.memory(set)), bus.as_ref(), None);
        Some(transfer.ceiling()).filter(|rate| !unknown && rate.is_finite())
    };
    Ceiling { path, from_memory: of(None), from_cache: of(Some(bandwidths.cache_bytes)) }
}

/// Measured rates may exceed a bound by this factor because of noise.
const NOISE: f64 = 1.05;

/// Compares the model with the measured sockets.
pub(super) fn verdicts(bandwidths: &Bandwidths, streams: &[Stream]) -> Vec<Verdict> {
    let find = |sending, receiving| {
        streams.iter().find(|stream| (stream.sending, stream.receiving) == (sending, receiving))
    };
    let mut all = Vec::new();
    for stream in streams {
        // Both ends work in parallel, so a copy at each end takes no longer than one copy.
        let copies = match (stream.sending, stream.receiving) {
            (Sending::Copy, Receiving::Copy) => "a copy at each end",
            (Sending::Copy, Receiving::Discard) => "a copy at the sender",
            (Sending::Sendfile, Receiving::Copy) => "a copy at the receiver",
            (Sending::Zerocopy, Receiving::Copy) => {
                "a copy at the receiver, and at the sender where the pages are not passed on"
            }
            (Sending::Zerocopy, Receiving::Discard) if stream.copied.is_some_and(|share| share > 0.0) => {
                "a copy at the sender, whose pages are not passed on"
            }
            // Nothing is copied, and over loopback nothing else in the model bounds the stream.
            (Sending::Sendfile | Sending::Zerocopy, Receiving::Discard) => continue,
        };
        let what = format!("{} over loopback: {copies}", name(stream));
        let (predicted, measured) = (bandwidths.copy_cached, stream.rate.best);
        let outcome = Outcome::of(measured <= predicted * NOISE);
        let (unit, rule) = ("B/s", "at most");
        all.push(Verdict { what, predicted, measured, between: None, unit, rule, outcome });
    }
    let sender = |receiving| (find(Sending::Copy, receiving), find(Sending::Sendfile, receiving), 0);
    let receiver = |sending| (find(sending, Receiving::Copy), find(sending, Receiving::Discard), 1);
    let without = [
        (
            "the copy of `send`, to `recv`: the sender's CPU time, less that with `sendfile`",
            sender(Receiving::Copy),
        ),
        (
            "the copy of `send`, to `MSG_TRUNC`: the sender's CPU time, less that with `sendfile`",
            sender(Receiving::Discard),
        ),
        (
            "the copy of `recv`, from `send`: the receiver's CPU time, less that with `MSG_TRUNC`",
            receiver(Sending::Copy),
        ),
        (
            "the copy of `recv`, from `sendfile`: the receiver's CPU time, less that with `MSG_TRUNC`",
            receiver(Sending::Sendfile),
        ),
    ];
    // Only the end that copies is compared: the other end sleeps and wakes differently, which costs more CPU time than a copy.
    for (what, (with, less, end)) in without {
        let (Some(with), Some(less)) = (with, less) else { continue };
        let predicted = 1e9 / bandwidths.copy_cached;
        // Subtract round by round, so that a disturbance that lasts a while affects both streams of a round alike.
        let differences: Vec<f64> =
            with.cpus.iter().zip(&less.cpus).map(|(with, less)| with[end] - less[end]).collect();
        let measured = spread(&differences).median;
        let between = median_between(&differences);
        let outcome = Outcome::between(between, predicted / 2.0, predicted * 2.0);
        let (what, between) = (what.to_owned(), Some(between));
        let (unit, rule) = ("s/GB", "within a factor of 2");
        all.push(Verdict { what, predicted, measured, between, unit, rule, outcome });
    }
    all
}

/// Compares the model with the GPU copies: pinned memory as a path without a copy, pageable memory as one with a staging buffer. Skips GPUs without a known
/// bus.
pub(super) fn copies_to_gpus(bandwidths: &Bandwidths, gpus: &[Gpu], devices: &[Device]) -> Vec<Verdict> {
    let mut all = Vec::new();
    for gpu in gpus {
        let device =
            devices.iter().find(|device| device.kind == DeviceKind::Gpu && device.name == gpu.address);
        let Some(link) = device.and_then(|device| device.link.as_ref()) else { continue };
        for (path, how, measured) in [
            (DataPath::GpuPinned, "pinned", [gpu.pinned_to.best, gpu.pinned_from.best]),
            (DataPath::GpuPageable, "pageable", [gpu.pageable_to.best, gpu.pageable_from.best]),
        ] {
            let Some(predicted) = ceiling(bandwidths, path, Some(link.payload_per_s)).from_memory else {
                continue;
            };
            for (direction, measured) in ["to", "from"].into_iter().zip(measured) {
                let what = format!("copies {direction} {}, {how} memory", gpu.name);
                let outcome = Outcome::of(measured <= predicted * NOISE);
                let (unit, rule) = ("B/s", "at most");
                all.push(Verdict { what, predicted, measured, between: None, unit, rule, outcome });
            }
        }
    }
    all
}

/// Returns a label such as "`send` to `recv`".
pub(super) fn name(stream: &Stream) -> String {
    let sending = match stream.sending {
        Sending::Copy => "`send`",
        Sending::Sendfile => "`sendfile`",
        Sending::Zerocopy => "`MSG_ZEROCOPY`",
    };
    let receiving = match stream.receiving {
        Receiving::Copy => "`recv`",
        Receiving::Discard => "`MSG_TRUNC`",
    };
    format!("{sending} to {receiving}")
}

#[cfg(test)]
mod tests;
