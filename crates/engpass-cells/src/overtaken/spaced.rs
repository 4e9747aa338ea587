//! Cells of class 1 with more than a slot between them, of which none waits when the next one comes.

use engpass_model::time::Stepper;

use super::super::even::PeriodicCursor;
use super::super::{CellSink, CellTrain};
use super::quick::FixedPoint;
use super::trains::Train;
use super::{LEAPS, LoopState, PeriodicPriority};

/// The line and the generator as far as transmissions have begun.
pub(super) struct BusyPeriodState {
    pub(super) base: u64,
    /// Cells of the busy period.
    pub(super) n: u64,
    /// Stands at `n`.
    pub(super) end: Stepper,
    /// When the last of them has left.
    pub(super) left: u64,
    pub(super) high: PeriodicCursor,
    /// Arrival of the generator's next cell.
    pub(super) next_high: u64,
    /// Cells of the generator since the beginning.
    pub(super) highs: u64,
    /// Time that the line was idle, and by how much the ends before it were rounded up.
    pub(super) idle: u64,
    pub(super) rounding: u64,
}

impl<O: CellSink> PeriodicPriority<'_, O> {
    /// Take cells of a train further apart than a slot as long as none of them waits when the next one comes. The first one finds
    /// none waiting, and all that begins before it has begun; of the last one taken nothing has begun that follows it.
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
        let rest = self.rest;
        let high_up = self.high.cells.pace.at_least() + 1;
        let quick = FixedPoint::of(rest, &self.high.cells, queue.slot, train.pace());
        // Where a quick look has ended it is of no use before the second cell.
        let mut look_from = 0;
        let from = train.next;
        train.join();
        'cells: while train.left() > 0 {
            if let Some(quick) = &quick
                && train.next >= look_from
            {
                let taken = quick.take(&mut now, train);
                if taken > 0 {
                    hot.taken += taken;
                    decide_at = now.left.max(train.arrived());
                }
                look_from = train.next + 2;
            }
            let at = train.at;
            // The cell that waits goes when no cell of the generator does.
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
            // Those of the generator that have come meanwhile go one after the other, further ones as they come.
            let lag = now.left.saturating_sub(now.next_high);
            let many =
                ((u128::from(lag) * u128::from(rest.inverse_drift)) >> 64).min(LEAPS as u128 - 1) as u64;
            if many > 1
                && now.left + many * queue.slot_up <= at
                && now.next_high + many * high_up <= now.high.last()
            {
                now.n += many;
                now.end.leap(rest.slots[many as usize]);
                now.left = now.base + now.end.after();
                now.high.leap(rest.highs[many as usize]);
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
            train.join();
        }
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
    /// A cell begins where the last one has left.
    #[inline(always)]
    fn next_slot(&mut self) {
        self.n += 1;
        self.end.step();
        self.left = self.base + self.end.after();
    }

    /// It is the generator's.
    #[inline(always)]
    fn next_high(&mut self) {
        self.high.step();
        self.next_high = self.high.head();
        self.highs += 1;
    }
}
