//! Packets that cross circuits as cells: how they enter a circuit, are sent and leave it.

use engpass_cells::{Pdu, PduId};
use engpass_frames::{Entry, Frames, Packet};
use engpass_model::queue::Backlog;
use engpass_model::wire::aal5;

use crate::Network;
use crate::clock::Clock;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::shared_state::{Aal5Pdu, NicDeparture, SharedState, Vc};

impl Network {
    /// Puts a packet into the queue of a circuit that begins at a router.
    #[inline(never)]
    pub(super) fn enter_circuit(&mut self, id: u32, place: u32, number: u32, at: u64) {
        debug_assert_eq!(at, self.clock.now, "a packet enters a circuit at the present instant");
        let step = self.frames.steps[place as usize];
        self.shared.datagrams.packet_mut(id).place = place;
        if !self.passes_router(id, step, at) {
            return;
        }
        let entry = &mut self.frames.entries[number as usize];
        let position = entry.ports[0];
        // The packet being sent may have left the queue by now.
        if entry.queue().pdu.is_some_and(|pdu| self.shared.pdus[pdu].eta < at) {
            // Only to the instant before: a cell that arrives now may meet others that are not known yet. Cells that have left by now arrived before.
            self.advance_port(position, at - 1);
        }
        let entry = &mut self.frames.entries[number as usize];
        let packet = self.shared.datagrams.packet(id);
        let bytes = entry.encapsulation.sdu(packet.ip.into()) as u32;
        let view = packet.queued(id, bytes);
        let (due, marks) = entry.queue().join(at, view, &mut self.frames.dropped);
        if let Some(due) = due {
            self.clock.events.push(due, position, Event::CircuitFree(number));
        }
        if marks {
            self.frames.marks.add(position, self.shared.window.holds(at));
        }
        self.shared.drop_discarded_at_circuit(&mut self.frames, position, self.clock.now);
    }

    /// Handles a `CircuitFree` event: sends the next packet on a circuit that begins at a router, if the line is ready for it.
    pub(crate) fn feed_circuit(&mut self, number: u32) {
        let entry = &mut self.frames.entries[number as usize];
        let (position, vc) = (entry.ports[0], entry.vc as usize);
        if !entry.queue().is_due(self.clock.now) {
            // Outdated event: an earlier one was scheduled since.
            return;
        }
        if entry.queue().pdu.is_some() {
            self.advance_port(position, self.clock.now - 1);
        }
        if is_line_busy(number, &mut self.frames, &self.shared, &mut self.clock) {
            return;
        }
        let entry = &mut self.frames.entries[number as usize];
        match entry.queue().next(self.clock.now, &mut self.frames.dropped) {
            Ok(chosen) => {
                let ecn = std::mem::replace(&mut self.shared.datagrams.packet_mut(chosen.id).ecn, chosen.ecn);
                let entry = &mut self.frames.entries[number as usize];
                if ecn != chosen.ecn && entry.queue().marks_when_sent() {
                    self.frames.marks.add(position, self.shared.window.holds(self.clock.now));
                }
                if let Some(shaper) = self.shared.vcs[vc].adaptive_shaper {
                    self.cells.shapers[shaper].restart(self.clock.now, &mut self.shared.vcs);
                }
                let pdu = self.shared.create_pdu(&self.frames, chosen.id, number);
                self.frames.entries[number as usize].queue().send(chosen.bytes, pdu);
                self.emit_pdu(None, pdu);
                is_line_busy(number, &mut self.frames, &self.shared, &mut self.clock);
            }
            Err(Some(ready)) => self.clock.events.push(ready, position, Event::CircuitFree(number)),
            Err(None) => {}
        }
        self.shared.drop_discarded_at_circuit(&mut self.frames, position, self.clock.now);
    }

    /// Takes all arrivals at a cell port up to and including `until`.
    pub(crate) fn advance_port(&mut self, port: usize, until: u64) {
        self.cells.advance(port, until, &mut self.shared);
        self.cells.collect_departures(&mut self.frames, &self.shared.vcs);
    }

    /// Takes all arrivals up to and including `until` at every cell port.
    pub(crate) fn advance_all(&mut self, until: u64) {
        for port in 0..self.cells.ports.len() {
            self.cells.advance(port, until, &mut self.shared);
        }
        self.cells.collect_departures(&mut self.frames, &self.shared.vcs);
    }

    /// Handles the instant at which the last cell of a PDU may have reached the end of its circuit.
    pub(crate) fn on_pdu_may_arrive(&mut self, pdu: PduId) {
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
            self.cells.advance(self.shared.vcs[vc].hops[hop], until, &mut self.shared);
            if usize::from(self.shared.pdus[pdu].hop) == hop {
                break;
            }
        }
        self.cells.collect_departures(&mut self.frames, &self.shared.vcs);
        let this = &self.shared.pdus[pdu];
        let arrived = usize::from(this.hop) == self.shared.vcs[vc].hops.len();
        if this.is_over(adapts) {
            self.shared.release_cells(pdu, 1);
        } else if arrived && this.eta <= self.clock.now {
            self.pdu_arrived(pdu);
        } else {
            self.cells.schedule_pdu_check(pdu, &self.shared, &mut self.clock);
        }
    }

    fn pdu_arrived(&mut self, pdu: PduId) {
        let Some(reassembled) = self.shared.pdus[pdu].reassembled else {
            unreachable!("the arrived frame is a PDU");
        };
        self.cells.schedule_feedback(pdu, &self.shared, &mut self.clock);
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

    /// Returns the longest queue at `at` in front of the circuits that begin at a router and use this transmitter; `None` if there is no such circuit.
    /// Everything at `at` must have happened.
    pub(crate) fn backlog_before_circuits(&mut self, port: usize, at: u64) -> Option<Backlog> {
        let is_here = |entry: &&Entry| entry.queue.is_some() && entry.ports[0] == port;
        self.frames.entries.iter().find(is_here)?;
        // The line may have begun the last cell of a packet by now.
        self.advance_port(port, at);
        let queues = self.frames.entries.iter().filter(is_here).filter_map(|entry| entry.queue.as_ref());
        queues.map(|queue| queue.backlog(at)).max_by_key(|queue| queue.bytes)
    }

    /// Begins the measurement window of the queues in front of circuits. Everything at `from` must have happened.
    pub(crate) fn begin_window_on_circuits(&mut self, from: u64) {
        for number in 0..self.frames.entries.len() {
            let entry = &mut self.frames.entries[number];
            let position = entry.ports[0];
            let Some(queue) = &mut entry.queue else { continue };
            if queue.pdu.is_some() {
                // The line may have begun the last cell of the packet by now.
                self.advance_port(position, from);
            }
            self.frames.entries[number].queue().begin_window(from);
        }
    }

    /// Forwards the packet of a PDU that has arrived at the end of its circuit.
    pub(crate) fn leave_circuit(&mut self, pdu: u32) {
        let packet = std::mem::replace(&mut self.shared.pdus[pdu].packet, Aal5Pdu::NO_PACKET);
        self.shared.ledger.copy_snapshot_to_packet(packet, pdu);
        self.receive_or_forward(packet);
    }
}

/// Returns true if the line has not begun the last cell of the packet being sent. Then schedules a `CircuitFree` event for the instant at which it has, or at
/// which that may be known.
fn is_line_busy(number: u32, frames: &mut Frames, shared: &SharedState, clock: &mut Clock) -> bool {
    let entry = &mut frames.entries[number as usize];
    let position = entry.ports[0];
    let queue = entry.queue();
    let emitted = queue.pdu.map(|pdu| shared.pdus[pdu].eta);
    let (is_busy, asks_at) = queue.wait_for_line(emitted, clock.now);
    if let Some(at) = asks_at {
        clock.events.push(at, position, Event::CircuitFree(number));
    }
    is_busy
}

/// Records when the last cell of a PDU leaves the router on which its circuit begins. The next packet is chosen when the line begins that cell, so that a
/// shaper keeps its pace, but no earlier than a picosecond after the cell's emission, because this is not known before.
pub(crate) fn on_last_cell_left_router(
    left: NicDeparture,
    slot_at_least: u64,
    frames: &mut Frames,
    vcs: &[Vc],
) {
    let begins = (left.at - slot_at_least).max(left.emitted + 1);
    for entry in &mut frames.entries {
        let Some(queue) = entry.queue.as_mut().filter(|queue| queue.pdu == Some(left.pdu)) else {
            continue;
        };
        // An adaptive shaper begins its next PDU no earlier than its pace allows.
        let vc = &vcs[entry.vc as usize];
        let turn = vc.adaptive_shaper.map_or(0, |_| vc.shaper.next());
        queue.ends_at(begins.max(turn));
    }
}

impl SharedState {
    /// Drops the packets that the discipline in front of a circuit has dropped in the current call.
    pub(super) fn drop_discarded_at_circuit(&mut self, frames: &mut Frames, port: usize, now: u64) {
        while let Some((packet, cause)) = frames.dropped.pop() {
            if let Some(deferred) = &mut self.ledger.deferred {
                deferred.lost(port, 1);
            }
            if let Some(trace) = &mut self.trace {
                trace.dropped(port, now);
            }
            self.drop_packet(frames, packet.id, DropLocation::Queue(port, cause), now);
        }
    }

    /// Converts a packet into a PDU on a circuit. When all cells have arrived, the packet continues at the step after the circuit.
    pub(crate) fn create_pdu(&mut self, frames: &Frames, id: u32, number: u32) -> u32 {
        let place = self.datagrams.packet(id).place;
        let datagram = self.datagrams.packet(id).datagram;
        // The frame lines crossed so far are recorded now; on the lines of the circuit, the cells are.
        self.track_per_hop(datagram);
        self.record_hops_carried(frames, id);
        let step = frames.steps[place as usize];
        let since = frames.lines_before(place + 1);
        let packet = self.datagrams.packet_mut(id);
        (packet.place, packet.since) = (place + 1, since);
        let ip = packet.ip;
        let Entry { vc, encapsulation, ref ports, .. } = frames.entries[number as usize];
        if frames.is_branched(place) || self.ledger.tracks_packets() {
            let packet = self.datagrams.packet(id);
            let piece = frames.piece(id, &Packet { place, ..*packet }, place);
            for line_index in step.line_index..step.line_index + ports.len() as u16 {
                self.ledger.track_packet(datagram, line_index, piece);
            }
        }
        let sdu = encapsulation.sdu(ip.into());
        let pdu = self.pdus.insert(Aal5Pdu {
            packet: id,
            line_index: step.line_index,
            ..Aal5Pdu::new(vc, datagram, sdu as u32, aal5::cells(sdu) as u32 + 1)
        });
        self.datagrams[datagram].refs += 1;
        self.ledger.copy_snapshot_to_pdu(pdu, id);
        if let Some(trace) = &mut self.trace {
            trace.carries(pdu, id, self.datagrams.packet(id).ttl);
        }
        pdu
    }
}
