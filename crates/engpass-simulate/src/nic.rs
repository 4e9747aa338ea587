//! NICs: the buffer for packets to be sent, and the senders that wait for room in it.

use std::collections::VecDeque;

use engpass_cells::PduId;
use engpass_frames::{Frames, Verdict};
use engpass_ledger::SenderState;
use engpass_model::wire::aal5;

use super::Network;
use super::cell_ports::CellNetwork;
use super::event_queue::Event;
use super::frames::with_bond_member;
use super::host::Hosts;
use super::injection::InjectedSenders;
use super::ready_packet::{EgressPath, ONWARD, ReadyPacket};
use super::shared_state::{Aal5Pdu, SharedState};
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
    /// Hands the ready packet of a process or endpoint to its NIC, or queues the sender behind the senders that wait for the NIC.
    pub(super) fn hand_over(&mut self, sender: usize, ready_packet: ReadyPacket) {
        if self.enter_nic_or_wait_with(sender, ready_packet) {
            let next = self.hosts.packet_sent(sender, &mut self.shared, self.clock.now);
            self.act(next);
        }
    }

    /// Like [`Self::hand_over`], for an endpoint.
    #[inline(never)]
    pub(super) fn hand_over_segment(&mut self, endpoint: usize) {
        let ready_packet = self.hosts.endpoints[endpoint].ready_packet(&self.shared.datagrams);
        self.hand_over(self.shared.processes + endpoint, ready_packet);
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
        if sender < self.shared.processes + self.shared.endpoints {
            let next = self.hosts.packet_sent(sender, &mut self.shared, self.clock.now);
            self.act(next);
        } else {
            self.on_packet_sent(nic);
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
            self.cells.advance(nic, before, &mut self.shared);
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
                let parts = (&self.frames, &self.hosts, &self.injected);
                let pdu = self.shared.pdu_of(sender, ready_packet, vc, parts);
                let events = self.cells.hand_to_shaper(sender, pdu, self.clock.now, &mut self.shared);
                self.clock.schedule_all(events);
            }
            EgressPath::Frames { route } => {
                let id = self.shared.packet_of(&self.frames, sender, ready_packet, route);
                if self.shared.trace.is_some() {
                    let carrier = Carrier::Packet(id);
                    self.shared.tap_emitted(carrier, sender, ready_packet, &self.hosts, &self.injected);
                }
                let has_data = self.shared.datagrams[ready_packet.datagram].counted;
                let progress = self.links().emit(id, sender, has_data);
                self.proceed(id, progress, false);
            }
            EgressPath::Bond { .. } => unreachable!("the bond member is chosen before"),
        }
    }
}

impl SharedState {
    /// Creates the PDU of a host's packet on the circuit direction `vc`. From [`ONWARD`] on, `vc` is a route that begins with a circuit and goes on behind it.
    fn pdu_of(
        &mut self,
        sender: usize,
        ready_packet: &ReadyPacket,
        vc: u32,
        (frames, hosts, injected): (&Frames, &Hosts, &InjectedSenders),
    ) -> PduId {
        let Some(route) = vc.checked_sub(ONWARD) else {
            let (datagram, sdu) = (ready_packet.datagram, ready_packet.memory());
            let cells = aal5::cells(sdu) as u32;
            let pdu = self.pdus.insert(Aal5Pdu::new(vc, datagram, sdu as u32, cells + 1));
            if self.trace.is_some() {
                self.tap_emitted(Carrier::Pdu(pdu), sender, ready_packet, hosts, injected);
            }
            self.datagrams[datagram].refs += 1;
            return pdu;
        };
        let id = self.packet_of(frames, sender, ready_packet, route);
        self.tap_emitted(Carrier::Packet(id), sender, ready_packet, hosts, injected);
        let first = frames.routes[route as usize].first;
        let Verdict::Circuit(number) = frames.steps[first as usize].verdict else {
            unreachable!("the route begins with a circuit")
        };
        self.create_pdu(frames, id, number)
    }
}
