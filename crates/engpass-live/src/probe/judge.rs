//! What the copy model says of this host, beside what its sockets reach.
//!
//! The prediction is an upper bound: the model has no protocol, no interrupts, no wake-ups. So the honest test of copies is a difference: two ways that
//! differ by one copy should differ by about its time.

use engpass_model::host::{Cache, DataPath, IoBus, Memory, Side, Transfer};
use engpass_model::unit::{ByteRate, Size};
use serde::Serialize;

use super::devices::{Device, DeviceKind};
use super::gpu::Gpu;
use super::memory::{Kernel, Point};
use super::socket::{Receiving, Sending, Stream};

/// What the memory gives in the terms of the model. Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
    /// Bytes of an array at which `copy_cached` was taken.
    pub cached_bytes: u64,
    /// What the last cache holds, as far as copies show: of the working sets whose copies are nearer to `copy_cached` than to `copy` the largest, both
    /// arrays counted. Another guest of the processor may hold the rest of it.
    pub cache_bytes: u64,
    /// Bytes of an array at which the others were taken.
    pub memory_bytes: u64,
}

/// A data path and the most it can carry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ceiling {
    /// The path, as in a testbed.
    pub path: DataPath,
    /// From memory. Bytes per second; `None` where the host lacks what bounds it.
    pub from_memory: Option<f64>,
    /// From the last cache, DMA from memory.
    pub from_cache: Option<f64>,
}

/// A device of the network and the paths over it; `None` for what has no bound that is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Roofline {
    /// The device, or nothing where only the memory bounds.
    pub device: Option<String>,
    /// Payload that its bus carries, bytes per second.
    pub bus: Option<f64>,
    /// The paths.
    pub ceilings: Vec<Ceiling>,
}

/// A prediction and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What is compared.
    pub what: String,
    /// What the model says.
    pub predicted: f64,
    /// What was measured.
    pub measured: f64,
    /// Unit of both: `B/s` or `s/GB`.
    pub unit: &'static str,
    /// What holds: "at most", or "within a factor of 2".
    pub rule: &'static str,
    /// Whether it does.
    pub holds: bool,
}

/// What the model leaves out.
pub const LEAVES_OUT: &str = "The model counts copies, memory and bus. It has no protocol work, system calls, interrupts, wake-ups, page faults or \
    scheduling, which is most of what a socket costs; so a prediction is an upper bound, and on loopback there is no DMA and no bus at all.";

/// The bandwidths of the model from what was measured; nothing where the points are not there.
pub(super) fn bandwidths(points: &[Point], last_cache: u64) -> Option<Bandwidths> {
    let largest = points.iter().filter(|point| point.threads == 1).map(|point| point.bytes).max()?;
    let of = |kernel: Kernel, bytes: u64| {
        let found =
            points.iter().find(|point| (point.kernel, point.bytes, point.threads) == (kernel, bytes, 1));
        found.map(|point| point.rate.best)
    };
    let moved = |point: &Point| point.rate.best * point.kernel.transfers() as f64;
    let most = |points: &mut dyn Iterator<Item = &Point>| points.map(moved).fold(0.0, f64::max);
    let in_memory = |point: &&Point| point.bytes * point.threads as u64 >= largest;
    let memory_one = most(&mut points.iter().filter(in_memory).filter(|point| point.threads == 1));
    let memory_all = most(&mut points.iter().filter(in_memory));
    let fastest = |bytes: u64| {
        [Kernel::CopyLibrary, Kernel::CopyString]
            .into_iter()
            .filter_map(|kernel| of(kernel, bytes))
            .reduce(f64::max)
    };
    // Both arrays in an eighth of it: what others have in it matters little.
    let fits = |point: &&Point| point.threads == 1 && point.bytes * 16 <= last_cache;
    let cached_bytes = points.iter().filter(fits).map(|point| point.bytes).max()?;
    let (copy, copy_cached) = (fastest(largest)?, fastest(cached_bytes)?);
    let cached = |point: &&Point| {
        point.threads == 1
            && point.bytes >= cached_bytes
            && point.bytes * 2 <= last_cache
            && fastest(point.bytes).is_some_and(|rate| rate > (copy * copy_cached).sqrt())
    };
    let cache_bytes = 2 * points.iter().filter(cached).map(|point| point.bytes).max().unwrap_or(cached_bytes);
    let checksum = of(Kernel::Checksum, largest)?;
    Some(Bandwidths {
        memory_one,
        memory_all,
        copy,
        copy_cached,
        checksum,
        cached_bytes,
        cache_bytes,
        memory_bytes: largest,
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
            cache: Some(Cache { size: Size(self.cache_bytes), copy: rate(self.copy_cached), dma: false }),
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
            (Sending::Sendfile, _) => "a copy at the receiver",
            (Sending::Zerocopy, _) => {
                "a copy at the receiver, and at the sender where the pages are not passed on"
            }
        };
        let what = format!("{} over loopback: {copies}", name(stream));
        let (predicted, measured) = (bandwidths.copy_cached, stream.rate.best);
        let holds = measured <= predicted * NOISE;
        all.push(Verdict { what, predicted, measured, unit: "B/s", rule: "at most", holds });
    }
    let usual = find(Sending::Copy, Receiving::Copy);
    let without = [
        ("the copy of `send`: CPU time less than with `sendfile`", find(Sending::Sendfile, Receiving::Copy)),
        ("the copy of `recv`: CPU time less than with `MSG_TRUNC`", find(Sending::Copy, Receiving::Discard)),
    ];
    for (what, other) in without {
        let (Some(usual), Some(other)) = (usual, other) else { continue };
        let predicted = 1e9 / bandwidths.copy_cached;
        let cpu = |stream: &Stream| stream.send_cpu + stream.receive_cpu;
        let measured = cpu(usual) - cpu(other);
        let holds = measured >= predicted / 2.0 && measured <= predicted * 2.0;
        let rule = "within a factor of 2";
        all.push(Verdict { what: what.to_owned(), predicted, measured, unit: "s/GB", rule, holds });
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
                let holds = measured <= predicted * NOISE;
                all.push(Verdict { what, predicted, measured, unit: "B/s", rule: "at most", holds });
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
mod tests {
    use super::super::devices::Link;
    use super::super::statistic::Spread;
    use super::*;

    fn at(rate: f64) -> Spread {
        Spread { least: rate, median: rate, best: rate }
    }

    fn points() -> Vec<Point> {
        let point = |kernel, bytes, threads, rate| Point { kernel, bytes, threads, rate: at(rate) };
        vec![
            point(Kernel::Read, 128 << 20, 1, 30e9),
            point(Kernel::CopyLibrary, 128 << 20, 1, 12e9),
            point(Kernel::CopyString, 128 << 20, 1, 16e9),
            point(Kernel::Checksum, 128 << 20, 1, 25e9),
            point(Kernel::CopyLibrary, 2 << 20, 1, 50e9),
            point(Kernel::CopyString, 2 << 20, 1, 40e9),
            // sqrt(16 * 50) is 28.3: 4 MiB are in the cache, 8 MiB are not any more.
            point(Kernel::CopyString, 4 << 20, 1, 29e9),
            point(Kernel::CopyString, 8 << 20, 1, 28e9),
            point(Kernel::Read, 32 << 20, 2, 90e9),
            point(Kernel::CopyString, 64 << 20, 2, 20e9),
        ]
    }

    fn stream(sending: Sending, receiving: Receiving, rate: f64, cpu: f64) -> Stream {
        Stream {
            sending,
            receiving,
            message: 1 << 17,
            rate: at(rate),
            send_cpu: cpu,
            receive_cpu: 0.05,
            copied: None,
            congestion: String::new(),
        }
    }

    #[test]
    fn bandwidths_are_what_the_bus_carries() {
        let found = bandwidths(&points(), 32 << 20).unwrap();
        // 16 GB/s of copy move 32; two threads' 20 move 40.
        assert_eq!((found.memory_one, found.memory_all), (32e9, 40e9));
        assert_eq!((found.copy, found.copy_cached, found.checksum), (16e9, 50e9, 25e9));
        assert_eq!((found.cached_bytes, found.cache_bytes), (2 << 20, 8 << 20));
        assert_eq!(bandwidths(&[], 32 << 20), None);
    }

    #[test]
    fn ceilings_are_the_models() {
        let found = bandwidths(&points(), 32 << 20).unwrap();
        let all = rooflines(&found, &[]);
        assert_eq!((all.len(), all[0].bus), (1, None));
        let of = |path| all[0].ceilings.iter().find(|ceiling| ceiling.path == path).unwrap();
        let near = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() / expected - 1.0).abs() < 1e-3, "{found:?} and not {expected}");
        };
        near(of(DataPath::OneCopyPipelined).from_memory, 40e9 / 3.0);
        near(of(DataPath::ZeroCopy).from_memory, 40e9);
        near(of(DataPath::OneCopyPipelined).from_cache, 40e9);
        assert_eq!(of(DataPath::Ktls).from_memory, None);
        let not_there = [DataPath::MsgTrunc, DataPath::PeerToPeer];
        assert!(all[0].ceilings.iter().all(|ceiling| !not_there.contains(&ceiling.path)));
    }

    #[test]
    fn paths_follow_their_bus_to_a_knee() {
        let found = bandwidths(&points(), 32 << 20).unwrap();
        let all = over_buses(&found);
        let at = |bus: f64, path| {
            let roofline =
                all.iter().find(|roofline| (roofline.bus.unwrap() / bus - 1.0).abs() < 1e-6).unwrap();
            let ceiling = roofline.ceilings.iter().find(|ceiling| ceiling.path == path).unwrap();
            ceiling.from_memory.unwrap() / 1e9
        };
        let near = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 1e-3, "{found} and not {expected}");
        };
        // 40 GB/s of memory: a third for the pipeline, all of it without a copy, and 1 / (1/16 + 1/4) in turns.
        near(at(8e9, DataPath::OneCopyPipelined), 8.0);
        near(at(40e9 / 3.0, DataPath::OneCopyPipelined), 40.0 / 3.0);
        near(at(64e9, DataPath::OneCopyPipelined), 40.0 / 3.0);
        near(at(32e9, DataPath::ZeroCopy), 32.0);
        near(at(128e9, DataPath::ZeroCopy), 40.0);
        near(at(4e9, DataPath::OneCopy), 3.2);
        assert!(all.windows(2).all(|two| two[0].bus < two[1].bus));
    }

    #[test]
    fn a_gpu_is_held_against_its_own_bus() {
        let found = bandwidths(&points(), 32 << 20).unwrap();
        let link = Link {
            gigatransfers: 16.0,
            generation: 4,
            lanes: 16,
            bytes_per_s: 31.5e9,
            payload_per_s: 28e9,
            below_its_best: false,
        };
        let device = |name: &str, link| Device {
            kind: DeviceKind::Gpu,
            name: name.to_owned(),
            driver: String::new(),
            link,
            why: None,
        };
        let gpu = |address: &str| Gpu {
            name: "Some GPU".to_owned(),
            address: address.to_owned(),
            bytes: 1 << 28,
            pinned_to: at(25e9),
            pinned_from: at(31e9),
            pageable_to: at(9e9),
            pageable_from: at(15e9),
        };
        let devices = [device("0000:01:00.0", Some(link)), device("0000:02:00.0", None)];
        let all = copies_to_gpus(&found, &[gpu("0000:01:00.0"), gpu("0000:02:00.0")], &devices);
        // 28 GB/s of bus; a third of 40 GB/s with a copy. Of the second GPU's bus nothing is known.
        let held: Vec<_> =
            all.iter().map(|verdict| ((verdict.predicted / 1e9).round(), verdict.holds)).collect();
        assert_eq!(held, [(28.0, true), (28.0, false), (13.0, true), (13.0, false)]);
    }

    #[test]
    fn verdicts_follow_the_rules() {
        let found = bandwidths(&points(), 32 << 20).unwrap();
        // A copy of 50 GB/s takes 0.02 s/GB.
        let streams = [
            stream(Sending::Copy, Receiving::Copy, 8e9, 0.10),
            stream(Sending::Sendfile, Receiving::Copy, 8e9, 0.075),
            stream(Sending::Copy, Receiving::Discard, 60e9, 0.05),
        ];
        let held: Vec<_> = verdicts(&found, &streams).iter().map(|verdict| verdict.holds).collect();
        assert_eq!(held, [true, true, false, true, false]);
        let slower = [streams[0].clone(), stream(Sending::Sendfile, Receiving::Copy, 8e9, 0.2)];
        assert!(!verdicts(&found, &slower)[2].holds);
    }
}
