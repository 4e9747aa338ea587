//! Virtual circuits as part of a route: a packet enters a circuit at a host or a router, crosses it as the cells of a PDU, and is a packet again at its end.
//!
//! At a router each circuit direction has a queue, with the discipline of the link on which it begins. The queue sends one packet at a time. Mostly, the
//! discipline chooses the next packet when the link begins to transmit the last cell of this one. So circuits share the link, and packets wait in the queue, not as cells.
//! A shaped circuit on a link that all its shapers together cannot fill does not wait for the link, so that it keeps its rate beside others.

use engpass_model::queue::{self, Backlog, Cause, Ecn, PortView, Scheduler};
use engpass_model::random::{Label, Stream};
use engpass_model::time::Time;
use engpass_model::wire::Encapsulation;
use engpass_testbed::Topology;
use engpass_testbed::topology::NodeKind;

use super::outage::apart;
use super::port_counts::LongestQueue;
use super::{Frames, Step, Verdict};

/// Entry of a circuit direction: where packets become cells.
pub struct Entry {
    /// Index of the circuit direction.
    pub vc: u32,
    /// How packets become PDUs.
    pub encapsulation: Encapsulation,
    /// Transmitters that the circuit crosses. Packets wait at the first one if it belongs to a router.
    pub ports: Vec<usize>,
}

/// The queue of a circuit direction at a router.
pub struct CircuitQueue {
    /// Index of the circuit direction.
    pub vc: u32,
    /// Its first transmitter.
    pub port: usize,
    /// Packets that the discipline dropped in the current call.
    pub dropped: Vec<(queue::Packet, Cause)>,
    /// Number of packets that the discipline has marked in the measurement window.
    pub marked: u64,
    /// The admission policy, if the discipline decides on arrival.
    admission: Option<Box<dyn queue::Admission>>,
    scheduler: Box<dyn Scheduler>,
    /// True if the discipline chooses the next packet when the shaper may emit again, whatever the line does.
    paced: bool,
    /// Instant of the pending `CircuitFree` event; `u64::MAX` if there is none.
    asked: u64,
    /// Instant until which a packet is being sent, and its bytes. The instant is `u64::MAX` while it is unknown.
    sends: (u64, u32),
    /// PDU of the packet being sent, while it is unknown when the line begins the last cell.
    pub pdu: Option<u32>,
    longest: LongestQueue,
}

impl CircuitQueue {
    /// Creates the queue of a circuit direction; `None` if it begins at a host. `paced`: the shaper alone sets the pace, not the line.
    pub fn new(entry: &Entry, topology: &Topology, seed: u64, paced: bool) -> Option<Self> {
        let (vc, port) = (entry.vc, entry.ports[0]);
        let (link, end) = (&topology.links[port / 2], port % 2);
        let (from, circuit) = (link.ends[end], &topology.circuits[vc as usize / 2]);
        let config =
            link.queues[end].as_ref().filter(|_| matches!(topology.kind(from), NodeKind::Router(_)))?;
        let label = Label::CircuitQueue(&link.name, &topology.nodes[from], &circuit.name);
        let (admission, scheduler) = apart(config.build(Stream::new(seed, label), link.lines[end].rate));
        let (dropped, longest) = (Vec::new(), LongestQueue::default());
        let (asked, sends, pdu, marked) = (u64::MAX, (0, 0), None, 0);
        Some(Self { vc, port, dropped, marked, admission, scheduler, paced, asked, sends, pdu, longest })
    }

    /// Returns the longest queue in the measurement window.
    pub fn longest(&self) -> Backlog {
        self.longest.lengths()
    }

    /// Admits or drops a packet that arrives at `now`. Returns the instant of a new `CircuitFree` event, unless an earlier one is pending, and true if the packet
    /// got a congestion mark.
    pub fn join(&mut self, now: u64, mut packet: queue::Packet) -> (Option<u64>, bool) {
        let (until, _) = self.sends;
        let (backlog, mut marks) = (self.backlog(now), false);
        if let Some(admission) = &mut self.admission {
            let idle_since = (backlog.packets == 0).then_some(Time(until));
            match admission.admit(Time(now), PortView { backlog, idle_since }, &packet) {
                queue::Verdict::Drop(cause) => {
                    self.dropped.push((packet, cause));
                    return (None, false);
                }
                queue::Verdict::Accept { mark } => {
                    marks = mark && packet.ecn != Ecn::Marked;
                    packet.ecn = if mark { Ecn::Marked } else { packet.ecn };
                }
            }
        }
        if self.asked == u64::MAX && until < now && self.scheduler.backlog().packets == 0 {
            // A scheduler expects a `dequeue` whenever the line has sent everything. With an empty queue that call was skipped; this call makes up for it.
            self.scheduler.dequeue(Time(now), &mut self.dropped);
        }
        self.scheduler.enqueue(Time(now), packet, &mut self.dropped);
        self.longest.note(self.backlog(now));
        let due = now.max(until);
        let sooner = due < self.asked;
        if sooner {
            self.asked = due;
        }
        (sooner.then_some(due), marks)
    }

    /// Returns the queue at `now`, as the discipline's limit counts it: the packet being sent is included if the discipline decides on arrival.
    pub fn backlog(&self, now: u64) -> Backlog {
        let (until, bytes) = self.sends;
        let waits = self.scheduler.backlog();
        if self.admission.is_some() && until > now { waits.with(bytes) } else { waits }
    }

    /// Returns true if the discipline marks packets when they are sent, not on arrival.
    pub fn marks_when_sent(&self) -> bool {
        self.admission.is_none()
    }

    /// Returns true if a `CircuitFree` event at `now` is not outdated: no earlier one was scheduled since.
    pub fn is_due(&self, now: u64) -> bool {
        self.asked == now
    }

    /// Records that the line sends a packet of `bytes` bytes as this PDU.
    pub fn send(&mut self, bytes: u32, pdu: u32) {
        (self.sends, self.pdu) = ((u64::MAX, bytes), Some(pdu));
    }

    /// Records that the shaper has all cells of the packet being sent, and may emit the next one at `next`.
    pub fn handed_over(&mut self, next: u64) {
        if self.paced {
            self.ends_at(next);
        }
    }

    /// Records the instant at which the discipline may choose the next packet: the line begins the last cell of the packet being sent, or the shaper of a paced
    /// circuit may emit again.
    pub fn ends_at(&mut self, at: u64) {
        (self.sends.0, self.pdu) = (at, None);
    }

    /// Returns true if the packet being sent is not over yet. Then also returns the instant for which the caller must schedule a
    /// `CircuitFree` event, if any. `emitted` is the emission time of the packet's PDU, if it has one.
    pub fn wait_for_turn(&mut self, emitted: Option<u64>, now: u64) -> (bool, Option<u64>) {
        // The emission time of the last cell is known; the cell leaves the line later.
        let at = emitted.map_or(self.sends.0, |emitted| emitted.max(now) + 1);
        if at <= now {
            return (false, None);
        }
        let asks = self.pdu.is_some() || self.scheduler.backlog().packets > 0;
        self.asked = if asks { at } else { u64::MAX };
        (true, asks.then_some(at))
    }

    /// Begins the measurement of the longest queue, with the queue at `from`.
    pub fn begin_window(&mut self, from: u64) {
        self.longest = LongestQueue::default();
        self.longest.note(self.backlog(from));
    }

    /// Returns the packet to send next; otherwise the instant at which there may be one, if known.
    pub fn next(&mut self, now: u64) -> Result<queue::Packet, Option<u64>> {
        if self.asked != now {
            // Outdated event: an earlier one was scheduled since.
            return Err(None);
        }
        self.asked = u64::MAX;
        self.scheduler.dequeue(Time(now), &mut self.dropped).ok_or_else(|| {
            let ready = self.scheduler.next_ready(Time(now)).map(|ready| ready.ps().max(now + 1));
            self.asked = ready.unwrap_or(u64::MAX);
            ready
        })
    }
}

impl Frames {
    /// Returns the circuit entry of a step; `None` for other steps.
    #[inline]
    pub(crate) fn entry(&self, step: Step) -> Option<&Entry> {
        match step.verdict {
            Verdict::Circuit(entry) => Some(&self.entries[entry as usize]),
            _ => None,
        }
    }

    /// Returns the circuit entry with which a route begins, if its host sends on a circuit.
    pub fn first_circuit_entry(&self, route: u32) -> Option<&Entry> {
        self.entry(self.steps[self.routes[route as usize].first as usize])
    }
}
