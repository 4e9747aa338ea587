//! Takes many cells of class 1 that surely do not wait for each other. Instead of instants it only counts the slots of every busy period, in binary fractions
//! of a picosecond. Where rounding could change the result, it stops and leaves the cell to the exact code in `uncontended.rs`.

use engpass_model::time::Pace;

use super::super::CellTrain;
use super::trains::Train;
use super::uncontended::BusyPeriodState;
use super::{BUSY, LeftoverService};

/// Binary digits of a time behind the point; the integer part is in picoseconds.
const FINE: u32 = 16;
/// Instants are rounded up, once or twice, and fractions down. Therefore the order of two instants that are closer than this is uncertain.
const UNSURE: i64 = 4 << FINE;
/// Numbers of cells for which this code is faster than the exact code, and for which the rounding of the fractions adds up to less than a picosecond.
const CELLS: std::ops::Range<u64> = 6..4096;

/// The paces of the line (`slot`), the generator (`high`) and the train (`low`), in binary fractions of a picosecond.
pub(super) struct FixedPoint<'a> {
    leftover: &'a LeftoverService,
    highs: CellTrain,
    slot_pace: Pace,
    slot: i64,
    high: i64,
    low: i64,
    /// The generator's spacing less a slot.
    gain: i64,
    /// 2^64 divided by `gain`, and by `slot`.
    inverse_gain: u64,
    inverse_slot: u64,
}

/// The cell that began the present busy period.
#[derive(Clone, Copy)]
enum Base {
    /// The busy period is still that of the caller's state.
    Same,
    /// A cell of the train, by its number, counted from the cell that waits first.
    Low(u64),
    /// A cell of the generator, by its number from now on.
    High(u64),
}

/// The state when a cell of the train arrives; all transmissions that are due before have begun. Times are relative to this arrival.
#[derive(Clone, Copy)]
struct State {
    base: Base,
    /// Number of cells of the busy period.
    n: u64,
    /// End of the last one of these cells.
    end: i64,
    /// Arrival of the generator's next cell, and its number from the call on.
    high: i64,
    highs: u64,
    /// Total length of the earlier busy periods in picoseconds, and the parts by which their ends are rounded up.
    busy: u64,
    rounding: u64,
}

/// Returns the time of a unit in binary fractions of a picosecond; `None` if sums of it could overflow.
fn fine(pace: Pace) -> Option<i64> {
    let (num, den) = pace.ratio();
    i64::try_from((u128::from(num) << FINE) / u128::from(den)).ok().filter(|fine| *fine < 1 << 46)
}

/// Returns 2^64 divided by `fine`.
fn inverse(fine: i64) -> u64 {
    (u128::from(u64::MAX) / u128::from(fine.unsigned_abs())) as u64
}

/// Returns the number of whole units in `time`, and the rest; `None` if rounding could change the number. `inverse` is 2^64 divided by `unit`.
#[inline(always)]
fn divide(time: i64, unit: i64, inverse: u64) -> Option<(i64, i64)> {
    let many = ((u128::from(time as u64) * u128::from(inverse)) >> 64) as i64;
    let left = time - many * unit;
    (left >= UNSURE && left <= unit - UNSURE).then_some((many, left))
}

impl<'a> FixedPoint<'a> {
    /// Prepares for a train at pace `low`. Returns `None` unless at least one cell of the generator, `highs`, comes between any two cells of the train.
    pub(super) fn of(
        leftover: &'a LeftoverService,
        highs: &CellTrain,
        slot_pace: Pace,
        low: Pace,
    ) -> Option<Self> {
        let (slot, high, low) = (fine(slot_pace)?, fine(highs.pace)?, fine(low)?);
        let gain = high - slot;
        let fits = gain > 4 * UNSURE && low >= high + 2 * slot && low < 64 * slot;
        let highs = *highs;
        fits.then(|| Self {
            leftover,
            highs,
            slot_pace,
            slot,
            high,
            low,
            gain,
            inverse_gain: inverse(gain),
            inverse_slot: inverse(slot),
        })
    }

    /// Takes cells of `train`, whose last joined cell waits. Returns how many have begun transmission. Then `now` is the state at the next cell's arrival.
    pub(super) fn take_cells(&self, now: &mut BusyPeriodState, train: &mut Train) -> u64 {
        let cells = train.left().min(CELLS.end);
        let waits = train.arrived();
        let since = |at: u64| i64::try_from(i128::from(at) - i128::from(waits)).unwrap_or(i64::MAX);
        let near = |at: u64| since(at).unsigned_abs() < ((64 * self.slot) >> FINE) as u64;
        let all = (cells + 2) * ((self.low + self.high) >> FINE) as u64;
        let goes_on = now.next_high.saturating_add(all) <= now.high.last();
        if cells < CELLS.start || !goes_on || !near(now.left) || !near(now.next_high) {
            return 0;
        }
        let (n, end, high) = (now.n, since(now.left) << FINE, since(now.next_high) << FINE);
        if end > self.slot + UNSURE || (end < 0 && high < UNSURE) {
            return 0;
        }
        let mut state = State { base: Base::Same, n, end, high, highs: 0, busy: 0, rounding: 0 };
        // The last sure interval is left to the exact code, which knows when each cell has left.
        let mut before = state;
        let mut taken = 0;
        while taken < cells {
            let this = state;
            if self.interval(&mut state, taken).is_none() {
                break;
            }
            before = this;
            taken += 1;
        }
        let taken = taken.saturating_sub(1);
        if taken > 0 {
            self.tell(&before, now, train);
            train.join_many(taken);
        }
        taken
    }

    /// Advances the state from the arrival of cell number `number` of the train to that of the next one. Returns `None` if rounding makes the result uncertain;
    /// the state is then invalid.
    #[inline(always)]
    fn interval(&self, state: &mut State, number: u64) -> Option<()> {
        if state.end < UNSURE {
            if state.end > -UNSURE {
                return None;
            }
            self.close(state);
            (state.base, state.n, state.end) = (Base::Low(number), 0, 0);
        }
        // Number of the generator's cells that the line sends, besides the waiting cell, before it is idle.
        let lag = state.end + self.slot - state.high;
        let highs = if lag >= 0 {
            divide(lag, self.gain, self.inverse_gain)?.0 + 1
        } else if lag <= -UNSURE {
            0
        } else {
            return None;
        };
        let idle = state.end + (1 + highs) * self.slot;
        if idle >= self.low + UNSURE {
            // The line is busy up to the next cell of the train.
            let (before, left) = divide(self.low - state.end, self.slot, self.inverse_slot)?;
            state.high += before * self.high - self.low;
            if state.high < UNSURE - left {
                // The waiting cell of class 1 has not begun.
                return None;
            }
            state.n += before as u64 + 1;
            state.highs += before as u64;
            state.end = self.slot - left;
            return Some(());
        }
        if idle > self.low - UNSURE {
            return None;
        }
        (state.n, state.highs) = (state.n + 1 + highs as u64, state.highs + highs as u64);
        (state.end, state.high) = (idle, state.high + highs * self.high);
        while state.high < self.low + UNSURE {
            if state.high > self.low - UNSURE {
                return None;
            }
            // The generator's next cell finds the line idle.
            self.close(state);
            (state.base, state.n, state.end) = (Base::High(state.highs), 1, state.high + self.slot);
            (state.high, state.highs) = (state.high + self.high, state.highs + 1);
        }
        (state.end, state.high) = (state.end - self.low, state.high - self.low);
        Some(())
    }

    /// Ends a busy period: adds its length and its rounding to the sums.
    #[inline(always)]
    fn close(&self, state: &mut State) {
        let known = (state.n as usize) < BUSY;
        let (busy, rounding) = if known { self.leftover.busy[state.n as usize] } else { self.long(state.n) };
        state.busy += busy;
        state.rounding += rounding;
    }

    #[cold]
    fn long(&self, cells: u64) -> (u64, u64) {
        super::busy(self.slot_pace, cells)
    }

    /// Converts the counts to instants and writes them to `now`. The train must not have advanced yet.
    fn tell(&self, state: &State, now: &mut BusyPeriodState, train: &Train) {
        let base = match state.base {
            Base::Same => now.base,
            Base::Low(number) => train.arrival_of(number),
            Base::High(number) => {
                let cells = &self.highs;
                cells.base + cells.pace.after(cells.n + now.highs + number)
            }
        };
        now.idle += base - now.base - state.busy;
        now.rounding += state.rounding;
        (now.base, now.n) = (base, state.n);
        now.end.seek(state.n);
        now.left = base + now.end.after();
        now.high.leap(self.highs.pace.leap(state.highs));
        now.next_high = now.high.head();
        now.highs += state.highs;
    }
}
