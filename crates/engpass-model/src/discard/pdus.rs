//! Tracks the PDUs that arrive at a queue. A switch recognizes only their ends.

use super::{CellView, QueueView, TrainView};

/// State of the current PDU of a circuit direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
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
    /// Indexed by VC direction.
    fates: Vec<Fate>,
    /// Whether a PDU that loses a cell because the queue is full also loses its remaining cells except the last (partial packet discard).
    cuts: bool,
}

impl Pdus {
    /// The state before the first cell.
    pub(super) fn new(cuts: bool) -> Self {
        Self { fates: Vec::new(), cuts }
    }

    fn fate(&mut self, vc: u32) -> &mut Fate {
        let index = vc as usize;
        if index >= self.fates.len() {
            self.fates.resize(index + 1, Fate::Between);
        }
        &mut self.fates[index]
    }

    /// Whether `cell` joins. Calls `refuses` at the first cell of a PDU to decide whether to discard the PDU.
    pub(super) fn admit(&mut self, queue: QueueView, cell: CellView, refuses: impl FnOnce() -> bool) -> bool {
        let room = queue.has_room();
        let cuts = self.cuts;
        let fate = self.fate(cell.vc);
        if *fate == Fate::Between {
            *fate = if refuses() { Fate::Refused } else { Fate::Taken };
        }
        let joins = match fate {
            Fate::Refused => false,
            Fate::Cut => cell.last && room,
            Fate::Between | Fate::Taken => room,
        };
        if cell.last {
            *fate = Fate::Between;
        } else if *fate == Fate::Taken && !room && cuts {
            *fate = Fate::Cut;
        }
        joins
    }

    /// Accepts a train as a whole unless an earlier decision discards its first cells. The caller ensures that no PDU of the train would be
    /// refused.
    pub(super) fn take(&mut self, train: TrainView) -> bool {
        let fate = self.fate(train.vc);
        if matches!(fate, Fate::Refused | Fate::Cut) {
            return false;
        }
        *fate = if train.ends { Fate::Between } else { Fate::Taken };
        true
    }
}
