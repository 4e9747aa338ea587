//! The clock of a line: exact end times of its transmissions.

use engpass_model::time::{FOREVER, Pace};

/// Computes when transmissions end, without accumulating rounding errors. A division is needed only if a length differs from the last one.
///
/// A time is a pair: picoseconds, rounded up, and the amount of that rounding in parts. `parts` of them make a picosecond.
#[repr(C)]
pub(crate) struct LineClock {
    /// End of the last transmission, its gap included.
    pub(crate) end: u64,
    rounding: u64,
    /// Transmission time of `length` bytes, rounded up, and its rounding in parts.
    takes: (u64, u64),
    length: u32,
    /// Bytes around a frame that occupy the line but count in no queue: preamble and gap.
    pub(crate) physical: u32,
    /// Parts that make a picosecond.
    parts: u64,
    /// Duration of the gap after a frame: whole picoseconds, rounded down, and the remaining parts.
    gap: (u64, u64),
}

impl LineClock {
    pub(crate) fn new(pace: Pace, (physical, gap): (u32, u64)) -> Self {
        let (per_byte, parts) = pace.ratio();
        let mut clock = Self { parts, physical, gap: (0, 0), length: 0, takes: (0, 0), end: 0, rounding: 0 };
        clock.gap = clock.time_of(gap, per_byte);
        clock
    }

    /// Returns the time of `bytes` bytes, each of `per_byte` parts: whole picoseconds, rounded down, and the remaining parts.
    fn time_of(&self, bytes: u64, per_byte: u64) -> (u64, u64) {
        // Far below 2^64: a packet has 64 KiB, its line adds no more, and a byte takes 8 s at most.
        let parts = bytes * per_byte;
        (parts / self.parts, parts % self.parts)
    }

    /// Returns the number of parts that make a picosecond.
    pub(crate) fn parts(&self) -> u64 {
        self.parts
    }

    /// Returns the parts by which the end of the last transmission is rounded up.
    #[inline(always)]
    pub(crate) fn rounding(&self) -> u64 {
        self.rounding
    }

    /// Returns the end of the last transmission: whole picoseconds, rounded down, and the remaining parts.
    #[inline(always)]
    pub(crate) fn exact(&self) -> (u64, u64) {
        if self.rounding > 0 { (self.end - 1, self.parts - self.rounding) } else { (self.end, 0) }
    }

    /// Starts a busy period at `now` after an idle time.
    #[inline(always)]
    pub(crate) fn restart(&mut self, now: u64) {
        (self.end, self.rounding) = (now, 0);
    }

    /// Returns true if the transmission time of this length is cached.
    #[inline(always)]
    pub(crate) fn is_cached_length(&self, bytes: u32) -> bool {
        bytes == self.length
    }

    /// Appends a transmission of `bytes` bytes, each of `per_byte` parts. Returns the instant at which its last bit leaves; the gap follows.
    #[inline(always)]
    pub(crate) fn send(&mut self, bytes: u32, per_byte: u64) -> u64 {
        if !self.is_cached_length(bytes) {
            self.cache_length(bytes, per_byte);
        }
        let (end, rounding) = self.behind((self.end, self.rounding));
        // A queue may hold more than a slow line sends in centuries. The end is capped so that delays can be added without overflow.
        (self.end, self.rounding) = (end.min(FOREVER), rounding);
        self.left()
    }

    /// Returns the end of a transmission of the cached length that begins at this time.
    #[inline(always)]
    fn behind(&self, (whole, rounding): (u64, u64)) -> (u64, u64) {
        let (whole, rounding) = (whole + self.takes.0, rounding + self.takes.1);
        if rounding >= self.parts { (whole - 1, rounding - self.parts) } else { (whole, rounding) }
    }

    /// Returns the end of a transmission of the cached length if the packet arrived at `now`. The end may lie beyond all runs.
    #[inline(always)]
    pub(crate) fn end_if_sent_at(&self, now: u64) -> (u64, u64) {
        self.behind(if now > self.end { (now, 0) } else { (self.end, self.rounding) })
    }

    #[cold]
    pub(crate) fn cache_length(&mut self, bytes: u32, per_byte: u64) {
        let (whole, parts) = self.time_of(bytes.into(), per_byte);
        self.takes = if parts > 0 { (whole + 1, self.parts - parts) } else { (whole, 0) };
        self.length = bytes;
    }

    /// Returns the end of a transmission of the cached length that begins at `now`; `None` if the line is busy then.
    #[inline(always)]
    pub(crate) fn end_if_idle_at(&self, now: u64) -> Option<(u64, u64)> {
        (now > self.end).then_some((now + self.takes.0, self.takes.1))
    }

    /// Returns the instant at which the last bit of a transmission leaves, given the end of the gap after it.
    #[inline(always)]
    pub(crate) fn last_bit_at(&self, (end, rounding): (u64, u64)) -> u64 {
        end - self.gap.0 - u64::from(rounding + self.gap.1 >= self.parts)
    }

    /// Returns the instant at which the last bit of the last transmission leaves, before the gap.
    #[inline(always)]
    pub(crate) fn left(&self) -> u64 {
        self.last_bit_at((self.end, self.rounding))
    }

    /// Sets the end of the last transmission, its gap included.
    #[inline(always)]
    pub(crate) fn set_end(&mut self, end: (u64, u64)) {
        (self.end, self.rounding) = end;
    }
}
