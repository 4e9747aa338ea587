//! Tight loop of a tail-drop FIFO queue without thresholds: takes one train, or merges two interleaving trains.

use engpass_model::time::{Pace, Stepper};

use super::super::channel::CellCursor;
use super::super::departures::{InterleavedPieces, OpenTrain};
use super::super::input_channels::Two;
use super::super::{CellDropCause, CellSink, CellTrain, Channel, VcTreatment};
use super::Fifo;

/// The state of a line within a busy period, kept in registers.
struct Line {
    base: u64,
    slot: Pace,
    slot_at_least: u64,
    n: u64,
    /// The line is busy until this instant at least.
    busy: u64,
    /// The longest queue so far, and how many cells longer it may become, in cells.
    longest: u64,
    may_grow: u64,
    /// Number of cells that surely find room without making the queue longer than `longest`.
    spare: u64,
}

/// One of the two trains that are merged: its channel, and which of its cells joined or were lost.
struct Side<'a> {
    channel: &'a mut Channel,
    open: OpenTrain,
    joined: u64,
    /// Position in the departing train of the first cell that joined.
    first: u64,
    /// Position and bits of the last block that has a joined cell of this side, as passed to [`Side::join`].
    last: (u64, u64),
    lost: u64,
    /// Arrival of the first lost cell.
    lost_at: u64,
    /// Position of the last lost cell in its arriving train; `u64::MAX` if none was lost.
    lost_place: u64,
}

/// Up to 64 consecutive departing cells of both sides.
#[derive(Default)]
struct Block {
    /// Position of the block's first cell in the busy period.
    n: u64,
    count: u32,
    /// Bit mask of the cells that belong to the other side.
    others: u64,
}

impl Line {
    /// Returns the instant at which the last accepted cell leaves. It is exact, for arrivals later than the lower bound `busy`.
    #[cold]
    #[inline(never)]
    fn end(base: u64, slot: Pace, n: u64) -> u64 {
        base + slot.after(n)
    }

    /// Returns a stepper over the ends of transmissions, at the end of cell `n`.
    #[inline(never)]
    fn ends_from(slot: Pace, n: u64) -> Stepper {
        let mut room = Stepper::new(slot);
        room.seek(n);
        room
    }

    /// Adds `count` cells to the busy period, and raises the lower bound of its end.
    #[inline(always)]
    fn join(&mut self, count: u64) {
        self.n += count;
        self.busy += count * self.slot_at_least;
    }
}

impl Fifo {
    /// Takes cells of two interleaving channels until a third channel has one, the line runs empty, or one of the trains ends. Returns false, without taking
    /// any, if the first cell is later than `until` or a policer must see one.
    pub(super) fn merge_two_trains(
        &mut self,
        two: Two<'_>,
        until: u64,
        rules: &[VcTreatment],
        out: &mut impl CellSink,
    ) -> bool {
        let Two { first, second, until: third, second_wins } = two;
        let policed = |vc: u32| rules[vc as usize].policer.is_some();
        let limit = third.min(until);
        let head = first.head();
        if head > limit || policed(first.vc()) || policed(second.vc()) {
            return false;
        }
        self.merge_channels(first, Some(second), (limit, second_wins), out);
        true
    }

    /// Takes cells of one channel, at least the next one, up to `limit` or until the line runs empty or the train ends.
    pub(super) fn merge_one_train(&mut self, channel: &mut Channel, limit: u64, out: &mut impl CellSink) {
        self.merge_channels(channel, None, (limit, false), out);
    }

    #[inline]
    /// Takes cells of both channels, or of the only one, and reports those that joined and those that were lost.
    fn merge_channels(
        &mut self,
        first: &mut Channel,
        mut second: Option<&mut Channel>,
        (limit, other_wins): (u64, bool),
        out: &mut impl CellSink,
    ) {
        let head = first.head();
        if head > self.last_end {
            self.idle(head - self.last_end, self.rounded(), out);
            self.start(head);
            // The first cell arrives now, so the line counts as busy until now.
            self.last_end = head;
        }
        let walks = (first.walk(), second.as_mut().map_or_else(CellCursor::nowhere, |second| second.walk()));
        let mut one = self.side(first, out);
        let mut other = second.map(|second| self.side(second, out));
        let open = [one.open, other.as_ref().map_or(one.open, |other| other.open)];
        let mut pieces = self.departures.take_pieces(open);
        let line = self.line();
        let (line, walks) = if other_wins {
            merge_cells::<true>(line, &mut one, other.as_mut(), walks, limit, &mut pieces, out)
        } else {
            merge_cells::<false>(line, &mut one, other.as_mut(), walks, limit, &mut pieces, out)
        };
        self.departures.put_pieces(open, pieces);
        self.merged(&line);
        self.tell(one, &walks.0, out);
        if let Some(other) = other {
            self.tell(other, &walks.1, out);
        }
    }

    fn line(&self) -> Line {
        let capacity =
            self.tail_drop_capacity.expect("only tail-drop queues without thresholds merge trains");
        let (base, slot, n) = (self.base, self.slot, self.n);
        // `spare`, the cells that surely find room, is a lower bound; the exact number is computed at the first cell that may find none.
        let longest = self.longest.min(capacity);
        let spare = longest.saturating_sub(n - self.left);
        Line {
            base,
            slot,
            slot_at_least: self.slot_up - u64::from(self.slot_rounding > 0),
            n,
            busy: self.last_end,
            longest,
            may_grow: capacity - longest,
            spare,
        }
    }

    /// Writes the state of the loop, `line`, back to the queue.
    fn merged(&mut self, line: &Line) {
        self.n = line.n;
        self.end.seek(self.n);
        self.last_end = self.base + self.end.after();
        self.longest = line.longest;
        // The cells that joined found room because this many earlier cells have left.
        let left = line.n.saturating_add(line.spare).saturating_sub(line.longest);
        if left > self.left {
            self.left = left;
            self.leave.seek(left + 1);
        }
    }

    fn side<'a>(&mut self, channel: &'a mut Channel, out: &impl CellSink) -> Side<'a> {
        let (base, n, pace) = (self.base, self.n + 1, self.slot);
        let open = self.departures.open(&CellTrain { base, n, pace, ..*channel.train() }, out);
        Side { channel, open, joined: 0, first: 0, last: (0, 0), lost: 0, lost_at: 0, lost_place: u64::MAX }
    }

    /// Reports the cells of one side to the departure buffer (joined) and to the sink (lost), and takes them from the channel.
    fn tell(&mut self, mut side: Side<'_>, walk: &CellCursor, out: &mut impl CellSink) {
        let ends = side.channel.has_ended_frame(walk);
        if side.joined > 0 {
            let last_joined = side.lost_place != walk.n;
            self.departures.joined(side.open, side.joined, side.places(), ends && last_joined);
        }
        if side.lost > 0 {
            side.report_lost(walk, out);
        }
        side.channel.walked(walk);
    }
}

/// Takes the cells of `one`, or of both sides, up to `limit`. Cells of the other side go first at equal instants if `WINS` is set.
fn merge_cells<const WINS: bool>(
    mut line: Line,
    one: &mut Side<'_>,
    mut other: Option<&mut Side<'_>>,
    (mut one_walk, mut other_walk): (CellCursor, CellCursor),
    limit: u64,
    pieces: &mut InterleavedPieces,
    out: &mut impl CellSink,
) -> (Line, (CellCursor, CellCursor)) {
    let first = |one: &CellCursor, other: &CellCursor| {
        if WINS { other.head <= one.head } else { other.head < one.head }
    };
    let mut block = Block { n: line.n + 1, ..Block::default() };
    loop {
        // Phase 1: cells that surely arrive while the line is busy, and find room.
        let sure = limit.min(line.busy);
        let most = line.spare.min(64) as u32;
        let (mut count, mut others) = (0, 0);
        let mut ended = None;
        while count < most {
            if first(&one_walk, &other_walk) {
                if other_walk.head > sure {
                    break;
                }
                others |= 1 << count;
                count += 1;
                if !other_walk.step(other.as_mut().expect(WHOSE).channel) {
                    ended = Some(true);
                    break;
                }
            } else {
                if one_walk.head > sure {
                    break;
                }
                count += 1;
                if !one_walk.step(one.channel) {
                    ended = Some(false);
                    break;
                }
            }
        }
        line.spare -= u64::from(count);
        line.join(count.into());
        block.add((count, others), (one, other.as_deref_mut()), pieces);
        if let Some(others) = ended {
            let sides = (&mut *one, other.as_deref_mut());
            let walks = (&mut one_walk, &mut other_walk);
            if !next_train(sides, walks, others, out) {
                break;
            }
            continue;
        }
        let at = one_walk.head.min(other_walk.head);
        if at > limit {
            break;
        }
        if at > line.busy {
            line.busy = Line::end(line.base, line.slot, line.n);
            if at > line.busy {
                break;
            }
            continue;
        }
        if line.spare > 0 {
            continue;
        }
        let left = line.slot.units_within(at - line.base).min(line.n);
        line.spare = line.longest - (line.n - left);
        let before = (line.n + 1).saturating_sub(line.longest);
        if line.spare >= LATE || before == 0 {
            continue;
        }
        // Phase 2: the queue is close to its longest length so far, and every departure makes room for one more cell.
        line.spare = 0;
        let sure = limit.min(line.busy);
        let ends = Line::ends_from(line.slot, before);
        let mut room = Room { since: line.base, ends, may_grow: line.may_grow };
        let late = LATE * line.slot_at_least;
        let (mut count, mut others) = (0, 0);
        let mut ended = None;
        while count < 64 {
            let (at, next) = (one_walk.head.min(other_walk.head), line.base + room.ends.after());
            if at > sure || at >= next + late {
                break;
            }
            if first(&one_walk, &other_walk) {
                let other = other.as_mut().expect(WHOSE);
                let joins = other.meets_full(&other_walk, &mut room);
                others |= u64::from(joins) << count;
                count += u32::from(joins);
                if !other_walk.step(other.channel) {
                    ended = Some(true);
                    break;
                }
            } else {
                count += u32::from(one.meets_full(&one_walk, &mut room));
                if !one_walk.step(one.channel) {
                    ended = Some(false);
                    break;
                }
            }
        }
        line.longest += line.may_grow - room.may_grow;
        line.may_grow = room.may_grow;
        line.join(count.into());
        block.add((count, others), (one, other.as_deref_mut()), pieces);
        if let Some(others) = ended {
            let sides = (&mut *one, other.as_deref_mut());
            let walks = (&mut one_walk, &mut other_walk);
            if !next_train(sides, walks, others, out) {
                break;
            }
        }
    }
    block.tell((one, other), pieces);
    (line, (one_walk, other_walk))
}

/// Goes on with the next train of the side whose train has ended (the other side if `others` is set), if that is of the same generator. Returns whether it is.
#[inline(always)]
fn next_train(
    (one, mut other): (&mut Side<'_>, Option<&mut Side<'_>>),
    (one_walk, other_walk): (&mut CellCursor, &mut CellCursor),
    others: bool,
    out: &mut impl CellSink,
) -> bool {
    if out.needs_loss_times() {
        date_losses((one, other.as_deref_mut()), (one_walk, other_walk), others, out);
    }
    let (channel, walk) = match &mut other {
        Some(other) if others => (&mut *other.channel, other_walk),
        _ => (&mut *one.channel, one_walk),
    };
    channel.move_to_next_train(walk)
}

/// Reports the cells lost so far, each side at its own instant, if another train of the same generator follows the one that has ended.
#[cold]
#[inline(never)]
fn date_losses(
    (one, other): (&mut Side<'_>, Option<&mut Side<'_>>),
    (one_walk, other_walk): (&CellCursor, &CellCursor),
    others: bool,
    out: &mut impl CellSink,
) {
    let side = if others { other.as_deref().expect(WHOSE) } else { &*one };
    if !side.channel.continues_train() {
        return;
    }
    if one.lost > 0 {
        one.report_lost(one_walk, out);
    }
    if let Some(other) = other.filter(|other| other.lost > 0) {
        other.report_lost(other_walk, out);
    }
}

const WHOSE: &str = "a cell of the second channel implies that the merge has one";

/// Number of slots. If a cell arrives this much later than it could have joined, the loop returns to phase 1, because the queue is no longer close to its
/// longest length.
const LATE: u64 = 8;

/// State of phase 2: when a departure makes room for the next cell.
struct Room {
    /// Start of the busy period.
    since: u64,
    /// Stepper at the end of the transmission that makes room for the next cell, if the queue is not to grow.
    ends: Stepper,
    /// Number of cells by which the queue may grow.
    may_grow: u64,
}

impl Side<'_> {
    /// Lets the next cell join if a cell has left to make room for it, or if the queue may grow; otherwise counts it as lost. Returns whether the cell joined.
    #[inline(always)]
    fn meets_full(&mut self, walk: &CellCursor, room: &mut Room) -> bool {
        let leaves = walk.head - room.since >= room.ends.after();
        if leaves {
            room.ends.step();
        } else if room.may_grow > 0 {
            room.may_grow -= 1;
            return true;
        } else {
            if self.lost == 0 {
                self.lost_at = walk.head;
            }
            self.lost += 1;
            self.lost_place = walk.n;
        }
        leaves
    }

    /// Reports the lost cells of this side up to the cursor.
    fn report_lost(&mut self, walk: &CellCursor, out: &mut impl CellSink) {
        let front = *self.channel.train();
        let (of, lost) = (u64::from(front.of), std::mem::take(&mut self.lost));
        let cell = match front.are_generated() {
            true => 0,
            false if self.channel.has_ended_frame(walk) && self.lost_place == walk.n => of - lost,
            false => u64::from(front.cell).min(of - lost - 1),
        };
        out.lost(&CellTrain { cell: cell as u32, count: lost, ..front }, self.lost_at, CellDropCause::Full);
    }

    /// Records that `count` cells joined, at the positions whose bits are set in `bits`; the lowest bit stands for position `n`.
    fn join(&mut self, n: u64, bits: u64, count: u64) {
        if bits != 0 {
            if self.joined == 0 {
                self.first = n + u64::from(bits.trailing_zeros());
            }
            self.last = (n, bits);
            self.joined += count;
        }
    }

    /// Returns the positions of the first and the last cell of this side that joined.
    fn places(&self) -> (u64, u64) {
        let (n, bits) = self.last;
        (self.first, n + 63 - u64::from(bits.leading_zeros()))
    }
}

impl Block {
    /// Appends `count` cells to the block. The bits of `others` mark those of the other side. Passes the block on when it has 64 cells.
    #[inline(always)]
    fn add(
        &mut self,
        (count, others): (u32, u64),
        sides: (&mut Side<'_>, Option<&mut Side<'_>>),
        pieces: &mut InterleavedPieces,
    ) {
        self.others |= others << self.count;
        let over = (self.count + count).checked_sub(64);
        self.count += count;
        if let Some(over) = over {
            self.count = 64;
            self.tell(sides, pieces);
            let others = if over > 0 { others >> (count - over) } else { 0 };
            *self = Self { n: self.n + 64, count: over, others };
        }
    }

    /// Passes the cells of the block on to their sides and to `pieces`.
    #[inline(never)]
    fn tell(&self, (one, other): (&mut Side<'_>, Option<&mut Side<'_>>), pieces: &mut InterleavedPieces) {
        if self.count == 0 {
            return;
        }
        let all = u64::MAX >> (64 - self.count);
        let (ones, others) = (all & !self.others, self.others);
        let of_others = u64::from(others.count_ones());
        let of_one = u64::from(self.count) - of_others;
        one.join(self.n, ones, of_one);
        if let Some(other) = other {
            other.join(self.n, others, of_others);
        }
        if pieces.take_same_path() && ones != 0 && others != 0 {
            // Both trains take the same path: adds the runs of both sides alternately, in order.
            let mut left = all;
            while left != 0 {
                let skip = left.trailing_zeros();
                let which = usize::from(others >> skip & 1 == 1);
                let count = ([ones, others][which] >> skip).trailing_ones();
                let run = (u64::MAX >> (64 - count)) << skip;
                pieces.add(which, self.n, run, count.into());
                left &= !run;
            }
            return;
        }
        for (which, bits, count) in [(0, ones, of_one), (1, others, of_others)] {
            if bits != 0 {
                pieces.add(which, self.n, bits, count);
            }
        }
    }
}
