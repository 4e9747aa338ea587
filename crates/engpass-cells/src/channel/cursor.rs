//! A cursor over the cells of a train, for tight loops.

use engpass_model::time::{Leap, Pace, Stepper};

use super::super::CellTrain;
use super::super::train_piece::Pattern;
use super::Channel;

impl Channel {
    /// Returns a cursor at the next cell of the current train. The cells stay in the channel until [`Self::walked`] removes those that the cursor has passed.
    #[inline]
    pub(crate) fn walk(&mut self) -> CellCursor {
        let CellTrain { base, n, pace, count, .. } = self.current;
        if count == 1 && self.rest == 0 {
            // `open` does not set the stepper for a record of one cell.
            self.walk.seek_at(pace, n);
        }
        self.leaps.at_least_one(&self.walk);
        let (head, rounding, den) = (base + self.walk.after(), self.walk.rounding(), self.walk.den());
        let mut walk = CellCursor { head, base, rounding, den, bits: 0, n, behind: 0, held: 0 };
        walk.set_window(n, count);
        walk
    }

    /// Moves a cursor that has reached the end of its window, or a gap longer than any stride, to the next cell of the same train. Its head is `u64::MAX`
    /// behind the last cell of the train.
    #[inline(never)]
    pub(crate) fn move_to_next_cell(&mut self, walk: &mut CellCursor) {
        let (place, pace) = (walk.n, self.current.pace);
        if walk.bits != 0 {
            // The next cell is in the window, but further away than any stride.
            walk.leap_to(walk.bits.trailing_zeros(), pace);
            return;
        }
        if walk.behind == 0 && self.rest == 0 {
            walk.head = u64::MAX;
            return;
        }
        if !self.load_window(walk) {
            return;
        }
        match self.leaps.over(walk.n - place, pace) {
            Some(leap) => walk.leap(leap),
            None => walk.stand(pace),
        }
    }

    /// Loads the next cells of the train into the window, without computing the instant of the first one. Returns false behind the last cell of the train.
    fn load_window(&mut self, walk: &mut CellCursor) -> bool {
        self.remove_from_rest(std::mem::take(&mut walk.held));
        if walk.behind > 0 {
            self.skip_in_current_run(self.current.count - walk.behind);
            walk.set_window(self.current.n, walk.behind);
        } else if self.next_is_of_train() {
            self.skip_in_current_run(self.current.count);
            let (pattern, count) = if self.pattern.any() {
                let pattern = std::mem::take(&mut self.pattern);
                (pattern, pattern.count())
            } else {
                let piece = self.pieces.pop_front().expect("a train with cells left has a piece");
                (piece.as_pattern(), piece.count())
            };
            if pattern.any() {
                // Loads the whole pattern. The channel still counts its cells as cells behind the current run.
                (self.current.n, self.current.count) = (pattern.first(), count);
                (walk.n, walk.held) = (self.current.n, self.current.count);
                walk.bits = pattern.bits >> pattern.bits.trailing_zeros();
                self.leaps.all(self.current.pace);
            } else {
                (self.current.n, self.current.count) = (pattern.n, count);
                walk.set_window(pattern.n, count);
                self.remove_from_rest(count);
            }
        } else {
            walk.head = u64::MAX;
            return false;
        }
        true
    }

    /// Returns whether the cursor has passed the last cell of a PDU, with no cell of this PDU left in its train.
    pub(crate) fn has_ended_frame(&self, walk: &CellCursor) -> bool {
        // Cells in the cursor's window are not taken yet.
        let CellTrain { cell, count, of, .. } = self.current;
        walk.bits == 0
            && walk.behind == 0
            && (self.current.are_generated() || u64::from(cell) + count == u64::from(of))
    }

    /// Returns whether the next train, if any, can follow in the same record: it is of the same generator and has the same CLP and EFCI.
    pub(crate) fn continues_train(&self) -> bool {
        let next =
            self.pieces.front().map(|next| &self.trains[next.train().wrapping_sub(self.first) as usize]);
        self.current.are_generated()
            && next.map_or(self.generator.is_some(), |next| self.current.comes_before(next))
    }

    /// Moves a cursor at the end of its train to the next train if that is of the same generator. Returns whether it did.
    #[inline(never)]
    pub(crate) fn move_to_next_train(&mut self, walk: &mut CellCursor) -> bool {
        if !self.continues_train() {
            return false;
        }
        let pace = self.current.pace;
        if self.is_generated() && self.pieces.is_empty() {
            let any = self.draw();
            if any && self.current.pace == pace {
                let CellTrain { base, n, count, .. } = self.current;
                (walk.base, walk.head, walk.rounding) = (base, base, 0);
                walk.set_window(n, count);
                if n > 0 {
                    walk.stand(pace);
                }
                return true;
            }
            if any {
                self.open();
            } else {
                self.skip_in_current_run(self.current.count);
                self.head = u64::MAX;
            }
        } else {
            self.walked(walk);
        }
        if self.head == u64::MAX {
            *walk = CellCursor::nowhere();
            return false;
        }
        *walk = self.walk();
        true
    }

    /// Removes from the channel the cells that the cursor has passed.
    #[inline]
    pub(crate) fn walked(&mut self, walk: &CellCursor) {
        if walk.bits == 0 {
            self.skip_in_current_run(self.current.count);
            self.remove_from_rest(walk.held);
            self.next_piece();
            return;
        }
        let mut pattern = Pattern { n: walk.n, bits: walk.bits };
        let (n, count) = pattern.take_run();
        let count = count + walk.behind;
        if walk.held > 0 {
            // The window held a whole pattern. The channel counts its remaining cells as cells behind the current run again.
            let behind = pattern.count();
            self.skip_in_current_run(self.current.count - count - behind);
            self.remove_from_rest(walk.held - behind);
            self.pattern = pattern;
        } else {
            self.skip_in_current_run(self.current.count - count);
        }
        (self.current.n, self.current.count) = (n, count);
        self.walk.stand(walk.head - self.current.base, walk.rounding);
        self.head = walk.head;
    }
}

/// Strides of a cursor over 1 to `REACH` positions, all at one pace; each avoids a division.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strides([Leap; Strides::REACH], Option<Pace>);

impl Strides {
    /// Longest stride that is kept, in positions.
    pub(crate) const REACH: usize = 7;

    /// Sets the stride over one position, at the pace of `walk`. Forgets the other strides if that pace is new.
    #[inline]
    fn at_least_one(&mut self, walk: &Stepper) {
        if self.0[0] != walk.unit() {
            (self.0[0], self.1) = (walk.unit(), None);
        }
    }

    /// Returns the stride over `places` positions, if it was computed for this pace.
    #[inline]
    fn over(&self, places: u64, pace: Pace) -> Option<Leap> {
        let known = places == 1 || places <= Self::REACH as u64 && self.1 == Some(pace);
        known.then(|| self.0[places as usize - 1])
    }

    /// Computes all strides for this pace, unless that was done.
    #[inline]
    fn all(&mut self, pace: Pace) {
        if self.1 != Some(pace) {
            self.learn(pace);
        }
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, pace: Pace) {
        (self.0, self.1) = (std::array::from_fn(|before| pace.leap(before as u64 + 1)), Some(pace));
    }
}

/// A cursor over the cells of a channel, up to the end of a train. It has a window of 64 positions.
#[derive(Clone)]
pub(crate) struct CellCursor {
    /// Arrival of the next cell; `u64::MAX` behind the last cell of the train.
    pub(crate) head: u64,
    /// Base of the train, as [`CellTrain::base`].
    base: u64,
    pub(crate) rounding: u64,
    pub(crate) den: u64,
    /// Bit mask of the cells in the window; the lowest bit is the next cell. 0 if [`Channel::move_to_next_cell`] must load the next cells.
    pub(crate) bits: u64,
    /// Position of the next cell, or of the last one if there is no next cell.
    pub(crate) n: u64,
    /// Number of consecutive cells behind the window, in the same run.
    behind: u64,
    /// Number of cells in the window that the channel still counts behind the current run.
    held: u64,
}

impl CellCursor {
    /// Returns a cursor without cells.
    pub(crate) fn nowhere() -> Self {
        Self { head: u64::MAX, base: 0, rounding: 0, den: 1, bits: 0, n: 0, behind: 0, held: 0 }
    }

    /// Sets the window to `count` consecutive cells from position `n` on.
    #[inline]
    fn set_window(&mut self, n: u64, count: u64) {
        let window = count.min(64);
        (self.n, self.bits, self.behind) = (n, u64::MAX >> (64 - window), count - window);
    }

    /// Moves the cursor to the cell `places` positions further, which is in the window.
    #[inline]
    fn leap_to(&mut self, places: u32, pace: Pace) {
        self.n += u64::from(places);
        self.bits >>= places;
        self.stand(pace);
    }

    #[inline(always)]
    fn leap(&mut self, by: Leap) {
        (self.head, self.rounding) = by.from(self.head, self.rounding, self.den);
    }

    /// Computes the arrival of the next cell by a division.
    #[inline]
    pub(crate) fn stand(&mut self, pace: Pace) {
        let (after, rounding) = pace.rounded_after(self.n);
        (self.head, self.rounding) = (self.base + after, rounding);
    }

    /// Moves the cursor to the next cell of the train. Returns false behind the last one.
    #[inline(always)]
    pub(crate) fn step(&mut self, channel: &mut Channel) -> bool {
        self.bits &= self.bits - 1;
        if self.bits != 0 {
            let over = self.bits.trailing_zeros();
            if let Some(leap) = channel.leaps.0.get(over as usize - 1) {
                self.n += u64::from(over);
                self.bits >>= over;
                self.leap(*leap);
                return true;
            }
        }
        self.go_on(channel)
    }

    /// Slow part of [`Self::step`]: moves the cursor to a cell behind the window or beyond any stride. Returns false behind the last cell of the train.
    #[inline(always)]
    pub(crate) fn go_on(&mut self, channel: &mut Channel) -> bool {
        if self.bits == 0 && self.behind == 0 && channel.rest == 0 {
            self.head = u64::MAX;
            return false;
        }
        channel.move_to_next_cell(self);
        self.head != u64::MAX
    }
}
