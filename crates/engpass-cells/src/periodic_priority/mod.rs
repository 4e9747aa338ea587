//! A priority port whose class 0 is one generator with periodic cells, in tight loops. This is the usual congested port of a study.

mod fixed_point;
mod slot_counting;
mod trains;
mod uncontended;

use engpass_model::time::{Leap, Pace, Stepper};

use super::periodic::PeriodicCells;
use super::strict_priority::{StrictPriority, Waiting};
use super::{CellSink, CellTrain, Channel, Inputs, VcTreatment};
use slot_counting::LastHigh;

/// [`StrictPriority`] in the case that all cells of class 0 come from one generator, evenly spaced by more than a slot.
///
/// At most one of these cells waits at any time. Therefore none is queued: the next one is drawn when the line chooses.
pub(super) struct PeriodicPriority<'a, O> {
    queue: &'a mut StrictPriority,
    high: PeriodicCells,
    out: &'a mut O,
    /// Sent cells of the generator that were not handed to the sink yet.
    sent_high: CellTrain,
    /// Data to compute when the last of `sent_high` left, if that was put off.
    last_high: Option<LastHigh>,
    /// Number of the first cell of class 1 that was not handed to the sink yet.
    handed: u64,
    /// Instant at which the last cell of class 1 left.
    last_low: u64,
    /// True if cells of one PDU or generator may be handed on together even if others were sent between them.
    gather: bool,
    leftover: &'a LeftoverService,
}

/// Leftover service: what the generator of class 0 leaves of a line.
#[derive(Debug)]
pub(super) struct LeftoverService {
    /// Index of the generator's channel.
    pub(super) channel: usize,
    /// Least time between two departures of class 1 while its cells wait, in picoseconds.
    share: u64,
    /// The generator's spacing less a slot: see [`slot_counting::drift`].
    drift: u64,
    /// True if a cell of the generator has always left when the next one arrives, even if it had to wait.
    is_sparse: bool,
    /// 2^64 divided by an upper bound of the generator's spacing less a slot, in picoseconds.
    inverse_drift: u64,
    /// Strides over up to `LEAPS - 1` slots, and over the same numbers of the generator's cells.
    slots: [Leap; LEAPS],
    highs: [Leap; LEAPS],
    /// Length of a busy period, indexed by its number of cells, in picoseconds, and the parts by which it is rounded up.
    busy: [(u64, u64); BUSY],
}

/// Number of busy period lengths that are computed in advance.
const BUSY: usize = 64;

/// Returns the length of `cells` slots, and by how much it is rounded up.
fn busy(slot: Pace, cells: u64) -> (u64, u64) {
    let mut end = Stepper::new(slot);
    end.seek(cells);
    (end.after(), end.rounding())
}

/// A cursor moves by fewer cells than this at once.
const LEAPS: usize = 8;

impl LeftoverService {
    /// Returns the leftover service of a line with this `slot`, for the generator in the channel with index `channel` and the pace `generator`, longer than a
    /// slot.
    pub(super) fn of(slot: Pace, channel: usize, generator: Pace) -> Self {
        let (slot_ps, pace) = (slot.at_least(), generator.at_least());
        let ample = u128::from(pace + 1 - slot_ps);
        let share = u128::from(slot_ps) * u128::from(pace) / ample.max(1);
        Self {
            channel,
            share: u64::try_from(share).unwrap_or(u64::MAX),
            drift: slot_counting::drift(generator, slot),
            // A cell waits for at most one slot, and rounding adds less than a picosecond to each instant.
            is_sparse: pace >= 2 * (slot_ps + 1) + 2,
            inverse_drift: ((1u128 << 64) / (ample + 4)) as u64,
            slots: std::array::from_fn(|units| slot.leap(units as u64)),
            highs: std::array::from_fn(|units| generator.leap(units as u64)),
            busy: std::array::from_fn(|cells| busy(slot, cells as u64)),
        }
    }
}

impl LeftoverService {
    /// Returns true if the queue holds at most one cell of the generator at any time, the one being sent included.
    pub(super) fn is_sparse(&self) -> bool {
        self.is_sparse
    }
}

/// The state that changes with every cell, kept in registers.
#[derive(Clone, Copy)]
struct LoopState {
    joined: u64,
    taken: u64,
    /// Number of the first cell behind the front record of class 1; `u64::MAX` while the loop still adds to that record.
    front_until: u64,
}

impl<'a, O: CellSink> PeriodicPriority<'a, O> {
    /// Prepares to advance `queue` up to `until`. `high` holds the remaining cells of the generator of class 0.
    pub(super) fn new(
        queue: &'a mut StrictPriority,
        (high, leftover): (PeriodicCells, &'a LeftoverService),
        until: u64,
        out: &'a mut O,
    ) -> Self {
        let gather = until.saturating_add(2 * queue.slot_up) <= out.coalesce_until();
        let (sent_high, handed) = (CellTrain::none(queue.slot), queue.classes[1].taken);
        Self { queue, high, out, sent_high, last_high: None, handed, last_low: 0, gather, leftover }
    }

    /// Like [`StrictPriority::advance`]. `place` is the index of the generator's channel.
    pub(super) fn advance(
        mut self,
        until: u64,
        inputs: &mut Inputs<'_>,
        place: usize,
        rules: &mut [VcTreatment],
    ) {
        if self.high.head <= until {
            self.queue.longest = self.queue.longest.max(1);
        }
        let tail = self.queue.classes[1].admission.drops_only_when_full();
        while let Some((channel, limit)) = inputs.earliest_but(place) {
            if channel.head() > until {
                break;
            }
            let limit = limit.min(until);
            while channel.head() <= limit {
                let rule = &mut rules[channel.front().vc as usize];
                if tail && self.gather && rule.policer.is_none() {
                    self.take_whole_run(channel, limit);
                } else {
                    self.take_cell_by_cell(channel, limit, rule);
                }
            }
        }
        self.serve_all(until.saturating_add(1));
        self.emit_low();
        self.emit_high();
        self.queue.flush(self.out);
        inputs.channel(place).set_even(self.high);
    }

    /// Takes cells of the current run one by one, because policer or discard policy must see each, or the next queue needs every instant.
    fn take_cell_by_cell(&mut self, channel: &mut Channel, limit: u64, rule: &mut VcTreatment) {
        let front = channel.front();
        let (mut index, step) = (front.cell, u32::from(!front.are_generated()));
        channel.take_until(limit, |at| {
            let mut cell = CellTrain { count: 1, cell: index, ..front };
            index += step;
            self.serve_all(at);
            if rule.police(&mut cell, at) {
                self.queue.join(1, cell, at, self.out);
            } else {
                self.out.policed(&cell, at);
            }
        });
    }

    fn hot(&self) -> LoopState {
        let class = &self.queue.classes[1];
        let front_until = class.queue.front().map_or(u64::MAX, Waiting::until);
        LoopState { joined: class.joined, taken: class.taken, front_until }
    }

    fn keep(&mut self, hot: LoopState) {
        let class = &mut self.queue.classes[1];
        (class.joined, class.taken) = (hot.joined, hot.taken);
        self.queue.waiting = hot.joined - hot.taken;
    }

    /// Appends a complete record to the queue of class 1. Some of its cells may have been sent already.
    fn close(&mut self, record: Waiting, hot: &mut LoopState) {
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

    /// Removes the front record of class 1, whose cells have all been sent, and hands them on.
    fn pop(&mut self, hot: &mut LoopState) {
        let queue = &mut self.queue.classes[1].queue;
        let record = queue.pop_front().expect("a sent record was in the queue");
        hot.front_until = queue.front().map_or(u64::MAX, Waiting::until);
        if self.gather {
            self.emit_sent(&record, hot.taken);
        }
    }

    fn emit_sent(&mut self, record: &Waiting, taken: u64) {
        let first = record.cell(self.handed);
        let count = taken - self.handed;
        self.handed = taken;
        let (base, n, pace) = (self.queue.base, self.queue.n, self.queue.slot);
        self.out.sent(CellTrain { base, n, pace, count, last: self.last_low, ..first });
    }

    /// Hands on the sent cells of class 1's front record, which still has waiting cells.
    fn emit_low(&mut self) {
        let taken = self.queue.classes[1].taken;
        if self.gather && taken > self.handed {
            let record =
                self.queue.classes[1].queue.pop_front().expect("a partly sent record is still in the queue");
            self.emit_sent(&record, taken);
            self.queue.classes[1].queue.push_front(record);
        }
    }

    fn serve_all(&mut self, before: u64) {
        let mut hot = self.hot();
        self.serve(&mut hot, before);
        self.keep(hot);
    }

    /// Begins all transmissions that are due before the instant `before`.
    #[inline]
    fn serve(&mut self, hot: &mut LoopState, before: u64) {
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

    /// Serves both classes while cells of class 1 wait: chooses at the end of every slot.
    fn serve_both(&mut self, hot: &mut LoopState, before: u64) {
        self.queue.begin(self.out);
        let until = hot.front_until.min(hot.joined);
        if self.gather {
            self.choose(hot, before, until);
        } else {
            self.choose_slot_by_slot(hot, before, until);
        }
        if hot.taken == hot.front_until {
            self.pop(hot);
        }
    }

    /// Chooses slot by slot, because the next queue needs every instant.
    fn choose_slot_by_slot(&mut self, hot: &mut LoopState, before: u64, until: u64) {
        let queue = &mut *self.queue;
        while queue.decide_at < before && hot.taken < until {
            queue.serving = usize::from(self.high.head > queue.decide_at);
            queue.end.step();
            queue.n += 1;
            queue.last_end = queue.base + queue.end.after();
            queue.decide_at = queue.last_end;
            let cell = if queue.serving == 1 {
                let front = queue.classes[1].queue.front().expect("a class with waiting cells has a record");
                hot.taken += 1;
                front.cell(hot.taken - 1)
            } else {
                let cell = CellTrain { count: 1, ..self.high.cells };
                self.high.take_next();
                cell
            };
            let sent =
                CellTrain { base: queue.base, n: queue.n, pace: queue.slot, last: queue.last_end, ..cell };
            queue.emit_sent(sent, self.out);
        }
    }

    /// Hands the gathered cells of the generator to the sink.
    fn emit_high(&mut self) {
        if let Some(last) = self.last_high.take() {
            self.sent_high.last = last.left(self.queue.slot);
        }
        if self.sent_high.count > 0 {
            self.out.sent(self.sent_high);
        }
    }

    fn gather_high(&mut self, sent: CellTrain) {
        if self.sent_high.count == 0 {
            self.sent_high = sent;
        } else {
            self.sent_high.count += sent.count;
            self.sent_high.last = sent.last;
        }
        self.last_high = None;
    }

    /// Serves class 0 while class 1 is empty: each cell leaves at once, or when the cell being sent has left.
    fn serve_high(&mut self, start: u64, before: u64) {
        let queue = &mut *self.queue;
        let cells = self.high.cells;
        let sent = if start > self.high.head || start == queue.last_end {
            queue.n += 1;
            queue.end.step();
            queue.last_end = queue.base + queue.end.after();
            self.high.take_next();
            CellTrain {
                base: queue.base,
                n: queue.n,
                pace: queue.slot,
                count: 1,
                last: queue.last_end,
                ..cells
            }
        } else {
            let (count, last) = self.high.take_before(before);
            let idle = last - queue.last_end - (count - 1) * queue.slot_up;
            queue.flush(self.out);
            self.out.idle(idle, queue.end.rounding() + (count - 1) * queue.slot_rounding);
            (queue.base, queue.n, queue.last_end) = (last, 1, last + queue.slot_up);
            queue.end.seek(1);
            CellTrain { base: cells.base + queue.slot_up, count, last: queue.last_end, ..cells }
        };
        queue.serving = 0;
        queue.decide_at = queue.last_end;
        if self.gather {
            self.gather_high(sent);
        } else {
            queue.emit_sent(sent, self.out);
        }
    }
}

#[cfg(test)]
mod tests;
