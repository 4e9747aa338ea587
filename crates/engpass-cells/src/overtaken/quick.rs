//! Many cells of class 1 that surely do not wait for each other, between cells of the generator: only how many slots every busy
//! period has is counted, in binary fractions of a picosecond. What is too close to call is left to whoever knows the instants.

use engpass_model::time::Pace;

use super::super::CellTrain;
use super::spaced::BusyPeriodState;
use super::trains::Train;
use super::{BUSY, LeftoverService};

/// A picosecond has so many parts, as a power of two.
const FINE: u32 = 16;
/// Instants are rounded up, once or twice, and fractions down: what is closer together than this may be the other way round.
const UNSURE: i64 = 4 << FINE;
/// Cells from which on it is worth the trouble, and up to which rounded fractions do not add up to a picosecond.
const CELLS: std::ops::Range<u64> = 6..4096;

/// Paces in fractions.
pub(super) struct FixedPoint<'a> {
    rest: &'a LeftoverService,
    highs: CellTrain,
    slot_pace: Pace,
    slot: i64,
    high: i64,
    low: i64,
    /// By how much the generator's cells are further apart than slots.
    gain: i64,
    /// 2^64 over that, and over a slot.
    inverse_gain: u64,
    inverse_slot: u64,
}

/// What the busy period has begun with.
#[derive(Clone, Copy)]
enum Base {
    /// With what it had begun with before.
    Same,
    /// With the train's cell of this number, from the one that waits first.
    Low(u64),
    /// With the generator's cell of this number from now on.
    High(u64),
}

/// How far it is when a cell of the train comes: all transmissions before have begun.
#[derive(Clone, Copy)]
struct State {
    base: Base,
    /// Cells of the busy period.
    n: u64,
    /// How much later the last of them has left.
    end: i64,
    /// How much later the generator's next cell comes, and its number.
    high: i64,
    highs: u64,
    /// Picoseconds of the busy periods that are over, and by how much their ends are rounded up.
    busy: u64,
    rounding: u64,
}

/// Picoseconds of a unit, in fractions, if that is not too long to add up.
fn fine(pace: Pace) -> Option<i64> {
    let (num, den) = pace.ratio();
    i64::try_from((u128::from(num) << FINE) / u128::from(den)).ok().filter(|fine| *fine < 1 << 46)
}

/// 2^64 over this.
fn inverse(fine: i64) -> u64 {
    (u128::from(u64::MAX) / u128::from(fine.unsigned_abs())) as u64
}

/// How many whole units there are in `time`, and what is left, if it is surely so many.
#[inline(always)]
fn divide(time: i64, unit: i64, inverse: u64) -> Option<(i64, i64)> {
    let many = ((u128::from(time as u64) * u128::from(inverse)) >> 64) as i64;
    let left = time - many * unit;
    (left >= UNSURE && left <= unit - UNSURE).then_some((many, left))
}

impl<'a> FixedPoint<'a> {
    /// For a train at pace `low`, where every interval between two of its cells has one of `highs` at least.
    pub(super) fn of(
        rest: &'a LeftoverService,
        highs: &CellTrain,
        slot_pace: Pace,
        low: Pace,
    ) -> Option<Self> {
        let (slot, high, low) = (fine(slot_pace)?, fine(highs.pace)?, fine(low)?);
        let gain = high - slot;
        let fits = gain > 4 * UNSURE && low >= high + 2 * slot && low < 64 * slot;
        let highs = *highs;
        fits.then(|| Self {
            rest,
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

    /// Take cells of `train`, the first of which waits: how many have begun. The state is that in which the next one has come.
    pub(super) fn take(&self, now: &mut BusyPeriodState, train: &mut Train) -> u64 {
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
        // The last interval that is sure is looked at again by who knows which cell has left when.
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

    /// What happens between cell number `number` of the train and the next. If that is not sure, the state is of no use.
    #[inline(always)]
    fn interval(&self, state: &mut State, number: u64) -> Option<()> {
        if state.end < UNSURE {
            if state.end > -UNSURE {
                return None;
            }
            self.close(state);
            (state.base, state.n, state.end) = (Base::Low(number), 0, 0);
        }
        // With the cell that waits, the line has so many of the generator's to send before it is idle.
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
            // It is busy up to the next cell.
            let (before, left) = divide(self.low - state.end, self.slot, self.inverse_slot)?;
            state.high += before * self.high - self.low;
            if state.high < UNSURE - left {
                // The cell that waits is not among those that have begun.
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
            // It comes when the line is idle.
            self.close(state);
            (state.base, state.n, state.end) = (Base::High(state.highs), 1, state.high + self.slot);
            (state.high, state.highs) = (state.high + self.high, state.highs + 1);
        }
        (state.end, state.high) = (state.end - self.low, state.high - self.low);
        Some(())
    }

    /// A busy period is over.
    #[inline(always)]
    fn close(&self, state: &mut State) {
        let known = (state.n as usize) < BUSY;
        let (busy, rounding) = if known { self.rest.busy[state.n as usize] } else { self.long(state.n) };
        state.busy += busy;
        state.rounding += rounding;
    }

    #[cold]
    fn long(&self, cells: u64) -> (u64, u64) {
        super::busy(self.slot_pace, cells)
    }

    /// Tell in instants what was counted; the train has not gone on yet.
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
