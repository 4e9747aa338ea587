//! An output port of a frame link: queue and transmitter of one direction.

use engpass_model::idle::LoneLine;
use engpass_model::line::{FrameLine, LineStatus, LineTotals, Transmission};
use engpass_model::queue::{self, Backlog, Cause, Discipline};
use engpass_model::random::Stream;
use engpass_model::time::Pace;
use engpass_model::unit::QueueLimit;
use engpass_model::window::Window;
use engpass_model::wire::{Framing, ethernet};
use engpass_testbed::topology::LinkEnds;

mod counts;
mod scheduled;

use super::impairments::{InFlightFrame, LinkImpairments};
use super::line_clock::LineClock;
use super::outage::Served;
use super::port_counts::{ClippedFrames, LongestQueue};
use super::transmit_ring::{DELIVERED_AHEAD, TransmitRing};
use scheduled::ScheduledQueue;

/// An output port of a frame link: its queue, its transmitter, and the packets on its line.
///
/// In a large network the port is rarely in a CPU cache when a packet arrives. Therefore the fields that every packet needs are at the beginning.
#[repr(C, align(64))]
pub struct FramePort {
    clock: LineClock,
    /// Running totals of the line.
    pub totals: LineTotals,
    /// Bytes, as [`Self::queue_bytes`], of the largest frame that surely finds room on a free line and is then no new longest queue. 0 disables this shortcut.
    largest_immediate: u32,
    /// A frame takes `max(ip, least_ip) + overhead` bytes on the line for an IP packet of `ip` bytes.
    overhead: u32,
    /// Bytes of the last packet, if it found the line free and was handed to the next port ahead of time: such a packet has no entry in `ring`. Otherwise 0.
    lone_bytes: u32,
    least_ip: u16,
    fast_path: FastPath,
    /// True if the caller needs every transmission of the line.
    pub posts_each_packet: bool,
    /// Time from the departure of a frame's last bit to its arrival at the next queue, in picoseconds.
    pub delay: u64,
    /// Instant of the pending arrival event; `u64::MAX` if there is none.
    next_arrival: u64,
    /// Packets that wait, are being sent, or are on the line.
    ring: TransmitRing,
    /// The longest queue in the measurement window; not for the port of a host.
    longest: LongestQueue,
    /// Number of the transmitter: twice that of the link, plus the end.
    pub port: u32,
    /// Instant of the window's begin until the line's measurement has started: it starts before the first packet that arrives later. Then `u64::MAX`.
    window_begin: u64,
    queue: PortQueue,
    impairments: Option<Box<LinkImpairments>>,
    /// Transmission time of a byte, in the parts of a picosecond in which `clock` counts.
    per_byte: u64,
    /// Frames cut by a window edge, which are not in `totals`.
    clipped: ClippedFrames,
    /// Frames lost in the measurement window.
    lost: u64,
}

// Four cache lines. A packet that finds the line free and is handed ahead needs the first two; queues need the third, the slow path the last.
const _: () = {
    assert!(size_of::<FramePort>() == 256 && std::mem::offset_of!(FramePort, window_begin) == 192);
    assert!(std::mem::offset_of!(FramePort, ring) == 128);
};

/// Random streams of a port: one for the line, and one for the queue, which depends on the number of outages so far.
pub(crate) struct Draws {
    pub(crate) line: Stream,
    pub(crate) queue: Box<dyn Fn(u32) -> Stream + Send>,
}

/// Which packets may take the fast path of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FastPath {
    /// None: the measurement has not started, the discipline checks more than room, or the line has impairments.
    Unavailable,
    /// Packets that find room in a queue with tail drop.
    TailDrop,
    /// All packets: the port of a host has no queue limit.
    Unlimited,
}

/// How packets wait for the line.
enum PortQueue {
    /// FIFO without a bound, at hosts: senders wait for room in the NIC buffer instead.
    Unlimited,
    /// FIFO with tail drop: drops and departures are known on arrival.
    TailDrop(QueueLimit),
    /// FIFO with an admission policy that decides on arrival.
    Admission(Box<dyn queue::Admission>),
    /// A discipline that chooses a packet when the line is free.
    Scheduler(Box<ScheduledQueue>),
}

/// A transmission whose departure is known.
pub struct Departure {
    /// Instant at which the last bit leaves, in picoseconds.
    pub left: u64,
    /// True if the transmission lies in the measurement window, compared in whole picoseconds.
    pub in_window: bool,
    /// Begin, end and length of the transmission.
    pub transmission: Transmission,
}

impl Departure {
    /// Returns the instant at which the transmission began, in picoseconds, rounded up.
    fn begun(&self) -> u64 {
        let (whole, ticks) = self.transmission.begin;
        whole + u64::from(ticks > 0)
    }
}

/// Result of [`FramePort::offer`].
pub enum FastPathResult {
    /// The packet is sent or queued; it reaches the next step at this instant.
    ArrivesAt(u64),
    /// The queue is full.
    Dropped,
    /// The packet needs the slow path; nothing has changed.
    NeedsSlowPath,
}

/// Result of [`FramePort::admit`].
pub enum AdmitResult {
    /// The departure of the packet is known; `true` if the packet gets a congestion mark.
    Departs(Departure, bool),
    /// The packet waits. If an instant is given, a `Dequeue` event is needed then. `true` if the discipline has marked the packet.
    Queued(Option<u64>, bool),
    /// The packet is dropped.
    Dropped(Cause),
    /// The line is down, so the packet is dropped.
    LineDown,
}

impl FramePort {
    /// Creates the port with number `port` at end `end` of a link. `latency` is the processing time of the node at the other end, in picoseconds. `changes` is
    /// true if events may take the line down, or if the receiving host may ignore it.
    pub(crate) fn new(
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
        let queue = match &link.queues[end] {
            None => PortQueue::Unlimited,
            Some(queue) if changes => {
                let (queue, rate, random) = (queue.clone(), line.rate, draws.queue);
                let (served, scheduler) =
                    Served::new(Box::new(move |outages| queue.build(random(outages), rate)));
                PortQueue::Scheduler(ScheduledQueue::new(scheduler, Some(served)))
            }
            Some(queue) => match queue.build((draws.queue)(0), line.rate) {
                Discipline::Arrival(admission) => match admission.only_limit() {
                    Some(limit) => PortQueue::TailDrop(limit),
                    None => PortQueue::Admission(admission),
                },
                Discipline::Service(scheduler) => PortQueue::Scheduler(ScheduledQueue::new(scheduler, None)),
            },
        };
        let pace = Pace::of_bits(8, line.rate);
        let mut port = Self {
            clock: LineClock::new(pace, (physical as u32, gap)),
            per_byte: pace.ratio().0,
            lone_bytes: 0,
            largest_immediate: 0,
            fast_path: FastPath::Unavailable,
            overhead: around as u32,
            least_ip: (link.line_bytes(0) - around) as u16,
            posts_each_packet: false,
            port,
            delay: link.delay.ps() + latency,
            window_begin: u64::MAX,
            next_arrival: u64::MAX,
            ring: TransmitRing::default(),
            queue,
            impairments: LinkImpairments::of(link, changes, draws.line).map(Box::new),
            longest: LongestQueue::default(),
            clipped: ClippedFrames::default(),
            lost: 0,
            totals: LineTotals::default(),
        };
        port.begin_window();
        port
    }

    /// Returns the properties of the line that lone packets need (idle delays).
    pub(crate) fn lone_line(&self) -> LoneLine {
        let byte = Pace::new(self.per_byte.into(), self.clock.parts().into());
        // Only on Ethernet do preamble and gap take time on the line without counting in a queue.
        let gap = if self.clock.physical > 0 { ethernet::GAP_BYTES } else { 0 };
        LoneLine { byte, gap, delay: self.delay }
    }

    /// Returns the bytes that a packet of `ip` bytes takes on the line, preamble and gap included.
    pub(crate) fn line_bytes(&self, ip: u64) -> u64 {
        u64::from(self.queue_bytes(ip as u32) + self.clock.physical)
    }

    /// Sets that the line's measurement starts before anything arrives later than `at`. Until then the fast path is disabled.
    pub(crate) fn begin_window_after(&mut self, at: u64) {
        self.window_begin = at;
        (self.fast_path, self.largest_immediate) = (FastPath::Unavailable, 0);
    }

    /// Starts the line's measurement, and enables the fast path if the queue allows it. Returns the begin of the window if the measurement had not started.
    #[inline]
    pub fn begin_window(&mut self) -> Option<u64> {
        let from = std::mem::replace(&mut self.window_begin, u64::MAX);
        (self.fast_path, self.largest_immediate) = match self.queue {
            _ if self.impairments.is_some() => (FastPath::Unavailable, 0),
            PortQueue::Unlimited => (FastPath::Unlimited, u32::MAX),
            PortQueue::TailDrop(_) => (FastPath::TailDrop, 0),
            _ => (FastPath::Unavailable, 0),
        };
        let due = from != u64::MAX;
        if due {
            self.longest = LongestQueue::default();
            self.note_queue(self.backlog(from));
        }
        due.then_some(from)
    }

    /// Returns true if the measurement must start before a packet that arrives at `at`.
    #[inline(always)]
    pub fn window_is_due(&self, at: u64) -> bool {
        at > self.window_begin
    }

    /// Returns true if packets arrive in the order in which they leave: the line has neither impairments nor outages.
    #[inline]
    pub fn is_in_order(&self) -> bool {
        self.impairments.is_none()
    }

    /// Returns whether an event may take the line down.
    #[inline]
    pub fn may_change(&self) -> bool {
        self.impairments.as_ref().is_some_and(|impairments| impairments.may_change())
    }

    /// Returns whether the line is down.
    #[inline]
    pub fn is_down(&self) -> bool {
        self.impairments.as_ref().is_some_and(|impairments| impairments.is_down())
    }

    /// Returns true if the port accepts every packet and delivers all of them in order.
    #[inline]
    pub fn is_unlimited_in_order(&self) -> bool {
        matches!(self.queue, PortQueue::Unlimited) && self.is_in_order()
    }

    /// Returns how many packets of `ip` bytes surely find room from `now` on if nothing else arrives; 0 if the discipline checks more, or with impairments.
    pub(crate) fn has_room_for(&mut self, now: u64, ip: u32) -> u64 {
        let PortQueue::TailDrop(limit) = self.queue else { return 0 };
        if !self.is_in_order() {
            return 0;
        }
        self.release(now);
        let queue = self.ring.queue();
        let bytes = limit.bytes.saturating_sub(queue.bytes) / u64::from(self.queue_bytes(ip));
        bytes.min(limit.packets.saturating_sub(queue.packets))
    }

    /// Returns true if the discipline marks packets on arrival, not when they are sent.
    #[inline]
    pub fn marks_on_arrival(&self) -> bool {
        match &self.queue {
            PortQueue::Scheduler(service) => service.decides_on_arrival(),
            _ => true,
        }
    }

    /// Returns true if drops and departures are known when a packet arrives.
    #[inline]
    pub(crate) fn decides_on_arrival(&self) -> bool {
        !matches!(self.queue, PortQueue::Scheduler(_))
    }

    /// Returns the bytes with which the frame of an IP packet of `ip` bytes counts in a queue: without preamble and gap.
    #[inline(always)]
    pub fn queue_bytes(&self, ip: u32) -> u32 {
        ip.max(self.least_ip.into()) + self.overhead - self.clock.physical
    }

    /// Returns the bytes that the buffer of a host's NIC holds at `now`, and the instant at which the first packet leaves.
    #[inline(always)]
    pub fn memory(&mut self, now: u64) -> (u64, Option<u64>) {
        self.release(now);
        (self.ring.queue().bytes, self.ring.first_leaves())
    }

    /// Returns true if the NIC buffer of a host, of `capacity` bytes, has room for a packet of `ip` bytes. An empty buffer takes a packet of any length.
    #[inline(always)]
    pub fn has_memory(&mut self, now: u64, ip: u32, capacity: u64) -> bool {
        let fits = |held: u64| held == 0 || held + u64::from(ip) <= capacity;
        let known = match self.lone_bytes {
            0 => self.ring.queue().bytes,
            bytes => bytes.into(),
        };
        if self.ring.has_place() && fits(known) {
            return true;
        }
        self.release(now);
        fits(self.ring.queue().bytes)
    }

    /// Removes the packets that have left by `now` from the queue.
    #[inline(never)]
    fn release(&mut self, now: u64) {
        self.push_lone_packet();
        self.ring.release(now);
    }

    /// Moves the packet in `lone_bytes`, if there is one, into `ring`.
    #[inline(always)]
    fn push_lone_packet(&mut self) {
        if self.lone_bytes > 0 {
            self.ring.release_all();
            self.ring.push(self.clock.left(), self.lone_bytes, DELIVERED_AHEAD);
            self.lone_bytes = 0;
        }
    }

    /// Slow path: a packet arrives at the port. Unlike [`Self::offer`] it handles all disciplines, and returns details of the transmission.
    /// The port of a host takes every packet.
    #[inline(always)]
    pub fn admit(
        &mut self,
        now: u64,
        packet: queue::Packet,
        lost: &mut Vec<(queue::Packet, Cause)>,
        window: &Window,
    ) -> AdmitResult {
        let mark = match &self.queue {
            PortQueue::Unlimited => false,
            PortQueue::TailDrop(_) => {
                self.release(now);
                if !self.join(packet.bytes) {
                    return AdmitResult::Dropped(Cause::Full);
                }
                false
            }
            PortQueue::Admission(_) | PortQueue::Scheduler(_) => match self.ask(now, packet, lost) {
                Ok(mark) => {
                    self.note_queue(self.ring.queue().with(packet.bytes));
                    mark
                }
                Err(other) => return other,
            },
        };
        AdmitResult::Departs(self.send(now, packet.bytes, window), mark)
    }

    /// Fast path: sends or queues a packet of `ip` bytes if only room matters and its transmission lies in the measurement window. If the packet reaches the
    /// next step by `last`, the caller hands it over ahead of time; otherwise the caller schedules an event ([`Self::expect_arrival_at`]). With `NIC`, the
    /// caller has checked that the NIC buffer has room.
    #[inline(always)]
    pub fn offer<const NIC: bool>(
        &mut self,
        now: u64,
        ip: u32,
        packet: u32,
        last: u64,
        window: &Window,
    ) -> FastPathResult {
        let bytes = self.queue_bytes(ip);
        let taken = bytes + self.clock.physical;
        if !self.clock.is_cached_length(taken) {
            self.cache_length(taken);
        }
        // A packet that finds the line free leaves at once.
        if last > 0
            && let Some(end) = self.clock.end_if_idle_at(now)
            && bytes <= self.largest_immediate
            && self.is_within_window(now, end.0, window)
        {
            let left = self.clock.last_bit_at(end);
            let at = left + self.delay;
            if at <= last {
                self.totals.idle += now - self.clock.end;
                self.totals.rounding += self.clock.rounding();
                self.totals.frames += 1;
                self.totals.bytes += u64::from(taken);
                self.clock.set_end(end);
                // A NIC buffer counts IP packets, a queue counts frames.
                self.lone_bytes = if NIC { ip } else { bytes };
                return FastPathResult::ArrivesAt(at);
            }
        }
        match (self.fast_path, NIC) {
            // A NIC buffer counts IP packets, a queue counts frames.
            (FastPath::Unlimited, true) => {
                self.enqueue_fast_path::<NIC>(now, (bytes, ip), packet, last, window)
            }
            (FastPath::TailDrop, false) => {
                self.enqueue_fast_path::<NIC>(now, (bytes, bytes), packet, last, window)
            }
            _ => FastPathResult::NeedsSlowPath,
        }
    }

    /// Computes and caches the transmission time of a new length.
    #[cold]
    #[inline(never)]
    fn cache_length(&mut self, taken: u32) {
        self.clock.cache_length(taken, self.per_byte);
        self.ring.make_first_places();
    }

    /// Returns true if a transmission from `begin` to `end` lies in the measurement window. The line's measurement must have started.
    #[inline(always)]
    fn is_within_window(&self, begin: u64, end: u64, window: &Window) -> bool {
        // After measurement has started, every arrival is later than the start of the window.
        let inside = end <= window.end;
        debug_assert!(!inside || window.holds_all(begin, end), "measurement begins with the window");
        inside
    }

    /// As [`Self::offer`], for a packet that may wait. It takes `bytes` on the line without physical framing, and `held` bytes of the queue or NIC buffer.
    #[inline(always)]
    fn enqueue_fast_path<const NIC: bool>(
        &mut self,
        now: u64,
        (bytes, held): (u32, u32),
        packet: u32,
        last: u64,
        window: &Window,
    ) -> FastPathResult {
        let taken = bytes + self.clock.physical;
        let before = self.clock.end;
        let end = self.clock.end_if_sent_at(now);
        if !self.is_within_window(now, end.0, window) {
            return FastPathResult::NeedsSlowPath;
        }
        if now > before {
            self.lone_bytes = 0;
            self.ring.release_all();
        } else {
            self.push_lone_packet();
        }
        if !NIC {
            // A queue no longer than the longest so far is within its limit.
            let longest = self.longest;
            if !self.ring.has_room(now, |queue| longest.covers(queue.with(bytes))) && !self.join(bytes) {
                return FastPathResult::Dropped;
            }
        }
        if now > before {
            self.totals.idle += now - before;
            self.totals.rounding += self.clock.rounding();
        }
        self.totals.frames += 1;
        self.totals.bytes += u64::from(taken);
        let left = self.clock.last_bit_at(end);
        self.clock.set_end(end);
        let at = left + self.delay;
        // Packets that arrive after the end of the run are never handed over.
        self.ring.push(left, held, if at <= last { DELIVERED_AHEAD } else { packet });
        FastPathResult::ArrivesAt(at)
    }

    /// Adds a packet of `bytes` bytes to the count of the longest queue, if it finds room in the queue with tail drop. Returns whether it does. Packets that
    /// have left must have been removed.
    #[inline(never)]
    fn join(&mut self, bytes: u32) -> bool {
        let queue = self.ring.queue();
        let joins = matches!(self.queue, PortQueue::TailDrop(limit) if queue.has_room(limit, bytes));
        if joins {
            self.note_queue(queue.with(bytes));
        }
        joins
    }

    /// Updates the longest queue, after a packet has joined the queue.
    #[inline(always)]
    fn note_queue(&mut self, queue: Backlog) {
        self.longest.note(queue);
        if self.fast_path == FastPath::TailDrop {
            self.largest_immediate = self.longest.lengths().bytes.min(u32::MAX.into()) as u32;
        }
    }

    /// Records that a packet arrives at `at` that was not handed ahead. Returns true if the caller must schedule an event for it.
    #[inline(always)]
    pub fn expect_arrival_at(&mut self, at: u64) -> bool {
        let first = at < self.next_arrival;
        if first {
            self.next_arrival = at;
        }
        first
    }

    /// Returns the instant from which on the line is free, as far as known.
    #[inline(always)]
    pub fn free_at(&self) -> u64 {
        self.clock.end
    }

    /// Appends a frame of `bytes` bytes, without physical framing, to the transmissions of the line.
    #[inline(always)]
    fn send(&mut self, now: u64, bytes: u32, window: &Window) -> Departure {
        let taken = bytes + self.clock.physical;
        let bytes = u64::from(taken);
        self.push_lone_packet();
        let mut idle = 0;
        if now > self.clock.end {
            idle = now - self.clock.end;
            self.totals.idle += idle;
            self.totals.rounding += self.clock.rounding();
            self.clock.restart(now);
        }
        let begin = self.clock.exact();
        let left = self.clock.send(taken, self.per_byte);
        let end = self.clock.end;
        let in_window = window.holds_all(begin.0, end);
        if in_window {
            self.totals.frames += 1;
            self.totals.bytes += bytes;
        } else if window.holds(left) {
            self.clipped.frames += 1;
            self.clipped.bytes += taken;
        }
        Departure {
            left,
            in_window,
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

    /// Returns the queue at the instant `at`. Everything before `at` must have been handled.
    #[inline]
    pub fn backlog(&self, at: u64) -> Backlog {
        match &self.queue {
            // Disciplines that decide on arrival also count the packet being sent.
            PortQueue::Scheduler(service) if service.decides_on_arrival() => {
                service.scheduler.backlog().and(self.ring.backlog(at))
            }
            PortQueue::Scheduler(service) => service.scheduler.backlog(),
            _ if self.lone_bytes == 0 => self.ring.backlog(at),
            _ if self.clock.left() > at => Backlog::default().with(self.lone_bytes),
            _ => Backlog::default(),
        }
    }

    /// Returns true if an outage destroyed the transmission of an arriving packet.
    #[inline]
    pub fn outage_destroyed(&self, flying: &InFlightFrame) -> bool {
        self.impairments.as_ref().is_some_and(|impairments| impairments.destroys(flying))
    }

    /// Returns true if no packet on the line is still to arrive: all were handed ahead.
    #[inline(always)]
    pub fn has_no_pending_arrival(&self) -> bool {
        self.next_arrival == u64::MAX
    }

    /// Records a packet that leaves at `left` and was handed ahead. It takes `bytes` bytes of the queue until then.
    #[inline(always)]
    pub fn push_delivered_ahead(&mut self, left: u64, bytes: u32) {
        self.ring.push(left, bytes, DELIVERED_AHEAD);
        if let PortQueue::Scheduler(service) = &self.queue
            && !service.decides_on_arrival()
        {
            self.ring.release(left);
        }
    }

    /// Records a packet that leaves and then travels over the line. It takes `bytes` bytes of the queue until it has left. Returns the instant for which the
    /// caller must schedule an arrival event, if an earlier one is not pending.
    #[inline(always)]
    pub fn push_in_flight(&mut self, sent: &Departure, bytes: u32, packet: u32) -> Option<u64> {
        let left = sent.left;
        let mut at = left + self.delay;
        if self.impairments.is_none() {
            self.ring.push(left, bytes, packet);
        } else {
            self.push_delivered_ahead(left, bytes);
        }
        if let Some(impairments) = &mut self.impairments {
            at = impairments.draw(InFlightFrame { at, packet, damaged: false, sent: (sent.begun(), left) });
        }
        self.expect_arrival_at(at).then_some(at)
    }

    /// Removes and returns the packet that arrives now, and the instant of the next arrival (`u64::MAX` if there is none). `None` if the event is outdated.
    #[inline(always)]
    pub fn pop_arrival(&mut self, now: u64) -> (Option<InFlightFrame>, u64) {
        if self.next_arrival != now {
            return (None, u64::MAX);
        }
        let (landed, next) = if self.fast_path == FastPath::Unavailable {
            self.pop_arrival_slow_path(now)
        } else {
            self.pop_arrival_in_order(now)
        };
        self.next_arrival = next;
        (landed, next)
    }

    #[inline(always)]
    fn pop_arrival_in_order(&mut self, now: u64) -> (Option<InFlightFrame>, u64) {
        let (packet, next) = self.ring.pop_arrival();
        (
            Some(InFlightFrame { at: now, packet, damaged: false, sent: (0, 0) }),
            next.map_or(u64::MAX, |left| left + self.delay),
        )
    }

    #[inline(never)]
    fn pop_arrival_slow_path(&mut self, now: u64) -> (Option<InFlightFrame>, u64) {
        match &mut self.impairments {
            None => {
                if let PortQueue::Scheduler(_) = self.queue {
                    // The other queues remove packets that have left whenever something arrives.
                    self.ring.release(now);
                }
                self.pop_arrival_in_order(now)
            }
            Some(impairments) => impairments.pop_arrival(now),
        }
    }
}

impl FrameLine for FramePort {
    #[inline(always)]
    fn number(&self) -> usize {
        self.port as usize
    }

    #[inline(always)]
    fn totals(&self) -> LineTotals {
        self.totals
    }

    fn line_status(&self, at: u64) -> LineStatus {
        match at.checked_sub(self.clock.end) {
            Some(idle) => LineStatus { idle, rounding: self.clock.rounding(), begun: 0 },
            None => LineStatus::default(),
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
    fn lone_packet_equals_queued_packet() {
        let mut random = Stream::new(5, "sent");
        let window = Window { from: None, end: u64::MAX };
        let (mut places, mut alone) = (port(8_000_000_000), port(8_000_000_000));
        let limit = QueueLimit { packets: 4, bytes: 2_400 };
        (places.queue, alone.queue) = (PortQueue::TailDrop(limit), PortQueue::TailDrop(limit));
        let (mut now, mut found_free, mut lost, mut awaited) = (0, 0, 0, 0);
        for packet in 0..20_000 {
            now += random.below(1_900_000);
            let (ip, is_ahead) = (700 + 100 * random.below(2) as u32, random.below(4) > 0);
            if random.below(3) == 0 {
                assert_eq!(places.memory(now), alone.memory(now));
            }
            let passed = alone.offer::<false>(now, ip, packet, if is_ahead { u64::MAX } else { 0 }, &window);
            found_free += u32::from(alone.lone_bytes > 0);
            let view = view(packet, places.queue_bytes(ip));
            match (places.admit(now, view, &mut Vec::new(), &window), passed) {
                (AdmitResult::Departs(sent, false), FastPathResult::ArrivesAt(at)) => {
                    assert_eq!(sent.left + places.delay, at);
                    places.ring.push(sent.left, ip, if is_ahead { DELIVERED_AHEAD } else { packet });
                    awaited += u32::from(!is_ahead);
                }
                (AdmitResult::Dropped(Cause::Full), FastPathResult::Dropped) => lost += 1,
                _ => panic!("both ports agree on room for the packet"),
            }
            for at in [now, now + 500_000, places.clock.left() - 1] {
                assert_eq!(places.backlog(at), alone.backlog(at));
            }
            assert_eq!(places.line_status(u64::MAX / 2), alone.line_status(u64::MAX / 2));
            assert_eq!(places.longest_queue(), alone.longest_queue());
            while awaited > 0 && random.below(2) > 0 {
                awaited -= 1;
                assert_eq!(places.ring.pop_arrival(), alone.ring.pop_arrival());
            }
        }
        assert!((2_000..18_000).contains(&found_free), "{found_free}");
        assert!(lost > 500, "{lost}");
    }

    /// Pollaczek-Khinchine: the mean wait in M/D/1 is rho / (2 (1 - rho)) service times.
    #[test]
    fn m_d_1_mean_wait_matches_pollaczek_khinchine() {
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
                let AdmitResult::Departs(sent, false) = port.admit(now, view, &mut Vec::new(), &window)
                else {
                    panic!("the queue has room for the packet")
                };
                port.push_delivered_ahead(sent.left, view.bytes);
                waited += sent.left - now - service;
            }
            let rho = percent as f64 / 100.0;
            let expected = rho / (2.0 * (1.0 - rho));
            let mean = waited as f64 / f64::from(packets) / service as f64;
            assert!(
                (mean / expected - 1.0).abs() < 0.03,
                "mean wait {mean} instead of {expected} at {percent} %"
            );
        }
    }
}
