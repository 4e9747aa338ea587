//! Memory and I/O bus of a host, and their use per byte of payload: closed forms over the rows of [`DataPath`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DataPath;
use super::data_path::{Side, Uses};
use crate::range_errors::RangeErrors;
use crate::unit::{ByteRate, Size};

/// The memory of a host, shared by the CPU's copies and the devices' DMA.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Memory bandwidth: total of all reads and writes by the CPU and by devices.
    pub bandwidth: ByteRate,
    /// Copy rate of the CPU, with every byte counted once. Limited by the memory: to half the `bandwidth`, since a copy reads and writes,
    /// or to a third with `write_allocate`. If not given, only the memory limits it.
    pub copy: Option<ByteRate>,
    /// Whether a copy first reads the cache lines that it overwrites, which is a third transfer. Copies that bypass the caches and, on most
    /// processors, `rep movsb` do not.
    #[serde(default)]
    pub write_allocate: bool,
    /// Rate at which the CPU computes the Internet checksum, at most the memory `bandwidth`. If not given, only the memory limits it.
    pub checksum: Option<ByteRate>,
    /// Encryption rate of the CPU, for data paths that encrypt. In memory it is limited to half the `bandwidth`, since encryption reads and
    /// writes.
    pub encryption: Option<ByteRate>,
    /// The last-level cache. Buffers of at most its size stay in it; see `working_set`.
    pub cache: Option<Cache>,
    /// Total size of the buffers that the traffic cycles through. If it is at most the size of the `cache`, the buffers stay in the cache.
    /// If not given, they do not.
    pub working_set: Option<Size>,
}

/// A cache that can hold the buffers of the traffic.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Size of the cache.
    pub size: Size,
    /// Copy rate of the CPU within the cache, with every byte counted once.
    pub copy: ByteRate,
    /// Rate at which the CPU computes the Internet checksum within the cache. If not given, as in memory.
    pub checksum: Option<ByteRate>,
    /// Whether DMA also reads and writes the cache instead of the memory (Intel's DDIO and similar).
    #[serde(default)]
    pub dma: bool,
}

/// The bus between memory and the host's network device.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoBus {
    /// Bandwidth in each direction.
    pub bandwidth: ByteRate,
    /// Rate of DMA from memory to the device, for sending; at most the `bandwidth`, which is the default.
    pub to_device: Option<ByteRate>,
    /// Rate of DMA from the device to memory, for receiving; at most the `bandwidth`, which is the default.
    pub from_device: Option<ByteRate>,
    /// Whether both directions share the `bandwidth`, as on conventional PCI.
    #[serde(default)]
    pub half_duplex: bool,
}

/// Minimum and maximum rate in B/s. A byte then takes between 10^4 and 10^15 attoseconds.
const RATES: (u64, u64) = (1_000, 100_000_000_000_000);

/// Minimum and maximum size of a cache or working set in bytes.
const SIZES: (u64, u64) = (1, 1 << 50);

/// Adds an error for a rate of a `thing` outside [`RATES`]. `without` completes the help text: how to omit the value.
fn complain(
    errors: &mut RangeErrors,
    path: &[&'static str],
    rate: Option<ByteRate>,
    thing: &str,
    without: &str,
) {
    let Some(rate) = rate.filter(|rate| !(RATES.0..=RATES.1).contains(&rate.0)) else { return };
    let cause = match rate.0 {
        0 => "at a rate of zero, no data is moved".to_owned(),
        slow if slow < RATES.0 => format!("no {thing} is this slow"),
        _ => format!("no {thing} is this fast"),
    };
    errors.add(path, cause, format!("give {} to {}, or {without}", ByteRate(RATES.0), ByteRate(RATES.1)));
}

impl Memory {
    pub(super) fn check(&self, errors: &mut RangeErrors) {
        let cache = self.cache.as_ref();
        let as_memory = "remove it: then only the `bandwidth` of the memory limits it";
        for (path, rate, without) in [
            (["bandwidth"].as_slice(), Some(self.bandwidth), "remove `memory`: then memory is no limit"),
            (&["copy"], self.copy, as_memory),
            (&["checksum"], self.checksum, as_memory),
            (&["encryption"], self.encryption, "remove it if no data is encrypted"),
            (&["cache", "copy"], cache.map(|cache| cache.copy), "remove `cache`: then all data is in memory"),
            (
                &["cache", "checksum"],
                cache.and_then(|cache| cache.checksum),
                "remove it: then the rate outside the cache applies",
            ),
        ] {
            complain(errors, path, rate, "memory", without);
        }
        for (path, size, without) in [
            (
                ["cache", "size"].as_slice(),
                cache.map(|cache| cache.size),
                "remove `cache`: then all data is in memory",
            ),
            (&["working_set"], self.working_set, "remove it: then no data stays in the cache"),
        ] {
            if let Some(size) = size.filter(|size| !(SIZES.0..=SIZES.1).contains(&size.bytes())) {
                let cause = if size.bytes() == 0 { "the size is zero" } else { "the size is too large" };
                let help = format!("give {} to {}, or {without}", Size(SIZES.0), Size(SIZES.1));
                errors.add(path, cause, help);
            }
        }
        if self.working_set.is_some() && self.cache.is_none() {
            let cause = "it has no effect without a `cache`";
            errors.add(&["working_set"], cause, "add `cache = { size = \"32 MiB\", copy = \"60 GB/s\" }`");
        }
    }

    /// The cache, if the buffers stay in it.
    pub fn resident(&self) -> Option<&Cache> {
        self.cache.as_ref().filter(|cache| self.working_set.is_some_and(|set| set <= cache.size))
    }

    /// Transfers over the memory bus per copied byte, outside a cache: a read and a write, and with `write_allocate` a read of the
    /// destination.
    pub const fn copy_transfers(&self) -> u64 {
        if self.write_allocate { 3 } else { 2 }
    }

    /// Transfers over the memory bus per byte that is encrypted in place: a read and a write.
    pub const ENCRYPTION_TRANSFERS: u64 = 2;

    /// Maximum rate of a CPU pass that needs `transfers` transfers over the memory bus per byte.
    pub fn most(&self, transfers: u64) -> ByteRate {
        ByteRate(self.bandwidth.0 / transfers.max(1))
    }

    /// Time per byte of `times` CPU passes over data in memory, each with `transfers` transfers. Either the CPU's `rate` or the memory
    /// limits it.
    fn pass(&self, times: u64, rate: Option<ByteRate>, transfers: u64) -> ByteTime {
        let cpu = rate.map_or(ByteTime::default(), |rate| ByteTime::at(times, rate.0));
        cpu.max(ByteTime::at(times * transfers, self.bandwidth.0))
    }
}

impl IoBus {
    pub(super) fn check(&self, errors: &mut RangeErrors) {
        let as_bus = "remove it: the default is `bandwidth`";
        for (key, rate, without) in [
            ("bandwidth", Some(self.bandwidth), "remove `io_bus`: then the bus is no limit"),
            ("to_device", self.to_device, as_bus),
            ("from_device", self.from_device, as_bus),
        ] {
            complain(errors, &[key], rate, "bus", without);
        }
    }

    /// Rate of DMA in B/s.
    pub fn rate(&self, side: Side) -> u64 {
        let dma = match side {
            Side::Send => self.to_device,
            Side::Receive => self.from_device,
        };
        dma.unwrap_or(self.bandwidth).min(self.bandwidth).0
    }
}

/// Time per byte in attoseconds (10^-18 s). For every rate that a testbed file may contain, rounding to an integer changes it by at most
/// 10^-4 of its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteTime(u128);

impl ByteTime {
    const SECOND: u128 = 1_000_000_000_000_000_000;
    const PICOSECOND: u128 = 1_000_000;

    /// A time of `ps` picoseconds per byte.
    pub const fn of_ps(ps: u64) -> Self {
        Self(ps as u128 * Self::PICOSECOND)
    }

    /// Time per byte that is moved `times` times at `rate` B/s, rounded up. Zero if `times` is 0.
    fn at(times: u64, rate: u64) -> Self {
        Self((u128::from(times) * Self::SECOND).div_ceil(u128::from(rate.max(1))))
    }

    /// Whether the time per byte is zero.
    pub fn is_zero_cost(self) -> bool {
        self.0 == 0
    }

    /// Picoseconds for `bytes` bytes, rounded up once.
    pub fn bytes(self, bytes: u64) -> u64 {
        // Nearly every product fits in 64 bits, and a 128-bit division is slow.
        if let Some(wide) = u64::try_from(self.0).ok().and_then(|byte| byte.checked_mul(bytes)) {
            return wide.div_ceil(Self::PICOSECOND as u64);
        }
        u64::try_from((self.0.saturating_mul(u128::from(bytes))).div_ceil(Self::PICOSECOND))
            .unwrap_or(u64::MAX)
    }

    /// Picoseconds per byte, for closed forms.
    pub fn ps(self) -> f64 {
        self.0 as f64 / Self::PICOSECOND as f64
    }

    fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

/// Use of a host's resources per byte of payload on a data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// CPU time for copies, checksums and encryption, each limited by CPU or memory.
    pub cpu: ByteTime,
    /// Transfers over the memory bus by the CPU's work, and by DMA.
    pub memory: (u64, u64),
    /// Transfers over the I/O bus.
    pub bus: u64,
    /// Time of DMA after the CPU's work, on a data path without a pipeline.
    pub then_dma: Option<ByteTime>,
    /// Total time per byte if only this path limits the flow: the inverse of the study's communication bandwidth.
    pub whole: ByteTime,
}

impl Transfer {
    /// Evaluates the closed form of a data path. A missing `memory` or `bus` is no limit. `explicit` replaces the CPU's work if the file
    /// gives a CPU time per byte.
    pub fn new(
        path: DataPath,
        side: Side,
        memory: Option<&Memory>,
        bus: Option<&IoBus>,
        explicit: Option<ByteTime>,
    ) -> Self {
        let uses = path.uses();
        let cpu =
            explicit.unwrap_or_else(|| memory.map_or(ByteTime::default(), |memory| work(&uses, memory)));
        let (worked, moved) = memory.map_or((0, 0), |memory| transfers(&uses, memory));
        let on_memory =
            |times| memory.map_or(ByteTime::default(), |memory| ByteTime::at(times, memory.bandwidth.0));
        let on_bus = bus.map_or(ByteTime::default(), |bus| ByteTime::at(uses.bus, bus.rate(side)));
        let then_dma = uses.serial.then(|| on_bus.max(on_memory(moved)));
        let whole = match then_dma {
            Some(dma) => cpu.max(on_memory(worked)).plus(dma),
            None => cpu.max(on_memory(worked + moved)).max(on_bus),
        };
        Self { cpu, memory: (worked, moved), bus: uses.bus, then_dma, whole }
    }

    /// Maximum throughput of the data path in B/s; infinite if nothing limits it.
    pub fn ceiling(&self) -> f64 {
        1e12 / self.whole.ps()
    }
}

/// CPU time per byte.
fn work(uses: &Uses, memory: &Memory) -> ByteTime {
    let resident = memory.resident();
    let copies = match resident {
        Some(cache) => ByteTime::at(uses.copies, cache.copy.0),
        None => memory.pass(uses.copies, memory.copy, memory.copy_transfers()),
    };
    let checksums = match resident.and_then(|cache| cache.checksum) {
        Some(checksum) => ByteTime::at(uses.checksums, checksum.0),
        None => memory.pass(uses.checksums, memory.checksum, 1),
    };
    let encryptions = match (resident, memory.encryption) {
        (Some(_), Some(encryption)) => ByteTime::at(uses.encryptions, encryption.0),
        (_, encryption) => memory.pass(uses.encryptions, encryption, Memory::ENCRYPTION_TRANSFERS),
    };
    copies.plus(checksums).plus(encryptions)
}

/// Transfers over the memory bus per byte, by the CPU's work and by DMA. Accesses to data in a cache need none.
fn transfers(uses: &Uses, memory: &Memory) -> (u64, u64) {
    let worked = uses.copies * memory.copy_transfers()
        + uses.checksums
        + uses.encryptions * Memory::ENCRYPTION_TRANSFERS;
    match memory.resident() {
        None => (worked, uses.dma),
        Some(cache) => (0, if cache.dma { 0 } else { uses.dma }),
    }
}

#[cfg(test)]
mod tests;
