//! Strict priority between service categories in front of a line.

use std::collections::VecDeque;

use super::channel::{Cells, Channel, Even, Inputs};
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
    /// Place of the channel whose cells overtake all others, if it is known in advance: see [`Self::overtaken_by`].
    overtaking: Option<usize>,
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
            overtaking: None,
        }
    }

    /// All cells of class 0 come by the channel in this place, from one even generator without a policer, spaced by more
    /// than a slot: at most one of them waits at any time, so it need not be queued but is drawn when its turn comes.
    pub fn overtaken_by(&mut self, channel: usize) {
        self.overtaking = Some(channel);
    }

    /// Take all cells that arrive at or before `until` and begin all transmissions that begin at or before it.
    pub fn advance(&mut self, until: u64, mut inputs: Inputs<'_>, rules: &mut [Rule], out: &mut impl Outlet) {
        if let Some(channel) = self.overtaking
            && let Some(high) = inputs.channel(channel).even()
        {
            self.advance_overtaken(until, inputs, (channel, high), rules, out);
            return;
        }
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

    /// As [`Self::advance`], with the cells of class 0 drawn from `high` when the transmitter chooses.
    fn advance_overtaken(
        &mut self,
        until: u64,
        mut inputs: Inputs<'_>,
        (place, mut high): (usize, Even),
        rules: &mut [Rule],
        out: &mut impl Outlet,
    ) {
        let gather = until.saturating_add(2 * self.slot.after(1)) <= out.gathers_until();
        let mut line = Overtaken { high: &mut high, sent: [NOTHING; 2], gather };
        while let Some((channel, limit)) = inputs.earliest_but(place) {
            if channel.head() > until {
                break;
            }
            let limit = limit.min(until);
            while channel.head() <= limit {
                let front = channel.front();
                let policer = &mut rules[front.vc as usize].policer;
                let (mut index, step) = (front.cell, u32::from(!front.are_generated()));
                channel.take_until(limit, |at| {
                    let cell = Cells { count: 1, cell: index, ..front };
                    index += step;
                    line.serve(self, at, out);
                    if policer.as_mut().is_some_and(|policer| !policer.conforms(Time(at))) {
                        out.policed(&cell, at);
                    } else {
                        self.join(1, cell, at, out);
                    }
                });
            }
        }
        line.serve(self, until.saturating_add(1), out);
        for sent in line.sent {
            if sent.count > 0 {
                out.sent(sent, self.slot);
            }
        }
        self.flush(out);
        inputs.channel(place).set_even(high);
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

/// The transmitter while the cells of one even generator overtake all others.
struct Overtaken<'a> {
    high: &'a mut Even,
    /// Cells of either class that have been sent and not handed on.
    sent: [Cells; 2],
    /// Whether they may be handed on together, whatever was sent between them.
    gather: bool,
}

impl Overtaken<'_> {
    /// Begin all transmissions that begin before `before`.
    #[inline]
    fn serve(&mut self, queue: &mut Classes, before: u64, out: &mut impl Outlet) {
        loop {
            if queue.waiting > 0 {
                if queue.decide_at >= before {
                    return;
                }
                self.serve_both(queue, before, out);
            } else {
                let start = queue.last_end.max(self.high.head);
                if start >= before {
                    return;
                }
                self.serve_high(queue, start, before, out);
            }
        }
    }

    /// Cells wait: choose at the end of every slot.
    fn serve_both(&mut self, queue: &mut Classes, before: u64, out: &mut impl Outlet) {
        let mut at = queue.decide_at;
        if at > queue.last_end {
            (queue.base, queue.n) = (at, 0);
            queue.end.seek(0);
        }
        let front = *queue.classes[1].queue.front().expect("a class in which cells wait has a record");
        let (base, first) = (queue.base, queue.n + 1);
        let mut end = queue.end.clone();
        let (mut lows, mut highs) = (0, 0);
        let (mut last_low, mut last_high) = (0, 0);
        while at < before && lows < front.count {
            end.step();
            let left = base + end.after();
            let overtaken = self.high.head <= at;
            if !self.gather {
                let n = first + lows + highs;
                let sent = if overtaken {
                    Cells { base, n, count: 1, last: left, ..self.high.cells }
                } else {
                    Cells { base, n, count: 1, last: left, cell: front.cell + lows as u32, ..front }
                };
                queue.hand_on(sent, out);
            }
            if overtaken {
                self.high.take();
                (highs, last_high) = (highs + 1, left);
            } else {
                (lows, last_low) = (lows + 1, left);
            }
            at = left;
        }
        queue.n += lows + highs;
        queue.end = end;
        (queue.last_end, queue.decide_at) = (at, at);
        queue.serving = usize::from(last_low == at);
        queue.waiting -= lows;
        let class = &mut queue.classes[1];
        class.waiting -= lows;
        class.taken += lows;
        let waiting = class.queue.front_mut().expect("a class in which cells wait has a record");
        waiting.count -= lows;
        waiting.cell += if front.are_generated() { 0 } else { lows as u32 };
        if waiting.count == 0 {
            class.queue.pop_front();
        }
        if self.gather {
            let at_first = Cells { base, n: first, ..front };
            self.gather(Cells { count: lows, last: last_low, ..at_first }, 1, queue.slot, out);
            let at_first = Cells { base, n: first, ..self.high.cells };
            self.gather(Cells { count: highs, last: last_high, ..at_first }, 0, queue.slot, out);
        }
    }

    /// No other cell waits: those of class 0 go at once, or when the cell being sent has left.
    fn serve_high(&mut self, queue: &mut Classes, start: u64, before: u64, out: &mut impl Outlet) {
        let slot = queue.slot.after(1);
        let cells = self.high.cells;
        queue.serving = 0;
        if start > self.high.head || start == queue.last_end {
            queue.n += 1;
            queue.end.step();
            queue.last_end = queue.base + queue.end.after();
            self.high.take();
            let sent = Cells { base: queue.base, n: queue.n, count: 1, last: queue.last_end, ..cells };
            if self.gather {
                self.gather(sent, 0, queue.slot, out);
            } else {
                queue.hand_on(sent, out);
            }
        } else {
            let (count, last) = self.high.take_before(before);
            (queue.base, queue.n, queue.last_end) = (last, 1, last + slot);
            queue.end.seek(1);
            let sent = Cells { base: cells.base + slot, count, last: last + slot, ..cells };
            if self.gather {
                self.gather(sent, 0, queue.slot, out);
            } else {
                queue.flush(out);
                out.sent(sent, self.high.pace);
            }
        }
        queue.decide_at = queue.last_end;
    }

    fn gather(&mut self, cells: Cells, class: usize, slot: Pace, out: &mut impl Outlet) {
        let sent = &mut self.sent[class];
        if cells.count == 0 {
            return;
        }
        if sent.count > 0 && sent.comes_before(&cells) {
            sent.extend(&cells);
            return;
        }
        if sent.count > 0 {
            out.sent(*sent, slot);
        }
        *sent = cells;
    }
}
