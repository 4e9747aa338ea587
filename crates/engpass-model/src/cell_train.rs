//! Cells in trains: runs of ATM cells at a constant pace.

use crate::time::Pace;
use crate::window::Window;

/// Index of one direction of a virtual circuit (VC).
pub type VcId = u32;
/// Index of an AAL5 PDU. The highest indices stand for generators, whose cells are PDUs of one cell each: see [`generated_by`].
pub type PduId = u32;
/// [`PduId`] that stands for "no PDU".
pub const NO_PDU: PduId = PduId::MAX;
/// PDU indices from this one on stand for generators, not for PDUs.
const GENERATORS: PduId = PduId::MAX - (1 << 24);

/// Returns the PDU index of all cells that source number `flow` generates.
///
/// # Panics
/// When there are more than 2^24 flows.
pub fn generated_by(flow: usize) -> PduId {
    let flow =
        u32::try_from(flow).ok().filter(|flow| *flow < 1 << 24).expect("there are fewer than 2^24 flows");
    GENERATORS + flow
}

/// Returns the number of the source if the PDU index `pdu` stands for a generator.
pub fn generator_of(pdu: PduId) -> Option<usize> {
    pdu.checked_sub(GENERATORS).map(|flow| flow as usize)
}

/// A train of cells of one PDU at a constant pace. Cell `k` of the record, from 0, has the instant `base + pace.after(n + k)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellTrain {
    /// Start of the busy period, or of the emission, that the cells belong to, in picoseconds.
    pub base: u64,
    /// Position of the first cell in that period: the cell's instant is `base + pace.after(n)`.
    pub n: u64,
    /// Time from cell to cell.
    pub pace: Pace,
    /// Number of cells.
    pub count: u64,
    /// Instant of the last cell, in picoseconds: `base + pace.after(n + count - 1)`.
    pub last: u64,
    /// Circuit direction of the cells.
    pub vc: VcId,
    /// PDU of the cells, or the generator that made them.
    pub pdu: PduId,
    /// Position of the first cell in the PDU.
    pub cell: u32,
    /// Number of cells of the PDU.
    pub of: u16,
    /// Low priority (I.361 section 2.2.5): CLP = 1.
    pub clp: bool,
    /// Explicit forward congestion indication (I.371): the cells met a queue above its EFCI threshold.
    pub efci: bool,
}

impl CellTrain {
    /// Returns a train without cells.
    pub fn none(pace: Pace) -> Self {
        let (base, n, count, last, vc, pdu) = (0, 0, 0, 0, 0, NO_PDU);
        Self { base, n, pace, count, last, vc, pdu, cell: 0, of: 1, clp: false, efci: false }
    }

    /// Returns whether a generator made the cells, so that every cell is a PDU of its own.
    #[inline]
    pub fn are_generated(&self) -> bool {
        self.pdu >= GENERATORS
    }

    /// Returns by how much the position in the PDU grows from cell to cell: 1, or 0 for generated cells.
    #[inline]
    pub fn step(&self) -> u32 {
        u32::from(!self.are_generated())
    }

    /// Returns whether the last cell of the train ends its PDU.
    #[inline]
    pub fn ends_pdu(&self) -> bool {
        self.are_generated() || u64::from(self.cell) + self.count == u64::from(self.of)
    }

    /// Returns the train with all instants moved by `later` picoseconds.
    #[inline]
    pub fn shifted(self, later: u64) -> Self {
        Self { base: self.base + later, last: self.last + later, ..self }
    }

    /// Returns the instant of the first cell.
    #[inline]
    pub fn first(&self) -> u64 {
        self.base + self.pace.after(self.n)
    }

    /// Advances the position in the PDU past the first `count` cells. The caller keeps track of the instants.
    #[inline]
    pub fn skip_cells(&mut self, count: u64) {
        self.cell += self.step() * count as u32;
    }

    /// Returns the instant of cell number `k` of the train, from 0.
    #[inline]
    pub fn nth(&self, k: u64) -> u64 {
        if k + 1 == self.count { self.last } else { self.base + self.pace.after(self.n + k) }
    }

    /// Returns how many cells of the train have an instant at or before `instant`.
    #[inline]
    pub fn count_until(&self, instant: u64) -> u64 {
        if instant >= self.last {
            return self.count;
        }
        let span = instant.checked_sub(self.base);
        // `units_within` counts the units 1, 2, …; unit 0 is at the base itself.
        span.map_or(0, |span| (self.pace.units_within(span) + 1).saturating_sub(self.n).min(self.count))
    }

    /// Returns how many cells lie in the window if `shift` picoseconds are added to the instant of each.
    #[inline]
    pub fn count_within(&self, window: Window, shift: u64) -> u64 {
        let last = self.last + shift;
        // The first cell is not before the train's base.
        if window.from.is_none_or(|from| self.base + shift > from) && last <= window.end {
            return self.count;
        }
        if window.from.is_some_and(|from| last <= from) {
            return 0;
        }
        self.count_across_edges(window, shift)
    }

    fn count_across_edges(&self, window: Window, shift: u64) -> u64 {
        let after = |instant: u64| {
            // Number of cells of the train later than `instant`.
            self.count - instant.checked_sub(shift).map_or(0, |instant| self.count_until(instant))
        };
        window.from.map_or(self.count, after) - after(window.end)
    }

    /// Appends the cells of `next`, which continue this train.
    #[inline]
    pub fn extend(&mut self, next: &Self) {
        self.count += next.count;
        self.last = next.last;
    }

    /// Returns whether `next` continues this train in time and in its PDU, with the same marks, so that one record can hold both.
    #[inline]
    pub fn continues_with(&self, next: &Self) -> bool {
        self.base == next.base
            && self.n + self.count == next.n
            && self.pace == next.pace
            && self.comes_before(next)
    }

    /// Returns whether both trains have the same CLP and EFCI.
    #[inline]
    pub fn alike(&self, next: &Self) -> bool {
        (self.clp, self.efci) == (next.clp, next.efci)
    }

    /// Returns whether the cells of `next` can follow in the same record if instants do not matter: they continue the same PDU, or are of the same generator,
    /// and have the same CLP and EFCI.
    #[inline]
    pub fn comes_before(&self, next: &Self) -> bool {
        self.pdu == next.pdu
            && self.vc == next.vc
            && self.alike(next)
            && (self.are_generated() || u64::from(self.cell) + self.count == u64::from(next.cell))
    }
}
