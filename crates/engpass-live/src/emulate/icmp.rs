//! What a router tells the sender of a packet that has been through too many routers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use engpass_model::wire::packet::checksum;

use super::packet::checksum_v6;

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Time to live exceeded in transit: type and code of ICMP (RFC 792) and of ICMPv6 (RFC 4443 section 3.3).
const EXCEEDED: (u8, u8) = (11, 0);
const EXCEEDED_V6: (u8, u8) = (3, 0);
/// The longest message, IP header included (RFC 1812 section 4.3.2.3); over IPv6 the least MTU (RFC 4443 section 2.4).
const LONGEST: usize = 576;
const LONGEST_V6: usize = 1280;

/// The message, with its IP header, of a router with these addresses about a packet; none about what routers are silent on (RFC 1812 section
/// 4.3.2.7, RFC 4443 section 2.4): errors, groups, and fragments but the first.
pub(super) fn time_exceeded(router: &[IpAddr], packet: &[u8]) -> Option<Vec<u8>> {
    if packet.first()? >> 4 == 4 {
        let own = router.iter().find_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        });
        exceeded_v4(own?, packet)
    } else {
        let own = router.iter().find_map(|address| match address {
            IpAddr::V6(address) => Some(*address),
            IpAddr::V4(_) => None,
        });
        exceeded_v6(own?, packet)
    }
}

fn exceeded_v4(own: Ipv4Addr, packet: &[u8]) -> Option<Vec<u8>> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let head = usize::from(header[0] & 0xf) * 4;
    let to = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
    let offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
    // Echo, its reply and the like are no errors.
    let is_error = header[9] == ICMP && packet.get(head).is_none_or(|kind| matches!(kind, 3..=5 | 11 | 12));
    if offset != 0 || to.is_multicast() || to.is_broadcast() || is_error {
        return None;
    }
    let quoted = &packet[..packet.len().min(LONGEST - 28)];
    let mut body = vec![EXCEEDED.0, EXCEEDED.1, 0, 0, 0, 0, 0, 0];
    body.extend(quoted);
    let sum = checksum(&body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = (20 + body.len()) as u16;
    // Internetwork control (RFC 1812 section 4.3.2.5), and a life of its own.
    let mut message = vec![0x45, 0xc0];
    message.extend(length.to_be_bytes());
    message.extend([0, 0, 0, 0, 64, ICMP, 0, 0]);
    message.extend(own.octets());
    message.extend(&header[12..16]);
    let sum = checksum(&message);
    message[10..12].copy_from_slice(&sum.to_be_bytes());
    message.extend(body);
    Some(message)
}

fn exceeded_v6(own: Ipv6Addr, packet: &[u8]) -> Option<Vec<u8>> {
    let header: &[u8; 40] = packet.first_chunk()?;
    let address = |at: usize| <[u8; 16]>::try_from(&header[at..at + 16]).expect("sixteen bytes");
    let (from, to) = (address(8), Ipv6Addr::from(address(24)));
    // Types below 128 are errors.
    let is_error = header[6] == ICMPV6 && packet.get(40).is_none_or(|kind| *kind < 128);
    if to.is_multicast() || is_error {
        return None;
    }
    let mut body = vec![EXCEEDED_V6.0, EXCEEDED_V6.1, 0, 0, 0, 0, 0, 0];
    body.extend(&packet[..packet.len().min(LONGEST_V6 - 48)]);
    let sum = checksum_v6(&own.octets(), &from, ICMPV6, &body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut message = vec![0x60, 0, 0, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend([ICMPV6, 64]);
    message.extend(own.octets());
    message.extend(from);
    message.extend(body);
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router() -> Vec<IpAddr> {
        ["10.0.0.9", "fd00::9"].map(|text| text.parse().expect("an address")).to_vec()
    }

    fn datagram(length: usize) -> Vec<u8> {
        let mut bytes = vec![0x45, 0];
        bytes.extend((length as u16).to_be_bytes());
        bytes.extend([0, 1, 0x40, 0, 1, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.resize(length, 7);
        bytes
    }

    #[test]
    fn the_sender_gets_its_packet_back_as_far_as_it_fits() {
        let packet = datagram(1500);
        let message = time_exceeded(&router(), &packet).expect("it is told");
        assert_eq!((message.len(), message[0], message[9]), (576, 0x45, ICMP));
        assert_eq!((&message[12..16], &message[16..20]), (&[10, 0, 0, 9][..], &[10, 0, 0, 1][..]));
        assert_eq!((&message[20..22], &message[28..]), (&[11, 0][..], &packet[..548]));
        // A checksum over what it covers, itself among it, leaves nothing.
        assert_eq!((checksum(&message[..20]), checksum(&message[20..])), (0, 0));
        assert_eq!(time_exceeded(&router(), &datagram(28)).expect("it is told").len(), 56);
    }

    #[test]
    fn and_over_ipv6() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 9, 17, 1];
        let [here, there] = ["fd00::1", "fd00::2"].map(|text| text.parse::<Ipv6Addr>().expect("an address"));
        packet.extend(here.octets());
        packet.extend(there.octets());
        packet.extend([3; 9]);
        let message = time_exceeded(&router(), &packet).expect("it is told");
        assert_eq!((&message[40..42], &message[48..]), (&[3, 0][..], &packet[..]));
        let own: [u8; 16] = message[8..24].try_into().expect("sixteen bytes");
        let mut body = message[40..].to_vec();
        body[2..4].copy_from_slice(&[0, 0]);
        let sum = checksum_v6(&own, &here.octets(), ICMPV6, &body);
        assert_eq!((&message[24..40], &message[42..44]), (&here.octets()[..], &sum.to_be_bytes()[..]));
        packet[6..7].copy_from_slice(&[ICMPV6]);
        packet[40] = 1;
        assert_eq!(time_exceeded(&router(), &packet), None, "it is an error itself");
    }

    #[test]
    fn routers_are_silent_on_errors_groups_and_later_fragments() {
        let told = |at: usize, bytes: &[u8]| {
            let mut packet = datagram(60);
            packet[at..at + bytes.len()].copy_from_slice(bytes);
            time_exceeded(&router(), &packet).is_some()
        };
        assert!(told(6, &[0x20, 0]), "the first fragment");
        assert!(!told(6, &[0, 5]));
        assert!(!told(16, &[239, 0, 0, 1]));
        let icmp = |kind: u8| {
            let mut packet = datagram(60);
            (packet[9], packet[20]) = (ICMP, kind);
            time_exceeded(&router(), &packet).is_some()
        };
        assert_eq!((icmp(8), icmp(3), icmp(11)), (true, false, false));
        assert_eq!(time_exceeded(&[], &datagram(60)), None, "nobody has an address");
        assert_eq!(time_exceeded(&router(), &[0x45]), None);
    }
}
