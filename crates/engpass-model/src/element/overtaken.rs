//! A priority port whose first class is one even generator: the common congested port, in a tight loop.

use super::channel::{Cells, Channel, Even, Inputs};
use super::classes::{Classes, Waiting, nothing};
use super::{Loss, Outlet, Rule};

/// [`Classes`] while the cells of one even generator, spaced by more than a slot, overtake all others.
///
/// At most one of the generator's cells waits at any time, so none is queued: it is drawn when the transmitter chooses.
pub(super) struct Overtaken<'a, O> {
    queue: &'a mut Classes,
    high: Even,
    out: &'a mut O,
    /// Cells of the generator that have been sent and not handed on.
    sent_high: Cells,
    /// Number of the first cell of class 1 that has not been handed on.
    handed: u64,
    /// When the last cell of class 1 left.
    last_low: u64,
    /// Whether cells may be handed on together, whatever was sent between them.
    gather: bool,
}

/// What changes with every cell, kept at hand in a loop.
#[derive(Clone, Copy)]
struct Hot {
    joined: u64,
    taken: u64,
    /// Number of the first cell behind the front record of class 1; beyond reach while that record grows.
    front_until: u64,
}

impl<'a, O: Outlet> Overtaken<'a, O> {
    /// Look at `queue` this way up to `until`, with what is left of the generator in `high`.
    pub(super) fn new(queue: &'a mut Classes, high: Even, until: u64, out: &'a mut O) -> Self {
        let gather = until.saturating_add(2 * queue.slot_up) <= out.gathers_until();
        let (sent_high, handed) = (nothing(queue.slot), queue.classes[1].taken);
        Self { queue, high, out, sent_high, handed, last_low: 0, gather }
    }

    /// As [`Classes::advance`]; the generator's channel is in `place`.
    pub(super) fn advance(mut self, until: u64, mut inputs: Inputs<'_>, place: usize, rules: &mut [Rule]) {
        let tail = self.queue.classes[1].gate.only_when_full();
        while let Some((channel, limit)) = inputs.earliest_but(place) {
            if channel.head() > until {
                break;
            }
            let limit = limit.min(until);
            while channel.head() <= limit {
                let rule = &mut rules[channel.front().vc as usize];
                if tail && self.gather && rule.policer.is_none() {
                    self.merge(channel, limit);
                } else {
                    self.merge_decided(channel, limit, rule);
                }
            }
        }
        self.serve_all(until.saturating_add(1));
        self.hand_on_low();
        if self.sent_high.count > 0 {
            self.out.sent(self.sent_high);
        }
        self.queue.flush(self.out);
        inputs.channel(place).set_even(self.high);
    }

    /// Take cells of the front record one by one, as policer and discard policy want to see them.
    fn merge_decided(&mut self, channel: &mut Channel, limit: u64, rule: &mut Rule) {
        let front = channel.front();
        let (mut index, step) = (front.cell, u32::from(!front.are_generated()));
        channel.take_until(limit, |at| {
            let mut cell = Cells { count: 1, cell: index, ..front };
            index += step;
            self.serve_all(at);
            if rule.lets_pass(&mut cell, at) {
                self.queue.join(1, cell, at, self.out);
            } else {
                self.out.policed(&cell, at);
            }
        });
    }

    /// Take cells of the front record that are lost only when the queue is full.
    fn merge(&mut self, channel: &mut Channel, limit: u64) {
        let front = channel.front();
        let (mut index, step) = (front.cell, u32::from(!front.are_generated()));
        let mut hot = self.hot();
        // The record that grows at the end of the queue, from its first cell on; and cells lost in a row.
        let mut growing: Option<Waiting> = None;
        let (mut lost, mut lost_from, mut lost_at) = (0, 0, 0);
        let mut last_joined = false;
        channel.take_until(limit, |at| {
            self.serve(&mut hot, at);
            let waiting = hot.joined - hot.taken;
            let being_sent = u64::from(self.queue.serving == 1 && self.queue.last_end > at);
            last_joined = waiting + being_sent < self.queue.capacity;
            if last_joined {
                if lost > 0 {
                    self.out.lost(&Cells { cell: lost_from, count: lost, ..front }, lost_at, Loss::Full);
                    lost = 0;
                }
                if waiting == 0 {
                    self.queue.decide_at = self.queue.last_end.max(at);
                }
                match &mut growing {
                    Some(record) => record.cells.count += 1,
                    None => {
                        growing = Some(Waiting {
                            cells: Cells { count: 1, cell: index, ..front },
                            from: hot.joined,
                        });
                    }
                }
                hot.joined += 1;
            } else {
                if lost == 0 {
                    (lost_from, lost_at) = (index, at);
                    self.close(&mut growing, &mut hot);
                }
                lost += 1;
            }
            index += step;
        });
        if lost > 0 {
            self.out.lost(&Cells { cell: lost_from, count: lost, ..front }, lost_at, Loss::Full);
        }
        self.close(&mut growing, &mut hot);
        self.keep(hot);
        let ends = index == u32::from(front.of) && !front.are_generated();
        if last_joined && ends {
            self.out.waiting(front.frame, 1, hot.joined);
        }
    }

    fn hot(&self) -> Hot {
        let class = &self.queue.classes[1];
        let front_until = class.queue.front().map_or(u64::MAX, Waiting::until);
        Hot { joined: class.joined, taken: class.taken, front_until }
    }

    fn keep(&mut self, hot: Hot) {
        let class = &mut self.queue.classes[1];
        (class.joined, class.taken) = (hot.joined, hot.taken);
        self.queue.waiting = hot.joined - hot.taken;
    }

    /// The record grows no more. Cells of it may have been sent already.
    fn close(&mut self, growing: &mut Option<Waiting>, hot: &mut Hot) {
        let Some(record) = growing.take() else { return };
        let queue = &mut self.queue.classes[1].queue;
        match queue.back_mut() {
            Some(back) if back.cells.comes_before(&record.cells) => back.cells.count += record.cells.count,
            _ => queue.push_back(record),
        }
        hot.front_until = queue.front().map_or(u64::MAX, Waiting::until);
        if hot.taken == hot.front_until {
            self.pop(hot);
        }
    }

    /// All cells of the front record have been sent.
    fn pop(&mut self, hot: &mut Hot) {
        let queue = &mut self.queue.classes[1].queue;
        let record = queue.pop_front().expect("what was sent was in the queue");
        hot.front_until = queue.front().map_or(u64::MAX, Waiting::until);
        if self.gather {
            self.hand_on(&record, hot.taken);
        }
    }

    fn hand_on(&mut self, record: &Waiting, taken: u64) {
        let first = record.cell(self.handed);
        let count = taken - self.handed;
        self.handed = taken;
        let (base, n, pace) = (self.queue.base, self.queue.n, self.queue.slot);
        self.out.sent(Cells { base, n, pace, count, last: self.last_low, ..first });
    }

    /// Hand on the cells of the front record that have been sent.
    fn hand_on_low(&mut self) {
        let taken = self.queue.classes[1].taken;
        if self.gather && taken > self.handed {
            let record =
                self.queue.classes[1].queue.pop_front().expect("a record stays until it is sent wholly");
            self.hand_on(&record, taken);
            self.queue.classes[1].queue.push_front(record);
        }
    }

    fn serve_all(&mut self, before: u64) {
        let mut hot = self.hot();
        self.serve(&mut hot, before);
        self.keep(hot);
    }

    /// Begin all transmissions that begin before `before`.
    #[inline]
    fn serve(&mut self, hot: &mut Hot, before: u64) {
        loop {
            if hot.joined > hot.taken {
                if self.queue.decide_at >= before {
                    return;
                }
                self.serve_both(hot, before);
            } else {
                let start = self.queue.last_end.max(self.high.head);
                if start >= before {
                    return;
                }
                self.serve_high(start, before);
            }
        }
    }

    /// Cells of class 1 wait: choose at the end of every slot.
    fn serve_both(&mut self, hot: &mut Hot, before: u64) {
        self.queue.begin(self.out);
        let until = hot.front_until.min(hot.joined);
        if self.gather {
            self.choose(hot, before, until);
        } else {
            self.choose_one_by_one(hot, before, until);
        }
        if hot.taken == hot.front_until {
            self.pop(hot);
        }
    }

    /// The choice in its plainest form: only how many cells of either class are sent, and when the last of them leaves.
    fn choose(&mut self, hot: &mut Hot, before: u64, until: u64) {
        let queue = &mut *self.queue;
        let base = queue.base;
        let first = Cells { base, n: queue.n + 1, pace: queue.slot, count: 0, ..self.high.cells };
        let (mut end, mut high) = (queue.end.clone(), self.high.walk());
        let (mut at, mut taken, mut highs) = (queue.decide_at, hot.taken, 0);
        let (mut last_low, mut last_high) = (self.last_low, 0);
        while at < before && taken < until {
            end.step();
            let left = base + end.after();
            if high.head() > at {
                taken += 1;
                last_low = left;
            } else {
                high.step();
                highs += 1;
                last_high = left;
            }
            at = left;
        }
        queue.n += highs + (taken - hot.taken);
        queue.end = end;
        queue.serving = usize::from(last_low == at);
        (queue.last_end, queue.decide_at) = (at, at);
        hot.taken = taken;
        self.last_low = last_low;
        if highs > 0 {
            self.high.walked(high, highs);
            self.gather_high(Cells { count: highs, last: last_high, ..first });
        }
    }

    /// The same, where the next queue needs every instant.
    fn choose_one_by_one(&mut self, hot: &mut Hot, before: u64, until: u64) {
        let queue = &mut *self.queue;
        while queue.decide_at < before && hot.taken < until {
            queue.serving = usize::from(self.high.head > queue.decide_at);
            queue.end.step();
            queue.n += 1;
            queue.last_end = queue.base + queue.end.after();
            queue.decide_at = queue.last_end;
            let cell = if queue.serving == 1 {
                let front = queue.classes[1].queue.front().expect("a class in which cells wait has a record");
                hot.taken += 1;
                front.cell(hot.taken - 1)
            } else {
                let cell = Cells { count: 1, ..self.high.cells };
                self.high.take();
                cell
            };
            let sent = Cells { base: queue.base, n: queue.n, pace: queue.slot, last: queue.last_end, ..cell };
            queue.hand_on(sent, self.out);
        }
    }

    fn gather_high(&mut self, sent: Cells) {
        if self.sent_high.count == 0 {
            self.sent_high = sent;
        } else {
            self.sent_high.count += sent.count;
            self.sent_high.last = sent.last;
        }
    }

    /// No other cell waits: those of class 0 go at once, or when the cell being sent has left.
    fn serve_high(&mut self, start: u64, before: u64) {
        let queue = &mut *self.queue;
        let cells = self.high.cells;
        let sent = if start > self.high.head || start == queue.last_end {
            queue.n += 1;
            queue.end.step();
            queue.last_end = queue.base + queue.end.after();
            self.high.take();
            Cells { base: queue.base, n: queue.n, pace: queue.slot, count: 1, last: queue.last_end, ..cells }
        } else {
            let (count, last) = self.high.take_before(before);
            let idle = last - queue.last_end - (count - 1) * queue.slot_up;
            queue.flush(self.out);
            self.out.idle(idle, queue.end.rounding() + (count - 1) * queue.slot_rounding);
            (queue.base, queue.n, queue.last_end) = (last, 1, last + queue.slot_up);
            queue.end.seek(1);
            Cells { base: cells.base + queue.slot_up, count, last: queue.last_end, ..cells }
        };
        queue.serving = 0;
        queue.decide_at = queue.last_end;
        if self.gather {
            self.gather_high(sent);
        } else {
            queue.hand_on(sent, self.out);
        }
    }
}
