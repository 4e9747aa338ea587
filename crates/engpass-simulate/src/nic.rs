//! NICs: the buffer for packets to be sent, and the senders that wait for room in it.

use std::collections::VecDeque;

use engpass_cells::{CellTrain, PduId};
use engpass_ledger::SenderState;
use engpass_model::wire::aal5;

use super::Network;
use super::event_queue::Event;
use super::ready_packet::{EgressPath, ONWARD, ReadyPacket};
use super::shared_state::Aal5Pdu;
use super::tap::Carrier;

/// The buffer of one NIC, and the senders that wait for room in it. A NIC has the index of its line's port. For frames the port knows what the buffer holds;
/// `occupied`, `leaving` and `unknown` are for cells.
#[derive(Debug)]
pub(super) struct Nic {
    pub(super) capacity: u64,
    /// Index of the NIC's host.
    pub(super) host: u32,
    occupied: u64,
    /// PDUs whose last cell leaves at a known instant, in that order: the instant, and the bytes that it frees.
    leaving: VecDeque<(u64, u32)>,
    /// Emission times of the last cells of PDUs that leave at an instant not known yet.
    unknown: VecDeque<u64>,
    waiting: VecDeque<usize>,
}

impl Nic {
    pub(super) fn new(capacity: u64, host: u32) -> Self {
        Self {
            capacity,
            host,
            occupied: 0,
            leaving: VecDeque::new(),
            unknown: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Returns true if a sender waits for room in the buffer.
    #[inline]
    pub(super) fn has_waiters(&self) -> bool {
        !self.waiting.is_empty()
    }

    #[inline]
    fn has_room(&mut self, now: u64, bytes: u64) -> bool {
        while let Some(&(left, bytes)) = self.leaving.front()
            && left <= now
        {
            self.leaving.pop_front();
            self.occupied -= u64::from(bytes);
        }
        self.occupied == 0 || self.occupied + bytes <= self.capacity
    }
}

impl Network {
    /// Passes the departures of PDUs' last cells, which the lines have computed, to the NICs, or to the queues of circuits at routers.
    pub(super) fn collect_nic_departures(&mut self) {
        let mut all = std::mem::take(&mut self.shared.nic_departures);
        for left in all.drain(..) {
            if !self.shared.is_nic[left.nic] {
                self.on_last_cell_left_router(left);
                continue;
            }
            let nic = &mut self.hosts.nics[left.nic];
            nic.leaving.push_back((left.at, left.bytes));
            let known = nic.unknown.iter().position(|emitted| *emitted == left.emitted);
            nic.unknown.remove(known.expect("a departing packet was emitted"));
        }
        // Keep the allocation.
        self.shared.nic_departures = all;
    }

    /// Returns the packet that a sender has ready: a process its fragment, an endpoint its segment, an injected sender its packet for this NIC.
    #[inline(always)]
    fn ready_packet(&self, sender: usize, nic: usize) -> ReadyPacket {
        match sender.checked_sub(self.hosts.processes.len()) {
            None => self.hosts.processes[sender].ready_packet(),
            Some(endpoint) => match self.hosts.endpoints.get(endpoint) {
                Some(this) => this.ready_packet(&self.shared.datagrams),
                // An injected sender may have packets for several NICs.
                None => self.injected.ready_packet(nic),
            },
        }
    }

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
        let ready_packet = self.with_bond_member(sender, ready_packet);
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

    /// Returns the packet with the bond member that it leaves by, chosen when it became ready; unchanged if there is no bond.
    #[inline(always)]
    fn with_bond_member(&mut self, sender: usize, ready_packet: ReadyPacket) -> ReadyPacket {
        match ready_packet.way {
            EgressPath::Bond { route } => self.choose_bond_member(sender, ready_packet, route),
            _ => ready_packet,
        }
    }

    /// Serves the first sender that waits for this NIC if there is room.
    pub(super) fn serve_waiting(&mut self, nic: u32) {
        let nic = nic as usize;
        let Some(&sender) = self.hosts.nics[nic].waiting.front() else { return };
        let ready_packet = self.with_bond_member(sender, self.ready_packet(sender, nic));
        if !self.nic_has_room(&ready_packet) {
            self.schedule_first_space_check(nic);
            return;
        }
        self.hosts.nics[nic].waiting.pop_front();
        let others = self.hosts.nics[nic].has_waiters();
        self.emit(sender, &ready_packet);
        self.frames.clear_bond_member(sender);
        match sender.checked_sub(self.hosts.processes.len()) {
            None => self.on_fragment_sent(sender),
            Some(endpoint) if endpoint < self.hosts.endpoints.len() => self.on_segment_sent(endpoint),
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
        if self.hosts.nics[nic].has_room(self.clock.now, bytes) {
            return true;
        }
        // A cell emitted now may still meet others at this instant. Therefore the port advances only to the instant before.
        if let Some(before) = self.clock.now.checked_sub(1) {
            self.advance(nic, before);
            self.collect_nic_departures();
        }
        self.hosts.nics[nic].has_room(self.clock.now, bytes)
    }

    fn schedule_first_space_check(&mut self, nic: usize) {
        let frames = self.frames.port_mut(nic).and_then(|line| line.memory(self.clock.now).1);
        let this = &self.hosts.nics[nic];
        // The line is FIFO: known departures come before unknown ones.
        let at = match frames.or(this.leaving.front().map(|(left, _)| *left)) {
            Some(left) => left,
            None => {
                let emitted = this.unknown.iter().copied().chain(self.next_begins(nic)).min();
                emitted.map_or(self.clock.now + 1, |emitted| emitted + self.cells.ports[nic].slot_at_least)
            }
        };
        self.schedule_space_check(at.max(self.clock.now + 1), nic);
    }

    /// Schedules that the first waiting sender tries again at `at`.
    fn schedule_space_check(&mut self, at: u64, nic: usize) {
        let first = *self.hosts.nics[nic].waiting.front().expect("a sender waits for room in the NIC");
        let turn = self.rank_of(first, self.ready_packet(first, nic).flow);
        self.clock.events.push(at, turn, Event::NicSpace(nic as u32));
    }

    /// Returns the rank of a sender among the senders that hand packets over at one instant: its flow, except that members of a bond can have several waiting
    /// senders of one flow.
    #[inline(always)]
    pub(super) fn rank_of(&self, sender: usize, flow: usize) -> usize {
        self.hosts.sender_ranks.get(sender).map_or(flow, |rank| *rank as usize)
    }

    /// Sends the sender's packet into the NIC now. The NIC must have room.
    #[inline(always)]
    pub(super) fn emit(&mut self, sender: usize, ready_packet: &ReadyPacket) {
        match ready_packet.way {
            EgressPath::Circuit { vc, .. } => {
                let bytes = ready_packet.memory();
                self.hosts.nics[ready_packet.nic].occupied += bytes;
                match vc.checked_sub(ONWARD) {
                    None => self.emit_cells(sender, *ready_packet, vc, bytes),
                    Some(route) => {
                        let pdu = self.create_first_pdu(sender, ready_packet, route);
                        self.hand_to_shaper(sender, pdu);
                    }
                }
            }
            EgressPath::Frames { route } => self.emit_frame(sender, ready_packet, route),
            EgressPath::Bond { .. } => unreachable!("the bond member is chosen before"),
        }
    }

    /// Sends a packet into the NIC as the cells of an AAL5 PDU with an SDU of `sdu` bytes.
    fn emit_cells(&mut self, sender: usize, ready_packet: ReadyPacket, vc: u32, sdu: u64) {
        let ReadyPacket { datagram, .. } = ready_packet;
        let cells = aal5::cells(sdu) as u32;
        let pdu = self.shared.pdus.insert(Aal5Pdu::new(vc, datagram, sdu as u32, cells + 1));
        if self.shared.trace.is_some() {
            self.tap_emitted(Carrier::Pdu(pdu), sender, &ready_packet);
        }
        self.shared.datagrams[datagram].refs += 1;
        self.hand_to_shaper(sender, pdu);
    }

    /// Passes a sender's PDU to the shaper of its circuit.
    fn hand_to_shaper(&mut self, sender: usize, pdu: PduId) {
        let vc = self.shared.pdus[pdu].vc;
        match self.shared.vcs[vc as usize].adaptive_shaper {
            Some(shaper) => self.enqueue_pdu(shaper, sender, pdu),
            None => self.emit_pdu(sender, pdu),
        }
    }

    /// Starts the emission of a PDU's cells by the shaper.
    pub(super) fn emit_pdu(&mut self, sender: usize, pdu: PduId) {
        let Aal5Pdu { vc, datagram, .. } = self.shared.pdus[pdu];
        let (has_data, now) = (self.shared.datagrams[datagram].counted, self.clock.now);
        let hop = self.shared.vcs[vc as usize].hops[0];
        let train = self.train_of(pdu);
        self.hosts.nics[hop].unknown.push_back(train.last);
        let sent = train.last + self.cells.ports[hop].slot_at_least;
        self.shared.ledger.emitted(sender, pdu, has_data, now, sent);
        self.push(pdu, train);
    }

    /// Like [`Self::emit_pdu`], for a PDU that a router sends.
    pub(super) fn emit_router_pdu(&mut self, pdu: PduId) {
        let train = self.train_of(pdu);
        self.push(pdu, train);
    }

    /// Returns the cells of a PDU with the instants at which its shaper emits them, from now on.
    fn train_of(&mut self, pdu: PduId) -> CellTrain {
        let Aal5Pdu { vc, sdu, .. } = self.shared.pdus[pdu];
        let train = self.shared.vcs[vc as usize].shaper.emit(self.clock.now, pdu, aal5::cells(sdu.into()) as u32);
        self.shared.pdus[pdu].eta = train.last;
        train
    }

    /// Adds the cells of a PDU to the channel of its circuit's first line.
    fn push(&mut self, pdu: PduId, train: CellTrain) {
        let vc = self.shared.pdus[pdu].vc;
        let (hop, entry) = (self.shared.vcs[vc as usize].hops[0], self.shared.vcs[vc as usize].entry);
        self.shared.channels[hop][entry].push(train);
        self.advance_downstream(vc);
        self.schedule_pdu_check(pdu);
    }
}
