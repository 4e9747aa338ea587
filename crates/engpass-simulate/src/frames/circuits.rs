//! Packets that cross circuits as cells: how they enter a circuit, are sent and leave it.

use engpass_cells::{Pdu, PduId};
use engpass_frames::{CircuitQueue, Entry, Frames, Packet};
use engpass_model::queue::Backlog;
use engpass_model::wire::aal5;

use crate::cell_ports::CellNetwork;
use crate::clock::{NewEvent, NewEvents};
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::shared_state::{Aal5Pdu, SharedState};

/// What an arrived PDU contains, for the node at the end of its circuit.
pub(crate) enum PduContent {
    /// A packet, which continues at a router.
    Packet(u32),
    /// A datagram, which is now complete at its host.
    Datagram(u32),
}

impl CellNetwork {
    /// Returns the queue of a circuit that begins at a router.
    fn queue(&mut self, entry: u32) -> &mut CircuitQueue {
        self.queues[entry as usize].as_mut().expect("a circuit that begins at a router has a queue")
    }

    /// Puts a packet into the queue of a circuit that begins at a router. Returns the event of the queue's next turn, unless it is pending.
    pub(crate) fn enter_circuit(
        &mut self,
        (id, number): (u32, u32),
        now: u64,
        frames: &Frames,
        shared: &mut SharedState,
    ) -> Option<NewEvent> {
        let queue = self.queue(number);
        let port = queue.port;
        // The packet being sent may have left the queue by now.
        if queue.pdu.is_some_and(|pdu| shared.pdus[pdu].eta < now) {
            // Only to the instant before: a cell that arrives now may meet others that are not known yet. Cells that have left by now arrived before.
            self.advance(port, now - 1, shared);
        }
        let packet = shared.datagrams.packet(id);
        let bytes = frames.entries[number as usize].encapsulation.sdu(packet.ip.into()) as u32;
        let queue = self.queue(number);
        let (due, marks) = queue.join(now, packet.queued(id, bytes));
        queue.marked += u64::from(marks && shared.window.holds(now));
        shared.drop_discarded_at_circuit(frames, queue, now);
        due.map(|due| (due, port, Event::CircuitFree(number)))
    }

    /// Handles a `CircuitFree` event: sends the next packet on a circuit that begins at a router, if the line is ready for it.
    pub(crate) fn feed_circuit(
        &mut self,
        number: u32,
        now: u64,
        frames: &Frames,
        shared: &mut SharedState,
    ) -> NewEvents {
        let queue = self.queue(number);
        let (port, vc) = (queue.port, queue.vc as usize);
        if !queue.is_due(now) {
            // Outdated event: an earlier one was scheduled since.
            return [None; 2];
        }
        if queue.pdu.is_some() {
            self.advance(port, now - 1, shared);
        }
        if let (true, again) = self.wait_for_turn(number, shared, now) {
            return [again, None];
        }
        let queue = self.queue(number);
        let events = match queue.next(now) {
            Ok(chosen) => {
                let ecn = std::mem::replace(&mut shared.datagrams.packet_mut(chosen.id).ecn, chosen.ecn);
                let marks = ecn != chosen.ecn && queue.marks_when_sent();
                queue.marked += u64::from(marks && shared.window.holds(now));
                if let Some(shaper) = shared.vcs[vc].adaptive_shaper {
                    self.shapers[shaper].restart(now, &mut shared.vcs);
                }
                let pdu = shared.create_pdu(frames, chosen.id, number);
                self.queue(number).send(chosen.bytes, pdu);
                let arrival = self.emit(pdu, None, now, shared);
                self.queue(number).handed_over(shared.vcs[vc].shaper.next());
                [Some(arrival), self.wait_for_turn(number, shared, now).1]
            }
            Err(ready) => [ready.map(|ready| (ready, port, Event::CircuitFree(number))), None],
        };
        shared.drop_discarded_at_circuit(frames, self.queue(number), now);
        events
    }

    /// Returns true if the packet being sent is not over yet. Then also returns the event of the instant at which it is, or at which that may be known.
    fn wait_for_turn(&mut self, number: u32, shared: &SharedState, now: u64) -> (bool, Option<NewEvent>) {
        let queue = self.queue(number);
        let emitted = queue.pdu.map(|pdu| shared.pdus[pdu].eta);
        let (is_busy, at) = queue.wait_for_turn(emitted, now);
        (is_busy, at.map(|at| (at, queue.port, Event::CircuitFree(number))))
    }

    /// Handles the instant at which the last cell of a PDU may have reached the end of its circuit. Returns what it contains, if it is complete; the caller then
    /// releases the PDU. Also returns the next event: a later check, or feedback for the sender.
    #[inline]
    pub(crate) fn on_pdu_may_arrive(
        &mut self,
        pdu: PduId,
        now: u64,
        shared: &mut SharedState,
    ) -> (Option<PduContent>, Option<NewEvent>) {
        let vc = shared.pdus[pdu].vc as usize;
        let adapts = shared.vcs[vc].adaptive_shaper.is_some();
        loop {
            let this = &shared.pdus[pdu];
            let hop = usize::from(this.hop);
            if this.is_over(adapts) || hop == shared.vcs[vc].hops.len() {
                break;
            }
            // Only cells that have left this port by then can have reached the end of the circuit by now.
            let until = now - shared.vcs[vc].delays[hop];
            self.advance(shared.vcs[vc].hops[hop], until, shared);
            if usize::from(shared.pdus[pdu].hop) == hop {
                break;
            }
        }
        let this = &shared.pdus[pdu];
        let arrived = usize::from(this.hop) == shared.vcs[vc].hops.len();
        if this.is_over(adapts) {
            shared.release_cells(pdu, 1);
            (None, None)
        } else if arrived && this.eta <= now {
            let feedback = self.feedback(pdu, shared, now);
            (shared.pdu_arrived(pdu, now), feedback)
        } else {
            (None, Some(self.next_pdu_check(pdu, shared, now)))
        }
    }

    /// Returns the longest queue at `at` in front of the circuits that begin at a router and use this transmitter; `None` if there is no such circuit.
    /// Everything at `at` must have happened.
    pub(crate) fn backlog_before_circuits(
        &mut self,
        port: usize,
        at: u64,
        shared: &mut SharedState,
    ) -> Option<Backlog> {
        self.queues_before(port).next()?;
        // The line may have begun the last cell of a packet by now.
        self.advance(port, at, shared);
        self.queues_before(port).map(|queue| queue.backlog(at)).max_by_key(|queue| queue.bytes)
    }

    /// Returns the longest queue in the measurement window of the circuits that begin at a router and use this transmitter, and how many packets were marked.
    pub(crate) fn use_before_circuits(&self, port: usize) -> Option<(Backlog, u64)> {
        let own = self.queues_before(port).map(|queue| (queue.longest(), queue.marked));
        own.reduce(|(one, marked), (other, more)| {
            let (bytes, packets) = (one.bytes.max(other.bytes), one.packets.max(other.packets));
            (Backlog { bytes, packets }, marked + more)
        })
    }

    fn queues_before(&self, port: usize) -> impl Iterator<Item = &CircuitQueue> {
        self.queues.iter().flatten().filter(move |queue| queue.port == port)
    }

    /// Begins the measurement window of the queues in front of circuits. Everything at `from` must have happened.
    pub(crate) fn begin_window_on_circuits(&mut self, from: u64, shared: &mut SharedState) {
        for number in 0..self.queues.len() {
            let Some(queue) = &self.queues[number] else { continue };
            if queue.pdu.is_some() {
                // The line may have begun the last cell of the packet by now.
                self.advance(queue.port, from, shared);
            }
            self.queue(number as u32).begin_window(from);
        }
    }
}

impl SharedState {
    /// Drops the packets that the discipline in front of a circuit has dropped in the current call.
    fn drop_discarded_at_circuit(&mut self, frames: &Frames, queue: &mut CircuitQueue, now: u64) {
        let port = queue.port;
        while let Some((packet, cause)) = queue.dropped.pop() {
            if let Some(deferred) = &mut self.ledger.deferred {
                deferred.lost(port, 1);
            }
            if let Some(trace) = &mut self.trace {
                trace.dropped(port, now);
            }
            self.drop_packet(frames, packet.id, DropLocation::Queue(port, cause), now);
        }
    }

    /// Handles the arrival of a PDU at the end of its circuit. Returns what it contains if a node now gets it; otherwise releases the PDU.
    fn pdu_arrived(&mut self, pdu: PduId, now: u64) -> Option<PduContent> {
        let this = &mut self.pdus[pdu];
        let content = match this.reassembled.expect("the arrived frame is a PDU") {
            Pdu::Bad => {
                let router = self.vcs[this.vc as usize].ends_at_router();
                self.lose_pdu(pdu, DropLocation::Reassembly(router), now);
                None
            }
            Pdu::Good => {
                let datagram = &mut self.datagrams[this.datagram];
                if this.efci && self.window.holds(now) {
                    self.flows[datagram.flow as usize].rare().marked += 1;
                }
                let packet = std::mem::replace(&mut this.packet, Aal5Pdu::NO_PACKET);
                if packet == Aal5Pdu::NO_PACKET {
                    datagram.arrived += 1;
                    let complete = datagram.arrived == datagram.fragments && !datagram.lost;
                    complete.then_some(PduContent::Datagram(this.datagram))
                } else {
                    self.ledger.copy_snapshot_to_packet(packet, pdu);
                    Some(PduContent::Packet(packet))
                }
            }
        };
        if content.is_none() {
            self.release_cells(pdu, 1);
        }
        content
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
