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
        let mut walk = Walk { head, rounding, den, bits: 0, at: 0, n, behind: 0, held: 0 };
        walk.knows_run(n, count);
        walk
    }

    /// The pace of the train that is walked along, and a step at it.
    pub(in crate::element) fn steps(&self) -> (Pace, Leap) {
        (self.current.pace, self.leaps.0[1])
    }

    /// The walk has come to the end of what it knew: go on with what comes next of the same train. Behind its last cell the walk's head
    /// is at the end of time.
    #[inline(never)]
    pub(in crate::element) fn walk_on(&mut self, mut walk: Walk) -> Walk {
        let place = walk.place();
        if walk.bits != 0 {
            // The next cell it knows is further than a leap.
            walk.at = walk.bits.trailing_zeros();
            walk.seek(self.current.base, self.current.pace);
            return walk;
        }
        self.is_rest_without(std::mem::take(&mut walk.held));
        if walk.behind > 0 {
            self.pass_over(self.current.count - walk.behind);
            walk.knows_run(self.current.n, walk.behind);
        } else if self.next_is_of_train() {
            self.pass_over(self.current.count);
            if !self.pattern.any() {
                let piece = self.pieces.pop_front().expect("a train with a rest has a piece");
                self.pattern = piece.as_pattern();
                (self.current.n, self.current.count) = (piece.first(), piece.count());
            }
            if self.pattern.any() {
                // All of it at once. It is still a part of the rest.
                let pattern = std::mem::take(&mut self.pattern);
                (self.current.n, self.current.count) = (pattern.first(), pattern.count());
                (walk.n, walk.held) = (self.current.n, self.current.count);
                (walk.bits, walk.at) = (pattern.bits >> pattern.bits.trailing_zeros(), 0);
                self.leaps.all(self.current.pace);
            } else {
                walk.knows_run(self.current.n, self.current.count);
                self.is_rest_without(self.current.count);
            }
        } else {
            walk.head = u64::MAX;
            return walk;
        }
        let Cells { base, pace, .. } = self.current;
        match self.leaps.over(walk.n - place, pace) {
            Some(leap) => walk.leap(leap),
            None => walk.seek(base, pace),
        }
        walk
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

    /// The cells were taken up to where the walk stands.
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

/// Steps over so many places at once, from 0 on.
#[derive(Clone, Debug, Default)]
pub(in crate::element) struct Leaps([Leap; Leaps::REACH], Option<Pace>);

impl Leaps {
    /// Steps over this many are not known.
    pub(in crate::element) const REACH: usize = 8;

    /// Know the step over one place of `walk`.
    #[inline]
    fn at_least_one(&mut self, walk: &Stepper) {
        if self.0[1] != walk.unit() {
            (self.0[1], self.1) = (walk.unit(), None);
        }
    }

    /// The step over so many places, if it is known.
    #[inline]
    fn over(&self, places: u64, pace: Pace) -> Option<Leap> {
        let known = places == 1 || places < Self::REACH as u64 && self.1 == Some(pace);
        known.then(|| self.0[places as usize])
    }

    /// Know all steps.
    fn all(&mut self, pace: Pace) {
        if self.1 != Some(pace) {
            (self.0, self.1) = (std::array::from_fn(|units| pace.leap(units as u64)), Some(pace));
        }
    }
}

/// A walk along the cells of a channel in a tight loop, up to the end of a train. It knows a window of 64 places.
#[derive(Clone)]
pub(in crate::element) struct Walk {
    /// Arrival of the next cell; `u64::MAX` behind the last of what can be walked.
    pub(in crate::element) head: u64,
    rounding: u64,
    den: u64,
    /// Cells from the next one on, that of place `n` in the lowest bit; none when [`Channel::walk_on`] is to be asked.
    pub(in crate::element) bits: u64,
    /// Bit of the next cell, or of the last one when there is none.
    at: u32,
    n: u64,
    /// Cells that follow behind the window without a gap.
    behind: u64,
    /// Cells of the window that its channel takes for such as are behind the current run.
    held: u64,
}

impl Walk {
    /// A walk along nothing.
    pub(in crate::element) fn nowhere() -> Self {
        Self { head: u64::MAX, rounding: 0, den: 1, bits: 0, at: 0, n: 0, behind: 0, held: 0 }
    }

    /// The next `count` cells, from place `n` on, follow each other without a gap.
    #[inline]
    fn knows_run(&mut self, n: u64, count: u64) {
        let window = count.min(64);
        (self.n, self.at, self.bits, self.behind) = (n, 0, u64::MAX >> (64 - window), count - window);
    }

    /// Place of the next cell, or of the last one when there is none.
    #[inline]
    pub(in crate::element) fn place(&self) -> u64 {
        self.n + u64::from(self.at)
    }

    /// Which of the places from the next cell's on, the lowest bit, are known to be of cells.
    #[inline]
    pub(in crate::element) fn ahead(&self) -> u64 {
        self.bits >> self.at
    }

    /// Go on to the cell so many places further, which it knows.
    #[inline]
    pub(in crate::element) fn leap_to(&mut self, places: u32, unit: Leap) {
        self.at += places;
        self.bits = self.bits >> self.at << self.at;
        (self.head, self.rounding) = unit.many_from(u64::from(places), self.head, self.rounding, self.den);
    }

    /// When the cell so many places further stands.
    #[inline]
    pub(in crate::element) fn after(&self, places: u64, unit: Leap) -> u64 {
        unit.many_from(places, self.head, self.rounding, self.den).0
    }

    #[inline(always)]
    fn leap(&mut self, by: Leap) {
        (self.head, self.rounding) = by.from(self.head, self.rounding, self.den);
    }

    /// Stand at the next cell by dividing.
    #[cold]
    #[inline(never)]
    fn seek(&mut self, base: u64, pace: Pace) {
        let mut stepper = Stepper::new(pace);
        stepper.seek(self.place());
        (self.head, self.rounding) = (base + stepper.after(), stepper.rounding());
    }

    /// Go on to the next cell of its train. Whether there is one.
    #[inline(always)]
    pub(in crate::element) fn step(&mut self, channel: &mut Channel) -> bool {
        self.bits &= self.bits - 1;
        if self.bits != 0 {
            let at = self.bits.trailing_zeros();
            let over = (at - self.at) as usize;
            if let Some(leap) = channel.leaps.0.get(over) {
                self.at = at;
                self.leap(*leap);
                return true;
            }
        }
        // Only here it leaves the registers.
        *self = channel.walk_on(Self { ..*self });
        self.head != u64::MAX
    }
}
