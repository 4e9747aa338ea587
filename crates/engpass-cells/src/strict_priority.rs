//! A line with strict priority between service categories (classes).

use std::collections::VecDeque;

use engpass_model::line::LineStatus;
use engpass_model::time::{Pace, Stepper};

use super::pace_of_line::meets_cell_ahead;
use super::periodic_priority::{LeftoverService, PeriodicPriority};
use super::{CellAdmission, CellSink, CellTrain, Channel, Inputs, VcTreatment};

/// A line with one queue per class. Class 0 is served first; a cell that is being sent is finished.
///
/// The departure of a cell is known when its transmission begins. Until then cells of a higher class may overtake it.
pub struct StrictPriority {
    pub(super) slot: Pace,
    /// Slot, rounded up to picoseconds.
    pub(super) slot_up: u64,
    /// Parts of a picosecond by which `slot_up` is rounded up.
    pub(super) slot_rounding: u64,
    pub(super) capacity: u64,
    pub(super) classes: Vec<ClassQueue>,
    /// Number of cells that wait in all classes, without the one being sent.
    pub(super) waiting: u64,
    pub(super) base: u64,
    pub(super) n: u64,
    /// Stepper at the end of cell `n`.
    pub(super) end: Stepper,
    /// When the cell being sent, or the last one sent, has left.
    pub(super) last_end: u64,
    /// Class of the cell being sent, or of the last one sent.
    pub(super) serving: usize,
    /// Instant at which the line takes its next cell, if one waits.
    pub(super) decide_at: u64,
    /// Longest queue of one class since the last call of [`Self::measure_from`], in cells.
    pub(super) longest: u64,
    /// Arrivals before this instant are not measured.
    measured_from: u64,
    /// Cells sent back to back from one record, held until [`Self::flush`] hands them on.
    sent: CellTrain,
    /// True if the admission of some class counts cells by circuit and must learn of departures.
    counts: bool,
    /// True if the departure of the last cell that the line took was not reported to its admission yet.
    unsettled: bool,
    /// If all cells of class 0 are periodic: their channel, and what they leave of the line. See [`Self::set_periodic_class`].
    leftover: Option<Box<LeftoverService>>,
}

/// The queue of one class.
pub(super) struct ClassQueue {
    pub(super) admission: CellAdmission,
    pub(super) queue: VecDeque<Waiting>,
    /// Number of cells that have joined the class so far.
    pub(super) joined: u64,
    /// Number of cells of the class that the line has taken for transmission so far.
    pub(super) taken: u64,
}

/// Consecutive cells of one record that wait. Their instants are not kept.
pub(super) struct Waiting {
    pub(super) cells: CellTrain,
    /// Number of the first cell, counted from 0 over all cells that joined the class.
    pub(super) from: u64,
}

impl ClassQueue {
    #[inline]
    pub(super) fn waiting(&self) -> u64 {
        self.joined - self.taken
    }

    /// Adds a cell to the class, in the last record if it continues that.
    #[inline]
    pub(super) fn join(&mut self, cell: CellTrain) {
        match self.queue.back_mut() {
            Some(back) if back.cells.comes_before(&cell) => back.cells.count += 1,
            _ => self.queue.push_back(Waiting { cells: cell, from: self.joined }),
        }
        self.joined += 1;
    }
}

impl Waiting {
    /// Returns the number of the first cell behind this record.
    #[inline]
    pub(super) fn until(&self) -> u64 {
        self.from + self.cells.count
    }

    /// Returns the cell with this number, which must be one of the record.
    #[inline]
    pub(super) fn cell(&self, number: u64) -> CellTrain {
        let cell = self.cells.cell + if self.cells.are_generated() { 0 } else { (number - self.from) as u32 };
        CellTrain { count: 1, cell, ..self.cells }
    }
}

impl StrictPriority {
    /// Returns a line with one queue for each admission. All queues must have the same capacity.
    pub fn new(slot: Pace, admissions: Vec<CellAdmission>) -> Self {
        let capacity = admissions.iter().map(CellAdmission::capacity).min().unwrap_or(0);
        let counts = admissions.iter().any(CellAdmission::needs_per_vc_count);
        let class = |admission| ClassQueue { admission, queue: VecDeque::new(), joined: 0, taken: 0 };
        let mut one = Stepper::new(slot);
        one.seek(1);
        Self {
            slot,
            slot_up: one.after(),
            slot_rounding: one.rounding(),
            capacity,
            classes: admissions.into_iter().map(class).collect(),
            waiting: 0,
            base: 0,
            n: 0,
            end: Stepper::new(slot),
            last_end: 0,
            serving: 0,
            decide_at: 0,
            longest: 0,
            measured_from: 0,
            sent: CellTrain::none(slot),
            counts,
            unsettled: false,
            leftover: None,
        }
    }

    /// Declares that all cells of class 0 come from one generator, in the channel with index `channel`, evenly spaced by `pace`, which is more than a slot, and
    /// without a policer. At most one of them waits at any time. Therefore they are not queued but drawn when the line chooses.
    pub fn set_periodic_class(&mut self, channel: usize, pace: Pace) {
        self.leftover = Some(Box::new(LeftoverService::of(self.slot, channel, pace)));
    }

    /// Takes all cells that arrive at or before `until`, and begins all transmissions that are due up to then. Reports departures and losses to `out`.
    // Inlined into its only caller, it would be slower.
    #[inline(never)]
    pub fn advance(
        &mut self,
        until: u64,
        mut inputs: Inputs<'_>,
        rules: &mut [VcTreatment],
        out: &mut impl CellSink,
    ) {
        if let Some(leftover) = self.leftover.take_if(|leftover| {
            // While the longest queue of class 0 may still matter, class 0 is queued like the others.
            let classes = &self.classes;
            (self.longest > 1 || leftover.is_sparse()) && classes[0].waiting() == 0
        }) {
            let high = inputs.channel(leftover.channel).even();
            let advanced = high.map(|high| {
                let periodic = PeriodicPriority::new(self, (high, &leftover), until, out);
                periodic.advance(until, &mut inputs, leftover.channel, rules);
            });
            self.leftover = Some(leftover);
            if advanced.is_some() {
                return;
            }
        }
        while let Some((channel, limit)) = inputs.earliest() {
            if channel.head() > until {
                break;
            }
            // If several cells arrive at the same instant, all of them join before the line chooses one.
            let alone = if limit <= until { limit.saturating_sub(1) } else { until };
            let limit = limit.min(until);
            while channel.head() <= limit {
                if channel.head() > alone || !self.try_pass_run(channel, alone, rules, out) {
                    self.take_cell_by_cell(channel, limit, rules, out);
                }
            }
        }
        while self.waiting > 0 && self.decide_at <= until {
            self.send_one(out);
        }
        self.flush(out);
    }

    /// Slow path: takes the cells of the current run up to `limit` one by one, and asks policer and admission about each.
    fn take_cell_by_cell(
        &mut self,
        channel: &mut Channel,
        limit: u64,
        rules: &mut [VcTreatment],
        out: &mut impl CellSink,
    ) {
        let front = channel.front();
        let rule = &mut rules[front.vc as usize];
        let class = rule.class;
        let (mut index, step) = (front.cell, u32::from(!front.are_generated()));
        channel.take_until(limit, |at| {
            let mut cell = CellTrain { count: 1, cell: index, ..front };
            index += step;
            // Cells that arrive at `at` join before the line chooses a cell at `at`; earlier choices come first.
            while self.waiting > 0 && self.decide_at < at {
                self.send_one(out);
            }
            if rule.police(&mut cell, at) {
                self.join(class, cell, at, out);
            } else {
                out.policed(&cell, at);
            }
        });
    }

    #[inline]
    pub(super) fn join(&mut self, class: usize, mut cell: CellTrain, at: u64, out: &mut impl CellSink) {
        if self.last_end <= at {
            self.settle();
        }
        let being_sent = u64::from(self.serving == class && self.last_end > at);
        let this = &mut self.classes[class];
        let queued = this.waiting() + being_sent;
        if let Err(cause) = this.admission.admit(queued, &mut cell) {
            out.lost(&cell, at, cause);
            return;
        }
        this.join(cell);
        if at >= self.measured_from {
            self.longest = self.longest.max(queued + 1);
        }
        if !cell.are_generated() && cell.ends_pdu() {
            out.waiting(cell.pdu, class, this.joined);
        }
        if self.waiting == 0 {
            self.decide_at = self.last_end.max(at);
        }
        self.waiting += 1;
    }

    #[inline]
    fn send_one(&mut self, out: &mut impl CellSink) {
        let serving =
            self.classes.iter().position(|class| class.waiting() > 0).expect("a class has a waiting cell");
        self.begin(out);
        self.settle();
        self.unsettled = self.counts;
        self.n += 1;
        self.end.step();
        self.last_end = self.base + self.end.after();
        self.decide_at = self.last_end;
        self.serving = serving;
        let class = &mut self.classes[serving];
        let front = class.queue.front().expect("a class with waiting cells has a record");
        let cell = front.cell(class.taken);
        class.taken += 1;
        if class.taken == front.until() {
            class.queue.pop_front();
        }
        self.waiting -= 1;
        self.emit_sent(
            CellTrain { base: self.base, n: self.n, pace: self.slot, last: self.last_end, ..cell },
            out,
        );
    }

    /// Reports the departure of the cell that the line took last to its admission.
    #[inline]
    fn settle(&mut self) {
        if std::mem::take(&mut self.unsettled) {
            self.classes[self.serving].admission.left(1);
        }
    }

    /// Prepares a transmission at `decide_at`: begins a new busy period if the line was idle.
    #[inline]
    pub(super) fn begin(&mut self, out: &mut impl CellSink) {
        if self.decide_at > self.last_end {
            self.flush(out);
            out.idle(self.decide_at - self.last_end, self.end.rounding());
            (self.base, self.n) = (self.decide_at, 0);
            self.end.seek(0);
        }
    }

    /// Returns the number of cells in all queues at the instant `at`, including the one being sent. The line must have been advanced exactly up to `at`.
    pub fn length(&self, at: u64) -> u64 {
        self.waiting + u64::from(self.last_end > at)
    }

    /// Begins to measure the longest queue at the instant `at`, up to which all cells were taken. `waits` returns true if a periodic cell of the given channel
    /// waits at `at`; such a cell is in no queue, because it is drawn only when the line chooses.
    pub fn measure_from(&mut self, at: u64, waits: impl Fn(usize) -> bool) {
        let drawn = self.leftover.as_ref().is_some_and(|rest| waits(rest.channel));
        let length = |(class, queue): (usize, &ClassQueue)| {
            let being_sent = self.serving == class && self.last_end > at;
            queue.waiting() + u64::from(being_sent) + u64::from(class == 0 && drawn)
        };
        self.longest = self.classes.iter().enumerate().map(length).max().unwrap_or(0);
        self.measured_from = at + 1;
    }

    /// Returns the longest queue of one class in cells, the cell being sent included.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// Returns the instant at which the line takes its next queued cell, as far as known; [`u64::MAX`] if none waits.
    pub fn next_begin(&self) -> u64 {
        if self.waiting > 0 { self.decide_at } else { u64::MAX }
    }

    /// Returns the status of the line at the instant `at`. The line must have been advanced exactly up to `at`.
    pub fn line_status(&self, at: u64) -> LineStatus {
        LineStatus::of(self.slot, self.base, self.last_end, self.end.rounding(), at)
    }

    /// Hands on a sent cell; it waits to be joined with the next ones if they continue it.
    #[inline]
    pub(super) fn emit_sent(&mut self, cell: CellTrain, out: &mut impl CellSink) {
        if self.sent.count > 0 && self.sent.continues_with(&cell) {
            self.sent.extend(&cell);
        } else {
            self.flush(out);
            self.sent = cell;
        }
    }

    /// Hands the cells that [`Self::emit_sent`] holds to the sink.
    pub(super) fn flush(&mut self, out: &mut impl CellSink) {
        if self.sent.count > 0 {
            out.sent(self.sent);
            self.sent.count = 0;
        }
    }

    /// Takes cells of the current run at once if no cell waits and their departures are evenly spaced. Returns whether it took any.
    fn try_pass_run(
        &mut self,
        channel: &mut Channel,
        limit: u64,
        rules: &[VcTreatment],
        out: &mut impl CellSink,
    ) -> bool {
        let front = channel.front();
        let head = channel.head();
        let rule = &rules[front.vc as usize];
        if self.waiting > 0 || rule.policer.is_some() {
            return false;
        }
        let spread = front.pace.at_least() > self.slot_up && head > self.last_end;
        let closed =
            front.pace == self.slot && (head > self.last_end || (front.base, front.n) == (self.base, self.n));
        if !spread && !closed {
            return false;
        }
        let count = channel.front_until(limit);
        let free = head > self.last_end;
        let class = &mut self.classes[rule.class];
        // At the pace of the line, rounding may make a cell arrive a picosecond before the one ahead has left.
        let found = (0, u64::from(closed));
        let Some(efci) = class.admission.admit_train(&CellTrain { count, ..front }, found) else {
            return false;
        };
        channel.take_many(count);
        if self.longest < 2 {
            // Cells at the pace of the line that continue the same busy period never meet the cell ahead of them.
            let meets =
                closed && free && meets_cell_ahead(self.slot, (front.base, front.n), (head, 0), count);
            self.longest = self.longest.max(1 + u64::from(meets));
        }
        self.settle();
        let class = &mut self.classes[rule.class];
        class.admission.joined(front.vc, 1);
        class.joined += count;
        class.taken += count;
        self.unsettled = self.counts;
        self.serving = rule.class;
        self.flush(out);
        let sent = if spread {
            // Every cell finds the line free.
            let last = front.nth(count - 1);
            let idle = last - self.last_end - (count - 1) * self.slot_up;
            out.idle(idle, self.end.rounding() + (count - 1) * self.slot_rounding);
            (self.base, self.n) = (last, 1);
            CellTrain { base: front.base + self.slot_up, count, ..front }
        } else {
            // At the pace of the line every cell arrives when the one before it leaves.
            if head > self.last_end {
                out.idle(head - self.last_end, self.end.rounding());
                (self.base, self.n) = (head, 0);
            }
            let n = self.n + 1;
            self.n += count;
            CellTrain { base: self.base, n, count, ..front }
        };
        self.end.seek(self.n);
        self.last_end = self.base + self.end.after();
        self.decide_at = self.last_end;
        out.sent(CellTrain { last: self.last_end, efci, ..sent });
        true
    }

    /// Returns the earliest instant at which cell number `sequence` of `class`, from 1, can have left, given the present knowledge. The bound is exact if all
    /// later cells of higher classes are those of the generator in the channel `periodic`.
    pub fn departure_bound(&self, class: usize, sequence: u64, periodic: Option<&Channel>) -> u64 {
        let ahead: u64 = self.classes[..class].iter().map(ClassQueue::waiting).sum();
        let own = sequence.saturating_sub(self.classes[class].taken);
        if own == 0 {
            return self.last_end;
        }
        let (base, n) =
            if self.decide_at > self.last_end { (self.decide_at, 0) } else { (self.base, self.n) };
        let before = ahead + own;
        let high = periodic.and_then(Channel::even).zip(self.leftover.as_ref());
        let highs =
            high.map_or(0, |(high, leftover)| leftover.highs_before(before, (base, n, self.slot), &high));
        base + self.slot.after(n + before + highs)
    }
}
