//! Whose cells come when, of two trains in front of a busy line: many at once.

use super::super::Channel;
use super::super::channel::Walk;
use crate::time::Pace;

/// How the cells of two trains come between each other. Where the pace of one is a whole multiple of the other's this repeats itself,
/// whatever a rounded picosecond says; where only one of them has cells for a while it is plain.
pub(super) struct Beat {
    one: Steps,
    other: Steps,
    /// Cells of the quick train in the time of one of the slow one; 0 where that is no small whole number.
    ratio: u32,
    /// Which of them is the quick one.
    one_is_quick: bool,
}

/// The steps of a train.
#[derive(Clone, Copy)]
struct Steps {
    pace: Pace,
    /// Bounds of a step in picoseconds, both of them rounded.
    at_least: u64,
    at_most: u64,
    /// Cells in a slot of the line, as [`Beat::ratio`].
    in_slot: u32,
}

/// What was taken: how many cells, and which of them are the other's, the first in the lowest bit.
type Taken = (u32, u64);

/// Cells of one train in the time of one of the other, at most, that are looked for.
const RATIO: u64 = 8;
/// Two instants that are so many picoseconds apart are so many, less two, before they are rounded, and at any later place.
const APART: u64 = 3;
/// Steps that are counted with bounds of a step, each of which is wrong by less than a picosecond.
const FAR: u64 = 64;

/// How many units of `quick` take as long as one of `slow`; 0 where that is no small whole number.
fn ratio(slow: Pace, quick: Pace) -> u32 {
    slow.multiple_of(quick).filter(|ratio| *ratio <= RATIO).unwrap_or(0) as u32
}

impl Steps {
    fn of(channel: &Channel, slot: Pace) -> Option<Self> {
        let pace = channel.train().pace;
        let at_least = pace.at_least();
        let in_slot = ratio(slot, pace);
        (at_least > 2 * APART).then_some(Self { pace, at_least, at_most: at_least + 1, in_slot })
    }
}

impl Beat {
    /// Of trains that are walked along, in front of a line with these slots; `None` where nothing can be said.
    #[inline(never)]
    pub(super) fn of(one: &Channel, other: Option<&Channel>, slot: Pace) -> Option<Self> {
        let other = other.unwrap_or(one);
        let (mine, theirs) = (one.train().pace, other.train().pace);
        let one_is_quick = theirs.is_at_least(mine);
        let ratio = if one_is_quick { ratio(theirs, mine) } else { ratio(mine, theirs) };
        let (one, other) = (Steps::of(one, slot)?, Steps::of(other, slot)?);
        Some(Self { one, other, ratio, one_is_quick })
    }

    /// Take cells that come by `sure`, at most `most`. A walk that has come to the end of what it knows stands at its last cell.
    #[inline(never)]
    pub(super) fn take(&self, one: &mut Walk, other: &mut Walk, sure: u64, most: u32) -> Taken {
        let (count, theirs) = if one.head < other.head {
            (alone(one, &self.one, sure.min(other.head - 1), most), 0)
        } else if other.head < one.head {
            let count = alone(other, &self.other, sure.min(one.head - 1), most);
            (count, lowest(count))
        } else {
            (0, 0)
        };
        if self.ratio == 0 || count == most || one.bits == 0 || other.bits == 0 {
            return (count, theirs);
        }
        let (one, other, room) = ((one, &self.one), (other, &self.other), (sure, most - count));
        let (more, their) = if self.one_is_quick {
            together(one, other, self.ratio, room)
        } else {
            let (more, mine) = together(other, one, self.ratio, room);
            (more, lowest(more) & !mine)
        };
        (count + more, theirs | their << count)
    }

    /// Cells of either train in a slot of the line, as [`Steps::in_slot`].
    pub(super) fn in_slot(&self) -> (u32, u32) {
        (self.one.in_slot, self.other.in_slot)
    }
}

impl Steps {
    /// How many of its cells, the first at `head`, come before `instant`, and before any later one that is whole slots, or steps of the slow
    /// train, further, so many more; `None` where that is not clear.
    #[inline(always)]
    fn before(&self, head: u64, instant: u64) -> Option<u32> {
        let Some(late) = instant.checked_sub(head) else {
            return (APART..self.at_least - APART).contains(&(head - instant)).then_some(0);
        };
        let last = late / self.at_most;
        let clear =
            last < FAR && late >= last * self.at_most + APART && (last + 1) * self.at_least >= late + APART;
        clear.then_some(last as u32 + 1)
    }
}

/// That many bits.
#[inline(always)]
pub(super) fn lowest(count: u32) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (64 - count) }
}

/// Cells of one walk up to `until`: how many.
#[inline(always)]
fn alone(walk: &mut Walk, steps: &Steps, until: u64, most: u32) -> u32 {
    let Some(span) = until.checked_sub(walk.head) else { return 0 };
    let places = (span / steps.at_most + 1).min(u64::from(most)) as u32;
    let all = u64::MAX >> (64 - places);
    let taken = walk.bits & all;
    walk.pass(taken, steps.pace);
    if taken == all { places } else { taken.count_ones() }
}

/// Cells of a quick train without gaps and of a slow one: how many, and which are the slow one's.
#[inline(always)]
fn together(
    (quick, fast): (&mut Walk, &Steps),
    (slow, slower): (&mut Walk, &Steps),
    ratio: u32,
    (sure, most): (u64, u32),
) -> Taken {
    let Some(before) = fast.before(quick.head, slow.head) else { return (0, 0) };
    let Some(span) = sure.checked_sub(quick.head) else { return (0, 0) };
    let run = quick.bits.trailing_ones();
    let many = (span / fast.at_most + 1).min(u64::from(run)) as u32;
    let known = slow.bits;
    let (mut slows, mut count, mut left) = (0, 0, known);
    let quicks = loop {
        // A cell of the slow train is taken where one of the quick one is known behind it, which comes by then.
        let before = before + ratio * left.trailing_zeros();
        if before >= many || before + count >= most {
            break many.min(most - count);
        }
        slows |= 1 << (before + count);
        count += 1;
        left &= left - 1;
        if left == 0 {
            break before;
        }
    };
    if quicks > 0 {
        quick.pass(lowest(quicks), fast.pace);
    }
    if count > 0 {
        slow.pass(known & !left, slower.pace);
    }
    (quicks + count, slows)
}
