//! Delivery reports of injected packets: each packet is reported once, as delivered or lost.

use std::collections::BTreeMap;

use engpass_model::queue::Ecn;
use engpass_model::wire::icmp::{self, Errors};

use super::{DeliveryReport, MessageContent, Packet, ReportedDrop, Transport};
use crate::flow_counters::DropLocation;
use crate::packet_store::Datagram;

/// Largest number of flows that queue disciplines distinguish; further flows share numbers.
const MOST_FLOWS: u32 = 4096;

/// Delivery reports that the caller has not fetched yet, and the headers of packets.
#[derive(Debug, Default)]
pub(crate) struct DeliveryReports {
    /// Header and state of injected packets, by datagram.
    heads: Vec<Head>,
    /// Locations of losses that were found ahead of virtual time, by packet.
    later: BTreeMap<u32, DropLocation>,
    /// Losses of cells, by instant and packet number. They are reported when all ports have handled earlier cells, for an earlier one may still be found.
    lost: BTreeMap<(u64, u64), PendingLoss>,
    /// Reports that the caller has not fetched yet, in order of time.
    pending: Vec<DeliveryReport>,
    /// Number of packets and routers' messages in the network.
    unreported: u64,
    /// Number of losses so far that were found ahead of virtual time.
    known: usize,
    /// Number of injected senders.
    senders: usize,
    /// Flow numbers for queue disciplines, by sender and transport; and the number that was looked up last.
    flows: BTreeMap<(u32, Transport), u32>,
    last: Option<((u32, Transport), u32)>,
    /// True if circuits carry packets. A loss of their cells may be found later than it happens.
    pub(super) has_cells: bool,
}

/// Header of an injected packet, and its state in the network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    way: u32,
    pub(crate) token: u64,
    pub(crate) ecn: Ecn,
    pub(crate) priority: u8,
    pub(crate) ttl: u8,
    /// Number by which queue disciplines know the packet's flow.
    pub(crate) flow: u32,
    pub(crate) transport: Transport,
    /// True if routers choose the first of equal-cost paths for the packet, whatever their policy.
    takes_first: bool,
    /// Number of routers that the packet, or its last fragment to arrive, has passed.
    routers: u8,
    /// True if the packet, or a fragment of it, has arrived with a congestion mark.
    marked: bool,
    /// True if the loss was counted when a window ended.
    counted: bool,
    /// True if the loss has been reported; an earlier loss may still be found.
    reported: bool,
    /// True if routers must not fragment the packet.
    pub(crate) whole: bool,
    /// The error messages that routers send about the packet.
    errors: Errors,
    /// The relation of the datagram to such messages.
    message: Message,
}

/// Relation of a datagram to the ICMP messages of routers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Message {
    #[default]
    None,
    /// The datagram is a message with this content, about the packet with its token.
    Itself(MessageContent),
    /// A router sends a message about the datagram.
    About,
    /// The datagram is an ARP packet, an IGMP message or a keepalive, which get no report.
    Control,
}

#[derive(Clone, Copy, Debug)]
struct PendingLoss {
    way: u32,
    token: u64,
    place: DropLocation,
    message: Message,
}

impl DeliveryReports {
    pub(crate) fn new(senders: usize) -> Self {
        Self { senders, ..Self::default() }
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
        self.find_number((self.senders + number) as u32, Transport::default())
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

    /// Registers an injected packet that enters the network as this datagram.
    pub(super) fn register_packet(&mut self, datagram: u32, way: u32, packet: &Packet) {
        let flow = self.number_of(way, packet.transport);
        let Packet { token, ecn, priority, ttl, transport, whole, errors, .. } = *packet;
        let head = Head { way, token, ecn, priority, ttl, flow, transport, whole, errors, ..Head::default() };
        self.put(datagram, head);
    }

    fn put(&mut self, datagram: u32, head: Head) {
        let index = datagram as usize;
        if self.heads.len() <= index {
            self.heads.resize(index + 1, Head::default());
        }
        self.heads[index] = head;
    }

    /// Returns the length in bytes of the ICMP message that a router sends about the first packet of a datagram, which has `ip` bytes; `None` if it sends none.
    pub(crate) fn message_bytes(&self, datagram: u32, ip: u32) -> Option<u64> {
        self.heads[datagram as usize].errors.bytes(ip.into())
    }

    /// Records that a router is about to drop a packet of the datagram and will send a message about it.
    pub(crate) fn awaits_message(&mut self, datagram: u32) {
        self.heads[datagram as usize].message = Message::About;
    }

    /// Registers a router's ICMP message that enters the network as this datagram. `lost` is the path and token of the dropped packet, `flow` the message's
    /// flow number for queue disciplines.
    pub(crate) fn register_message(
        &mut self,
        datagram: u32,
        lost: (u32, u64),
        said: MessageContent,
        flow: u32,
    ) {
        let (way, token) = lost;
        let (priority, ttl, message) = (icmp::PRIORITY, icmp::TTL, Message::Itself(said));
        self.put(datagram, Head { way, token, priority, ttl, flow, message, ..Head::default() });
        self.unreported += 1;
    }

    /// Registers an ARP packet, IGMP message or keepalive that enters the network as this datagram; `flow` is its flow number for queue disciplines.
    pub(crate) fn register_control_packet(&mut self, datagram: u32, flow: u32) {
        self.put(datagram, Head { flow, ttl: u8::MAX, message: Message::Control, ..Head::default() });
    }

    /// Reports a router's ICMP message that has arrived at the sender of the packet that it is about.
    pub(crate) fn on_message_delivered(&mut self, datagram: u32, at: u64) {
        let Head { way, token, routers, message: Message::Itself(said), .. } = *self.head(datagram) else {
            unreachable!("an ICMP message has a content")
        };
        self.pending.push(DeliveryReport::Message { at, way, token, said, routers });
        self.unreported -= 1;
    }

    /// Returns the content of a router's ICMP message; `None` if the datagram is no message.
    pub(crate) fn said(&self, datagram: u32) -> Option<MessageContent> {
        match self.head(datagram).message {
            Message::Itself(said) => Some(said),
            Message::None | Message::About | Message::Control => None,
        }
    }

    /// Returns the path and the token of a datagram.
    pub(crate) fn packet(&self, datagram: u32) -> (u32, u64) {
        let Head { way, token, .. } = *self.head(datagram);
        (way, token)
    }

    /// Makes routers choose the first of equal-cost paths for the datagram, whatever their policy.
    pub(super) fn take_first(&mut self, datagram: u32) {
        self.heads[datagram as usize].takes_first = true;
    }

    /// Returns true if routers choose the first of equal-cost paths for the datagram.
    pub(crate) fn takes_first(&self, datagram: u32) -> bool {
        self.heads[datagram as usize].takes_first
    }

    /// Counts packets that enter the network.
    pub(crate) fn count_in(&mut self, packets: u32) {
        self.unreported += u64::from(packets);
    }

    /// Advances the token of a packet train's datagram to that of the next packet.
    #[inline]
    pub(crate) fn next_token(&mut self, datagram: u32) {
        self.heads[datagram as usize].token += 1;
    }

    pub(crate) fn count_unreported(&self) -> u64 {
        self.unreported
    }

    #[inline]
    pub(crate) fn head(&self, datagram: u32) -> &Head {
        &self.heads[datagram as usize]
    }

    /// Records that a packet of the datagram has arrived with this TTL, and with a congestion mark if `marked` is true.
    #[inline]
    pub(crate) fn arrives(&mut self, datagram: u32, ttl: u8, marked: bool) {
        let head = &mut self.heads[datagram as usize];
        head.routers = head.ttl - ttl;
        head.marked |= marked;
    }

    /// Marks the loss of the datagram as counted. Returns true if it was counted before.
    pub(crate) fn mark_loss_counted(&mut self, datagram: u32) -> bool {
        std::mem::replace(&mut self.heads[datagram as usize].counted, true)
    }

    /// Registers a loss that was found ahead of virtual time and that an event will carry out. Returns the number of such losses before it.
    pub(crate) fn defer_loss(&mut self, packet: u32, place: DropLocation) -> usize {
        self.later.insert(packet, place);
        self.known += 1;
        self.known - 1
    }

    /// Removes and returns the location of a deferred loss whose time has come.
    pub(crate) fn place_of(&mut self, packet: u32) -> DropLocation {
        self.later.remove(&packet).expect("a deferred loss has a drop location")
    }

    pub(crate) fn deliver(&mut self, datagram: u32, at: u64) {
        let Head { way, token, routers, marked: ce, .. } = *self.head(datagram);
        self.pending.push(DeliveryReport::Delivered { at, way, token, ce, routers });
        self.unreported -= 1;
    }

    /// Registers a loss of a datagram that is earlier than all its losses known so far; `before` is the earliest of these.
    pub(crate) fn record_loss(
        &mut self,
        datagram: u32,
        this: &Datagram,
        (at, place): (u64, DropLocation),
        before: Option<(u64, DropLocation)>,
    ) {
        let Head { way, token, reported, message, .. } = *self.head(datagram);
        match place {
            _ if reported || message == Message::Control => {}
            // The report of a router's message must follow that of its packet.
            _ if message == Message::About => {
                self.heads[datagram as usize].reported = true;
                self.report_loss(at, at, PendingLoss { way, token, place, message });
            }
            // Ports process cells in no common order: an earlier loss may be found later.
            _ if is_of_cells(place) || (self.has_cells && this.fragments > 1) => {
                if let Some((later, _)) = before {
                    self.lost.remove(&(later, this.index));
                }
                self.lost.insert((at, this.index), PendingLoss { way, token, place, message });
            }
            // Losses of packets are found in order of time.
            _ if before.is_some() => {}
            _ => {
                self.heads[datagram as usize].reported = true;
                self.report_loss(at, at, PendingLoss { way, token, place, message });
            }
        }
    }

    /// Reports the losses of cells before `at`. All ports must have processed all cells before `at`.
    pub(crate) fn confirm_losses_before(&mut self, at: u64) {
        while let Some(first) = self.lost.first_entry().filter(|first| first.key().0 < at) {
            let ((lost_at, _), loss) = first.remove_entry();
            self.report_loss(at, lost_at, loss);
        }
    }

    fn report_loss(
        &mut self,
        at: u64,
        lost_at: u64,
        PendingLoss { way, token, place, message }: PendingLoss,
    ) {
        self.pending.push(match message {
            Message::Itself(_) => DeliveryReport::MessageLost { at, way, token },
            _ => {
                let (place, message) = (ReportedDrop { place, way }, message == Message::About);
                DeliveryReport::Lost { at, lost_at, way, token, place, message }
            }
        });
        self.unreported -= 1;
    }

    /// Passes all reports to `each`.
    pub(super) fn drain_reports(&mut self, each: &mut impl FnMut(DeliveryReport)) {
        self.pending.drain(..).for_each(each);
    }
}

/// Returns true if cells are lost at this location.
fn is_of_cells(place: DropLocation) -> bool {
    matches!(place, DropLocation::Port(..) | DropLocation::Policer(_) | DropLocation::Reassembly(_))
}
