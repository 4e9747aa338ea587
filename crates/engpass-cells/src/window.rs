//! The measurement window of a run.

use super::CellTrain;

/// The measured part of a run: after `from` (from the start if it is `None`), up to and including `end`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Begin in picoseconds, excluded.
    pub from: Option<u64>,
    /// End in picoseconds, included.
    pub end: u64,
}

impl Window {
    /// Returns whether the instant `at` lies in the window.
    #[inline]
    pub fn holds(&self, at: u64) -> bool {
        self.from.is_none_or(|from| at > from) && at <= self.end
    }

    /// Returns whether a transmission from `begin` to `end`, in picoseconds, lies completely in the window.
    #[inline]
    pub fn holds_all(&self, begin: u64, end: u64) -> bool {
        end <= self.end && self.from.is_none_or(|from| begin >= from)
    }

    /// Returns the window extended by the warm-up before it.
    pub fn with_warmup(self) -> Self {
        Self { from: None, ..self }
    }

    /// Returns how many of `cells` lie in the window if `shift` picoseconds are added to the instant of each.
    #[inline]
    pub fn count(&self, cells: &CellTrain, shift: u64) -> u64 {
        let last = cells.last + shift;
        // The first cell is not before the train's base.
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
            // Number of cells of the train later than `instant`.
            cells.count - instant.checked_sub(shift).map_or(0, |instant| cells.count_until(instant))
        };
        self.from.map_or(cells.count, after) - after(self.end)
    }
}
