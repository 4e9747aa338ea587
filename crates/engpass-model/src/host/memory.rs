//! Memory and I/O bus of a host, and what of them a byte of payload needs: closed forms over the rows of [`DataPath`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DataPath;
use super::data_path::{Side, Uses};
use crate::complaint::Complaints;
use crate::unit::{ByteRate, Size};

/// The memory of a host: what the CPU's copies and the devices' DMA share.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// All that is read and written together, by the CPU and by devices.
    pub bandwidth: ByteRate,
    /// Rate at which the CPU copies, every byte counted once. As fast as the memory if not given, and never faster: half the
    /// `bandwidth`, since a copy reads and writes, or a third of it with `write_allocate`.
    pub copy: Option<ByteRate>,
    /// Whether a copy first reads the lines that it then overwrites, which is a third transfer. Copies that go past the caches, and
    /// `rep movsb` on most processors, do not.
    #[serde(default)]
    pub write_allocate: bool,
    /// Rate at which the CPU sums for the Internet checksum. As fast as the memory if not given, and never faster.
    pub checksum: Option<ByteRate>,
    /// Rate at which the CPU encrypts; for data paths that do. In memory never faster than half the `bandwidth`: it reads and
    /// writes.
    pub encryption: Option<ByteRate>,
    /// The last cache, for buffers that stay in it.
    pub cache: Option<Cache>,
    /// How much memory the buffers of the traffic go through before they begin again. They stay in the `cache` if it is no
    /// smaller; without a value they do not.
    pub working_set: Option<Size>,
}

/// A cache that data can stay in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// How much it holds.
    pub size: Size,
    /// Rate at which the CPU copies within it, every byte counted once.
    pub copy: ByteRate,
    /// Rate at which the CPU sums for the Internet checksum within it. As in memory if not given.
    pub checksum: Option<ByteRate>,
    /// Whether DMA, too, reads and writes it and not the memory (Intel's DDIO and its like).
    #[serde(default)]
    pub dma: bool,
}

/// The bus between memory and the host's network device.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoBus {
    /// What it carries, in each direction.
    pub bandwidth: ByteRate,
    /// What DMA from memory to the device reaches of it: for sending. The `bandwidth` if not given.
    pub to_device: Option<ByteRate>,
    /// What DMA from the device to memory reaches of it: for receiving. The `bandwidth` if not given.
    pub from_device: Option<ByteRate>,
    /// Whether both directions share the `bandwidth`, as on conventional PCI.
    #[serde(default)]
    pub half_duplex: bool,
}

/// The slowest and the fastest rate, in B/s: what a byte takes is then from 10^4 to 10^15 attoseconds.
const RATES: (u64, u64) = (1_000, 100_000_000_000_000);

/// The smallest and the largest cache or working set, in bytes.
const SIZES: (u64, u64) = (1, 1 << 50);

/// Complain about a rate that no such `thing` has; `without` says how to do without a value.
fn complain(
    complaints: &mut Complaints,
    path: &[&'static str],
    rate: Option<ByteRate>,
    thing: &str,
    without: &str,
) {
    let Some(rate) = rate.filter(|rate| !(RATES.0..=RATES.1).contains(&rate.0)) else { return };
    let cause = match rate.0 {
        0 => "at that rate nothing ever moves".to_owned(),
        slow if slow < RATES.0 => format!("no {thing} is so slow"),
        _ => format!("no {thing} is so fast"),
    };
    complaints.add(path, cause, format!("give {} to {}, or {without}", ByteRate(RATES.0), ByteRate(RATES.1)));
}

impl Memory {
    pub(super) fn check(&self, complaints: &mut Complaints) {
        let cache = self.cache.as_ref();
        let as_memory = "take it out: it is then as fast as the memory";
        for (path, rate, without) in [
            (["bandwidth"].as_slice(), Some(self.bandwidth), "take `memory` out: it then bounds nothing"),
            (&["copy"], self.copy, as_memory),
            (&["checksum"], self.checksum, as_memory),
            (&["encryption"], self.encryption, "take it out where nothing is encrypted"),
            (&["cache", "copy"], cache.map(|cache| cache.copy), "take `cache` out: nothing then stays in it"),
            (
                &["cache", "checksum"],
                cache.and_then(|cache| cache.checksum),
                "take it out: it is then as in memory",
            ),
        ] {
            complain(complaints, path, rate, "memory", without);
        }
        for (path, size, without) in [
            (
                ["cache", "size"].as_slice(),
                cache.map(|cache| cache.size),
                "take `cache` out: nothing then stays in it",
            ),
            (&["working_set"], self.working_set, "take it out: nothing then stays in the cache"),
        ] {
            if let Some(size) = size.filter(|size| !(SIZES.0..=SIZES.1).contains(&size.bytes())) {
                let cause = if size.bytes() == 0 { "no data are so small" } else { "no data are so large" };
                let help = format!("give {} to {}, or {without}", Size(SIZES.0), Size(SIZES.1));
                complaints.add(path, cause, help);
            }
        }
        if self.working_set.is_some() && self.cache.is_none() {
            let cause = "without a `cache` it means nothing";
            complaints.add(
                &["working_set"],
                cause,
                "give `cache = { size = \"32 MiB\", copy = \"60 GB/s\" }`",
            );
        }
    }

    /// Whether the buffers stay in the cache.
    pub fn resident(&self) -> Option<&Cache> {
        self.cache.as_ref().filter(|cache| self.working_set.is_some_and(|set| set <= cache.size))
    }

    /// Transfers over the memory bus of a copy that no cache holds: it reads and writes, and with `write_allocate` reads what it
    /// then writes.
    pub const fn copy_transfers(&self) -> u64 {
        if self.write_allocate { 3 } else { 2 }
    }

    /// Transfers of an encryption in place: it reads and writes.
    pub const ENCRYPTION_TRANSFERS: u64 = 2;

    /// The most that a pass of the CPU reaches which moves every byte so often over the memory bus.
    pub fn most(&self, transfers: u64) -> ByteRate {
        ByteRate(self.bandwidth.0 / transfers.max(1))
    }

    /// Time of so many passes of the CPU over data in memory: as slow as the CPU, and no faster than the memory takes their transfers.
    fn pass(&self, times: u64, rate: Option<ByteRate>, transfers: u64) -> ByteTime {
        let cpu = rate.map_or(ByteTime::default(), |rate| ByteTime::at(times, rate.0));
        cpu.max(ByteTime::at(times * transfers, self.bandwidth.0))
    }
}

impl IoBus {
    pub(super) fn check(&self, complaints: &mut Complaints) {
        let as_bus = "take it out: it is then the `bandwidth`";
        for (key, rate, without) in [
            ("bandwidth", Some(self.bandwidth), "take `io_bus` out: it then bounds nothing"),
            ("to_device", self.to_device, as_bus),
            ("from_device", self.from_device, as_bus),
        ] {
            complain(complaints, &[key], rate, "bus", without);
        }
    }

    /// What DMA reaches, in B/s.
    pub fn rate(&self, side: Side) -> u64 {
        let dma = match side {
            Side::Send => self.to_device,
            Side::Receive => self.from_device,
        };
        dma.unwrap_or(self.bandwidth).min(self.bandwidth).0
    }
}

/// Attoseconds (10^-18 s): the time of one byte, whole for every rate that a file can have to 10^-4 of itself or better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteTime(u128);

impl ByteTime {
    const SECOND: u128 = 1_000_000_000_000_000_000;
    const PICOSECOND: u128 = 1_000_000;

    /// So many picoseconds a byte.
    pub const fn of_ps(ps: u64) -> Self {
        Self(ps as u128 * Self::PICOSECOND)
    }

    /// The time of a byte that is moved `times` times at `rate` B/s, rounded up; none where it is not moved.
    fn at(times: u64, rate: u64) -> Self {
        Self((u128::from(times) * Self::SECOND).div_ceil(u128::from(rate.max(1))))
    }

    /// Whether a byte costs nothing.
    pub fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// Picoseconds of so many bytes, rounded up once.
    pub fn bytes(self, bytes: u64) -> u64 {
        // Nearly every time fits, and a wide division is slow.
        if let Some(wide) = u64::try_from(self.0).ok().and_then(|byte| byte.checked_mul(bytes)) {
            return wide.div_ceil(Self::PICOSECOND as u64);
        }
        u64::try_from((self.0.saturating_mul(u128::from(bytes))).div_ceil(Self::PICOSECOND))
            .unwrap_or(u64::MAX)
    }

    /// Picoseconds of a byte; for closed forms.
    pub fn ps(self) -> f64 {
        self.0 as f64 / Self::PICOSECOND as f64
    }

    fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

/// What one byte of payload needs of a host on a data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Work of the CPU: copies, checksums, encryption, each as fast as the CPU does it and the memory lets it.
    pub cpu: ByteTime,
    /// Transfers over the memory bus: by the CPU's work, and by DMA.
    pub memory: (u64, u64),
    /// Transfers over the I/O bus.
    pub bus: u64,
    /// Of a path that is no pipeline: how long DMA takes after the CPU.
    pub then_dma: Option<ByteTime>,
    /// All of it, if nothing but this path bounds it: the inverse of the study's communication bandwidth.
    pub whole: ByteTime,
}

impl Transfer {
    /// The closed form of a path. What is not there (a host without memory table or bus) bounds nothing; `explicit` stands
    /// in the place of the CPU's work where it was measured by itself.
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

    /// The most that a path carries, in B/s; infinite if nothing bounds it.
    pub fn ceiling(&self) -> f64 {
        1e12 / self.whole.ps()
    }
}

/// The CPU's work on a byte.
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

/// Transfers of a byte over the memory bus, by the CPU's work and by DMA. What stays in a cache needs none.
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
