//! Random early packet discard: the longer the queue, the more PDUs are discarded as a whole.
//!
//! PDUs are discarded as a whole, as in Romanow and Floyd, "Dynamics of TCP Traffic over ATM Networks", IEEE JSAC 13(4), 1995, section 4.
//! The probability grows linearly between two thresholds, as in Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993. The combination is specific to Engpass. Unlike RED, it uses the current
//! queue length instead of an average, and it does not spread the drops.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pdu_state::Pdus;
use super::{CellView, DiscardConfig, DiscardPolicy, QueueView, TrainView, default_threshold};
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::unit::{FillLevel, Share};

/// As `epd-ppd`, but random between two thresholds. The probability that a PDU is discarded as a whole grows with the queue length, from 0
/// at `min` to `max_probability` at `max`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RandomEpd {
    /// Number of cells in the queue, or share of its capacity, up to which every PDU is accepted (0.5: an estimate).
    pub min: FillLevel,
    /// Number of cells in the queue, or share of its capacity, above which every PDU is discarded (0.9: an estimate). The space above it
    /// should hold one or more PDUs, because accepted PDUs continue.
    pub max: FillLevel,
    /// Probability that a PDU is discarded if its first cell finds `max` cells (0.1, as in `red`: an estimate).
    pub max_probability: Share,
}

impl Default for RandomEpd {
    fn default() -> Self {
        let share = |tenths: u64| Share(Share::WHOLE / 10 * tenths);
        Self { min: FillLevel::Share(share(5)), max: default_threshold(), max_probability: share(1) }
    }
}

impl DiscardConfig for RandomEpd {
    fn policy(&self, capacity: u64, random: Stream) -> Box<dyn DiscardPolicy> {
        Box::new(RandomEarly {
            min: self.min.of(capacity),
            max: self.max.of(capacity),
            max_probability: self.max_probability,
            random,
            pdus: Pdus::new(true),
        })
    }

    fn check(&self, capacity: u64, errors: &mut RangeErrors) {
        errors.below_capacity(&["max"], self.max, capacity);
        if self.min.of(capacity) > self.max.of(capacity) {
            let cause = format!("it is above `max`, which is {}", self.max);
            errors.add(&["min"], cause, "lower `min`, or raise `max`");
        }
        if self.max_probability.0 == 0 || self.max_probability.0 > Share::WHOLE {
            errors.add(
                &["max_probability"],
                "the drop probability must be above 0 % and at most 100 %",
                "give more than 0 %, at most 100 %",
            );
        }
    }

    fn refuses_above(&self, capacity: u64) -> Option<(&'static str, u64)> {
        Some(("max", self.max.of(capacity)))
    }

    fn draws(&self) -> bool {
        true
    }
}

/// Discards PDUs at random.
#[derive(Debug)]
struct RandomEarly {
    /// Lower threshold in cells.
    min: u64,
    /// Upper threshold in cells, at least `min`.
    max: u64,
    max_probability: Share,
    random: Stream,
    pdus: Pdus,
}

impl DiscardPolicy for RandomEarly {
    fn admits(&mut self, queue: QueueView, cell: CellView) -> bool {
        let Self { min, max, max_probability, random, pdus } = self;
        pdus.admit(queue, cell, || {
            if queue.queued <= *min || queue.queued > *max {
                return queue.queued > *max;
            }
            // With P = `max_probability` and X cells, the probability is P (X - min) / (max - min). `drawn` is uniform below
            // `Share::WHOLE`.
            let drawn = random.below(Share::WHOLE);
            let scaled = |parts: u64, cells: u64| u128::from(parts) * u128::from(cells);
            scaled(drawn, *max - *min) < scaled(max_probability.0, queue.queued - *min)
        })
    }

    fn try_admit_train(&mut self, train: TrainView) -> bool {
        // Up to `min` cells no random number is drawn.
        train.most <= self.min && self.pdus.try_accept_train(train)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discard::testing::{found, policy};

    /// A policy with thresholds of 4 and 8 in a queue of 10 cells.
    fn random(max_probability: &str) -> Box<dyn DiscardPolicy> {
        let config =
            format!(r#"{{ "min": "4 cells", "max": "80 %", "max_probability": "{max_probability}" }}"#);
        policy("random-epd", &config, 10)
    }

    const PDU: CellView = CellView { vc: 0, last: true };

    #[test]
    fn random_epd_probability_matches_hand_calculation() {
        // 50 % at 8 cells, so 12.5 % at 5, 25 % at 6 and 37.5 % at 7.
        let mut policy = random("50 %");
        let mut numbers = Stream::new(1, "test");
        for (queued, below) in [(5, 125_000_000), (6, 250_000_000), (7, 375_000_000), (8, 500_000_000)] {
            let mut refused = 0;
            for _ in 0..4000 {
                let refuses = numbers.below(1_000_000_000) < below;
                assert_eq!(policy.admits(found(queued), PDU), !refuses, "{queued} cells");
                refused += u64::from(refuses);
            }
            let expected = 4 * below / 1_000_000;
            assert!(refused.abs_diff(expected) < 120, "{refused} of 4000 PDUs refused at {queued} cells");
        }
    }

    #[test]
    fn random_epd_draws_only_for_first_cells_between_thresholds() {
        let (mut one, mut other) = (random("50 %"), random("50 %"));
        for vc in 0..100 {
            assert!(one.admits(found(4), PDU), "at `min` every PDU begins");
            assert!(!one.admits(found(9), PDU), "above `max` no PDU begins");
            let first = CellView { vc, last: false };
            let begun = one.admits(found(6), first);
            assert_eq!(other.admits(found(6), first), begun);
            assert_eq!(one.admits(found(8), first), begun, "one decision holds for the whole PDU");
        }
    }

    #[test]
    fn random_epd_with_full_probability_refuses_all_pdus_at_max() {
        let mut policy = random("100 %");
        assert!((0..100).all(|_| !policy.admits(found(8), PDU)));
    }

    #[test]
    fn random_epd_with_equal_thresholds_acts_as_epd() {
        let mut policy = policy("random-epd", r#"{ "min": "8 cells", "max": "8 cells" }"#, 10);
        assert!(policy.admits(found(8), PDU));
        assert!(!policy.admits(found(9), PDU));
    }

    #[test]
    fn random_epd_discards_rest_of_pdu_after_overflow() {
        let mut policy = random("50 %");
        let cell = CellView { last: false, ..PDU };
        assert!(policy.admits(found(0), cell));
        assert!(!policy.admits(found(10), cell));
        assert!(!policy.admits(found(0), cell), "the rest of a damaged PDU is discarded");
        assert!(policy.admits(found(9), PDU), "the last cell of a damaged PDU is kept");
    }

    #[test]
    fn random_epd_admits_trains_up_to_min() {
        let mut policy = random("50 %");
        assert!(policy.try_admit_train(TrainView { vc: 0, most: 4, ends: true }));
        assert!(
            !policy.try_admit_train(TrainView { vc: 0, most: 5, ends: true }),
            "above `min` a train needs a check per cell"
        );
        assert!(!policy.drops_only_when_full());
    }
}
