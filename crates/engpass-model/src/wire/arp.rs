//! ARP packets for IPv4 on Ethernet (RFC 826).

use std::net::Ipv4Addr;

use etherparse::{ArpEthIpv4Packet, ArpOperation, ether_type};

use super::frame::{Macs, Tag, write_payload};

/// Bytes of an ARP packet, without the frame around it.
pub const BYTES: u64 = ArpEthIpv4Packet::LEN as u64;
/// Ethernet broadcast address.
const BROADCAST: [u8; 6] = [0xff; 6];

/// Operation of an ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// "Who has this address?", broadcast.
    Request,
    /// The answer, unicast to the requester.
    Reply,
}

/// A station's hardware address and IP address.
pub type Station = ([u8; 6], Ipv4Addr);

/// Appends the frame of a request or reply from the first station to the second, without preamble and FCS.
pub fn write_arp(
    operation: Operation,
    (source, target): (Station, Station),
    tag: Option<Tag>,
    out: &mut Vec<u8>,
) {
    let (destination, number, target_mac) = match operation {
        // The target hardware address is unknown and left zero.
        Operation::Request => (BROADCAST, ArpOperation::REQUEST, [0; 6]),
        Operation::Reply => (target.0, ArpOperation::REPLY, target.0),
    };
    let packet = ArpEthIpv4Packet {
        operation: number,
        sender_mac: source.0,
        sender_ipv4: source.1.octets(),
        target_mac,
        target_ipv4: target.1.octets(),
    };
    let macs = Macs { source: source.0, destination };
    write_payload(macs, tag, (ether_type::ARP, &packet.to_bytes()), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arp_request_is_broadcast_and_reply_is_unicast() {
        let asker = ([2, 0, 0, 0, 0, 1], Ipv4Addr::new(10, 0, 0, 1));
        let asked = ([2, 0, 0, 0, 0, 2], Ipv4Addr::new(10, 0, 0, 2));
        let mut frame = Vec::new();
        write_arp(Operation::Request, (asker, asked), None, &mut frame);
        let header = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6];
        let packet = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];
        assert_eq!((&frame[..14], &frame[14..42], frame.len()), (&header[..], &packet[..], 60));
        let mut frame = Vec::new();
        write_arp(Operation::Reply, (asked, asker), Some(Tag { priority: 0, vlan: 1 }), &mut frame);
        assert_eq!(
            (&frame[..6], frame[25], &frame[36..42], frame.len()),
            (&asker.0[..], 2, &asker.0[..], 60)
        );
    }
}
