//! Packets that nodes make for themselves: ARP packets, IGMP messages and keepalives.

use engpass_frames::{ArpMessage, ControlKind, Frames, Packet};
use engpass_model::wire::igmp::Message;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::{arp, igmp, keepalive};
use crate::packet_store::{Datagram, Destination};
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
    pub(super) fn kind(&self) -> ControlKind {
        match self {
            Self::Arp(_) => ControlKind::Arp,
            Self::Igmp(..) => ControlKind::Igmp,
            Self::Keepalive(_) => ControlKind::Keepalive,
        }
    }

    /// Returns true if a host sends it from its NIC; otherwise it passes a router.
    pub(super) fn is_from_host(&self, frames: &Frames) -> bool {
        match self {
            Self::Arp(said) => frames.arp.is_from_host(said),
            Self::Igmp(..) => true,
            Self::Keepalive(_) => false,
        }
    }
}

impl SharedState {
    /// Creates the packet in which a node says something, and returns its number. `sender` is its sender number.
    pub(super) fn create_control(&mut self, said: &Said, sender: u32, frames: &mut Frames, now: u64) -> u32 {
        let kind = said.kind();
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
