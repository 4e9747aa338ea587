//! Packets that nodes make for themselves: ARP packets, IGMP messages and keepalives.

use engpass_frames::{ArpMessage, ControlKind, Frames, Packet};
use engpass_model::wire::igmp::Message;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::hop::Links;
use super::{arp, igmp, keepalive};
use crate::packet_store::{Datagram, Destination};
use crate::progress::Progress;
use crate::shared_state::SharedState;

/// A packet that a node is about to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControlPacket {
    /// Index of its sender among those of its kind.
    pub(super) sender: usize,
    /// First step of its route.
    pub(super) place: u32,
    /// Length of the IP or ARP packet in bytes.
    pub(super) bytes: u64,
    pub(super) ttl: u8,
    pub(super) priority: u8,
}

/// What a node says to another one.
pub(super) enum Said {
    Arp(ArpMessage),
    /// The message of a member.
    Igmp(u32, Message),
    /// The keepalive of this end of a tunnel.
    Keepalive(usize),
}

impl Said {
    fn kind(&self) -> ControlKind {
        match self {
            Self::Arp(_) => ControlKind::Arp,
            Self::Igmp(..) => ControlKind::Igmp,
            Self::Keepalive(_) => ControlKind::Keepalive,
        }
    }

    /// Returns true if a host sends it from its NIC; otherwise it passes a router.
    fn is_from_host(&self, frames: &Frames) -> bool {
        match self {
            Self::Arp(said) => frames.arp.is_from_host(said),
            Self::Igmp(..) => true,
            Self::Keepalive(_) => false,
        }
    }
}

impl Links<'_> {
    /// Creates the packet in which a node says something, and sends it.
    pub(super) fn say(&mut self, said: Said) -> (u32, Progress) {
        let packet = self.shared.create_control(&said, self.frames, self.clock.now);
        let progress = match said.is_from_host(self.frames) {
            true => self.emit_slow_path(packet, None),
            false => self.arrive(packet),
        };
        (packet, progress)
    }

    /// Takes an ARP packet, an IGMP message or a keepalive of this flow direction, which has reached its node.
    pub(crate) fn take_control(&mut self, datagram: u32, direction: u32) -> Progress {
        let direction = direction as usize;
        let [_, igmp, keepalives, _] = self.frames.control_directions(self.shared.endpoints);
        if direction < igmp {
            // Packets that waited for the sender of the ARP packet continue, and the node sends further ones.
            let (released, messages) = self.frames.arp.receive(datagram, self.clock.now);
            let count = released.len() + messages.len();
            for id in released {
                let progress = self.leave_hold(id);
                self.shared.parts.push((id, progress));
            }
            for said in messages {
                let message = self.say(Said::Arp(said));
                self.shared.parts.push(message);
            }
            return Progress::Parts(count);
        }
        if direction < keepalives {
            return Progress::Rests(self.take_igmp(datagram));
        }
        let end = (direction - keepalives) / 2;
        if self.frames.keepalive_returned(end) {
            self.shared.record_tunnel_change(end, false, self.clock.now);
        }
        Progress::Rests(None)
    }
}

impl SharedState {
    /// Returns the sender number of packets that nodes make. In `number`, routes of routers' messages come first, then the kinds of control packets.
    pub(super) fn number_of_control(&mut self, number: usize) -> u32 {
        match &mut self.reports {
            Some(reports) => reports.number_of_control(number),
            None => (self.processes + self.endpoints + number) as u32,
        }
    }

    /// Creates the packet in which a node says something, and returns its number.
    fn create_control(&mut self, said: &Said, frames: &mut Frames, now: u64) -> u32 {
        let kind = said.kind();
        // The number follows those of all senders and of routers' messages.
        let sender = self.number_of_control(frames.icmp.ways.len() + kind as usize);
        let this = match said {
            Said::Arp(said) => arp::packet(said, frames),
            Said::Igmp(member, _) => igmp::packet(*member, frames),
            Said::Keepalive(end) => keepalive::packet(*end, frames),
        };
        let direction = frames.first_control_direction(kind, self.endpoints) + 2 * this.sender;
        let tracked_per_hop = self.reports.is_some();
        let datagram = Datagram {
            flow: self.control_counters,
            to: Destination::endpoint(direction + 1),
            // All bytes count as control traffic, so the split between header and payload does not matter.
            header: (this.bytes - IP_HEADER_BYTES) as u32,
            fragments: 1,
            refs: 1,
            begun: now,
            tracked_per_hop,
            ..Datagram::default()
        };
        let datagram = self.begin_datagram(tracked_per_hop, datagram);
        if let Some(reports) = &mut self.reports {
            reports.register_control_packet(datagram, sender);
        }
        let packet = self.datagrams.insert_packet(Packet {
            datagram,
            ip: this.bytes as u32,
            sender,
            place: this.place,
            ttl: this.ttl,
            priority: this.priority,
            ..Packet::NONE
        });
        match *said {
            Said::Arp(said) => arp::register(said, datagram, frames, self),
            Said::Igmp(member, message) => igmp::register((member, message), datagram, frames, self),
            Said::Keepalive(end) => self.tap_keepalive(end, packet, frames),
        }
        packet
    }
}
