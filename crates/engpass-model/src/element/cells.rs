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

/// Cells of a train that follow each other without a gap. A train that others have come between has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Place of the first of them in what the train belongs to: see [`Cells::n`].
    pub n: u64,
    /// How many.
    pub count: u64,
    /// Number of the train among those that are listed with it.
    pub train: u32,
}
