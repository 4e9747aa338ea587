//! Whose cells come when, of two trains in front of a line that is busy and has room: many at once.

use super::super::Channel;
use super::super::channel::Walk;
use crate::time::{Leap, Pace, Stepper};

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
    unit: Leap,
    /// Bounds of a step in picoseconds, both of them rounded.
    at_least: u64,
    at_most: u64,
    /// Cells in a slot of the line, as [`Beat::ratio`].
    in_slot: u32,
}

/// What was taken: how many cells, and which of them are the other's, the first in the lowest bit.
type Taken = (u32, u64);

/// What was taken by a full queue: cells of one train.
#[derive(Default)]
pub(super) struct Full {
    pub(super) taken: u64,
    /// So many of them have joined.
    pub(super) joined: u64,
    /// When the first of the others came.
    pub(super) lost_at: u64,
    /// Whose they are.
    pub(super) others: bool,
}

/// Cells of one train in the time of one of the other, at most, that are looked for.
const RATIO: u64 = 8;
/// Two instants that are so many picoseconds apart are so many, less two, before they are rounded, and at any later place.
const APART: u64 = 3;
/// Cells that the train in front should have before the other begins.
const FAR: u64 = 4;
/// Places beyond which the walk in front should know of a cell.
const FEW: u32 = 6;

/// How many units of `quick` take as long as one of `slow`; 0 where that is no small whole number.
fn ratio(slow: Pace, quick: Pace) -> u32 {
    slow.multiple_of(quick).filter(|ratio| *ratio <= RATIO).unwrap_or(0) as u32
}

impl Steps {
    fn of(channel: &Channel, slot: Pace) -> Option<Self> {
        let (pace, unit) = channel.steps();
        let at_least = pace.at_least();
        (at_least > 2 * APART).then(|| Self {
            unit,
            at_least,
            at_most: at_least + 1,
            in_slot: ratio(slot, pace),
        })
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
        Some(Self { one: Steps::of(one, slot)?, other: Steps::of(other, slot)?, ratio, one_is_quick })
    }

    /// Whether the walk in front knows so many cells that it may be worth to look.
    #[inline(always)]
    pub(super) fn knows_many(one: &Walk, other: &Walk) -> bool {
        (if one.head < other.head { one.ahead() } else { other.ahead() }) >> FEW != 0
    }

    /// Take cells that come by `sure`, at most `most`, one for certain being left of what either walk knows.
    #[inline(always)]
    pub(super) fn take(
        &self,
        (mut one, mut other): (Walk, Walk),
        sure: u64,
        most: u32,
    ) -> (Taken, (Walk, Walk)) {
        if self.one.is_far(&one, &other) {
            let count = alone(&mut one, &self.one, sure.min(other.head - 1), most);
            ((count, 0), (one, other))
        } else if self.other.is_far(&other, &one) {
            let count = alone(&mut other, &self.other, sure.min(one.head - 1), most);
            ((count, lowest(count)), (one, other))
        } else if self.ratio > 0 {
            self.together((one, other), sure, most)
        } else {
            ((0, 0), (one, other))
        }
    }

    #[inline(never)]
    fn together(&self, (mut one, mut other): (Walk, Walk), sure: u64, most: u32) -> (Taken, (Walk, Walk)) {
        let taken = if self.one_is_quick {
            together((&mut one, &self.one), (&mut other, &self.other), self.ratio, (sure, most))
        } else {
            let (count, mine) =
                together((&mut other, &self.other), (&mut one, &self.one), self.ratio, (sure, most));
            (count, lowest(count) & !mine)
        };
        (taken, (one, other))
    }

    /// Take cells that come by `sure` to a full queue, in which there is room for one more at each of the `ends`, counted from `since`
    /// on; at most `most` join.
    #[inline(always)]
    pub(super) fn take_full(
        &self,
        (mut one, mut other): (Walk, Walk),
        room: (u64, &mut Stepper),
        sure: u64,
        most: u32,
    ) -> (Full, (Walk, Walk)) {
        let mut taken = Full::default();
        if self.one.in_slot > 0 && self.one.is_far(&one, &other) {
            (taken, one) = full(one, &self.one, room, (sure.min(other.head - 1), most));
        } else if self.other.in_slot > 0 && self.other.is_far(&other, &one) {
            (taken, other) = full(other, &self.other, room, (sure.min(one.head - 1), most));
            taken.others = true;
        }
        (taken, (one, other))
    }
}

impl Steps {
    /// Whether the next cells, some, come before the first of the other walk.
    #[inline(always)]
    fn is_far(&self, walk: &Walk, other: &Walk) -> bool {
        other.head > walk.head.saturating_add(FAR * self.at_least)
    }

    /// How many of its cells, the first at `head`, come before `instant`, and before any later one that is whole slots, or steps of the slow
    /// train, further, so many more; `None` where that is not clear.
    #[inline(always)]
    fn before(&self, head: u64, instant: u64) -> Option<u32> {
        let Some(late) = instant.checked_sub(head) else {
            return (APART..self.at_least - APART).contains(&(head - instant)).then_some(0);
        };
        let last = late / self.at_most;
        let clear =
            last < 64 && late >= last * self.at_most + APART && (last + 1) * self.at_least >= late + APART;
        clear.then_some(last as u32 + 1)
    }
}

/// That many bits.
pub(super) fn lowest(count: u32) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (64 - count) }
}

/// Cells of one walk up to `until`: how many.
#[inline(always)]
fn alone(walk: &mut Walk, steps: &Steps, until: u64, most: u32) -> u32 {
    let Some(span) = until.checked_sub(walk.head) else { return 0 };
    let known = walk.ahead();
    let places = (span / steps.at_most + 1).min(u64::from(most)) as u32;
    // One of those it knows is left.
    let taken = known & lowest(places) & (u64::MAX >> 1 >> known.leading_zeros());
    if taken != 0 {
        walk.leap_to((known & !taken).trailing_zeros(), steps.unit);
    }
    taken.count_ones()
}

/// Cells of a quick train without gaps and of a slow one: how many, and which are the slow one's.
fn together(
    (quick, fast): (&mut Walk, &Steps),
    (slow, slower): (&mut Walk, &Steps),
    ratio: u32,
    (sure, most): (u64, u32),
) -> Taken {
    let Some(before) = fast.before(quick.head, slow.head) else { return (0, 0) };
    let Some(span) = sure.checked_sub(quick.head) else { return (0, 0) };
    let run = quick.ahead().trailing_ones() - 1;
    let many = (span / fast.at_most + 1).min(u64::from(run)) as u32;
    let (mut slows, mut count, mut left) = (0, 0, slow.ahead());
    // Behind each of the slow train one of the quick one is taken, which comes by then.
    let next = loop {
        let (before, behind) = (before + ratio * left.trailing_zeros(), left & (left - 1));
        if behind == 0 || before >= many || before + count + 2 > most {
            break before;
        }
        slows |= 1 << (before + count);
        count += 1;
        left = behind;
    };
    let quicks = many.min(next).min(most - count);
    if quicks > 0 {
        quick.leap_to(quicks, fast.unit);
    }
    if count > 0 {
        slow.leap_to(left.trailing_zeros(), slower.unit);
    }
    (quicks + count, slows)
}

/// Cells of one train up to `until` in front of a full queue.
#[inline(never)]
fn full(
    mut walk: Walk,
    steps: &Steps,
    (since, ends): (u64, &mut Stepper),
    (until, most): (u64, u32),
) -> (Full, Walk) {
    let none = Full::default();
    let Some(span) = until.checked_sub(walk.head) else { return (none, walk) };
    // They are lost up to where one leaves; from then on the first in every slot joins.
    let Some(before) = steps.before(walk.head, since + ends.after()) else { return (none, walk) };
    let (ratio, run) = (steps.in_slot, walk.ahead().trailing_ones() - 1);
    let mut taken = (span / steps.at_most + 1).min(u64::from(run)) as u32;
    let mut joined = if taken > before { (taken - before - 1) / ratio + 1 } else { 0 };
    if joined > most {
        joined = most;
        taken = before + ratio * (most - 1) + 1;
    }
    if taken == 0 {
        return (none, walk);
    }
    let lost_at = if before > 0 { walk.head } else { walk.after(1, steps.unit) };
    walk.leap_to(taken, steps.unit);
    ends.leap_many(joined.into());
    (Full { taken: taken.into(), joined: joined.into(), lost_at, others: false }, walk)
}
