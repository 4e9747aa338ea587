//! NICs: the buffer for packets to be sent, and the senders that wait for room in it.

use std::collections::VecDeque;

use engpass_cells::PduId;
use engpass_frames::Verdict;
use engpass_ledger::SenderState;
use engpass_model::wire::aal5;

use super::Network;
use super::cell_ports::CellNetwork;
use super::event_queue::Event;
use super::frames::with_bond_member;
use super::ready_packet::{EgressPath, ONWARD, ReadyPacket};
use super::shared_state::Aal5Pdu;
use super::tap::Carrier;

/// The buffer of one NIC, and the senders that wait for room in it. A NIC has the index of its line's port. The port knows what the buffer holds.
#[derive(Debug)]
pub(super) struct Nic {
    pub(super) capacity: u64,
    /// Index of the NIC's host.
    pub(super) host: u32,
    waiting: VecDeque<usize>,
}

impl Nic {
    pub(super) fn new(capacity: u64, host: u32) -> Self {
        Self { capacity, host, waiting: VecDeque::new() }
    }

    /// Returns true if a sender waits for room in the buffer.
    #[inline]
    pub(super) fn has_waiters(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl Network {
    /// Hands the ready fragment of a process to its NIC, or queues the process behind the senders that wait for the NIC.
    pub(super) fn hand_over(&mut self, process: u32) {
        let process = process as usize;
        if self.enter_nic_or_wait_with(process, self.hosts.processes[process].ready_packet()) {
            self.on_fragment_sent(process);
        }
    }

    /// Sends the sender's packet into its NIC, or queues the sender behind the senders that wait. Returns true if the packet has entered.
    #[inline(always)]
    pub(super) fn enter_nic_or_wait_with(&mut self, sender: usize, ready_packet: ReadyPacket) -> bool {
        let ready_packet = with_bond_member(sender, ready_packet, &mut self.frames, &self.shared.datagrams);
        let nic = ready_packet.nic;
        if !self.hosts.nics[nic].has_waiters() && self.nic_has_room(&ready_packet) {
            self.emit(sender, &ready_packet);
            self.frames.clear_bond_member(sender);
            return true;
        }
        self.shared.ledger.set_sender_state(sender, self.clock.now, SenderState::Nic);
        self.hosts.nics[nic].waiting.push_back(sender);
        if self.hosts.nics[nic].waiting.len() == 1 {
            self.schedule_first_space_check(nic);
        }
        false
    }

    /// Serves the first sender that waits for this NIC if there is room.
    pub(super) fn serve_waiting(&mut self, nic: u32) {
        let nic = nic as usize;
        let Some(&sender) = self.hosts.nics[nic].waiting.front() else { return };
        let ready_packet = self.hosts.ready_packet(sender, nic, &self.shared.datagrams, &self.injected);
        let ready_packet = with_bond_member(sender, ready_packet, &mut self.frames, &self.shared.datagrams);
        if !self.nic_has_room(&ready_packet) {
            self.schedule_first_space_check(nic);
            return;
        }
        self.hosts.nics[nic].waiting.pop_front();
        let others = self.hosts.nics[nic].has_waiters();
        self.emit(sender, &ready_packet);
        self.frames.clear_bond_member(sender);
        match sender.checked_sub(self.shared.processes) {
            None => self.on_fragment_sent(sender),
            Some(endpoint) if endpoint < self.shared.endpoints => self.on_segment_sent(endpoint),
            Some(_) => self.on_packet_sent(nic),
        }
        // An endpoint whose next packet finds no other sender waiting schedules its own turn.
        if others {
            // Other senders' packets may fit at this instant, after everything that this packet has caused.
            self.schedule_space_check(self.clock.now, nic);
        }
    }

    /// Returns true if the NIC buffer has room for the packet now.
    #[inline(always)]
    pub(super) fn nic_has_room(&mut self, ready_packet: &ReadyPacket) -> bool {
        let nic = ready_packet.nic;
        let bytes = ready_packet.memory();
        // A frame line knows its departures at once; departures of cells must be computed.
        if let Some(line) = self.frames.port_mut(nic) {
            let (occupied, _) = line.memory(self.clock.now);
            return occupied == 0 || occupied + bytes <= self.hosts.nics[nic].capacity;
        }
        let (now, capacity) = (self.clock.now, self.hosts.nics[nic].capacity);
        let has_room = |cells: &mut CellNetwork| {
            cells.ports[nic].buffer.as_mut().expect("a NIC has a buffer").has_room(now, bytes, capacity)
        };
        if has_room(&mut self.cells) {
            return true;
        }
        // A cell emitted now may still meet others at this instant. Therefore the port advances only to the instant before.
        if let Some(before) = now.checked_sub(1) {
            self.advance_port(nic, before);
        }
        has_room(&mut self.cells)
    }

    fn schedule_first_space_check(&mut self, nic: usize) {
        let now = self.clock.now;
        let at = match self.frames.port_mut(nic) {
            Some(line) => line.memory(now).1.unwrap_or(now + 1),
            None => self.cells.next_departure(nic, now, &self.shared),
        };
        self.schedule_space_check(at.max(now + 1), nic);
    }

    /// Schedules that the first waiting sender tries again at `at`.
    fn schedule_space_check(&mut self, at: u64, nic: usize) {
        let first = *self.hosts.nics[nic].waiting.front().expect("a sender waits for room in the NIC");
        let flow = self.hosts.ready_packet(first, nic, &self.shared.datagrams, &self.injected).flow;
        let turn = self.hosts.rank_of(first, flow);
        self.clock.events.push(at, turn, Event::NicSpace(nic as u32));
    }

    /// Sends the sender's packet into the NIC now. The NIC must have room.
    #[inline(always)]
    pub(super) fn emit(&mut self, sender: usize, ready_packet: &ReadyPacket) {
        match ready_packet.way {
            EgressPath::Circuit { vc, .. } => {
                let bytes = ready_packet.memory();
                let buffer = &mut self.cells.ports[ready_packet.nic].buffer;
                buffer.as_mut().expect("a NIC has a buffer").occupied += bytes;
                let pdu = match vc.checked_sub(ONWARD) {
                    None => self.create_pdu(sender, ready_packet, vc, bytes),
                    Some(route) => self.create_first_pdu(sender, ready_packet, route),
                };
                self.hand_to_shaper(sender, pdu);
            }
            EgressPath::Frames { route } => self.emit_frame(sender, ready_packet, route),
            EgressPath::Bond { .. } => unreachable!("the bond member is chosen before"),
        }
    }

    /// Passes a sender's PDU to the shaper of its circuit. An adaptive shaper starts to emit it when the PDUs before it are emitted.
    pub(super) fn hand_to_shaper(&mut self, sender: usize, pdu: PduId) {
        let vc = &self.shared.vcs[self.shared.pdus[pdu].vc as usize];
        let next = vc.shaper.next();
        let Some(number) = vc.adaptive_shaper else { return self.emit_pdu(Some(sender), pdu) };
        let shaper = &mut self.cells.shapers[number];
        if !shaper.enqueue(sender, pdu) {
            self.shared.ledger.note_shaper_wait(sender, self.clock.now, next);
        } else if self.clock.now >= next {
            self.start_next_pdu(number as u32);
        } else {
            shaper.schedule_next_pdu(number, &mut self.shared, &mut self.clock);
        }
    }

    /// Starts the emission of the first waiting PDU, at the shaper's current rate.
    pub(super) fn start_next_pdu(&mut self, number: u32) {
        let number = number as usize;
        let this = &mut self.cells.shapers[number];
        let (sender, pdu) = this.waiting.pop_front().expect("a PDU waits at the shaper");
        this.restart(self.clock.now, &mut self.shared.vcs);
        self.emit_pdu(Some(sender), pdu);
        self.cells.shapers[number].schedule_next_pdu(number, &mut self.shared, &mut self.clock);
    }

    /// Starts the emission of a PDU's cells by the shaper of its circuit. At a router there is no `sender`.
    pub(super) fn emit_pdu(&mut self, sender: Option<usize>, pdu: PduId) {
        self.cells.emit(pdu, sender, self.clock.now, &mut self.shared);
        self.cells.collect_departures(&mut self.frames, &self.shared.vcs);
        self.cells.schedule_pdu_check(pdu, &self.shared, &mut self.clock);
    }

    /// Creates the AAL5 PDU of a packet, with an SDU of `sdu` bytes, on a circuit that leads from host to host.
    fn create_pdu(&mut self, sender: usize, ready_packet: &ReadyPacket, vc: u32, sdu: u64) -> PduId {
        let datagram = ready_packet.datagram;
        let cells = aal5::cells(sdu) as u32;
        let pdu = self.shared.pdus.insert(Aal5Pdu::new(vc, datagram, sdu as u32, cells + 1));
        if self.shared.trace.is_some() {
            self.shared.tap_emitted(Carrier::Pdu(pdu), sender, ready_packet, &self.hosts, &self.injected);
        }
        self.shared.datagrams[datagram].refs += 1;
        pdu
    }

    /// Creates the PDU of a host's packet whose route begins with a circuit and goes on behind it.
    fn create_first_pdu(&mut self, sender: usize, ready_packet: &ReadyPacket, route: u32) -> PduId {
        let id = self.shared.packet_of(&self.frames, sender, ready_packet, route);
        if self.shared.trace.is_some() {
            self.shared.tap_emitted(Carrier::Packet(id), sender, ready_packet, &self.hosts, &self.injected);
        }
        let first = self.frames.routes[route as usize].first;
        let Verdict::Circuit(number) = self.frames.steps[first as usize].verdict else {
            unreachable!("the route begins with a circuit")
        };
        self.shared.create_pdu(&self.frames, id, number)
    }
}
