//! Cells as trains: which cells of which frame stand at which ends of a constant pace.

use super::{FrameId, GENERATORS, NO_FRAME, VcId};
use crate::time::Pace;

/// Cells of one frame that follow each other at a constant pace: cell `k` of the record, from 0, stands at `base +
/// pace.after(n + k)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Start of the busy period, or of the emission, that the cells belong to, in picoseconds.
    pub base: u64,
    /// Place of the first cell in it.
    pub n: u64,
    /// The pace they follow each other at.
    pub pace: Pace,
    /// How many.
    pub count: u64,
    /// When the last of them stands, in picoseconds: `base + pace.after(n + count - 1)`.
    pub last: u64,
    /// The circuit.
    pub vc: VcId,
    /// The frame they are cells of, or the generator that made them.
    pub frame: FrameId,
    /// Place of the first cell in its frame.
    pub cell: u32,
    /// Cells of the whole frame.
    pub of: u16,
    /// Low priority (I.361 section 2.2.5): CLP = 1.
    pub clp: bool,
    /// They met a long queue (I.371; explicit forward congestion indication).
    pub efci: bool,
}

impl Cells {
    /// No cells.
    pub(super) fn none(pace: Pace) -> Self {
        let (base, n, count, last, vc, frame) = (0, 0, 0, 0, 0, NO_FRAME);
        Self { base, n, pace, count, last, vc, frame, cell: 0, of: 1, clp: false, efci: false }
    }

    /// Whether a generator made them: every cell is a frame of its own.
    #[inline]
    pub fn are_generated(&self) -> bool {
        self.frame >= GENERATORS
    }

    /// By how much the places of two cells that follow each other differ in their frame.
    #[inline]
    pub(super) fn step(&self) -> u32 {
        u32::from(!self.are_generated())
    }

    /// Whether the last of these cells ends its frame.
    #[inline]
    pub fn ends_frame(&self) -> bool {
        self.are_generated() || u64::from(self.cell) + self.count == u64::from(self.of)
    }

    /// The same cells `later` picoseconds later.
    #[inline]
    pub fn shifted(self, later: u64) -> Self {
        Self { base: self.base + later, last: self.last + later, ..self }
    }

    /// When the first of them stands.
    pub fn first(&self) -> u64 {
        self.base + self.pace.after(self.n)
    }

    /// The first `count` cells are taken; their instants are another's to keep.
    #[inline]
    pub fn take(&mut self, count: u64) {
        self.cell += self.step() * count as u32;
    }

    /// When cell number `k` of them stands, from 0.
    pub fn nth(&self, k: u64) -> u64 {
        if k + 1 == self.count { self.last } else { self.base + self.pace.after(self.n + k) }
    }

    /// Say also what `next` says, which goes on with these cells.
    #[inline]
    pub(super) fn extend(&mut self, next: &Self) {
        self.count += next.count;
        self.last = next.last;
    }

    /// Whether `next` carries on where these cells end, with the same marks, so that one record can say both.
    #[inline]
    pub(super) fn goes_on_with(&self, next: &Self) -> bool {
        self.base == next.base
            && self.n + self.count == next.n
            && self.pace == next.pace
            && self.comes_before(next)
    }

    /// Whether both have the same marks.
    #[inline]
    pub(super) fn alike(&self, next: &Self) -> bool {
        (self.clp, self.efci) == (next.clp, next.efci)
    }

    /// Whether `next` follows in the same frame, or from the same generator, with the same marks, whatever the time.
    #[inline]
    pub(super) fn comes_before(&self, next: &Self) -> bool {
        self.frame == next.frame
            && self.vc == next.vc
            && self.alike(next)
            && (self.are_generated() || u64::from(self.cell) + self.count == u64::from(next.cell))
    }
}

/// Cells of a train in runs: those of a run follow each other without a gap, and runs are evenly apart. A train that others have come
/// between has several pieces, or one that says how they have come between it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Place of the first of them in what the train belongs to: see [`Cells::n`].
    pub n: u64,
    /// How many.
    pub count: u64,
    /// Number of the train among those that are listed with it.
    pub train: u32,
    /// Cells of a run; the last one may have fewer. 1 where there are no gaps.
    run: u16,
    /// Places from the first cell of a run to that of the next one. 1 where there are no gaps.
    period: u16,
}

impl Piece {
    /// `count` cells from place `n` on without a gap.
    #[inline]
    pub fn solid(n: u64, count: u64, train: u32) -> Self {
        Self { n, count, train, run: 1, period: 1 }
    }

    /// `count` cells from place `n` on, in runs of `run`, each of which begins `period` places behind the one before it.
    pub(super) fn in_runs(n: u64, count: u64, train: u32, run: u16, period: u16) -> Self {
        debug_assert!(0 < run && run < period, "there are cells, and gaps between them");
        if count <= u64::from(run) {
            Self::solid(n, count, train)
        } else {
            Self { n, count, train, run, period }
        }
    }

    /// The same cells of the train that stands as many places further back.
    #[inline]
    pub(super) fn behind(self, trains: u32) -> Self {
        Self { train: self.train.wrapping_add(trains), ..self }
    }

    /// Whether there are no gaps.
    #[inline]
    pub fn is_solid(&self) -> bool {
        self.period == 1
    }

    /// Places from one cell to the next, where every run is one cell.
    #[inline]
    pub(super) fn stride(&self) -> Option<u64> {
        (self.run == 1).then_some(u64::from(self.period))
    }

    /// Place of cell number `k`, from 0.
    #[inline]
    pub(super) fn place(&self, k: u64) -> u64 {
        let (run, period) = (u64::from(self.run), u64::from(self.period));
        if run == 1 { self.n + k * period } else { self.n + k / run * period + k % run }
    }

    /// Place of the last cell.
    #[inline]
    pub fn last(&self) -> u64 {
        self.place(self.count - 1)
    }

    /// Cells of those runs that end at or before place `end`, which is not before the first cell.
    pub(super) fn whole_runs_up_to(&self, end: u64) -> u64 {
        let (run, period) = (u64::from(self.run), u64::from(self.period));
        if self.last() <= end { self.count } else { (end + 1 - self.n + period - run) / period * run }
    }

    /// Take the first run, or all if there are no gaps: its place and its cells.
    #[inline]
    pub fn take_run(&mut self) -> (u64, u64) {
        let n = self.n;
        let count = if self.period == 1 { self.count } else { self.count.min(u64::from(self.run)) };
        self.n += u64::from(self.period);
        self.count -= count;
        (n, count)
    }

    /// Take the first `count` cells, all or those of whole runs.
    pub(super) fn skip(&mut self, count: u64) {
        self.n += count.div_ceil(u64::from(self.run)) * u64::from(self.period);
        self.count -= count;
    }

    /// Say also what `next` says, which comes behind this, if one piece can. Whether it can.
    #[inline]
    pub(super) fn goes_on_with(&mut self, next: &Self) -> bool {
        if self.train != next.train {
            return false;
        }
        if self.count == 1 && next.run == 1 {
            let between = next.n - self.n;
            if (next.count > 1 && between != u64::from(next.period)) || between > u64::from(u16::MAX) {
                return false;
            }
            (self.run, self.period) = (1, between as u16);
        } else {
            let alike =
                self.run == next.run && (self.period == next.period || (next.count == 1 && self.run == 1));
            if !alike || !self.count.is_multiple_of(u64::from(self.run)) || self.place(self.count) != next.n {
                return false;
            }
        }
        self.count += next.count;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_evenly_apart() {
        // 10 11 12 . . 15 16 17 . . 20
        let mut piece = Piece::in_runs(10, 7, 0, 3, 5);
        let places: Vec<_> = (0..7).map(|k| piece.place(k)).collect();
        assert_eq!(places, [10, 11, 12, 15, 16, 17, 20]);
        let up_to: Vec<_> = (10..22).map(|end| piece.whole_runs_up_to(end)).collect();
        assert_eq!(up_to, [0, 0, 3, 3, 3, 3, 3, 6, 6, 6, 7, 7]);
        assert_eq!(piece.last(), 20);
        let mut rest = piece;
        rest.skip(6);
        assert_eq!((rest.n, rest.count), (20, 1));
        assert!(!piece.goes_on_with(&Piece::in_runs(25, 6, 0, 3, 5)), "the last run is not full");
        assert_eq!([piece.take_run(), piece.take_run(), piece.take_run()], [(10, 3), (15, 3), (20, 1)]);
        let mut piece = Piece::in_runs(10, 6, 0, 3, 5);
        assert!(piece.goes_on_with(&Piece::in_runs(20, 4, 0, 3, 5)));
        assert_eq!((piece.count, piece.last()), (10, 25));
        // One cell goes on with any stride, and two make one.
        let mut piece = Piece::solid(3, 1, 0);
        assert!([7, 11].iter().all(|n| piece.goes_on_with(&Piece::solid(*n, 1, 0))));
        assert_eq!((piece.count, piece.stride()), (3, Some(4)));
        assert!(!piece.goes_on_with(&Piece::solid(15, 2, 0)) && !piece.goes_on_with(&Piece::solid(12, 1, 0)));
        let mut piece = Piece::solid(3, 1, 0);
        assert!(
            piece.goes_on_with(&Piece::in_runs(5, 4, 0, 1, 2)) && piece.goes_on_with(&Piece::solid(13, 1, 0))
        );
        assert_eq!((piece.count, piece.last()), (6, 13));
    }
}
