//! The few events there are, in a total order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What can happen. Cells have no events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A frame arrives at the node behind this port.
    Arrive(u32),
    /// The last cell of this frame may have reached the router where its circuit ends.
    Land(u32),
    /// This router has done a packet.
    Forward(u32),
    /// The ICMP message with this number enters the engine of the router that made it.
    Icmp(u32),
    /// The time of a packet of which fragments wait at the end of this direction of a tunnel may be up.
    GiveUp(u32),
    /// The request of a router for the address of this neighbour may not have been answered in time.
    Arp(u32),
    /// The last cell of this frame may have reached its host.
    Frame(u32),
    /// This port is free, and its discipline chooses what it sends.
    Serve(u32),
    /// This host's CPU has done its item.
    CpuDone(u32),
    /// This process may send its next message, or goes on after a pause.
    Ready(u32),
    /// This NIC may have room again.
    Room(u32),
    /// This process hands its fragment to the NIC.
    Hand(u32),
    /// A wake of this TCP endpoint: its application or one of its timers.
    Wake(u32),
    /// This shaper that adapts hears of a PDU that arrived: without the EFCI mark, or with it.
    Answer(u32, bool),
    /// This shaper that adapts may begin its next frame.
    Begin(u32),
    /// This packet is lost, which was known before.
    Lose(u32),
    /// The shaper of this circuit entry may be free.
    Feed(u32),
    /// What this event of the file changes next.
    Change(u32),
    /// This bond looks at its members.
    Look(u32),
}

/// Marks the second of the two kinds of events in a group.
const SECOND: u32 = 1 << 31;
/// Says of an answer that the PDU had the mark, and of an arrival that it comes in cells.
const MARKED: u32 = 1 << 30;

/// Days that the calendar has pages for.
const DAYS: usize = 4096;
const MASK: u64 = DAYS as u64 - 1;
/// Number of events after which the length of a day is looked at again.
const TERM: u32 = 4096;
/// Room for so many events is there from the beginning.
const FEW: usize = 64;
/// Among so many of today's events the place of one more is looked for.
const REACH: usize = 16;
/// Room for so many is worth giving back.
const CROWD: usize = 1024;
/// No node.
const NONE: u32 = u32::MAX;
/// No event: later than all there can be. None has the lower half of it.
const NEVER: u128 = u128::MAX;

/// Pending events, earliest first. Ties go by the order in `docs/model.md`, then by position in the file.
///
/// A calendar queue (Brown 1988): a page for every day, so short that few events fall on it. Events of a day stand on its
/// page in no order and are put in order when the day comes; what is further away than the calendar has pages waits in a heap.
///
/// Chosen by measurement: `benches/RESULTS.md` has it beside a binary, a 4-ary and a radix heap, on the events of the same networks.
#[derive(Debug)]
pub(super) struct EventQueue {
    /// What happens first, if that is before `day`; else [`NEVER`], and nothing does.
    first: u128,
    /// The first of what else happens before `day`: the others stand behind it in order.
    today: u32,
    /// What happens before `day`, too, and came when many were to happen before it.
    soon: BinaryHeap<Reverse<u128>>,
    /// The first day that has not come.
    day: u64,
    /// A day is two to the power of this many picoseconds.
    length: u32,
    /// By day, modulo their number: the first event on the page.
    pages: Box<[u32; DAYS]>,
    /// Which pages have events, and which of these words have any.
    marks: [u64; DAYS / 64],
    marked: u64,
    nodes: Vec<Node>,
    free: u32,
    /// Where events are sorted, for a moment.
    crowd: Vec<u128>,
    later: BinaryHeap<Reverse<u128>>,
    /// The day of the first of these, the last of all days if there is none.
    later_day: u64,
    /// Events taken in this term, and when it began.
    taken: u32,
    since: u64,
    /// What was entered, and [`NEVER`] where the next event was taken.
    #[cfg(feature = "event-log")]
    pub(super) log: Vec<u128>,
}

/// An event on a page or of today, and the one behind it.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: u128,
    next: u32,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            first: NEVER,
            today: NONE,
            soon: BinaryHeap::new(),
            day: 0,
            // 17 us: a packet of 1500 bytes at some hundred Mbit/s.
            length: 24,
            pages: vec![NONE; DAYS].try_into().expect("there is a page for every day"),
            marks: [0; DAYS / 64],
            marked: 0,
            nodes: Vec::with_capacity(FEW),
            free: NONE,
            crowd: Vec::with_capacity(FEW),
            later: BinaryHeap::with_capacity(FEW),
            later_day: u64::MAX,
            taken: 0,
            since: 0,
            #[cfg(feature = "event-log")]
            log: Vec::new(),
        }
    }
}

impl EventQueue {
    /// Let `event` happen at `at`, for the flow (or port, or router) at `position` of the file.
    #[inline(always)]
    pub(super) fn push(&mut self, at: u64, position: usize, event: Event) {
        let key = Self::key(at, position, event);
        #[cfg(feature = "event-log")]
        self.log.push(key);
        self.enter(key);
    }

    #[inline(always)]
    pub(super) fn key(at: u64, position: usize, event: Event) -> u128 {
        let (group, payload) = match event {
            Event::Change(change) => (0, change),
            // Behind all changes of an instant.
            Event::Look(bond) => (0, bond | SECOND),
            Event::Arrive(port) => (1, port),
            Event::Land(frame) => (1, frame | MARKED),
            Event::Forward(router) => (2, router),
            Event::Icmp(number) => (3, number),
            Event::GiveUp(tunnel) => (4, tunnel),
            Event::Arp(neighbour) => (5, neighbour),
            Event::Serve(port) => (6, port),
            Event::Feed(entry) => (6, entry | SECOND),
            // An answer comes before all PDUs: the acknowledgment of the very PDU may come with it, and let the next frame begin.
            Event::Answer(shaper, marked) => (7, shaper | if marked { MARKED } else { 0 }),
            Event::Frame(frame) => (8, frame),
            Event::CpuDone(host) => (9, host),
            Event::Ready(process) => (10, process),
            Event::Wake(endpoint) => (10, endpoint | SECOND),
            Event::Hand(sender) => (11, sender),
            // Whoever waits for room is handing, too, and takes its turn among the others.
            Event::Room(nic) => (11, nic | SECOND),
            Event::Begin(shaper) => (12, shaper),
            Event::Lose(packet) => (12, packet | SECOND),
        };
        let low = group << 60 | (position as u64 & 0x0fff_ffff) << 32 | u64::from(payload);
        u128::from(at) << 64 | u128::from(low)
    }

    pub(super) fn enter(&mut self, key: u128) {
        let day = (key >> 64) as u64 >> self.length;
        match day.checked_sub(self.day) {
            Some(ahead) if ahead <= MASK => self.write(day, key),
            Some(_) => self.write_later(day, key),
            None => self.insert(key),
        }
    }

    /// It happens before `day`.
    #[inline(never)]
    fn insert(&mut self, key: u128) {
        let (mut before, mut next) = (NONE, self.today);
        let mut key = key;
        if key < self.first {
            std::mem::swap(&mut key, &mut self.first);
            if key == NEVER {
                return;
            }
        } else {
            // It comes soon, but not first: look from the beginning.
            let mut passed = 0;
            while let Some(node) = self.nodes.get(next as usize)
                && node.key < key
            {
                (before, next, passed) = (next, node.next, passed + 1);
                if passed == REACH {
                    self.soon.push(Reverse(key));
                    return;
                }
            }
        }
        let place = self.free;
        let Some(free) = self.nodes.get_mut(place as usize) else { return self.enter_anew(key) };
        self.free = free.next;
        *free = Node { key, next };
        match self.nodes.get_mut(before as usize) {
            Some(before) => before.next = place,
            None => self.today = place,
        }
    }

    #[cold]
    #[inline(never)]
    fn write_later(&mut self, day: u64, key: u128) {
        self.later.push(Reverse(key));
        self.later_day = self.later_day.min(day);
    }

    #[inline]
    fn write(&mut self, day: u64, key: u128) {
        let place = self.free;
        let Some(free) = self.nodes.get_mut(place as usize) else { return self.enter_anew(key) };
        let page = (day & MASK) as usize;
        let next = std::mem::replace(&mut self.pages[page], place);
        self.free = free.next;
        *free = Node { key, next };
        self.marks[page / 64] |= 1 << (page % 64);
        self.marked |= 1 << (page / 64);
    }

    /// No node is free.
    #[cold]
    #[inline(never)]
    fn enter_anew(&mut self, key: u128) {
        self.free = self.nodes.len() as u32;
        self.nodes.push(Node { key, next: NONE });
        self.enter(key);
    }

    /// Whether nothing happens before `day`.
    #[inline(always)]
    fn is_over(&self) -> bool {
        self.first as u64 == NEVER as u64
    }

    /// When the next event happens.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.is_over() {
            self.turn();
        }
        (!self.is_over()).then_some((self.first >> 64) as u64)
    }

    /// Take the next event if it happens at or before `until`.
    #[inline(always)]
    pub(super) fn pop_until(&mut self, until: u64) -> Option<(u64, Event)> {
        let at = self.next()?;
        if at > until {
            return None;
        }
        let key = self.first;
        #[cfg(feature = "event-log")]
        self.log.push(NEVER);
        self.first = NEVER;
        if self.soon.is_empty() {
            self.take_today();
        } else {
            self.take_soonest();
        }
        self.taken += 1;
        if self.taken == TERM {
            self.measure(at);
        }
        let (kind, payload) = (key as u32 & SECOND, key as u32 & !SECOND);
        if (key as u64 >> 60) == 1 && key as u32 & (SECOND | MARKED) == 0 {
            // What nearly all are.
            return Some((at, Event::Arrive(payload)));
        }
        let event = match (key as u64 >> 60, kind) {
            (0, SECOND) => Event::Look(payload),
            (0, _) => Event::Change(payload),
            (1, _) => Event::Land(payload & !MARKED),
            (2, _) => Event::Forward(payload),
            (3, _) => Event::Icmp(payload),
            (4, _) => Event::GiveUp(payload),
            (5, _) => Event::Arp(payload),
            (6, SECOND) => Event::Feed(payload),
            (6, _) => Event::Serve(payload),
            (7, _) => Event::Answer(payload & !MARKED, payload & MARKED != 0),
            (8, _) => Event::Frame(payload),
            (9, _) => Event::CpuDone(payload),
            (10, SECOND) => Event::Wake(payload),
            (10, _) => Event::Ready(payload),
            (11, SECOND) => Event::Room(payload),
            (11, _) => Event::Hand(payload),
            (_, SECOND) => Event::Lose(payload),
            _ => Event::Begin(payload),
        };
        Some((at, event))
    }

    /// The first of today's events in order is the next one, if there are any.
    #[inline(always)]
    fn take_today(&mut self) {
        if let Some(next) = self.nodes.get_mut(self.today as usize) {
            self.first = next.key;
            let behind = std::mem::replace(&mut next.next, self.free);
            self.free = std::mem::replace(&mut self.today, behind);
        }
    }

    /// The same, or one of those that came when many were to happen before is.
    #[inline(never)]
    fn take_soonest(&mut self) {
        let soonest = self.soon.peek().map_or(NEVER, |Reverse(key)| *key);
        if self.nodes.get(self.today as usize).is_some_and(|next| next.key < soonest) {
            self.take_today();
        } else {
            self.first = soonest;
            self.soon.pop();
        }
    }

    /// Whether this event would be the next one.
    #[inline]
    pub(super) fn would_be_next(&mut self, at: u64, position: usize, event: Event) -> bool {
        if self.is_over() {
            self.turn();
        }
        Self::key(at, position, event) < self.first
    }

    /// Give the memory back that many events have taken, if there is none.
    pub(super) fn rest(&mut self) {
        let lists = self.nodes.capacity() + self.crowd.capacity();
        let crowd = lists + self.later.capacity() + self.soon.capacity() > CROWD;
        if crowd && self.is_over() && self.later.is_empty() && self.marked == 0 {
            self.nodes = Vec::with_capacity(FEW);
            self.soon = BinaryHeap::new();
            self.crowd = Vec::with_capacity(FEW);
            self.free = NONE;
            self.later = BinaryHeap::with_capacity(FEW);
        }
    }

    /// Go on to the next day on which anything happens.
    #[inline(never)]
    fn turn(&mut self) {
        let first = (self.day & MASK) as usize;
        let rest = self.marks[first / 64] >> (first % 64);
        let marked =
            if rest == 0 { self.marked_behind() } else { self.day + u64::from(rest.trailing_zeros()) };
        if self.later_day <= marked {
            self.turn_to_later(marked);
        } else {
            self.open(marked);
        }
    }

    /// The day has come for what is on its page.
    #[inline(always)]
    fn open(&mut self, day: u64) {
        self.day = day + 1;
        let page = (day & MASK) as usize;
        let place = std::mem::replace(&mut self.pages[page], NONE);
        self.marks[page / 64] &= !(1 << (page % 64));
        if self.marks[page / 64] == 0 {
            self.marked &= !(1 << (page / 64));
        }
        let node = &mut self.nodes[place as usize];
        let mut first = node.key;
        self.today = std::mem::replace(&mut node.next, self.free);
        self.free = place;
        // Nearly all days have one or two.
        match self.nodes.get_mut(self.today as usize) {
            Some(other) if other.next != NONE => return self.sort(first),
            Some(other) if other.key < first => std::mem::swap(&mut other.key, &mut first),
            _ => {}
        }
        self.first = first;
    }

    /// More than two events happen on the day that has come: this one, and those of today.
    #[inline(never)]
    fn sort(&mut self, one: u128) {
        self.crowd.push(one);
        let mut place = self.today;
        while let Some(node) = self.nodes.get(place as usize) {
            self.crowd.push(node.key);
            place = node.next;
        }
        self.crowd.sort_unstable();
        let mut sorted = self.crowd.drain(..);
        self.first = sorted.next().expect("there are more than two");
        place = self.today;
        for key in sorted {
            let node = &mut self.nodes[place as usize];
            node.key = key;
            place = node.next;
        }
    }

    /// Go on to the day of some of what was far away, if anything is: no page is `marked` before.
    #[cold]
    #[inline(never)]
    fn turn_to_later(&mut self, marked: u64) {
        let day = self.later_day;
        if day == u64::MAX {
            return;
        }
        self.day = day + 1;
        if marked == day {
            self.open(day);
        }
        self.later_day = u64::MAX;
        while let Some(Reverse(key)) = self.later.peek() {
            let key = *key;
            let next = (key >> 64) as u64 >> self.length;
            if next > day {
                self.later_day = next;
                break;
            }
            self.later.pop();
            self.insert(key);
        }
    }

    /// The first day with events on its page that is not in the word of the next one, or before it there.
    fn marked_behind(&self) -> u64 {
        if self.marked == 0 {
            return u64::MAX;
        }
        // The words behind it, around the end to this one, which comes last.
        let word = (self.day & MASK) as usize / 64;
        let behind = self.marked.rotate_right(word as u32 + 1).trailing_zeros() as usize + 1;
        let found = (word + behind) % (DAYS / 64);
        let page = (found * 64) as u64 + u64::from(self.marks[found].trailing_zeros());
        self.day + (page.wrapping_sub(self.day) & MASK)
    }

    /// A term is over: days are to be as long as it takes for two events, or up to four: within one they are only sorted.
    fn measure(&mut self, now: u64) {
        let gap = (now - self.since) / u64::from(TERM);
        (self.taken, self.since) = (0, now);
        let length = (u64::BITS - gap.leading_zeros() + 1).clamp(8, 40);
        if length.abs_diff(self.length) < 2 {
            return;
        }
        let mut all = std::mem::take(&mut self.crowd);
        if !self.is_over() {
            all.push(std::mem::replace(&mut self.first, NEVER));
        }
        all.extend(self.later.drain().chain(self.soon.drain()).map(|Reverse(key)| key));
        self.later_day = u64::MAX;
        for page in self.pages.iter_mut().chain([&mut self.today]) {
            let mut place = std::mem::replace(page, NONE);
            while let Some(node) = self.nodes.get(place as usize) {
                all.push(node.key);
                place = node.next;
            }
        }
        self.nodes.clear();
        (self.free, self.marks, self.marked) = (NONE, [0; DAYS / 64], 0);
        (self.length, self.day) = (length, now >> length);
        all.drain(..).for_each(|key| self.enter(key));
        // Not all fall on a day.
        all.shrink_to(FEW);
        self.crowd = all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_follow_the_contract() {
        let mut events = EventQueue::default();
        events.push(5, 0, Event::Hand(7));
        events.push(5, 1, Event::Ready(1));
        events.push(5, 0, Event::Ready(0));
        events.push(5, 0, Event::Frame(3));
        events.push(5, 9, Event::Answer(2, true));
        events.push(4, 9, Event::Room(3));
        events.push(5, 1, Event::Room(4));
        let order: Vec<_> = std::iter::from_fn(|| events.pop_until(5)).map(|(_, event)| event).collect();
        assert_eq!(
            order,
            [
                Event::Room(3),
                Event::Answer(2, true),
                Event::Frame(3),
                Event::Ready(0),
                Event::Ready(1),
                Event::Hand(7),
                Event::Room(4)
            ]
        );
    }

    /// Thousands happen at one instant, and each lets another happen soon: what is in order behind one place is not walked through.
    #[test]
    fn a_crowd_keeps_its_order() {
        let mut random = engpass_model::random::Stream::new(8, "crowd");
        let (mut events, mut list) = (EventQueue::default(), std::collections::BTreeSet::new());
        let push =
            |events: &mut EventQueue, list: &mut std::collections::BTreeSet<_>, at: u64, serial: u32| {
                list.insert((at, serial));
                events.push(at, 0, Event::Arrive(serial));
            };
        (0..3000).for_each(|serial| push(&mut events, &mut list, 5_000_000, serial));
        let (mut serial, mut crowded) = (3000, false);
        while let Some((at, number)) = list.pop_first() {
            assert_eq!(events.pop_until(u64::MAX), Some((at, Event::Arrive(number))));
            crowded |= events.soon.len() > 1000;
            if serial < 20_000 {
                push(&mut events, &mut list, at + random.below(2_000_000), serial);
                serial += 1;
            }
        }
        assert!(crowded);
        assert_eq!((events.next(), events.soon.len()), (None, 0));
    }

    /// Against a sorted list: bursts, ties, long timers, pauses that change how long days are.
    #[test]
    fn a_calendar_gives_what_a_sorted_list_gives() {
        let mut random = engpass_model::random::Stream::new(7, "events");
        let (mut events, mut list) = (EventQueue::default(), std::collections::BTreeSet::new());
        let (mut now, mut serial) = (0_u64, 0_u32);
        for round in 0..60_000_u64 {
            let scale = [1_000_000, 40, 20_000_000_000][(round / 20_000) as usize];
            for _ in 0..random.below(3) + u64::from(list.is_empty()) {
                let ahead = match random.below(10) {
                    0 => 0,
                    1 => random.below(scale * 100_000),
                    2 => random.below(scale * 1000),
                    _ => random.below(scale),
                };
                // No two are equal.
                list.insert((now + ahead, serial));
                events.push(now + ahead, 0, Event::Arrive(serial));
                serial += 1;
            }
            let (at, number) = list.pop_first().expect("there is one");
            if let Some(before) = at.checked_sub(1) {
                assert_eq!(events.pop_until(before), None, "round {round}");
            }
            assert_eq!(events.pop_until(at), Some((at, Event::Arrive(number))), "round {round}");
            now = at;
        }
        while let Some((at, number)) = list.pop_first() {
            assert_eq!(events.pop_until(u64::MAX), Some((at, Event::Arrive(number))));
        }
        assert_eq!(events.next(), None);
    }
}
