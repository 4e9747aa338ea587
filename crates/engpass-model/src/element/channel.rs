//! Trains of cells on their way to a queue.

use std::collections::VecDeque;

use super::{FrameId, GENERATORS, Generator, VcId};
use crate::time::{Pace, Stepper};

/// Cells of one frame that follow each other at a constant pace: cell `k` of the record, from 0, stands at `base +
/// pace.after(n + k)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
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
    pub frame: FrameId,
    /// Place of the first cell in its frame.
    pub cell: u32,
    /// Cells of the whole frame.
    pub of: u16,
    /// Low priority (I.361 section 2.2.5): CLP = 1.
    pub clp: bool,
    /// They met a long queue (I.371; explicit forward congestion indication).
    pub efci: bool,
}

impl Cells {
    /// Whether a generator made them: every cell is a frame of its own.
    #[inline]
    pub fn are_generated(&self) -> bool {
        self.frame >= GENERATORS
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

    /// When cell number `k` of them stands, from 0.
    pub fn nth(&self, k: u64) -> u64 {
        if k + 1 == self.count { self.last } else { self.base + self.pace.after(self.n + k) }
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

/// Trains that arrive at one queue from one transmitter, in order of time.
#[derive(Clone, Debug)]
pub struct Channel {
    queue: VecDeque<Cells>,
    /// Walks the cells of the front record, if it has more than one.
    walk: Stepper,
    /// The pace of the walk.
    pace: Pace,
    /// Arrival of the first cell that was not taken; `u64::MAX` when none is announced.
    head: u64,
    /// Arrival of the last cell that was announced.
    last: u64,
    generator: Option<Generator>,
}

impl Channel {
    /// An empty channel; most of its records will be at `usual` pace.
    pub fn new(usual: Pace) -> Self {
        let walk = Stepper::new(usual);
        Self { pace: usual, queue: VecDeque::new(), walk, head: u64::MAX, last: 0, generator: None }
    }

    /// A channel that a generator fills for ever: its cells need no announcement.
    pub fn generated(generator: Generator) -> Self {
        let pace = generator.pace();
        let mut channel = Self { generator: Some(generator), ..Self::new(pace) };
        channel.refill();
        channel
    }

    /// Whether all cells of this channel are known in advance.
    pub fn is_generated(&self) -> bool {
        self.generator.is_some()
    }

    /// Whether a generator fills it whose cells are evenly spaced from the first to the last.
    pub fn is_even(&self) -> bool {
        self.generator.as_ref().is_some_and(Generator::is_even)
    }

    /// The least time between two cells of one record of its generator, in picoseconds; 0 without one.
    pub fn generated_pace(&self) -> u64 {
        self.generator.as_ref().map_or(0, |generator| generator.pace().at_least())
    }

    /// Announce cells, which come after all that were announced before.
    #[inline]
    pub fn announce(&mut self, cells: Cells) {
        debug_assert_eq!(cells.last, cells.base + cells.pace.after(cells.n + cells.count - 1));
        self.last = cells.last;
        match self.queue.back_mut() {
            Some(back) if back.goes_on_with(&cells) => {
                let single = back.count == 1;
                back.extend(&cells);
                let front = *back;
                if single && self.queue.len() == 1 {
                    // The walk has not stood on a record of one cell.
                    self.open(front);
                }
            }
            Some(_) => self.queue.push_back(cells),
            None => {
                self.queue.push_back(cells);
                self.open(cells);
            }
        }
    }

    /// Arrival of the next cell, `u64::MAX` when none is announced.
    #[inline]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Arrival of the last announced cell; everything later is still open.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The record whose first cell is the next one.
    ///
    /// # Panics
    /// When nothing is announced.
    #[inline]
    pub fn front(&self) -> Cells {
        *self.queue.front().expect("a channel with a head has a record")
    }

    /// Take the cells of the front record that arrive at or before `until`: how many.
    pub fn take_front_until(&mut self, until: u64) -> u64 {
        let count = self.front_until(until);
        self.take_many(count);
        count
    }

    /// Take the next `count` cells, at most those of the front record.
    pub fn take_many(&mut self, count: u64) {
        let front = self.queue.front_mut().expect("a channel with a head has a record");
        front.n += count;
        front.count -= count;
        if !front.are_generated() {
            front.cell += count as u32;
        }
        if front.count > 0 {
            let front = *front;
            self.open(front);
        } else {
            self.next_record();
        }
    }

    /// Take the cells of the front record that arrive at or before `until`, at least one, calling `each` with the
    /// arrival of every one.
    ///
    /// # Panics
    /// When nothing is announced.
    #[inline]
    pub fn take_until(&mut self, until: u64, mut each: impl FnMut(u64)) {
        let front = self.queue.front_mut().expect("a channel with a head has a record");
        let mut taken = 0;
        let mut head = self.head;
        let more = loop {
            each(head);
            taken += 1;
            if taken == front.count {
                break false;
            }
            self.walk.step();
            head = front.base + self.walk.after();
            if head > until {
                break true;
            }
        };
        front.n += taken;
        front.count -= taken;
        if !front.are_generated() {
            front.cell += taken as u32;
        }
        if more {
            self.head = head;
        } else {
            self.next_record();
        }
    }

    /// How many cells of the front record arrive at or before `until`.
    pub fn front_until(&self, until: u64) -> u64 {
        if until < self.head || self.queue.is_empty() {
            return 0;
        }
        let front = self.front();
        // `ended_within` counts units 1, 2, …; the unit 0 stands at the base itself.
        if until >= front.last {
            return front.count;
        }
        let last = front.pace.ended_within(until - front.base);
        (last + 1).saturating_sub(front.n).min(front.count)
    }

    fn next_record(&mut self) {
        self.queue.pop_front();
        match self.queue.front() {
            Some(front) => {
                let front = *front;
                self.open(front);
            }
            None => {
                self.head = u64::MAX;
                self.refill();
            }
        }
    }

    fn refill(&mut self) {
        if let Some(cells) = self.generator.as_mut().and_then(Generator::next_cells) {
            self.announce(cells);
        }
    }

    fn open(&mut self, front: Cells) {
        if front.count == 1 {
            self.head = front.last;
            return;
        }
        if self.pace != front.pace {
            self.pace = front.pace;
            self.walk = Stepper::new(front.pace);
        }
        self.walk.seek(front.n);
        self.head = front.base + self.walk.after();
    }
}

/// The cells of an evenly generated channel, taken one by one or many at once, outside of it.
#[derive(Clone, Debug)]
pub(super) struct Even {
    pub(super) cells: Cells,
    walk: Stepper,
    /// Arrival of the next cell, `u64::MAX` when there is none.
    pub(super) head: u64,
}

/// A walk along the cells of an [`Even`] that keeps no count.
pub(super) struct EvenWalk {
    walk: Stepper,
    base: u64,
    last: u64,
}

impl EvenWalk {
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
}

impl Even {
    /// A walk from the next cell on.
    #[inline]
    pub(super) fn walk(&self) -> EvenWalk {
        // Without cells the walk stands behind the last one.
        let last = if self.cells.count > 0 { self.cells.last } else { 0 };
        EvenWalk { walk: self.walk.clone(), base: self.cells.base, last }
    }

    /// The walk has taken `count` cells.
    #[inline]
    pub(super) fn walked(&mut self, walk: EvenWalk, count: u64) {
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
    pub(super) fn even(&self) -> Option<Even> {
        let cells = *self.queue.front()?;
        let mut walk = Stepper::new(cells.pace);
        walk.seek(cells.n);
        Some(Even { cells, walk, head: self.head })
    }

    /// Take the cells that have been taken from `even`.
    pub(super) fn set_even(&mut self, even: Even) {
        if even.cells.count == 0 {
            self.queue.clear();
        } else if let Some(front) = self.queue.front_mut() {
            *front = even.cells;
        }
        self.head = even.head;
        (self.walk, self.pace) = (even.walk, even.cells.pace);
    }
}

/// The channels of one queue, in the order that breaks ties.
#[derive(Debug)]
pub struct Inputs<'a>(&'a mut [Channel]);

impl<'a> Inputs<'a> {
    /// A queue's channels.
    pub fn new(channels: &'a mut [Channel]) -> Self {
        Self(channels)
    }

    /// The channel in this place.
    pub(super) fn channel(&mut self, index: usize) -> &mut Channel {
        &mut self.0[index]
    }

    /// The channel with the earliest next cell (the first of several), and until when, at most, it stays the earliest.
    #[inline]
    pub fn earliest(&mut self) -> Option<(&mut Channel, u64)> {
        self.earliest_but(usize::MAX)
    }

    /// The same among all channels but the one in place `but`.
    #[inline]
    pub(super) fn earliest_but(&mut self, but: usize) -> Option<(&mut Channel, u64)> {
        let mut best = usize::MAX;
        let mut head = u64::MAX;
        let mut until = u64::MAX;
        for (index, channel) in self.0.iter().enumerate() {
            let next = channel.head();
            if index == but {
                continue;
            }
            if next < head {
                // The channel before wins a tie against this one: it must be overtaken strictly.
                until = head.saturating_sub(1);
                (best, head) = (index, next);
            } else if next <= until {
                until = next;
            }
        }
        (best != usize::MAX).then(|| (&mut self.0[best], until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(base: u64, n: u64, count: u64) -> Cells {
        let pace = Pace::new(25, 10);
        let last = base + pace.after(n + count - 1);
        Cells {
            base,
            n,
            pace,
            count,
            last,
            vc: 0,
            frame: 1,
            cell: n as u32,
            of: 100,
            clp: false,
            efci: false,
        }
    }

    #[test]
    fn a_channel_walks_its_records() {
        let mut channel = Channel::new(Pace::new(25, 10));
        channel.announce(cells(100, 0, 3));
        channel.announce(cells(100, 3, 1));
        channel.announce(cells(200, 0, 1));
        let mut seen = Vec::new();
        while channel.head() != u64::MAX {
            channel.take_until(u64::MAX, |at| seen.push(at));
        }
        assert_eq!(seen, [100, 103, 105, 108, 200]);
        assert_eq!(channel.last(), 200);
    }

    #[test]
    fn many_at_once_equal_one_by_one() {
        for until in 90..130 {
            let mut channel = Channel::new(Pace::new(25, 10));
            channel.announce(cells(100, 2, 6));
            let count = channel.front_until(until);
            let mut one_by_one = channel.clone();
            let mut seen = 0;
            if one_by_one.head() <= until {
                one_by_one.take_until(until, |at| {
                    assert!(at <= until);
                    seen += 1;
                });
            }
            assert_eq!(seen, count);
            assert!(one_by_one.head() > until);
            if count > 0 {
                channel.take_many(count);
                assert_eq!(channel.head(), one_by_one.head());
            }
        }
    }

    #[test]
    fn ties_go_to_the_first_channel() {
        let pace = Pace::new(25, 10);
        let mut channels = [Channel::new(pace), Channel::new(pace), Channel::new(pace)];
        channels[0].announce(cells(50, 0, 1));
        channels[1].announce(cells(20, 0, 9));
        channels[2].announce(cells(30, 0, 1));
        let mut inputs = Inputs::new(&mut channels);
        let (channel, until) = inputs.earliest().unwrap();
        // The second may go on to 30 (it wins the tie against the third) but must stop before 50.
        assert_eq!((channel.head(), until), (20, 30));
        let mut inputs = Inputs::new(&mut channels[..2]);
        assert_eq!(inputs.earliest().unwrap().1, 49);
    }
}
