//! Periodic cells: the evenly spaced cells of a generator, outside of their channel.

use engpass_model::time::{Leap, Stepper};

use super::{CellTrain, Channel};

/// The remaining cells of a channel with evenly spaced cells, to be taken one by one or many at once.
#[derive(Clone, Debug)]
pub(super) struct PeriodicCells {
    pub(super) cells: CellTrain,
    walk: Stepper,
    /// Arrival of the next cell; `u64::MAX` if there is none.
    pub(super) head: u64,
}

/// A cursor over [`PeriodicCells`]. It does not count the cells.
pub(super) struct PeriodicCursor {
    walk: Stepper,
    base: u64,
    last: u64,
}

impl PeriodicCursor {
    /// Returns the arrival of the cell at the cursor; `u64::MAX` behind the last cell.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        let at = self.base + self.walk.after();
        if at <= self.last { at } else { u64::MAX }
    }

    #[inline]
    pub(super) fn step(&mut self) {
        self.walk.step();
    }

    /// Moves the cursor over several cells, which must all exist.
    #[inline]
    pub(super) fn leap(&mut self, by: Leap) {
        self.walk.leap(by);
    }

    /// Returns the arrival of the generator's last cell; 0 if no cells remain.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.last
    }
}

impl PeriodicCells {
    /// Returns a cursor at the next cell.
    #[inline]
    pub(super) fn walk(&self) -> PeriodicCursor {
        // Without cells the cursor is behind the last one.
        let last = if self.cells.count > 0 { self.cells.last } else { 0 };
        PeriodicCursor { walk: self.walk.clone(), base: self.cells.base, last }
    }

    /// Takes the `count` cells that the cursor has passed; the caller has counted them.
    #[inline]
    pub(super) fn walked(&mut self, walk: PeriodicCursor, count: u64) {
        self.cells.n += count;
        self.cells.count -= count;
        self.head = walk.head();
        self.walk = walk.walk;
    }

    pub(super) fn skip(&mut self, count: u64) {
        self.cells.n += count;
        self.cells.count -= count;
        self.walk.seek(self.cells.n);
        self.head = if self.cells.count > 0 { self.cells.base + self.walk.after() } else { u64::MAX };
    }

    #[inline]
    pub(super) fn take_next(&mut self) {
        self.cells.n += 1;
        self.cells.count -= 1;
        self.walk.step();
        self.head = if self.cells.count > 0 { self.cells.base + self.walk.after() } else { u64::MAX };
    }

    /// Takes all cells that arrive before `before`; there must be at least one. Returns their number and the arrival of the last one.
    pub(super) fn take_before(&mut self, before: u64) -> (u64, u64) {
        let ended = self.cells.pace.units_within(before - 1 - self.cells.base);
        let count = (ended + 1 - self.cells.n).min(self.cells.count);
        let last = self.cells.base + self.cells.pace.after(self.cells.n + count - 1);
        self.skip(count);
        (count, last)
    }
}

impl Channel {
    /// Returns the remaining cells of the channel, if there are any; an evenly spaced generator must fill it. The channel keeps them until [`Self::set_even`].
    pub(super) fn even(&self) -> Option<PeriodicCells> {
        let cells = self.evenly()?;
        let mut walk = Stepper::new(cells.pace);
        walk.seek(cells.n);
        Some(PeriodicCells { cells, walk, head: self.head() })
    }

    /// Gives the channel back the cells that are left after some of `even` were taken.
    pub(super) fn set_even(&mut self, even: PeriodicCells) {
        self.replace(even.cells, (even.walk, even.head));
    }
}
