//! Tests captures of injected packets, whose bytes are real.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use engpass_capture::{File, Files, Limit, Packets, Point, passing};
use engpass_model::queue::Ecn;
use engpass_model::wire::packet::{Ends, Ipv4, Protocol, checksum, udp};
use engpass_simulate::injection::{DeliveryReport, InjectedNetwork, Packet as Input};
use engpass_simulate::{Content, Head, Packet};

use crate::common::point;
use crate::reader::{Block, read};
use crate::testbeds::{CIRCUIT, ETHERNET, PARTED};

/// Bytes of packets by token.
struct Real(BTreeMap<u64, Vec<u8>>);

impl Packets for Real {
    fn write(&mut self, packet: &Packet, out: &mut Vec<u8>) {
        let Content::Outside { token, .. } = packet.content else {
            panic!("every packet is an injected packet")
        };
        passing(&self.0[&token], &packet.head, out);
    }
}

/// Returns a datagram with its token in the payload.
fn real(token: u64, bytes: usize) -> Vec<u8> {
    let ends =
        Ends { addresses: (Ipv4Addr::new(10, 64, 0, 1), Ipv4Addr::new(10, 64, 0, 2)), ports: (4000, 4001) };
    let mut payload = vec![0; bytes];
    payload[..8].copy_from_slice(&token.to_be_bytes());
    let head = Ipv4 {
        addresses: ends.addresses,
        id: token as u16,
        offset: 0,
        more: false,
        dont_fragment: false,
        ttl: 40,
        dscp: 0,
        ecn: Ecn::Capable,
        protocol: Protocol::Udp,
    };
    let mut packet = Vec::new();
    head.write(&udp(&ends, &payload), &mut packet);
    packet
}

/// Injects `count` packets with `bytes` of payload, two every 10 ms, and captures at a point. Returns the file and the number of delivered packets.
fn sent(text: &str, at: &str, count: u64, bytes: usize) -> (Vec<u8>, usize) {
    let run = point(text, "base", &[]);
    let mut network =
        InjectedNetwork::new(&run.testbed, &run.topology, 1).expect("the model supports the testbed");
    let place = Point::find(at, None, network.topology()).expect("the testbed has this link");
    let all: BTreeMap<u64, Vec<u8>> = (0..count).map(|token| (token, real(token, bytes))).collect();
    let mut out = Vec::new();
    let packets = Box::new(Real(all.clone()));
    let file = File::begin(network.topology(), place, Limit::default(), packets, "", &mut out);
    let mut files = Files(vec![file.expect("writing to a vector cannot fail")]);
    network.capture(&files.ports());
    let way = network
        .ways()
        .iter()
        .position(|way| (way.from, way.to) == (0, 1))
        .expect("the testbed has a path from a to b");
    let mut delivered = 0;
    // In pairs, injected at one instant.
    for (token, packet) in all.iter().step_by(2) {
        let input = Input {
            bytes: packet.len() as u32,
            header: 8,
            ttl: 40,
            ecn: Ecn::Capable,
            token: *token,
            ..Input::default()
        };
        network.inject_identical(token * 5_000_000_000, way as u32, input, 2);
    }
    for step in 1..100 {
        network.run_until(step * 10_000_000_000, &mut |output| {
            delivered += usize::from(matches!(output, DeliveryReport::Delivered { .. }));
        });
        network.deliver_records(&mut files).expect("nothing stops the capture");
    }
    network.end_capture(&mut files).expect("nothing stops the capture");
    files.0.remove(0).end().expect("writing to a vector cannot fail");
    (out, delivered)
}

#[test]
fn injected_packets_are_captured_with_their_own_bytes() {
    let (bytes, delivered) = sent(ETHERNET, "link.wan", 20, 500);
    assert_eq!(delivered, 20);
    let blocks = read(&bytes);
    let packets: Vec<_> = blocks.iter().filter_map(Block::packet).collect();
    assert_eq!(packets.len(), 20);
    for (token, (_, _, packet)) in packets.iter().enumerate() {
        let whole = real(token as u64, 500);
        assert_eq!((packet.len(), &packet[20..]), (whole.len(), &whole[20..]));
        // Two routers have decremented the TTL.
        assert_eq!((packet[8], whole[8]), (38, 40));
        assert_eq!(checksum(&packet[..20]), 0, "the IP header has a valid checksum");
    }
}

#[test]
fn injected_packets_are_captured_as_router_fragments() {
    let (bytes, delivered) = sent(ETHERNET, "link.right.r", 10, 1400);
    assert_eq!(delivered, 10);
    let blocks = read(&bytes);
    let packets: Vec<_> = blocks.iter().filter_map(Block::packet).map(|(_, _, frame)| &frame[14..]).collect();
    assert_eq!(packets.len(), 20);
    for (token, pair) in packets.chunks(2).enumerate() {
        let whole = real(token as u64, 1400);
        let length = |packet: &[u8]| usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        let parts: Vec<u8> = pair.iter().flat_map(|packet| packet[20..length(packet)].to_vec()).collect();
        assert_eq!(parts, whole[20..]);
        assert_eq!([pair[0][6] >> 5, pair[1][6] >> 5], [1, 0], "only the first fragment has the MF flag");
    }
}

#[test]
fn injected_packets_are_captured_as_complete_pdus() {
    let (bytes, delivered) = sent(CIRCUIT, "link.second.s", 20, 1000);
    assert_eq!(delivered, 20);
    let blocks = read(&bytes);
    let packets: Vec<_> =
        blocks.iter().filter_map(Block::packet).map(|(_, _, record)| &record[20..]).collect();
    let own = packets.iter().filter(|pdu| pdu[8 + 20..8 + 22] == 4000_u16.to_be_bytes());
    let sdus: Vec<_> =
        own.map(|pdu| engpass_model::wire::aal5::read_pdu(pdu).expect("the AAL5 PDU is valid")).collect();
    assert_eq!(sdus.len(), 20);
    for (token, sdu) in sdus.iter().enumerate() {
        assert_eq!(sdu[8..], real(token as u64, 1000));
    }
}

/// Packets longer than the first line's MTU are fragmented, and their fragments take different paths.
#[test]
fn fragments_on_different_paths_keep_their_own_bytes() {
    let frames = |at: &str| {
        let (bytes, delivered) = sent(PARTED, at, 20, 4000);
        assert_eq!(delivered, 20);
        let blocks = read(&bytes);
        blocks.iter().filter_map(Block::packet).map(|(_, _, frame)| frame[14..].to_vec()).collect::<Vec<_>>()
    };
    let all = ["link.one.near", "link.two.near", "link.other.near"].map(frames);
    assert!(all.iter().all(|frames| frames.len() == 20), "each path carries one fragment of each packet");
    for token in 0..20 {
        let whole = real(token, 4000);
        let id = (token as u16).to_be_bytes();
        let mut parts: Vec<&Vec<u8>> = all.iter().flatten().filter(|packet| packet[4..6] == id).collect();
        parts.sort_by_key(|packet| u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff);
        let parts: Vec<u8> = parts.iter().flat_map(|packet| packet[20..].to_vec()).collect();
        assert_eq!(parts, whole[20..]);
    }
}

/// The model fragments 1482 bytes behind a header of 20. This header has 24 bytes, so 1478 bytes follow it, and the first fragment takes them all.
#[test]
fn ip_options_are_on_every_fragment() {
    let plain = real(7, 1470);
    let mut whole = [&plain[..20], &[1; 4], &plain[20..]].concat();
    whole[0] = 0x46;
    let heads = [
        Head { bytes: 1500, more: true, ttl: 9, ..Head::default() },
        Head { bytes: 22, offset: 1480, ttl: 9, ..Head::default() },
    ];
    let fragments = heads.map(|head| {
        let mut out = Vec::new();
        passing(&whole, &head, &mut out);
        out
    });
    for fragment in &fragments {
        assert_eq!((checksum(&fragment[..24]), &fragment[20..24]), (0, &[1; 4][..]));
        assert_eq!(usize::from(u16::from_be_bytes([fragment[2], fragment[3]])), fragment.len());
    }
    assert_eq!([&fragments[0][24..], &fragments[1][24..]].concat(), whole[24..]);
}
