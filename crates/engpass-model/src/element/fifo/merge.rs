//! Two trains that meet in front of a line, in a tight loop.

use super::super::channel::Walk;
use super::super::departures::{Departures, Open};
use super::super::inputs::Two;
use super::super::{Cells, Channel, Loss, Outlet, Rule};
use super::Fifo;
use crate::time::Pace;

/// The line in the midst of a busy period, in registers.
struct Line {
    base: u64,
    slot: Pace,
    slot_at_least: u64,
    n: u64,
    /// It is busy until then at least.
    busy: u64,
    capacity: u64,
    /// So many cells surely find room.
    spare: u64,
    /// When there is none: the next one does from this instant on.
    room_at: u64,
}

/// One of the two: its channel, how far it is, and what became of its cells.
struct Side<'a> {
    channel: &'a mut Channel,
    open: Open,
    joined: u64,
    /// Places of the first and the last one that joined.
    places: (u64, u64),
    lost: u64,
    lost_at: u64,
    last_lost: bool,
}

/// Why the next cell of one side is not taken.
#[derive(PartialEq, Eq)]
enum Stop {
    /// It comes later.
    Bound,
    /// It finds the line free.
    Idle,
    /// There is none: the train has ended.
    Ended,
}

impl Line {
    /// Whether the line is busy when a cell arrives at `at`: the exact answer, where the bound that is kept gives none.
    #[cold]
    fn busy_at(mut self, at: u64) -> (Self, bool) {
        self.busy = self.base + self.slot.after(self.n);
        let busy = at <= self.busy;
        (self, busy)
    }

    /// Whether there is room for a cell that arrives at `at`, where none was sure.
    fn has_room(mut self, at: u64) -> (Self, bool) {
        if at < self.room_at {
            return (self, false);
        }
        let left = self.slot.ended_within(at - self.base).min(self.n);
        self.spare = self.capacity - (self.n - left);
        if self.spare == 0 {
            self.room_at = self.base + self.slot.after(self.n + 1 - self.capacity);
        }
        let room = self.spare > 0;
        (self, room)
    }
}

impl Fifo {
    /// Take cells of two channels that meet up to where a third may come between, the line runs empty, or one of the trains ends.
    /// Whether any was taken.
    pub(super) fn merge_two(
        &mut self,
        two: Two<'_>,
        until: u64,
        rules: &[Rule],
        out: &mut impl Outlet,
    ) -> bool {
        let Two { first, second, until: third, second_wins } = two;
        let policed = |vc: u32| rules[vc as usize].policer.is_some();
        let limit = third.min(until);
        let head = first.head();
        if head > limit || policed(first.vc()) || policed(second.vc()) {
            return false;
        }
        if head > self.last_end {
            self.idle(head - self.last_end, self.rounded(), out);
            self.start(head);
            // Its first cell is there.
            self.last_end = head;
        }
        let (one_walk, other_walk) = (first.walk(), second.walk());
        let mut one = self.side(first, out);
        let mut other = self.side(second, out);
        let line = self.line();
        let departures = &mut self.departures;
        let walks = (one_walk, other_walk);
        let (line, walks) =
            merge(line, (&mut one, &mut other), walks, (limit, u64::from(second_wins)), departures);
        self.n = line.n;
        self.end.seek(self.n);
        self.last_end = self.base + self.end.after();
        for (side, walk) in [(one, walks.0), (other, walks.1)] {
            self.tell(&side, &walk, out);
            side.channel.walked(walk);
        }
        true
    }

    fn line(&self) -> Line {
        let capacity = self.plain.expect("only plain queues are merged in this way");
        let (base, slot, n) = (self.base, self.slot, self.n);
        // Asked at the first cell, if the queue has ever been full.
        let spare = capacity.saturating_sub(n);
        let slot_at_least = slot.at_least();
        Line { base, slot, slot_at_least, n, busy: self.last_end, capacity, spare, room_at: 0 }
    }

    fn side<'a>(&mut self, channel: &'a mut Channel, out: &impl Outlet) -> Side<'a> {
        let (base, n, pace) = (self.base, self.n + 1, self.slot);
        let open = self.departures.open(&Cells { base, n, pace, ..*channel.train() }, out);
        Side { channel, open, joined: 0, places: (0, 0), lost: 0, lost_at: 0, last_lost: false }
    }

    /// Tell what became of the cells of one side.
    fn tell(&mut self, side: &Side<'_>, walk: &Walk, out: &mut impl Outlet) {
        let ends = side.channel.has_ended_frame(walk);
        if side.joined > 0 {
            self.departures.joined(side.open, side.joined, side.places, ends && !side.last_lost);
        }
        if side.lost > 0 {
            let front = *side.channel.train();
            let (of, lost) = (u64::from(front.of), side.lost);
            let cell = match front.are_generated() {
                true => 0,
                false if ends && side.last_lost => of - lost,
                false => u64::from(front.cell).min(of - lost - 1),
            };
            out.lost(&Cells { cell: cell as u32, count: lost, ..front }, side.lost_at, Loss::Full);
        }
    }
}

/// Take the cells of both sides up to `limit`, `tie` being 1 where those of the other side go first if two come together.
fn merge(
    mut line: Line,
    (one, other): (&mut Side<'_>, &mut Side<'_>),
    (mut one_walk, mut other_walk): (Walk, Walk),
    (limit, tie): (u64, u64),
    departures: &mut Departures,
) -> (Line, (Walk, Walk)) {
    loop {
        let bound = limit.min(other_walk.head.saturating_sub(tie));
        if one_walk.head <= bound {
            let stop;
            (line, one_walk, stop) = run(line, one, one_walk, bound, departures);
            if stop != Stop::Bound {
                break;
            }
        }
        let bound = limit.min(one_walk.head.saturating_sub(1 - tie));
        if other_walk.head <= bound {
            let stop;
            (line, other_walk, stop) = run(line, other, other_walk, bound, departures);
            if stop != Stop::Bound {
                break;
            }
        } else if one_walk.head > limit {
            break;
        }
    }
    (line, (one_walk, other_walk))
}

/// Take cells of one side up to `bound`, the next one among them if the line is busy.
#[inline(always)]
fn run(
    mut line: Line,
    side: &mut Side<'_>,
    mut walk: Walk,
    bound: u64,
    departures: &mut Departures,
) -> (Line, Walk, Stop) {
    let from = line.n;
    let stop = loop {
        let at = walk.head;
        if at > line.busy {
            let busy;
            (line, busy) = line.busy_at(at);
            if !busy {
                break Stop::Idle;
            }
        }
        let mut room = true;
        if line.spare == 0 {
            (line, room) = line.has_room(at);
        }
        side.last_lost = !room;
        if room {
            line.spare -= 1;
            line.n += 1;
            line.busy += line.slot_at_least;
        } else {
            if side.lost == 0 {
                side.lost_at = at;
            }
            side.lost += 1;
        }
        walk.step();
        if walk.left == 0 {
            walk = side.channel.walk_on(walk);
        }
        if walk.head > bound {
            break if walk.head == u64::MAX { Stop::Ended } else { Stop::Bound };
        }
    };
    if line.n > from {
        if side.joined == 0 {
            side.places.0 = from + 1;
            departures.piece(side.open, from + 1, line.n - from);
        } else {
            departures.new_piece(side.open, from + 1, line.n - from);
        }
        side.joined += line.n - from;
        side.places.1 = line.n;
    }
    (line, walk, stop)
}
