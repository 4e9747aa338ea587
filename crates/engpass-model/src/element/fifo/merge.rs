//! Two trains that meet in front of a line, in a tight loop.

use super::super::channel::Walk;
use super::super::departures::{Departures, Open};
use super::super::inputs::Two;
use super::super::{Cells, Channel, Loss, Outlet, Rule};
use super::Fifo;
use super::stretch::{MANY, duet, overflow, solo};
use crate::time::Pace;

/// The line in the midst of a busy period, in registers.
pub(super) struct Line {
    pub(super) base: u64,
    pub(super) slot: Pace,
    pub(super) slot_at_least: u64,
    pub(super) n: u64,
    /// It is busy until then at least.
    pub(super) busy: u64,
    pub(super) capacity: u64,
    /// So many cells surely find room.
    pub(super) spare: u64,
    /// When there is none: the next one does from this instant on.
    pub(super) room_at: u64,
}

/// One of the two: its channel, how far it is, and what became of its cells.
pub(super) struct Side<'a> {
    pub(super) channel: &'a mut Channel,
    pub(super) open: Open,
    joined: u64,
    /// Places of the first and the last one that joined.
    places: (u64, u64),
    pub(super) lost: u64,
    lost_at: u64,
    pub(super) last_lost: bool,
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
        self.look(at);
        let room = self.spare > 0;
        (self, room)
    }

    /// How many cells have left by `at` if the line is busy until then.
    #[inline]
    pub(super) fn left_by(&self, at: u64) -> u64 {
        self.slot.ended_within(at - self.base)
    }

    /// See how many places there are at `at`.
    pub(super) fn look(&mut self, at: u64) {
        self.spare = self.capacity - (self.n - self.left_by(at).min(self.n));
        if self.spare == 0 {
            self.room_at = self.base + self.slot.after(self.n + 1 - self.capacity);
        }
    }

    /// So many cells join.
    pub(super) fn join(&mut self, cells: u64) {
        self.n += cells;
        self.busy += cells * self.slot_at_least;
        // If more have left meanwhile, the next one looks.
        (self.spare, self.room_at) = (self.spare.saturating_sub(cells), 0);
    }
}

impl Side<'_> {
    /// So many of its cells join, at places from the first to the last of these.
    pub(super) fn join(&mut self, cells: u64, (first, last): (u64, u64)) {
        if self.joined == 0 {
            self.places.0 = first;
        }
        (self.joined, self.places.1, self.last_lost) = (self.joined + cells, last, false);
    }

    /// So many of its cells are lost, the first of them at `at`.
    pub(super) fn lose(&mut self, cells: u64, at: u64) {
        if cells == 0 {
            return;
        }
        if self.lost == 0 {
            self.lost_at = at;
        }
        (self.lost, self.last_lost) = (self.lost + cells, true);
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

    /// Take cells of the train that comes next, up to `limit` or until the line runs empty or the train ends.
    pub(super) fn merge_one(&mut self, channel: &mut Channel, limit: u64, out: &mut impl Outlet) {
        let head = channel.head();
        if head > self.last_end {
            self.idle(head - self.last_end, self.rounded(), out);
            self.start(head);
            self.last_end = head;
        }
        let walk = channel.walk();
        let mut side = self.side(channel, out);
        let (line, walk, _) = run(self.line(), &mut side, walk, limit, &mut self.departures);
        self.n = line.n;
        self.end.seek(self.n);
        self.last_end = self.base + self.end.after();
        self.tell(&side, &walk, out);
        side.channel.walked(walk);
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
fn merge<'a>(
    mut line: Line,
    (one, other): (&mut Side<'a>, &mut Side<'a>),
    (mut one_walk, mut other_walk): (Walk, Walk),
    (limit, tie): (u64, u64),
    departures: &mut Departures,
) -> (Line, (Walk, Walk)) {
    let may_mix = departures.may_mix(one.open, other.open);
    let mut patience = 0;
    loop {
        if may_mix && patience == 0 {
            let (sides, walks) = ([&mut *one, &mut *other], [&mut one_walk, &mut other_walk]);
            if duet(&mut line, sides, walks, limit, departures) {
                if one_walk.head == u64::MAX || other_walk.head == u64::MAX {
                    break;
                }
            } else {
                patience = if line.spare < 3 { 1 } else { MANY / 2 };
            }
        }
        patience = patience.saturating_sub(1);
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
    if bound - walk.head > MANY * walk.apart() {
        solo(&mut line, side, &mut walk, bound, departures);
        if walk.head > bound {
            let stop = if walk.head == u64::MAX { Stop::Ended } else { Stop::Bound };
            return (line, walk, stop);
        }
    }
    let from = line.n;
    let mut overflows = bound - walk.head > MANY * walk.apart();
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
            if !room && overflows {
                overflows = false;
                overflow(&mut line, side, &mut walk, bound);
                if walk.head > bound {
                    break if walk.head == u64::MAX { Stop::Ended } else { Stop::Bound };
                }
                if walk.head > at {
                    continue;
                }
            }
        }
        side.last_lost = !room;
        if room {
            line.spare -= 1;
            line.n += 1;
            line.busy += line.slot_at_least;
        } else {
            side.lose(1, at);
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
        let many = line.n - from;
        departures.piece(side.open, from + 1, many);
        let last_lost = side.last_lost;
        side.join(many, (from + 1, line.n));
        side.last_lost = last_lost;
    }
    (line, walk, stop)
}
