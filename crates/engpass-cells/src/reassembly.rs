//! AAL5 reassembly (ITU-T I.363.5 section 6): cells become PDUs again.

use super::{CellTrain, NO_PDU, PduId};

/// Result of reassembly when the last cell of a PDU arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pdu {
    /// All cells of the PDU have arrived, and no others: length and CRC are right.
    Good,
    /// Cells are missing, or cells of an earlier PDU that lost its end stand before it: length or CRC is wrong.
    Bad,
}

/// Reassembly of one circuit direction.
#[derive(Clone, Debug)]
pub struct Reassembly {
    pdu: PduId,
    count: u64,
    /// True if cells of an earlier PDU, whose last cell was lost, stand before the current one; the current PDU is then bad.
    merged: bool,
}

impl Default for Reassembly {
    fn default() -> Self {
        Self { pdu: NO_PDU, count: 0, merged: false }
    }
}

impl Reassembly {
    /// Returns the incomplete PDU and the number of its cells that have arrived, if any.
    pub fn pending(&self) -> Option<(PduId, u32)> {
        (self.pdu != NO_PDU).then_some((self.pdu, self.count as u32))
    }

    /// Adds arriving cells, in order. Returns the result of a PDU if its last cell is among them. Every cell of a generator is a PDU of its own: the result is
    /// then that of the first cell, and all others are good.
    pub fn add_cells(&mut self, cells: &CellTrain) -> Option<Pdu> {
        if cells.are_generated() {
            // Only the first cell can follow a PDU whose last cell was lost.
            let good = self.pdu == NO_PDU;
            *self = Self::default();
            return Some(if good { Pdu::Good } else { Pdu::Bad });
        }
        if cells.pdu != self.pdu {
            self.merged |= self.pdu != NO_PDU;
            (self.pdu, self.count) = (cells.pdu, 0);
        }
        self.count += cells.count;
        if !cells.ends_pdu() {
            return None;
        }
        let good = !self.merged && self.count == u64::from(cells.of);
        *self = Self::default();
        Some(if good { Pdu::Good } else { Pdu::Bad })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(pdu: PduId, cell: u32, count: u64, of: u16) -> CellTrain {
        let pace = engpass_model::time::Pace::new(1, 1);
        let (base, n, last, vc, clp, efci) = (0, 0, 0, 0, false, false);
        CellTrain { base, n, pace, count, last, vc, pdu, cell, of, clp, efci }
    }

    #[test]
    fn lost_last_cell_makes_the_next_pdu_bad() {
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.add_cells(&cells(1, 0, 3, 4)), None);
        assert_eq!(reassembly.add_cells(&cells(2, 0, 4, 4)), Some(Pdu::Bad));
        assert_eq!(reassembly.add_cells(&cells(3, 0, 2, 4)), None);
        assert_eq!(reassembly.add_cells(&cells(3, 2, 2, 4)), Some(Pdu::Good));
    }

    #[test]
    fn lost_last_cell_makes_the_next_generated_cell_bad() {
        let mut reassembly = Reassembly::default();
        let generated = CellTrain { count: 5, ..cells(crate::generated_by(0), 0, 1, 1) };
        assert_eq!(reassembly.add_cells(&generated), Some(Pdu::Good));
        reassembly.add_cells(&cells(1, 0, 2, 4));
        assert_eq!(reassembly.add_cells(&generated), Some(Pdu::Bad));
        assert_eq!(reassembly.add_cells(&generated), Some(Pdu::Good));
    }

    #[test]
    fn missing_cell_makes_the_pdu_bad() {
        let mut reassembly = Reassembly::default();
        reassembly.add_cells(&cells(1, 0, 1, 4));
        assert_eq!(reassembly.add_cells(&cells(1, 2, 2, 4)), Some(Pdu::Bad));
        // A PDU that lost all its cells leaves no trace.
        assert_eq!(reassembly.add_cells(&cells(3, 0, 1, 1)), Some(Pdu::Good));
    }
}
