//! A walk along the cells of a train in a tight loop.

use super::super::Cells;
use super::super::cells::Pattern;
use super::Channel;
use crate::time::{Leap, Pace, Stepper};

impl Channel {
    /// Stand at the next cell, to walk along the cells of its train. What was walked is told to the channel at the end.
    #[inline]
    pub(in crate::element) fn walk(&mut self) -> Walk {
        let Cells { base, n, pace, count, .. } = self.current;
        if count == 1 && self.rest == 0 {
            // The walk has not stood on a record of one cell.
            self.walk.seek_at(pace, n);
        }
        self.leaps.at_least_one(&self.walk);
        let (head, rounding, den) = (base + self.walk.after(), self.walk.rounding(), self.walk.den());
        let mut walk = Walk { head, base, rounding, den, bits: 0, n, behind: 0, held: 0 };
        walk.knows_run(n, count);
        walk
    }

    /// The walk has come to the end of what it knew: go on with what comes next of the same train. Behind its last cell the walk's head
    /// is at the end of time.
    #[inline(never)]
    pub(in crate::element) fn walk_on(&mut self, walk: &mut Walk) {
        let (place, pace) = (walk.n, self.current.pace);
        if walk.bits != 0 {
            // The next cell it knows is further than a leap.
            walk.leap_to(walk.bits.trailing_zeros(), pace);
            return;
        }
        if !self.tell_more(walk) {
            return;
        }
        match self.leaps.over(walk.n - place, pace) {
            Some(leap) => walk.leap(leap),
            None => walk.stand(pace),
        }
    }

    /// The same without an instant: where the next cell stands is not asked. Whether there is one.
    #[inline(always)]
    pub(in crate::element) fn tell_more(&mut self, walk: &mut Walk) -> bool {
        if walk.behind == 0 && self.rest == 0 {
            walk.head = u64::MAX;
            return false;
        }
        self.tell_rest(walk)
    }

    /// The same where it may be that there is more.
    #[inline(never)]
    fn tell_rest(&mut self, walk: &mut Walk) -> bool {
        self.is_rest_without(std::mem::take(&mut walk.held));
        if walk.behind > 0 {
            self.pass_over(self.current.count - walk.behind);
            walk.knows_run(self.current.n, walk.behind);
        } else if self.next_is_of_train() {
            self.pass_over(self.current.count);
            let (pattern, count) = if self.pattern.any() {
                let pattern = std::mem::take(&mut self.pattern);
                (pattern, pattern.count())
            } else {
                let piece = self.pieces.pop_front().expect("a train with a rest has a piece");
                (piece.as_pattern(), piece.count())
            };
            if pattern.any() {
                // All of it at once. It is still a part of the rest.
                (self.current.n, self.current.count) = (pattern.first(), count);
                (walk.n, walk.held) = (self.current.n, self.current.count);
                walk.bits = pattern.bits >> pattern.bits.trailing_zeros();
                self.leaps.all(self.current.pace);
            } else {
                (self.current.n, self.current.count) = (pattern.n, count);
                walk.knows_run(pattern.n, count);
                self.is_rest_without(count);
            }
        } else {
            walk.head = u64::MAX;
            return false;
        }
        true
    }

    /// Whether the last cell walked past ends its frame. All that come behind it are of others.
    pub(in crate::element) fn has_ended_frame(&self, walk: &Walk) -> bool {
        // Cells of what the walk knew are not taken yet.
        let Cells { cell, count, of, .. } = self.current;
        walk.bits == 0
            && walk.behind == 0
            && (self.current.are_generated() || u64::from(cell) + count == u64::from(of))
    }

    /// Whether what comes behind a walk that has ended is of the same generator and looks the same, if there is something.
    pub(in crate::element) fn goes_on(&self) -> bool {
        let next =
            self.pieces.front().map(|next| &self.trains[next.train().wrapping_sub(self.first) as usize]);
        self.current.are_generated()
            && next.map_or(self.generator.is_some(), |next| self.current.comes_before(next))
    }

    /// The walk has come to the end of its train: it goes along the next one, if that is of the same generator.
    #[inline(never)]
    pub(in crate::element) fn walk_next(&mut self, walk: &mut Walk) -> Next {
        if !self.goes_on() {
            return Next::None;
        }
        let pace = self.current.pace;
        if self.is_generated() && self.pieces.is_empty() {
            let any = self.draw();
            if any && self.current.pace == pace {
                let Cells { base, n, count, .. } = self.current;
                (walk.base, walk.head, walk.rounding) = (base, base, 0);
                walk.knows_run(n, count);
                if n > 0 {
                    walk.stand(pace);
                }
                return Next::Alike;
            }
            if any {
                self.open();
            } else {
                self.pass_over(self.current.count);
                self.head = u64::MAX;
            }
        } else {
            self.walked(walk);
        }
        if self.head == u64::MAX {
            *walk = Walk::nowhere();
            return Next::None;
        }
        *walk = self.walk();
        if self.current.pace == pace { Next::Alike } else { Next::Other }
    }

    /// The cells were taken up to where the walk stands.
    #[inline]
    pub(in crate::element) fn walked(&mut self, walk: &Walk) {
        if walk.bits == 0 {
            self.pass_over(self.current.count);
            self.is_rest_without(walk.held);
            self.next_piece();
            return;
        }
        let mut pattern = Pattern { n: walk.n, bits: walk.bits };
        let (n, count) = pattern.take_run();
        let count = count + walk.behind;
        if walk.held > 0 {
            // It knew a whole pattern: what is left of it is behind a run again.
            let behind = pattern.count();
            self.pass_over(self.current.count - count - behind);
            self.is_rest_without(walk.held - behind);
            self.pattern = pattern;
        } else {
            self.pass_over(self.current.count - count);
        }
        (self.current.n, self.current.count) = (n, count);
        self.walk.stand(walk.head - self.current.base, walk.rounding);
        self.head = walk.head;
    }
}

/// What comes behind a train that has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::element) enum Next {
    /// None of the same generator.
    None,
    /// One at the same pace.
    Alike,
    /// One at another pace.
    Other,
}

/// Steps over so many places at once, from 1 on.
#[derive(Clone, Debug, Default)]
pub(in crate::element) struct Leaps([Leap; Leaps::REACH], Option<Pace>);

impl Leaps {
    /// Steps over more are not known.
    pub(in crate::element) const REACH: usize = 7;

    /// Know the step over one place of `walk`.
    #[inline]
    fn at_least_one(&mut self, walk: &Stepper) {
        if self.0[0] != walk.unit() {
            (self.0[0], self.1) = (walk.unit(), None);
        }
    }

    /// The step over so many places, if it is known.
    #[inline]
    fn over(&self, places: u64, pace: Pace) -> Option<Leap> {
        let known = places == 1 || places <= Self::REACH as u64 && self.1 == Some(pace);
        known.then(|| self.0[places as usize - 1])
    }

    /// Know all steps.
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

/// A walk along the cells of a channel in a tight loop, up to the end of a train. It knows a window of 64 places.
#[derive(Clone)]
pub(in crate::element) struct Walk {
    /// Arrival of the next cell; `u64::MAX` behind the last of what can be walked.
    pub(in crate::element) head: u64,
    /// As [`Cells::base`].
    base: u64,
    pub(in crate::element) rounding: u64,
    pub(in crate::element) den: u64,
    /// Cells from the next one on, itself in the lowest bit; none when [`Channel::walk_on`] is to be asked.
    pub(in crate::element) bits: u64,
    /// Place of the next cell, or of the last one when there is none.
    pub(in crate::element) n: u64,
    /// Cells that follow behind the window without a gap.
    behind: u64,
    /// Cells of the window that its channel takes for such as are behind the current run.
    held: u64,
}

impl Walk {
    /// A walk along nothing.
    pub(in crate::element) fn nowhere() -> Self {
        Self { head: u64::MAX, base: 0, rounding: 0, den: 1, bits: 0, n: 0, behind: 0, held: 0 }
    }

    /// The next `count` cells, from place `n` on, follow each other without a gap.
    #[inline]
    fn knows_run(&mut self, n: u64, count: u64) {
        let window = count.min(64);
        (self.n, self.bits, self.behind) = (n, u64::MAX >> (64 - window), count - window);
    }

    /// Go on to the cell so many places further, which it knows.
    #[inline]
    fn leap_to(&mut self, places: u32, pace: Pace) {
        self.n += u64::from(places);
        self.bits >>= places;
        self.stand(pace);
    }

    /// Those of the next cells whose bits are set are taken, all up to the last of them. Where it knows of none behind them it stands at that one.
    #[inline(always)]
    pub(in crate::element) fn pass(&mut self, taken: u64, pace: Pace) {
        self.leave(taken);
        self.stand(pace);
    }

    /// As [`Self::pass`] without an instant: by how many places.
    #[inline(always)]
    fn leave(&mut self, taken: u64) -> u64 {
        let left = self.bits & !taken;
        let next = if left == 0 { 63 - taken.leading_zeros() } else { left.trailing_zeros() };
        self.n += u64::from(next);
        self.bits = left >> next;
        next.into()
    }

    /// How many cells come next without a gap.
    #[inline(always)]
    pub(in crate::element) fn run(&self) -> u64 {
        u64::from(self.bits.trailing_ones()) + self.behind
    }

    /// Those of the next cells whose bits are set are taken, all up to the last of them, and the window is filled with what follows without a
    /// gap. By how many places it goes on; when its next cell stands is not asked.
    #[inline(always)]
    pub(in crate::element) fn take(&mut self, taken: u64) -> u64 {
        if self.behind > 0 { self.take_run(taken.count_ones().into()) } else { self.leave(taken) }
    }

    /// The same of the next `count` cells, between which there is no gap.
    #[inline(always)]
    pub(in crate::element) fn take_run(&mut self, count: u64) -> u64 {
        if self.behind == 0 {
            return self.leave(u64::MAX >> (64 - count));
        }
        let left = self.run() - count;
        if left == 0 {
            // It stands at the last one.
            (self.n, self.bits, self.behind) = (self.n + count - 1, 0, 0);
            return count - 1;
        }
        self.knows_run(self.n + count, left);
        count
    }

    #[inline(always)]
    fn leap(&mut self, by: Leap) {
        (self.head, self.rounding) = by.from(self.head, self.rounding, self.den);
    }

    /// Stand at the next cell by dividing.
    #[inline]
    pub(in crate::element) fn stand(&mut self, pace: Pace) {
        let (after, rounding) = pace.rounded_after(self.n);
        (self.head, self.rounding) = (self.base + after, rounding);
    }

    /// Go on to the next cell of its train. Whether there is one.
    #[inline(always)]
    pub(in crate::element) fn step(&mut self, channel: &mut Channel) -> bool {
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

    /// Whether it has come to the end of what it knew.
    #[inline(always)]
    pub(in crate::element) fn is_through(&self) -> bool {
        self.bits == 0 && self.head != u64::MAX
    }

    /// Go on behind the last cell that it knew. Whether there is one.
    #[inline(always)]
    pub(in crate::element) fn go_on(&mut self, channel: &mut Channel) -> bool {
        if self.bits == 0 && self.behind == 0 && channel.rest == 0 {
            self.head = u64::MAX;
            return false;
        }
        channel.walk_on(self);
        self.head != u64::MAX
    }
}
