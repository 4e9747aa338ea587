//! What the copy model says of this host, beside what its sockets reach.
//!
//! The prediction is an upper bound: the model has no protocol, no interrupts, no wake-ups. So the honest test of copies is a difference: two ways that
//! differ by one copy should differ by about its time.

use engpass_model::host::{Cache, DataPath, IoBus, Memory, Side, Transfer};
use engpass_model::unit::{ByteRate, Size};
use schemars::JsonSchema;
use serde::Serialize;

use super::devices::{Device, DeviceKind};
use super::gpu::Gpu;
use super::memory::{Kernel, Point};
use super::socket::{Receiving, Sending, Stream};
use super::statistic::{median_between, spread};

/// What the memory gives in the terms of the model. Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bandwidths {
    /// All transfers together, of one thread: the most that any kernel moves over the bus, copies counted twice.
    pub memory_one: f64,
    /// The same of all threads.
    pub memory_all: f64,
    /// A copy in memory, by one thread: the C library's or `rep movsb`, which kernels use.
    pub copy: f64,
    /// A copy of what stays in the last cache.
    pub copy_cached: f64,
    /// Summing for the Internet checksum, in memory.
    pub checksum: f64,
    /// The same of what stays in the last cache.
    pub checksum_cached: f64,
    /// Bytes of an array at which `copy_cached` and `checksum_cached` were taken.
    pub cached_bytes: u64,
    /// What the last cache holds, as far as copies show: of the working sets whose copies are nearer to `copy_cached` than to `copy` the largest, both
    /// arrays counted. Another guest of the processor may hold the rest of it.
    pub cache_bytes: u64,
    /// Bytes of an array at which the others were taken.
    pub memory_bytes: u64,
}

/// A data path and the most it can carry.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Ceiling {
    /// The path, as in a testbed.
    pub path: DataPath,
    /// From memory. Bytes per second; `None` where the host lacks what bounds it.
    pub from_memory: Option<f64>,
    /// From the last cache, DMA from memory.
    pub from_cache: Option<f64>,
}

/// A device of the network and the paths over it; `None` for what has no bound that is known.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Roofline {
    /// The device, or nothing where only the memory bounds.
    pub device: Option<String>,
    /// Payload that its bus carries, bytes per second.
    pub bus: Option<f64>,
    /// The paths.
    pub ceilings: Vec<Ceiling>,
}

/// A prediction and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// What is compared.
    pub what: String,
    /// What the model says.
    pub predicted: f64,
    /// What was measured.
    pub measured: f64,
    /// Unit of both: `B/s` or `s/GB`.
    pub unit: &'static str,
    /// Where the median lies with 95 % confidence, where it is one of many differences.
    pub between: Option<[f64; 2]>,
    /// What holds: "at most", or "within a factor of 2".
    pub rule: &'static str,
    /// Whether it does.
    pub outcome: Outcome,
}

/// What became of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It holds.
    Holds,
    /// It does not.
    Fails,
    /// What was measured lies within the rule and without it, as far as its spread can tell.
    NotToldApart,
}

impl Outcome {
    fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }

    /// Of what lies between `low` and `high`, where the rule wants it between `least` and `most`.
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

/// What the model leaves out.
pub const LEAVES_OUT: &str = "The model counts copies, memory and bus. It has no protocol work, system calls, interrupts, wake-ups, page faults or \
    scheduling, which is most of what a socket costs; so a prediction is an upper bound, and on loopback there is no DMA and no bus at all.";

/// A figure of the model and the point that it was taken from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Basis {
    /// The figure: its name in [`Bandwidths`].
    pub figure: &'static str,
    /// What was done.
    pub kernel: Kernel,
    /// Bytes of an array.
    pub bytes: u64,
    /// Threads.
    pub threads: usize,
    /// Whether the point was confirmed.
    pub confirmed: bool,
}

/// The points that the model takes its figures from.
struct Picked<'a> {
    memory_one: &'a Point,
    memory_all: &'a Point,
    copy: &'a Point,
    copy_cached: &'a Point,
    checksum: &'a Point,
    checksum_cached: &'a Point,
}

impl<'a> Picked<'a> {
    /// Nothing where the points are not there.
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

/// Of these sizes of an array the one at which copies in the last cache are told: both arrays in an eighth of it, so that what others have in it matters
/// little.
pub(super) fn cached(sizes: impl Iterator<Item = u64>, last_cache: u64) -> Option<u64> {
    sizes.filter(|bytes| bytes * 16 <= last_cache).max()
}

/// Bytes per second over the bus of the memory, copies counted twice.
fn moved(point: &Point) -> f64 {
    point.rate.best * point.kernel.transfers() as f64
}

/// The better of one thread's copies that kernels use, over arrays of so many bytes.
fn fastest(points: &[Point], bytes: u64) -> Option<&Point> {
    let copies = points.iter().filter(|point| {
        (point.bytes, point.threads) == (bytes, 1)
            && matches!(point.kernel, Kernel::CopyLibrary | Kernel::CopyString)
    });
    copies.max_by(|one, other| one.rate.best.total_cmp(&other.rate.best))
}

/// What the figures of the model were taken from; nothing where the points are not there.
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

/// The bandwidths of the model from what was measured; nothing where the points are not there.
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
    /// The memory as a testbed writes it. `set` is the working set.
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

/// The paths over memory alone, and over every network device whose bus tells what it carries.
pub(super) fn rooflines(bandwidths: &Bandwidths, devices: &[Device]) -> Vec<Roofline> {
    let buses = devices.iter().filter(|device| device.kind == DeviceKind::Network).filter_map(|device| {
        let link = device.link.as_ref()?;
        Some((Some(device.name.clone()), Some(link.payload_per_s)))
    });
    let roofline = |(device, bus): (Option<String>, Option<f64>)| {
        // Without a bus nothing is known of what does not touch the memory.
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

/// Paths that differ in what they need of memory and CPU.
const DIFFERENT: [DataPath; 5] = [
    DataPath::ZeroCopy,
    DataPath::OneCopyPipelined,
    DataPath::OneCopy,
    DataPath::CopyAndChecksum,
    DataPath::ReadWrite,
];

/// The paths that differ over buses of a quarter to 128 GB/s: every doubling, and where a path stops to follow its bus.
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

/// The most that a path carries, over a bus with this payload.
fn ceiling(bandwidths: &Bandwidths, path: DataPath, bus: Option<f64>) -> Ceiling {
    let bus = bus.map(|rate| IoBus {
        bandwidth: ByteRate(rate as u64),
        to_device: None,
        from_device: None,
        half_duplex: false,
    });
    // How fast this host encrypts was not measured.
    let unknown = path.uses().encryptions > 0;
    let of = |set| {
        let transfer = Transfer::new(path, Side::Send, Some(&bandwidths.memory(set)), bus.as_ref(), None);
        Some(transfer.ceiling()).filter(|rate| !unknown && rate.is_finite())
    };
    Ceiling { path, from_memory: of(None), from_cache: of(Some(bandwidths.cache_bytes)) }
}

/// Measured rates may exceed a bound by this much: noise.
const NOISE: f64 = 1.05;

/// The model against the sockets of this host.
pub(super) fn verdicts(bandwidths: &Bandwidths, streams: &[Stream]) -> Vec<Verdict> {
    let find = |sending, receiving| {
        streams.iter().find(|stream| (stream.sending, stream.receiving) == (sending, receiving))
    };
    let mut all = Vec::new();
    for stream in streams {
        // The ends work beside each other, so a copy at each takes no longer than one.
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
            // Nothing is copied, and over loopback nothing else of the model bounds it.
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
    // Of the end that does the copy: the other one sleeps and wakes otherwise, which costs more than a copy.
    for (what, (with, less, end)) in without {
        let (Some(with), Some(less)) = (with, less) else { continue };
        let predicted = 1e9 / bandwidths.copy_cached;
        // Round by round: what disturbs the machine for a while is in both of a round.
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

/// The model against the copies of GPUs: from pinned memory as without a copy, from other memory through a staging buffer. Only where the bus of the GPU
/// tells what it carries.
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

/// "`send` to `recv`".
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
