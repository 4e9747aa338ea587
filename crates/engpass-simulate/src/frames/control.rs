//! Packets that nodes make for themselves: ARP packets, IGMP messages and keepalives.

use engpass_frames::{ControlKind, Packet};
use engpass_model::queue::Ecn;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use crate::Network;
use crate::packet_store::{Datagram, Destination};

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

impl Network {
    /// Creates a packet and its datagram, and returns their numbers.
    pub(super) fn begin_control(&mut self, kind: ControlKind, packet: ControlPacket) -> (u32, u32) {
        let ControlPacket { sender, place, bytes, ttl, priority } = packet;
        let direction = self.frames.first_control_direction(kind, self.hosts.endpoints.len()) + 2 * sender;
        let tracked_per_hop = self.shared.reports.is_some();
        let datagram = Datagram {
            flow: self.shared.control_counters,
            to: Destination::endpoint(direction + 1),
            // All bytes count as control traffic, so the split between header and payload does not matter.
            header: (bytes - IP_HEADER_BYTES) as u32,
            fragments: 1,
            refs: 1,
            begun: self.clock.now,
            tracked_per_hop,
            ..Datagram::default()
        };
        let datagram = self.shared.begin_datagram(tracked_per_hop, datagram);
        // The number follows those of all senders and of routers' messages.
        let number = self.frames.icmp.ways.len() + kind as usize;
        let sender = match &mut self.shared.reports {
            None => (self.hosts.processes.len() + self.hosts.endpoints.len() + number) as u32,
            Some(reports) => {
                let number = self.injected.number_of_control(number);
                reports.register_control_packet(datagram, number);
                number
            }
        };
        let packet = self.shared.datagrams.insert_packet(Packet {
            datagram,
            ip: bytes as u32,
            sender,
            place,
            since: 0,
            offset: 0,
            ttl,
            priority,
            ecn: Ecn::NotCapable,
        });
        (datagram, packet)
    }

    /// Delivers a packet that a node has made: an ICMP message, an ARP packet, an IGMP message or a keepalive.
    pub(super) fn take_control(&mut self, datagram: u32, direction: u32) {
        let direction = direction as usize;
        let [arp, igmp, keepalives, _] = self.frames.control_directions(self.hosts.endpoints.len());
        if direction < arp {
            self.deliver_icmp_message(datagram);
        } else if direction < igmp {
            self.take_arp(datagram);
        } else if direction < keepalives {
            self.take_igmp(datagram);
        } else {
            self.take_keepalive((direction - keepalives) / 2);
        }
    }
}
