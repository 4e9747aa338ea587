//! Partial packet discard: drops the rest of a PDU that lost a cell, since the PDU cannot be reassembled.
//!
//! Romanow and Floyd, "Dynamics of TCP Traffic over ATM Networks", IEEE JSAC 13(4), 1995, section 3. ATM Forum Traffic Management 4.0
//! permits it for AAL5 as a form of intelligent frame discard.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pdu_state::Pdus;
use super::{CellView, DiscardConfig, DiscardPolicy, QueueView, TrainView};
use crate::random::Stream;

/// Once a PDU has lost a cell that found no room (a full queue, or for a cell with CLP = 1 a queue above `clp_threshold`), its remaining
/// cells are discarded. The last one is kept if it fits: it marks the end, so the next PDU is not lost as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ppd {}

impl DiscardConfig for Ppd {
    fn policy(&self, _: u64, _: Stream) -> Box<dyn DiscardPolicy> {
        Box::new(Partial(Pdus::new(true)))
    }
}

/// Accepts every PDU, and discards the rest of PDUs that lost a cell.
#[derive(Debug)]
struct Partial(Pdus);

impl DiscardPolicy for Partial {
    fn admits(&mut self, queue: QueueView, cell: CellView) -> bool {
        self.0.admit(queue, cell, || false)
    }

    fn try_admit_train(&mut self, train: TrainView) -> bool {
        self.0.try_accept_train(train)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discard::testing::policy;

    const FULL: QueueView = QueueView { queued: 4, capacity: 4, limit: 4, own: 0, active: 0 };
    const ROOM: QueueView = QueueView { queued: 3, ..FULL };
    const TRAIN: TrainView = TrainView { vc: 0, most: 3, ends: false };

    fn cell(vc: u32, last: bool) -> CellView {
        CellView { vc, last }
    }

    #[test]
    fn ppd_discards_rest_of_pdu_but_keeps_its_last_cell() {
        let mut policy = policy("ppd", "{}", 4);
        assert!(policy.admits(ROOM, cell(0, false)));
        assert!(policy.try_admit_train(TRAIN));
        assert!(!policy.admits(FULL, cell(0, false)));
        assert!(!policy.try_admit_train(TRAIN), "trains of a damaged PDU need a check per cell");
        assert!(
            policy.try_admit_train(TrainView { vc: 1, ..TRAIN }),
            "trains of other circuits are admitted"
        );
        assert!(!policy.admits(ROOM, cell(0, false)), "the rest of a damaged PDU is discarded despite room");
        assert!(policy.admits(ROOM, cell(0, true)));
        assert!(policy.try_admit_train(TRAIN));
        assert!(policy.admits(ROOM, cell(0, false)), "the next PDU is admitted");
    }

    #[test]
    fn ppd_stops_discarding_at_a_dropped_last_cell() {
        let mut policy = policy("ppd", "{}", 4);
        assert!(!policy.admits(FULL, cell(0, false)));
        assert!(!policy.admits(FULL, cell(0, true)));
        assert!(policy.admits(ROOM, cell(0, false)));
    }

    #[test]
    fn ppd_discards_only_in_the_circuit_that_overflowed() {
        let mut policy = policy("ppd", "{}", 4);
        assert!(!policy.admits(FULL, cell(0, false)));
        assert!(policy.admits(ROOM, cell(1, false)));
        assert!(policy.admits(ROOM, cell(1, true)));
        assert!(!policy.admits(ROOM, cell(0, false)), "the rest of a damaged PDU is discarded");
    }
}
