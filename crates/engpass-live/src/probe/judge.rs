//! What the copy model says of this host, beside what its sockets reach.
//!
//! The prediction is an upper bound: the model has no protocol, no interrupts, no wake-ups. So the honest test of copies is a difference: two ways that
//! differ by one copy should differ by about its time.

use engpass_model::host::{Cache, DataPath, IoBus, Memory, Side, Transfer};
use engpass_model::unit::{ByteRate, Size};
use serde::Serialize;

use super::devices::{Device, DeviceKind};
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
    let in_memory = |point: &&Point| point.bytes * point.threads as u64 >= largest / 2;
    let memory_one = most(&mut points.iter().filter(in_memory).filter(|point| point.threads == 1));
    let memory_all = most(&mut points.iter().filter(in_memory));
    let fastest = |bytes: u64| {
        [Kernel::CopyLibrary, Kernel::CopyString]
            .into_iter()
            .filter_map(|kernel| of(kernel, bytes))
            .reduce(f64::max)
    };
    // Both arrays, and some room for others.
    let fits = |point: &&Point| point.threads == 1 && point.bytes * 4 <= last_cache;
    let cached_bytes = points.iter().filter(fits).map(|point| point.bytes).max()?;
    Some(Bandwidths {
        memory_one,
        memory_all,
        copy: fastest(largest)?,
        copy_cached: fastest(cached_bytes)?,
        checksum: of(Kernel::Checksum, largest)?,
        cached_bytes,
        memory_bytes: largest,
    })
}

impl Bandwidths {
    /// The memory as a testbed writes it. `set` is the working set.
    pub fn memory(&self, last_cache: u64, set: Option<u64>) -> Memory {
        let rate = |bytes_per_s: f64| ByteRate((bytes_per_s / 1e6).round() as u64 * 1_000_000);
        Memory {
            bandwidth: rate(self.memory_all),
            copy: Some(rate(self.copy)),
            write_allocate: false,
            checksum: Some(rate(self.checksum)),
            encryption: None,
            cache: Some(Cache { size: Size(last_cache), copy: rate(self.copy_cached), dma: false }),
            working_set: set.map(Size),
        }
    }
}

/// The paths over memory alone, and over every network device whose bus tells what it carries.
pub(super) fn rooflines(bandwidths: &Bandwidths, last_cache: u64, devices: &[Device]) -> Vec<Roofline> {
    let buses = devices.iter().filter(|device| device.kind == DeviceKind::Network).filter_map(|device| {
        let link = device.link.as_ref()?;
        Some((Some(device.name.clone()), Some(link.payload_per_s)))
    });
    let roofline = |(device, rate): (Option<String>, Option<f64>)| {
        let bus = rate.map(|rate| IoBus {
            bandwidth: ByteRate(rate as u64),
            to_device: None,
            from_device: None,
            half_duplex: false,
        });
        let ceiling = |path: DataPath, set| {
            let memory = bandwidths.memory(last_cache, set);
            // How fast this host encrypts was not measured.
            let unknown = path.uses().encryptions > 0;
            let transfer = Transfer::new(path, Side::Send, Some(&memory), bus.as_ref(), None);
            Some(transfer.ceiling()).filter(|rate| !unknown && rate.is_finite())
        };
        let ceilings = DataPath::ALL
            .into_iter()
            .filter(|path| path.serves(Side::Send) && *path != DataPath::OneCopyAsPrinted)
            .map(|path| Ceiling {
                path,
                from_memory: ceiling(path, None),
                from_cache: ceiling(path, Some(last_cache.min(bandwidths.cached_bytes))),
            })
            .collect();
        Roofline { device, bus: rate, ceilings }
    };
    std::iter::once((None, None)).chain(buses).map(roofline).collect()
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
        // Each end copies at most once, and the ends work beside each other.
        let what = format!("{} over loopback, one copy at an end at most", name(stream));
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
            point(Kernel::CopyLibrary, 8 << 20, 1, 50e9),
            point(Kernel::CopyString, 8 << 20, 1, 40e9),
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
        assert_eq!(bandwidths(&[], 32 << 20), None);
    }

    #[test]
    fn ceilings_are_the_models() {
        let found = bandwidths(&points(), 32 << 20).unwrap();
        let all = rooflines(&found, 32 << 20, &[]);
        assert_eq!((all.len(), all[0].bus), (1, None));
        let of = |path| all[0].ceilings.iter().find(|ceiling| ceiling.path == path).unwrap();
        let near = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() / expected - 1.0).abs() < 1e-3, "{found:?} and not {expected}");
        };
        near(of(DataPath::OneCopyPipelined).from_memory, 40e9 / 3.0);
        near(of(DataPath::ZeroCopy).from_memory, 40e9);
        near(of(DataPath::OneCopyPipelined).from_cache, 40e9);
        assert_eq!(of(DataPath::Ktls).from_memory, None);
        assert!(all[0].ceilings.iter().all(|ceiling| ceiling.path != DataPath::MsgTrunc));
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
