//! The generic cell rate algorithm (ITU-T I.371 Annex A; ATM Forum TM 4.0 section 4.4).
//!
//! Times are counted in `1 / den` picoseconds, so an increment of `num / den` picoseconds is an integer and nothing is rounded. The tests
//! compare it with the leaky bucket, the second formulation in the standard.
//!
//! Cells arrive at whole picoseconds, rounded up. Of cells that are sent exactly at the contract's rate, one that was rounded by more than the next makes
//! that one less than a picosecond early. Such a cell conforms even if the tolerance is zero.

use crate::time::{Pace, Time};

/// GCRA(T, tau) in the virtual scheduling form.
#[derive(Clone, Debug)]
pub struct VirtualScheduling {
    increment: u128,
    limit: u128,
    den: u128,
    /// Theoretical arrival time; 0 before the first cell.
    tat: u128,
}

impl VirtualScheduling {
    /// The algorithm for one cell per `increment`, with the tolerance `limit`.
    pub fn new(increment: Pace, limit: Time) -> Self {
        let (num, den) = increment.ratio();
        let den = u128::from(den);
        Self { increment: u128::from(num), limit: u128::from(limit.ps()) * den, den, tat: 0 }
    }

    /// Whether a cell that arrives at `now` conforms. A conforming cell updates the state.
    pub fn conforms(&mut self, now: Time) -> bool {
        let now = u128::from(now.ps()) * self.den;
        if self.tat >= now + self.limit + self.den {
            return false;
        }
        self.tat = self.tat.max(now) + self.increment;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// GCRA(T, tau) in the continuous-state leaky bucket form.
    #[derive(Clone, Debug)]
    struct LeakyBucket {
        increment: u128,
        limit: u128,
        den: u128,
        /// Content at `last`, the time of the last conforming arrival.
        content: u128,
        last: u128,
    }

    impl LeakyBucket {
        /// The algorithm for one cell per `increment`, with the tolerance `limit`.
        fn new(increment: Pace, limit: Time) -> Self {
            let (num, den) = increment.ratio();
            let den = u128::from(den);
            Self { increment: u128::from(num), limit: u128::from(limit.ps()) * den, den, content: 0, last: 0 }
        }

        /// Whether a cell that arrives at `now` conforms.
        fn conforms(&mut self, now: Time) -> bool {
            let now = u128::from(now.ps()) * self.den;
            let left = self.content.saturating_sub(now - self.last);
            if left >= self.limit + self.den {
                return false;
            }
            self.content = left + self.increment;
            self.last = now;
            true
        }
    }

    #[test]
    fn gcra_max_burst_matches_i371() {
        // TM 4.0: N = 1 + floor(tau / (T - delta)) cells back to back, with delta the slot of the link. T = 10, delta = 1, tau = 18.
        let mut gcra = VirtualScheduling::new(Pace::new(10, 1), Time(18));
        let conforming = (0..20).take_while(|slot| gcra.conforms(Time(*slot))).count();
        assert_eq!(conforming, 3);
    }

    proptest! {
        #[test]
        fn cells_at_the_rate_of_the_contract_conform_without_tolerance(
            num in 1u128..100_000_000_000, den in 1u128..1000, start in 0u64..1_000_000, cells in 1u64..500,
        ) {
            let pace = Pace::new(num, den);
            let mut gcra = VirtualScheduling::new(pace, Time(0));
            prop_assert!((0..cells).all(|cell| gcra.conforms(Time(start + pace.after(cell)))));
        }

        #[test]
        fn virtual_scheduling_equals_leaky_bucket(
            num in 1u128..100_000, den in 1u128..1000, limit in 0u64..1_000_000,
            gaps in prop::collection::vec(0u64..1000, 1..300),
        ) {
            let pace = Pace::new(num, den);
            let mut virtual_scheduling = VirtualScheduling::new(pace, Time(limit));
            let mut bucket = LeakyBucket::new(pace, Time(limit));
            let mut now = 0;
            for gap in gaps {
                now += gap;
                prop_assert_eq!(virtual_scheduling.conforms(Time(now)), bucket.conforms(Time(now)));
            }
        }
    }
}
