//! When transmissions end.

use engpass_model::time::{FOREVER, Pace};

/// When transmissions end: nothing is added up from rounded times, and nothing is divided for a length that was there before.
#[repr(C)]
pub(super) struct Clock {
    /// End of the last transmission, its gap included: exactly, and rounded up.
    pub(super) exact: (u64, u64),
    pub(super) end: u64,
    /// The time that a length in bytes takes.
    takes: (u64, u64),
    length: u32,
    /// Bytes of the line around a frame, which no queue holds.
    pub(super) physical: u32,
    pace: Pace,
    /// For how long the line is silent at the end of a frame: whole picoseconds and parts, of which the pace says how many make one.
    gap: (u64, u64),
}

impl Clock {
    pub(super) fn new(pace: Pace, (physical, gap): (u32, u64)) -> Self {
        let mut clock = Self { pace, physical, gap: (0, 0), length: 0, takes: (0, 0), exact: (0, 0), end: 0 };
        clock.gap = clock.time_of(gap);
        clock
    }

    /// Parts that make a picosecond.
    #[inline(always)]
    fn parts(&self) -> u64 {
        self.pace.ratio().1
    }

    /// Picoseconds and parts that so many bytes take.
    fn time_of(&self, bytes: u64) -> (u64, u64) {
        let (num, den) = self.pace.ratio();
        let parts = u128::from(bytes) * u128::from(num);
        ((parts / u128::from(den)) as u64, (parts % u128::from(den)) as u64)
    }

    /// By how much the end of the last transmission is rounded up, in parts.
    #[inline(always)]
    pub(super) fn rounding(&self) -> u64 {
        if self.exact.1 > 0 { self.parts() - self.exact.1 } else { 0 }
    }

    /// The line was idle, and a transmission begins at `now`.
    #[inline(always)]
    pub(super) fn restart(&mut self, now: u64) {
        self.exact = (now, 0);
    }

    /// So many bytes follow what was sent: when the last bit of them that is none of the gap has left.
    #[inline(always)]
    pub(super) fn send(&mut self, bytes: u32) -> u64 {
        if bytes != self.length {
            self.learn(bytes);
        }
        self.exact = self.behind(self.exact);
        let (whole, part) = self.exact;
        self.end = whole + u64::from(part > 0);
        self.without_gap(whole, part)
    }

    /// Where what was learnt ends, if it begins there. A queue may hold more than a slow line sends in centuries: what would end after all runs ends
    /// just then, so that delays can be added to it.
    #[inline(always)]
    fn behind(&self, (whole, part): (u64, u64)) -> (u64, u64) {
        let (whole, part) = (whole + self.takes.0, part + self.takes.1);
        let (whole, part) =
            if part >= self.parts() { (whole + 1, part - self.parts()) } else { (whole, part) };
        (whole.min(FOREVER), part)
    }

    #[inline(always)]
    fn without_gap(&self, whole: u64, part: u64) -> u64 {
        let borrow = u64::from(part < self.gap.1);
        let rest = part + borrow * self.parts() - self.gap.1;
        whole - self.gap.0 - borrow + u64::from(rest > 0)
    }

    /// Where so many bytes would end that come to the line at `now`, exactly, and rounded up.
    #[inline(always)]
    pub(super) fn look(&mut self, now: u64, bytes: u32) -> ((u64, u64), u64) {
        if bytes != self.length {
            self.learn(bytes);
        }
        let exact = self.behind(if now > self.end { (now, 0) } else { self.exact });
        (exact, exact.0 + u64::from(exact.1 > 0))
    }

    #[cold]
    fn learn(&mut self, bytes: u32) {
        (self.length, self.takes) = (bytes, self.time_of(bytes.into()));
    }

    /// The same, if it finds the line free and is as long as the last one.
    #[inline(always)]
    pub(super) fn look_again(&self, now: u64, bytes: u32) -> Option<((u64, u64), u64)> {
        let exact = (now + self.takes.0, self.takes.1);
        (now > self.end && bytes == self.length).then_some((exact, exact.0 + u64::from(exact.1 > 0)))
    }

    /// When the last bit that is none of the gap has left, of a transmission that ends there.
    #[inline(always)]
    pub(super) fn left_of(&self, exact: (u64, u64), end: u64) -> u64 {
        if self.gap == (0, 0) { end } else { self.without_gap(exact.0, exact.1) }
    }

    /// The last transmission ends there.
    #[inline(always)]
    pub(super) fn go_to(&mut self, exact: (u64, u64), end: u64) {
        (self.exact, self.end) = (exact, end);
    }
}
