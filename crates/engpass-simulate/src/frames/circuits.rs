//! Packets that cross circuits as cells: how they enter a circuit, are sent and leave it.

use engpass_frames::{Entry, Packet, Verdict};
use engpass_model::queue::Backlog;
use engpass_model::wire::aal5;

use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::ready_packet::ReadyPacket;
use crate::shared_state::{Aal5Pdu, NicDeparture};
use crate::tap::Carrier;

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
            self.catch_up_departures(position);
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
        self.drop_discarded_at_circuit(position);
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
            self.catch_up_departures(position);
        }
        if self.is_line_busy(number) {
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
                    let pace = self.cells.shapers[shaper].rate.begin();
                    self.shared.vcs[vc].shaper.restart(self.clock.now, pace);
                }
                let pdu = self.create_pdu(chosen.id, number);
                self.frames.entries[number as usize].queue().send(chosen.bytes, pdu);
                self.emit_router_pdu(pdu);
                self.is_line_busy(number);
            }
            Err(Some(ready)) => self.clock.events.push(ready, position, Event::CircuitFree(number)),
            Err(None) => {}
        }
        self.drop_discarded_at_circuit(position);
    }

    /// Returns the longest queue at `at` in front of the circuits that begin at a router and use this transmitter; `None` if there is no such circuit.
    /// Everything at `at` must have happened.
    pub(crate) fn backlog_before_circuits(&mut self, port: usize, at: u64) -> Option<Backlog> {
        let is_here = |entry: &&Entry| entry.queue.is_some() && entry.ports[0] == port;
        self.frames.entries.iter().find(is_here)?;
        // The line may have begun the last cell of a packet by now.
        self.advance(port, at);
        self.collect_nic_departures();
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
                self.advance(position, from);
                self.collect_nic_departures();
            }
            self.frames.entries[number].queue().begin_window(from);
        }
    }

    /// Advances a cell port to the instant before now, so that departures of the cells that arrived before are known.
    fn catch_up_departures(&mut self, position: usize) {
        // Only to the instant before: a cell that arrives now may meet others that are not known yet. Cells that have left by now arrived before.
        self.advance(position, self.clock.now - 1);
        self.collect_nic_departures();
    }

    /// Returns true if the line has not begun the last cell of the packet being sent. Then schedules a `CircuitFree` event for the instant at which it has, or at
    /// which that may be known.
    fn is_line_busy(&mut self, number: u32) -> bool {
        let entry = &mut self.frames.entries[number as usize];
        let position = entry.ports[0];
        let queue = entry.queue();
        let emitted = queue.pdu.map(|pdu| self.shared.pdus[pdu].eta);
        let (is_busy, asks_at) = queue.wait_for_line(emitted, self.clock.now);
        if let Some(at) = asks_at {
            self.clock.events.push(at, position, Event::CircuitFree(number));
        }
        is_busy
    }

    /// Records when the last cell of a PDU leaves the router on which its circuit begins. The next packet is chosen when the line begins that cell, so that a
    /// shaper keeps its pace, but no earlier than a picosecond after the cell's emission, because this is not known before.
    pub(crate) fn on_last_cell_left_router(&mut self, left: NicDeparture) {
        let begins = (left.at - self.cells.ports[left.nic].slot_at_least).max(left.emitted + 1);
        for entry in &mut self.frames.entries {
            let Some(queue) = entry.queue.as_mut().filter(|queue| queue.pdu == Some(left.pdu)) else {
                continue;
            };
            // An adaptive shaper begins its next PDU no earlier than its pace allows.
            let vc = &self.shared.vcs[entry.vc as usize];
            let turn = vc.adaptive_shaper.map_or(0, |_| vc.shaper.next());
            queue.ends_at(begins.max(turn));
        }
    }

    /// Drops the packets that the discipline in front of a circuit has dropped in the current call.
    fn drop_discarded_at_circuit(&mut self, port: usize) {
        while let Some((packet, cause)) = self.frames.dropped.pop() {
            if let Some(deferred) = &mut self.shared.ledger.deferred {
                deferred.lost(port, 1);
            }
            if let Some(trace) = &mut self.shared.trace {
                trace.dropped(port, self.clock.now);
            }
            self.shared.drop_packet(&self.frames, packet.id, DropLocation::Queue(port, cause), self.clock.now);
        }
    }

    /// Converts a packet into a PDU on a circuit. When all cells have arrived, the packet continues at the step after the circuit.
    fn create_pdu(&mut self, id: u32, number: u32) -> u32 {
        let place = self.shared.datagrams.packet(id).place;
        let datagram = self.shared.datagrams.packet(id).datagram;
        // The frame lines crossed so far are recorded now; on the lines of the circuit, the cells are.
        self.shared.track_per_hop(datagram);
        self.shared.record_hops_carried(&self.frames, id);
        let step = self.frames.steps[place as usize];
        let since = self.frames.lines_before(place + 1);
        let packet = self.shared.datagrams.packet_mut(id);
        (packet.place, packet.since) = (place + 1, since);
        let ip = packet.ip;
        let Entry { vc, encapsulation, ref ports, .. } = self.frames.entries[number as usize];
        if self.frames.is_branched(place) || self.shared.ledger.tracks_packets() {
            let packet = self.shared.datagrams.packet(id);
            let piece = self.frames.piece(id, &Packet { place, ..*packet }, place);
            for line_index in step.line_index..step.line_index + ports.len() as u16 {
                self.shared.ledger.track_packet(datagram, line_index, piece);
            }
        }
        let sdu = encapsulation.sdu(ip.into());
        let pdu = self.shared.pdus.insert(Aal5Pdu {
            packet: id,
            line_index: step.line_index,
            ..Aal5Pdu::new(vc, datagram, sdu as u32, aal5::cells(sdu) as u32 + 1)
        });
        self.shared.datagrams[datagram].refs += 1;
        self.shared.ledger.copy_snapshot_to_pdu(pdu, id);
        if let Some(trace) = &mut self.shared.trace {
            trace.carries(pdu, id, self.shared.datagrams.packet(id).ttl);
        }
        pdu
    }

    /// Creates the PDU of a host's packet whose route begins with a circuit and goes on behind it.
    pub(crate) fn create_first_pdu(&mut self, sender: usize, ready_packet: &ReadyPacket, route: u32) -> u32 {
        let id = self.shared.packet_of(&self.frames, sender, ready_packet, route);
        if self.shared.trace.is_some() {
            self.tap_emitted(Carrier::Packet(id), sender, ready_packet);
        }
        let first = self.frames.routes[route as usize].first;
        let Verdict::Circuit(number) = self.frames.steps[first as usize].verdict else {
            unreachable!("the route begins with a circuit")
        };
        self.create_pdu(id, number)
    }

    /// Forwards the packet of a PDU that has arrived at the end of its circuit.
    pub(crate) fn leave_circuit(&mut self, pdu: u32) {
        let packet = std::mem::replace(&mut self.shared.pdus[pdu].packet, Aal5Pdu::NO_PACKET);
        self.shared.ledger.copy_snapshot_to_packet(packet, pdu);
        self.receive_or_forward(packet);
    }

    /// Forwards a packet that a router's forwarding engine has finished, or that needs no engine, to a step without lookahead.
    #[inline(never)]
    pub(super) fn leave_engine(&mut self, packet: u32, place: u32) {
        let step = self.frames.steps[place as usize];
        match step.verdict {
            Verdict::Choose(decision) => self.choose_path(packet, step, decision),
            Verdict::Up => match self.shared.is_of_tree(self.shared.datagrams.packet(packet).datagram) {
                true => self.copy_onward(packet),
                false => self.on_packet_at_host(packet),
            },
            Verdict::Unwrap(_) => self.leave_tunnel(packet, place),
            _ => self.forward(packet, place, self.clock.now, true),
        }
    }
}
