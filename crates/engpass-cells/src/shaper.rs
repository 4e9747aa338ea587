//! The shaper of a circuit at a NIC: a peak cell rate with exact, fractional spacing.

use engpass_model::time::{FOREVER, Pace};

use super::{CellTrain, PduId, VcId};

/// Emits the cells of one circuit direction at its pace, as GCRA without tolerance allows (I.371 Annex A).
///
/// The spacing is a fraction, not a whole number of slots: 16 % of a line is a spacing of 6.25 slots. Rounded to 6 slots it would be 16.67 %.
#[derive(Clone, Debug)]
pub struct Shaper {
    vc: VcId,
    pace: Pace,
    base: u64,
    n: u64,
    clp: bool,
}

impl Shaper {
    /// Returns a shaper that has emitted no cells yet.
    pub fn new(vc: VcId, pace: Pace) -> Self {
        Self { vc, pace, base: 0, n: 0, clp: false }
    }

    /// Returns the shaper with CLP set to `clp` in all its cells.
    pub fn with_clp(self, clp: bool) -> Self {
        Self { clp, ..self }
    }

    /// Returns the time from cell to cell, the inverse of the shaper's rate.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Returns the earliest instant of the next emission, in picoseconds.
    pub fn next(&self) -> u64 {
        self.base.saturating_add(self.pace.after(self.n))
    }

    /// Changes the pace from `now` on, in picoseconds. `now` must not be before [`Self::next`].
    pub fn restart(&mut self, now: u64, pace: Pace) {
        debug_assert!(now >= self.next(), "the pace changes no earlier than the next emission");
        (self.pace, self.base, self.n) = (pace, now, 0);
    }

    /// Emits the cells of a PDU that the host hands over at `now` (picoseconds); `cells` is their number. They follow the cells before at the shaper's pace.
    pub fn emit(&mut self, now: u64, pdu: PduId, cells: u32) -> CellTrain {
        let next = self.next();
        if now >= next {
            (self.base, self.n) = (now, 0);
        } else if next > FOREVER {
            // A NIC may hold more cells than a slow shaper emits in years. Such cells get instants after the end of every run.
            (self.base, self.n) = (FOREVER, 0);
        }
        let (base, n, count) = (self.base, self.n, u64::from(cells));
        self.n += count;
        let last = base + self.pace.after(n + count - 1);
        let of = u16::try_from(cells).expect("an AAL5 PDU has at most 1366 cells");
        let (pace, vc, clp) = (self.pace, self.vc, self.clp);
        CellTrain { base, n, pace, count, last, vc, pdu, cell: 0, of, clp, efci: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shaper_keeps_the_spacing_between_pdus() {
        let mut shaper = Shaper::new(0, Pace::new(25, 2));
        let first = shaper.emit(100, 1, 2);
        assert_eq!((first.base, first.n), (100, 0));
        // Emissions at 100 and 113; the next is due at 125.
        let second = shaper.emit(120, 2, 1);
        assert_eq!((second.base, second.n), (100, 2));
        let third = shaper.emit(138, 3, 1);
        assert_eq!((third.base, third.n), (138, 0));
    }
}
