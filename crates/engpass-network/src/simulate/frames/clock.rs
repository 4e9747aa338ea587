//! When transmissions end.

use engpass_model::time::{FOREVER, Pace};

/// When transmissions end: nothing is added up from rounded times, and nothing is divided for a length that was there before.
///
/// A time here is whole picoseconds, rounded up, and by how many parts: the pace says how many make one.
#[repr(C)]
pub(super) struct Clock {
    /// End of the last transmission, its gap included.
    pub(super) end: u64,
    rounding: u64,
    /// The time that a length in bytes takes.
    takes: (u64, u64),
    length: u32,
    /// Bytes of the line around a frame, which no queue holds.
    pub(super) physical: u32,
    /// Parts that make a picosecond.
    parts: u64,
    /// For how long the line is silent at the end of a frame: whole picoseconds, rounded down, and the parts that are left.
    gap: (u64, u64),
}

impl Clock {
    pub(super) fn new(pace: Pace, (physical, gap): (u32, u64)) -> Self {
        let (per_byte, parts) = pace.ratio();
        let mut clock = Self { parts, physical, gap: (0, 0), length: 0, takes: (0, 0), end: 0, rounding: 0 };
        clock.gap = clock.time_of(gap, per_byte);
        clock
    }

    /// Picoseconds that so many bytes take of so many parts each, rounded down, and the parts that are left.
    fn time_of(&self, bytes: u64, per_byte: u64) -> (u64, u64) {
        // Far below 2^64: a packet has 64 KiB, its line adds no more, and a byte takes 8 s at most.
        let parts = bytes * per_byte;
        (parts / self.parts, parts % self.parts)
    }

    /// By how much the end of the last transmission is rounded up, in parts.
    #[inline(always)]
    pub(super) fn rounding(&self) -> u64 {
        self.rounding
    }

    /// The end of the last transmission, rounded down, and the parts that are left.
    #[inline(always)]
    pub(super) fn exact(&self) -> (u64, u64) {
        if self.rounding > 0 { (self.end - 1, self.parts - self.rounding) } else { (self.end, 0) }
    }

    /// The line was idle, and a transmission begins at `now`.
    #[inline(always)]
    pub(super) fn restart(&mut self, now: u64) {
        (self.end, self.rounding) = (now, 0);
    }

    /// Whether it knows what so many bytes take.
    #[inline(always)]
    pub(super) fn knows(&self, bytes: u32) -> bool {
        bytes == self.length
    }

    /// So many bytes, which take so many parts each, follow what was sent: when the last bit of them that is none of the gap has left.
    #[inline(always)]
    pub(super) fn send(&mut self, bytes: u32, per_byte: u64) -> u64 {
        if !self.knows(bytes) {
            self.learn(bytes, per_byte);
        }
        let (end, rounding) = self.behind((self.end, self.rounding));
        // A queue may hold more than a slow line sends in centuries: what would end after all runs ends just then, so that delays can be added to it.
        (self.end, self.rounding) = (end.min(FOREVER), rounding);
        self.left()
    }

    /// Where what is known ends, if it begins there.
    #[inline(always)]
    fn behind(&self, (whole, rounding): (u64, u64)) -> (u64, u64) {
        let (whole, rounding) = (whole + self.takes.0, rounding + self.takes.1);
        if rounding >= self.parts { (whole - 1, rounding - self.parts) } else { (whole, rounding) }
    }

    /// Where what is known would end if it comes to the line at `now`: perhaps after all runs.
    #[inline(always)]
    pub(super) fn look(&self, now: u64) -> (u64, u64) {
        self.behind(if now > self.end { (now, 0) } else { (self.end, self.rounding) })
    }

    #[cold]
    pub(super) fn learn(&mut self, bytes: u32, per_byte: u64) {
        let (whole, parts) = self.time_of(bytes.into(), per_byte);
        self.takes = if parts > 0 { (whole + 1, self.parts - parts) } else { (whole, 0) };
        self.length = bytes;
    }

    /// The same, if it finds the line free.
    #[inline(always)]
    pub(super) fn look_if_free(&self, now: u64) -> Option<(u64, u64)> {
        (now > self.end).then_some((now + self.takes.0, self.takes.1))
    }

    /// When the last bit that is none of the gap has left, of a transmission that ends there.
    #[inline(always)]
    pub(super) fn left_of(&self, (end, rounding): (u64, u64)) -> u64 {
        end - self.gap.0 - u64::from(rounding + self.gap.1 >= self.parts)
    }

    /// When that of the last transmission has left.
    #[inline(always)]
    pub(super) fn left(&self) -> u64 {
        self.left_of((self.end, self.rounding))
    }

    /// The last transmission ends there.
    #[inline(always)]
    pub(super) fn go_to(&mut self, end: (u64, u64)) {
        (self.end, self.rounding) = end;
    }
}
