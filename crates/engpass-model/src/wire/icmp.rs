//! ICMP error messages that routers send to the sender of a dropped packet (RFC 792, RFC 1191, RFC 4443).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::ip::IP_HEADER_BYTES;
use super::packet::{checksum, checksum_v6};

/// Length of the header of an ICMP error message in bytes (RFC 792).
pub const HEADER_BYTES: u64 = 8;
/// Maximum length of the IP packet of an ICMP error message in bytes (RFC 1812 section 4.3.2.3).
pub const LONGEST: u64 = 576;
/// Maximum length of the IP packet of an ICMPv6 error message in bytes: the minimum IPv6 MTU (RFC 4443 section 2.4).
const LONGEST_V6: usize = 1280;
/// Length of an IPv6 header in bytes (RFC 8200 section 3).
const IPV6_HEADER_BYTES: u64 = 40;
/// Time to live of error messages, as in Linux.
pub const TTL: u8 = 64;
/// IP precedence of error messages: internetwork control (RFC 1812 section 4.3.2.5).
pub const PRIORITY: u8 = 6;

/// IP protocol numbers.
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Protocol number of the IPv6 fragment header (RFC 8200 section 4.5).
const FRAGMENT: u8 = 44;

/// Why a router dropped a packet, as an ICMP error reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The time to live expired (RFC 792, RFC 4443 section 3.3).
    TimeExceeded,
    /// The packet must not be fragmented and exceeds the MTU of the outgoing link ("fragmentation needed", RFC 1191 section 4; "packet too
    /// big", RFC 4443 section 3.2).
    TooBig {
        /// MTU of the outgoing link in bytes.
        mtu: u32,
    },
}

/// Content of an error message about a dropped packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageContent {
    /// Index of the router in the testbed file.
    pub router: u16,
    /// Why the packet was dropped.
    pub error: Error,
    /// Number of routers that the packet had passed before.
    pub passed: u8,
    /// Length of the dropped packet in bytes.
    pub bytes: u16,
    /// Whether the dropped packet was a fragment, made by a router, that more fragments follow.
    pub more: bool,
    /// Whether the packet carried a congestion mark (CE).
    pub marked: bool,
}

impl Error {
    /// ICMP type, code and second header word.
    fn header(self) -> (u8, u8, u32) {
        match self {
            Self::TimeExceeded => (11, 0, 0),
            // RFC 1191 puts the MTU into the lower 16 bits of the word.
            Self::TooBig { mtu } => (3, 4, mtu.min(u16::MAX.into())),
        }
    }

    /// ICMPv6 type, code and second header word.
    fn header_v6(self) -> (u8, u8, u32) {
        match self {
            Self::TimeExceeded => (3, 0, 0),
            Self::TooBig { mtu } => (2, 0, mtu),
        }
    }
}

/// Which error messages routers may send about a packet. They send none about errors, multicast packets, and fragments other than the first
/// (RFC 1812 section 4.3.2.7, RFC 4443 section 2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Errors {
    /// No message.
    #[default]
    None,
    /// ICMP (RFC 792).
    V4,
    /// ICMPv6 (RFC 4443).
    V6,
}

impl Errors {
    /// Determines the error messages about this packet. The IP header and the first bytes behind it are sufficient.
    pub fn about(packet: &[u8]) -> Self {
        match packet.first().map(|byte| byte >> 4) {
            Some(4) if is_silent_v4(packet) == Some(false) => Self::V4,
            Some(6) if is_silent_v6(packet) == Some(false) => Self::V6,
            _ => Self::None,
        }
    }

    /// Length of the IP packet with a message about a dropped packet of `packet` bytes. `None` if there is no message.
    pub fn bytes(self, packet: u64) -> Option<u64> {
        match self {
            Self::None => None,
            Self::V4 => Some(error_bytes(packet)),
            Self::V6 => Some((packet + IPV6_HEADER_BYTES + HEADER_BYTES).min(LONGEST_V6 as u64)),
        }
    }
}

/// Whether routers must not send an error message about a packet. `None` if the packet is shorter than an IPv4 header.
fn is_silent_v4(packet: &[u8]) -> Option<bool> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let head = usize::from(header[0] & 0xf) * 4;
    let to = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
    let offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
    // Echo requests, echo replies and other queries are not errors.
    let is_error = header[9] == ICMP && packet.get(head).is_none_or(|kind| matches!(kind, 3..=5 | 11 | 12));
    Some(offset != 0 || to.is_multicast() || to.is_broadcast() || is_error)
}

/// As [`is_silent_v4`], for IPv6.
fn is_silent_v6(packet: &[u8]) -> Option<bool> {
    let header: &[u8; 40] = packet.first_chunk()?;
    let to: [u8; 16] = header[24..40].try_into().expect("sixteen bytes");
    // ICMPv6 types below 128 are errors.
    let is_error = header[6] == ICMPV6 && packet.get(40).is_none_or(|kind| *kind < 128);
    let is_later = header[6] == FRAGMENT
        && packet.get(42..44).is_none_or(|offset| u16::from_be_bytes([offset[0], offset[1]]) >> 3 != 0);
    Some(Ipv6Addr::from(to).is_multicast() || is_error || is_later)
}

/// Number of bytes that an ICMP message quotes of a dropped IP packet of `packet` bytes.
pub fn payload_bytes(packet: u64) -> u64 {
    packet.min(LONGEST - IP_HEADER_BYTES - HEADER_BYTES)
}

/// Length of the IP packet with an ICMP message about a dropped packet of `packet` bytes.
pub fn error_bytes(packet: u64) -> u64 {
    IP_HEADER_BYTES + HEADER_BYTES + payload_bytes(packet)
}

/// Returns the error message about `packet`, IP header included, from a router with these addresses. `None` if routers send no message
/// about it ([`Errors::about`]) or if the router has no address of that IP version.
pub fn message(router: &[IpAddr], packet: &[u8], error: Error) -> Option<Vec<u8>> {
    match Errors::about(packet) {
        Errors::None => None,
        Errors::V4 => {
            let own = router.iter().find_map(|address| match address {
                IpAddr::V4(address) => Some(*address),
                IpAddr::V6(_) => None,
            });
            Some(message_v4(own?, packet, error))
        }
        Errors::V6 => {
            let own = router.iter().find_map(|address| match address {
                IpAddr::V6(address) => Some(*address),
                IpAddr::V4(_) => None,
            });
            Some(message_v6(own?, packet, error))
        }
    }
}

fn message_v4(own: Ipv4Addr, packet: &[u8], error: Error) -> Vec<u8> {
    let quoted = &packet[..payload_bytes(packet.len() as u64) as usize];
    let (kind, code, word) = error.header();
    let mut body = vec![kind, code, 0, 0];
    body.extend(word.to_be_bytes());
    body.extend(quoted);
    let sum = checksum(&body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = IP_HEADER_BYTES as u16 + body.len() as u16;
    // DSCP class selector of the precedence.
    let mut message = vec![0x45, PRIORITY << 5];
    message.extend(length.to_be_bytes());
    message.extend([0, 0, 0, 0, TTL, ICMP, 0, 0]);
    message.extend(own.octets());
    message.extend(&packet[12..16]);
    let sum = checksum(&message);
    message[10..12].copy_from_slice(&sum.to_be_bytes());
    message.extend(body);
    message
}

fn message_v6(own: Ipv6Addr, packet: &[u8], error: Error) -> Vec<u8> {
    let from: [u8; 16] = packet[8..24].try_into().expect("sixteen bytes");
    let (kind, code, word) = error.header_v6();
    let mut body = vec![kind, code, 0, 0];
    body.extend(word.to_be_bytes());
    body.extend(&packet[..packet.len().min(LONGEST_V6 - 48)]);
    let sum = checksum_v6(&own.octets(), &from, ICMPV6, &body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut message = vec![0x60, 0, 0, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend([ICMPV6, TTL]);
    message.extend(own.octets());
    message.extend(from);
    message.extend(body);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router() -> Vec<IpAddr> {
        ["10.0.0.9", "fd00::9"].map(|text| text.parse().expect("the address is valid")).to_vec()
    }

    fn datagram(length: usize) -> Vec<u8> {
        let mut bytes = vec![0x45, 0];
        bytes.extend((length as u16).to_be_bytes());
        bytes.extend([0, 1, 0x40, 0, 1, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.resize(length, 7);
        bytes
    }

    #[test]
    fn icmp_error_quotes_the_packet_as_far_as_it_fits() {
        let packet = datagram(1500);
        let sent =
            message(&router(), &packet, Error::TimeExceeded).expect("the router sends an ICMP message");
        assert_eq!((sent.len(), sent[0], sent[9]), (576, 0x45, ICMP));
        assert_eq!((&sent[12..16], &sent[16..20]), (&[10, 0, 0, 9][..], &[10, 0, 0, 1][..]));
        assert_eq!((&sent[20..22], &sent[28..]), (&[11, 0][..], &packet[..548]));
        // The checksum over data that includes its checksum is zero.
        assert_eq!((checksum(&sent[..20]), checksum(&sent[20..])), (0, 0));
        assert_eq!(
            message(&router(), &datagram(28), Error::TimeExceeded)
                .expect("the router sends an ICMP message")
                .len(),
            56
        );
    }

    #[test]
    fn icmpv6_error_quotes_the_packet_but_never_an_error() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 9, 17, 1];
        let [here, there] =
            ["fd00::1", "fd00::2"].map(|text| text.parse::<Ipv6Addr>().expect("the address is valid"));
        packet.extend(here.octets());
        packet.extend(there.octets());
        packet.extend([3; 9]);
        let sent =
            message(&router(), &packet, Error::TimeExceeded).expect("the router sends an ICMP message");
        assert_eq!((&sent[40..42], &sent[48..]), (&[3, 0][..], &packet[..]));
        let own: [u8; 16] = sent[8..24].try_into().expect("sixteen bytes");
        let mut body = sent[40..].to_vec();
        body[2..4].copy_from_slice(&[0, 0]);
        let sum = checksum_v6(&own, &here.octets(), ICMPV6, &body);
        assert_eq!((&sent[24..40], &sent[42..44]), (&here.octets()[..], &sum.to_be_bytes()[..]));
        packet[6..7].copy_from_slice(&[ICMPV6]);
        packet[40] = 1;
        assert_eq!(
            message(&router(), &packet, Error::TimeExceeded),
            None,
            "no ICMP error answers an ICMP error"
        );
    }

    #[test]
    fn no_icmp_error_for_errors_groups_or_later_fragments() {
        let told = |at: usize, bytes: &[u8]| {
            let mut packet = datagram(60);
            packet[at..at + bytes.len()].copy_from_slice(bytes);
            message(&router(), &packet, Error::TimeExceeded).is_some()
        };
        assert!(told(6, &[0x20, 0]), "a first fragment is answered");
        assert!(!told(6, &[0, 5]));
        assert!(!told(16, &[239, 0, 0, 1]));
        let icmp = |kind: u8| {
            let mut packet = datagram(60);
            (packet[9], packet[20]) = (ICMP, kind);
            message(&router(), &packet, Error::TimeExceeded).is_some()
        };
        assert_eq!((icmp(8), icmp(3), icmp(11)), (true, false, false));
        assert_eq!(
            message(&[], &datagram(60), Error::TimeExceeded),
            None,
            "a router without an address sends no message"
        );
        assert_eq!(message(&router(), &[0x45], Error::TimeExceeded), None);
    }

    #[test]
    fn computed_icmp_error_length_equals_built_message() {
        let mut six = vec![0x60, 0, 0, 0, 0, 0, 17, 1];
        six.resize(2000, 1);
        for length in [60, 548, 549, 1240, 1500] {
            for (packet, errors) in [(datagram(length), Errors::V4), (six[..length].to_vec(), Errors::V6)] {
                let sent = message(&router(), &packet, Error::TimeExceeded)
                    .expect("the router sends an ICMP message");
                assert_eq!(
                    (Errors::about(&packet), errors.bytes(length as u64)),
                    (errors, Some(sent.len() as u64))
                );
            }
        }
        assert_eq!(
            (Errors::about(&[]), Errors::about(&[0x60]), Errors::None.bytes(60)),
            (Errors::None, Errors::None, None)
        );
        // A later fragment over IPv6 (RFC 8200 section 4.5), then a first fragment.
        six[6] = FRAGMENT;
        six[42..44].copy_from_slice(&[0, 9]);
        assert_eq!(Errors::about(&six), Errors::None);
        six[43] = 1;
        assert_eq!(Errors::about(&six), Errors::V6);
    }

    #[test]
    fn icmp_error_takes_at_most_576_bytes() {
        assert_eq!([28, 84, 548, 549, 1500].map(error_bytes), [56, 112, 576, 576, 576]);
    }

    #[test]
    fn icmp_too_big_error_carries_the_mtu() {
        let sent = message(&router(), &datagram(1500), Error::TooBig { mtu: 1400 })
            .expect("the router sends an ICMP message");
        assert_eq!(sent[20..28], [3, 4, sent[22], sent[23], 0, 0, 0x05, 0x78]);
        assert_eq!(checksum(&sent[20..]), 0);
        // RFC 1191 has 16 bits for the MTU.
        let sent = message(&router(), &datagram(1500), Error::TooBig { mtu: 70_000 })
            .expect("the router sends an ICMP message");
        assert_eq!(sent[24..28], [0, 0, 0xff, 0xff]);
        let mut packet = vec![0x60, 0, 0, 0, 0, 9, 17, 1];
        packet.extend([1; 41]);
        let sent = message(&router(), &packet, Error::TooBig { mtu: 1400 })
            .expect("the router sends an ICMP message");
        assert_eq!((sent[40], sent[41], &sent[44..48]), (2, 0, &[0, 0, 0x05, 0x78][..]));
    }
}
