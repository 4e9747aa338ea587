//! Trains that come to a full queue, slot by slot: in each there is room for one.

use super::super::super::channel::Walk;
use super::super::beat::lowest;
use super::{Grid, Joined, Lane, Lost};

/// How the cells of a train come to a full queue.
struct Comes {
    /// So many before there is room again.
    before: u64,
    /// So many slots from there on without one, 64 at most.
    gap: u32,
    /// The slots from there on in which it has its cells, as far as they are `known`.
    slots: u64,
    known: u32,
    /// In which part of a slot the first of them comes.
    offset: u32,
}

impl Lane {
    /// How its cells come to a full queue, which has room for one more from `boundary` on, and for one more in each slot behind. `None` where the
    /// first slot that it has cells in is no whole one.
    fn comes(&self, walk: &Walk, boundary: u64, parts: u32) -> Option<Comes> {
        let offset = self.next & ((1 << self.step) - 1);
        let (before, gap) = match self.next.checked_sub(boundary) {
            None => (self.places(boundary, self.step), 0),
            Some(late) => {
                if late & ((1 << parts) - 1) != offset {
                    return None;
                }
                (0, (late >> parts).min(64) as u32)
            }
        };
        let (slots, known) = if self.step == parts {
            (walk.bits >> before, 64 - walk.bits.leading_zeros() - before as u32)
        } else {
            let known = (walk.run().saturating_sub(before) >> (parts - self.step)).min(64) as u32;
            (lowest(known), known)
        };
        let slots = slots.checked_shl(gap).unwrap_or(0);
        Some(Comes { before, gap, slots, known: (gap + known).min(64), offset: offset as u32 })
    }

    /// So many slots of them have come to a full queue. In the slots whose bits are set the first has joined.
    fn leave(&mut self, walk: &mut Walk, (comes, parts): (&Comes, u32), slots: u32, joined: u64) -> Lost {
        let first = walk.n;
        let behind = slots.saturating_sub(comes.gap);
        let joined = joined.checked_shr(comes.gap).unwrap_or(0);
        let mut lost = Lost { others: false, count: 0, first, last: None };
        if self.step == parts {
            let taken = walk.bits & lowest((behind + comes.before as u32).min(64));
            let left = taken & !(joined << comes.before);
            if left != 0 {
                (lost.count, lost.first) =
                    (left.count_ones().into(), first + u64::from(left.trailing_zeros()));
                let last = 63 - taken.leading_zeros();
                lost.last = (left >> last != 0).then_some(first + u64::from(last));
            }
            if taken != 0 {
                self.next += walk.take(taken) << self.step;
            }
        } else {
            let cells = comes.before + (u64::from(behind) << (parts - self.step));
            if cells > 0 {
                let starts = u64::from(comes.before == 0) & joined;
                lost = Lost {
                    count: cells - u64::from(joined.count_ones()),
                    first: first + starts,
                    last: Some(first + cells - 1),
                    ..lost
                };
                self.take_run(walk, cells, self.step);
            }
        }
        lost
    }
}

impl Grid {
    /// Trains come to a full queue: take what comes before `slot`, with which there is room for one, and in as many slots from it on as one
    /// of them surely has a cell in each. `None` where there is no such slot.
    #[inline(never)]
    pub(super) fn take_slots(
        &mut self,
        one: &mut Walk,
        other: &mut Walk,
        slot: u64,
    ) -> Option<(Joined, [Lost; 2])> {
        if !self.clear {
            return self.take_slots_near(one, other, slot);
        }
        let (boundary, parts) = (slot << self.parts, self.parts);
        let mine = self.one.comes(one, boundary, parts)?;
        let theirs = self.other.comes(other, boundary, parts)?;
        let in_time = (self.until >> parts).saturating_sub(slot);
        let known = in_time.min(mine.known.min(theirs.known).into()) as u32;
        let slots = known.min((mine.slots | theirs.slots).trailing_ones());
        if slots == 0 {
            return None;
        }
        let all = lowest(slots);
        let one_first =
            if mine.offset == theirs.offset { self.one_wins } else { mine.offset < theirs.offset };
        let others = all & if one_first { !mine.slots } else { theirs.slots };
        let mine = self.one.leave(one, (&mine, parts), slots, all & !others);
        let theirs = self.other.leave(other, (&theirs, parts), slots, others);
        Some(((slots, others), [mine, Lost { others: true, ..theirs }]))
    }

    /// The same where one train has a cell at the end of each slot, less than a picosecond before there is room for one more: as both are rounded up that is
    /// the same picosecond, or the one before. So it finds room with the next slot, as the first, or comes *early*, as the last of its own.
    fn take_slots_near(
        &mut self,
        one: &mut Walk,
        other: &mut Walk,
        slot: u64,
    ) -> Option<(Joined, [Lost; 2])> {
        let (parts, (picosecond, part)) = (self.parts, self.scale.unit);
        let [one_near, others] = [&self.one, &self.other].map(|lane| lane.phase + picosecond > part);
        if one_near && others {
            return None;
        }
        let ((near, walk), (far, their)) = if others {
            ((&mut self.other, other), (&mut self.one, one))
        } else {
            ((&mut self.one, one), (&mut self.other, other))
        };
        let last_part = (1 << parts) - 1;
        if near.step != parts || near.next & last_part != last_part {
            return None;
        }
        let mine = near.comes(walk, slot << parts, parts)?;
        let theirs = far.comes(their, slot << parts, parts)?;
        let in_time = (self.until >> parts).saturating_sub(slot);
        let known = in_time.min(theirs.known.min(mine.known + 1).into()) as u32;
        // How far behind a picosecond a slot ends. That of the slot before may have a cell, too.
        let (mut end, turn) = ((slot - 1) * (part << parts) % picosecond, (part << parts) % picosecond);
        let is_early = |end| (1..=part - near.phase).contains(&end);
        let (has_before, before_is_early) = (mine.before > 0, is_early(end));
        let mut early = 0;
        for slot in 0..known {
            end += turn;
            end -= if end >= picosecond { picosecond } else { 0 };
            early |= u64::from(is_early(end)) << slot;
        }
        let (ends, late) = (mine.slots & early, mine.slots & !early);
        let starts = late << 1 | u64::from(has_before && !before_is_early);
        // In the slot behind its last one that is known others may come first, if it does not.
        let sure = starts | (theirs.slots | ends) & lowest(mine.known);
        let slots = known.min(sure.trailing_ones());
        if slots == 0 {
            return None;
        }
        let all = lowest(slots);
        let joined = all & (starts | ends & !theirs.slots);
        let theirs = far.leave(their, (&theirs, parts), slots, all & !joined);
        // Its last one may come with the slot behind these.
        let own = |slots: u64, before: bool| (slots >> mine.gap.min(63)) << mine.before | u64::from(before);
        let taken = own(all & ends | (all >> 1) & late, has_before);
        let left = own(all & ends & !joined | all & ends & starts, has_before && before_is_early);
        let place = walk.n;
        let mut lost = Lost { others, count: 0, first: place, last: None };
        if left != 0 {
            let last = 63 - taken.leading_zeros();
            lost.count = left.count_ones().into();
            lost.first = place + u64::from(left.trailing_zeros());
            lost.last = (left >> last != 0).then_some(place + u64::from(last));
        }
        if taken != 0 {
            near.next += walk.take(taken) << parts;
        }
        let others_joined = if others { joined } else { all & !joined };
        Some(((slots, others_joined), [lost, Lost { others: !others, ..theirs }]))
    }
}
