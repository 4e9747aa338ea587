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
    if line.spare <= many + 2 * MANY {
        line.look(head);
    }
    if line.spare == 0 {
        let Some(full) = Full::of(line, many, ahead, (fast_walk.head, &often), (slow_walk.head, &seldom))
        else {
            return false;
        };
        let by_often = (often.count - 1 - ahead) / many + 1;
        let by_limit = limit.checked_sub(slow_walk.head).map_or(0, |span| span / (seldom.apart + 1) + 1);
        let slows = by_often.min(by_limit).min(seldom.count - 1);
        let enough = slows > 0 && ahead + slows * (many + 1) >= MANY;
        return enough
            && full.take(line, (fast, fast_walk, often), (slow, slow_walk, seldom), slows, departures);
    }
    let Some(busy) = line.surely_busy(head, &often) else { return false };
    let room = line.room(head, many + 1, seldom.apart);
    let Some(intervals) = room.checked_sub(ahead).map(|room| room / (many + 1)) else { return false };
    // After each of the slow ones as many of the other come, but for the last; what comes behind either stretch is not known.
    let behind = often.count - ahead - 1;
    let (full, cut) = if many == 1 { (behind, 1) } else { (behind / many, behind % many + 1) };
    let mut slows = seldom.count.min(full + 1);
    let mut cut = if slows < seldom.count { cut } else { 0 };
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

/// The next cell of a side finds the queue full: take that one and those behind it up to `bound` while cells come faster than others
/// leave, but not the last of its stretch. They join one behind the other.
#[cold]
pub(super) fn overflow(line: &mut Line, side: &mut Side<'_>, walk: &mut Walk, bound: u64) {
    let stretch = side.channel.stretch(walk);
    if stretch.apart + CLOSE > line.slot_at_least || line.capacity < 3 {
        return;
    }
    let many = (stretch.count - 1).min((bound - walk.head) / (stretch.apart + 1) + 1);
    if many < MANY {
        return;
    }
    // Between two cells that follow each other at most one leaves, and the next that comes takes its place.
    let joined = line.left_by(stretch.nth(many - 1)) + line.capacity - line.n;
    line.join(joined);
    line.spare = 0;
    side.lose(many - joined, walk.head);
    *walk = side.channel.walk_past(walk.clone(), many);
}

/// A queue that is full: who is first when a cell has left takes its place.
struct Full {
    /// Cells of the one that comes more often, in the time of a slot, and from one cell of the other to the next.
    in_slot: u64,
    in_interval: u64,
    /// Cells of the one before the next of the other.
    ahead: u64,
    /// How long after a departure the one comes first.
    often: u64,
    /// How many cells have left when the next one of the other comes, and how long before it the last of them did.
    seldom: (u64, u64),
}

impl Full {
    /// If it is so, and sure, when the next cells of both come at these instants: of the one `in_interval` between two of the other.
    fn of(
        line: &Line,
        in_interval: u64,
        ahead: u64,
        (fast, often): (u64, &Stretch),
        (slow, seldom): (u64, &Stretch),
    ) -> Option<Self> {
        let in_slot = (line.slot_at_least + often.apart / 2) / often.apart;
        let since = |at: u64| {
            let left = line.left_by(at);
            (left, at - line.base - line.slot.after(left))
        };
        // The one whose turn it is has come by now if both have always come as they do.
        let there = |head: u64, apart: u64| head + CLOSE <= line.room_at + apart;
        let next = in_interval.is_multiple_of(in_slot.max(1)) || there(slow, seldom.apart);
        let sure = line.capacity > 2 && often.fills(line.slot, in_slot) && there(fast, often.apart) && next;
        sure.then(|| Self {
            in_slot,
            in_interval,
            ahead,
            often: since(fast).1 % often.apart,
            seldom: since(slow),
        })
    }

    /// Take cells up to one of the slow side, as many of which come as of `slows` at most.
    fn take(
        &self,
        line: &mut Line,
        (fast, fast_walk, often): Part<'_, '_>,
        (slow, slow_walk, seldom): Part<'_, '_>,
        slows: u64,
        departures: &mut Departures,
    ) -> bool {
        let Self { in_slot, in_interval, ahead, often: behind, seldom: (left, since) } = *self;
        let close = CLOSE + in_slot;
        let claimed = line.n - line.capacity;
        let fasts = ahead + in_interval * (slows - 1);
        let alternate = in_interval.is_multiple_of(in_slot);
        let (wins, last_left) = if alternate {
            (since, left + (slows - 1) * (in_interval / in_slot))
        } else if in_slot.is_multiple_of(in_interval) {
            (since % seldom.apart, left + (since / seldom.apart + slows - 1) / (in_slot / in_interval))
        } else {
            return false;
        };
        let edges = [(wins, seldom.apart), (since, line.slot_at_least), (behind, often.apart)];
        let sure = |&(time, apart): &(u64, u64)| time >= close && time + close <= apart;
        if !edges.iter().all(sure) || wins.abs_diff(behind) < close || last_left < claimed {
            return false;
        }
        // Of those that take a place in every slot the first takes one if it comes when a cell has left; the next one comes too early.
        let room_at = line.room_at;
        let first_lost = |head: u64, train: &Stretch| if head < room_at { head } else { train.nth(1) };
        let joined = last_left - claimed;
        let from = line.n;
        if wins > behind {
            // The other never finds a place.
            if joined > fasts {
                return false;
            }
            departures.piece(fast.open, from + 1, joined);
            fast.join(joined, (from + 1, from + joined));
            fast.lose(fasts - joined, first_lost(fast_walk.head, &often));
            slow.lose(slows, slow_walk.head);
        } else if !alternate {
            if joined > slows {
                return false;
            }
            departures.piece(slow.open, from + 1, joined);
            slow.join(joined, (from + 1, from + joined));
            slow.lose(slows - joined, first_lost(slow_walk.head, &seldom));
            fast.lose(fasts, fast_walk.head);
        } else {
            // One that comes before a cell has left is lost.
            let early = u64::from(left == claimed);
            let period = in_interval / in_slot;
            if slows == early || period > APART || in_slot == 1 {
                return false;
            }
            let wins = slows - early;
            let before = left + early * period - 1 - claimed;
            let between = (wins - 1) * (period - 1);
            if before + between > fasts {
                return false;
            }
            let first = from + before + 1;
            let last = first + (wins - 1) * period;
            departures.runs(slow.open, first, wins, (1, period));
            slow.join(wins, (first, last));
            slow.lose(early, slow_walk.head);
            departures.piece(fast.open, from + 1, before);
            departures.runs(fast.open, first + 1, between, (period - 1, period));
            if before + between > 0 {
                let places = (
                    if before > 0 { from + 1 } else { first + 1 },
                    if between > 0 { last - 1 } else { from + before },
                );
                fast.join(before + between, places);
            }
            let head = fast_walk.head;
            let lost_at = if before == 0 { head } else { first_lost(head, &often) };
            fast.lose(fasts - before - between, lost_at);
        }
        line.join(joined);
        line.spare = 0;
        *fast_walk = fast.channel.walk_past(fast_walk.clone(), fasts);
        *slow_walk = slow.channel.walk_past(slow_walk.clone(), slows);
        true
    }
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
        if stretch.stride == 1 && stretch.pace == self.slot {
            return stretch.comes_before((self.base, self.n)).then_some(u64::MAX);
        }
        let close = stretch.stride == 1 && self.slot.is_at_least(stretch.pace);
        if self.busy < head + CLOSE || !close {
            self.busy = self.base + self.slot.after(self.n);
        }
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
