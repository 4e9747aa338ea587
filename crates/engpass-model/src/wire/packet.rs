//! IPv4 packets, UDP datagrams and TCP segments as bytes (RFC 791, RFC 768, RFC 9293), with their checksums.

use std::net::Ipv4Addr;

use etherparse::checksum::Sum16BitWords;
use etherparse::{IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Header, TcpHeader, UdpHeader};

use super::ip::{IP_HEADER_BYTES, UDP_HEADER_BYTES};
use crate::queue::Ecn;
use crate::tcp::{Flags, Segment};
use crate::time::Time;

/// Payload type of an IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, protocol 6.
    Tcp,
    /// UDP, protocol 17.
    Udp,
    /// A tunnel, with its IP protocol number.
    Tunnel(u8),
}

/// Header fields of an IPv4 packet (RFC 791 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Source and destination.
    pub addresses: (Ipv4Addr, Ipv4Addr),
    /// Identification.
    pub id: u16,
    /// Fragment offset in bytes, a multiple of 8.
    pub offset: u32,
    /// More fragments follow.
    pub more: bool,
    /// Routers must not fragment the packet.
    pub dont_fragment: bool,
    /// Time to live.
    pub ttl: u8,
    /// Differentiated services code point (RFC 2474).
    pub dscp: u8,
    /// ECN codepoint (RFC 3168 section 5).
    pub ecn: Ecn,
    /// Payload type.
    pub protocol: Protocol,
}

impl Ipv4 {
    /// Appends the packet with this header and payload.
    ///
    /// # Panics
    /// If the packet is longer than 65 535 bytes or a field is out of range. Packets of the model never are.
    pub fn write(&self, payload: &[u8], out: &mut Vec<u8>) {
        let length = u16::try_from(payload.len()).expect("an IPv4 packet has at most 65 535 bytes");
        let protocol = match self.protocol {
            Protocol::Tcp => IpNumber::TCP,
            Protocol::Udp => IpNumber::UDP,
            Protocol::Tunnel(number) => IpNumber(number),
        };
        let (source, destination) = (self.addresses.0.octets(), self.addresses.1.octets());
        let mut header = Ipv4Header::new(length, self.ttl, protocol, source, destination)
            .expect("an IPv4 packet has at most 65 535 bytes");
        header.identification = self.id;
        header.dont_fragment = self.dont_fragment;
        header.more_fragments = self.more;
        let units = (self.offset / 8) as u16;
        header.fragment_offset = IpFragOffset::try_new(units).expect("a fragment offset has 13 bits");
        header.dscp = IpDscp::try_new(self.dscp).expect("a DSCP has 6 bits");
        header.ecn = match self.ecn {
            Ecn::NotCapable => IpEcn::ZERO,
            // RFC 3168 section 5: ECT(0) is 10, CE is 11.
            Ecn::Capable => IpEcn::TWO,
            Ecn::Marked => IpEcn::THREE,
        };
        header.header_checksum = header.calc_header_checksum();
        debug_assert_eq!(header.header_len() as u64, IP_HEADER_BYTES);
        out.extend(header.to_bytes());
        out.extend_from_slice(payload);
    }
}

/// Internet checksum (RFC 1071) of `bytes`, whose checksum field must be zero.
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum16BitWords::new().add_slice(bytes).ones_complement().to_be()
}

/// Checksum of a message over IPv6, pseudo-header included (RFC 8200 section 8.1). The checksum field of the message must be zero.
pub fn checksum_v6(from: &[u8; 16], to: &[u8; 16], protocol: u8, message: &[u8]) -> u16 {
    let length = (message.len() as u32).to_be_bytes();
    let words = Sum16BitWords::new().add_slice(from).add_slice(to).add_slice(&length);
    words.add_slice(&[0, 0, 0, protocol]).add_slice(message).ones_complement().to_be()
}

/// Addresses and ports of a UDP flow or TCP connection, from the sender's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Source and destination.
    pub addresses: (Ipv4Addr, Ipv4Addr),
    /// Source and destination port.
    pub ports: (u16, u16),
}

/// Returns a UDP datagram with this payload, header and checksum included (RFC 768).
///
/// # Panics
/// If the payload is longer than 65 527 bytes, the most that the length field of UDP allows.
pub fn udp(ends: &Ends, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = ends.addresses;
    let (from, to) = ends.ports;
    let mut header = UdpHeader::without_ipv4_checksum(from, to, payload.len())
        .expect("a UDP payload fits into an IPv4 packet");
    header.checksum = header
        .calc_checksum_ipv4_raw(source.octets(), destination.octets(), payload)
        .expect("a UDP payload fits into an IPv4 packet");
    let mut bytes = Vec::with_capacity(UDP_HEADER_BYTES as usize + payload.len());
    bytes.extend(header.to_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns a TCP segment with this payload, header, options and checksum included (RFC 9293 section 3.1).
///
/// Sequence numbers are the low 32 bits of the model's, so a SYN has 0. `scale` is the window scale that the sender announced in its SYN,
/// or 0 unless both ends announced one (RFC 7323 section 2). `tick` is the period of the sender's timestamp clock.
///
/// # Panics
/// If the length of the payload differs from the segment's.
pub fn tcp(ends: &Ends, segment: &Segment, scale: u8, tick: Time, payload: &[u8]) -> Vec<u8> {
    assert_eq!(payload.len() as u64, segment.payload(), "the payload has the length in the segment");
    let syn = segment.flags.has(Flags::SYN);
    // The window of a SYN is never scaled (RFC 7323 section 2.2).
    let window = if syn { segment.window } else { segment.window >> scale };
    let window = u16::try_from(window).unwrap_or(u16::MAX);
    let mut header = TcpHeader::new(ends.ports.0, ends.ports.1, segment.seq as u32, window);
    header.ack = segment.flags.has(Flags::ACK);
    header.acknowledgment_number = if header.ack { segment.ack as u32 } else { 0 };
    header.syn = syn;
    header.fin = segment.flags.has(Flags::FIN);
    header.rst = segment.flags.has(Flags::RST);
    header.psh = segment.flags.has(Flags::PSH);
    header.ece = segment.flags.has(Flags::ECE);
    header.cwr = segment.flags.has(Flags::CWR);
    header.set_options_raw(&options(segment, tick)).expect("options take at most 40 bytes");
    debug_assert_eq!(
        header.header_len() as u64,
        segment.header_len(),
        "the header has the length that the model accounts"
    );
    let (source, destination) = (ends.addresses.0.octets(), ends.addresses.1.octets());
    header.checksum = header
        .calc_checksum_ipv4_raw(source, destination, payload)
        .expect("a segment fits into an IPv4 packet");
    let mut bytes = Vec::with_capacity(header.header_len() + payload.len());
    bytes.extend(header.to_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns the options of a segment in the layout that [`Segment::header_len`] assumes, padded to whole 32-bit words.
fn options(segment: &Segment, tick: Time) -> Vec<u8> {
    const NOP: u8 = 1;
    let mut bytes = Vec::with_capacity(40);
    let syn = segment.flags.has(Flags::SYN);
    if segment.mss > 0 && syn {
        bytes.extend([2, 4]);
        bytes.extend(segment.mss.to_be_bytes());
    }
    if segment.sack_permitted && syn {
        bytes.extend([4, 2]);
    }
    if let Some(timestamps) = segment.timestamps {
        if !syn {
            bytes.extend([NOP, NOP]);
        }
        let ticks = |time: Time| (time.ps() / tick.ps().max(1)) as u32;
        bytes.extend([8, 10]);
        bytes.extend(ticks(timestamps.value()).to_be_bytes());
        bytes.extend(timestamps.echo().map_or(0, ticks).to_be_bytes());
    }
    if let Some(scale) = segment.window_scale.filter(|_| syn) {
        bytes.extend([3, 3, scale]);
    }
    if !syn && segment.has_sack() {
        let blocks: Vec<_> = segment.sack().iter(segment.ack).collect();
        bytes.extend([NOP, NOP, 5, 2 + 8 * blocks.len() as u8]);
        for (start, end) in blocks {
            bytes.extend((start as u32).to_be_bytes());
            bytes.extend((end as u32).to_be_bytes());
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), NOP);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{SackBlocks, Timestamps};

    const ENDS: Ends =
        Ends { addresses: (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)), ports: (49_152, 42_000) };

    /// The one's complement sum of 16-bit words (RFC 1071 section 1).
    fn sum(words: &[u8]) -> u16 {
        let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        let sum: u32 = words.chunks(2).map(word).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    fn pseudo(protocol: u8, bytes: &[u8]) -> Vec<u8> {
        let mut all = [ENDS.addresses.0.octets(), ENDS.addresses.1.octets()].concat();
        all.extend([0, protocol]);
        all.extend((bytes.len() as u16).to_be_bytes());
        all.extend_from_slice(bytes);
        all
    }

    #[test]
    fn ip_udp_and_tcp_checksums_verify() {
        let payload: Vec<u8> = (0..101).collect();
        let datagram = udp(&ENDS, &payload);
        assert_eq!(datagram.len(), 109);
        assert_eq!(sum(&pseudo(17, &datagram)), 0xffff);
        let segment = Segment { seq: (1 << 32) + 7, len: 101, flags: Flags::ACK, ..Segment::default() };
        let bytes = tcp(&ENDS, &segment, 0, Time(1), &payload);
        assert_eq!(sum(&pseudo(6, &bytes)), 0xffff);
        assert_eq!(bytes[4..8], [0, 0, 0, 7]);
        let head = Ipv4 {
            addresses: ENDS.addresses,
            id: 7,
            offset: 1480,
            more: true,
            dont_fragment: false,
            ttl: 64,
            dscp: 8,
            ecn: Ecn::Marked,
            protocol: Protocol::Udp,
        };
        let mut packet = Vec::new();
        head.write(&payload, &mut packet);
        assert_eq!(sum(&packet[..20]), 0xffff);
        // Bytes 0 and 1: version, header length, DSCP and ECN. Bytes 6 and 7: flags, and the offset in units of 8 bytes.
        assert_eq!((packet[0], packet[1], &packet[6..8]), (0x45, 0x23, &[0x20, 185][..]));
    }

    #[test]
    fn tcp_options_have_the_computed_length() {
        let mut syn = Segment {
            flags: Flags::SYN,
            mss: 1460,
            window: 65_535,
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps::new(Time(5_000_000_000), None)),
            ..Segment::default()
        };
        let bytes = tcp(&ENDS, &syn, 7, Time(1_000_000_000), &[]);
        assert_eq!((bytes.len(), &bytes[14..16]), (40, &[0xff, 0xff][..]), "a SYN's window is not scaled");
        assert_eq!(bytes[20..40], [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0, 3, 3, 7, 1]);
        syn.flags = Flags::ACK;
        let mut blocks = SackBlocks::default();
        blocks.push(10, 20);
        blocks.push(30, 40);
        syn.report(blocks);
        let bytes = tcp(&ENDS, &syn, 7, Time(1_000_000_000), &[]);
        assert_eq!(bytes.len() as u64, syn.header_len());
        assert_eq!(bytes[14..16], [1, 255]);
        assert_eq!(bytes[20..24], [1, 1, 8, 10]);
        assert_eq!(bytes[32..36], [1, 1, 5, 18]);
    }
}
