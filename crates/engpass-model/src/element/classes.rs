//! Strict priority between service categories in front of a line.

use std::collections::VecDeque;

use super::channel::{Cells, Channel, Inputs};
use super::{NO_FRAME, Outlet, Rule};
use crate::discard::{CellView, DiscardPolicy, QueueView};
use crate::time::{Pace, Stepper, Time};

/// A line and a queue for each class; class 0 is served first, a cell being sent is finished.
///
/// A cell's departure is known when its transmission begins: a cell of a lower class may be overtaken until then.
pub struct Classes {
    slot: Pace,
    capacity: u64,
    classes: Vec<Class>,
    /// Cells waiting in all classes.
    waiting: u64,
    base: u64,
    n: u64,
    /// Stands at `n`.
    end: Stepper,
    /// When the cell being sent, or the last one sent, has left.
    last_end: u64,
    /// Class of that cell.
    serving: usize,
    /// When the transmitter takes its next cell, if any waits.
    decide_at: u64,
    /// Cells sent back to back from one record, not yet handed on.
    sent: Cells,
}

struct Class {
    policy: Box<dyn DiscardPolicy>,
    queue: VecDeque<Cells>,
    waiting: u64,
    /// Cells that ever joined.
    joined: u64,
    /// Cells that were ever taken for transmission.
    taken: u64,
}

const NOTHING: Cells = Cells { base: 0, n: 0, count: 0, last: 0, vc: 0, frame: NO_FRAME, cell: 0, of: 1 };

impl Classes {
    /// A line with a queue of `capacity` cells for every policy.
    pub fn new(slot: Pace, capacity: u64, policies: Vec<Box<dyn DiscardPolicy>>) -> Self {
        let class = |policy| Class { policy, queue: VecDeque::new(), waiting: 0, joined: 0, taken: 0 };
        Self {
            slot,
            capacity,
            classes: policies.into_iter().map(class).collect(),
            waiting: 0,
            base: 0,
            n: 0,
            end: Stepper::new(slot),
            last_end: 0,
            serving: 0,
            decide_at: 0,
            sent: NOTHING,
        }
    }

    /// Take all cells that arrive at or before `until` and begin all transmissions that begin at or before it.
    pub fn advance(&mut self, until: u64, mut inputs: Inputs<'_>, rules: &mut [Rule], out: &mut impl Outlet) {
        while let Some((channel, limit)) = inputs.earliest() {
            if channel.head() > until {
                break;
            }
            let limit = limit.min(until);
            while channel.head() <= limit {
                if !self.pass_generated(channel, limit, rules, out) {
                    self.merge(channel, limit, rules, out);
                }
            }
        }
        while self.waiting > 0 && self.decide_at <= until {
            self.send_one(out);
        }
        self.flush(out);
    }

    fn merge(&mut self, channel: &mut Channel, limit: u64, rules: &mut [Rule], out: &mut impl Outlet) {
        let front = channel.front();
        let rule = &mut rules[front.vc as usize];
        let class = rule.class;
        let (mut index, step) = (front.cell, u32::from(!front.are_generated()));
        channel.take_until(limit, |at| {
            let cell = Cells { count: 1, cell: index, ..front };
            index += step;
            // What arrives at `at` is there before the transmitter chooses at `at`.
            while self.waiting > 0 && self.decide_at < at {
                self.send_one(out);
            }
            if rule.policer.as_mut().is_some_and(|policer| !policer.conforms(Time(at))) {
                out.policed(&cell, at);
            } else {
                self.join(class, cell, at, out);
            }
        });
    }

    #[inline]
    fn join(&mut self, class: usize, cell: Cells, at: u64, out: &mut impl Outlet) {
        let being_sent = u64::from(self.serving == class && self.last_end > at);
        let this = &mut self.classes[class];
        let queued = this.waiting + being_sent;
        let view = CellView { vc: cell.vc, first: cell.cell == 0, last: cell.ends_frame() };
        if queued >= self.capacity || !this.policy.admits(QueueView { queued, capacity: self.capacity }, view)
        {
            out.lost(&cell, 1, at);
            return;
        }
        this.waiting += 1;
        this.joined += 1;
        if !cell.are_generated() && cell.ends_frame() {
            out.waiting(cell.frame, class, this.joined);
        }
        match this.queue.back_mut() {
            Some(back) if back.comes_before(&cell) => back.count += 1,
            _ => this.queue.push_back(cell),
        }
        if self.waiting == 0 {
            self.decide_at = self.last_end.max(at);
        }
        self.waiting += 1;
    }

    #[inline]
    fn send_one(&mut self, out: &mut impl Outlet) {
        let serving = self
            .classes
            .iter()
            .position(|class| class.waiting > 0)
            .expect("somebody waits when anything waits");
        let class = &mut self.classes[serving];
        let front = class.queue.front_mut().expect("a class in which cells wait has a record");
        if self.decide_at > self.last_end {
            (self.base, self.n) = (self.decide_at, 0);
            self.end.seek(0);
        }
        self.n += 1;
        self.end.step();
        self.last_end = self.base + self.end.after();
        let cell = Cells { base: self.base, n: self.n, count: 1, last: self.last_end, ..*front };
        front.count -= 1;
        front.cell += u32::from(!front.are_generated());
        if front.count == 0 {
            class.queue.pop_front();
        }
        class.waiting -= 1;
        class.taken += 1;
        self.waiting -= 1;
        self.serving = serving;
        self.decide_at = self.last_end;
        self.hand_on(cell, out);
    }

    #[inline]
    fn hand_on(&mut self, cell: Cells, out: &mut impl Outlet) {
        if self.sent.count > 0 && self.sent.goes_on_with(&cell) {
            self.sent.extend(&cell);
        } else {
            self.flush(out);
            self.sent = cell;
        }
    }

    fn flush(&mut self, out: &mut impl Outlet) {
        if self.sent.count > 0 {
            out.sent(self.sent, self.slot);
            self.sent = NOTHING;
        }
    }

    /// Cells of a generator that find the line free and leave it free again before the next one pass without being
    /// looked at one by one. Whether that was so.
    fn pass_generated(
        &mut self,
        channel: &mut Channel,
        limit: u64,
        rules: &mut [Rule],
        out: &mut impl Outlet,
    ) -> bool {
        let pace = channel.pace();
        let slot = self.slot.after(1);
        if !channel.is_generated()
            || self.waiting > 0
            || self.last_end > channel.head()
            || pace.at_least() <= slot
        {
            return false;
        }
        let front = channel.front();
        if rules[front.vc as usize].policer.is_some() {
            return false;
        }
        self.flush(out);
        let count = channel.front_until(limit);
        let last = front.base + pace.after(front.n + count - 1);
        channel.take_many(count);
        (self.base, self.n) = (last, 1);
        self.end.seek(1);
        self.last_end = last + slot;
        self.decide_at = self.last_end;
        let class = rules[front.vc as usize].class;
        self.serving = class;
        self.classes[class].joined += count;
        self.classes[class].taken += count;
        out.sent(Cells { base: front.base + slot, count, last: self.last_end, ..front }, pace);
        true
    }

    /// When cell number `sequence` of `class` will have left at the earliest, from what is known up to now: exact when all
    /// cells of higher classes that are still to come are generators'.
    ///
    /// Nothing is looked up in `generated` but how many cells the generators of higher classes send up to an instant.
    pub fn departure_bound(&self, class: usize, sequence: u64, generated: impl Fn(u64) -> u64) -> u64 {
        let ahead: u64 = self.classes[..class].iter().map(|class| class.waiting).sum();
        let own = sequence.saturating_sub(self.classes[class].taken);
        if own == 0 {
            return self.last_end;
        }
        let (base, n) =
            if self.decide_at > self.last_end { (self.decide_at, 0) } else { (self.base, self.n) };
        // Slot j (from 1) begins at base + after(n + j - 1). The cell is in the first slot j that is not needed by the
        // cells before it and by the higher ones that have come when the slot begins.
        let mut slots = ahead + own;
        loop {
            let begin = base + self.slot.after(n + slots - 1);
            let needed = ahead + own + generated(begin);
            if needed <= slots {
                return base + self.slot.after(n + slots);
            }
            slots = needed;
        }
    }
}
