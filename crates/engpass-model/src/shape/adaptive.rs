//! A shaper that adapts its rate to the available bandwidth: binary feedback, additive increase, multiplicative decrease.
//!
//! It follows the source behaviour of ABR with EFCI switches (ATM Forum Traffic Management 4.0). The receiver returns the EFCI state of the
//! last cell. The source raises its rate by a constant or lowers it in proportion, and also lowers it if feedback is missing. The decrease
//! to 7/8 comes from K. K. Ramakrishnan and R. Jain, "A Binary Feedback Scheme for Congestion Avoidance in Computer Networks" (DECbit), ACM
//! TOCS 8(2), 1990. Unlike in ABR, feedback arrives once per PDU instead of every 32 cells, and takes no bandwidth.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::range_errors::RangeErrors;
use crate::time::Pace;
use crate::unit::Share;

/// A rate between `min` and `max`, as shares of the cell rate of the first link. A PDU that arrives without the EFCI mark raises it; one
/// with the mark lowers it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Adaptive {
    /// Minimum share of the link's cell rate (1 %: an estimate).
    pub min: Share,
    /// Maximum share of the link's cell rate.
    pub max: Share,
    /// Initial share; `min` if not given.
    pub start: Option<Share>,
    /// Increase of the share for a PDU without the mark (0.5 %: an estimate).
    pub increase: Share,
    /// Fraction by which the rate decreases for a PDU with the mark (12.5 %: DECbit), or when feedback is missing.
    pub decrease: Share,
    /// Number of PDUs sent without feedback after which every further PDU lowers the rate (8: an estimate).
    pub patience: u32,
}

impl Default for Adaptive {
    fn default() -> Self {
        let per_mille = Share::WHOLE / 1000;
        Self {
            min: Share(10 * per_mille),
            max: Share(Share::WHOLE),
            start: None,
            increase: Share(5 * per_mille),
            decrease: Share(125 * per_mille),
            patience: 8,
        }
    }
}

/// Rates are multiples of the link's cell rate divided by this number. Every such rate has an exact pace on every link.
const PARTS: u64 = 10_000;
/// One such unit as a share.
const STEP: u64 = Share::WHOLE / PARTS;

impl Adaptive {
    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        let start = self.start.map(|start| ("start", start));
        let steps = [("min", self.min), ("max", self.max), ("increase", self.increase)];
        let mut apart = true;
        for (key, share) in steps.into_iter().chain(start) {
            let (cause, help) = match share.0 {
                0 => ("it cannot be zero", "give at least `0.01 %`"),
                Share::WHOLE.. if share.0 > Share::WHOLE => {
                    ("a shaper cannot exceed the rate of its link", "give at most `100 %`")
                }
                parts if !parts.is_multiple_of(STEP) => {
                    ("adaptive rates have steps of 0.01 %", "use fewer digits")
                }
                _ => continue,
            };
            errors.add(&[key], cause, help);
            apart = false;
        }
        if self.max < self.min && apart {
            let cause = format!("that is less than `min`, {}", self.min);
            errors.add(&["max"], cause, "give more, or lower `min`");
        } else if self.start.is_some_and(|start| start < self.min || start > self.max) && apart {
            let help = format!("give {} to {}", self.min, self.max);
            errors.add(&["start"], "that is not between `min` and `max`", help);
        }
        if self.decrease.0 == 0 || self.decrease.0 >= Share::WHOLE {
            let cause = match self.decrease.0 {
                0 => "the rate would never fall",
                _ => "the first mark would lower the rate to `min`",
            };
            errors.add(&["decrease"], cause, "give more than `0 %` and less than `100 %`");
        }
        if self.patience == 0 {
            errors.add(&["patience"], "the first PDU is always sent without feedback", "give at least `1`");
        }
    }

    /// Pace of the maximum rate on a link with this cell slot. `None` if that rate is zero, which the testbed check rejects.
    pub fn fastest(&self, slot: Pace) -> Option<Pace> {
        slot.try_stretched(PARTS, self.max.0 / STEP)
    }
}

/// Current rate of one shaper.
#[derive(Clone, Debug)]
pub struct AdaptiveRate {
    config: Adaptive,
    slot: Pace,
    /// Current rate in units of 1/[`PARTS`] of the link's cell rate.
    parts: u64,
    /// Number of PDUs begun since the last feedback.
    unanswered: u32,
}

impl AdaptiveRate {
    /// The initial rate, on a link with this cell slot.
    pub fn new(config: Adaptive, slot: Pace) -> Self {
        let parts = config.start.unwrap_or(config.min).0 / STEP;
        Self { config, slot, parts, unanswered: 0 }
    }

    /// Begins a PDU and returns the pace of its cells. Lowers the rate if feedback is missing.
    pub fn begin(&mut self) -> Pace {
        if self.unanswered >= self.config.patience {
            self.lower();
        }
        self.unanswered = self.unanswered.saturating_add(1);
        pace(self.parts, self.slot)
    }

    /// Handles the receiver's feedback on a PDU: whether it had the EFCI mark.
    pub fn answer(&mut self, marked: bool) {
        self.unanswered = 0;
        if marked {
            self.lower();
        } else {
            self.parts = (self.parts + self.config.increase.0 / STEP).min(self.config.max.0 / STEP);
        }
    }

    fn lower(&mut self) {
        let left = self.parts * (Share::WHOLE - self.config.decrease.0) / Share::WHOLE;
        self.parts = left.max(self.config.min.0 / STEP);
    }
}

/// Pace of `parts` / [`PARTS`] of the cell rate of a link with this cell slot.
fn pace(parts: u64, slot: Pace) -> Pace {
    slot.stretched(PARTS, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Quantity;

    fn share(text: &str) -> Share {
        Share::parse(text).unwrap()
    }

    #[test]
    fn adaptive_shaper_increases_by_steps_and_decreases_by_ratio() {
        let config = Adaptive {
            min: share("10 %"),
            max: share("20 %"),
            increase: share("4 %"),
            ..Adaptive::default()
        };
        let slot = Pace::new(1000, 1);
        let mut rate = AdaptiveRate::new(config, slot);
        assert_eq!(rate.begin(), Pace::new(10_000, 1));
        let mut seen = Vec::new();
        for marked in [false, false, false, true, true, true, true, true, true, false] {
            rate.answer(marked);
            seen.push(rate.parts);
        }
        // The maximum is 20 %. 7/8 of it is 17.5 %, then 15.31 (rounded down), 13.39, 11.71, 10.24 and the minimum of 10.
        assert_eq!(seen, [1400, 1800, 2000, 1750, 1531, 1339, 1171, 1024, 1000, 1400]);
    }

    #[test]
    fn adaptive_shaper_lowers_rate_without_feedback() {
        let config = Adaptive { start: Some(share("80 %")), patience: 2, ..Adaptive::default() };
        let mut rate = AdaptiveRate::new(config, Pace::new(1000, 1));
        let mut begun = || {
            rate.begin();
            rate.parts
        };
        assert_eq!([begun(), begun(), begun(), begun()], [8000, 8000, 7000, 6125]);
        rate.answer(false);
        rate.begin();
        assert_eq!(rate.parts, 6175);
    }

    #[test]
    fn adaptive_pace_never_exceeds_a_prime_line_rate() {
        // 999 999 999 989 bit/s is prime, so its slot has the largest possible numerator and denominator.
        let slot = Pace::of_bits(424, 999_999_999_989);
        for parts in [1, 3333, 9999] {
            assert!(pace(parts, slot).is_at_least(slot));
        }
    }
}
