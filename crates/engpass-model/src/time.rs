//! Time in integer picoseconds (`u64`, up to 213 days), and exact pacing.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Picoseconds in a second.
pub const SECOND: u64 = 1_000_000_000_000;

/// The last instant of any run: 106 days, in picoseconds. Events that never happen are scheduled at this instant. Delays can be added to it
/// without overflow.
pub const FOREVER: u64 = 1 << 63;

/// A point in virtual time or a duration, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// The beginning of every run.
    pub const ZERO: Self = Self(0);
    /// Later than any other time. As a wake-up time it means "never".
    pub const MAX: Self = Self(u64::MAX);

    /// Whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * SECOND)
    }

    /// Picoseconds since the beginning of the run, or picoseconds of the duration.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// `self - earlier`, or zero if `earlier` is later.
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// Seconds as a float. For reports only, never for state.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }
}

impl Add for Time {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ps", self.0)
    }
}

/// A constant pace: `num / den` picoseconds per unit (a bit, a byte or a cell), in lowest terms.
///
/// The end of a transmission is computed from the *number of units since the transmitter became busy*, so rounding errors never accumulate:
/// the `k`-th unit ends `ceil(k * num / den)` after the begin of the busy period, for every `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pace {
    num: u64,
    den: u64,
}

impl Pace {
    /// A pace of `ps_num / den` picoseconds per unit.
    ///
    /// # Panics
    /// If either argument is zero or the reduced fraction does not fit in 64 bits. A rate of zero has no pace; the caller must exclude it.
    pub fn new(ps_num: u128, den: u128) -> Self {
        assert!(ps_num > 0 && den > 0, "a pace needs a positive time and a positive count");
        Self::try_new(ps_num, den).expect("a pace in lowest terms fits in 64 bits")
    }

    /// As [`Pace::new`], but returns `None` if either argument is zero or the reduced fraction does not fit in 64 bits.
    pub fn try_new(ps_num: u128, den: u128) -> Option<Self> {
        if ps_num == 0 || den == 0 {
            return None;
        }
        let common = gcd(ps_num, den);
        Some(Self { num: u64::try_from(ps_num / common).ok()?, den: u64::try_from(den / common).ok()? })
    }

    /// The pace of units of `bits` bits at a rate of `bit_per_s` bit/s.
    pub fn of_bits(bits: u64, bit_per_s: u64) -> Self {
        Self::new(u128::from(bits) * u128::from(SECOND), u128::from(bit_per_s))
    }

    /// This pace, with every unit `num / den` times as long.
    pub fn stretched(self, num: u64, den: u64) -> Self {
        Self::new(u128::from(self.num) * u128::from(num), u128::from(self.den) * u128::from(den))
    }

    /// As [`Pace::stretched`], but returns `None` if either argument is zero or the result does not fit.
    pub fn try_stretched(self, num: u64, den: u64) -> Option<Self> {
        Self::try_new(u128::from(self.num) * u128::from(num), u128::from(self.den) * u128::from(den))
    }

    /// Picoseconds from the start to the end of the `units`-th unit, rounded up once.
    #[inline]
    pub fn after(self, units: u64) -> u64 {
        match units.checked_mul(self.num) {
            Some(product) => product.div_ceil(self.den),
            None => {
                let wide = u128::from(units) * u128::from(self.num);
                u64::try_from(wide.div_ceil(u128::from(self.den))).unwrap_or(u64::MAX)
            }
        }
    }

    /// As [`Pace::after`], together with the amount that was added by rounding up, in fractions 1/`den` of a picosecond.
    #[inline]
    pub fn rounded_after(self, units: u64) -> (u64, u64) {
        let after = self.after(units);
        // Both products may wrap: their difference is less than `den`.
        (after, after.wrapping_mul(self.den).wrapping_sub(units.wrapping_mul(self.num)))
    }

    /// Number of units that have ended `ps` picoseconds after the start: the largest `k` with `after(k) <= ps`.
    #[inline]
    pub fn units_within(self, ps: u64) -> u64 {
        match ps.checked_mul(self.den) {
            Some(product) => product / self.num,
            None => u64::try_from(u128::from(ps) * u128::from(self.den) / u128::from(self.num))
                .unwrap_or(u64::MAX),
        }
    }

    /// Whole picoseconds per unit, rounded down. Every unit of a busy transmitter takes at least this time.
    pub const fn at_least(self) -> u64 {
        self.num / self.den
    }

    /// Whether every unit of a busy transmitter takes more than `ps` picoseconds.
    #[inline]
    pub fn takes_more_than(self, ps: u64) -> bool {
        u128::from(self.num) >= (u128::from(ps) + 1) * u128::from(self.den)
    }

    /// The leap with which a [`Stepper`] advances by `units` units at once. The units must take less than 213 days.
    pub fn leap(self, units: u64) -> Leap {
        let (parts, den) = (u128::from(units) * u128::from(self.num), u128::from(self.den));
        let up = parts.div_ceil(den);
        Leap { up: u64::try_from(up).unwrap_or(u64::MAX), under: (parts + den - up * den) as u64 }
    }

    /// Units per second, for reports only.
    pub fn per_second(self) -> f64 {
        SECOND as f64 * self.den as f64 / self.num as f64
    }

    /// Numerator and denominator, in picoseconds per unit.
    pub const fn ratio(self) -> (u64, u64) {
        (self.num, self.den)
    }

    /// Whether a unit at this pace takes at least as long as one of `other`.
    pub fn is_at_least(self, other: Self) -> bool {
        u128::from(self.num) * u128::from(other.den) >= u128::from(other.num) * u128::from(self.den)
    }
}

/// A number of units of a pace by which a [`Stepper`] advances at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leap {
    /// Duration of the units in picoseconds, rounded up.
    up: u64,
    /// Amount by which the exact duration exceeds `up - 1` picoseconds, in fractions 1/`den` of a picosecond.
    under: u64,
}

/// Iterates over the end times of the units of a [`Pace`] without division. The times equal [`Pace::after`].
///
/// A stepper keeps the rounded time and the rounding. A step is therefore two additions and sometimes a correction by one picosecond.
#[derive(Clone, Debug)]
pub struct Stepper {
    unit: Leap,
    den: u64,
    after: u64,
    rounding: u64,
}

impl Stepper {
    /// A stepper at unit 0.
    pub fn new(pace: Pace) -> Self {
        let up = pace.num.div_ceil(pace.den);
        let over = up.wrapping_mul(pace.den).wrapping_sub(pace.num);
        Self { unit: Leap { up, under: pace.den - over }, den: pace.den, after: 0, rounding: 0 }
    }

    /// Moves to the end of the `units`-th unit.
    pub fn seek(&mut self, units: u64) {
        if units == 0 {
            (self.after, self.rounding) = (0, 0);
            return;
        }
        let (up, over) = (self.unit.up, self.den - self.unit.under);
        if units == 1 {
            (self.after, self.rounding) = (up, over);
            return;
        }
        (self.after, self.rounding) = match (units.checked_mul(up), units.checked_mul(over)) {
            (Some(up), Some(over)) => (up - over / self.den, over % self.den),
            _ => {
                let [up, over] = [up, over].map(|of| u128::from(units) * u128::from(of));
                let den = u128::from(self.den);
                (u64::try_from(up - over / den).unwrap_or(u64::MAX), (over % den) as u64)
            }
        };
    }

    /// Moves to the end of the `units`-th unit of `pace`.
    pub fn seek_at(&mut self, pace: Pace, units: u64) {
        // The pace rarely changes. This comparison avoids the divisions in `new`.
        let Leap { up, under } = self.unit;
        if pace.den != self.den || pace.num != (up - 1).wrapping_mul(self.den).wrapping_add(under) {
            *self = Self::new(pace);
        }
        self.seek(units);
    }

    /// Picoseconds from the start to the end of the current unit.
    #[inline]
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Amount by which [`Self::after`] is rounded up, in fractions 1/[`den`](Self::den) of a picosecond.
    #[inline]
    pub fn rounding(&self) -> u64 {
        self.rounding
    }

    /// The leap of one unit.
    #[inline]
    pub fn unit(&self) -> Leap {
        self.unit
    }

    /// Number of fractions into which a picosecond is divided: the denominator of [`Pace::ratio`].
    #[inline]
    pub fn den(&self) -> u64 {
        self.den
    }

    /// Moves to the position of another stepper at the same pace.
    #[inline]
    pub fn stand(&mut self, after: u64, rounding: u64) {
        (self.after, self.rounding) = (after, rounding);
    }

    /// Advances by the units of a leap; see [`Pace::leap`].
    #[inline]
    pub fn leap(&mut self, by: Leap) {
        (self.after, self.rounding) = by.from(self.after, self.rounding, self.den);
    }

    /// Advances by one unit.
    #[inline]
    pub fn step(&mut self) {
        self.leap(self.unit);
    }
}

impl Leap {
    /// Returns the time and the rounding after this leap, from a time `after` that is rounded up by `rounding` fractions 1/`den` of a
    /// picosecond.
    #[inline(always)]
    pub fn from(self, after: u64, rounding: u64, den: u64) -> (u64, u64) {
        let (less, below) = rounding.overflowing_sub(self.under);
        // The sum of two rounded-up times may be one picosecond too late.
        (after + self.up - u64::from(!below), less.wrapping_add(if below { den } else { 0 }))
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn oc3c_cells_do_not_drift() {
        let cell = Pace::of_bits(424, 149_760_000);
        assert_eq!(cell.after(1), 2_831_197);
        // 149 760 000 / 424 cells per second: 353 207 cells end within one second, and 10^9 cells take 2831.2 s.
        assert_eq!(cell.units_within(SECOND), 353_207);
        assert_eq!(cell.after(149_760_000), 424 * SECOND);
    }

    proptest! {
        #[test]
        fn stepper_equals_pace(num in 1u128..1_000_000_000, den in 1u128..1_000_000, from in 0u64..1_000_000) {
            let pace = Pace::new(num, den);
            let mut stepper = Stepper::new(pace);
            stepper.seek(from);
            for unit in from..from + 50 {
                prop_assert_eq!(stepper.after(), pace.after(unit));
                stepper.step();
            }
            stepper.leap(pace.leap(7));
            prop_assert_eq!(stepper.after(), pace.after(from + 57));
            stepper.seek(from + 66);
            prop_assert_eq!(pace.rounded_after(from + 66), (stepper.after(), stepper.rounding()));
            stepper.seek_at(Pace::new(7, 3), from);
            prop_assert_eq!(stepper.after(), Pace::new(7, 3).after(from));
        }

        #[test]
        fn units_within_inverts_after(bits in 1u64..100_000, rate in 1u64..200_000_000_000, k in 0u64..1_000_000) {
            let pace = Pace::of_bits(bits, rate);
            prop_assume!(pace.after(k + 1) < u64::MAX / 2);
            prop_assert!(pace.units_within(pace.after(k)) >= k);
            let end = pace.after(k + 1);
            if end > 0 {
                prop_assert!(pace.units_within(end - 1) <= k);
            }
        }
    }
}
