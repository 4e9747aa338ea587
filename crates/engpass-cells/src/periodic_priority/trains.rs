//! Trains of class 1 at a port where nothing needs their individual instants: takes as many cells at once as surely join or are lost.

use engpass_model::time::{Pace, Stepper};

use super::super::strict_priority::Waiting;
use super::super::{CellDropCause, CellSink, CellTrain, Channel};
use super::{LoopState, PeriodicPriority};

/// Cells of the current run that are being taken, and how many of them have joined or were lost so far.
pub(super) struct Train {
    front: CellTrain,
    /// Number of cells to take, and the arrival of the last one.
    count: u64,
    end: u64,
    /// Index of the next cell, from 0, and its arrival.
    pub(super) next: u64,
    pub(super) at: u64,
    /// Stepper at the next cell.
    walk: Stepper,
    /// Number of cells that have joined.
    pub(super) joined: u64,
    lost: u64,
    lost_at: u64,
    last_joined: bool,
}

/// Number of remaining cells from which on losses are computed instead of decided cell by cell.
const LONG: u64 = 16;

/// Bound of the effort of `peak`: it looks at no more than about this many arrivals. If the train's pace is shorter than class 1's share by less than 1/32 of
/// it, `peak` gives up, and cells join one by one. The number was not measured.
const CLOSE: u64 = 32;

/// How closely the cells of a train follow each other, compared with a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spacing {
    /// At most a slot apart.
    Line,
    /// More than a slot apart: the spacing in picoseconds, rounded up.
    Wide(u64),
    /// More than a slot apart, but by less than the rounding to picoseconds can show.
    Close,
}

impl Train {
    fn new(channel: &Channel, limit: u64) -> Self {
        let front = channel.front();
        let mut walk = Stepper::new(front.pace);
        walk.seek(front.n);
        let count = channel.front_until(limit);
        Self {
            front,
            count,
            end: front.nth(count - 1),
            next: 0,
            at: channel.head(),
            walk,
            joined: 0,
            lost: 0,
            lost_at: 0,
            last_joined: false,
        }
    }

    /// Returns the number of cells of the train that are still to be taken.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.count - self.next
    }

    /// Returns the time from cell to cell.
    pub(super) fn pace(&self) -> Pace {
        self.front.pace
    }

    /// Admits the next cell of the train to the queue of the port, and goes on to the cell after it.
    #[inline]
    pub(super) fn join(&mut self) {
        self.joined += 1;
        self.next += 1;
        self.walk.step();
        self.at = self.front.base + self.walk.after();
    }

    /// Records that the last taken cell has joined.
    pub(super) fn ended_with_a_cell(&mut self) {
        self.last_joined = true;
    }

    pub(super) fn join_many(&mut self, many: u64) {
        self.joined += many;
        self.next += many;
        self.last_joined = true;
        if many == 1 {
            self.walk.step();
        } else if self.left() > 0 {
            self.walk.seek(self.front.n + self.next);
        }
        self.at = self.front.base + self.walk.after();
    }

    fn lose(&mut self) {
        if self.lost == 0 {
            self.lost_at = self.at;
        }
        self.lost += 1;
        self.next += 1;
        self.last_joined = false;
        self.walk.step();
        self.at = self.front.base + self.walk.after();
    }

    /// Ends the train: `lost` of the remaining cells are lost, and the others join. The next cell is lost, and so is the last one unless `last_joined` is set.
    fn end_with(&mut self, lost: u64, last_joined: bool) {
        if self.lost == 0 {
            self.lost_at = self.at;
        }
        self.lost += lost;
        self.joined += self.left() - lost;
        self.next = self.count;
        self.last_joined = last_joined;
    }

    /// Returns the arrival of a remaining cell: number 0 is the next one.
    fn arrival(&self, index: u64) -> u64 {
        self.front.base + self.front.pace.after(self.front.n + self.next + index)
    }

    /// Returns the arrival of the last cell that joined.
    pub(super) fn arrived(&self) -> u64 {
        self.arrival_of(0)
    }

    /// Returns the arrival of a cell: number 0 is the last one that joined, number 1 the next one.
    pub(super) fn arrival_of(&self, index: u64) -> u64 {
        self.front.base + self.front.pace.after(self.front.n + self.next + index - 1)
    }

    /// Returns whether the last cell that is taken ends its PDU.
    fn ends(&self) -> bool {
        !self.front.are_generated() && u64::from(self.front.cell) + self.count == u64::from(self.front.of)
    }

    /// Returns a record of `count` cells of the train. Its positions in the PDU are not exact, but it ends its PDU exactly if `with_last` is set and the train
    /// does.
    fn some(&self, count: u64, with_last: bool) -> CellTrain {
        let (of, first) = (u64::from(self.front.of), u64::from(self.front.cell));
        let cell = match self.front.are_generated() {
            true => 0,
            false if with_last && self.ends() => of - count,
            false => first.min(of - count - 1),
        };
        CellTrain { cell: cell as u32, count, ..self.front }
    }
}

impl<O: CellSink> PeriodicPriority<'_, O> {
    /// Takes all cells of the current run up to `limit`, at a tail-drop queue without thresholds.
    pub(super) fn take_whole_run(&mut self, channel: &mut Channel, limit: u64) {
        let mut train = Train::new(channel, limit);
        let spacing = self.spacing(&train);
        let mut hot = self.hot();
        let from = hot.joined;
        while train.left() > 0 {
            self.serve(&mut hot, train.at);
            let waiting = hot.joined - hot.taken;
            let being_sent = u64::from(self.queue.serving == 1 && self.queue.last_end > train.at);
            let found = waiting + being_sent;
            let places = self.queue.capacity.saturating_sub(found);
            if places == 0 {
                if !self.fill(spacing, &mut hot, &mut train) {
                    train.lose();
                }
                continue;
            }
            if waiting == 0 {
                self.queue.decide_at = self.queue.last_end.max(train.at);
                if matches!(spacing, Spacing::Wide(_)) && self.queue.capacity > 1 {
                    self.queue.longest = self.queue.longest.max(found + 1);
                    // The queue has no other cells than those that join here.
                    self.take_spaced(&mut hot, &mut train);
                    continue;
                }
            }
            let many = places.min(train.left()).min(self.surely_in_time(spacing, waiting, &train));
            let many = self.measure(spacing, found, &train, many);
            train.join_many(many);
            hot.joined += many;
        }
        channel.take_many(train.count);
        if train.lost > 0 {
            let lost = train.some(train.lost, !train.last_joined);
            self.out.lost(&lost, train.lost_at, CellDropCause::Full);
        }
        if train.joined > 0 {
            let cells = train.some(train.joined, train.last_joined);
            self.close(Waiting { cells, from }, &mut hot);
        }
        self.keep(hot);
        if train.last_joined && train.ends() {
            self.out.waiting(train.front.pdu, 1, hot.joined);
        }
    }

    /// Takes all cells left of a train whose next cell finds the queue full, if they arrive at least as fast as cells of class 1 leave. Returns whether it did.
    ///
    /// The number of cells lost up to cell `i` is the maximum of `j + 1 - gone(j)` over all `j` up to `i`, where `gone` counts departures. Departures keep
    /// pace with arrivals. Therefore the maximum is found among the last cells.
    fn fill(&mut self, spacing: Spacing, hot: &mut LoopState, train: &mut Train) -> bool {
        let left = train.left();
        let waiting = hot.joined - hot.taken;
        let Some(share) = self.sure_share(spacing, waiting, train) else { return false };
        let queue = &*self.queue;
        if left < LONG || queue.last_end != queue.decide_at {
            return false;
        }
        let slots = self.slots();
        let being_sent = u64::from(queue.serving == 1 && queue.last_end > train.at);
        let gone = |index: u64| slots.lows_left(train.arrival(index), being_sent);
        let pace = train.front.pace.at_least();
        let last = left - 1;
        let lost_by = |index: u64| (index + 1).saturating_sub(gone(index));
        let mut before = 1;
        for back in 1..=last {
            if back * (share - share.min(pace)) > 6 * share {
                break;
            }
            before = before.max(lost_by(last - back));
        }
        let lost = before.max(lost_by(last));
        let joined = left - lost;
        train.end_with(lost, lost == before);
        hot.joined += joined;
        true
    }

    /// Updates the longest queue for the next `many` cells of a train, the first of which finds `found` cells. Returns how many of them may join before the
    /// next call.
    #[inline]
    fn measure(&mut self, spacing: Spacing, found: u64, train: &Train, many: u64) -> u64 {
        if found + many <= self.queue.longest {
            return many;
        }
        let Some(peak) = self.peak(spacing, found, train, many) else {
            // The next departure is not known. Therefore only as many cells join as make the queue one cell longer than ever.
            self.queue.longest = self.queue.longest.max(found + 1);
            return many.min(self.queue.longest - found);
        };
        self.queue.longest = self.queue.longest.max(peak);
        many
    }

    /// Returns the longest queue while the next `many` cells of a train join; a result below the longest queue so far need not be exact. Returns `None` if a
    /// quick computation is not possible.
    ///
    /// Cells arrive faster than others leave, so the queue is longest behind one of the last cells, and not by two longer than behind the last one. For when
    /// the line begins a cell of class 1, it has begun exactly those cells of the generator that have arrived. Of the slots from one such instant to another,
    /// the generator has its rate's part, and less than one more or less. So has class 1, whose cells need a share of the time each: in an interval of `x`
    /// shares between a first and a last departure it has fewer than `x + 1` others, and in any interval fewer than `x + 2`. If these have left between two
    /// arrivals, the queue behind the first one is longer by less than two, less what it has grown by since.
    #[inline(never)]
    fn peak(&self, spacing: Spacing, found: u64, train: &Train, many: u64) -> Option<u64> {
        let pace = match spacing {
            Spacing::Wide(pace) => pace,
            Spacing::Line | Spacing::Close => self.queue.slot_up + 1,
        };
        let share = self.share_until(train);
        let gain = share.checked_sub(pace)?;
        if many == 1 || self.queue.last_end != self.queue.decide_at || gain.saturating_mul(CLOSE) < share {
            return None;
        }
        let slots = self.slots();
        let being_sent = u64::from(self.queue.serving == 1 && self.queue.last_end > train.at);
        let length = |index: u64| found + index + 1 - slots.lows_left(train.arrival(index), being_sent);
        let last = length(many - 1);
        if last < self.queue.longest {
            return Some(last);
        }
        // `share` is rounded down, and instants are rounded up, so the margin is a sixteenth.
        let near = share.saturating_add(share / 16);
        let close = (1..many).take_while(|back| back.saturating_mul(gain) <= near);
        let longer = close.map(|back| length(many - 1 - back)).any(|length| length > last);
        Some(last + u64::from(longer))
    }

    /// Returns a lower bound of the time that class 1 needs for a cell, in picoseconds; `None` unless more than three cells wait and the train's cells arrive
    /// faster than that.
    fn sure_share(&self, spacing: Spacing, waiting: u64, train: &Train) -> Option<u64> {
        let share = self.share_until(train);
        let pace = match spacing {
            Spacing::Wide(pace) => pace,
            Spacing::Line | Spacing::Close => self.queue.slot_up + 1,
        };
        (waiting > 3 && pace < share).then_some(share)
    }

    fn spacing(&self, train: &Train) -> Spacing {
        let pace = train.front.pace;
        if self.queue.slot.is_at_least(pace) {
            Spacing::Line
        } else if pace.at_least() > self.queue.slot_up {
            Spacing::Wide(pace.at_least() + 1)
        } else {
            Spacing::Close
        }
    }

    /// Returns how many of the next cells of a train can join the queue in one step, with `waiting` cells of class 1 ahead of them: the line is not free for
    /// any of these cells before the cell has arrived.
    fn surely_in_time(&self, spacing: Spacing, waiting: u64, train: &Train) -> u64 {
        let pace = match spacing {
            // The cells arrive as fast as they can leave. At the very end of a transmission, rounding may change the order of instants.
            Spacing::Line if waiting > 0 || self.queue.last_end != train.at => return u64::MAX,
            Spacing::Line => return 1,
            Spacing::Wide(pace) => pace,
            Spacing::Close => self.queue.slot_up + 1,
        };
        // While cells of class 1 wait, cell number `x` of them, from 0, is taken no earlier than `(x - 3) * share` after the next choice: before it, the
        // generator has had its part of the slots, except for one cell at each end.
        let Some(ahead) = waiting.checked_sub(3) else { return 1 };
        let share = self.share_until(train);
        match pace.checked_sub(share) {
            None | Some(0) => u64::MAX,
            Some(falls_behind) => ahead.saturating_mul(share) / falls_behind + 1,
        }
    }

    /// Returns a lower bound of the time in which class 1 sends one cell while its cells wait, valid up to the end of the train, in picoseconds.
    fn share_until(&self, train: &Train) -> u64 {
        let high = &self.high;
        let runs = high.head <= train.at + high.cells.pace.at_least() && high.cells.last >= train.end;
        if runs { self.leftover.share } else { self.queue.slot_up - 1 }
    }
}
