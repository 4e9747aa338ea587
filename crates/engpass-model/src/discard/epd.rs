//! Early packet discard: a PDU that arrives while the queue is long is discarded as a whole.
//!
//! Romanow and Floyd, "Dynamics of TCP Traffic over ATM Networks", IEEE JSAC 13(4), 1995, section 4.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pdu_state::Pdus;
use super::{
    CellView, DiscardConfig, DiscardPolicy, QueueView, TrainView, check_threshold, default_threshold,
};
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::unit::FillLevel;

/// Discards a PDU as a whole if its first cell finds more cells in the queue than the threshold. An accepted PDU loses only cells that find
/// no room: the queue is full, or for a cell with CLP = 1 above `clp_threshold`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Epd {
    /// Number of cells in the queue, or share of its capacity, above which a PDU is discarded (0.9: an estimate). The space above the
    /// threshold should hold one or more PDUs, because accepted PDUs continue.
    #[serde(default = "default_threshold")]
    pub threshold: FillLevel,
}

impl DiscardConfig for Epd {
    fn policy(&self, capacity: u64, _: Stream) -> Box<dyn DiscardPolicy> {
        Box::new(EarlyDiscard::new(self.threshold.of(capacity), false))
    }

    fn check(&self, capacity: u64, errors: &mut RangeErrors) {
        check_threshold(self.threshold, capacity, errors);
    }

    fn refuses_above(&self, capacity: u64) -> Option<(&'static str, u64)> {
        Some(("threshold", self.threshold.of(capacity)))
    }
}

/// Discards whole PDUs above a threshold; the state of `epd` and `epd-ppd`.
#[derive(Debug)]
pub(super) struct EarlyDiscard {
    threshold: u64,
    pdus: Pdus,
}

impl EarlyDiscard {
    /// A policy that accepts no PDU above `threshold` cells. With `cuts`, an accepted PDU that lost a cell also loses its remaining cells
    /// except the last.
    pub(super) fn new(threshold: u64, cuts: bool) -> Self {
        Self { threshold, pdus: Pdus::new(cuts) }
    }
}

impl DiscardPolicy for EarlyDiscard {
    fn admits(&mut self, queue: QueueView, cell: CellView) -> bool {
        self.pdus.admit(queue, cell, || queue.queued > self.threshold)
    }

    fn try_admit_train(&mut self, train: TrainView) -> bool {
        train.most <= self.threshold && self.pdus.try_accept_train(train)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discard::testing::{found, policy};

    #[test]
    fn epd_decides_for_the_whole_pdu_at_its_first_cell() {
        // Capacity 10, threshold 8.
        let mut policy = policy("epd", r#"{ "threshold": "80 %" }"#, 10);
        assert!(policy.admits(found(8), CellView { vc: 0, last: false }), "a PDU begins at the threshold");
        assert!(
            policy.admits(found(9), CellView { vc: 0, last: false }),
            "a PDU that has begun goes on above the threshold"
        );
        assert!(!policy.admits(found(9), CellView { vc: 1, last: false }));
        assert!(
            !policy.admits(found(0), CellView { vc: 1, last: false }),
            "the rest of a refused PDU is discarded"
        );
        assert!(
            !policy.admits(found(0), CellView { vc: 1, last: true }),
            "the last cell of a refused PDU is discarded"
        );
        assert!(
            policy.admits(found(8), CellView { vc: 1, last: true }),
            "a PDU of one cell begins at the threshold"
        );
        assert!(
            !policy.admits(found(9), CellView { vc: 1, last: true }),
            "a PDU of one cell is refused above the threshold"
        );
    }

    #[test]
    fn epd_drops_only_one_cell_at_an_overflow() {
        let mut policy = policy("epd", r#"{ "threshold": "8 cells" }"#, 10);
        assert!(policy.admits(found(0), CellView { vc: 0, last: false }));
        assert!(!policy.admits(found(10), CellView { vc: 0, last: false }));
        assert!(policy.admits(found(9), CellView { vc: 0, last: false }));
    }

    #[test]
    fn epd_admits_trains_up_to_the_threshold() {
        let mut policy = policy("epd", r#"{ "threshold": "8 cells" }"#, 10);
        let train = |most, ends| TrainView { vc: 0, most, ends };
        assert!(
            !policy.try_admit_train(train(9, true)),
            "a train above the threshold needs a check per cell"
        );
        assert!(policy.try_admit_train(train(8, false)));
        assert!(
            policy.admits(found(9), CellView { vc: 0, last: true }),
            "the cell continues the PDU that the train began"
        );
        assert!(!policy.admits(found(9), CellView { vc: 0, last: false }));
        assert!(!policy.try_admit_train(train(0, true)), "the rest of a refused PDU needs a check per cell");
    }
}
