//! The transmitter of one direction of a link that carries frames.

use engpass_cells::{Doing, Window};
use engpass_ledger::Teller;
use engpass_model::line::{Told, Transmission};
use engpass_model::queue::{self, Cause, Discipline};
use engpass_model::random::Stream;
use engpass_model::time::Pace;
use engpass_model::unit::QueueLimit;
use engpass_model::wire::{Framing, ethernet};
use engpass_testbed::topology::LinkEnds;

mod service;

use super::clock::Clock;
use super::lottery::{Flying, Lottery};
use super::outage::Served;
use super::sent::{SentOff, TOLD};
use super::told::PortTally;
use service::Service;

/// A transmitter with what waits for it and what is on its way behind it.
///
/// In a large network each packet finds those of its flow outside of the caches: what every packet asks for stands together.
#[repr(C, align(64))]
pub(in crate::simulate) struct FramePort {
    clock: Clock,
    /// What the books are told when they are opened and closed.
    pub(in crate::simulate) told: Told,
    /// The longest packet that finds room and whose fate is known when it comes, if the line is free: with what is around it,
    /// physical framing apart; zero if there is none.
    largest: u32,
    /// Bytes of the line for an IP packet: the larger of its own and `least`, plus `around`.
    around: u32,
    /// Bytes of the one packet that was told and found the line free, if it was the last one: it has no place among what was sent.
    alone: u32,
    least: u16,
    plainly: Plainly,
    /// The books are told of every transmission.
    pub(in crate::simulate) watched: bool,
    /// From the last bit of a frame on the line to the queue behind the other end.
    pub(super) delay: u64,
    /// When the next arrival is looked at.
    wake: u64,
    /// What waits, is being sent, and is on its way.
    sent: SentOff,
    /// Parts of a picosecond that a byte takes, of which the clock knows how many make one.
    per_byte: u64,
    /// The transmitter's number: twice that of the link, and its end.
    pub(in crate::simulate) port: u32,
    /// The books are opened before anything that comes later than this; `u64::MAX` when they are open.
    opens: u64,
    waiting: Waiting,
    lottery: Option<Box<Lottery>>,
    /// What was sent and lost in the counted time, beside what the books are told.
    tally: PortTally,
}

// Four lines of a cache: what finds the line free and is told needs the first two, the last one is only for what is not quite plain, and for queues.
const _: () = {
    assert!(size_of::<FramePort>() == 256 && std::mem::offset_of!(FramePort, opens) == 192);
    assert!(std::mem::offset_of!(FramePort, sent) == 128);
};

/// Where a port draws from: for its line, and for its queue after so many outages.
pub(super) struct Draws {
    pub(super) line: Stream,
    pub(super) queue: Box<dyn Fn(u32) -> Stream + Send>,
}

/// How plainly packets come to a line and arrive behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plainly {
    /// Its books are not open, a discipline is asked for more than room, or chance does something to packets.
    Not,
    /// What becomes of a packet is known when it comes: there is room in the queue, or not.
    Room,
    /// The same, and all are taken: at hosts.
    All,
}

/// How packets wait.
enum Waiting {
    /// In order, as many as come: at hosts, whose NIC holds the sender back instead.
    All,
    /// In order, where there is room: what becomes of a packet is known when it comes, and when it leaves.
    Room(QueueLimit),
    /// In order, and what becomes of a packet is asked when it comes.
    Arrival(Box<dyn queue::Admission>),
    /// In a discipline that decides when the line is free.
    Service(Box<Service>),
}

/// A packet that was put on a line.
pub(super) struct OnLine {
    /// When its last bit has left.
    pub(super) left: u64,
    /// It lies in the window, as far as whole picoseconds say.
    pub(super) whole: bool,
    pub(super) transmission: Transmission,
}

impl OnLine {
    /// When its transmission began, rounded up to a picosecond.
    fn begun(&self) -> u64 {
        let (whole, ticks) = self.transmission.begin;
        whole + u64::from(ticks > 0)
    }
}

/// The answer of a port to an offer.
pub(super) enum Passed {
    /// It is on the line, or will be, and comes to the next step then.
    On(u64),
    /// There is no room.
    Lost,
    /// More is to be seen to than this: nothing was done.
    Odd,
}

/// The answer of a port to a packet that comes.
pub(super) enum Admitted {
    /// The packet is on the line, or will be, and gets the mark of congestion or not.
    Leaves(OnLine, bool),
    /// It waits; the discipline is to be asked at this instant, if that is not so already.
    Waits(Option<u64>),
    /// It is lost.
    Lost(Cause),
    /// The line is down.
    Down,
}

impl FramePort {
    /// The transmitter of this number, at end `end` of a link, its queue included; `latency` is that of the node at the other end.
    /// Events may take the line down if it `changes`.
    pub(super) fn new(
        link: &LinkEnds,
        (port, end): (u32, usize),
        latency: u64,
        changes: bool,
        draws: Draws,
    ) -> Self {
        let around = link.line_bytes(u64::from(u16::MAX)) - u64::from(u16::MAX);
        let line = link.lines[end];
        let (gap, physical) = match line.framing {
            Framing::Ethernet => (ethernet::GAP_BYTES, ethernet::PREAMBLE_BYTES + ethernet::GAP_BYTES),
            _ => (0, 0),
        };
        let waiting = match &link.queues[end] {
            None => Waiting::All,
            Some(queue) if changes => {
                let (queue, rate, random) = (queue.clone(), line.rate, draws.queue);
                let (served, scheduler) =
                    Served::new(Box::new(move |outages| queue.build(random(outages), rate)));
                Waiting::Service(Service::new(scheduler, Some(served)))
            }
            Some(queue) => match queue.build((draws.queue)(0), line.rate) {
                Discipline::Arrival(admission) => match admission.only_limit() {
                    Some(limit) => Waiting::Room(limit),
                    None => Waiting::Arrival(admission),
                },
                Discipline::Service(scheduler) => Waiting::Service(Service::new(scheduler, None)),
            },
        };
        let pace = Pace::of_bits(8, line.rate);
        let mut port = Self {
            clock: Clock::new(pace, (physical as u32, gap)),
            per_byte: pace.ratio().0,
            alone: 0,
            largest: 0,
            plainly: Plainly::Not,
            around: around as u32,
            least: (link.line_bytes(0) - around) as u16,
            watched: false,
            port,
            delay: link.delay.ps() + latency,
            opens: u64::MAX,
            wake: u64::MAX,
            sent: SentOff::default(),
            waiting,
            lottery: Lottery::of(link, changes, draws.line).map(Box::new),
            tally: PortTally::default(),
            told: Told::default(),
        };
        port.open();
        port
    }

    /// The books are to be opened before anything comes later than `at`.
    pub(super) fn opens_at(&mut self, at: u64) {
        self.opens = at;
        (self.plainly, self.largest) = (Plainly::Not, 0);
    }

    /// The books are open. Returns after when they were to be, if they were not.
    pub(in crate::simulate) fn open(&mut self) -> Option<u64> {
        let from = std::mem::replace(&mut self.opens, u64::MAX);
        (self.plainly, self.largest) = match self.waiting {
            _ if self.lottery.is_some() => (Plainly::Not, 0),
            Waiting::All => (Plainly::All, u32::MAX),
            Waiting::Room(limit) if limit.packets > 0 => {
                (Plainly::Room, limit.bytes.min(u32::MAX.into()) as u32)
            }
            Waiting::Room(_) => (Plainly::Room, 0),
            _ => (Plainly::Not, 0),
        };
        (from != u64::MAX).then_some(from)
    }

    /// When the books are to be opened that something comes to at `at`, if that is now.
    #[inline(always)]
    pub(super) fn is_to_open(&self, at: u64) -> bool {
        at > self.opens
    }

    /// What went through it in the counted time.
    pub(in crate::simulate) fn tally(&self) -> PortTally {
        let PortTally { frames, bytes, lost } = self.tally;
        PortTally { frames: frames + self.told.frames, bytes: bytes + self.told.bytes, lost }
    }

    /// Nothing is counted so far.
    pub(in crate::simulate) fn count_anew(&mut self) {
        self.tally = PortTally::default();
    }

    /// So many frames, and bytes, were sent in the counted time, which has begun at any instant.
    pub(in crate::simulate) fn set_sent(&mut self, (frames, bytes): (u64, u64)) {
        (self.tally.frames, self.tally.bytes) = (frames, bytes);
        (self.told.frames, self.told.bytes) = (0, 0);
    }

    /// A frame was lost, in the counted time, in the queue or on the line.
    pub(super) fn count_lost(&mut self) {
        self.tally.lost += 1;
    }

    /// Whether it is known when a packet leaves as soon as it comes, and packets arrive in the order in which they leave.
    pub(super) fn is_in_order(&self) -> bool {
        self.lottery.is_none()
    }

    /// Whether an event may take it down.
    pub(in crate::simulate) fn may_change(&self) -> bool {
        self.lottery.as_ref().is_some_and(|lottery| lottery.may_change())
    }

    /// Whether an event has taken it down.
    pub(in crate::simulate) fn is_down(&self) -> bool {
        self.lottery.as_ref().is_some_and(|lottery| lottery.is_down())
    }

    /// Whether it takes all that comes, and whatever it takes arrives, in order.
    pub(super) fn takes_all(&self) -> bool {
        matches!(self.waiting, Waiting::All) && self.is_in_order()
    }

    /// How many packets of `ip` bytes find room whenever they come from `now` on, if nothing else comes; none where it asks for more than room, or where
    /// chance does something to them.
    pub(super) fn has_room_for(&mut self, now: u64, ip: u32) -> u64 {
        let Waiting::Room(limit) = self.waiting else { return 0 };
        if !self.is_in_order() {
            return 0;
        }
        self.release(now);
        let queue = self.sent.queue();
        let bytes = limit.bytes.saturating_sub(queue.bytes) / u64::from(self.queue_bytes(ip));
        bytes.min(limit.packets.saturating_sub(queue.packets))
    }

    /// Whether it is known as soon as a packet comes what becomes of it.
    pub(super) fn decides_on_arrival(&self) -> bool {
        !matches!(self.waiting, Waiting::Service(_))
    }

    /// Bytes of its frame, for an IP packet of `ip` bytes, that count in a queue.
    #[inline(always)]
    pub(super) fn queue_bytes(&self, ip: u32) -> u32 {
        ip.max(self.least.into()) + self.around - self.clock.physical
    }

    /// Bytes of packets in the memory of a host's NIC, and when the first one leaves.
    #[inline(always)]
    pub(in crate::simulate) fn memory(&mut self, now: u64) -> (u64, Option<u64>) {
        self.release(now);
        (self.sent.queue().bytes, self.sent.first_leaves())
    }

    /// Whether the memory of a host's NIC, of so many bytes, has room for a packet.
    #[inline(always)]
    pub(super) fn has_memory(&mut self, now: u64, ip: u32, capacity: u64) -> bool {
        let fits = |held: u64| held == 0 || held + u64::from(ip) <= capacity;
        let known = match self.alone {
            0 => self.sent.queue().bytes,
            bytes => bytes.into(),
        };
        if self.sent.has_place() && fits(known) {
            return true;
        }
        self.release(now);
        fits(self.sent.queue().bytes)
    }

    /// Forget of the queue what has left by `now`.
    #[inline(never)]
    fn release(&mut self, now: u64) {
        self.give_place();
        self.sent.release(now);
    }

    /// The one that is alone, if there is one, gets a place like all others.
    #[inline(always)]
    fn give_place(&mut self) {
        if self.alone > 0 {
            self.sent.release_all();
            self.sent.push(self.clock.left(), self.alone, TOLD);
            self.alone = 0;
        }
    }

    /// A packet comes to the transmitter. Books and captures may ask for more than [`Self::offer`] tells. A host's transmitter takes every packet.
    #[inline(always)]
    pub(super) fn admit(
        &mut self,
        now: u64,
        packet: queue::Packet,
        lost: &mut Vec<(queue::Packet, Cause)>,
        window: &Window,
    ) -> Admitted {
        let mark = match &self.waiting {
            Waiting::All => false,
            Waiting::Room(limit) => {
                let limit = *limit;
                self.release(now);
                if !self.sent.queue().has_room(limit, packet.bytes) {
                    return Admitted::Lost(Cause::Full);
                }
                false
            }
            Waiting::Arrival(_) | Waiting::Service(_) => match self.ask(now, packet, lost) {
                Ok(mark) => mark,
                Err(other) => return other,
            },
        };
        Admitted::Leaves(self.send(now, packet.bytes, window), mark)
    }

    /// A packet of `ip` bytes comes to the transmitter, and goes on as nearly all do: what becomes of it asks for nothing but room, and its
    /// transmission lies in the window. The next step is told of what comes not later than at `last`; what comes later is [awaited](Self::awaits).
    /// The memory of a host's `NIC` has room.
    #[inline(always)]
    pub(super) fn offer<const NIC: bool>(
        &mut self,
        now: u64,
        ip: u32,
        packet: u32,
        last: u64,
        window: &Window,
    ) -> Passed {
        let bytes = self.queue_bytes(ip);
        let taken = bytes + self.clock.physical;
        if !self.clock.knows(taken) {
            self.learn(taken);
        }
        // What finds the line free waits for nothing.
        if last > 0
            && let Some(end) = self.clock.look_if_free(now)
            && bytes <= self.largest
            && self.lies_inside(now, end.0, window)
        {
            let left = self.clock.left_of(end);
            let at = left + self.delay;
            if at <= last {
                self.told.idle += now - self.clock.end;
                self.told.rounding += self.clock.rounding();
                self.told.frames += 1;
                self.told.bytes += u64::from(taken);
                self.clock.go_to(end);
                // A NIC holds packets, a queue frames.
                self.alone = if NIC { ip } else { bytes };
                return Passed::On(at);
            }
        }
        match (self.plainly, NIC) {
            // A NIC holds packets, a queue frames.
            (Plainly::All, true) => self.join_plainly::<NIC>(now, (bytes, ip), packet, last, window),
            (Plainly::Room, false) => self.join_plainly::<NIC>(now, (bytes, bytes), packet, last, window),
            _ => Passed::Odd,
        }
    }

    /// The clock does not know what so many bytes of the line take.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, taken: u32) {
        self.clock.learn(taken, self.per_byte);
        self.sent.make_first_places();
    }

    /// Whether a transmission that begins then or later lies in the window, of which the books are open.
    #[inline(always)]
    fn lies_inside(&self, begin: u64, end: u64, window: &Window) -> bool {
        // What comes to a line whose books are open comes after the window has begun.
        let inside = end <= window.end;
        debug_assert!(!inside || window.holds_all(begin, end), "books are opened when the window begins");
        inside
    }

    /// The same of a packet that takes so many bytes of the line, those around it apart, and of what holds it.
    #[inline(always)]
    fn join_plainly<const NIC: bool>(
        &mut self,
        now: u64,
        (bytes, held): (u32, u32),
        packet: u32,
        last: u64,
        window: &Window,
    ) -> Passed {
        let taken = bytes + self.clock.physical;
        let before = self.clock.end;
        let end = self.clock.look(now);
        if !self.lies_inside(now, end.0, window) {
            return Passed::Odd;
        }
        if now > before {
            self.alone = 0;
            self.sent.release_all();
        } else {
            self.give_place();
        }
        if !NIC
            && let Waiting::Room(limit) = self.waiting
            && !self.sent.has_room(now, |queue| queue.has_room(limit, bytes))
        {
            return Passed::Lost;
        }
        if now > before {
            self.told.idle += now - before;
            self.told.rounding += self.clock.rounding();
        }
        self.told.frames += 1;
        self.told.bytes += u64::from(taken);
        let left = self.clock.left_of(end);
        self.clock.go_to(end);
        let at = left + self.delay;
        // What would come after the end does not.
        self.sent.push(left, held, if at <= last { TOLD } else { packet });
        Passed::On(at)
    }

    /// What is on the line arrives then, which nobody is told. Returns whether an event is to look for it.
    #[inline(always)]
    pub(super) fn awaits(&mut self, at: u64) -> bool {
        let first = at < self.wake;
        if first {
            self.wake = at;
        }
        first
    }

    /// When the line is free again, by what it knows.
    #[inline(always)]
    pub(super) fn free_at(&self) -> u64 {
        self.clock.end
    }

    /// Put a frame of so many bytes, those around it apart, on the line, behind what is there.
    #[inline(always)]
    fn send(&mut self, now: u64, bytes: u32, window: &Window) -> OnLine {
        let taken = bytes + self.clock.physical;
        let bytes = u64::from(taken);
        self.give_place();
        let mut idle = 0;
        if now > self.clock.end {
            idle = now - self.clock.end;
            self.told.idle += idle;
            self.told.rounding += self.clock.rounding();
            self.clock.restart(now);
        }
        let begin = self.clock.exact();
        let left = self.clock.send(taken, self.per_byte);
        let end = self.clock.end;
        let whole = window.holds_all(begin.0, end);
        if whole {
            self.told.frames += 1;
            self.told.bytes += bytes;
        } else if window.holds(left) {
            self.tally.frames += 1;
            self.tally.bytes += bytes;
        }
        OnLine {
            left,
            whole,
            transmission: Transmission {
                idle,
                held: 0,
                begin,
                bytes,
                physical: self.clock.physical.into(),
                end,
            },
        }
    }

    /// Bytes in the queue at `at`, up to which everything has happened.
    pub(in crate::simulate) fn backlog(&self, at: u64) -> u64 {
        match &self.waiting {
            // What is being sent has its place in a queue that decides when packets come.
            Waiting::Service(service) if service.decides_on_arrival() => {
                service.scheduler.backlog().bytes + self.sent.backlog(at)
            }
            Waiting::Service(service) => service.scheduler.backlog().bytes,
            _ if self.alone == 0 => self.sent.backlog(at),
            _ if self.clock.left() > at => self.alone.into(),
            _ => 0,
        }
    }

    /// Whether an outage has cut a packet that arrives.
    pub(super) fn has_cut(&self, flying: &Flying) -> bool {
        self.lottery.as_ref().is_some_and(|lottery| lottery.cuts(flying))
    }

    /// Whether nothing is on the line that whoever is behind it does not know of.
    #[inline(always)]
    pub(super) fn is_clear(&self) -> bool {
        self.wake == u64::MAX
    }

    /// A packet leaves at `left`, of whose departure the next port is told; until then it takes so many bytes of the queue.
    #[inline(always)]
    pub(super) fn tell(&mut self, left: u64, bytes: u32) {
        self.sent.push(left, bytes, TOLD);
        if let Waiting::Service(service) = &self.waiting
            && !service.decides_on_arrival()
        {
            self.sent.release(left);
        }
    }

    /// A packet leaves at `left` and is on its way then; until then it takes so many bytes of the queue. Returns when to look for an
    /// arrival, if nothing is looked for earlier.
    #[inline(always)]
    pub(super) fn fly(&mut self, sent: &OnLine, bytes: u32, packet: u32) -> Option<u64> {
        let left = sent.left;
        let mut at = left + self.delay;
        if self.lottery.is_none() {
            self.sent.push(left, bytes, packet);
        } else {
            self.tell(left, bytes);
        }
        if let Some(lottery) = &mut self.lottery {
            at = lottery.draw(Flying { at, packet, damaged: false, sent: (sent.begun(), left) });
        }
        self.awaits(at).then_some(at)
    }

    /// The packet that arrives now, and when to look for the next one, `u64::MAX` if there is none.
    #[inline(always)]
    pub(super) fn land(&mut self, now: u64) -> (Option<Flying>, u64) {
        if self.wake != now {
            return (None, u64::MAX);
        }
        let (landed, next) =
            if self.plainly == Plainly::Not { self.land_oddly(now) } else { self.land_in_order(now) };
        self.wake = next;
        (landed, next)
    }

    #[inline(always)]
    fn land_in_order(&mut self, now: u64) -> (Option<Flying>, u64) {
        let (packet, next) = self.sent.land();
        (
            Some(Flying { at: now, packet, damaged: false, sent: (0, 0) }),
            next.map_or(u64::MAX, |left| left + self.delay),
        )
    }

    #[inline(never)]
    fn land_oddly(&mut self, now: u64) -> (Option<Flying>, u64) {
        match &mut self.lottery {
            None => {
                if let Waiting::Service(_) = self.waiting {
                    // The others look when something comes.
                    self.sent.release(now);
                }
                self.land_in_order(now)
            }
            Some(lottery) => lottery.land(now),
        }
    }
}

impl Teller for FramePort {
    #[inline(always)]
    fn number(&self) -> usize {
        self.port as usize
    }

    #[inline(always)]
    fn told(&self) -> Told {
        self.told
    }

    fn doing(&self, at: u64) -> Doing {
        match at.checked_sub(self.clock.end) {
            Some(idle) => Doing { idle, rounding: self.clock.rounding(), begun: 0 },
            None => Doing::default(),
        }
    }

    #[inline]
    fn line_bytes(&self, ip: u32) -> u64 {
        u64::from(self.queue_bytes(ip) + self.clock.physical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engpass_model::queue::{DropTail, Ecn, Queue};
    use engpass_model::time::Time;
    use engpass_model::unit::{QueueLimit, Share};
    use engpass_model::wire::Medium;
    use engpass_testbed::topology::Line;

    fn port(rate: u64) -> FramePort {
        let queue = Queue::DropTail(DropTail { limit: QueueLimit::packets(100_000), ecn_threshold: None });
        let link = LinkEnds {
            name: "line".into(),
            ends: [0, 1],
            medium: Medium::PointToPoint,
            lines: [Line::new(Medium::PointToPoint, rate); 2],
            delay: Time(1),
            mtu: 1500,
            overhead: 0,
            vlan: false,
            jitter: Time(0),
            loss: Share(0),
            reorder: None,
            queues: [Some(queue), None],
        };
        let draws = Draws { line: Stream::new(1, "line"), queue: Box::new(|_| Stream::new(1, "queue")) };
        FramePort::new(&link, (0, 0), 0, false, draws)
    }

    fn view(id: u32, bytes: u32) -> queue::Packet {
        queue::Packet { id, bytes, flow: 0, priority: 0, ecn: Ecn::NotCapable }
    }

    #[test]
    fn what_is_alone_counts_as_what_has_a_place() {
        let mut random = Stream::new(5, "sent");
        let window = Window { from: None, end: u64::MAX };
        let (mut places, mut alone) = (port(8_000_000_000), port(8_000_000_000));
        let limit = QueueLimit { packets: 4, bytes: 2_400 };
        (places.waiting, alone.waiting) = (Waiting::Room(limit), Waiting::Room(limit));
        alone.largest = 2_400;
        let (mut now, mut found_free, mut lost, mut awaited) = (0, 0, 0, 0);
        for packet in 0..20_000 {
            now += random.below(1_900_000);
            let (ip, told) = (700 + 100 * random.below(2) as u32, random.below(4) > 0);
            if random.below(3) == 0 {
                assert_eq!(places.memory(now), alone.memory(now));
            }
            let passed = alone.offer::<false>(now, ip, packet, if told { u64::MAX } else { 0 }, &window);
            found_free += u32::from(alone.alone > 0);
            let view = view(packet, places.queue_bytes(ip));
            match (places.admit(now, view, &mut Vec::new(), &window), passed) {
                (Admitted::Leaves(sent, false), Passed::On(at)) => {
                    assert_eq!(sent.left + places.delay, at);
                    places.sent.push(sent.left, ip, if told { TOLD } else { packet });
                    awaited += u32::from(!told);
                }
                (Admitted::Lost(Cause::Full), Passed::Lost) => lost += 1,
                _ => panic!("what finds room in one finds room in the other"),
            }
            for at in [now, now + 500_000, places.clock.left() - 1] {
                assert_eq!(places.backlog(at), alone.backlog(at));
            }
            assert_eq!(places.doing(u64::MAX / 2), alone.doing(u64::MAX / 2));
            while awaited > 0 && random.below(2) > 0 {
                awaited -= 1;
                assert_eq!(places.sent.land(), alone.sent.land());
            }
        }
        assert!((2_000..18_000).contains(&found_free), "{found_free}");
        assert!(lost > 500, "{lost}");
    }

    /// Pollaczek and Khinchine: the mean wait in M/D/1 is rho / (2 (1 - rho)) services.
    #[test]
    fn waits_of_an_m_d_1_queue() {
        let service = 1_000_000;
        for percent in [30, 60, 80] {
            let mut port = port(8_000_000_000);
            let mut random = Stream::new(3, "arrivals");
            let window = Window { from: None, end: u64::MAX };
            let (mut now, mut waited) = (0, 0);
            let packets = 400_000;
            for id in 0..packets {
                now += random.exponential(service * 100 / percent);
                let view = view(id, 1000);
                let Admitted::Leaves(sent, false) = port.admit(now, view, &mut Vec::new(), &window) else {
                    panic!("there is room")
                };
                port.tell(sent.left, view.bytes);
                waited += sent.left - now - service;
            }
            let rho = percent as f64 / 100.0;
            let expected = rho / (2.0 * (1.0 - rho));
            let mean = waited as f64 / f64::from(packets) / service as f64;
            assert!((mean / expected - 1.0).abs() < 0.03, "{mean} is not {expected} at {percent} %");
        }
    }
}
