//! The PDUs that pass a queue, as far as a switch can tell them apart: by their ends.

use super::{CellView, QueueView, TrainView};

/// What a queue does with the PDU of a circuit whose cells are coming.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
    /// None is coming: the next cell is the first of a PDU.
    #[default]
    Between,
    /// It joins as far as there is room.
    Taken,
    /// All of it is lost.
    Refused,
    /// It has lost a cell: the rest is lost, but for its last cell.
    Cut,
}

/// The state that every policy by PDUs has: whether to refuse a PDU is decided at its first cell.
#[derive(Debug, Default)]
pub(super) struct Pdus {
    /// By circuit direction.
    fates: Vec<Fate>,
    /// Whether a PDU that loses a cell for want of room is cut (partial packet discard).
    cuts: bool,
}

impl Pdus {
    /// No PDU has come.
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

    /// Whether `cell` joins; `refuses` is asked at the first cell of a PDU.
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

    /// Whether a train, no PDU of which is to be refused, joins as a whole; it has then been noted.
    pub(super) fn take(&mut self, train: TrainView) -> bool {
        let fate = self.fate(train.vc);
        if matches!(fate, Fate::Refused | Fate::Cut) {
            return false;
        }
        *fate = if train.ends { Fate::Between } else { Fate::Taken };
        true
    }
}
