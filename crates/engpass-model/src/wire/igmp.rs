//! IGMPv2 messages of hosts (RFC 2236).

use std::net::Ipv4Addr;

use super::ip::IP_HEADER_BYTES;
use super::packet::checksum;

/// Bytes of an IGMPv2 message (RFC 2236 section 2) behind the IP option Router Alert (RFC 2113), which is a part of the IP header.
pub const MESSAGE_BYTES: u64 = ROUTER_ALERT.len() as u64 + 8;
/// Bytes of its IP packet.
pub const PACKET_BYTES: u64 = IP_HEADER_BYTES + MESSAGE_BYTES;
/// IP precedence of its packet: internetwork control, as in Linux.
pub const PRIORITY: u8 = 6;
/// IP time to live of its packet (RFC 2236 section 2).
pub const TTL: u8 = 1;

/// The option that makes routers look at the packet (RFC 2113 section 2.1).
const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];
/// Protocol number of IGMP.
const PROTOCOL: u8 = 2;
/// The group of all routers, to which leave messages go (RFC 2236 section 3).
const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);

/// An IGMP message of a host about its membership in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Message {
    /// Version 2 membership report: the host is a member.
    Report,
    /// Leave group: the host is no member any more.
    Leave,
}

impl Message {
    /// Returns the destination address of the message about `group`.
    pub fn destination(self, group: Ipv4Addr) -> Ipv4Addr {
        match self {
            Self::Report => group,
            Self::Leave => ALL_ROUTERS,
        }
    }

    /// Returns the IP packet of the message about `group`.
    pub fn packet(self, source: Ipv4Addr, group: Ipv4Addr) -> Vec<u8> {
        let mut packet = vec![0x46, PRIORITY << 5, 0, PACKET_BYTES as u8, 0, 0, 0x40, 0, TTL, PROTOCOL, 0, 0];
        packet.extend(source.octets());
        packet.extend(self.destination(group).octets());
        packet.extend(ROUTER_ALERT);
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let kind = match self {
            Self::Report => 0x16,
            Self::Leave => 0x17,
        };
        let mut message = vec![kind, 0, 0, 0];
        message.extend(group.octets());
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        packet.extend(message);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn igmp_packet_has_the_bytes_of_the_standard() {
        let (source, group) = (Ipv4Addr::new(10, 0, 0, 3), Ipv4Addr::new(239, 255, 0, 1));
        let report = Message::Report.packet(source, group);
        assert_eq!(report.len() as u64, PACKET_BYTES);
        assert_eq!(report[20..28], [0x94, 4, 0, 0, 0x16, 0, 0xf9, 0xfe]);
        assert_eq!(report[16..20], group.octets());
        assert_eq!(Message::Leave.packet(source, group)[16..20], [224, 0, 0, 2]);
        assert_eq!(Message::Leave.packet(source, group)[24], 0x17);
        // The checksum of a header with its checksum is zero.
        assert_eq!(checksum(&report[..24]), 0);
        assert_eq!(checksum(&report[24..]), 0);
    }
}
