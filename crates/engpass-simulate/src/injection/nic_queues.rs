//! Injected senders: their packets wait for room in the NIC of their host, in the order of arrival.

use std::collections::VecDeque;

use engpass_frames::Frames;
use engpass_ledger::SenderState;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::{Groups, Packet};
use crate::packet_store::Datagram;
use crate::ready_packet::{EgressPath, ReadyPacket};
use crate::shared_state::SharedState;

/// An injected sender: the sender of all packets from one host to another.
#[derive(Clone, Copy, Debug)]
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
pub(crate) struct QueuedPacket {
    pub(crate) sender: usize,
    /// Egress path of the packet; with a bond, that of the member chosen for it.
    pub(crate) way: EgressPath,
    pub(crate) packet: Packet,
    /// Instant of arrival, and the number of packets injected before.
    pub(crate) since: u64,
    pub(crate) number: u64,
    /// Key of the packet's copies in `Groups`; 0 if there are none.
    pub(crate) copies: u64,
}

impl InjectedSenders {
    pub(crate) fn new(senders: Vec<Sender>, ports: usize) -> Self {
        let queues = if senders.is_empty() { 0 } else { ports };
        let hosts = senders.iter().map(|sender| sender.host + 1).max().unwrap_or(0);
        Self {
            senders,
            queues: vec![NicQueue::default(); queues],
            backlogs: vec![0; hosts],
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
    pub(crate) fn sender(&self, way: usize) -> Sender {
        self.senders[way]
    }

    /// Returns the number of packets of a host that wait for its NICs.
    pub(super) fn backlog(&self, host: usize) -> usize {
        self.backlogs.get(host).copied().unwrap_or(0)
    }

    /// Returns true if packets wait for a NIC.
    pub(crate) fn has_waiting(&self, nic: usize) -> bool {
        !self.queues[nic].waiting.is_empty()
    }

    /// Counts an injected packet, with its copies. Returns the NIC for it, and the packet with its egress path; with a bond, that of the member that carries it.
    #[inline(always)]
    pub(crate) fn receive(
        &self,
        queued: QueuedPacket,
        frames: &mut Frames,
        shared: &mut SharedState,
    ) -> (usize, QueuedPacket) {
        let QueuedPacket { sender, packet, copies, .. } = queued;
        if let Some(reports) = &mut shared.reports {
            reports.count_in(1 + self.groups.copies(copies) as u32);
        }
        let Sender { nic, way, mtu, flow, .. } = self.senders[sender];
        let EgressPath::Bond { route } = way else { return (nic, queued) };
        let heads = frames.choices.injected_heads(flow, packet.transport);
        let route = frames.choose_member(route, &heads, u64::from(packet.bytes) > mtu);
        (frames.first_port(route), QueuedPacket { way: EgressPath::Frames { route }, ..queued })
    }

    /// Returns the packet as it enters the NIC, still without a datagram, if it is unfragmented, has no copies, and no packet waits for the NIC.
    #[inline(always)]
    pub(crate) fn alone(&self, queued: &QueuedPacket, nic: usize) -> Option<ReadyPacket> {
        let Sender { flow, mtu, .. } = self.senders[queued.sender];
        let ip = u64::from(queued.packet.bytes).max(IP_HEADER_BYTES);
        let is_alone = queued.copies == 0 && ip <= mtu && self.queues[nic].waiting.is_empty();
        is_alone.then_some(ReadyPacket { flow, nic, way: queued.way, ip, datagram: u32::MAX, offset: 0 })
    }

    /// Adds a packet to those that wait for a NIC. Returns true if it is the first one.
    pub(crate) fn enqueue(
        &mut self,
        nic: usize,
        queued: QueuedPacket,
        shared: &mut SharedState,
        now: u64,
    ) -> bool {
        let sender = &mut self.senders[queued.sender];
        sender.queued += 1;
        self.backlogs[sender.host] += 1;
        self.queues[nic].waiting.push_back(queued);
        let is_first = self.queues[nic].waiting.len() == 1;
        if !is_first {
            let place = shared.sender_of_injected(queued.sender);
            shared.ledger.set_sender_state(place, now, SenderState::Nic);
        }
        is_first
    }

    /// Returns the sender of the first packet that waits for a NIC, if there is one. From now on the packet is being handed over.
    pub(crate) fn next_sender(&mut self, nic: usize, shared: &mut SharedState) -> Option<usize> {
        let first = *self.queues[nic].waiting.front()?;
        if self.queues[nic].head.is_none() {
            self.begin_head_packet(nic, &first, shared);
        }
        Some(shared.sender_of_injected(first.sender))
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
    pub(crate) fn create_datagram(
        &self,
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
            counted: payload > header,
            header: header as u32,
            begun: since,
            refs: 1,
            tracked_per_hop: true,
            ..Datagram::default()
        };
        let datagram = shared.begin_datagram(datagram.tracked_per_hop, datagram);
        if let Some(reports) = &mut shared.reports {
            reports.register_packet(datagram, sender as u32, &packet);
        }
        datagram
    }

    /// Counts a fragment that a NIC has taken, and its packet if it was the last fragment.
    pub(crate) fn finish_head_fragment(&mut self, nic: usize, shared: &mut SharedState, now: u64) {
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
        let place = shared.sender_of_injected(sender);
        shared.ledger.set_sender_state(place, now, wait);
        shared.packet_sent(datagram, now);
    }
}

impl SharedState {
    /// Returns the number of an injected sender among all senders.
    pub(crate) fn sender_of_injected(&self, sender: usize) -> usize {
        self.processes + self.endpoints + sender
    }

    /// Counts an injected packet or packet train as sent; its sender has nothing more to send.
    pub(crate) fn injected_sent(&mut self, sender: usize, datagram: u32, now: u64) {
        self.ledger.set_sender_state(sender, now, SenderState::Application);
        self.datagram_sent(datagram, now);
    }
}
