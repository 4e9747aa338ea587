//! Takes cells of class 1 that are more than a slot apart, as long as no cell of class 1 waits when the next one arrives.

use engpass_model::time::Stepper;

use super::super::periodic::PeriodicCursor;
use super::super::{CellSink, CellTrain};
use super::fixed_point::FixedPoint;
use super::trains::Train;
use super::{LEAPS, LoopState, PeriodicPriority};

/// State of the line and of the generator after all transmissions that have begun.
pub(super) struct BusyPeriodState {
    pub(super) base: u64,
    /// Number of cells of the busy period.
    pub(super) n: u64,
    /// Stepper at the end of cell `n`.
    pub(super) end: Stepper,
    /// Instant at which the last cell of the busy period has left.
    pub(super) left: u64,
    pub(super) high: PeriodicCursor,
    /// Arrival of the generator's next cell.
    pub(super) next_high: u64,
    /// Number of the generator's cells that this code has taken.
    pub(super) highs: u64,
    /// Idle time of the line in picoseconds, and the parts of a picosecond by which the transmissions before it were rounded up.
    pub(super) idle: u64,
    pub(super) rounding: u64,
}

impl<O: CellSink> PeriodicPriority<'_, O> {
    /// Takes cells of a train with more than a slot between them, as long as none waits when the next one arrives. At the call no cell waits, and all
    /// transmissions before the first cell have begun. On return no transmission that follows the last taken cell has begun.
    pub(super) fn take_spaced(&mut self, hot: &mut LoopState, train: &mut Train) {
        let queue = &mut *self.queue;
        let high = self.high.walk();
        let next_high = high.head();
        let (base, n, left) = (queue.base, queue.n, queue.last_end);
        let end = queue.end.clone();
        let mut now = BusyPeriodState { base, n, end, left, high, next_high, highs: 0, idle: 0, rounding: 0 };
        let first = CellTrain { base, n: n + 1, pace: queue.slot, count: 0, ..self.high.cells };
        let (mut decide_at, mut serving) = (queue.decide_at, queue.serving);
        let (mut last_high, mut last_low) = (0, self.last_low);
        let leftover = self.leftover;
        let high_up = self.high.cells.pace.at_least() + 1;
        // The queue becomes 2 cells long when a cell arrives while the one ahead of it is being sent.
        let mut longest = queue.longest;
        let quick =
            FixedPoint::of(leftover, &self.high.cells, queue.slot, train.pace()).filter(|_| longest > 1);
        // After the fixed-point code has stopped, the loop tries it again only two cells later.
        let mut look_from = 0;
        let from = train.next;
        train.join();
        'cells: while train.left() > 0 {
            if let Some(quick) = &quick
                && train.next >= look_from
            {
                let taken = quick.take_cells(&mut now, train);
                if taken > 0 {
                    hot.taken += taken;
                    decide_at = now.left.max(train.arrived());
                }
                look_from = train.next + 2;
            }
            let at = train.at;
            // The waiting cell of class 1 goes as soon as no cell of the generator does.
            loop {
                if decide_at >= at {
                    break 'cells;
                }
                if decide_at > now.left {
                    now.idle += decide_at - now.left;
                    now.rounding += now.end.rounding();
                    (now.base, now.n) = (decide_at, 0);
                    now.end.seek(0);
                }
                now.next_slot();
                if now.next_high > decide_at {
                    break;
                }
                now.next_high();
                (serving, last_high, decide_at) = (0, now.left, now.left);
            }
            (serving, last_low) = (1, now.left);
            hot.taken += 1;
            // Cells of the generator that have arrived meanwhile leave back to back; later ones leave as they arrive.
            let lag = now.left.saturating_sub(now.next_high);
            let many =
                ((u128::from(lag) * u128::from(leftover.inverse_drift)) >> 64).min(LEAPS as u128 - 1) as u64;
            if many > 1
                && now.left + many * queue.slot_up <= at
                && now.next_high + many * high_up <= now.high.last()
            {
                now.n += many;
                now.end.leap(leftover.slots[many as usize]);
                now.left = now.base + now.end.after();
                now.high.leap(leftover.highs[many as usize]);
                now.next_high = now.high.head();
                now.highs += many;
                (serving, last_high) = (0, now.left);
            }
            while now.next_high <= now.left && now.left < at {
                now.next_slot();
                now.next_high();
                (serving, last_high) = (0, now.left);
            }
            if now.left < at && now.next_high < at {
                now.idle += now.next_high - now.left;
                now.rounding += now.end.rounding();
                loop {
                    now.base = now.next_high;
                    now.left = now.base + queue.slot_up;
                    now.next_high();
                    if now.next_high >= at {
                        break;
                    }
                    now.idle += now.next_high - now.left;
                    now.rounding += queue.slot_rounding;
                }
                (serving, last_high, now.n) = (0, now.left, 1);
                now.end.seek(0);
                now.end.step();
            }
            decide_at = now.left.max(at);
            longest = longest.max(1 + u64::from(serving == 1 && now.left > at));
            train.join();
        }
        queue.longest = longest;
        hot.joined += train.next - from;
        train.ended_with_a_cell();
        (queue.base, queue.n, queue.end) = (now.base, now.n, now.end);
        (queue.last_end, queue.decide_at, queue.serving) = (now.left, decide_at, serving);
        self.last_low = last_low;
        if now.idle > 0 {
            self.out.idle(now.idle, now.rounding);
        }
        if now.highs > 0 {
            self.high.walked(now.high, now.highs);
            self.gather_high(CellTrain { count: now.highs, last: last_high, ..first });
        }
    }
}

impl BusyPeriodState {
    /// Begins the next cell of the busy period when the last one has left.
    #[inline(always)]
    fn next_slot(&mut self) {
        self.n += 1;
        self.end.step();
        self.left = self.base + self.end.after();
    }

    /// Takes the next cell of the generator.
    #[inline(always)]
    fn next_high(&mut self) {
        self.high.step();
        self.next_high = self.high.head();
        self.highs += 1;
    }
}
