//! The transmitter of one direction of a link that carries frames.

use std::collections::VecDeque;

use engpass_model::element::Doing;
use engpass_model::queue::{self, Backlog, Cause, Discipline, PortView, Scheduler, Verdict};
use engpass_model::random::Stream;
use engpass_model::time::{Pace, Time};
use engpass_model::unit::{QueueLimit, Share};
use engpass_model::wire::{Framing, ethernet};
use engpass_testbed::topology::LinkEnds;

use crate::simulate::ledger::Transmission;
use crate::simulate::tally::Window;

/// A transmitter with what waits for it and what is on its way behind it.
pub(in crate::simulate) struct FramePort {
    clock: Clock,
    /// Bytes of the line for an IP packet: the larger of its own and `least`, plus `around`.
    around: u64,
    least: u64,
    /// Bytes of the line around a frame, which no queue holds.
    physical: u64,
    /// From the last bit of a frame on the line to the queue behind the other end.
    pub(super) delay: u64,
    /// The last transmission that was begun or is certain.
    pub(in crate::simulate) last: Transmission,
    /// Since when the discipline has held packets back although the line is free.
    held_since: Option<u64>,
    /// The books are opened before anything that comes later than this; `u64::MAX` when they are open.
    pub(in crate::simulate) opens: u64,
    waiting: Waiting,
    lottery: Option<Box<Lottery>>,
    /// What is on its way, in the order of arrival.
    flight: VecDeque<Flying>,
    /// When the next arrival is looked at.
    pub(super) wake: u64,
    pub(in crate::simulate) tally: PortTally,
    /// What the books are told when they are opened and closed.
    pub(in crate::simulate) told: Told,
}

/// When transmissions end: nothing is added up from rounded times, and nothing is divided for a length that was there before.
struct Clock {
    pace: Pace,
    /// Parts that make a picosecond, and of how many bytes at the end of a frame the line is silent: whole picoseconds and parts.
    parts: u64,
    gap: (u64, u64),
    /// A length in bytes, and the time it takes.
    length: u64,
    takes: (u64, u64),
    /// End of the last transmission, its gap included: exactly, and rounded up.
    exact: (u64, u64),
    end: u64,
}

impl Clock {
    fn new(pace: Pace, gap: u64) -> Self {
        let mut clock = Self {
            pace,
            parts: pace.ratio().1,
            gap: (0, 0),
            length: 0,
            takes: (0, 0),
            exact: (0, 0),
            end: 0,
        };
        clock.gap = clock.time_of(gap);
        clock
    }

    /// Picoseconds and parts that so many bytes take.
    fn time_of(&self, bytes: u64) -> (u64, u64) {
        let (num, den) = self.pace.ratio();
        let parts = u128::from(bytes) * u128::from(num);
        ((parts / u128::from(den)) as u64, (parts % u128::from(den)) as u64)
    }

    /// By how much the end of the last transmission is rounded up, in parts.
    fn rounding(&self) -> u64 {
        if self.exact.1 > 0 { self.parts - self.exact.1 } else { 0 }
    }

    /// The line was idle, and a transmission begins at `now`.
    fn restart(&mut self, now: u64) {
        self.exact = (now, 0);
    }

    /// So many bytes follow what was sent: when the last bit of them that is none of the gap has left.
    #[inline]
    fn send(&mut self, bytes: u64) -> u64 {
        if bytes != self.length {
            (self.length, self.takes) = (bytes, self.time_of(bytes));
        }
        let (mut whole, mut part) = (self.exact.0 + self.takes.0, self.exact.1 + self.takes.1);
        if part >= self.parts {
            (whole, part) = (whole + 1, part - self.parts);
        }
        self.exact = (whole, part);
        self.end = whole + u64::from(part > 0);
        let borrow = u64::from(part < self.gap.1);
        let rest = part + borrow * self.parts - self.gap.1;
        whole - self.gap.0 - borrow + u64::from(rest > 0)
    }
}

/// What went through a port in the counted time.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulate) struct PortTally {
    /// Frames sent.
    pub(in crate::simulate) frames: u64,
    /// Bytes of the line that they took.
    pub(in crate::simulate) bytes: u64,
    /// Frames lost in the queue or on the line.
    pub(in crate::simulate) lost: u64,
}

/// What a line has done, for the books.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulate) struct Told {
    /// Idle time since the beginning in picoseconds, and by how many ticks the ends before were rounded up.
    pub(in crate::simulate) idle: u64,
    pub(in crate::simulate) rounding: u64,
    /// Frames, and their bytes, that were begun and ended in the window.
    pub(in crate::simulate) frames: u64,
    pub(in crate::simulate) bytes: u64,
}

/// A frame behind the transmitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying {
    pub(super) at: u64,
    pub(super) packet: u32,
    /// It arrives damaged: whoever gets it throws it away.
    pub(super) damaged: bool,
}

/// What chance does to the packets of a line.
struct Lottery {
    random: Stream,
    loss: Share,
    jitter: u64,
    reorder: Option<(Share, u64)>,
    /// Latest arrival of a packet that keeps its order.
    last: u64,
}

/// How packets wait.
enum Waiting {
    /// In order; when a packet leaves is known when it arrives.
    Arrival(InOrder),
    /// In a discipline that decides when the line is free.
    Service {
        scheduler: Box<dyn Scheduler>,
        /// When it is asked next; `u64::MAX` when it need not be.
        asked: u64,
    },
}

struct InOrder {
    /// `None` at hosts, whose NIC holds the sender back instead.
    admission: Option<Box<dyn queue::Admission>>,
    /// All that it asks, where that is no more than whether there is room.
    limit: Option<QueueLimit>,
    /// Departure and bytes of what has been accepted.
    held: VecDeque<(u64, u32)>,
    backlog: Backlog,
    idle_since: u64,
}

/// What became of a packet that came to a port, where the discipline need not be asked.
pub(super) enum Limited {
    /// It leaves the transmitter at this instant.
    Leaves(u64),
    /// There is no room.
    Lost,
    /// The discipline is to be asked.
    Undecided,
}

/// What became of a packet that was handed to a port.
pub(super) enum Joined {
    /// It leaves the transmitter at this instant.
    Leaves(u64),
    /// It waits; the discipline is to be asked at this instant, if that is not so already.
    Waits(Option<u64>),
    /// It is lost.
    Lost(Cause),
}

impl FramePort {
    /// The transmitter at end `end` of a link, its queue included; `latency` is that of the node at the other end.
    pub(super) fn new(link: &LinkEnds, end: usize, name: &str, seed: u64, latency: u64) -> Self {
        let around = link.line_bytes(u64::from(u16::MAX)) - u64::from(u16::MAX);
        let (gap, physical) = match link.framing {
            Framing::Ethernet => (ethernet::GAP_BYTES, ethernet::PREAMBLE_BYTES + ethernet::GAP_BYTES),
            _ => (0, 0),
        };
        let discipline = link.queues[end]
            .as_ref()
            .map(|queue| queue.build(Stream::new(seed, &format!("queue.{name}")), link.line_rate));
        let in_order = |admission: Option<Box<dyn queue::Admission>>| {
            let (backlog, limit) =
                (Backlog::default(), admission.as_ref().and_then(|this| this.only_limit()));
            Waiting::Arrival(InOrder { admission, limit, held: VecDeque::new(), backlog, idle_since: 0 })
        };
        let chance = link.loss.0 > 0 || link.jitter.ps() > 0 || link.reorder.is_some();
        Self {
            clock: Clock::new(Pace::of_bits(8, link.line_rate), gap),
            around,
            least: link.line_bytes(0) - around,
            physical,
            delay: link.delay.ps() + latency,
            last: Transmission::default(),
            held_since: None,
            opens: u64::MAX,
            waiting: match discipline {
                None => in_order(None),
                Some(Discipline::Arrival(admission)) => in_order(Some(admission)),
                Some(Discipline::Service(scheduler)) => Waiting::Service { scheduler, asked: u64::MAX },
            },
            lottery: chance.then(|| {
                Box::new(Lottery {
                    random: Stream::new(seed, &format!("line.{name}")),
                    loss: link.loss,
                    jitter: link.jitter.ps(),
                    reorder: link.reorder.map(|(share, delay)| (share, delay.ps())),
                    last: 0,
                })
            }),
            flight: VecDeque::new(),
            wake: u64::MAX,
            tally: PortTally::default(),
            told: Told::default(),
        }
    }

    /// Whether it is known when a packet leaves as soon as it comes, and packets arrive in the order in which they leave.
    pub(super) fn is_in_order(&self) -> bool {
        self.lottery.is_none()
    }

    /// Whether it is known as soon as a packet comes what becomes of it.
    pub(super) fn decides_on_arrival(&self) -> bool {
        matches!(self.waiting, Waiting::Arrival(_))
    }

    /// Bytes of the line for an IP packet of `ip` bytes.
    #[inline]
    fn line_bytes(&self, ip: u64) -> u64 {
        ip.max(self.least) + self.around
    }

    /// Bytes of its frame that count in a queue.
    #[inline]
    pub(super) fn queue_bytes(&self, ip: u32) -> u32 {
        (self.line_bytes(u64::from(ip)) - self.physical) as u32
    }

    /// A packet comes to the transmitter of a host, which takes everything: when it has left.
    #[inline]
    pub(super) fn take(&mut self, now: u64, ip: u32, window: &Window) -> u64 {
        self.send(now, self.line_bytes(u64::from(ip)), window)
    }

    /// A packet of so many bytes comes to the transmitter: what becomes of it, if the discipline asks for nothing but room.
    #[inline(always)]
    pub(super) fn join_limited(&mut self, now: u64, bytes: u32, window: &Window) -> Limited {
        let Waiting::Arrival(queue) = &mut self.waiting else { return Limited::Undecided };
        let Some(limit) = queue.limit else { return Limited::Undecided };
        queue.release(now);
        if !queue.backlog.has_room(limit, bytes) {
            return Limited::Lost;
        }
        let left = self.send(now, u64::from(bytes) + self.physical, window);
        if let Waiting::Arrival(queue) = &mut self.waiting {
            queue.hold(left, bytes);
        }
        Limited::Leaves(left)
    }

    /// A packet comes to the transmitter. `mark` says whether it gets the mark of congestion.
    pub(super) fn join(
        &mut self,
        now: u64,
        packet: queue::Packet,
        lost: &mut Vec<(queue::Packet, Cause)>,
        mark: &mut bool,
        window: &Window,
    ) -> Joined {
        let end = self.clock.end;
        match &mut self.waiting {
            Waiting::Arrival(queue) => {
                queue.release(now);
                if let Some(admission) = &mut queue.admission {
                    let idle = queue.held.is_empty().then_some(Time(queue.idle_since));
                    let view = PortView { backlog: queue.backlog, idle_since: idle };
                    match admission.admit(Time(now), view, &packet) {
                        Verdict::Drop(cause) => return Joined::Lost(cause),
                        Verdict::Accept { mark: marked } => *mark = marked,
                    }
                }
                let left = self.send(now, u64::from(packet.bytes) + self.physical, window);
                if let Waiting::Arrival(queue) = &mut self.waiting
                    && queue.admission.is_some()
                {
                    queue.hold(left, packet.bytes);
                }
                Joined::Leaves(left)
            }
            Waiting::Service { scheduler, asked } => {
                if *asked == u64::MAX && end < now && scheduler.backlog().packets == 0 {
                    // It is asked whenever the line becomes free. It had nothing then, but it may note that, whenever it is told.
                    scheduler.dequeue(Time(now), lost);
                }
                scheduler.enqueue(Time(now), packet, lost);
                let due = now.max(end);
                let sooner = due < *asked;
                if sooner {
                    *asked = due;
                }
                Joined::Waits(sooner.then_some(due))
            }
        }
    }

    /// The line may be free: the packet that is sent now, with the instant at which it has left, and when to ask again.
    pub(super) fn serve(
        &mut self,
        now: u64,
        lost: &mut Vec<(queue::Packet, Cause)>,
        window: &Window,
    ) -> (Option<(queue::Packet, u64)>, Option<u64>) {
        let Waiting::Service { scheduler, asked } = &mut self.waiting else {
            unreachable!("only a discipline that serves is asked to");
        };
        if *asked != now {
            // An earlier question was put since; this one is void.
            return (None, None);
        }
        *asked = u64::MAX;
        let next = scheduler.dequeue(Time(now), lost);
        let Some(packet) = next else {
            let ready = scheduler.next_ready(Time(now)).map(|ready| ready.ps().max(now + 1));
            *asked = ready.unwrap_or(u64::MAX);
            self.held_since = ready.and(self.held_since.or(Some(now)));
            return (None, ready);
        };
        let more = scheduler.backlog().packets > 0;
        let held = self.held_since.take().map_or(0, |since| now - since);
        let left = self.send(now, u64::from(packet.bytes) + self.physical, window);
        self.last.held = held;
        let again = more.then_some(self.clock.end);
        if let (Waiting::Service { asked, .. }, Some(again)) = (&mut self.waiting, again) {
            *asked = again;
        }
        (Some((packet, left)), again)
    }

    /// Put a frame of so many bytes of the line on it, behind what is there: when its last bit has left.
    #[inline(always)]
    fn send(&mut self, now: u64, bytes: u64, window: &Window) -> u64 {
        let mut idle = 0;
        if now > self.clock.end {
            idle = now - self.clock.end;
            self.told.idle += idle;
            self.told.rounding += self.clock.rounding();
            self.clock.restart(now);
        }
        let begin = self.clock.exact;
        let left = self.clock.send(bytes);
        let end = self.clock.end;
        let whole = window.holds_all(begin.0, end);
        if whole {
            self.told.frames += 1;
            self.told.bytes += bytes;
        }
        self.last = Transmission { idle, held: 0, begin, bytes, physical: self.physical, end, whole };
        if window.holds(left) {
            self.tally.frames += 1;
            self.tally.bytes += bytes;
        }
        left
    }

    /// Bytes in the queue at `at`, up to which everything has happened.
    pub(in crate::simulate) fn backlog(&self, at: u64) -> u64 {
        match &self.waiting {
            Waiting::Arrival(queue) => {
                let held = queue.held.iter().filter(|(left, _)| *left > at);
                held.map(|(_, bytes)| u64::from(*bytes)).sum()
            }
            Waiting::Service { scheduler, .. } => scheduler.backlog().bytes,
        }
    }

    /// What the line does at `at`, when all that began before has been told; a transmission that goes on tells itself.
    pub(in crate::simulate) fn doing(&self, at: u64) -> Doing {
        match at.checked_sub(self.clock.end) {
            Some(idle) => Doing { idle, rounding: self.clock.rounding(), begun: 0 },
            None => Doing::default(),
        }
    }

    /// A packet has left at `left`: it is on its way. Returns when to look for an arrival, if nothing is looked for earlier.
    #[inline]
    pub(super) fn fly(&mut self, left: u64, packet: u32) -> Option<u64> {
        let flying = Flying { at: left + self.delay, packet, damaged: false };
        let at = if self.lottery.is_none() {
            self.flight.push_back(flying);
            flying.at
        } else {
            self.draw(flying)
        };
        (at < self.wake).then(|| {
            self.wake = at;
            at
        })
    }

    /// What chance does to a packet on the line.
    fn draw(&mut self, mut flying: Flying) -> u64 {
        let mut place = self.flight.len();
        if let Some(lottery) = &mut self.lottery {
            flying.damaged = lottery.loss.0 > 0 && lottery.random.below(Share::WHOLE) < lottery.loss.0;
            if lottery.jitter > 0 {
                flying.at += lottery.random.below(lottery.jitter.saturating_add(1));
            }
            let late = lottery.reorder.filter(|(share, _)| lottery.random.below(Share::WHOLE) < share.0);
            if let Some((_, delay)) = late {
                flying.at += delay;
            } else {
                flying.at = flying.at.max(lottery.last);
                lottery.last = flying.at;
            }
            place = self.flight.partition_point(|other| other.at <= flying.at);
        }
        self.flight.insert(place, flying);
        flying.at
    }

    /// The packet that arrives now, and when to look for the next one.
    #[inline]
    pub(super) fn land(&mut self, now: u64) -> (Option<Flying>, Option<u64>) {
        if self.wake != now {
            return (None, None);
        }
        let arrived = self.flight.pop_front().filter(|flying| flying.at == now);
        let next = self.flight.front().map(|flying| flying.at);
        self.wake = next.unwrap_or(u64::MAX);
        (arrived, next)
    }
}

impl InOrder {
    #[inline]
    fn hold(&mut self, left: u64, bytes: u32) {
        self.held.push_back((left, bytes));
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(bytes);
    }

    /// Forget what has left by `now`.
    #[inline]
    fn release(&mut self, now: u64) {
        while let Some(&(left, bytes)) = self.held.front()
            && left <= now
        {
            self.held.pop_front();
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(bytes);
            self.idle_since = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engpass_model::queue::{DropTail, Ecn, Queue};
    use engpass_model::unit::QueueLimit;
    use engpass_model::wire::Medium;

    fn port(rate: u64) -> FramePort {
        let queue = Queue::DropTail(DropTail { limit: QueueLimit::packets(100_000), ecn_threshold: None });
        let link = LinkEnds {
            name: "line".into(),
            ends: [0, 1],
            medium: Medium::PointToPoint,
            line_rate: rate,
            framing: Framing::Packets,
            delay: Time(1),
            mtu: 1500,
            overhead: 0,
            vlan: false,
            jitter: Time(0),
            loss: Share(0),
            reorder: None,
            queues: [Some(queue), None],
        };
        FramePort::new(&link, 0, "line.a", 1, 0)
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
                let view = queue::Packet { id, bytes: 1000, flow: 0, priority: 0, ecn: Ecn::NotCapable };
                let joined = port.join(now, view, &mut Vec::new(), &mut false, &window);
                let Joined::Leaves(left) = joined else { panic!("there is room") };
                waited += left - now - service;
            }
            let rho = percent as f64 / 100.0;
            let expected = rho / (2.0 * (1.0 - rho));
            let mean = waited as f64 / f64::from(packets) / service as f64;
            assert!((mean / expected - 1.0).abs() < 0.03, "{mean} is not {expected} at {percent} %");
        }
    }
}
