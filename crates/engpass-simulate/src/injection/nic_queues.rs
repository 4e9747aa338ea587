//! Injected senders: their packets wait for room in the NIC of their host, in the order of arrival.

use std::collections::{BTreeMap, VecDeque};

use engpass_frames::Frames;
use engpass_ledger::{SenderState, Trail};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::{Groups, Packet, Transport};
use crate::Network;
use crate::packet_store::{Datagram, Destination};
use crate::ready_packet::{EgressPath, ReadyPacket};
use crate::shared_state::SharedState;

/// Largest number of flows that queue disciplines distinguish; further flows share numbers.
const MOST_FLOWS: u32 = 4096;

/// An injected sender: the sender of all packets from one host to another.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) flow: usize,
    pub(crate) host: usize,
    pub(crate) nic: usize,
    pub(crate) way: EgressPath,
    /// MTU in bytes, to which the host fragments packets.
    pub(crate) mtu: u64,
    /// Number of packets that wait, including the one that is being handed over.
    pub(crate) queued: u32,
}

/// The injected senders. Their numbers follow those of processes and endpoints.
#[derive(Debug)]
pub(crate) struct InjectedSenders {
    senders: Vec<Sender>,
    /// Queue of packets in front of each NIC.
    queues: Vec<NicQueue>,
    /// Number of waiting packets by host.
    backlogs: Vec<usize>,
    /// Flow numbers for queue disciplines, by sender and transport; and the number that was looked up last.
    flows: BTreeMap<(u32, Transport), u32>,
    last: Option<((u32, Transport), u32)>,
    pub(super) groups: Groups,
}

/// Packets that wait for a NIC; the first one is being handed over.
#[derive(Clone, Debug, Default)]
struct NicQueue {
    waiting: VecDeque<QueuedPacket>,
    /// The first packet: its fragments, the index of the next fragment, and its datagram.
    head: Option<(Fragments, u64, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    sender: usize,
    /// Egress path of the packet; with a bond, that of the member chosen for it.
    way: EgressPath,
    packet: Packet,
    /// Instant of arrival, and the number of packets injected before.
    since: u64,
    number: u64,
    /// Key of the packet's copies in `Groups`; 0 if there are none.
    copies: u64,
}

impl InjectedSenders {
    pub(crate) fn new(senders: Vec<Sender>, ports: usize) -> Self {
        let queues = if senders.is_empty() { 0 } else { ports };
        let hosts = senders.iter().map(|sender| sender.host + 1).max().unwrap_or(0);
        Self {
            senders,
            queues: vec![NicQueue::default(); queues],
            backlogs: vec![0; hosts],
            flows: BTreeMap::new(),
            last: None,
            groups: Groups::default(),
        }
    }

    /// Returns the packet's fragment that is being handed over to a NIC.
    pub(crate) fn ready_packet(&self, nic: usize) -> ReadyPacket {
        let queue = &self.queues[nic];
        let (fragments, fragment, datagram) = queue.head.expect("the NIC queue has a current fragment");
        let QueuedPacket { sender, way, .. } = *queue.waiting.front().expect("the NIC has a queued packet");
        ReadyPacket {
            flow: self.senders[sender].flow,
            nic,
            way,
            ip: fragments.payload(fragment) + IP_HEADER_BYTES,
            datagram,
            offset: (fragment * fragments.full / 8) as u16,
        }
    }

    /// Returns the byte offset of the fragment that is being handed over to a NIC, and whether more fragments follow.
    pub(crate) fn fragment(&self, nic: usize) -> (u64, bool) {
        let head = self.queues.get(nic).and_then(|queue| queue.head);
        head.map_or((0, false), |(fragments, fragment, _)| {
            (fragment * fragments.full, fragment + 1 < fragments.count)
        })
    }

    /// Returns the sender of the path with index `way`.
    pub(super) fn sender(&self, way: u32) -> Sender {
        self.senders[way as usize].clone()
    }

    /// Returns the number of packets of a host that wait for its NICs.
    pub(super) fn backlog(&self, host: usize) -> usize {
        self.backlogs.get(host).copied().unwrap_or(0)
    }

    /// Returns the number by which queue disciplines know a flow.
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

    /// Returns the flow number of a router's messages about a path, of ARP packets or of keepalives. In `number`, routes of messages come first, then ARP, then keepalives.
    pub(crate) fn number_of_control(&mut self, number: usize) -> u32 {
        self.find_number((self.senders.len() + number) as u32, Transport::default())
    }

    /// Starts to hand over the first packet that waits for a NIC.
    fn begin_head_packet(&mut self, nic: usize, first: &QueuedPacket, shared: &mut SharedState) {
        let payload = u64::from(first.packet.bytes).saturating_sub(IP_HEADER_BYTES);
        let fragments = Fragments::of(payload, self.senders[first.sender].mtu);
        let datagram = self.create_datagram(first, (fragments.count as u16, false), shared);
        if first.copies > 0 {
            let member = match (self.senders[first.sender].way, first.way) {
                (EgressPath::Bond { route }, EgressPath::Frames { route: chosen }) => chosen - route,
                _ => 0,
            };
            self.begin_copies(first.copies, datagram, (&first.packet, member), shared);
        }
        self.queues[nic].head = Some((fragments, 0, datagram));
    }

    /// Creates the datagram of a packet or of a packet train.
    fn create_datagram(
        &mut self,
        first: &QueuedPacket,
        (fragments, train): (u16, bool),
        shared: &mut SharedState,
    ) -> u32 {
        let QueuedPacket { sender, packet, since, number, .. } = *first;
        let this = &self.senders[sender];
        let payload = u64::from(packet.bytes).saturating_sub(IP_HEADER_BYTES);
        let header = u64::from(packet.header).min(payload);
        let datagram = Datagram {
            flow: this.flow as u32,
            index: number,
            bytes: (payload - header) as u32,
            fragments,
            train,
            resent: false,
            paths_differ: false,
            arrived: 0,
            sent: false,
            to: Destination::SOCKET,
            counted: payload > header,
            header: header as u32,
            begun: since,
            lost: false,
            refs: 1,
            refused: 0,
            trail: Trail::default(),
            tracked_per_hop: true,
        };
        let datagram = shared.begin_datagram(datagram.tracked_per_hop, datagram);
        let flow = self.number_of(sender as u32, packet.transport);
        if let Some(reports) = &mut shared.reports {
            reports.register_packet(datagram, sender as u32, &packet, flow);
        }
        datagram
    }

    /// Returns the NIC and the egress path of a packet; with a bond, those of the member that carries it.
    #[inline(always)]
    fn way_of_packet(&self, sender: usize, packet: &Packet, frames: &mut Frames) -> (usize, EgressPath) {
        let Sender { nic, way, mtu, .. } = self.senders[sender];
        let EgressPath::Bond { route } = way else { return (nic, way) };
        let heads = frames.choices.injected_heads(self.senders[sender].flow, packet.transport);
        let route = frames.choose_member(route, &heads, u64::from(packet.bytes) > mtu);
        (frames.first_port(route), EgressPath::Frames { route })
    }

    /// Counts a fragment that a NIC has taken, and its packet if it was the last fragment.
    fn finish_head_fragment(&mut self, nic: usize, shared: &mut SharedState, now: u64) {
        let queue = &mut self.queues[nic];
        let (fragments, fragment, datagram) = queue.head.expect("the NIC queue has a current fragment");
        if fragment + 1 < fragments.count {
            queue.head = Some((fragments, fragment + 1, datagram));
            return;
        }
        queue.head = None;
        let QueuedPacket { sender, .. } = queue.waiting.pop_front().expect("the NIC has a queued packet");
        let this = &mut self.senders[sender];
        this.queued -= 1;
        self.backlogs[this.host] -= 1;
        let wait = if this.queued == 0 { SenderState::Application } else { SenderState::Nic };
        let place = shared.processes + shared.endpoints + sender;
        shared.ledger.set_sender_state(place, now, wait);
        shared.packet_sent(datagram, now);
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
    /// Takes an injected packet whose instant is now. `number` is the number of packets before it; `copies` is the key of its copies.
    pub(super) fn on_packet_injected(&mut self, sender: usize, packet: Packet, number: u64, copies: u64) {
        if let Some(reports) = &mut self.shared.reports {
            reports.count_in(1 + self.injected.groups.copies(copies) as u32);
        }
        let (nic, way) = self.injected.way_of_packet(sender, &packet, &mut self.frames);
        let queued = QueuedPacket { sender, way, packet, since: self.clock.now, number, copies };
        if copies == 0 && self.try_enter_nic_directly(&queued, nic) {
            return;
        }
        let this = &mut self.injected.senders[sender];
        this.queued += 1;
        self.injected.backlogs[this.host] += 1;
        let queue = &mut self.injected.queues[nic];
        queue.waiting.push_back(queued);
        if queue.waiting.len() == 1 {
            self.drain_nic_queue(nic);
        } else {
            let place = self.shared.processes + self.shared.endpoints + sender;
            self.shared.ledger.set_sender_state(place, self.clock.now, SenderState::Nic);
        }
    }

    /// Shortcut: hands over an unfragmented packet at once, if nothing waits for its NIC and there is room. Returns false, without effect, otherwise. The queue
    /// would give the same result.
    fn try_enter_nic_directly(&mut self, first: &QueuedPacket, nic: usize) -> bool {
        let QueuedPacket { sender, way, packet, .. } = *first;
        let Sender { flow, mtu, .. } = self.injected.senders[sender];
        let ip = u64::from(packet.bytes).max(IP_HEADER_BYTES);
        if ip > mtu || !self.injected.queues[nic].waiting.is_empty() {
            return false;
        }
        let mut ready_packet = ReadyPacket { flow, nic, way, ip, datagram: u32::MAX, offset: 0 };
        if self.hosts.nics[nic].has_waiters() || !self.nic_has_room(&ready_packet) {
            return false;
        }
        ready_packet.datagram = self.injected.create_datagram(first, (1, false), &mut self.shared);
        let place = self.shared.processes + self.shared.endpoints + sender;
        self.emit(place, &ready_packet);
        self.shared.ledger.set_sender_state(place, self.clock.now, SenderState::Application);
        self.shared.datagram_sent(ready_packet.datagram, self.clock.now);
        true
    }

    /// Hands waiting packets to a NIC until it has no room.
    fn drain_nic_queue(&mut self, nic: usize) {
        while let Some(&first) = self.injected.queues[nic].waiting.front() {
            if self.injected.queues[nic].head.is_none() {
                self.injected.begin_head_packet(nic, &first, &mut self.shared);
            }
            let place = self.shared.processes + self.shared.endpoints + first.sender;
            if !self.enter_nic_or_wait_with(place, self.injected.ready_packet(nic)) {
                return;
            }
            self.injected.finish_head_fragment(nic, &mut self.shared, self.clock.now);
        }
    }

    /// Takes the first of `count` identical packets whose instant is now, as many as form a packet train; `number` is the number of packets before them.
    /// Returns how many it took.
    pub(super) fn try_inject_train(&mut self, sender: usize, packet: Packet, count: u32, number: u64) -> u32 {
        let Sender { nic, mtu, way: EgressPath::Frames { route }, .. } = self.injected.senders[sender] else {
            return 0;
        };
        let ip = u64::from(packet.bytes).max(IP_HEADER_BYTES);
        let waits = !self.injected.queues[nic].waiting.is_empty() || self.hosts.nics[nic].has_waiters();
        if count < 2 || ip > mtu || waits {
            return 0;
        }
        let (capacity, now) = (self.hosts.nics[nic].capacity, self.clock.now);
        let (length, times) = ((ip as u32, packet.ttl), (capacity, now));
        let count = self.shared.max_train_len(route, length, count, times, &mut self.frames);
        if count < 2 {
            return 0;
        }
        if let Some(reports) = &mut self.shared.reports {
            reports.count_in(count);
        }
        let datagram = self.injected.create_datagram(
            &QueuedPacket {
                sender,
                way: EgressPath::Frames { route },
                packet,
                since: self.clock.now,
                number,
                copies: 0,
            },
            (count as u16, true),
            &mut self.shared,
        );
        let place = self.shared.processes + self.shared.endpoints + sender;
        let train = (datagram, ip as u32);
        if let Some((at, line, event)) = self.shared.emit_train(place, train, route, now, &mut self.frames) {
            self.clock.events.push(at, line, event);
        }
        self.shared.ledger.set_sender_state(place, self.clock.now, SenderState::Application);
        self.shared.datagram_sent(datagram, self.clock.now);
        count
    }

    /// Continues the queue of a NIC, which has taken a fragment that had to wait.
    pub(crate) fn on_packet_sent(&mut self, nic: usize) {
        self.injected.finish_head_fragment(nic, &mut self.shared, self.clock.now);
        self.drain_nic_queue(nic);
    }
}
