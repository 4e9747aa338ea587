//! A FIFO queue in front of a line.

mod merge;
#[cfg(test)]
mod tests;

use engpass_model::line::LineStatus;
use engpass_model::time::{Pace, Stepper};

use super::departures::DepartureBuffer;
use super::pace_of_line::meets_cell_ahead;
use super::{CellAdmission, CellDropCause, CellSink, CellTrain, Channel, Inputs, VcId, VcTreatment};

/// A line and its FIFO queue. The departure of a cell is known when it arrives; therefore no cell is stored. The state is the busy period: when it began,
/// and how many cells it has accepted and sent.
pub struct Fifo {
    slot: Pace,
    /// Slot, rounded up to picoseconds.
    slot_up: u64,
    /// Parts of a picosecond by which `slot_up` is rounded up.
    slot_rounding: u64,
    /// `None` for an unbounded queue.
    admission: Option<CellAdmission>,
    base: u64,
    n: u64,
    /// Stepper at the end of cell `n`.
    end: Stepper,
    /// Instant at which the last accepted cell leaves.
    last_end: u64,
    /// Parts of a picosecond by which the end of the busy period before this one is rounded up.
    rounding: u64,
    /// Number of cells of the busy period that have left, as of the last query.
    left: u64,
    /// Stepper at the end of cell `left + 1`.
    leave: Stepper,
    /// Capacity for tail drop without thresholds: cells are lost only when the queue is full, and joining cells are not marked. `None` otherwise.
    tail_drop_capacity: Option<u64>,
    /// Longest queue in cells since the last call of [`Self::measure_from`]; [`u64::MAX`] if it is not measured.
    longest: u64,
    departures: DepartureBuffer,
}

/// Number of cells from which on a division is faster than single steps of a stepper.
const FEW: u64 = 4;

/// Cells of one record that were all accepted, or all lost for one cause, before they go to the departure buffer or the sink.
struct Batch {
    cells: CellTrain,
    lost: Option<CellDropCause>,
    first_at: u64,
}

impl Fifo {
    /// Returns a line with a bounded queue; `admission` decides which cells join.
    pub fn new(slot: Pace, admission: CellAdmission) -> Self {
        let tail_drop_capacity = admission.drops_only_when_full().then_some(admission.capacity());
        let departures = DepartureBuffer::of(admission.capacity());
        Self {
            admission: Some(admission),
            tail_drop_capacity,
            departures,
            longest: 0,
            ..Self::unbounded(slot)
        }
    }

    /// Returns a line with an unbounded queue: that of a NIC, whose memory the host accounts for.
    pub fn unbounded(slot: Pace) -> Self {
        let mut end = Stepper::new(slot);
        end.seek(1);
        let (slot_up, slot_rounding) = (end.after(), end.rounding());
        let leave = end.clone();
        end.seek(0);
        Self {
            slot,
            slot_up,
            slot_rounding,
            admission: None,
            base: 0,
            n: 0,
            leave,
            end,
            last_end: 0,
            rounding: 0,
            left: 0,
            tail_drop_capacity: Some(u64::MAX),
            longest: u64::MAX,
            departures: DepartureBuffer::default(),
        }
    }

    /// Lets every lost cell end its train, so that departing trains have exact positions in PDUs. Disables the loops for tail drop, which do not.
    pub fn emit_exact_trains(&mut self) {
        self.tail_drop_capacity = None;
        self.departures.emit_exact_trains();
    }

    /// Takes all cells that arrive at or before `until`, in order of time, and reports departures and losses to `out`.
    // Inlined into its only caller, it would be slower.
    #[inline(never)]
    pub fn advance(
        &mut self,
        until: u64,
        mut inputs: Inputs<'_>,
        rules: &mut [VcTreatment],
        out: &mut impl CellSink,
    ) {
        let fullest = self.admission.as_ref().map_or(u64::MAX, CellAdmission::capacity).saturating_add(2);
        let latest = until.saturating_add(fullest.saturating_mul(self.slot_up));
        self.departures.set_count_only(latest <= out.count_only_until());
        while let Some((channel, limit)) = inputs.earliest() {
            if channel.head() > until {
                break;
            }
            // Another channel has a cell before `until`, and the train of this channel may go on after that cell. The two then interleave, and runs would be
            // short; therefore a tail-drop queue takes both in one loop.
            if limit < until && self.tail_drop_capacity.is_some() && channel.train_may_continue_after(limit) {
                let taken =
                    inputs.earliest_two().is_some_and(|two| self.merge_two_trains(two, until, rules, out));
                if taken {
                    continue;
                }
            }
            let (channel, limit) = inputs.earliest().expect("the inputs have a next cell");
            let limit = limit.min(until);
            while channel.head() <= limit {
                let policed = rules[channel.vc() as usize].policer.is_some();
                if policed || !self.try_pass_run(channel, limit, out) {
                    if policed || self.tail_drop_capacity.is_none() {
                        self.take_cell_by_cell(channel, limit, rules, out);
                    } else {
                        self.merge_one_train(channel, limit, out);
                    }
                }
            }
        }
        self.departures.flush(out);
    }

    /// Reports idle time before the next departure to the sink.
    fn idle(&mut self, ps: u64, rounding: u64, out: &mut impl CellSink) {
        if self.departures.has_pdu_cells() {
            // The sink assigns idle time by the PDUs that have left before it; therefore they go first.
            self.departures.flush(out);
        }
        out.idle(ps, rounding);
    }

    /// Takes cells of the current run at once if all join and their departures are evenly spaced. Returns whether it took any.
    fn try_pass_run(&mut self, channel: &mut Channel, limit: u64, out: &mut impl CellSink) -> bool {
        let head = channel.head();
        let front = channel.front();
        let free = head > self.last_end;
        if free && front.pace.takes_more_than(self.slot_up) {
            return self.try_enqueue_spaced(channel, front, limit, out);
        }
        if front.count == 1 {
            return false;
        }
        let Some(many) = self.back_to_back(&front, head) else { return false };
        let queued = if free { 0 } else { self.queued(head) };
        let mut count = channel.front_until(limit).min(many);
        // At the pace of the line the length of the queue changes by at most one cell. At another pace it grows by less than the number of cells.
        let grown = if front.pace == self.slot { 1 } else { count };
        let mut found = (queued.saturating_sub(1), queued + grown);
        if front.pace != self.slot {
            found.0 = if many == u64::MAX { found.0 } else { 0 };
            if let Some(capacity) = self.tail_drop_capacity {
                // Takes only cells that surely have room. The queue has no threshold below its capacity, so the admission need not know how many cells each of
                // them finds: 0 stands for "fewer than the capacity". The bound `queued + count` would decline the last of them, which finds one cell less.
                count = count.min(capacity.saturating_sub(queued));
                found.1 = 0;
                if count < FEW.min(front.count) {
                    return false;
                }
            }
        }
        let Some(efci) = self.admits_train(CellTrain { count, ..front }, found) else { return false };
        channel.take_many(count);
        if free {
            self.idle(head - self.last_end, self.rounded(), out);
            self.start(head);
        }
        let n = self.n + 1;
        self.accept(front.vc, count);
        self.note_train(&front, count, queued);
        let (base, pace, last) = (self.base, self.slot, self.last_end);
        self.departures.add(&CellTrain { base, n, pace, count, last, efci, ..front }, out);
        true
    }

    /// Takes cells that are more than a slot apart and therefore all find the line free. Returns whether it took any.
    fn try_enqueue_spaced(
        &mut self,
        channel: &mut Channel,
        front: CellTrain,
        limit: u64,
        out: &mut impl CellSink,
    ) -> bool {
        let (count, n) = if self.tail_drop_capacity.is_some() && self.departures.only_count(front.vc, out) {
            channel.take_train(limit)
        } else {
            let count = channel.front_until(limit);
            let Some(efci) = self.admits_train(CellTrain { count, ..front }, (0, 0)) else { return false };
            debug_assert_eq!(efci, front.efci, "an empty queue marks no cell");
            channel.take_many(count);
            (count, front.n + count - 1)
        };
        let last = front.base + front.pace.after(n);
        // Between the first and the last cell, all time without a transmission is idle.
        let idle = last - self.last_end - (count - 1) * self.slot_up;
        let rounding = self.rounded() + (count - 1) * self.slot_rounding;
        self.idle(idle, rounding, out);
        self.start(last);
        self.accept(front.vc, 1);
        self.longest = self.longest.max(1);
        let sent = CellTrain { base: front.base + self.slot_up, count, ..front };
        let open = self.departures.open(&sent, out);
        self.departures.piece(open, front.n, count);
        self.departures.joined(open, count, (front.n, n), sent.ends_pdu());
        true
    }

    /// Returns how many of the next cells of `front`, the first at `head`, surely arrive before the cells ahead of them have left, so that all leave back to
    /// back; [`u64::MAX`] for all. Returns `None` if this is not certain.
    fn back_to_back(&self, front: &CellTrain, head: u64) -> Option<u64> {
        let free = head > self.last_end;
        if front.pace == self.slot {
            // Rounding may make the queue empty for a picosecond between two cells.
            let sure = free || (front.base, front.n) == (self.base, self.n) || head + 2 <= self.last_end;
            return sure.then_some(u64::MAX);
        }
        if self.slot.is_at_least(front.pace) {
            return (free || head < self.last_end).then_some(u64::MAX);
        }
        let ahead = self.last_end.checked_sub(head + 2)?;
        let falls_behind = front.pace.at_least() + 2 - self.slot_up;
        Some(ahead / falls_behind + 1).filter(|many| *many >= FEW)
    }

    /// Returns the EFCI of the cells if all of `train` join; otherwise `None`. The cells find between `found.0` and `found.1` cells in the queue.
    fn admits_train(&mut self, train: CellTrain, found: (u64, u64)) -> Option<bool> {
        match &mut self.admission {
            None => Some(train.efci),
            Some(admission) => admission.admit_train(&train, found),
        }
    }

    /// Adds `count` cells of the circuit `vc` to the busy period.
    fn accept(&mut self, vc: VcId, count: u64) {
        if let Some(admission) = &mut self.admission {
            admission.joined(vc, count);
        }
        self.n += count;
        self.end.seek(self.n);
        self.last_end = self.base + self.end.after();
    }

    /// Returns the number of cells of the busy period that have not left at the instant `at`.
    #[inline]
    fn queued(&mut self, at: u64) -> u64 {
        if let Some(admission) = &mut self.admission {
            let before = self.left;
            while self.left < self.n && self.base + self.leave.after() <= at {
                if self.left == before + FEW {
                    self.left = self.slot.units_within(at - self.base).min(self.n);
                    self.leave.seek(self.left + 1);
                    break;
                }
                self.left += 1;
                self.leave.step();
            }
            admission.left(self.left - before);
        }
        self.n - self.left
    }

    /// Slow path: takes the cells of the current run up to `limit` one by one, asking policer and admission. The tight loop for tail drop is in `merge.rs`.
    fn take_cell_by_cell(
        &mut self,
        channel: &mut Channel,
        limit: u64,
        rules: &mut [VcTreatment],
        out: &mut impl CellSink,
    ) {
        let front = channel.front();
        let pace = self.slot;
        let rule = &mut rules[front.vc as usize];
        let mut batch = Batch { cells: CellTrain { count: 0, ..front }, lost: None, first_at: 0 };
        let (mut index, step) = (front.cell, u32::from(!front.are_generated()));
        channel.take_until(limit, |at| {
            let mut cell = CellTrain { count: 1, cell: index, ..front };
            index += step;
            if !rule.police(&mut cell, at) {
                batch.flush(&mut self.departures, out);
                out.policed(&cell, at);
                return;
            }
            if at > self.last_end {
                batch.flush(&mut self.departures, out);
                self.start(at);
            }
            if let Err(cause) = self.admit(at, &mut cell) {
                batch.add(cell, Some(cause), at, &mut self.departures, out);
                return;
            }
            if self.n == 0 {
                self.idle(at - self.last_end, self.rounding, out);
            }
            self.end.step();
            self.n += 1;
            self.last_end = self.base + self.end.after();
            let cell = CellTrain { base: self.base, n: self.n, pace, last: self.last_end, ..cell };
            batch.add(cell, None, at, &mut self.departures, out);
        });
        batch.flush(&mut self.departures, out);
    }

    /// Returns the parts of a picosecond by which `last_end` is rounded up. A busy period has no cell yet if its first cell was not admitted.
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
        if let Some(admission) = &mut self.admission {
            admission.emptied();
        }
    }

    #[inline]
    fn admit(&mut self, at: u64, cell: &mut CellTrain) -> Result<(), CellDropCause> {
        let queued = self.queued(at);
        self.admission.as_mut().map_or(Ok(()), |admission| admission.admit(queued, cell))?;
        self.longest = self.longest.max(queued + 1);
        Ok(())
    }

    /// Updates the longest queue for the `count` cells of `front` that have just joined; they leave back to back. The first one found `found` cells.
    #[inline]
    fn note_train(&mut self, front: &CellTrain, count: u64, found: u64) {
        let fast = front.pace != self.slot && self.slot.is_at_least(front.pace);
        let most = found + if fast { count } else { count.min(2) };
        if most > self.longest {
            self.note_long_train(front, count, found);
        }
    }

    /// Like [`Self::note_train`], for a train that may have made the queue longer than before: computes the exact length.
    #[inline(never)]
    fn note_long_train(&mut self, front: &CellTrain, count: u64, found: u64) {
        let before = self.n - count;
        let queue_behind = |index: u64| {
            let left = self.slot.units_within(front.nth(index) - self.base);
            before + index + 1 - left
        };
        let (first, last) = (found + 1, count - 1);
        let longest = if last == 0 || front.pace.at_least() >= self.slot_up {
            // Between two arrivals at least one cell leaves.
            first
        } else if front.pace == self.slot {
            let left = (self.base, before - found);
            let meets = meets_cell_ahead(self.slot, (front.base, front.n), left, count);
            first + u64::from(meets)
        } else if front.pace.at_least() < self.slot.at_least() {
            // Between two arrivals at most one cell leaves.
            queue_behind(last)
        } else {
            (0..count).map(queue_behind).max().unwrap_or(first)
        };
        self.longest = self.longest.max(longest);
    }

    /// Returns the status of the line at the instant `at`. The queue must have taken all cells up to `at`, and no later ones.
    pub fn line_status(&self, at: u64) -> LineStatus {
        LineStatus::of(self.slot, self.base, self.last_end, self.rounded(), at)
    }

    /// Returns the number of cells in the queue at `at`, including the one being sent. The queue must have taken all cells up to `at`, and no later ones.
    pub fn length(&self, at: u64) -> u64 {
        if at >= self.last_end { 0 } else { self.n - self.slot.units_within(at - self.base) }
    }

    /// Begins to measure the longest queue at the instant `at`. The queue must have been advanced exactly up to `at`.
    pub fn measure_from(&mut self, at: u64) {
        if self.admission.is_some() {
            self.longest = self.length(at);
        }
    }

    /// Returns the longest queue in cells, the cell being sent included; `None` for an unbounded queue, which is not measured.
    pub fn longest(&self) -> Option<u64> {
        self.admission.as_ref().map(|_| self.longest)
    }

    /// Returns when the line has sent all accepted cells, in picoseconds.
    pub fn last_end(&self) -> u64 {
        self.last_end
    }
}

impl Batch {
    #[inline]
    fn add(
        &mut self,
        cell: CellTrain,
        lost: Option<CellDropCause>,
        at: u64,
        departures: &mut DepartureBuffer,
        out: &mut impl CellSink,
    ) {
        if self.cells.count > 0 && self.lost == lost && self.cells.alike(&cell) {
            self.cells.extend(&cell);
        } else {
            self.flush(departures, out);
            (self.cells, self.lost, self.first_at) = (cell, lost, at);
        }
    }

    fn flush(&mut self, departures: &mut DepartureBuffer, out: &mut impl CellSink) {
        if self.cells.count == 0 {
            return;
        }
        match self.lost {
            Some(cause) => out.lost(&self.cells, self.first_at, cause),
            None => departures.add(&self.cells, out),
        }
        self.cells.count = 0;
    }
}
