//! Cell ports. A port takes its arrivals as late as possible, or as soon as nothing can change the result.

use engpass_cells::{Fifo, Inputs, Pdu, PduId, StrictPriority, VcTreatment};
use engpass_model::line::LineStatus;
use engpass_model::time::Pace;

use super::Network;
use super::adaptive_shaper::AdaptiveShaper;
use super::event_queue::Event;
use super::flow_counters::DropLocation;
use super::pull::{Ring, Worklist};
use super::shared_state::{Aal5Pdu, PortOutput, SharedState};
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
}

/// The queue in front of a line.
pub(super) enum Queue {
    Fifo(Fifo),
    Classes(StrictPriority),
}

impl Port {
    /// Takes all arrivals up to and including `until`; the ports before this one must have announced them.
    pub(super) fn advance(&mut self, until: u64, port: usize, shared: &mut SharedState) {
        // Cells never return to the port that they leave. Therefore the port adds nothing to its own channels.
        let mut channels = std::mem::take(&mut shared.channels[port]);
        let inputs = Inputs::new(&mut channels);
        let mut outlet = PortOutput { shared, port };
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

/// The cell network: ports with their generators and adaptive shapers.
pub(super) struct CellNetwork {
    pub(super) ports: Vec<Port>,
    pub(super) rings: Vec<Ring>,
    pub(super) worklist: Worklist,
    pub(super) sources: Vec<Source>,
    /// Adaptive shapers of circuits.
    pub(super) shapers: Vec<AdaptiveShaper>,
}

impl Network {
    /// Advances the port to the end of the warm-up and to each sampling instant that lies before `until`.
    pub(super) fn stop_at_edges_and_samples(&mut self, port: usize, until: u64) {
        let this = &mut self.cells.ports[port];
        // A train must lie on one side of the window edge.
        let from = self.shared.window.from;
        loop {
            let edge = from.filter(|edge| *edge < until && !this.is_advanced_to(*edge));
            let look = self.shared.trace.as_ref().and_then(|trace| trace.next_check(port));
            match (edge, look.filter(|look| *look <= until)) {
                (Some(edge), look) if look.is_none_or(|look| edge <= look) => {
                    this.advance(edge, port, &mut self.shared);
                }
                (_, Some(look)) if look < until || this.is_advanced_to(look) => {
                    if !this.is_advanced_to(look) {
                        this.advance(look, port, &mut self.shared);
                    }
                    let length = this.length(look);
                    self.shared.trace.iter_mut().for_each(|trace| trace.record_queue_sample(port, length));
                }
                _ => break,
            }
        }
    }

    /// Returns the longest cell queue of a port in the measurement window; `None` if the port is not that of an ATM switch.
    pub(super) fn longest_cell_queue(&self, port: usize) -> Option<u64> {
        self.cells.ports.get(port).and_then(Port::longest)
    }

    /// Takes all arrivals up to and including `until` at every cell port.
    pub(super) fn advance_all(&mut self, until: u64) {
        for port in 0..self.cells.ports.len() {
            self.advance(port, until);
        }
        self.collect_nic_departures();
    }

    /// Ends the measurement window on every line, at the end of the run.
    pub(super) fn end_measurement(&mut self) {
        let cells = |port: &usize| self.frames.port(*port).is_none();
        for port in (0..self.cells.ports.len()).filter(cells) {
            self.shared.ledger.end_window_on(port, self.cells.ports[port].line_status(self.clock.end));
        }
        for line in &self.frames.ports {
            self.shared.ledger.end_window_on_frame_line(line, self.clock.end);
        }
        self.post_bypassed_lines();
    }

    /// Begins the measurement window on every line. Everything at `from`, the last instant of the warm-up, must have happened.
    pub(super) fn begin_measurement(&mut self, from: u64) {
        self.shared.ledger.end_warmup(from);
        for line in &mut self.frames.ports {
            // Lines that lookahead has taken beyond this instant have begun their window already.
            if line.begin_window() == Some(from) {
                self.shared.ledger.begin_window_on_frame_line(line, from);
            }
        }
    }

    /// Advances the ports of a circuit direction as far as its newly announced cells reach, if no cell that is not announced yet can come between them.
    pub(super) fn advance_downstream(&mut self, vc: u32) {
        if self.shared.reports.is_some() {
            // A measurement window may begin and end at any time, so no port works ahead of virtual time.
            return;
        }
        for hop in 0..self.shared.vcs[vc as usize].hops.len() {
            let port = self.shared.vcs[vc as usize].hops[hop];
            let Some(sole) = self.cells.ports[port].sole else { break };
            let last = self.shared.channels[port][sole].last();
            self.advance_with_upstream(port, last, |upstream| upstream.foreseeable);
        }
        self.collect_nic_departures();
    }

    /// Returns a lower bound of the arrival of a PDU's last cell at the end of its circuit, in picoseconds.
    pub(super) fn earliest_arrival(&self, pdu: PduId) -> u64 {
        let this = &self.shared.pdus[pdu];
        let vc = &self.shared.vcs[this.vc as usize];
        let hop = usize::from(this.hop);
        let Some(&port) = vc.hops.get(hop) else { return this.eta };
        let Some((class, sequence)) = this.waiting else { return this.eta + vc.transit[hop] };
        let Queue::Classes(queue) = &self.cells.ports[port].queue else {
            unreachable!("cells wait only at ports with priority classes");
        };
        let channels = &self.shared.channels[port];
        let periodic_channel =
            self.cells.ports[port].periodic_channel.filter(|_| class > 0).map(|channel| &channels[channel]);
        queue.departure_bound(class, sequence, periodic_channel) + vc.transit[hop]
            - self.cells.ports[port].slot_at_least
    }

    /// Handles the instant at which the last cell of a PDU may have reached the end of its circuit.
    pub(super) fn on_pdu_may_arrive(&mut self, pdu: PduId) {
        let vc = self.shared.pdus[pdu].vc as usize;
        let adapts = self.shared.vcs[vc].adaptive_shaper.is_some();
        loop {
            let this = &self.shared.pdus[pdu];
            let hop = usize::from(this.hop);
            if this.is_over(adapts) || hop == self.shared.vcs[vc].hops.len() {
                break;
            }
            // Only cells that have left this port by then can have reached the end of the circuit by now.
            let until = self.clock.now - self.shared.vcs[vc].delays[hop];
            self.advance(self.shared.vcs[vc].hops[hop], until);
            if usize::from(self.shared.pdus[pdu].hop) == hop {
                break;
            }
        }
        self.collect_nic_departures();
        let this = &self.shared.pdus[pdu];
        let arrived = usize::from(this.hop) == self.shared.vcs[vc].hops.len();
        if this.is_over(adapts) {
            self.shared.release_cells(pdu, 1);
        } else if arrived && this.eta <= self.clock.now {
            self.pdu_arrived(pdu);
        } else {
            self.schedule_pdu_check(pdu);
        }
    }

    /// Schedules an event for the instant at which the PDU's last cell arrives, or may arrive.
    pub(super) fn schedule_pdu_check(&mut self, pdu: PduId) {
        let at = self.earliest_arrival(pdu);
        debug_assert!(at > self.clock.now, "the PDU arrives later than now");
        let Aal5Pdu { vc, datagram, .. } = self.shared.pdus[pdu];
        let vc = &self.shared.vcs[vc as usize];
        match vc.ends_at_router() {
            Some(_) => {
                let last = *vc.hops.last().expect("a circuit has a line");
                self.clock.events.push(at, last, Event::PduDueAtRouter(pdu));
            }
            None => {
                let flow = self.shared.datagrams[datagram].flow as usize;
                self.clock.events.push(at, flow, Event::PduDueAtHost(pdu));
            }
        }
    }

    fn pdu_arrived(&mut self, pdu: PduId) {
        let Some(reassembled) = self.shared.pdus[pdu].reassembled else {
            unreachable!("the arrived frame is a PDU");
        };
        self.schedule_feedback(pdu);
        match reassembled {
            Pdu::Bad => {
                let router = self.shared.vcs[self.shared.pdus[pdu].vc as usize].ends_at_router();
                self.shared.lose_pdu(pdu, DropLocation::Reassembly(router), self.clock.now);
            }
            Pdu::Good => {
                let datagram = self.shared.pdus[pdu].datagram;
                let this = &mut self.shared.datagrams[datagram];
                if self.shared.pdus[pdu].efci && self.shared.window.holds(self.clock.now) {
                    self.shared.flows[this.flow as usize].rare().marked += 1;
                }
                if self.shared.pdus[pdu].packet != Aal5Pdu::NO_PACKET {
                    self.leave_circuit(pdu);
                    self.shared.release_cells(pdu, 1);
                    return;
                }
                this.arrived += 1;
                if this.arrived == this.fragments && !this.lost {
                    self.receive(datagram);
                }
            }
        }
        self.shared.release_cells(pdu, 1);
    }
}
