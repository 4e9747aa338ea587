//! ARP packets for IPv4 on Ethernet (RFC 826).

use std::net::Ipv4Addr;

/// Bytes of an ARP packet, without the frame around it.
pub const BYTES: u64 = 28;
/// EtherType of ARP.
pub const ETHER_TYPE: u16 = 0x0806;

/// Asks for an address, or tells one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// "Who has this address?", to all.
    Request,
    /// The answer, to the station that asked.
    Reply,
}

/// A station: its hardware and its protocol address.
pub type Station = ([u8; 6], Ipv4Addr);

/// The bytes of an ARP packet. A request does not know the target's hardware address, which is zero in it.
pub fn packet(operation: Operation, sender: Station, target: Station) -> [u8; BYTES as usize] {
    let mut bytes = [0; BYTES as usize];
    // Ethernet, IPv4, and the lengths of their addresses.
    bytes[..6].copy_from_slice(&[0, 1, 0x08, 0, 6, 4]);
    bytes[7] = match operation {
        Operation::Request => 1,
        Operation::Reply => 2,
    };
    bytes[8..14].copy_from_slice(&sender.0);
    bytes[14..18].copy_from_slice(&sender.1.octets());
    if operation == Operation::Reply {
        bytes[18..24].copy_from_slice(&target.0);
    }
    bytes[24..].copy_from_slice(&target.1.octets());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_where_rfc_826_has_them() {
        let sender = ([2, 0, 0, 0, 0, 1], Ipv4Addr::new(10, 0, 0, 1));
        let target = ([2, 0, 0, 0, 0, 2], Ipv4Addr::new(10, 0, 0, 2));
        let request = packet(Operation::Request, sender, target);
        let expected = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];
        assert_eq!(request, expected);
        let reply = packet(Operation::Reply, target, sender);
        assert_eq!(reply[6..8], [0, 2]);
        assert_eq!(reply[18..24], sender.0);
    }
}
