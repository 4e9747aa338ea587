//! Pieces of cell trains: consecutive cells, and cells with gaps between them.

use engpass_model::cell_train::CellTrain;

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
