//! Tests groups and routers' ICMP messages, with the simulated network and artificial hosts.

use std::fs;
use std::net::IpAddr;

use super::super::ethernet::Station;
use super::super::log::Log;
use super::super::packet::offload::LENGTH;
use super::super::routers::Routers;
use super::law::{again, model_of};
use super::world::Fake;
use super::{datagrams, driver, numbers, path};

/// A sender, a router, and two receivers behind a switch. `tests/python/test_emulate_segments.py` uses the same testbed with real hosts.
pub(super) const TREE: &str = include_str!("../../../../../tests/data/group.toml");

/// Builds datagrams to an address, with this TTL.
fn sent(from: usize, to: [u8; 4], ttl: u8, number: u32, segments: usize) -> Vec<u8> {
    let mut bytes = datagrams(from, 0, number, segments, 1000);
    bytes[LENGTH + 16..LENGTH + 20].copy_from_slice(&to);
    bytes[LENGTH + 8] = ttl;
    bytes
}

/// Sends packets from hosts by index. Returns the packets written, and the number lost.
fn written(name: &str, sends: Vec<(usize, Vec<u8>)>, segments: &[usize]) -> (Fake, u64) {
    let (world, lost, _) = logged(name, sends, segments);
    (world, lost)
}

/// Like `written`, and also returns the log.
fn logged(name: &str, sends: Vec<(usize, Vec<u8>)>, segments: &[usize]) -> (Fake, u64, Vec<u8>) {
    let mut world = Fake::new(3, 4);
    for (at, (from, bytes)) in sends.into_iter().enumerate() {
        world.scripts[from].push_back((2_000_000 + at as u64 * 1_000_000, bytes));
    }
    let log = Log::create(&path(name), &serde_json::json!({ "engpass-log": 1 })).expect("the file opens");
    let mut driver = driver(model_of(TREE, segments), world, 1, Some(log));
    let router = ["10.0.0.9", "fd00::9"].map(|text| text.parse::<IpAddr>().expect("the address is valid"));
    driver.routers = Routers(vec![router.to_vec()]);
    if !segments.is_empty() {
        driver.stations([1, 2, 3].map(|last| Some(Station { device: [2, 0, 0, 0, 0, last] })));
    }
    for _ in 0..2000 {
        driver.turn();
    }
    assert!(driver.world.is_over() && driver.kept() == 0);
    driver.end();
    let lost = driver.counts.lost.iter().sum();
    let bytes = fs::read(path(name)).expect("the log was written");
    fs::remove_file(path(name)).expect("the file exists");
    let found = again(&mut model_of(TREE, segments), &bytes);
    assert_eq!((found.difference.as_ref(), found.whole, found.changed), (None, true, 0));
    (driver.world, lost, bytes)
}

/// Returns a log of packets to a group and to single hosts, the length of its header in bytes, and its number of records.
pub(super) fn group_log(name: &str) -> (Vec<u8>, usize, usize) {
    let sends = (0..12).map(|number| match number % 3 {
        0 => (0, sent(0, [239, 255, 0, 1], 4, number, 3)),
        1 => (1, sent(1, [10, 0, 0, 1], 4, number, 1)),
        _ => (0, sent(0, [10, 0, 0, 3], 1, number, 2)),
    });
    let (.., bytes) = logged(name, sends.collect(), &[]);
    let header = bytes.iter().position(|byte| *byte == b'\n').expect("the log has a header line") + 1;
    let count = (bytes.len() - header) / 48;
    (bytes, header, count)
}

#[test]
fn group_packets_reach_the_other_members() {
    let group = [239, 255, 0, 1];
    let sends = vec![(0, sent(0, group, 4, 10, 3)), (1, sent(1, group, 1, 20, 1))];
    let (world, lost) = written("members", sends, &[]);
    let got = |host: usize| {
        let own = world.written.iter().filter(|one| one.host == host);
        own.flat_map(|one| numbers(&one.offload, &one.bytes)).collect::<Vec<_>>()
    };
    // A member does not receive its own packets.
    assert_eq!((got(0), got(1), got(2), lost), (vec![], vec![10, 11, 12], vec![10, 11, 12, 20], 0));
    let ttls: Vec<_> = world.written.iter().filter(|one| one.host == 2).map(|one| one.bytes[8]).collect();
    assert_eq!((ttls.first(), ttls.last()), (Some(&3), Some(&1)), "the router decrements the TTL");
}

#[test]
fn router_reports_expired_ttl_of_unicast_packets_only() {
    let there = [10, 0, 0, 2];
    let group = [239, 255, 0, 1];
    let sends =
        vec![(0, sent(0, there, 1, 1, 1)), (0, sent(0, group, 1, 2, 1)), (0, sent(0, there, 2, 3, 1))];
    let (world, lost) = written("life", sends, &[]);
    assert_eq!(lost, 3, "one unicast packet and two group copies are lost");
    let [told, passed] = &world.written[..] else {
        panic!("expected an ICMP message and a packet: {:?}", world.written)
    };
    assert_eq!((told.host, &told.bytes[9..10], &told.bytes[12..16]), (0, &[1][..], &[10, 0, 0, 9][..]));
    assert_eq!((told.bytes[20], &told.bytes[28 + 16..28 + 20]), (11, &there[..]));
    assert_eq!((told.bytes[8], told.bytes[28 + 8]), (64, 1), "the message quotes the packet as received");
    assert_eq!((passed.host, passed.bytes[8]), (1, 1));
}

#[test]
fn ethernet_broadcast_reaches_all_hosts_on_the_segment() {
    let frame = |bytes: &[u8]| {
        let header = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 2, 8, 0]].concat();
        let mut frame = [&bytes[..LENGTH], &header, &bytes[LENGTH..]].concat();
        // The checksum offset now counts from the Ethernet header.
        frame[6] += 14;
        frame
    };
    let sends =
        vec![(1, frame(&sent(1, [255; 4], 64, 30, 1))), (1, frame(&sent(1, [224, 0, 0, 251], 1, 31, 1)))];
    let (world, lost) = written("segment", sends, &[0, 1, 2]);
    let hosts: Vec<_> = world.written.iter().map(|one| (one.host, one.bytes[0])).collect();
    // No host behind the router receives it.
    assert_eq!((hosts, lost), (vec![(2, 0xff), (2, 1)], 0));
}
