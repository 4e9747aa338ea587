//! Cells as trains: which cells of which frame stand at which ends of a constant pace.

use engpass_model::time::Pace;

use super::{GENERATORS, NO_FRAME, PduId, VcId};

/// Cells of one frame that follow each other at a constant pace: cell `k` of the record, from 0, stands at `base +
/// pace.after(n + k)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellTrain {
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
    pub frame: PduId,
    /// Place of the first cell in its frame.
    pub cell: u32,
    /// Cells of the whole frame.
    pub of: u16,
    /// Low priority (I.361 section 2.2.5): CLP = 1.
    pub clp: bool,
    /// They met a long queue (I.371; explicit forward congestion indication).
    pub efci: bool,
}

impl CellTrain {
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

    /// How many of them stand at or before `instant`.
    #[inline]
    pub fn count_until(&self, instant: u64) -> u64 {
        if instant >= self.last {
            return self.count;
        }
        let span = instant.checked_sub(self.base);
        // `ended_within` counts units 1, 2, …; the unit 0 stands at the base itself.
        span.map_or(0, |span| (self.pace.ended_within(span) + 1).saturating_sub(self.n).min(self.count))
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

/// Cells of a train: a run of them without a gap, or a pattern of such as others have come between. A train has as many pieces
/// as it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainPiece {
    /// Place of the first of them in what the train belongs to: see [`CellTrain::n`].
    n: u64,
    /// How many.
    count: u64,
    /// Which of the places from `n` on are theirs, the first in the lowest bit, or 0 for a run.
    pattern: u64,
    /// Number of the train among those that are listed with it.
    train: u32,
}

impl TrainPiece {
    /// A run of `count` cells from place `n` on.
    pub fn run(n: u64, count: u64, train: u32) -> Self {
        Self { n, count, pattern: 0, train }
    }

    /// The cells at those places from `n` on, `count` and at least one, whose bits are set.
    #[inline]
    pub(super) fn pattern(n: u64, bits: u64, count: u64, train: u32) -> Self {
        let skipped = bits.trailing_zeros();
        let (n, pattern) = (n + u64::from(skipped), bits >> skipped);
        let is_run = pattern & pattern.wrapping_add(1) == 0;
        Self { n, count, pattern: if is_run { 0 } else { pattern }, train }
    }

    /// How many cells.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether its cells follow each other without a gap.
    #[inline]
    pub(super) fn is_run(&self) -> bool {
        self.pattern == 0
    }

    /// Number of its train.
    #[inline]
    pub(super) fn train(&self) -> u32 {
        self.train
    }

    /// The same of the train `by` numbers later.
    #[inline]
    pub(super) fn renumbered(self, by: u32) -> Self {
        Self { train: self.train.wrapping_add(by), ..self }
    }

    /// Its first run, and the pattern of what is behind it, 0 for nothing, with the place of its lowest bit.
    #[inline]
    pub(super) fn opened(&self) -> (u64, u64, Pattern) {
        if self.pattern == 0 {
            return (self.n, self.count, Pattern::default());
        }
        let mut pattern = Pattern { n: self.n, bits: self.pattern };
        let (n, count) = pattern.take_run();
        (n, count, pattern)
    }

    /// All of it as a pattern, if it is one.
    #[inline]
    pub(super) fn as_pattern(&self) -> Pattern {
        Pattern { n: self.n, bits: self.pattern }
    }

    /// Place of its first cell.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.n
    }

    /// Place of its last cell.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        if self.is_run() { self.n + self.count - 1 } else { self.as_pattern().last() }
    }

    /// Whether cells from place `n` on go on with it as one run.
    #[inline]
    pub(super) fn ends_before(&self, n: u64) -> bool {
        self.pattern == 0 && self.n + self.count == n
    }

    /// `count` cells more, behind its last.
    #[inline]
    pub(super) fn grow(&mut self, count: u64) {
        self.count += count;
    }

    /// Its runs, in order: of each the first place, and how many cells.
    fn runs(self) -> impl Iterator<Item = (u64, u64)> {
        let (n, count, mut behind) = self.opened();
        std::iter::once((n, count)).chain(std::iter::from_fn(move || behind.any().then(|| behind.take_run())))
    }
}

/// Places of cells: those whose bits are set, counted from `n` on.
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

    /// Take the first run, where there is one: its place, and how many cells.
    #[inline]
    pub(super) fn take_run(&mut self) -> (u64, u64) {
        let skip = self.bits.trailing_zeros();
        let count = (self.bits >> skip).trailing_ones();
        self.bits &= !(u64::MAX >> (64 - count) << skip);
        (self.n + u64::from(skip), u64::from(count))
    }

    /// Place of the first, where there is one.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.n + u64::from(self.bits.trailing_zeros())
    }

    /// Place of the last, where there is one.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.n + 63 - u64::from(self.bits.leading_zeros())
    }

    /// Take those at places up to `last`.
    pub(super) fn take_until(&mut self, last: u64) -> Self {
        let reach = last.checked_sub(self.n);
        let bits =
            reach.map_or(0, |reach| if reach >= 63 { self.bits } else { self.bits & ((2 << reach) - 1) });
        self.bits &= !bits;
        Self { n: self.n, bits }
    }
}

/// The cells of `trains` in the order of their `pieces`, run by run. The trains are used up.
pub fn one_by_one<'a>(
    trains: &'a mut [CellTrain],
    pieces: &'a [TrainPiece],
) -> impl Iterator<Item = CellTrain> + 'a {
    let runs = pieces.iter().flat_map(|piece| piece.runs().map(|(n, count)| (n, count, piece.train)));
    runs.map(|(n, count, train)| {
        let train = &mut trains[train as usize];
        let last = train.base + train.pace.after(n + count - 1);
        let cells = CellTrain { n, count, last, ..*train };
        train.take(count);
        cells
    })
}
