//! A channel: cell trains on their way to a queue.

mod cursor;

pub(super) use cursor::CellCursor;

use std::collections::VecDeque;

use engpass_model::time::{Pace, Stepper};

use super::train_piece::Pattern;
use super::{CellTrain, Generator, TrainPiece};
use cursor::Strides;

/// Initial capacity for pieces: about the number that a shared OC-3c line sends in 10 ms.
const PIECES: usize = 256;

/// Trains from one transmitter that arrive at one queue, in order of time.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Trains of which cells are still to be taken. A record has the position in the PDU of its train's next cell in `pieces`, and the number of its cells
    /// there. The record of the current train may be out of date.
    trains: VecDeque<CellTrain>,
    /// Number of the first train in `trains`. Trains are numbered in the order of their arrival, modulo 2^32.
    first: u32,
    /// Pieces behind the current one.
    pieces: VecDeque<TrainPiece>,
    /// Current run: the consecutive cells that come next; no cells if the channel is empty. Its `last` is the last instant of the whole train.
    current: CellTrain,
    /// Number of the current train.
    train: u32,
    /// Cells of the current piece behind the current run.
    pattern: Pattern,
    /// Number of cells of the current train behind the current run.
    rest: u64,
    /// Stepper at the next cell, if the current run has more than one cell.
    walk: Stepper,
    /// Strides over several positions, at the pace of the last cursor that met a pattern.
    leaps: Strides,
    /// Arrival of the next cell; `u64::MAX` if the channel is empty.
    head: u64,
    /// Arrival of the last cell that was added.
    last: u64,
    generator: Option<Generator>,
}

impl Channel {
    /// Returns an empty channel. Most of its trains will have the pace `usual`.
    pub fn new(usual: Pace) -> Self {
        Self {
            trains: VecDeque::new(),
            first: 0,
            pieces: VecDeque::new(),
            current: CellTrain::none(usual),
            train: 0,
            pattern: Pattern::default(),
            rest: 0,
            walk: Stepper::new(usual),
            leaps: Strides::default(),
            head: u64::MAX,
            last: 0,
            generator: None,
        }
    }

    /// Returns a channel that a generator fills: it draws cells when they are needed, and none are pushed.
    pub fn generated(generator: Generator) -> Self {
        let pace = generator.pace();
        let mut channel = Self { generator: Some(generator), ..Self::new(pace) };
        channel.refill();
        channel
    }

    /// Returns whether a generator fills the channel, so that all its cells are known in advance.
    pub fn is_generated(&self) -> bool {
        self.generator.is_some()
    }

    /// Returns the generator that fills the channel, if any.
    pub fn generator(&self) -> Option<&Generator> {
        self.generator.as_ref()
    }

    /// Draws all remaining cells of the generator, only to count them. The channel yields no cells afterwards.
    pub fn drain_generator(&mut self) {
        self.generator.iter_mut().for_each(Generator::drain);
    }

    /// Returns whether a generator with evenly spaced cells (`cbr`) fills the channel.
    pub fn is_even(&self) -> bool {
        self.generator.as_ref().is_some_and(Generator::is_even)
    }

    /// Returns the least time between two cells of one train of the generator, in picoseconds; 0 without a generator.
    pub fn generated_pace(&self) -> u64 {
        self.generator.as_ref().map_or(0, |generator| generator.pace().at_least())
    }

    /// Adds cells, which must arrive after all that were added before.
    #[inline]
    pub fn push(&mut self, cells: CellTrain) {
        debug_assert_eq!(cells.last, cells.base + cells.pace.after(cells.n + cells.count - 1));
        self.last = cells.last;
        if self.current.count == 0 {
            (self.current, self.rest, self.train) = (cells, 0, self.first);
            self.open();
        } else if self.pieces.is_empty() && !self.pattern.any() && self.current.continues_with(&cells) {
            let single = self.current.count == 1;
            self.current.extend(&cells);
            if single {
                // A record of one cell does not set the stepper.
                self.open();
            }
        } else if !self.extend_last(&cells) {
            let train = self.first.wrapping_add(self.trains.len() as u32);
            self.pieces.push_back(TrainPiece::run(cells.n, cells.count, train));
            self.trains.push_back(cells);
        }
    }

    /// Appends `cells` to the last piece if they continue it. Returns whether they did.
    fn extend_last(&mut self, cells: &CellTrain) -> bool {
        let Some(piece) = self.pieces.back_mut() else { return false };
        let place = piece.train().wrapping_sub(self.first) as usize;
        let is_current = self.rest > 0 && piece.train() == self.train;
        let train = &mut self.trains[place];
        if is_current {
            let cell = self.current.cell + self.current.step() * self.current.count as u32;
            (train.cell, train.count) = (cell, self.rest);
        }
        if (train.base, train.pace) != (cells.base, cells.pace)
            || !piece.ends_before(cells.n)
            || !train.comes_before(cells)
        {
            return false;
        }
        piece.grow(cells.count);
        train.extend(cells);
        if is_current {
            self.rest = train.count;
            self.current.last = cells.last;
        }
        true
    }

    /// Adds the cells of `trains` in the order of `pieces`, with all instants moved by `later` picoseconds. All cells added before must be earlier.
    pub fn push_pieces(&mut self, trains: &[CellTrain], pieces: &[TrainPiece], later: u64) {
        let Some(last) = pieces.last() else { return };
        self.last = trains[last.train() as usize].last + later;
        let number = self.first.wrapping_add(self.trains.len() as u32);
        if self.pieces.capacity() == 0 {
            self.pieces.reserve(PIECES);
        }
        self.trains.extend(trains.iter().map(|train| train.shifted(later)));
        self.pieces.extend(pieces.iter().map(|piece| piece.renumbered(number)));
        if self.current.count == 0 {
            self.rest = 0;
            self.next_piece();
        }
    }

    /// Returns the arrival of the next cell; `u64::MAX` if the channel is empty.
    #[inline]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Returns the arrival of the last cell that was added. More cells may follow later.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the current run: consecutive cells of one train that begin with the next cell.
    ///
    /// # Panics
    /// If the channel is empty.
    #[inline]
    pub fn front(&self) -> CellTrain {
        assert!(self.current.count > 0, "the channel is not empty");
        CellTrain { last: self.current_last(), ..self.current }
    }

    /// Returns the circuit direction of the next cell.
    #[inline]
    pub(super) fn vc(&self) -> super::VcId {
        self.current.vc
    }

    #[inline]
    fn current_last(&self) -> u64 {
        let CellTrain { base, n, pace, count, last, .. } = self.current;
        if self.rest == 0 { last } else { base + pace.after(n + count - 1) }
    }

    /// Returns whether the train of the next cell may have cells after `instant`.
    #[inline]
    pub(super) fn train_may_continue_after(&self, instant: u64) -> bool {
        self.current.last > instant
    }

    /// Takes the cells of the current run that arrive at or before `until`. Returns how many.
    pub fn take_front_until(&mut self, until: u64) -> u64 {
        let count = self.front_until(until);
        self.take_many(count);
        count
    }

    /// Takes the next `count` cells, at most as many as the current run has.
    pub fn take_many(&mut self, count: u64) {
        self.skip_in_current_run(count);
        if self.current.count > 0 {
            self.open();
        } else {
            self.next_piece();
        }
    }

    #[inline]
    fn skip_in_current_run(&mut self, count: u64) {
        let current = &mut self.current;
        current.n += count;
        current.count -= count;
        current.cell += current.step() * count as u32;
    }

    /// Takes the cells of the current run that arrive at or before `until`, at least one, and calls `each` with every arrival.
    ///
    /// # Panics
    /// If the channel is empty.
    #[inline]
    pub fn take_until(&mut self, until: u64, mut each: impl FnMut(u64)) {
        let CellTrain { base, count, .. } = self.current;
        assert!(count > 0, "the channel is not empty");
        let mut taken = 0;
        let mut head = self.head;
        let more = loop {
            each(head);
            taken += 1;
            if taken == count {
                break false;
            }
            self.walk.step();
            head = base + self.walk.after();
            if head > until {
                break true;
            }
        };
        self.skip_in_current_run(taken);
        if more {
            self.head = head;
        } else {
            self.next_piece();
        }
    }

    /// Returns how many cells of the current run arrive at or before `until`.
    pub fn front_until(&self, until: u64) -> u64 {
        if until < self.head { 0 } else { self.current.count_until(until) }
    }

    /// Takes cells of the current train up to `until`, at least one, and stops before a cell of another train. Returns their number and the position of the
    /// last.
    pub(super) fn take_train(&mut self, until: u64) -> (u64, u64) {
        let CellTrain { base, pace, last, .. } = self.current;
        let end = pace.units_within(until.min(last) - base);
        let mut total = 0;
        loop {
            let behind = self.current.n + self.current.count;
            if behind - 1 > end {
                let count = end + 1 - self.current.n;
                self.take_many(count);
                return (total + count, end);
            }
            total += self.current.count;
            self.skip_in_current_run(self.current.count);
            let mut last = behind - 1;
            let behind = self.pattern.take_until(end);
            let mut count = behind.count();
            if count > 0 {
                last = behind.last();
            }
            if !self.pattern.any() {
                // The ring buffer is in two parts; pieces in the second part follow in the next round of the loop.
                let (mut whole, (next, _)) = (0, self.pieces.as_slices());
                for next in next {
                    if count == self.rest || next.train() != self.train || next.last() > end {
                        break;
                    }
                    (count, last) = (count + next.count(), next.last());
                    whole += 1;
                }
                self.pieces.drain(..whole);
            }
            total += count;
            self.current.cell += self.current.step() * count as u32;
            self.remove_from_rest(count);
            let goes_on = self.next_is_of_train() && self.next_place() <= end;
            if !goes_on {
                self.next_piece();
                return (total, last);
            }
            self.next_of_train();
        }
    }

    /// Returns whether the cells behind the current run belong to the same train.
    #[inline]
    fn next_is_of_train(&self) -> bool {
        self.rest > 0
            && (self.pattern.any() || self.pieces.front().is_some_and(|next| next.train() == self.train))
    }

    /// Returns the position of the next cell behind the current run; `u64::MAX` if there is none.
    #[inline]
    fn next_place(&self) -> u64 {
        if self.pattern.any() {
            self.pattern.first()
        } else {
            self.pieces.front().map_or(u64::MAX, TrainPiece::first)
        }
    }

    /// Counts `count` cells of the current train as no longer behind the current run, and forgets the train when none is left there.
    #[inline]
    fn remove_from_rest(&mut self, count: u64) {
        self.rest -= count;
        if self.rest == 0 && count > 0 {
            let place = self.train.wrapping_sub(self.first) as usize;
            self.trains[place].count = 0;
            self.retire();
        }
    }

    /// Makes the next run, of the same train, the current one.
    #[inline]
    fn next_of_train(&mut self) {
        (self.current.n, self.current.count) = if self.pattern.any() {
            self.pattern.take_run()
        } else {
            let piece = self.pieces.pop_front().expect("a train with cells left has a piece");
            let (n, count, pattern) = piece.opened();
            self.pattern = pattern;
            (n, count)
        };
        self.remove_from_rest(self.current.count);
    }

    fn next_piece(&mut self) {
        if self.pattern.any() {
            self.next_of_train();
            self.open();
            return;
        }
        let Some(piece) = self.pieces.front() else {
            self.head = u64::MAX;
            self.refill();
            return;
        };
        if self.rest > 0 && piece.train() == self.train {
            self.next_of_train();
        } else {
            if self.rest > 0 {
                let place = self.train.wrapping_sub(self.first) as usize;
                (self.trains[place].cell, self.trains[place].count) = (self.current.cell, self.rest);
            }
            let number = piece.train();
            let (n, count, pattern) = piece.opened();
            self.pieces.pop_front();
            let train = &mut self.trains[number.wrapping_sub(self.first) as usize];
            self.rest = train.count - count;
            train.count = self.rest;
            self.current = CellTrain { n, count, ..*train };
            (self.train, self.pattern) = (number, pattern);
            self.retire();
        }
        self.open();
    }

    /// Removes trains at the front that have no cells left.
    #[inline]
    fn retire(&mut self) {
        while self.trains.front().is_some_and(|train| train.count == 0) {
            self.trains.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Draws the next train of the generator, if there is a generator and it has one, into the empty channel.
    #[inline(never)]
    fn refill(&mut self) {
        if self.draw() {
            self.open();
        }
    }

    /// Makes the next train of the generator the current run. Returns false if the generator has no more trains.
    #[inline]
    fn draw(&mut self) -> bool {
        let any = self.generator.as_mut().is_some_and(|generator| generator.next_into(&mut self.current));
        if any {
            (self.last, self.rest, self.train) = (self.current.last, 0, self.first);
        }
        any
    }

    #[inline]
    fn open(&mut self) {
        let CellTrain { base, n, pace, count, last, .. } = self.current;
        if count == 1 && self.rest == 0 {
            self.head = last;
            return;
        }
        self.walk.seek_at(pace, n);
        self.head = base + self.walk.after();
    }

    /// Returns the remaining cells of the channel, which a generator with evenly spaced cells fills; `None` if there are no more.
    pub(super) fn evenly(&self) -> Option<CellTrain> {
        (self.current.count > 0).then_some(self.current)
    }

    /// Sets the remaining cells of the channel, the stepper at the next one, and its arrival.
    pub(super) fn replace(&mut self, cells: CellTrain, (walk, head): (Stepper, u64)) {
        (self.current, self.walk, self.head) = (cells, walk, head);
    }

    /// Returns the current train, at the begin of its current run.
    #[inline]
    pub(super) fn train(&self) -> &CellTrain {
        &self.current
    }
}

#[cfg(test)]
mod tests {
    use super::super::Inputs;
    use super::*;

    fn cells(base: u64, n: u64, count: u64) -> CellTrain {
        let pace = Pace::new(25, 10);
        let last = base + pace.after(n + count - 1);
        CellTrain {
            base,
            n,
            pace,
            count,
            last,
            vc: 0,
            pdu: 1,
            cell: n as u32,
            of: 100,
            clp: false,
            efci: false,
        }
    }

    #[test]
    fn channel_yields_the_cells_of_its_trains_in_order() {
        let mut channel = Channel::new(Pace::new(25, 10));
        channel.push(cells(100, 0, 3));
        channel.push(cells(100, 3, 1));
        channel.push(cells(200, 0, 1));
        let mut seen = Vec::new();
        while channel.head() != u64::MAX {
            channel.take_until(u64::MAX, |at| seen.push(at));
        }
        assert_eq!(seen, [100, 103, 105, 108, 200]);
        assert_eq!(channel.last(), 200);
    }

    /// Two interleaved trains of five and three cells at 10 ps: A A B A B B A A.
    fn in_turns() -> Channel {
        let train = |pdu, n, count, last| CellTrain {
            pdu,
            n,
            count,
            last,
            cell: 7,
            of: 7 + count as u16,
            pace: Pace::new(10, 1),
            ..cells(0, 0, 1)
        };
        let trains = [train(1, 1, 5, 80), train(2, 3, 3, 60)];
        let pieces = [(1, 2, 0), (3, 1, 1), (4, 1, 0), (5, 2, 1), (7, 2, 0)];
        let pieces = pieces.map(|(n, count, train)| TrainPiece::run(n, count, train));
        let mut channel = Channel::new(Pace::new(25, 10));
        channel.push_pieces(&trains, &pieces, 1000);
        assert_eq!(channel.last(), 1080);
        channel
    }

    #[test]
    fn channel_yields_interleaved_trains_in_time_order() {
        let mut channel = in_turns();
        // Added cells continue the last piece, or begin a train.
        let next = channel.trains[0];
        channel.push(CellTrain { n: 9, count: 1, cell: 12, of: 13, last: 1090, ..next });
        channel.push(CellTrain { n: 11, count: 1, cell: 0, of: 1, last: 1110, pdu: 3, ..next });
        let mut seen = Vec::new();
        while channel.head() != u64::MAX {
            let front = channel.front();
            let mut cell = front.cell;
            channel.take_until(u64::MAX, |at| {
                seen.push((at, front.pdu, cell));
                cell += 1;
            });
            assert_eq!(front.last, seen.last().expect("a run has a cell").0);
        }
        let ats: Vec<_> = seen.iter().map(|seen| seen.0).collect();
        assert_eq!(ats, [1010, 1020, 1030, 1040, 1050, 1060, 1070, 1080, 1090, 1110]);
        let pdus: Vec<_> = seen.iter().map(|seen| (seen.1, seen.2)).collect();
        let expected = [(1, 7), (1, 8), (2, 7), (1, 9), (2, 8), (2, 9), (1, 10), (1, 11), (1, 12), (3, 0)];
        assert_eq!(pdus, expected);
        assert!(channel.trains.is_empty() && channel.pieces.is_empty());
    }

    #[test]
    fn train_is_taken_up_to_an_interleaved_train() {
        let mut channel = in_turns();
        assert_eq!(channel.take_train(1010), (1, 1));
        assert_eq!(channel.take_train(2000), (1, 2));
        assert_eq!((channel.front().pdu, channel.head()), (2, 1030));
        // The next train too is taken to its end.
        assert_eq!([channel.take_train(2000), channel.take_train(2000)], [(1, 3), (1, 4)]);
        assert_eq!([channel.take_train(2000), channel.take_train(1070)], [(2, 6), (1, 7)]);
        assert_eq!((channel.front().cell, channel.front().ends_pdu()), (11, true));
    }

    #[test]
    fn cursor_ends_with_its_train() {
        let mut channel = Channel::new(Pace::new(25, 10));
        let train = CellTrain { count: 4, last: 100, ..cells(0, 1, 1) };
        let train = CellTrain { pace: Pace::new(10, 1), ..train };
        let pieces = [(1, 1), (3, 2), (10, 1)].map(|(n, count)| TrainPiece::run(n, count, 0));
        channel.push_pieces(&[train], &pieces, 0);
        channel.push(CellTrain { pdu: 2, ..cells(500, 0, 1) });
        let mut walk = channel.walk();
        let mut seen = Vec::new();
        while walk.head != u64::MAX {
            seen.push(walk.head);
            assert_eq!(walk.step(&mut channel), walk.head != u64::MAX);
        }
        assert_eq!(seen, [10, 30, 40, 100]);
        channel.walked(&walk);
        assert_eq!((channel.front().pdu, channel.head()), (2, 500));
    }

    #[test]
    fn taking_many_cells_equals_one_by_one() {
        for until in 90..130 {
            let mut channel = Channel::new(Pace::new(25, 10));
            channel.push(cells(100, 2, 6));
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
        channels[0].push(cells(50, 0, 1));
        channels[1].push(cells(20, 0, 9));
        channels[2].push(cells(30, 0, 1));
        let mut inputs = Inputs::new(&mut channels);
        let (channel, until) = inputs.earliest().unwrap();
        // The second channel may go on to 30, because it wins the tie against the third, but must stop before 50.
        assert_eq!((channel.head(), until), (20, 30));
        let mut inputs = Inputs::new(&mut channels[..2]);
        assert_eq!(inputs.earliest().unwrap().1, 49);
    }
}
