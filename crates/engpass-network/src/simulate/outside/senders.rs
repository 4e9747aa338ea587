//! Senders outside: their packets wait here for the memory of their host's NIC, in the order in which they came.

use std::collections::{BTreeMap, VecDeque};

use engpass_ledger::{SenderState, Trail};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::{Packet, Transport};
use crate::simulate::Network;
use crate::simulate::datagrams::{Datagram, Destination};
use crate::simulate::sending::{EgressPath, ReadyPacket};

/// Most flows that disciplines are told apart; further ones share their numbers.
const MOST_FLOWS: u32 = 4096;

/// All packets of one host to another.
#[derive(Clone, Debug)]
pub(in crate::simulate) struct Sender {
    pub(in crate::simulate) flow: usize,
    pub(in crate::simulate) host: usize,
    pub(in crate::simulate) nic: usize,
    pub(in crate::simulate) way: EgressPath,
    /// The host cuts packets that are longer.
    pub(in crate::simulate) mtu: u64,
    /// Packets that wait, the one at hand included.
    pub(in crate::simulate) queued: u32,
}

/// The senders outside. They are numbered behind processes and endpoints.
#[derive(Debug)]
pub(in crate::simulate) struct InjectedSenders {
    senders: Vec<Sender>,
    /// What waits for each NIC.
    gates: Vec<NicQueue>,
    /// By host: packets that wait.
    backlogs: Vec<usize>,
    /// Numbers of flows by sender and transport; and the last one that was looked up.
    flows: BTreeMap<(u32, Transport), u32>,
    last: Option<((u32, Transport), u32)>,
}

/// What waits for a NIC: the first packet is at hand.
#[derive(Clone, Debug, Default)]
struct NicQueue {
    waiting: VecDeque<QueuedPacket>,
    /// The packet at hand, cut for its way, the fragment that comes next, and its datagram.
    at_hand: Option<(Fragments, u64, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    sender: usize,
    /// Of a bond, that of the member that was chosen for it.
    way: EgressPath,
    packet: Packet,
    /// When it came, and how many had come before it.
    since: u64,
    number: u64,
    /// What is copied from it: a number that groups know.
    copies: u64,
}

impl InjectedSenders {
    pub(in crate::simulate) fn new(senders: Vec<Sender>, ports: usize) -> Self {
        let gates = if senders.is_empty() { 0 } else { ports };
        let hosts = senders.iter().map(|sender| sender.host + 1).max().unwrap_or(0);
        Self {
            senders,
            gates: vec![NicQueue::default(); gates],
            backlogs: vec![0; hosts],
            flows: BTreeMap::new(),
            last: None,
        }
    }

    /// The fragment that is at hand for a NIC.
    pub(in crate::simulate) fn sending(&self, nic: usize) -> ReadyPacket {
        let gate = &self.gates[nic];
        let (cut, fragment, datagram) = gate.at_hand.expect("what is handed over is at hand");
        let QueuedPacket { sender, way, .. } = *gate.waiting.front().expect("it is the first that waits");
        ReadyPacket {
            flow: self.senders[sender].flow,
            nic,
            way,
            ip: cut.payload(fragment) + IP_HEADER_BYTES,
            datagram,
            offset: (fragment * cut.full / 8) as u16,
        }
    }

    /// Where the fragment that a NIC has at hand begins in its packet, and whether others follow it.
    pub(in crate::simulate) fn cut(&self, nic: usize) -> (u64, bool) {
        let at_hand = self.gates.get(nic).and_then(|gate| gate.at_hand);
        at_hand.map_or((0, false), |(cut, fragment, _)| (fragment * cut.full, fragment + 1 < cut.count))
    }

    /// All packets of one way.
    pub(super) fn sender(&self, way: u32) -> Sender {
        self.senders[way as usize].clone()
    }

    /// Packets of a host that wait for its NICs.
    pub(super) fn backlog(&self, host: usize) -> usize {
        self.backlogs.get(host).copied().unwrap_or(0)
    }

    /// The number that disciplines know a flow by.
    #[inline]
    pub(super) fn number_of(&mut self, sender: u32, transport: Transport) -> u32 {
        match self.last {
            Some((last, number)) if last == (sender, transport) => number,
            _ => {
                let number = self.find_number(sender, transport);
                self.last = Some(((sender, transport), number));
                number
            }
        }
    }

    /// The number by which disciplines know the messages of a router about a way, or ARP packets. Routers stand behind the senders, and ARP behind all routers.
    pub(in crate::simulate) fn number_of_control(&mut self, number: usize) -> u32 {
        self.find_number((self.senders.len() + number) as u32, Transport::default())
    }

    fn find_number(&mut self, sender: u32, transport: Transport) -> u32 {
        let next = self.flows.len() as u32;
        if next < MOST_FLOWS {
            return *self.flows.entry((sender, transport)).or_insert(next);
        }
        let Transport { protocol, ports: [from, to] } = transport;
        let words = [u32::from(from) << 16 | u32::from(to), protocol.into(), sender];
        let spread =
            words.iter().fold(0, |hash: u32, word| (hash ^ word).wrapping_mul(0x9e37_79b1).rotate_left(15));
        self.flows.get(&(sender, transport)).copied().unwrap_or(spread % MOST_FLOWS)
    }
}

impl Network {
    /// The packet number `number` comes from outside, now.
    pub(super) fn on_packet_injected(&mut self, sender: usize, packet: Packet, number: u64, copies: u64) {
        if let Some(fates) = &mut self.fabric.fates {
            fates.count_in(1);
        }
        let (nic, way) = self.way_of_packet(sender, &packet);
        let queued = QueuedPacket { sender, way, packet, since: self.now, number, copies };
        if copies > 0 {
            self.count_copies_in(copies);
        } else if self.try_enter_nic_directly(&queued, nic) {
            return;
        }
        let this = &mut self.outsiders.senders[sender];
        this.queued += 1;
        self.outsiders.backlogs[this.host] += 1;
        let gate = &mut self.outsiders.gates[nic];
        gate.waiting.push_back(queued);
        if gate.waiting.len() == 1 {
            self.drain_nic_queue(nic);
        } else {
            let place = self.processes.len() + self.endpoints.len() + sender;
            self.fabric.ledger.waits(place, self.now, SenderState::Nic);
        }
    }

    /// The NIC of a packet, and its way: of a bond, those of the member that carries it.
    #[inline(always)]
    fn way_of_packet(&mut self, sender: usize, packet: &Packet) -> (usize, EgressPath) {
        let Sender { nic, way, mtu, .. } = self.outsiders.senders[sender];
        let EgressPath::Bond { route } = way else { return (nic, way) };
        let heads = self.frames.choices.heads_outside(self.outsiders.senders[sender].flow, packet.transport);
        let route = self.choose_member(route, &heads, u64::from(packet.bytes) > mtu);
        (self.frames.first_port(route), EgressPath::Frames { route })
    }

    /// Hand over a packet that need not be cut, if nothing waits for its NIC and there is room. What waits comes to the same, by way of the gate.
    fn try_enter_nic_directly(&mut self, first: &QueuedPacket, nic: usize) -> bool {
        let QueuedPacket { sender, way, packet, .. } = *first;
        let Sender { flow, mtu, .. } = self.outsiders.senders[sender];
        let ip = u64::from(packet.bytes).max(IP_HEADER_BYTES);
        if ip > mtu || !self.outsiders.gates[nic].waiting.is_empty() {
            return false;
        }
        let mut sending = ReadyPacket { flow, nic, way, ip, datagram: u32::MAX, offset: 0 };
        if self.nics[nic].has_waiters() || !self.nic_has_room(&sending) {
            return false;
        }
        sending.datagram = self.begin_outside(first, 1, false);
        let place = self.processes.len() + self.endpoints.len() + sender;
        self.emit(place, &sending);
        self.fabric.ledger.waits(place, self.now, SenderState::Application);
        self.datagram_sent(sending.datagram);
        true
    }

    /// Hand over what waits for a NIC, until something of it finds no room.
    fn drain_nic_queue(&mut self, nic: usize) {
        while let Some(&first) = self.outsiders.gates[nic].waiting.front() {
            if self.outsiders.gates[nic].at_hand.is_none() {
                self.begin_head_packet(nic, &first);
            }
            let place = self.processes.len() + self.endpoints.len() + first.sender;
            if !self.enter_nic_or_wait_with(place, self.outsiders.sending(nic)) {
                return;
            }
            self.finish_head_fragment(nic);
        }
    }

    /// The first packet that waits for a NIC is at hand.
    fn begin_head_packet(&mut self, nic: usize, first: &QueuedPacket) {
        let payload = u64::from(first.packet.bytes).saturating_sub(IP_HEADER_BYTES);
        let cut = Fragments::of(payload, self.outsiders.senders[first.sender].mtu);
        let datagram = self.begin_outside(first, cut.count as u16, false);
        if first.copies > 0 {
            let member = match (self.outsiders.senders[first.sender].way, first.way) {
                (EgressPath::Bond { route }, EgressPath::Frames { route: chosen }) => chosen - route,
                _ => 0,
            };
            self.begin_copies(first.copies, datagram, &first.packet, member);
        }
        self.outsiders.gates[nic].at_hand = Some((cut, 0, datagram));
    }

    /// The datagram of a packet, or of a train of them.
    fn begin_outside(&mut self, first: &QueuedPacket, fragments: u16, train: bool) -> u32 {
        let QueuedPacket { sender, packet, since, number, .. } = *first;
        let this = &self.outsiders.senders[sender];
        let payload = u64::from(packet.bytes).saturating_sub(IP_HEADER_BYTES);
        let header = u64::from(packet.header).min(payload);
        let datagram = Datagram {
            flow: this.flow as u32,
            index: number,
            bytes: (payload - header) as u32,
            fragments,
            train,
            arrived: 0,
            sent: false,
            to: Destination::SOCKET,
            counted: payload > header,
            header: header as u32,
            begun: since,
            lost: false,
            holds: 1,
            refused: 0,
            trail: Trail::default(),
            written: true,
        };
        let datagram = self.fabric.begin_datagram(datagram.written, datagram);
        let flow = self.outsiders.number_of(sender as u32, packet.transport);
        if let Some(fates) = &mut self.fabric.fates {
            fates.enters(datagram, sender as u32, &packet, flow);
        }
        datagram
    }

    /// `count` packets alike come from outside, now, the first of them with this number: as many of them as go as one train. How many these are.
    pub(super) fn try_inject_train(&mut self, sender: usize, packet: Packet, count: u32, number: u64) -> u32 {
        let Sender { nic, mtu, way: EgressPath::Frames { route }, .. } = self.outsiders.senders[sender]
        else {
            return 0;
        };
        let ip = u64::from(packet.bytes).max(IP_HEADER_BYTES);
        let waits = !self.outsiders.gates[nic].waiting.is_empty() || self.nics[nic].has_waiters();
        if count < 2 || ip > mtu || waits {
            return 0;
        }
        let count = self.max_train_len(route, (ip as u32, packet.ttl), count);
        if count < 2 {
            return 0;
        }
        if let Some(fates) = &mut self.fabric.fates {
            fates.count_in(count);
        }
        let datagram = self.begin_outside(
            &QueuedPacket {
                sender,
                way: EgressPath::Frames { route },
                packet,
                since: self.now,
                number,
                copies: 0,
            },
            count as u16,
            true,
        );
        let place = self.processes.len() + self.endpoints.len() + sender;
        self.emit_train(place, datagram, route, ip as u32);
        self.fabric.ledger.waits(place, self.now, SenderState::Application);
        self.datagram_sent(datagram);
        count
    }

    /// A NIC has taken what was at hand for it.
    fn finish_head_fragment(&mut self, nic: usize) {
        let gate = &mut self.outsiders.gates[nic];
        let (cut, fragment, datagram) = gate.at_hand.expect("what was handed over was at hand");
        if fragment + 1 < cut.count {
            gate.at_hand = Some((cut, fragment + 1, datagram));
            return;
        }
        gate.at_hand = None;
        let QueuedPacket { sender, .. } =
            gate.waiting.pop_front().expect("what was at hand was the first that waited");
        let this = &mut self.outsiders.senders[sender];
        this.queued -= 1;
        self.outsiders.backlogs[this.host] -= 1;
        let wait = if this.queued == 0 { SenderState::Application } else { SenderState::Nic };
        let place = self.processes.len() + self.endpoints.len() + sender;
        self.fabric.ledger.waits(place, self.now, wait);
        self.datagram_sent(datagram);
        self.copies_sent(datagram);
    }

    /// A NIC has taken what was at hand for it, after a wait: on to what is next.
    pub(in crate::simulate) fn packet_handed(&mut self, nic: usize) {
        self.finish_head_fragment(nic);
        self.drain_nic_queue(nic);
    }
}
