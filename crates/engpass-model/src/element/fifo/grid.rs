//! Trains with one, two, four or eight cells in a slot of a busy line: what comes is counted in parts of slots, not in instants.

mod full;

use super::super::channel::Walk;
use super::beat::lowest;
use crate::time::Pace;

/// Where one or two trains stand between the slots of a line in the midst of a busy period. Time goes by in *parts* of a slot: the quicker train has
/// a cell in each of them, the slower one in every second, fourth, or so. Which of two cells in a part comes first is the same in all parts.
///
/// A cell is up to a picosecond late, as [`Pace::after`] rounds it. So this holds where no two of them are so near; and of a train whose cells are so near
/// before the ends of parts it is only known here which of them a full queue loses where they come one in a slot, at its end.
pub(super) struct Grid {
    one: Lane,
    other: Lane,
    /// Of two cells in the same part that of `one` comes first.
    one_wins: bool,
    /// Parts of a slot: two to the power of this.
    parts: u32,
    /// What the compiler may know of the steps.
    steps: Steps,
    /// Cells in earlier parts come in time.
    until: u64,
    capacity: u64,
    /// No cell is so near before the end of a part: it is known which ones a full queue loses.
    clear: bool,
    scale: Scale,
}

/// How instants become parts.
#[derive(Clone, Copy)]
struct Scale {
    /// The beginning of the busy period: the second slot of the grid begins then.
    base: u64,
    /// So many units make a picosecond, and so many a part: all is counted in whole ones.
    unit: (u64, u64),
    /// Units of a slot.
    slot: u64,
    /// Parts in a unit, of 2 to the power of 64, rounded down.
    rate: u64,
}

/// Cells in a slot, of the trains: what is most often.
#[derive(Clone, Copy)]
enum Steps {
    TwoAndOne,
    OneAndTwo,
    TwoAndTwo,
    Any,
}

/// Where a train stands.
#[derive(Clone, Copy)]
struct Lane {
    /// The part in which its next cell comes, or, behind all that is known of it, its last one.
    next: u64,
    /// How far behind the beginning of the part, in the grid's units.
    phase: u64,
    /// Parts from cell to cell: two to the power of this.
    step: u32,
}

/// So many cells have joined, and which of them are the other's, the first in the lowest bit.
type Joined = (u32, u64);

/// Cells of one train that were lost.
pub(super) struct Lost {
    /// They are the other's.
    pub(super) others: bool,
    pub(super) count: u64,
    /// Place of the first.
    pub(super) first: u64,
    /// Place of the last one that was taken, if it was lost.
    pub(super) last: Option<u64>,
}

/// The queue as the next cell finds it.
#[derive(Clone, Copy)]
struct Found {
    /// Cells of the busy period.
    n: u64,
    /// Of which so many have left.
    left: u64,
    capacity: u64,
    parts: u32,
}

/// No cell comes.
const NEVER: u64 = u64::MAX >> 8;

impl Found {
    fn spare(&self) -> u64 {
        self.capacity.saturating_sub(self.n - self.left)
    }

    /// The same behind so many cells more, as the one in `part` finds it.
    fn behind(self, joined: u32, part: u64) -> Self {
        Self { n: self.n + u64::from(joined), left: part >> self.parts, ..self }
    }
}

/// How many cells behind the first one surely join if there is room for `spare` more, and the queue `grows` by so many in a slot.
fn fit(spare: u64, grows: u64) -> u64 {
    spare + spare / grows
}

impl Scale {
    fn of(base: u64, unit: (u64, u64), slot: u64) -> Self {
        Self { base, unit, slot, rate: u64::MAX / unit.1 }
    }

    /// In which part the next cell of `walk` comes, and how far behind its beginning.
    #[inline(always)]
    fn stands(&self, walk: &Walk) -> Option<(u64, u64)> {
        if walk.head == u64::MAX {
            return Some((NEVER, 0));
        }
        let picosecond = self.unit.0;
        let rounding = if walk.rounding == 0 { 0 } else { walk.rounding * (picosecond / walk.den) };
        let at =
            walk.head.checked_sub(self.base)?.checked_mul(picosecond)?.checked_add(self.slot)? - rounding;
        Some(self.parts(at))
    }

    /// Parts in so many units, and what is left of them: nothing is divided.
    #[inline(always)]
    fn parts(&self, units: u64) -> (u64, u64) {
        // So many, or one more.
        let parts = ((u128::from(units) * u128::from(self.rate)) >> 64) as u64;
        let left = units - parts * self.unit.1;
        if left >= self.unit.1 { (parts + 1, left - self.unit.1) } else { (parts, left) }
    }
}

impl Lane {
    /// A train of which a cell comes in so many parts; `None` where numbers would overflow.
    fn of(walk: &Walk, scale: &Scale, step: u32) -> Option<Self> {
        let (next, phase) = scale.stands(walk)?;
        Some(Self { next, phase, step })
    }

    /// Cells up to `part`, itself not among them, if there is no gap.
    #[inline(always)]
    fn places(&self, part: u64, step: u32) -> u64 {
        (part - self.next + (1 << step) - 1) >> step
    }

    /// Its next cells are taken, those before `reach`, of which there is one, as far as it is `clear` what becomes of them: how many join, and how
    /// many are lost.
    #[inline(always)]
    fn alone(&mut self, walk: &mut Walk, step: u32, reach: u64, found: Found, clear: bool) -> (u32, u64) {
        let places = self.places(reach, step).min(64);
        if step == found.parts {
            // One in a slot: behind the first one there is room. Through a gap the line may run empty.
            let run = u64::from(walk.bits.trailing_ones());
            let sure = run.max(found.n - found.left).min(places);
            let count = if sure <= run {
                self.take_run(walk, sure, step);
                sure as u32
            } else {
                self.take_pattern(walk, walk.bits & lowest(sure as u32))
            };
            let lost = u32::from(found.spare() == 0);
            return (count - lost, lost.into());
        }
        let count = places.min(walk.run());
        let last = (self.next + ((count - 1) << step)) >> found.parts;
        let joined = count.min(found.capacity + last - found.n);
        if joined < count && !clear {
            let sure = self.fitting(self.next, found);
            self.take_run(walk, sure, step);
            return (sure as u32, 0);
        }
        self.take_run(walk, count, step);
        (joined as u32, count - joined)
    }

    /// How many of its cells, the next one in part `next`, join before one is lost, if they come alone, more than one in a slot, and there is room.
    fn fitting(&self, next: u64, found: Found) -> u64 {
        let passed = next >> self.step;
        let grows = (1 << (found.parts - self.step)) - 1;
        fit(found.capacity + passed - 1 - found.n, grows) + 1 - passed
    }

    /// What was `lost` of cells that were taken alone, the first at its place and in part `next`, so many of which have `joined`.
    #[inline(never)]
    fn lost(&self, next: u64, joined: u32, found: Found, lost: Lost) -> Lost {
        let (cells, place) = (u64::from(joined) + lost.count, lost.first);
        if self.step == found.parts {
            return Lost { last: (cells == 1).then_some(place), ..lost };
        }
        let before = if found.spare() == 0 { 0 } else { self.fitting(next, found) };
        let grows = (1 << (found.parts - self.step)) - 1;
        let is_first_of_slot = ((next >> self.step) + cells - 1) & grows == 0;
        let last = (cells == 1 || !is_first_of_slot).then_some(place + cells - 1);
        Lost { first: place + before, last, ..lost }
    }

    #[inline(always)]
    fn take_run(&mut self, walk: &mut Walk, count: u64, step: u32) {
        self.next += walk.take_run(count) << step;
    }

    /// Its next cells at the places of these bits are taken: how many.
    #[inline(never)]
    fn take_pattern(&mut self, walk: &mut Walk, bits: u64) -> u32 {
        self.next += walk.take(bits) << self.step;
        bits.count_ones()
    }
}

impl Grid {
    /// Of trains that have so many cells in a slot, in front of a line in a busy period that began at `base`, up to `limit`. Of two cells that come
    /// together that of `one` goes first if it `wins`.
    #[inline(never)]
    pub(super) fn of(
        (one, other): (&Walk, &Walk),
        in_slot: (u32, u32),
        (base, slot, capacity): (u64, Pace, u64),
        limit: u64,
        wins: bool,
    ) -> Option<Self> {
        if !in_slot.0.is_power_of_two() || !in_slot.1.is_power_of_two() || capacity < 2 {
            return None;
        }
        let parts = in_slot.0.max(in_slot.1).trailing_zeros();
        let (part, den) = slot.ratio();
        let unit = (den << parts, part);
        let scale = Scale::of(base, unit, part << parts);
        let (until, _) = scale.parts(limit.checked_sub(base)?.checked_mul(unit.0)?.checked_add(scale.slot)?);
        let lane = |walk, in_slot: u32| Lane::of(walk, &scale, parts - in_slot.trailing_zeros());
        let (one, other) = (lane(one, in_slot.0)?, lane(other, in_slot.1)?);
        let capacity = capacity.min(NEVER);
        let steps = match in_slot {
            (2, 1) => Steps::TwoAndOne,
            (1, 2) => Steps::OneAndTwo,
            (2, 2) => Steps::TwoAndTwo,
            _ => Steps::Any,
        };
        let mut grid = Self { one, other, one_wins: wins, parts, steps, until, capacity, clear: true, scale };
        grid.finds_order(wins).then_some(grid)
    }

    /// Find which train comes first in a part. Whether that is clear.
    fn finds_order(&mut self, wins: bool) -> bool {
        let (picosecond, part) = self.scale.unit;
        let (one, other) = (self.one.phase, self.other.phase);
        self.clear = one.max(other) + picosecond <= part;
        self.one_wins = if one == other { wins } else { one < other };
        let apart = one.abs_diff(other);
        let clear = picosecond..=part.saturating_sub(picosecond);
        apart == 0 || clear.contains(&apart) || self.one.next.max(self.other.next) == NEVER
    }

    /// Another train of the same pace follows, of `one` or of the `others`. Whether it is clear how it comes.
    #[inline]
    pub(super) fn goes_on(&mut self, others: bool, walk: &Walk, wins: bool) -> bool {
        let lane = if others { &mut self.other } else { &mut self.one };
        let Some((next, phase)) = self.scale.stands(walk) else { return false };
        (lane.next, lane.phase) = (next, phase);
        self.finds_order(wins)
    }

    /// What comes next in a train is so many places further.
    #[inline]
    pub(super) fn moves(&mut self, others: bool, places: u64) {
        let lane = if others { &mut self.other } else { &mut self.one };
        lane.next += places << lane.step;
    }

    /// Take cells that come to a line that has accepted `n` in this busy period, telling of those that it `loses`. `None` where it is not clear
    /// what becomes of the next one.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        walks: (&mut Walk, &mut Walk),
        n: u64,
        loses: impl FnMut(Lost),
    ) -> Option<Joined> {
        // What the compiler knows is quicker.
        match self.steps {
            Steps::TwoAndOne => self.take_at((0, 1, 1), walks, n, loses),
            Steps::OneAndTwo => self.take_at((1, 0, 1), walks, n, loses),
            Steps::TwoAndTwo => self.take_at((0, 0, 1), walks, n, loses),
            Steps::Any => self.take_at((self.one.step, self.other.step, self.parts), walks, n, loses),
        }
    }

    /// The same with the steps and parts that it has.
    #[inline(always)]
    fn take_at(
        &mut self,
        (one_step, other_step, parts): (u32, u32, u32),
        (one, other): (&mut Walk, &mut Walk),
        n: u64,
        mut loses: impl FnMut(Lost),
    ) -> Option<Joined> {
        let (mine, theirs) = (self.one.next, self.other.next);
        let one_first = mine < theirs || mine == theirs && self.one_wins;
        let (next, behind) = if one_first { (mine, theirs) } else { (theirs, mine) };
        // Counted as the slots are: one more.
        let (n, left) = (n + 1, next >> parts);
        let found = Found { n, left, capacity: self.capacity, parts };
        if next >= self.until || left >= n && !self.begins(one_first, n) {
            return None;
        }
        let spare = found.spare();
        if spare == 0 {
            if n - left > self.capacity {
                // One that has come as another left is counted, and the other is not gone yet.
                return None;
            }
            if let Some((joined, [one, other])) = self.take_slots(one, other, left + 1) {
                loses(one);
                loses(other);
                return Some(joined);
            }
            if !self.clear {
                return None;
            }
        }
        let quick_first = one_first == (one_step <= other_step);
        if quick_first && spare >= 64 && left < n && one.bits != 0 && other.bits != 0 {
            return Some(self.take_together((one_step, other_step), one, other, found, (0, 0)));
        }
        let wins = one_first == self.one_wins;
        let reach = behind + u64::from(wins);
        let reach_in_time = reach.min(self.until);
        let (place, (joined, lost), others, met) = if one_first {
            let place = one.n;
            let taken = self.one.alone(one, one_step, reach_in_time, found, self.clear);
            (place, taken, 0, self.one.next >= reach)
        } else {
            let place = other.n;
            let taken = self.other.alone(other, other_step, reach_in_time, found, self.clear);
            (place, taken, lowest(taken.0), self.other.next >= reach)
        };
        let mine = (joined, others);
        if lost > 0 {
            let lost = Lost { others: !one_first, count: lost, first: place, last: None };
            let first = if one_first { &self.one } else { &self.other };
            let found = Found { n, left, capacity: self.capacity, parts };
            loses(first.lost(next, joined, found, lost));
            return Some(mine);
        }
        if met && joined < 64 && one.bits != 0 && other.bits != 0 {
            return Some(self.take_together((one_step, other_step), one, other, found, mine));
        }
        Some(mine)
    }

    /// Whether the first cell of a busy period is next, of a train that has more than one in a slot: so that the next one surely waits.
    #[cold]
    fn begins(&self, one_first: bool, n: u64) -> bool {
        n == 1 && if one_first { self.one.step } else { self.other.step } < self.parts
    }

    /// Both trains come behind those that have `joined`, and all find room: take them as far as the quicker one has no gap. Where it comes first, and
    /// none has joined, that is one cell at least.
    #[inline(always)]
    fn take_together(
        &mut self,
        (one_step, other_step): (u32, u32),
        one: &mut Walk,
        other: &mut Walk,
        found: Found,
        (joined, others): Joined,
    ) -> Joined {
        let others_slow = one_step <= other_step;
        let (quick_step, slow_step) = (one_step.min(other_step), one_step.max(other_step));
        let ((quick, fast), (slow, walk)) = if others_slow {
            ((&mut self.one, one), (&mut self.other, other))
        } else {
            ((&mut self.other, other), (&mut self.one, one))
        };
        let found = found.behind(joined, quick.next.min(slow.next));
        // Cells of the quick train before the next one of the slow one, less than in its time.
        let reach = slow.next + u64::from(others_slow == self.one_wins);
        let is_busy = found.left < found.n && quick.next < reach + (1 << quick_step);
        let spare = if is_busy { found.spare() } else { 0 };
        if spare == 0 || quick.next >= self.until {
            return (joined, others);
        }
        let before = if reach > quick.next { quick.places(reach, quick_step) as u32 } else { 0 };
        let mut most = 64 - joined;
        if spare < 64 {
            let grows = (1 << (found.parts - quick_step)) + (1 << (found.parts - slow_step)) - 1;
            most = most.min(fit(spare - 1, grows) as u32 + 1);
        }
        let many = fast.run().min(64).min(quick.places(self.until, quick_step)) as u32;
        let ratio = slow_step - quick_step;
        let (mut slows, mut count, mut taken) = (0, 0, 0);
        let mut quicks = many.min(most);
        if before < quicks {
            // A cell of the slow train is taken where one of the quick one is known behind it.
            let places = (many - before).div_ceil(1 << ratio);
            slows = between(walk.bits & lowest(places), ratio) << before & lowest(most);
            count = slows.count_ones();
            let last = (64 - slows.leading_zeros() - before - count) >> ratio;
            taken = walk.bits & lowest(last + 1);
            quicks = if taken == walk.bits { before + (last << ratio) } else { many.min(most - count) };
        }
        if quicks > 0 {
            quick.take_run(fast, quicks.into(), quick_step);
        }
        if count > 0 {
            slow.next += walk.take(taken) << slow_step;
        }
        let all = quicks + count;
        let theirs = if others_slow { slows } else { lowest(all) & !slows };
        (joined + all, others | theirs << joined)
    }
}

/// Where the cells of a slow train come, whose places from the next one on these `bits` are, if two to the power of `ratio` of a quick one come behind each
/// place; as far as 64 of both.
#[inline(always)]
fn between(mut bits: u64, ratio: u32) -> u64 {
    let ratio = ratio as usize;
    if bits & bits.wrapping_add(1) == 0 {
        let many = bits.trailing_ones();
        return EVERY[ratio] & lowest(((many << ratio) + many).min(64));
    }
    let (mut all, mut at) = (0, 0);
    while bits != 0 && at < 64 {
        let (between, length) = FOUR[ratio][(bits & 15) as usize];
        all |= between << at;
        at += length;
        bits >>= 4;
    }
    all
}

/// One bit and one, two, four or eight others, again and again.
const EVERY: [u64; 4] = [every(2), every(3), every(5), every(9)];

const fn every(step: u32) -> u64 {
    let (mut every, mut bit) = (0, 0);
    while bit < 64 {
        every |= 1 << bit;
        bit += step;
    }
    every
}

/// As [`between`] of any four places, and how many come in their time.
const FOUR: [[(u64, u32); 16]; 4] = [four(0), four(1), four(2), four(3)];

const fn four(ratio: u32) -> [(u64, u32); 16] {
    let (mut all, mut places) = ([(0, 0); 16], 0);
    while places < 16 {
        let (mut between, mut length, mut place) = (0, 0, 0);
        while place < 4 {
            if places >> place & 1 == 1 {
                between |= 1 << length;
                length += 1;
            }
            length += 1 << ratio;
            place += 1;
        }
        all[places] = (between, length);
        places += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_counted_without_dividing(part in 1u64.., units: u64, small in (0u32..64, 0u32..64), near in 0u64..3) {
            let (part, units) = ((part >> small.0).max(1), units >> small.1);
            let scale = Scale::of(0, (1, part), part);
            for units in [units, (units / part * part).saturating_add(near).saturating_sub(1)] {
                prop_assert_eq!(scale.parts(units), (units / part, units % part));
            }
        }
    }
}
