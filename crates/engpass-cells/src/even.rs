//! An even generator's cells, outside of their channel.

use engpass_model::time::{Leap, Stepper};

use super::{CellTrain, Channel};

/// The cells of an evenly generated channel, taken one by one or many at once, outside of it.
#[derive(Clone, Debug)]
pub(super) struct PeriodicCells {
    pub(super) cells: CellTrain,
    walk: Stepper,
    /// Arrival of the next cell, `u64::MAX` when there is none.
    pub(super) head: u64,
}

/// A walk along the cells of an [`PeriodicCells`] that keeps no count.
pub(super) struct PeriodicCursor {
    walk: Stepper,
    base: u64,
    last: u64,
}

impl PeriodicCursor {
    /// Arrival of the cell it stands at; `u64::MAX` behind the last one.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        let at = self.base + self.walk.after();
        if at <= self.last { at } else { u64::MAX }
    }

    /// Go on to the next cell.
    #[inline]
    pub(super) fn step(&mut self) {
        self.walk.step();
    }

    /// Go on by several cells, all of which there are.
    #[inline]
    pub(super) fn leap(&mut self, by: Leap) {
        self.walk.leap(by);
    }

    /// When the last cell comes.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.last
    }
}

impl PeriodicCells {
    /// A walk from the next cell on.
    #[inline]
    pub(super) fn walk(&self) -> PeriodicCursor {
        // Without cells the walk stands behind the last one.
        let last = if self.cells.count > 0 { self.cells.last } else { 0 };
        PeriodicCursor { walk: self.walk.clone(), base: self.cells.base, last }
    }

    /// The walk has taken `count` cells.
    #[inline]
    pub(super) fn walked(&mut self, walk: PeriodicCursor, count: u64) {
        self.cells.n += count;
        self.cells.count -= count;
        self.head = walk.head();
        self.walk = walk.walk;
    }

    /// Take the next `count` cells.
    pub(super) fn skip(&mut self, count: u64) {
        self.cells.n += count;
        self.cells.count -= count;
        self.walk.seek(self.cells.n);
        self.head = if self.cells.count > 0 { self.cells.base + self.walk.after() } else { u64::MAX };
    }

    /// Take the next cell.
    #[inline]
    pub(super) fn take(&mut self) {
        self.cells.n += 1;
        self.cells.count -= 1;
        self.walk.step();
        self.head = if self.cells.count > 0 { self.cells.base + self.walk.after() } else { u64::MAX };
    }

    /// Take all cells that arrive before `before`: how many, and when the last of them does.
    pub(super) fn take_before(&mut self, before: u64) -> (u64, u64) {
        let ended = self.cells.pace.ended_within(before - 1 - self.cells.base);
        let count = (ended + 1 - self.cells.n).min(self.cells.count);
        let last = self.cells.base + self.cells.pace.after(self.cells.n + count - 1);
        self.skip(count);
        (count, last)
    }
}

impl Channel {
    /// Look at the cells that an even generator has left.
    pub(super) fn even(&self) -> Option<PeriodicCells> {
        let cells = self.evenly()?;
        let mut walk = Stepper::new(cells.pace);
        walk.seek(cells.n);
        Some(PeriodicCells { cells, walk, head: self.head() })
    }

    /// Take the cells that have been taken from `even`.
    pub(super) fn set_even(&mut self, even: PeriodicCells) {
        self.replace(even.cells, (even.walk, even.head));
    }
}
