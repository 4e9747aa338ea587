//! Cell trains: cells of one PDU at a constant pace.

use engpass_model::time::Pace;
use engpass_model::window::Window;

use super::{GENERATORS, NO_PDU, PduId, VcId};

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
    pub(super) fn none(pace: Pace) -> Self {
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
    pub(super) fn step(&self) -> u32 {
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
    pub fn first(&self) -> u64 {
        self.base + self.pace.after(self.n)
    }

    /// Advances the position in the PDU past the first `count` cells. The caller keeps track of the instants.
    #[inline]
    pub fn skip_cells(&mut self, count: u64) {
        self.cell += self.step() * count as u32;
    }

    /// Returns the instant of cell number `k` of the train, from 0.
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
    pub(super) fn extend(&mut self, next: &Self) {
        self.count += next.count;
        self.last = next.last;
    }

    /// Returns whether `next` continues this train in time and in its PDU, with the same marks, so that one record can hold both.
    #[inline]
    pub(super) fn continues_with(&self, next: &Self) -> bool {
        self.base == next.base
            && self.n + self.count == next.n
            && self.pace == next.pace
            && self.comes_before(next)
    }

    /// Returns whether both trains have the same CLP and EFCI.
    #[inline]
    pub(super) fn alike(&self, next: &Self) -> bool {
        (self.clp, self.efci) == (next.clp, next.efci)
    }

    /// Returns whether the cells of `next` can follow in the same record if instants do not matter: they continue the same PDU, or are of the same generator,
    /// and have the same CLP and EFCI.
    #[inline]
    pub(super) fn comes_before(&self, next: &Self) -> bool {
        self.pdu == next.pdu
            && self.vc == next.vc
            && self.alike(next)
            && (self.are_generated() || u64::from(self.cell) + self.count == u64::from(next.cell))
    }
}

/// A piece of a train: consecutive cells, or a bit pattern of cells with gaps in which cells of other trains may lie. A train has one or more pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainPiece {
    /// Position of the first cell: see [`CellTrain::n`].
    n: u64,
    /// Number of cells.
    count: u64,
    /// Bit mask of the positions of the cells from `n` on, lowest bit first; 0 for consecutive cells.
    pattern: u64,
    /// Index of the piece's train in the list of trains that comes with the pieces.
    train: u32,
}

impl TrainPiece {
    /// Returns a piece of `count` consecutive cells from position `n` on.
    pub fn run(n: u64, count: u64, train: u32) -> Self {
        Self { n, count, pattern: 0, train }
    }

    /// Returns a piece of the cells whose bits are set in `bits`; the lowest bit stands for position `n`. `count` is the number of set bits, at least one.
    #[inline]
    pub(super) fn pattern(n: u64, bits: u64, count: u64, train: u32) -> Self {
        let skipped = bits.trailing_zeros();
        let (n, pattern) = (n + u64::from(skipped), bits >> skipped);
        let is_run = pattern & pattern.wrapping_add(1) == 0;
        Self { n, count, pattern: if is_run { 0 } else { pattern }, train }
    }

    /// Returns the number of cells in the piece.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether the cells of the piece are consecutive.
    #[inline]
    pub(super) fn is_run(&self) -> bool {
        self.pattern == 0
    }

    /// Returns the index of the piece's train.
    #[inline]
    pub(super) fn train(&self) -> u32 {
        self.train
    }

    /// Returns the piece with the index of its train increased by `by`.
    #[inline]
    pub(super) fn renumbered(self, by: u32) -> Self {
        Self { train: self.train.wrapping_add(by), ..self }
    }

    /// Returns position and length of the piece's first run, and the pattern of the cells behind that run.
    #[inline]
    pub(super) fn opened(&self) -> (u64, u64, Pattern) {
        if self.pattern == 0 {
            return (self.n, self.count, Pattern::default());
        }
        let mut pattern = Pattern { n: self.n, bits: self.pattern };
        let (n, count) = pattern.take_run();
        (n, count, pattern)
    }

    /// Returns the pattern of the piece, empty for consecutive cells.
    #[inline]
    pub(super) fn as_pattern(&self) -> Pattern {
        Pattern { n: self.n, bits: self.pattern }
    }

    /// Returns the position of the piece's first cell.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.n
    }

    /// Returns the position of the piece's last cell.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        if self.is_run() { self.n + self.count - 1 } else { self.as_pattern().last() }
    }

    /// Returns whether the piece is a run of consecutive cells that ends just before position `n`.
    #[inline]
    pub(super) fn ends_before(&self, n: u64) -> bool {
        self.pattern == 0 && self.n + self.count == n
    }

    /// Appends `count` consecutive cells to a piece that is a run.
    #[inline]
    pub(super) fn grow(&mut self, count: u64) {
        self.count += count;
    }

    /// Returns position and length of each run in the piece, in order.
    fn runs(self) -> impl Iterator<Item = (u64, u64)> {
        let (n, count, mut behind) = self.opened();
        std::iter::once((n, count)).chain(std::iter::from_fn(move || behind.any().then(|| behind.take_run())))
    }
}

/// Positions of cells as a bit mask; bit 0 stands for position `n`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pattern {
    pub(super) n: u64,
    pub(super) bits: u64,
}

impl Pattern {
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.bits != 0
    }

    #[inline]
    pub(super) fn count(&self) -> u64 {
        u64::from(self.bits.count_ones())
    }

    /// Removes the first run of consecutive cells, which must exist, and returns its position and length.
    #[inline]
    pub(super) fn take_run(&mut self) -> (u64, u64) {
        let skip = self.bits.trailing_zeros();
        let count = (self.bits >> skip).trailing_ones();
        self.bits &= !(u64::MAX >> (64 - count) << skip);
        (self.n + u64::from(skip), u64::from(count))
    }

    /// Returns the first position in the pattern, which must exist.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.n + u64::from(self.bits.trailing_zeros())
    }

    /// Returns the last position in the pattern, which must exist.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.n + 63 - u64::from(self.bits.leading_zeros())
    }

    /// Removes the positions up to `last` from the pattern and returns them.
    pub(super) fn take_until(&mut self, last: u64) -> Self {
        let reach = last.checked_sub(self.n);
        let bits =
            reach.map_or(0, |reach| if reach >= 63 { self.bits } else { self.bits & ((2 << reach) - 1) });
        self.bits &= !bits;
        Self { n: self.n, bits }
    }
}

/// Returns the cells of `trains` run by run, in the order of `pieces`. Advances each train past its returned cells.
pub fn one_by_one<'a>(
    trains: &'a mut [CellTrain],
    pieces: &'a [TrainPiece],
) -> impl Iterator<Item = CellTrain> + 'a {
    let runs = pieces.iter().flat_map(|piece| piece.runs().map(|(n, count)| (n, count, piece.train)));
    runs.map(|(n, count, train)| {
        let train = &mut trains[train as usize];
        let last = train.base + train.pace.after(n + count - 1);
        let cells = CellTrain { n, count, last, ..*train };
        train.skip_cells(count);
        cells
    })
}
