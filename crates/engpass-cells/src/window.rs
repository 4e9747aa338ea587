//! The part of a run that counts.

use super::CellTrain;

/// The part of a run that counts: after `from` (everything when it is `None`), up to and including `end`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Picoseconds; what happens at it does not count.
    pub from: Option<u64>,
    /// Picoseconds; what happens at it counts.
    pub end: u64,
}

impl Window {
    /// Whether what happens at an instant counts.
    #[inline]
    pub fn holds(&self, at: u64) -> bool {
        self.from.is_none_or(|from| at > from) && at <= self.end
    }

    /// Whether a transmission from `begin` to `end` lies in it as a whole, to the picosecond.
    #[inline]
    pub fn holds_all(&self, begin: u64, end: u64) -> bool {
        end <= self.end && self.from.is_none_or(|from| begin >= from)
    }

    /// The same with everything before it.
    pub fn with_warmup(self) -> Self {
        Self { from: None, ..self }
    }

    /// How many of `cells` lie in the window when each is `shift` later.
    #[inline]
    pub fn count(&self, cells: &CellTrain, shift: u64) -> u64 {
        let last = cells.last + shift;
        // They stand at their base or later.
        if self.from.is_none_or(|from| cells.base + shift > from) && last <= self.end {
            return cells.count;
        }
        if self.from.is_some_and(|from| last <= from) {
            return 0;
        }
        self.count_cut(cells, shift)
    }

    fn count_cut(&self, cells: &CellTrain, shift: u64) -> u64 {
        let after = |instant: u64| {
            // Cells that stand later than `instant`.
            cells.count - instant.checked_sub(shift).map_or(0, |instant| cells.count_until(instant))
        };
        self.from.map_or(cells.count, after) - after(self.end)
    }
}
