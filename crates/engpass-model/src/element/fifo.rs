//! One queue, first in, first out, in front of a line.

use super::channel::{Cells, Channel, Inputs};
use super::{Doing, Gate, Loss, Outlet, Rule, VcId};
use crate::time::{Pace, Stepper};

/// A line and its queue. A cell's departure is known when it arrives, so nothing ever waits here as an object: the state
/// is the busy period (when it began, how many cells it has taken, how many of them have left).
pub struct Fifo {
    slot: Pace,
    /// A slot, rounded up.
    slot_up: u64,
    /// By how much.
    slot_rounding: u64,
    /// `None` for a queue without bound.
    gate: Option<Gate>,
    base: u64,
    n: u64,
    /// Stands at `n`.
    end: Stepper,
    /// When the last accepted cell has left.
    last_end: u64,
    /// By how much the end of the busy period before is rounded up.
    rounding: u64,
    /// Cells of the busy period that have left, as far as anybody asked.
    left: u64,
    /// Stands at `left + 1`.
    leave: Stepper,
}

/// Cells of one record that met the same fate, on their way to the outlet.
struct Batch {
    cells: Cells,
    lost: Option<Loss>,
    first_at: u64,
}

impl Fifo {
    /// A line with a queue behind `gate`.
    pub fn new(slot: Pace, gate: Gate) -> Self {
        Self { gate: Some(gate), ..Self::unbounded(slot) }
    }

    /// A line with a queue that takes everything: a NIC, whose memory is accounted for elsewhere.
    pub fn unbounded(slot: Pace) -> Self {
        let mut end = Stepper::new(slot);
        end.seek(1);
        let (slot_up, slot_rounding) = (end.after(), end.rounding());
        end.seek(0);
        let leave = end.clone();
        Self {
            slot,
            slot_up,
            slot_rounding,
            gate: None,
            base: 0,
            n: 0,
            leave,
            end,
            last_end: 0,
            rounding: 0,
            left: 0,
        }
    }

    /// Take all cells that arrive at or before `until`.
    pub fn advance(&mut self, until: u64, mut inputs: Inputs<'_>, rules: &mut [Rule], out: &mut impl Outlet) {
        while let Some((channel, limit)) = inputs.earliest() {
            if channel.head() > until {
                break;
            }
            let limit = limit.min(until);
            while channel.head() <= limit {
                if !self.pass(channel, limit, rules, out) {
                    self.merge(channel, limit, rules, out);
                }
            }
        }
    }

    /// Take the front record as a whole where all its cells join and their departures are evenly spaced, too. Whether
    /// that was so.
    fn pass(&mut self, channel: &mut Channel, limit: u64, rules: &[Rule], out: &mut impl Outlet) -> bool {
        let front = channel.front();
        let head = channel.head();
        if rules[front.vc as usize].policer.is_some() {
            return false;
        }
        if front.pace.at_least() > self.slot_up && head > self.last_end {
            // Every cell finds the line free.
            let count = channel.front_until(limit);
            let Some(efci) = self.admits_train(Cells { count, ..front }, (0, 0)) else { return false };
            channel.take_many(count);
            let last = front.nth(count - 1);
            let idle = last - self.last_end - (count - 1) * self.slot_up;
            out.idle(idle, self.rounded() + (count - 1) * self.slot_rounding);
            self.start(last);
            self.accept(front.vc, 1);
            out.sent(Cells { base: front.base + self.slot_up, count, last: self.last_end, efci, ..front });
            return true;
        }
        if front.pace != self.slot || front.count == 1 {
            return false;
        }
        // At the pace of the line the queue keeps its length, up to one cell.
        let queued = if head > self.last_end { 0 } else { self.queued(head) };
        let idle = head > self.last_end;
        if !idle && (front.base, front.n) != (self.base, self.n) && head + 2 > self.last_end {
            // It may run empty between two cells, by a rounded picosecond.
            return false;
        }
        let count = channel.front_until(limit);
        let found = (queued.saturating_sub(1), queued + 1);
        let Some(efci) = self.admits_train(Cells { count, ..front }, found) else { return false };
        channel.take_many(count);
        if idle {
            out.idle(head - self.last_end, self.rounded());
            self.start(head);
        }
        let n = self.n + 1;
        self.accept(front.vc, count);
        out.sent(Cells { base: self.base, n, count, last: self.last_end, efci, ..front });
        true
    }

    /// Whether all of `train` join, which find so many cells, the least and the most; and then, with which EFCI.
    fn admits_train(&mut self, train: Cells, found: (u64, u64)) -> Option<bool> {
        match &mut self.gate {
            None => Some(train.efci),
            Some(gate) => gate.admit_train(&train, found),
        }
    }

    /// The next `count` cells of the busy period join.
    fn accept(&mut self, vc: VcId, count: u64) {
        if let Some(gate) = &mut self.gate {
            gate.joined(vc, count);
        }
        self.n += count;
        self.end.seek(self.n);
        self.last_end = self.base + self.end.after();
    }

    /// Cells that have not left at `at`, within the busy period.
    #[inline]
    fn queued(&mut self, at: u64) -> u64 {
        if let Some(gate) = &mut self.gate {
            let before = self.left;
            while self.left < self.n && self.base + self.leave.after() <= at {
                self.left += 1;
                self.leave.step();
            }
            gate.left(self.left - before);
        }
        self.n - self.left
    }

    fn merge(&mut self, channel: &mut Channel, limit: u64, rules: &mut [Rule], out: &mut impl Outlet) {
        let front = channel.front();
        let pace = self.slot;
        let rule = &mut rules[front.vc as usize];
        let mut batch = Batch { cells: Cells { count: 0, ..front }, lost: None, first_at: 0 };
        let (mut index, step) = (front.cell, u32::from(!front.are_generated()));
        channel.take_until(limit, |at| {
            let mut cell = Cells { count: 1, cell: index, ..front };
            index += step;
            if !rule.lets_pass(&mut cell, at) {
                batch.flush(out);
                out.policed(&cell, at);
                return;
            }
            if at > self.last_end {
                batch.flush(out);
                self.start(at);
            }
            if let Err(cause) = self.admit(at, &mut cell) {
                batch.add(cell, Some(cause), at, out);
                return;
            }
            if self.n == 0 {
                out.idle(at - self.last_end, self.rounding);
            }
            self.end.step();
            self.n += 1;
            self.last_end = self.base + self.end.after();
            batch.add(Cells { base: self.base, n: self.n, pace, last: self.last_end, ..cell }, None, at, out);
        });
        batch.flush(out);
    }

    /// By how much `last_end` is rounded up. A busy period without a cell is one whose first cell was not admitted.
    #[inline]
    fn rounded(&self) -> u64 {
        if self.n > 0 { self.end.rounding() } else { self.rounding }
    }

    #[inline]
    fn start(&mut self, at: u64) {
        self.rounding = self.rounded();
        (self.base, self.n, self.left) = (at, 0, 0);
        self.end.seek(0);
        self.leave.seek(1);
        if let Some(gate) = &mut self.gate {
            gate.emptied();
        }
    }

    #[inline]
    fn admit(&mut self, at: u64, cell: &mut Cells) -> Result<(), Loss> {
        let queued = self.queued(at);
        self.gate.as_mut().map_or(Ok(()), |gate| gate.admit(queued, cell))
    }

    /// What the line does at `at`, up to which all cells were taken and no further.
    pub fn doing(&self, at: u64) -> Doing {
        Doing::of(self.slot, self.base, self.last_end, self.rounded(), at)
    }

    /// Cells in the queue at `at`, up to which all were taken and no further, the one being sent included.
    pub fn length(&self, at: u64) -> u64 {
        if at >= self.last_end { 0 } else { self.n - self.slot.ended_within(at - self.base) }
    }

    /// When the line is free of everything it has accepted, in picoseconds.
    pub fn last_end(&self) -> u64 {
        self.last_end
    }
}

impl Batch {
    #[inline]
    fn add(&mut self, cell: Cells, lost: Option<Loss>, at: u64, out: &mut impl Outlet) {
        if self.cells.count > 0 && self.lost == lost && self.cells.alike(&cell) {
            self.cells.extend(&cell);
        } else {
            self.flush(out);
            (self.cells, self.lost, self.first_at) = (cell, lost, at);
        }
    }

    fn flush(&mut self, out: &mut impl Outlet) {
        if self.cells.count == 0 {
            return;
        }
        match self.lost {
            Some(cause) => out.lost(&self.cells, self.first_at, cause),
            None => out.sent(self.cells),
        }
        self.cells.count = 0;
    }
}
