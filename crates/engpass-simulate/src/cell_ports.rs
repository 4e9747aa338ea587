//! Cell ports. A port takes its arrivals as late as possible, or as soon as nothing can change the result.

use engpass_cells::{Fifo, Inputs, PduId, StrictPriority, VcTreatment};
use engpass_frames::{CircuitQueue, Frames};
use engpass_model::line::LineStatus;
use engpass_model::time::Pace;
use engpass_model::wire::aal5;

use std::collections::VecDeque;

use super::adaptive_shaper::AdaptiveShaper;
use super::clock::NewEvent;
use super::event_queue::Event;
use super::pull::{Ring, Worklist};
use super::shared_state::{Aal5Pdu, NicDeparture, PortOutput, SharedState, Vc};
use super::source::Source;

/// A cell port: the transmitter of one direction of a link, with its queue. Its number is `2 * link + end`, where `end` is the sending end. Its channels are in
/// [`SharedState::channels`].
pub(super) struct Port {
    pub(super) queue: Queue,
    /// Class and policer of each circuit direction.
    pub(super) rules: Vec<VcTreatment>,
    /// Ports whose cells arrive at this port.
    pub(super) upstream: Vec<usize>,
    /// Index of the ring that the port belongs to, if it is on a cycle of ports.
    pub(super) ring: Option<usize>,
    /// Number of the last pull that needed arrivals of this port.
    pub(super) pulled: u64,
    /// True if all cells of the port come from generators, so that the port can be computed up to any instant at any time.
    pub(super) foreseeable: bool,
    /// The channel whose cells do not come from a generator, if there is exactly one.
    pub(super) sole: Option<usize>,
    /// Channel of the generator that alone has class 0, if its cells need no queue: [`StrictPriority::set_periodic_class`].
    pub(super) periodic_channel: Option<usize>,
    /// Instant up to which all arrivals have been taken; `None` at the start.
    pub(super) horizon: Option<u64>,
    /// Transmission time of a cell.
    pub(super) slot: Pace,
    /// Transmission time of a cell, rounded down to picoseconds.
    pub(super) slot_at_least: u64,
    /// Minimum time from the arrival of a cell here to its arrival at the far end of the line, in picoseconds.
    pub(super) lookahead: u64,
    /// At a host: the PDUs in the buffer of its NIC.
    pub(super) buffer: Option<PduBuffer>,
}

/// PDUs in the buffer of a NIC.
#[derive(Debug, Default)]
pub(super) struct PduBuffer {
    /// Bytes that they take.
    pub(super) occupied: u64,
    /// PDUs whose last cell leaves at a known instant, in that order: the instant, and the bytes that it frees.
    leaving: VecDeque<(u64, u32)>,
    /// Emission times of the last cells of PDUs that leave at an instant not known yet.
    unknown: VecDeque<u64>,
}

impl PduBuffer {
    /// Returns true if `bytes` more bytes find room at `now`.
    pub(super) fn has_room(&mut self, now: u64, bytes: u64, capacity: u64) -> bool {
        while let Some(&(left, bytes)) = self.leaving.front()
            && left <= now
        {
            self.leaving.pop_front();
            self.occupied -= u64::from(bytes);
        }
        self.occupied == 0 || self.occupied + bytes <= capacity
    }
}

/// What a port changes when it takes arrivals: shared state, and the departures of PDUs from the first port of their circuit.
type PortOutcome<'a> = (&'a mut SharedState, &'a mut Vec<NicDeparture>);

/// The queue in front of a line.
pub(super) enum Queue {
    Fifo(Fifo),
    Classes(StrictPriority),
}

impl Port {
    /// Takes all arrivals up to and including `until`; the ports before this one must have announced them.
    fn advance(&mut self, until: u64, port: usize, (shared, departures): PortOutcome<'_>) {
        // Cells never return to the port that they leave. Therefore the port adds nothing to its own channels.
        let mut channels = std::mem::take(&mut shared.channels[port]);
        let inputs = Inputs::new(&mut channels);
        let mut outlet = PortOutput { shared, departures, port };
        match &mut self.queue {
            Queue::Fifo(queue) => queue.advance(until, inputs, &mut self.rules, &mut outlet),
            Queue::Classes(queue) => queue.advance(until, inputs, &mut self.rules, &mut outlet),
        }
        shared.channels[port] = channels;
        self.horizon = Some(until);
        if shared.window.from == Some(until) {
            match &mut self.queue {
                Queue::Fifo(queue) => queue.measure_from(until),
                Queue::Classes(queue) => {
                    queue.measure_from(until, |channel| shared.channels[port][channel].head() <= until);
                }
            }
            shared.write_cells(port, until);
            shared.ledger.begin_window_on(port, self.line_status(until));
        }
    }

    /// Returns the number of cells in the queue at the instant `at`, including the one being sent. The port must be advanced exactly up to `at`.
    pub(super) fn length(&self, at: u64) -> u64 {
        match &self.queue {
            Queue::Fifo(queue) => queue.length(at),
            Queue::Classes(queue) => queue.length(at),
        }
    }

    /// Returns the longest queue of a service class in the measurement window, in cells; `None` for an unbounded queue (NIC).
    fn longest(&self) -> Option<u64> {
        match &self.queue {
            Queue::Fifo(queue) => queue.longest(),
            Queue::Classes(queue) => Some(queue.longest()),
        }
    }

    /// Returns the status of the line at the instant `at`. The port must be advanced exactly up to `at`.
    pub(super) fn line_status(&self, at: u64) -> LineStatus {
        match &self.queue {
            Queue::Fifo(queue) => queue.line_status(at),
            Queue::Classes(queue) => queue.line_status(at),
        }
    }

    /// Returns the instant at which the next waiting cell begins its transmission, as far as known; [`u64::MAX`] if none waits. In a FIFO none waits: the
    /// departure of a cell is known when it arrives.
    pub(super) fn next_waiting(&self) -> u64 {
        match &self.queue {
            Queue::Fifo(_) => u64::MAX,
            Queue::Classes(queue) => queue.next_begin(),
        }
    }

    pub(super) fn is_advanced_to(&self, until: u64) -> bool {
        self.horizon.is_some_and(|horizon| horizon >= until)
    }
}

/// The cell network: ports with their generators and adaptive shapers, and the queues of packets in front of circuits that begin at routers.
pub(super) struct CellNetwork {
    pub(super) ports: Vec<Port>,
    pub(super) rings: Vec<Ring>,
    pub(super) worklist: Worklist,
    /// PDUs whose last cell has left the first port of their circuit, until [`Self::collect_departures`].
    pub(super) departures: Vec<NicDeparture>,
    pub(super) sources: Vec<Source>,
    /// Adaptive shapers of circuits.
    pub(super) shapers: Vec<AdaptiveShaper>,
    /// By circuit entry, its queue; `None` if the circuit begins at a host.
    pub(super) queues: Vec<Option<CircuitQueue>>,
}

impl CellNetwork {
    /// Takes all arrivals at `port` up to `until` inclusive, which must all be announced. Pauses at the end of the warm-up and at samples of a timeline.
    pub(super) fn take(&mut self, port: usize, until: u64, shared: &mut SharedState) {
        if !self.ports[port].is_advanced_to(until) {
            self.stop_at_edges_and_samples(port, until, shared);
            self.ports[port].advance(until, port, (shared, &mut self.departures));
            if shared.trace.is_some() {
                // A sample may be due at `until` itself, after these arrivals.
                self.stop_at_edges_and_samples(port, until, shared);
            }
        }
    }

    /// Advances the port to the end of the warm-up and to each sampling instant that lies before `until`.
    fn stop_at_edges_and_samples(&mut self, port: usize, until: u64, shared: &mut SharedState) {
        let this = &mut self.ports[port];
        // A train must lie on one side of the window edge.
        let from = shared.window.from;
        loop {
            let edge = from.filter(|edge| *edge < until && !this.is_advanced_to(*edge));
            let look = shared.trace.as_ref().and_then(|trace| trace.next_check(port));
            match (edge, look.filter(|look| *look <= until)) {
                (Some(edge), look) if look.is_none_or(|look| edge <= look) => {
                    this.advance(edge, port, (shared, &mut self.departures));
                }
                (_, Some(look)) if look < until || this.is_advanced_to(look) => {
                    if !this.is_advanced_to(look) {
                        this.advance(look, port, (shared, &mut self.departures));
                    }
                    let length = this.length(look);
                    shared.trace.iter_mut().for_each(|trace| trace.record_queue_sample(port, length));
                }
                _ => break,
            }
        }
    }

    /// Passes the departures of PDUs' last cells, which the lines have computed, to the buffers of NICs, or to the queues of circuits at routers. Such a queue
    /// chooses its next packet when the line begins that cell, so that a shaper keeps its pace, but no earlier than a picosecond after the cell's emission,
    /// because this is not known before.
    pub(super) fn collect_departures(&mut self, vcs: &[Vc]) {
        for left in self.departures.drain(..) {
            let port = &mut self.ports[left.nic];
            let Some(buffer) = &mut port.buffer else {
                let begins = (left.at - port.slot_at_least).max(left.emitted + 1);
                for queue in self.queues.iter_mut().flatten().filter(|queue| queue.pdu == Some(left.pdu)) {
                    // An adaptive shaper begins its next PDU no earlier than its pace allows.
                    let vc = &vcs[queue.vc as usize];
                    let turn = vc.adaptive_shaper.map_or(0, |_| vc.shaper.next());
                    queue.ends_at(begins.max(turn));
                }
                continue;
            };
            buffer.leaving.push_back((left.at, left.bytes));
            let known = buffer.unknown.iter().position(|emitted| *emitted == left.emitted);
            buffer.unknown.remove(known.expect("a departing packet was emitted"));
        }
    }

    /// Returns the instant at which the next PDU frees room in the buffer of a NIC, or before which none does. PDUs have the NIC's line for themselves.
    pub(super) fn next_departure(&self, nic: usize, now: u64, shared: &SharedState) -> u64 {
        let port = &self.ports[nic];
        let buffer = port.buffer.as_ref().expect("a NIC has a buffer");
        // The line is FIFO: known departures come before unknown ones.
        buffer.leaving.front().map(|(left, _)| *left).unwrap_or_else(|| {
            let emitted = buffer.unknown.iter().copied().chain(self.next_begins(nic, shared)).min();
            emitted.map_or(now + 1, |emitted| emitted + port.slot_at_least)
        })
    }

    /// Starts the emission of a PDU's cells by the shaper of its circuit, and advances the ports that they reach. At a router there is no `sender`. Returns the
    /// event of their arrival.
    pub(super) fn emit(
        &mut self,
        pdu: PduId,
        sender: Option<usize>,
        now: u64,
        shared: &mut SharedState,
    ) -> NewEvent {
        let Aal5Pdu { vc, datagram, sdu, .. } = shared.pdus[pdu];
        let this = &mut shared.vcs[vc as usize];
        let (port, entry) = (this.hops[0], this.entry);
        let train = this.shaper.emit(now, pdu, aal5::cells(sdu.into()) as u32);
        shared.pdus[pdu].eta = train.last;
        if let Some(sender) = sender {
            let first = &mut self.ports[port];
            first.buffer.as_mut().expect("a NIC has a buffer").unknown.push_back(train.last);
            let has_data = shared.datagrams[datagram].counted;
            shared.ledger.emitted(sender, pdu, has_data, now, train.last + first.slot_at_least);
        }
        shared.channels[port][entry].push(train);
        self.advance_downstream(vc, shared);
        self.collect_departures(&shared.vcs);
        self.next_pdu_check(pdu, shared, now)
    }

    /// Advances the ports of a circuit direction as far as its newly announced cells reach, if no cell that is not announced yet can come between them.
    fn advance_downstream(&mut self, vc: u32, shared: &mut SharedState) {
        if shared.reports.is_some() {
            // A measurement window may begin and end at any time, so no port works ahead of virtual time.
            return;
        }
        for hop in 0..shared.vcs[vc as usize].hops.len() {
            let port = shared.vcs[vc as usize].hops[hop];
            let Some(sole) = self.ports[port].sole else { break };
            let last = shared.channels[port][sole].last();
            self.advance_with_upstream(port, last, shared, |upstream| upstream.foreseeable);
        }
    }

    /// Lets all ports without classes emit trains whose instants are exact, for a capture.
    pub(super) fn emit_exact_trains(&mut self) {
        for port in &mut self.ports {
            if let Queue::Fifo(queue) = &mut port.queue {
                queue.emit_exact_trains();
            }
        }
    }

    /// Returns the longest cell queue of a port in the measurement window; `None` if the port is not that of an ATM switch.
    pub(super) fn longest_queue(&self, port: usize) -> Option<u64> {
        self.ports.get(port).and_then(Port::longest)
    }

    /// Ends the measurement window on every line, at the end of the run.
    pub(super) fn end_measurement(&mut self, frames: &Frames, shared: &mut SharedState) {
        let end = shared.window.end;
        self.end_window(end, frames, shared);
        for line in &frames.ports {
            shared.ledger.end_window_on_frame_line(line, end);
        }
        self.post_bypassed_lines(shared);
    }

    /// Ends the measurement window on every line of cells.
    pub(super) fn end_window(&self, end: u64, frames: &Frames, shared: &mut SharedState) {
        for (port, this) in self.ports.iter().enumerate().filter(|(port, _)| frames.port(*port).is_none()) {
            shared.ledger.end_window_on(port, this.line_status(end));
        }
    }

    /// Returns a lower bound of the arrival of a PDU's last cell at the end of its circuit, in picoseconds.
    fn earliest_arrival(&self, pdu: PduId, shared: &SharedState) -> u64 {
        let this = &shared.pdus[pdu];
        let vc = &shared.vcs[this.vc as usize];
        let hop = usize::from(this.hop);
        let Some(&port) = vc.hops.get(hop) else { return this.eta };
        let Some((class, sequence)) = this.waiting else { return this.eta + vc.transit[hop] };
        let Queue::Classes(queue) = &self.ports[port].queue else {
            unreachable!("cells wait only at ports with priority classes");
        };
        let channels = &shared.channels[port];
        let periodic_channel =
            self.ports[port].periodic_channel.filter(|_| class > 0).map(|channel| &channels[channel]);
        queue.departure_bound(class, sequence, periodic_channel) + vc.transit[hop]
            - self.ports[port].slot_at_least
    }

    /// Returns the event of the instant at which the PDU's last cell arrives, or may arrive.
    pub(super) fn next_pdu_check(&self, pdu: PduId, shared: &SharedState, now: u64) -> NewEvent {
        let at = self.earliest_arrival(pdu, shared);
        debug_assert!(at > now, "the PDU arrives later than now");
        let Aal5Pdu { vc, datagram, .. } = shared.pdus[pdu];
        let vc = &shared.vcs[vc as usize];
        match vc.ends_at_router() {
            Some(_) => (at, *vc.hops.last().expect("a circuit has a line"), Event::PduDueAtRouter(pdu)),
            None => (at, shared.datagrams[datagram].flow as usize, Event::PduDueAtHost(pdu)),
        }
    }
}
