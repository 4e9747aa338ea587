//! Where nothing changes: cells of one train, or of two of which one comes a whole number of times as often, taken in one step.

use super::super::channel::{Stretch, Walk};
use super::super::departures::Departures;
use super::merge::{Line, Side};

/// Cells from which on counting is quicker than going one by one.
pub(super) const MANY: u64 = 8;
/// Instants are rounded up and distances down: what is closer together than this may be the other way round.
const CLOSE: u64 = 4;
/// Places that a gap between runs may have, at most.
const APART: u64 = u16::MAX as u64 - 1;

/// Take the next cells of one side that surely come up to `bound`, find the line busy and find room, if they are many.
#[inline]
pub(super) fn solo(
    line: &mut Line,
    side: &mut Side<'_>,
    walk: &mut Walk,
    bound: u64,
    departures: &mut Departures,
) {
    let stretch = side.channel.stretch(walk);
    if stretch.count < MANY || bound - walk.head < MANY * stretch.apart {
        return;
    }
    let Some(until) = line.surely_busy(walk.head, &stretch) else { return };
    let Some(span) = until.min(bound).checked_sub(walk.head) else { return };
    let in_time = if span / (stretch.apart + 1) >= stretch.count {
        stretch.count
    } else {
        span / (stretch.apart + 1) + 1
    };
    let many = in_time.min(line.room(walk.head, 1, stretch.apart));
    if many < MANY {
        return;
    }
    let place = line.n + 1;
    departures.piece(side.open, place, many);
    side.join(many, (place, line.n + many));
    line.join(many);
    *walk = side.channel.walk_past(walk.clone(), many);
}

/// Take cells of both sides while they come in a pattern that repeats itself, up to `limit`, if these are many. Whether any was taken.
pub(super) fn duet<'a>(
    line: &mut Line,
    sides: [&mut Side<'a>; 2],
    walks: [&mut Walk; 2],
    limit: u64,
    departures: &mut Departures,
) -> bool {
    let [one, other] = sides;
    let [one_walk, other_walk] = walks;
    let (first, second) = (one.channel.stretch(one_walk), other.channel.stretch(other_walk));
    if first.apart <= second.apart {
        both(line, (one, one_walk, first), (other, other_walk, second), limit, departures)
    } else {
        both(line, (other, other_walk, second), (one, one_walk, first), limit, departures)
    }
}

type Part<'a, 'b> = (&'a mut Side<'b>, &'a mut Walk, Stretch);

fn both(
    line: &mut Line,
    (fast, fast_walk, often): Part<'_, '_>,
    (slow, slow_walk, seldom): Part<'_, '_>,
    limit: u64,
    departures: &mut Departures,
) -> bool {
    if often.count < 2 || seldom.count < 2 || often.count + seldom.count < MANY {
        return false;
    }
    let many = (seldom.apart + often.apart / 2) / often.apart;
    if many > APART || !often.is_part_of(&seldom, many) {
        return false;
    }
    // Cells of the one before the first of the other; after that there are as many in every interval.
    let Some(ahead) = cells_ahead(fast_walk.head, slow_walk.head, often.apart) else { return false };
    if ahead >= often.count {
        return false;
    }
    let head = fast_walk.head.min(slow_walk.head);
    let Some(busy) = line.surely_busy(head, &often) else { return false };
    let room = line.room(head, many + 1, seldom.apart);
    let Some(intervals) = room.checked_sub(ahead).map(|room| room / (many + 1)) else { return false };
    // Intervals between cells of the slow one, of which the last may be cut short.
    let (full, cut) = if many == 1 {
        (often.count - ahead, 0)
    } else {
        ((often.count - ahead) / many, (often.count - ahead) % many)
    };
    let mut slows = seldom.count.min(full + 1);
    let mut cut = if slows == full + 1 { cut } else { 0 };
    let span = busy.min(limit).saturating_sub(slow_walk.head);
    let interval = seldom.apart + 1;
    if span < slows * interval {
        (slows, cut) = (span / interval, 0);
    }
    if intervals < slows {
        (slows, cut) = (intervals, 0);
    }
    if slows == 0 || ahead + slows * (many + 1) < MANY {
        return false;
    }
    let fasts = ahead + (slows - 1) * many + cut;
    let from = line.n;
    let first_slow = from + ahead + 1;
    let last_slow = first_slow + (slows - 1) * (many + 1);
    departures.runs(slow.open, first_slow, slows, (1, many + 1));
    if ahead == many {
        departures.runs(fast.open, from + 1, fasts, (many, many + 1));
    } else {
        departures.runs(fast.open, from + 1, ahead, (ahead, ahead + 1));
        departures.runs(fast.open, first_slow + 1, fasts - ahead, (many, many + 1));
    }
    slow.join(slows, (first_slow, last_slow));
    if fasts > 0 {
        let first = if ahead > 0 { from + 1 } else { first_slow + 1 };
        let last = if cut > 0 { last_slow + cut } else { last_slow - 1 };
        fast.join(fasts, (first, last));
        *fast_walk = fast.channel.walk_past(fast_walk.clone(), fasts);
    }
    line.join(slows + fasts);
    *slow_walk = slow.channel.walk_past(slow_walk.clone(), slows);
    true
}

/// Cells from `fast` on, `apart`, that come before `slow`, if that is sure and stays so when both go on by as much.
fn cells_ahead(fast: u64, slow: u64, apart: u64) -> Option<u64> {
    let (ahead, early) = match slow.checked_sub(fast) {
        None => (0, apart.checked_sub(fast - slow)?),
        Some(late) => (late / apart + 1, late % apart),
    };
    (early >= CLOSE + ahead && early + CLOSE <= apart).then_some(ahead)
}

impl Line {
    /// Until when cells of `stretch` surely find the line busy, with others between them or not, if one that comes at `head` does.
    fn surely_busy(&mut self, head: u64, stretch: &Stretch) -> Option<u64> {
        if self.busy < head + CLOSE || !self.slot.is_at_least(stretch.pace) || stretch.stride > 1 {
            self.busy = self.base + self.slot.after(self.n);
        }
        let close = stretch.stride == 1 && self.slot.is_at_least(stretch.pace);
        let sure = self.busy >= head + CLOSE;
        sure.then(|| if close { u64::MAX } else { self.busy - CLOSE })
    }

    /// How many cells surely find room from `head` on, while the line is busy and no more than `cells` come in any `apart` picoseconds.
    fn room(&mut self, head: u64, cells: u64, apart: u64) -> u64 {
        if self.spare <= cells + 2 * MANY {
            self.look(head);
        }
        let slot_up = self.slot_at_least + 1;
        // The places that are left but for the cells of one interval, and for what is rounded.
        let Some(spare) = self.spare.checked_sub(cells + 3) else { return self.spare };
        match (cells * slot_up).checked_sub(apart) {
            None | Some(0) => u64::MAX,
            // In every interval so many come more than leave.
            Some(more) => (spare.saturating_mul(slot_up) / more).saturating_add(1).saturating_mul(cells),
        }
    }
}
