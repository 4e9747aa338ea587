//! Tracks the PDUs that arrive at a queue. A switch recognizes only their ends.

use super::{CellView, QueueView, TrainView};

/// State of the current PDU of a circuit direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PduState {
    /// Between PDUs: the next cell is the first of a PDU.
    #[default]
    Between,
    /// The PDU is accepted: its cells join if they fit.
    Taken,
    /// All cells of the PDU are discarded.
    Refused,
    /// The PDU has lost a cell: its remaining cells except the last are discarded.
    Cut,
}

/// State shared by all policies that work on PDUs. They decide at the first cell of a PDU whether to accept it.
#[derive(Debug, Default)]
pub(super) struct Pdus {
    /// Indexed by circuit direction.
    states: Vec<PduState>,
    /// Whether a PDU that loses a cell for want of room also loses its remaining cells except the last (partial packet discard). A cell lacks room if
    /// the queue is full, or if its CLP is 1 and the queue is above the CLP threshold: [`QueueView::has_room`].
    cuts: bool,
}

impl Pdus {
    /// The state before the first cell.
    pub(super) fn new(cuts: bool) -> Self {
        Self { states: Vec::new(), cuts }
    }

    fn state_of(&mut self, vc: u32) -> &mut PduState {
        let index = vc as usize;
        if index >= self.states.len() {
            self.states.resize(index + 1, PduState::Between);
        }
        &mut self.states[index]
    }

    /// Whether `cell` joins. Calls `refuses` at the first cell of a PDU to decide whether to discard the PDU.
    pub(super) fn admit(&mut self, queue: QueueView, cell: CellView, refuses: impl FnOnce() -> bool) -> bool {
        let room = queue.has_room();
        let cuts = self.cuts;
        let state = self.state_of(cell.vc);
        if *state == PduState::Between {
            *state = if refuses() { PduState::Refused } else { PduState::Taken };
        }
        let joins = match state {
            PduState::Refused => false,
            PduState::Cut => cell.last && room,
            PduState::Between | PduState::Taken => room,
        };
        if cell.last {
            *state = PduState::Between;
        } else if *state == PduState::Taken && !room && cuts {
            *state = PduState::Cut;
        }
        joins
    }

    /// Accepts a train as a whole unless an earlier decision discards its first cells. The caller ensures that no PDU of the train would be
    /// refused.
    pub(super) fn try_accept_train(&mut self, train: TrainView) -> bool {
        let state = self.state_of(train.vc);
        if matches!(state, PduState::Refused | PduState::Cut) {
            return false;
        }
        *state = if train.ends { PduState::Between } else { PduState::Taken };
        true
    }
}
