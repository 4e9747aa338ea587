//! The transmitter of one direction of a link that carries frames.

use std::collections::VecDeque;

use engpass_model::element::Doing;
use engpass_model::queue::{self, Backlog, Cause, Discipline, Ecn, PortView, Scheduler, Verdict};
use engpass_model::random::Stream;
use engpass_model::time::{Pace, Time};
use engpass_model::unit::Share;
use engpass_model::wire::{Framing, ethernet};
use engpass_testbed::topology::LinkEnds;

use crate::simulate::ledger::Transmission;
use crate::simulate::tally::Window;

/// A transmitter with what waits for it and what is on its way behind it.
pub(in crate::simulate) struct FramePort {
    /// Picoseconds per byte.
    pace: Pace,
    /// Bytes of the line for an IP packet: the larger of its own and `least`, plus `around`; of these the last `gap` are idle.
    around: u64,
    least: u64,
    gap: u64,
    /// Bytes of the line around a frame, which no queue holds.
    physical: u64,
    /// From the last bit of a frame on the line to the queue behind the other end.
    delay: u64,
    /// Start of the busy period, and the bytes sent in it.
    base: u64,
    bytes: u64,
    /// End of the last transmission that was begun or is certain, its gap included.
    end: u64,
    /// That transmission.
    pub(super) last: Transmission,
    /// Since when the discipline has held packets back although the line is free.
    held_since: Option<u64>,
    waiting: Waiting,
    lottery: Option<Lottery>,
    /// What is on its way, in the order of arrival.
    flight: VecDeque<Flying>,
    /// When the next arrival is looked at.
    pub(super) wake: u64,
    pub(in crate::simulate) tally: PortTally,
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
    /// Departure and bytes of what has been accepted.
    held: VecDeque<(u64, u32)>,
    backlog: Backlog,
    idle_since: u64,
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
        let in_order = |admission| {
            let backlog = Backlog::default();
            Waiting::Arrival(InOrder { admission, held: VecDeque::new(), backlog, idle_since: 0 })
        };
        let chance = link.loss.0 > 0 || link.jitter.ps() > 0 || link.reorder.is_some();
        Self {
            pace: Pace::of_bits(8, link.line_rate),
            around,
            least: link.line_bytes(0) - around,
            gap,
            physical,
            delay: link.delay.ps() + latency,
            base: 0,
            bytes: 0,
            end: 0,
            last: Transmission::default(),
            held_since: None,
            waiting: match discipline {
                None => in_order(None),
                Some(Discipline::Arrival(admission)) => in_order(Some(admission)),
                Some(Discipline::Service(scheduler)) => Waiting::Service { scheduler, asked: u64::MAX },
            },
            lottery: chance.then(|| Lottery {
                random: Stream::new(seed, &format!("line.{name}")),
                loss: link.loss,
                jitter: link.jitter.ps(),
                reorder: link.reorder.map(|(share, delay)| (share, delay.ps())),
                last: 0,
            }),
            flight: VecDeque::new(),
            wake: u64::MAX,
            tally: PortTally::default(),
        }
    }

    /// Bytes of the line for an IP packet of `ip` bytes.
    fn line_bytes(&self, ip: u64) -> u64 {
        ip.max(self.least) + self.around
    }

    /// The packet as the discipline sees it.
    pub(super) fn view(&self, id: u32, ip: u32, flow: u32, priority: u8, ecn: Ecn) -> queue::Packet {
        let bytes = (self.line_bytes(u64::from(ip)) - self.physical) as u32;
        queue::Packet { id, bytes, flow, priority, ecn }
    }

    /// A packet comes to the transmitter. `mark` says whether it gets the mark of congestion.
    pub(super) fn join(
        &mut self,
        now: u64,
        packet: queue::Packet,
        lost: &mut Vec<(queue::Packet, Cause)>,
        mark: &mut bool,
        window: Window,
    ) -> Joined {
        let end = self.end;
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
                let left = self.send(now, &packet, window);
                if let Waiting::Arrival(queue) = &mut self.waiting
                    && queue.admission.is_some()
                {
                    queue.hold(left, packet.bytes);
                }
                Joined::Leaves(left)
            }
            Waiting::Service { scheduler, asked } => {
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
        window: Window,
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
        let left = self.send(now, &packet, window);
        let again = more.then_some(self.end);
        if let (Waiting::Service { asked, .. }, Some(again)) = (&mut self.waiting, again) {
            *asked = again;
        }
        (Some((packet, left)), again)
    }

    /// Put a packet on the line, behind what is there: when its last bit has left.
    fn send(&mut self, now: u64, packet: &queue::Packet, window: Window) -> u64 {
        let bytes = u64::from(packet.bytes) + self.physical;
        let held = self.held_since.take().map_or(0, |since| now - since);
        self.last = Transmission { bytes, physical: self.physical, held, ..Transmission::default() };
        if now > self.end {
            (self.last.idle, self.last.rounding) = (now - self.end, self.rounding());
            (self.base, self.bytes) = (now, 0);
        }
        (self.last.base, self.last.before) = (self.base, self.bytes);
        self.bytes += bytes;
        self.end = self.base + self.pace.after(self.bytes);
        self.last.end = self.end;
        let left = self.base + self.pace.after(self.bytes - self.gap);
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

    /// By how much the end of the last transmission is rounded up, in ticks.
    fn rounding(&self) -> u64 {
        let (ticks, per_ps) = self.pace.ratio();
        let after = u128::from(self.pace.after(self.bytes)) * u128::from(per_ps);
        (after - u128::from(self.bytes) * u128::from(ticks)) as u64
    }

    /// What the line does at `at`, when all that began before has been told; a transmission that goes on tells itself.
    pub(in crate::simulate) fn doing(&self, at: u64) -> Doing {
        match at.checked_sub(self.end) {
            Some(idle) => Doing { idle, rounding: self.rounding(), begun: 0 },
            None => Doing::default(),
        }
    }

    /// A packet has left at `left`: it is on its way. Returns when to look for an arrival, if nothing is looked for earlier.
    pub(super) fn fly(&mut self, left: u64, packet: u32) -> Option<u64> {
        let mut flying = Flying { at: left + self.delay, packet, damaged: false };
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
        (flying.at < self.wake).then(|| {
            self.wake = flying.at;
            flying.at
        })
    }

    /// The packet that arrives now, and when to look for the next one.
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
    fn hold(&mut self, left: u64, bytes: u32) {
        self.held.push_back((left, bytes));
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(bytes);
    }

    /// Forget what has left by `now`.
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
    use engpass_model::queue::{DropTail, Queue};
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
                let view = port.view(id, 1000, 0, 0, Ecn::NotCapable);
                let joined = port.join(now, view, &mut Vec::new(), &mut false, window);
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
