//! The event queue: pending events in a total order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event. Cells have no events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A frame arrives at the node at the far end of this port's line.
    FrameArrival(u32),
    /// The last cell of this PDU may have reached the router where its circuit ends.
    PduDueAtRouter(u32),
    /// This engine of a router finishes a packet.
    EngineDone(u32),
    /// The ICMP message with this number enters the forwarding engine of the router that made it.
    IcmpReady(u32),
    /// A reassembly at the end of this tunnel direction may have timed out.
    ReassemblyTimeout(u32),
    /// An ARP request for this neighbour may be overdue.
    ArpTimeout(u32),
    /// This IGMP timer is due: a host sends its next message, or a router may stop forwarding to a branch.
    IgmpTimer(u32),
    /// This end of a tunnel sends its next keepalive.
    KeepaliveTimer(u32),
    /// The last cell of this PDU may have reached its host.
    PduDueAtHost(u32),
    /// The line of this port is free, and its queue discipline chooses a packet.
    Dequeue(u32),
    /// The CPU of this host finishes its item.
    CpuDone(u32),
    /// This process may begin its next message, or continue after a pause.
    ProcessWake(u32),
    /// This NIC may have room again.
    NicSpace(u32),
    /// This process hands its fragment to the NIC.
    HandOver(u32),
    /// This TCP endpoint wakes: its application or one of its timers is due.
    EndpointWake(u32),
    /// This adaptive shaper gets feedback about a PDU; true if the PDU arrived with EFCI.
    ShaperFeedback(u32, bool),
    /// This adaptive shaper may begin its next PDU.
    NextPdu(u32),
    /// This packet is lost; the loss was found ahead of time.
    DeferredDrop(u32),
    /// This circuit entry at a router may be free for its next packet.
    CircuitFree(u32),
    /// This event of the testbed file makes its next change.
    LineChange(u32),
    /// This bond's link monitor looks at its members.
    BondMonitor(u32),
}

/// Bit of the payload that tells the two kinds of events in a group apart.
const SECOND_KIND: u32 = 1 << 31;
/// Second bit of the payload. In `ShaperFeedback`: the PDU had EFCI. In the group of arrivals: the event is a `PduDueAtRouter`; in that of IGMP timers: a
/// `KeepaliveTimer`.
const PAYLOAD_MARK: u32 = 1 << 30;

/// Number of days that the calendar covers; a power of two.
const DAYS: usize = 4096;
const MASK: u64 = DAYS as u64 - 1;
/// Number of events after which the length of a day is adjusted to their rate.
const TERM: u32 = 4096;
/// Initial capacity of each list, in events.
const FEW: usize = 64;
/// Number of today's events that an insertion may pass; if it would pass more, the event goes to `soon`.
const REACH: usize = 16;
/// Capacity in events above which an empty queue releases its memory.
const CROWD: usize = 1024;
/// Index that stands for "no node".
const NONE: u32 = u32::MAX;
/// Key that stands for "no event": later than every event. No event has its lower half.
const NEVER: u128 = u128::MAX;

/// Pending events, earliest first. Ties follow the order in `docs/model.md`, then the position in the file.
///
/// A calendar queue (Brown 1988): each day has a page, and days are so short that few events fall on each. A page is unsorted until its day begins. Events
/// beyond the last page wait in a heap.
///
/// Chosen by measurement: `benches/RESULTS.md` compares it with a binary, a 4-ary and a radix heap, on the events of the same networks.
#[derive(Debug)]
pub(super) struct EventQueue {
    /// Key of the first event, if that is before `day`; otherwise [`NEVER`], and then no event is before `day`.
    first: u128,
    /// Index of the first node in the sorted list of the other events before `day`.
    today: u32,
    /// More events before `day`: their insertion into the sorted list would have passed too many events.
    soon: BinaryHeap<Reverse<u128>>,
    /// The first day that has not begun.
    day: u64,
    /// Length of a day: two to the power of this many picoseconds.
    length: u32,
    /// By day, modulo the number of pages: index of the first node of its page.
    pages: Box<[u32; DAYS]>,
    /// Bitmap of the pages that have events, and bitmap of the words of `marks` that are not zero.
    marks: [u64; DAYS / 64],
    marked: u64,
    nodes: Vec<Node>,
    free: u32,
    /// Scratch buffer for sorting.
    crowd: Vec<u128>,
    later: BinaryHeap<Reverse<u128>>,
    /// The day of the first event in `later`; the largest day if there is none.
    later_day: u64,
    /// Number of events taken since the last adjustment of the day's length, and the instant of that adjustment.
    taken: u32,
    since: u64,
    /// Log: the keys of events that were entered, and [`NEVER`] wherever an event was taken.
    #[cfg(feature = "event-log")]
    pub(super) log: Vec<u128>,
}

/// A list node: an event of a page or of today.
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
            pages: vec![NONE; DAYS].try_into().expect("the calendar has one page per day"),
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
    /// Schedules `event` for the instant `at`. `position` breaks ties: the rank of the event's flow, port or router in the file.
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
            Event::LineChange(change) => (0, change),
            // Comes after all changes of an instant.
            Event::BondMonitor(bond) => (0, bond | SECOND_KIND),
            Event::FrameArrival(port) => (1, port),
            Event::PduDueAtRouter(pdu) => (1, pdu | PAYLOAD_MARK),
            Event::EngineDone(router) => (2, router),
            Event::IcmpReady(number) => (3, number),
            Event::ReassemblyTimeout(tunnel) => (4, tunnel),
            Event::ArpTimeout(neighbour) => (5, neighbour),
            // `POSITION` in `frames/igmp.rs` puts these after ARP.
            Event::IgmpTimer(timer) => (5, timer | SECOND_KIND),
            // `POSITION` in `frames/keepalive.rs` puts these after IGMP.
            Event::KeepaliveTimer(end) => (5, end | SECOND_KIND | PAYLOAD_MARK),
            Event::Dequeue(port) => (6, port),
            Event::CircuitFree(entry) => (6, entry | SECOND_KIND),
            // Feedback comes before all PDUs: the acknowledgment of the same PDU may arrive with it and let the next one begin.
            Event::ShaperFeedback(shaper, marked) => (7, shaper | if marked { PAYLOAD_MARK } else { 0 }),
            Event::PduDueAtHost(pdu) => (8, pdu),
            Event::CpuDone(host) => (9, host),
            Event::ProcessWake(process) => (10, process),
            Event::EndpointWake(endpoint) => (10, endpoint | SECOND_KIND),
            Event::HandOver(sender) => (11, sender),
            // A sender that waits for room takes its turn among those that hand over packets.
            Event::NicSpace(nic) => (11, nic | SECOND_KIND),
            Event::NextPdu(shaper) => (12, shaper),
            Event::DeferredDrop(packet) => (12, packet | SECOND_KIND),
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

    /// Inserts an event that is before `day`.
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
            // The event is not the first one; its place in the sorted list is searched from the beginning.
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
        let Some(free) = self.nodes.get_mut(place as usize) else { return self.push_with_new_node(key) };
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
        let Some(free) = self.nodes.get_mut(place as usize) else { return self.push_with_new_node(key) };
        let page = (day & MASK) as usize;
        let next = std::mem::replace(&mut self.pages[page], place);
        self.free = free.next;
        *free = Node { key, next };
        self.marks[page / 64] |= 1 << (page % 64);
        self.marked |= 1 << (page / 64);
    }

    /// Enters an event when no list node is free.
    #[cold]
    #[inline(never)]
    fn push_with_new_node(&mut self, key: u128) {
        self.free = self.nodes.len() as u32;
        self.nodes.push(Node { key, next: NONE });
        self.enter(key);
    }

    /// Returns true if no event is left in the days that have begun.
    #[inline(always)]
    fn is_over(&self) -> bool {
        self.first as u64 == NEVER as u64
    }

    /// Returns the instant of the next event; `None` if there are no events.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.is_over() {
            self.advance_day();
        }
        (!self.is_over()).then_some((self.first >> 64) as u64)
    }

    /// Removes and returns the next event with its instant, if that is at or before `until`.
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
            self.load_todays_first();
        } else {
            self.load_earliest();
        }
        self.taken += 1;
        if self.taken == TERM {
            self.measure(at);
        }
        let (kind, payload) = (key as u32 & SECOND_KIND, key as u32 & !SECOND_KIND);
        if (key as u64 >> 60) == 1 && key as u32 & (SECOND_KIND | PAYLOAD_MARK) == 0 {
            // Nearly all events are of this kind.
            return Some((at, Event::FrameArrival(payload)));
        }
        let event = match (key as u64 >> 60, kind) {
            (0, SECOND_KIND) => Event::BondMonitor(payload),
            (0, _) => Event::LineChange(payload),
            (1, _) => Event::PduDueAtRouter(payload & !PAYLOAD_MARK),
            (2, _) => Event::EngineDone(payload),
            (3, _) => Event::IcmpReady(payload),
            (4, _) => Event::ReassemblyTimeout(payload),
            (5, SECOND_KIND) if payload & PAYLOAD_MARK != 0 => Event::KeepaliveTimer(payload & !PAYLOAD_MARK),
            (5, SECOND_KIND) => Event::IgmpTimer(payload),
            (5, _) => Event::ArpTimeout(payload),
            (6, SECOND_KIND) => Event::CircuitFree(payload),
            (6, _) => Event::Dequeue(payload),
            (7, _) => Event::ShaperFeedback(payload & !PAYLOAD_MARK, payload & PAYLOAD_MARK != 0),
            (8, _) => Event::PduDueAtHost(payload),
            (9, _) => Event::CpuDone(payload),
            (10, SECOND_KIND) => Event::EndpointWake(payload),
            (10, _) => Event::ProcessWake(payload),
            (11, SECOND_KIND) => Event::NicSpace(payload),
            (11, _) => Event::HandOver(payload),
            (_, SECOND_KIND) => Event::DeferredDrop(payload),
            _ => Event::NextPdu(payload),
        };
        Some((at, event))
    }

    /// Makes the head of today's sorted list the first event, if the list is not empty.
    #[inline(always)]
    fn load_todays_first(&mut self) {
        if let Some(next) = self.nodes.get_mut(self.today as usize) {
            self.first = next.key;
            let behind = std::mem::replace(&mut next.next, self.free);
            self.free = std::mem::replace(&mut self.today, behind);
        }
    }

    /// Makes the earliest event of today's list and `soon` the first event.
    #[inline(never)]
    fn load_earliest(&mut self) {
        let soonest = self.soon.peek().map_or(NEVER, |Reverse(key)| *key);
        if self.nodes.get(self.today as usize).is_some_and(|next| next.key < soonest) {
            self.load_todays_first();
        } else {
            self.first = soonest;
            self.soon.pop();
        }
    }

    /// Returns true if this event, once scheduled, would be the next one.
    #[inline]
    pub(super) fn would_be_next(&mut self, at: u64, position: usize, event: Event) -> bool {
        if self.is_over() {
            self.advance_day();
        }
        Self::key(at, position, event) < self.first
    }

    /// Releases the memory of the lists if they were long and no event is pending.
    pub(super) fn release_unused_memory(&mut self) {
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

    /// Advances to the next day that has events, if there is one.
    #[inline(never)]
    fn advance_day(&mut self) {
        let first = (self.day & MASK) as usize;
        let rest = self.marks[first / 64] >> (first % 64);
        let marked =
            if rest == 0 { self.next_marked_day() } else { self.day + u64::from(rest.trailing_zeros()) };
        if self.later_day <= marked {
            self.advance_day_from_heap(marked);
        } else {
            self.open(marked);
        }
    }

    /// Begins a day: takes the events of its page.
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
        // Nearly all days have one or two events.
        match self.nodes.get_mut(self.today as usize) {
            Some(other) if other.next != NONE => return self.sort(first),
            Some(other) if other.key < first => std::mem::swap(&mut other.key, &mut first),
            _ => {}
        }
        self.first = first;
    }

    /// Sorts the events of a day that has more than two: `one` and those of today's list.
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
        self.first = sorted.next().expect("the day has more than two events");
        place = self.today;
        for key in sorted {
            let node = &mut self.nodes[place as usize];
            node.key = key;
            place = node.next;
        }
    }

    /// Advances to the first day of the heap `later`, if it has events. No page before the day `marked` has any.
    #[cold]
    #[inline(never)]
    fn advance_day_from_heap(&mut self, marked: u64) {
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

    /// Returns the first day with events beyond the bitmap word of the current day, or before it in that word.
    fn next_marked_day(&self) -> u64 {
        if self.marked == 0 {
            return u64::MAX;
        }
        // Looks at the words after the current one, wrapping around; the current word comes last.
        let word = (self.day & MASK) as usize / 64;
        let behind = self.marked.rotate_right(word as u32 + 1).trailing_zeros() as usize + 1;
        let found = (word + behind) % (DAYS / 64);
        let page = (found * 64) as u64 + u64::from(self.marks[found].trailing_zeros());
        self.day + (page.wrapping_sub(self.day) & MASK)
    }

    /// Adjusts the length of a day so that about two to four events fall on it; within a day they only need sorting.
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
        // The buffer otherwise sorts the events of one day, which are fewer.
        all.shrink_to(FEW);
        self.crowd = all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_events_pop_in_contract_order() {
        let mut events = EventQueue::default();
        events.push(5, 0, Event::HandOver(7));
        events.push(5, 1, Event::ProcessWake(1));
        events.push(5, 0, Event::ProcessWake(0));
        events.push(5, 0, Event::PduDueAtHost(3));
        events.push(5, 9, Event::ShaperFeedback(2, true));
        events.push(4, 9, Event::NicSpace(3));
        events.push(5, 1, Event::NicSpace(4));
        let order: Vec<_> = std::iter::from_fn(|| events.pop_until(5)).map(|(_, event)| event).collect();
        assert_eq!(
            order,
            [
                Event::NicSpace(3),
                Event::ShaperFeedback(2, true),
                Event::PduDueAtHost(3),
                Event::ProcessWake(0),
                Event::ProcessWake(1),
                Event::HandOver(7),
                Event::NicSpace(4)
            ]
        );
    }

    /// Thousands of events at one instant, each of which schedules another soon: an insertion does not walk the whole list.
    #[test]
    fn thousands_of_simultaneous_events_keep_their_order() {
        let mut random = engpass_model::random::Stream::new(8, "crowd");
        let (mut events, mut list) = (EventQueue::default(), std::collections::BTreeSet::new());
        let push =
            |events: &mut EventQueue, list: &mut std::collections::BTreeSet<_>, at: u64, serial: u32| {
                list.insert((at, serial));
                events.push(at, 0, Event::FrameArrival(serial));
            };
        (0..3000).for_each(|serial| push(&mut events, &mut list, 5_000_000, serial));
        let (mut serial, mut crowded) = (3000, false);
        while let Some((at, number)) = list.pop_first() {
            assert_eq!(events.pop_until(u64::MAX), Some((at, Event::FrameArrival(number))));
            crowded |= events.soon.len() > 1000;
            if serial < 20_000 {
                push(&mut events, &mut list, at + random.below(2_000_000), serial);
                serial += 1;
            }
        }
        assert!(crowded);
        assert_eq!((events.next(), events.soon.len()), (None, 0));
    }

    /// Against a sorted list: bursts, ties, long timers, and pauses that change the length of days.
    #[test]
    fn calendar_queue_equals_sorted_list() {
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
                // No two keys are equal.
                list.insert((now + ahead, serial));
                events.push(now + ahead, 0, Event::FrameArrival(serial));
                serial += 1;
            }
            let (at, number) = list.pop_first().expect("the list has an event");
            if let Some(before) = at.checked_sub(1) {
                assert_eq!(events.pop_until(before), None, "round {round}");
            }
            assert_eq!(events.pop_until(at), Some((at, Event::FrameArrival(number))), "round {round}");
            now = at;
        }
        while let Some((at, number)) = list.pop_first() {
            assert_eq!(events.pop_until(u64::MAX), Some((at, Event::FrameArrival(number))));
        }
        assert_eq!(events.next(), None);
    }
}
