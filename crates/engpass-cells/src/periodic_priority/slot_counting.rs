//! Slots of a port with periodic priority cells: counts the slots of each class where nothing needs individual instants.

use engpass_model::time::Pace;

use super::super::periodic::PeriodicCells;
use super::super::strict_priority::StrictPriority;
use super::super::{CellSink, CellTrain};
use super::{LeftoverService, LoopState, PeriodicPriority};

/// Number of slots from which on counting is faster than choosing.
const MANY: u64 = 12;

/// Data to compute when the last cell of the generator left: it was sent in the first slot that began at or after its arrival.
#[derive(Clone, Copy)]
pub(super) struct LastHigh {
    base: u64,
    /// Number of cells of the busy period before the slots in question.
    n: u64,
    arrival: u64,
}

impl LastHigh {
    /// Returns the instant at which the last cell of the generator left.
    pub(super) fn left(self, slot: Pace) -> u64 {
        let before = self.arrival.checked_sub(self.base + 1).map_or(0, |ps| slot.units_within(ps) + 1);
        self.base + slot.after(self.n.max(before) + 1)
    }
}

/// The next slots of a busy period while cells of class 1 wait.
pub(super) struct Slots<'a> {
    base: u64,
    n: u64,
    slot: Pace,
    high: &'a PeriodicCells,
    /// The generator's spacing less a slot, in units of 2^-12 ps (see [`PARTS`]).
    drift: u64,
}

/// Binary digits behind the point in [`Slots::drift`].
const PARTS: u32 = 12;

/// Returns approximately how much longer a unit of `wide` is than one of `slot`, in units of 2^-[`PARTS`] ps; at least 1.
pub(in super::super) fn drift(wide: Pace, slot: Pace) -> u64 {
    let parts = |pace: Pace| {
        let (num, den) = pace.ratio();
        (u128::from(num) << PARTS) / u128::from(den)
    };
    u64::try_from(parts(wide).saturating_sub(parts(slot))).unwrap_or(u64::MAX).max(1)
}

impl Slots<'_> {
    /// Returns when slot number `index`, from 0, begins.
    fn begin(&self, index: u64) -> u64 {
        self.base + self.slot.after(self.n + index)
    }

    /// Returns the arrival of cell number `index` of the generator's remaining cells, from 0; `None` behind the last one.
    fn arrival(&self, index: u64) -> Option<u64> {
        let cells = &self.high.cells;
        (index < cells.count).then(|| cells.base + cells.pace.after(cells.n + index))
    }

    /// Returns how many of the first `slots` slots (at least one) go to the generator's cells: all cells that have arrived when the last slot begins.
    #[inline(always)]
    pub(super) fn highs(&self, slots: u64) -> u64 {
        let cells = &self.high.cells;
        let Some(ps) = self.begin(slots - 1).checked_sub(self.high.head) else { return 0 };
        let from_base = ps + (self.high.head - cells.base);
        (cells.pace.units_within(from_base) + 1 - cells.n).min(cells.count)
    }

    /// Returns how many cells of class 1 have left at the instant `at`, counted from the present. `being_sent` is 1 if the line sends one now, else 0. Some
    /// cell of class 1 must wait whenever the line chooses.
    #[inline(always)]
    pub(super) fn lows_left(&self, at: u64, being_sent: u64) -> u64 {
        let ended = self.slot.units_within(at - self.base);
        match ended.checked_sub(self.n) {
            None => 0,
            Some(0) => being_sent,
            Some(ended) => being_sent + ended - self.highs(ended),
        }
    }

    /// Returns how many of the generator's cells, at most `most`, are sent before cell number `low` of class 1, counted from 1.
    fn highs_before(&self, low: u64, most: u64) -> u64 {
        let Some(lag) = self.begin(low - 1).checked_sub(self.high.head) else { return 0 };
        let guess = if lag.leading_zeros() >= PARTS {
            (lag << PARTS) / self.drift
        } else {
            u64::try_from((u128::from(lag) << PARTS) / u128::from(self.drift)).unwrap_or(u64::MAX)
        };
        let mut highs = guess.saturating_add(1).min(most);
        // The generator's cells are further apart than slots. Therefore `enough` is true from some number on, and false below it.
        let enough = |highs| self.arrival(highs).is_none_or(|at| at > self.begin(low + highs - 1));
        while highs < most && !enough(highs) {
            highs += 1;
        }
        while highs > 0 && enough(highs - 1) {
            highs -= 1;
        }
        highs
    }
}

impl LeftoverService {
    /// Returns how many of the generator's cells are sent before cell number `low` of class 1, counted from 1 among the waiting cells. The slots follow the
    /// first `n` slots of the busy period that began at `base`.
    pub(in super::super) fn highs_before(
        &self,
        low: u64,
        (base, n, slot): (u64, u64, Pace),
        high: &PeriodicCells,
    ) -> u64 {
        Slots { base, n, slot, high, drift: self.drift }.highs_before(low, high.cells.count)
    }
}

impl<O: CellSink> PeriodicPriority<'_, O> {
    /// Returns the slots that follow those of the busy period so far.
    pub(super) fn slots(&self) -> Slots<'_> {
        let StrictPriority { base, n, slot, .. } = *self.queue;
        Slots { base, n, slot, high: &self.high, drift: self.leftover.drift }
    }

    /// Begins the transmissions before the instant `before`, or until cell number `until` of class 1 is next. Only counts the sent cells of each class, and
    /// computes when the last of each leaves.
    pub(super) fn choose(&mut self, hot: &mut LoopState, before: u64, until: u64) {
        if until - hot.taken < MANY || before - self.queue.decide_at < MANY * self.queue.slot_up {
            self.choose_few(hot, before, until);
        } else {
            self.choose_many(hot, before, until);
        }
    }

    fn choose_few(&mut self, hot: &mut LoopState, before: u64, until: u64) {
        let queue = &mut *self.queue;
        let base = queue.base;
        let first = CellTrain { base, n: queue.n + 1, pace: queue.slot, count: 0, ..self.high.cells };
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
            self.gather_high(CellTrain { count: highs, last: last_high, ..first });
        }
    }

    fn choose_many(&mut self, hot: &mut LoopState, before: u64, until: u64) {
        let queue = &mut *self.queue;
        let (base, n, slot) = (queue.base, queue.n, queue.slot);
        let slots = Slots { base, n, slot, high: &self.high, drift: self.leftover.drift };
        let wanted = until - hot.taken;
        let mut taken = slot.units_within(before - 1 - base) + 1 - n;
        let mut highs = slots.highs(taken);
        let low_ends = taken - highs >= wanted;
        if low_ends {
            // Stops earlier, with the last wanted cell of class 1.
            highs = slots.highs_before(wanted, highs);
            taken = wanted + highs;
        }
        let lows = taken - highs;
        let last_arrival = highs.checked_sub(1).and_then(|last| slots.arrival(last));
        let high_ends =
            !low_ends && last_arrival.is_some_and(|arrival| taken == 1 || arrival > slots.begin(taken - 2));
        if high_ends && lows > 0 {
            let last = lows + slots.highs_before(lows, highs);
            self.last_low = base + slot.after(n + last);
        }
        queue.n += taken;
        queue.end.seek(queue.n);
        queue.last_end = base + queue.end.after();
        queue.decide_at = queue.last_end;
        queue.serving = usize::from(!high_ends);
        hot.taken += lows;
        let left = queue.last_end;
        if !high_ends {
            self.last_low = left;
        }
        if let Some(arrival) = last_arrival {
            let sent = CellTrain { base, n: n + 1, pace: slot, count: highs, last: left, ..self.high.cells };
            self.high.skip(highs);
            self.gather_high(sent);
            self.last_high = (!high_ends).then_some(LastHigh { base, n, arrival });
        }
    }
}
