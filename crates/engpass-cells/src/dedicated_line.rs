//! A dedicated line, which only one generator uses: computes when its cells leave, without a queue.

use engpass_model::line::LineStatus;
use engpass_model::time::{Pace, Stepper};

use super::CellTrain;

/// A dedicated line: its only cells are bursts of one generator, with more than a slot from cell to cell. Only the first cells of a burst may have to wait, for
/// the last cells of the burst before.
#[derive(Clone, Debug)]
pub struct DedicatedLine {
    slot: Pace,
    /// Slot in picoseconds, rounded up, and the parts of a picosecond by which it is rounded up.
    slot_up: u64,
    slot_rounding: u64,
    /// Start of the busy period in picoseconds, and its number of cells.
    base: u64,
    n: u64,
    /// Instant at which the last cell leaves, rounded up by `rounding` parts of a picosecond.
    last_end: u64,
    rounding: u64,
    /// Cells of a burst that follow those that had to wait.
    behind: Option<CellTrain>,
    /// Number of cells that have entered the line so far.
    passed: u64,
    /// The part of `slot_up`, summed over the cells that had to wait, that they did not take; and the same for
    /// `slot_rounding`. May wrap around.
    less: (u64, u64),
    /// End of the run: the line counts the cells that leave up to this instant.
    end: u64,
    /// Number of cells that leave after `end`; and the instant at which the last counted cell leaves, 0 if there is none.
    late: u64,
    last_in_time: u64,
}

impl DedicatedLine {
    pub(super) fn new(slot: Pace, end: u64) -> Self {
        let mut one = Stepper::new(slot);
        one.seek(1);
        Self {
            slot,
            slot_up: one.after(),
            slot_rounding: one.rounding(),
            base: 0,
            n: 0,
            last_end: 0,
            rounding: 0,
            behind: None,
            passed: 0,
            less: (0, 0),
            end,
            late: 0,
            last_in_time: 0,
        }
    }

    /// Replaces the instants in `burst`, the next one of the generator, by departures from the line. If some of its cells had to wait, `burst` keeps these, and
    /// [`Self::behind_into`] returns the others.
    #[inline]
    pub(super) fn pass(&mut self, burst: &mut CellTrain) {
        if burst.base > self.last_end { self.send_on_idle_line(burst) } else { self.meet(burst) }
    }

    /// Moves the cells of the last burst that did not have to wait into `cells`, if others of that burst did. Returns false otherwise.
    #[inline]
    pub(super) fn behind_into(&mut self, cells: &mut CellTrain) -> bool {
        let any = self.behind.is_some();
        if any {
            *cells = self.behind.take().expect("the burst has a rest");
        }
        any
    }

    /// Sends cells that all find the line free: each leaves one slot after its arrival.
    #[inline]
    fn send_on_idle_line(&mut self, cells: &mut CellTrain) {
        let (base, last) = (cells.base + self.slot_up, cells.last + self.slot_up);
        (self.base, self.n) = (cells.last, 1);
        (cells.base, cells.last) = (base, last);
        self.count(cells);
        (self.last_end, self.rounding) = (last, self.slot_rounding);
    }

    /// Sends a burst whose first cells wait for the burst before.
    #[cold]
    #[inline(never)]
    fn meet(&mut self, burst: &mut CellTrain) {
        let (n, mut count) = (self.n + 1, 0);
        let (mut last_end, mut rounding) = (self.last_end, self.rounding);
        let mut ends = Stepper::new(self.slot);
        while count < burst.count && burst.nth(count) <= last_end {
            count += 1;
            ends.seek(self.n + count);
            (last_end, rounding) = (self.base + ends.after(), ends.rounding());
        }
        self.n += count;
        self.less.0 = self.less.0.wrapping_add(count * self.slot_up - (last_end - self.last_end));
        let rounded = (count * self.slot_rounding).wrapping_sub(rounding.wrapping_sub(self.rounding));
        self.less.1 = self.less.1.wrapping_add(rounded);
        let mut rest = CellTrain { n: burst.n + count, count: burst.count - count, ..*burst };
        *burst = CellTrain { base: self.base, n, pace: self.slot, count, last: last_end, ..*burst };
        self.count(burst);
        (self.last_end, self.rounding) = (last_end, rounding);
        if rest.count > 0 {
            self.send_on_idle_line(&mut rest);
            self.behind = Some(rest);
        }
    }

    /// Counts cells that leave next, those after `end` apart.
    #[inline]
    fn count(&mut self, left: &CellTrain) {
        if left.last > self.end {
            self.count_late(left);
        }
        self.passed += left.count;
    }

    #[cold]
    #[inline(never)]
    fn count_late(&mut self, left: &CellTrain) {
        let counted = left.count_until(self.end);
        if counted > 0 {
            self.last_in_time = left.nth(counted - 1);
        } else if self.late == 0 {
            self.last_in_time = self.last_end;
        }
        self.late += left.count - counted;
    }

    /// Returns the number of cells that leave by `end`, and when the last of them leaves.
    pub fn sent(&self) -> (u64, Option<u64>) {
        let last = if self.late > 0 { self.last_in_time } else { self.last_end };
        (self.passed - self.late, (last > 0).then_some(last))
    }

    /// Returns the idle time before the last cell, and its rounding, as [`super::CellSink::idle`] reports them.
    pub fn idle(&self) -> (u64, u64) {
        // The time in which the line sent no cell, and its rounding without that of the last end.
        let busy = (self.passed * self.slot_up).wrapping_sub(self.less.0);
        let rounded = (self.passed * self.slot_rounding).wrapping_sub(self.less.1);
        (self.last_end - busy, rounded - self.rounding)
    }

    /// Returns the status of the line at the instant `at`. All cells up to `at` must have come, and no later ones.
    pub fn line_status(&self, at: u64) -> LineStatus {
        LineStatus::of(self.slot, self.base, self.last_end, self.rounding, at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CellDropCause, CellSink, Channel, Fifo, Generator, Inputs, PduId, VcTreatment};
    use super::*;
    use engpass_model::random::Stream;
    use engpass_model::source::on_off::Lengths;
    use proptest::prelude::*;

    /// Departures of cells, and the idle time of the line.
    #[derive(Default)]
    struct Seen {
        sent: Vec<u64>,
        idle: (u64, u64),
    }

    impl CellSink for Seen {
        fn sent(&mut self, cells: CellTrain) {
            self.sent.extend((0..cells.count).map(|k| cells.nth(k)));
        }
        fn lost(&mut self, _: &CellTrain, _: u64, _: CellDropCause) {}
        fn idle(&mut self, ps: u64, rounding: u64) {
            self.idle = (self.idle.0 + ps, self.idle.1 + rounding);
        }
        fn policed(&mut self, _: &CellTrain, _: u64) {}
        fn waiting(&mut self, _: PduId, _: usize, _: u64) {}
        fn coalesce_until(&self) -> u64 {
            0
        }
    }

    proptest! {
        #[test]
        fn dedicated_line_equals_fifo(
            slot in (50u128..400, 1u128..7),
            more in 1u128..200,
            on in 1u64..2000,
            off in 1u64..1000,
            exponential: bool,
            end in 1u64..20_000,
            seed: u64,
        ) {
            let slot = Pace::new(slot.0, slot.1);
            let pace = Pace::new(u128::from(slot.after(1)) * 3 + more, 3);
            prop_assume!(pace.takes_more_than(slot.after(1)));
            let lengths = if exponential { Lengths::Exponential } else { Lengths::Fixed };
            let random = Stream::new(seed, "test");
            let generator = Generator::bursts((0, 0), pace, (seed % 300, end), (on, off), lengths, random);
            let mut line = Fifo::unbounded(slot);
            let mut queued = Seen::default();
            let mut channels = [Channel::generated(generator.clone())];
            line.advance(end, Inputs::new(&mut channels), &mut [VcTreatment::default()], &mut queued);

            let mut alone = Seen::default();
            let mut through = generator.clone().through(slot, end).shifted(7);
            while let Some(cells) = through.next_cells() {
                prop_assert_eq!(cells.last, cells.base + cells.pace.after(cells.n + cells.count - 1));
                alone.sent(CellTrain { base: cells.base - 7, last: cells.last - 7, ..cells });
            }
            prop_assert_eq!(&alone.sent, &queued.sent);
            let line_alone = through.line().unwrap();
            prop_assert_eq!(line_alone.idle(), queued.idle);
            prop_assert_eq!(line_alone.line_status(end), line.line_status(end));
            let sent: Vec<_> = queued.sent.iter().copied().filter(|at| *at <= end).collect();
            prop_assert_eq!(line_alone.sent(), (sent.len() as u64, sent.last().copied()));
            prop_assert_eq!(generator.all_made(end), Some(queued.sent.len() as u64));
        }
    }
}
