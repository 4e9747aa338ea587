//! Queueing delays: what datagrams take beyond the delay of an idle network.

use engpass_model::idle::LonePacket;

use super::histogram::Histogram;

/// Queueing delays of one flow or receiver.
#[derive(Clone, Debug, Default)]
pub(super) struct Queueing {
    /// Each queueing delay plus `floor`, in picoseconds. Without the floor, buckets for all powers of two down to a picosecond would take kilobytes.
    delays: Histogram,
    /// 1/16 of the idle delay of the first counted datagram. A bucket is within 1/64 of its value, so the floor adds an error of at most 1/1024 of that delay.
    floor: u64,
    /// The idle delay used last.
    last: (IdleKey, u64),
}

impl Queueing {
    /// Counts the queueing delay of a datagram that took `delay`. Returns false, without effect, if its idle delay is not the one used last.
    #[inline(always)]
    pub(super) fn add(&mut self, key: IdleKey, delay: u64) -> bool {
        if self.last.0 != key {
            return false;
        }
        // A busy line rounds up for a busy period, an idle one for each packet: a packet may be faster by less than a picosecond for each line.
        self.delays.add(self.floor + delay.saturating_sub(self.last.1));
        true
    }

    /// Returns true if no idle delay was set yet.
    pub(super) fn is_new(&self) -> bool {
        self.last.0 == IdleKey::default()
    }

    /// Sets the idle delay for the next datagrams with this key, in picoseconds.
    pub(super) fn learn(&mut self, key: IdleKey, idle: u64) {
        if self.is_new() {
            self.floor = idle / 16;
        }
        self.last = (key, idle);
    }

    /// Removes all counted delays and keeps the idle delay.
    pub(super) fn reset(self) -> Self {
        Self { delays: Histogram::default(), ..self }
    }

    /// Returns the quantiles of the queueing delays in seconds; `None` if nothing was counted.
    pub(super) fn in_seconds(&self) -> Option<engpass_outcome::Quantiles> {
        self.delays.quantiles().map(|quantiles| quantiles.less(self.floor).in_seconds())
    }
}

/// Cache of idle delays, and a scratch buffer to compute one.
#[derive(Debug, Default)]
pub(super) struct IdleDelays {
    pub(super) cache: IdleCache,
    pub(super) lone_packets: Vec<LonePacket>,
}

/// Cache of idle delays, for flows whose datagrams differ in length or path. Two keys may have one place; the newer one then replaces the other.
#[derive(Debug, Default)]
pub(super) struct IdleCache(Vec<(u32, IdleKey, u64)>);

impl IdleCache {
    const BITS: u32 = 12;

    pub(super) fn place(&mut self, flow: u32, key: IdleKey) -> &mut (u32, IdleKey, u64) {
        if self.0.is_empty() {
            self.0.resize(1 << Self::BITS, (0, IdleKey::default(), 0));
        }
        // Multiplicative hashing with the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4).
        let hash = (key.0 ^ u64::from(flow).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &mut self.0[(hash >> (64 - Self::BITS)) as usize]
    }
}

/// Key of an idle delay: all that it depends on within a flow. The path of the datagram is in the upper 32 bits, then come its transport header and its payload
/// in bytes. Never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IdleKey(u64);

/// The path of a packet: the step at the end of its route, a circuit direction with the flag `CIRCUIT`, or `ONLY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathId(pub(super) u32);

impl PathId {
    /// The only path of the flow's datagrams, or of those to a multicast receiver.
    pub(super) const ONLY: Self = Self(u32::MAX);
    /// Flag for a circuit direction that leads from host to host; the other bits are its number.
    pub(super) const CIRCUIT: u32 = 1 << 31;

    /// Returns the path to the step at the end of a route.
    #[inline(always)]
    pub(super) fn to(end: u32) -> Self {
        Self(end)
    }
}

impl IdleKey {
    #[inline(always)]
    pub(super) fn of(path: PathId, header: u32, bytes: u32) -> Self {
        // A transport header has at most 60 bytes, so it fits into 8 bits. A payload has less than 64 KiB.
        Self(u64::from(path.0) << 32 | u64::from(header) << 24 | u64::from(bytes))
    }

    pub(super) fn path(self) -> PathId {
        PathId((self.0 >> 32) as u32)
    }
}
