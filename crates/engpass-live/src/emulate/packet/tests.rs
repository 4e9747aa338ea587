//! Tests segmenting and joining against packets that are built byte by byte, with checksums that are computed in another way.

use std::net::IpAddr;

use proptest::prelude::*;

use super::offload::{self, Kind, Offload};
use super::{Change, HEAD, ICMP, Malformed, Packet, TCP, Transport};

/// A flow of one transport over one IP version, from which test packets are built.
#[derive(Clone, Debug)]
struct Made {
    v4: bool,
    tcp: bool,
    /// Length of the IPv4 options, or of an IPv6 hop-by-hop header, in bytes.
    ip_options: usize,
    tcp_options: usize,
    class: u8,
    ttl: u8,
    identification: u16,
    sequence: u32,
    flags: u8,
    size: u16,
    payload: Vec<u8>,
}

const FIN: u8 = 1;
const PUSH: u8 = 8;
const CWR: u8 = 0x80;

/// Computes RFC 1071 in a different way: bytes at even offsets count 256 times, and the end-around carry is a remainder.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut total = 0_u64;
    for part in parts {
        for (place, byte) in part.iter().enumerate() {
            total += u64::from(*byte) * if place % 2 == 0 { 256 } else { 1 };
        }
    }
    let sum = if total == 0 { 0 } else { (total - 1) % 65_535 + 1 };
    !(sum as u16)
}

impl Made {
    fn ip_head(&self) -> usize {
        if self.v4 { 20 + self.ip_options } else { 40 + self.ip_options }
    }

    fn head(&self) -> usize {
        self.ip_head() + if self.tcp { 20 + self.tcp_options } else { 8 }
    }

    fn segments(&self) -> usize {
        self.payload.len().div_ceil(usize::from(self.size))
    }

    /// Returns the pseudo header of the transport's checksum: addresses, protocol and length.
    fn pseudo(packet: &[u8], at: usize, tcp: bool) -> Vec<u8> {
        let mut bytes = if packet[0] >> 4 == 4 { packet[12..20].to_vec() } else { packet[8..40].to_vec() };
        bytes.extend([0, if tcp { 6 } else { 17 }]);
        bytes.extend(((packet.len() - at) as u16).to_be_bytes());
        bytes
    }

    /// Builds one packet with this part of the payload and complete checksums.
    fn packet(&self, segment: usize, payload: &[u8], last: bool, change: Change) -> Vec<u8> {
        let length = self.head() + payload.len();
        let mut class = self.class;
        if change.ce {
            class |= 3;
        }
        let ttl = self.ttl.saturating_sub(change.hops);
        let protocol = if self.tcp { 6 } else { 17 };
        let mut bytes = Vec::new();
        if self.v4 {
            let identification = self.identification.wrapping_add(segment as u16);
            bytes.extend([0x40 | (self.ip_head() / 4) as u8, class]);
            bytes.extend((length as u16).to_be_bytes());
            bytes.extend(identification.to_be_bytes());
            bytes.extend([0x40, 0, ttl, protocol, 0, 0, 10, 1, 2, 3, 10, 255, 254, 253]);
            bytes.extend(vec![1; self.ip_options]);
            let sum = checksum(&[&bytes]);
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            bytes.extend([0x60 | class >> 4, class << 4, 0x12, 0x34]);
            bytes.extend(((length - 40) as u16).to_be_bytes());
            bytes.extend([if self.ip_options > 0 { 0 } else { protocol }, ttl]);
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 2]);
            if self.ip_options > 0 {
                bytes.extend([protocol, (self.ip_options / 8 - 1) as u8]);
                bytes.extend(vec![0; self.ip_options - 2]);
            }
        }
        let at = bytes.len();
        bytes.extend([0x13, 0x88, 0x14, 0x51]);
        let place = if self.tcp {
            let sequence = self.sequence.wrapping_add((segment * usize::from(self.size)) as u32);
            let mut flags = self.flags;
            if !last {
                flags &= !(FIN | PUSH);
            }
            if segment > 0 {
                flags &= !CWR;
            }
            bytes.extend(sequence.to_be_bytes());
            bytes.extend([1, 2, 3, 4, (((20 + self.tcp_options) / 4) << 4) as u8, flags, 5, 6, 0, 0, 0, 0]);
            bytes.extend(vec![1; self.tcp_options]);
            at + 16
        } else {
            bytes.extend(((8 + payload.len()) as u16).to_be_bytes());
            bytes.extend([0, 0]);
            at + 6
        };
        bytes.extend(payload);
        let sum = checksum(&[&Self::pseudo(&bytes, at, self.tcp), &bytes[at..]]);
        bytes[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Returns all segments as on a wire.
    fn cut(&self, change: Change) -> Vec<Vec<u8>> {
        let parts: Vec<_> = self.payload.chunks(self.size.into()).collect();
        let last = parts.len() - 1;
        parts
            .iter()
            .enumerate()
            .map(|(segment, part)| self.packet(segment, part, segment == last, change))
            .collect()
    }

    /// Returns the GSO packet as the kernel gives it: its transport checksum covers only the pseudo header.
    fn whole(&self) -> (Offload, Vec<u8>) {
        let mut bytes = self.packet(0, &self.payload, true, Change::default());
        let (at, place) = (self.ip_head(), if self.tcp { 16 } else { 6 });
        let partial = !checksum(&[&Self::pseudo(&bytes, at, self.tcp)]);
        bytes[at + place..at + place + 2].copy_from_slice(&partial.to_be_bytes());
        let kind = match (self.tcp, self.v4) {
            (true, true) => Kind::Tcp4,
            (true, false) => Kind::Tcp6,
            (false, _) => Kind::Udp,
        };
        let offload = Offload {
            checksum: Some((at as u16, place as u16)),
            kind,
            ecn: self.tcp && self.flags & CWR != 0,
            head: self.head() as u16,
            size: self.size,
        };
        (offload, bytes)
    }
}

/// Writes a run of segments. Returns its virtio header and the packet.
fn written(packet: &Packet, bytes: &[u8], run: std::ops::Range<u32>, change: Change) -> (Offload, Vec<u8>) {
    let mut head = [0; offload::LENGTH + HEAD];
    let length = packet.write(bytes, run.clone(), change, &[], &mut head);
    let (offload, head) = head[..length].split_first_chunk().expect("the packet begins with a virtio header");
    let mut out = head.to_vec();
    out.extend(&bytes[packet.payload_of(run)]);
    (Offload::read(offload).expect("the offload kind is known"), out)
}

/// Completes a missing checksum, as the receiving kernel or a network card does.
fn complete(offload: Offload, mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some((start, place)) = offload.checksum {
        let (start, place) = (usize::from(start), usize::from(start + place));
        let sum = checksum(&[&bytes[start..]]);
        bytes[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

fn read((offload, bytes): &(Offload, Vec<u8>)) -> Packet {
    Packet::read(*offload, bytes).expect("the packet is well-formed")
}

prop_compose! {
    fn made()(
        v4 in any::<bool>(), tcp in any::<bool>(), ip_words in 0_usize..=10, tcp_words in 0_usize..=10,
        class in any::<u8>(), ttl in any::<u8>(), identification in any::<u16>(), sequence in any::<u32>(),
        flags in any::<u8>(), size in 1_u16..3000, segments in 1_usize..20, rest in any::<u16>(),
        fill in any::<u8>(),
    ) -> Made {
        let ip_options = if v4 { ip_words * 4 } else { ip_words / 2 * 8 };
        let tcp_options = if tcp { tcp_words * 4 } else { 0 };
        let length = (segments - 1) * usize::from(size) + 1 + usize::from(rest % size);
        let payload = (0..length).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ fill).collect();
        Made { v4, tcp, ip_options, tcp_options, class, ttl, identification, sequence, flags, size, payload }
    }
}

/// The longest IPv6 packet exceeds 16 bits, and so may the offset of its checksum.
#[test]
fn checksum_at_the_end_of_the_longest_packet_is_written() {
    let mut bytes = vec![0x60, 0, 0, 0, 0xff, 0xff, 17, 64];
    bytes.resize(65_575, 0);
    let offload = Offload { checksum: Some((65_530, 43)), ..Offload::default() };
    let packet = Packet::read(offload, &bytes).expect("the packet is complete");
    let alone = packet.alone(&bytes, 0);
    assert_eq!((alone.len(), &alone[65_573..]), (65_575, &[0xff; 2][..]));
}

proptest! {
    /// Each segment equals the packet on a wire, once its checksum is complete.
    #[test]
    fn gso_segment_equals_packet_on_a_wire(made in made(), ce in any::<bool>(), hops in 0_u8..4) {
        let (change, whole) = (Change { ce, hops }, made.whole());
        let packet = read(&whole);
        prop_assert_eq!(packet.segments() as usize, made.segments());
        for (segment, expected) in (0..).zip(made.cut(change)) {
            prop_assert_eq!(packet.segment(segment) as usize, expected.len());
            let (offload, bytes) = written(&packet, &whole.1, segment..segment + 1, change);
            prop_assert_eq!(offload.kind, Kind::Whole);
            let bytes = complete(offload, bytes);
            if change == Change::default() {
                let at = made.ip_head() + 6;
                // UDP writes a checksum of zero as ones.
                let zero = !made.tcp && bytes[at..at + 2] == [0, 0];
                prop_assert!(packet.alone(&whole.1, segment) == bytes || zero);
            }
            prop_assert!(bytes == expected, "segment {segment}: {:02x?} for {:02x?}", &bytes[..packet.head.into()], &expected[..packet.head.into()]);
        }
    }

    /// A run of segments, segmented again, gives the same segments. All segments together give the original GSO packet.
    #[test]
    fn segmenting_a_segment_run_equals_direct_segmentation(made in made(), ends in any::<[u16; 2]>(), ce in any::<bool>()) {
        let whole = made.whole();
        let packet = read(&whole);
        let count = packet.segments();
        if count == 1 {
            let part = written(&packet, &whole.1, 0..1, Change::default());
            prop_assert_eq!((part.0.kind, part.1), (Kind::Whole, whole.1));
            return Ok(());
        }
        let joined = written(&packet, &whole.1, 0..count, Change::default());
        prop_assert_eq!(&joined, &whole);
        // A run of at least two segments.
        let [a, b] = ends.map(u32::from);
        let first = a % (count - 1);
        let run = first..first + 2 + b % (count - first - 1);
        let change = Change { ce, hops: 1 };
        let part = written(&packet, &whole.1, run.clone(), change);
        let again = read(&part);
        prop_assert_eq!(again.segments(), run.end - run.start);
        for (inner, outer) in run.enumerate() {
            let inner = inner as u32;
            let (offload, bytes) = written(&again, &part.1, inner..inner + 1, Change::default());
            let direct = written(&packet, &whole.1, outer..outer + 1, change);
            prop_assert_eq!((offload, bytes), direct);
        }
    }

    /// Single datagrams, joined again, give the original GSO packet. Datagrams with other headers are not joined.
    #[test]
    fn joining_datagrams_equals_the_gso_packet(made in made(), shift in any::<bool>(), ce in any::<bool>()) {
        let ip_options = if made.v4 { made.ip_options } else { 0 };
        let mut made = Made { tcp: false, tcp_options: 0, ip_options, ..made };
        made.payload.truncate(usize::from(made.size) * 12);
        let (change, whole) = (Change { ce, hops: 1 }, made.whole());
        let packet = read(&whole);
        let all = 0..packet.segments();
        let singles: Vec<_> = all.clone().map(|one| written(&packet, &whole.1, one..one + 1, Change::default())).collect();
        let packets: Vec<_> = singles.iter().map(read).collect();
        let (first, bytes) = (packets[0], &singles[0].1);
        for (count, (other, (offload, theirs))) in packets.iter().zip(&singles).enumerate().skip(1) {
            prop_assert!(first.may_be_followed(bytes, count as u32, other, theirs));
            prop_assert!(!first.may_be_followed(bytes, 60_000, other, theirs));
            // Another TTL, or another port.
            let mut strange = theirs.clone();
            strange[if shift { 7 + usize::from(made.v4) } else { made.ip_head() + 1 }] ^= 1;
            prop_assert!(!first.may_be_followed(bytes, count as u32, &read(&(*offload, strange.clone())), &strange));
            let whole_sum = Offload { checksum: None, ..*offload };
            prop_assert!(!first.may_be_followed(bytes, count as u32, &read(&(whole_sum, theirs.clone())), theirs));
            if other.length < first.length {
                prop_assert!(!other.may_be_followed(theirs, 1, &first, bytes), "a longer datagram ends the GSO packet");
            }
        }
        if packets.len() > 1 {
            let payload: Vec<u8> =
                packets.iter().zip(&singles).flat_map(|(one, (_, bytes))| one.datagram(bytes).to_vec()).collect();
            let joined = first.joined(payload.len() as u32);
            let together = [&bytes[..made.head()], &payload].concat();
            let direct = written(&packet, &whole.1, all.clone(), change);
            prop_assert_eq!(written(&joined, &together, all, change), direct);
        }
    }

    /// No input from a device makes the parser panic.
    #[test]
    fn packet_parser_survives_random_device_input(
        header in any::<[u8; offload::LENGTH]>(), mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        version in prop_oneof![Just(0x45_u8), Just(0x60), any::<u8>()], kind in 0_u8..6,
    ) {
        let header = { let mut header = header; header[1] = kind; header };
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        if bytes.len() > 6 {
            bytes[2..6].copy_from_slice(&[0, 150, 0, 110]);
        }
        any_packet(header, &bytes);
    }

    /// A packet with one changed byte is refused, or its segments add up to the whole.
    #[test]
    fn damaged_packet_is_rejected_or_segmented(made in made(), at in any::<u16>(), to in any::<u8>()) {
        let (offload, mut bytes) = made.whole();
        let at = usize::from(at) % made.head();
        bytes[at] = to;
        any_packet(offload.write(), &bytes);
    }
}

/// Does everything with the packet that the driver does.
fn any_packet(header: [u8; offload::LENGTH], bytes: &[u8]) {
    let Some(offload) = Offload::read(&header) else { return };
    let Ok(packet) = Packet::read(offload, bytes) else { return };
    let change = Change { ce: true, hops: 3 };
    let mut sum = 0;
    for segment in 0..packet.segments() {
        sum += packet.segment(segment) - u32::from(packet.head);
        let (_, one) = written(&packet, bytes, segment..segment + 1, change);
        assert_eq!(one.len(), packet.segment(segment) as usize);
    }
    assert_eq!(sum + u32::from(packet.head), packet.length);
    written(&packet, bytes, 0..packet.segments(), change);
}

fn tcp() -> Made {
    Made {
        v4: true,
        tcp: true,
        ip_options: 0,
        tcp_options: 12,
        class: 0x02,
        ttl: 64,
        identification: 65_535,
        sequence: u32::MAX - 100,
        flags: 0x10 | FIN | PUSH | CWR,
        size: 1448,
        payload: vec![7; 4000],
    }
}

#[test]
fn tcp_flags_are_on_the_right_gso_segments() {
    let whole = tcp().whole();
    let packet = read(&whole);
    let flags = |run: std::ops::Range<u32>| {
        let (offload, bytes) = written(&packet, &whole.1, run, Change::default());
        (bytes[33], offload.ecn)
    };
    assert_eq!((flags(0..1), flags(1..2), flags(2..3)), ((0x90, false), (0x10, false), (0x19, false)));
    // A GSO packet whose first segment has CWR set must say so (virtio 1.2 section 5.1.6.2).
    assert_eq!((flags(0..2), flags(1..3), flags(0..3)), ((0x90, true), (0x19, false), (0x99, true)));
}

#[test]
fn ethernet_header_shifts_the_offload_offsets() {
    let whole = tcp().whole();
    let packet = read(&whole);
    let mut head = [0; offload::LENGTH + 14 + HEAD];
    let length = packet.write(&whole.1, 0..2, Change::default(), &[9; 14], &mut head);
    let (offload, rest) = head[..length].split_first_chunk().expect("the packet begins with a virtio header");
    let offload = Offload::read(offload).expect("the offload kind is known");
    assert_eq!((offload.checksum, offload.head), (Some((34, 16)), 66));
    assert_eq!((&rest[..14], rest[14], rest.len()), (&[9; 14][..], 0x45, 66));
}

#[test]
fn icmp_packet_passes_unchanged_without_padding() {
    // A ping of odd length, padded by Ethernet.
    let mut bytes =
        vec![0x45, 0, 0, 33, 0, 9, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 8, 0, 1, 2, 3, 4, 0, 1];
    bytes.extend([5; 5]);
    let sum = checksum(&[&bytes[..20]]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend([0; 13]);
    let packet = Packet::read(Offload::default(), &bytes).expect("the packet is well-formed");
    assert_eq!((packet.segments(), packet.length, packet.headers, packet.ttl), (1, 33, 28, 64));
    assert_eq!(packet.to, "10.0.0.2".parse::<IpAddr>().expect("the address is valid"));
    assert_eq!(written(&packet, &bytes, 0..1, Change::default()), (Offload::default(), bytes[..33].to_vec()));
    let (_, changed) = written(&packet, &bytes, 0..1, Change { ce: true, hops: 2 });
    assert_eq!((changed[1], changed[8], checksum(&[&changed[..20]])), (3, 62, 0));
    assert_eq!(changed[20..], bytes[20..33]);
}

#[test]
fn ports_are_read_except_from_fragments_and_icmp() {
    let shown = |made: &Made, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = made.packet(0, &made.payload, true, Change::default());
        change(&mut bytes);
        Packet::read(Offload::default(), &bytes).expect("the packet is well-formed").transport
    };
    for v4 in [true, false] {
        let made = Made { v4, ..tcp() };
        let at = made.ip_head();
        let ports = |bytes: &mut Vec<u8>| bytes[at..at + 4].copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(shown(&made, &ports), Transport { protocol: TCP, ports: [0x102, 0x304] });
    }
    let fragment = |bytes: &mut Vec<u8>| bytes[6] = 0x20;
    assert_eq!(shown(&tcp(), &fragment), Transport { protocol: TCP, ports: [0, 0] });
    let echo = |bytes: &mut Vec<u8>| bytes[9] = ICMP;
    assert_eq!(shown(&tcp(), &echo), Transport { protocol: ICMP, ports: [0, 0] });
}

#[test]
fn packet_parser_rejects_malformed_packets() {
    let (offload, bytes) = tcp().whole();
    let refused =
        |offload: Offload, bytes: &[u8]| Packet::read(offload, bytes).expect_err("the packet is malformed");
    assert_eq!(refused(offload, &[]), Malformed::Length);
    assert_eq!(refused(offload, &[0x55; 60]), Malformed::Version);
    assert_eq!(refused(offload, &bytes[..bytes.len() - 1]), Malformed::Length);
    assert_eq!(refused(Offload { size: 0, ..offload }, &bytes), Malformed::Offload);
    assert_eq!(refused(Offload { checksum: None, ..offload }, &bytes), Malformed::Offload);
    assert_eq!(refused(Offload { checksum: Some((19, 16)), ..offload }, &bytes), Malformed::Offload);
    assert_eq!(refused(Offload { checksum: Some((20, 6)), ..offload }, &bytes), Malformed::Offload);
    assert_eq!(refused(Offload { checksum: Some((20, 65_000)), ..offload }, &bytes), Malformed::Offload);
    assert_eq!(refused(Offload { kind: Kind::Udp, ..offload }, &bytes), Malformed::Offload);
    assert_eq!(refused(Offload { kind: Kind::Tcp6, ..offload }, &bytes), Malformed::Offload);
    assert_eq!(
        Offload::read(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        None,
        "UDP fragmentation offload is not enabled"
    );
}
