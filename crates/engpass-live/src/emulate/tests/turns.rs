//! Tests what a turn of the driver reads, writes, counts and discards.

use proptest::prelude::*;
use serde_json::json;

use super::super::driver::Driver;
use super::super::ethernet::{self, Station};
use super::super::packet::offload::{Kind, Offload};
use super::world::{Fake, Line};
use super::{address, datagrams, driver, numbers};
use crate::emulate::network::Network;

/// Turns until all packets are sent and the packet pool is empty.
fn run_out<N: Network>(driver: &mut Driver<N, Fake>) {
    for _ in 0..100_000 {
        driver.turn();
        if driver.world.is_over() && driver.kept() == 0 {
            return;
        }
    }
    panic!("every injected packet is delivered or lost");
}

#[test]
fn gso_packet_that_arrives_at_once_is_written_as_one() {
    let mut world = Fake::new(2, 1);
    let sent = datagrams(0, 1, 100, 40, 1000);
    world.scripts[0].push_back((2_000_000, sent.clone()));
    let mut driver = driver(Line::new(2, 0, 0, 100, 1000), world, 1, None);
    run_out(&mut driver);
    let written = &driver.world.written;
    assert_eq!((written.len(), written[0].host, written[0].offload.size), (1, 1, 1000));
    assert_eq!(numbers(&written[0].offload, &written[0].bytes), (100..140).collect::<Vec<_>>());
    // One router was passed; all other bytes are unchanged.
    assert_eq!((written[0].bytes[8], sent[20]), (63, 64));
    assert_eq!(written[0].bytes[12..26], sent[24..38]);
    assert_eq!(written[0].bytes[28..], sent[40..]);
}

#[test]
fn first_segments_of_a_gso_packet_wait_briefly_for_the_rest() {
    let mut world = Fake::new(2, 1);
    world.scripts[0].push_back((2_000_000, datagrams(0, 1, 0, 40, 1000)));
    // All segments arrive within 4 us, and the driver looks when only some have.
    let mut driver = driver(Line::new(2, 100_000, 0, 100, 1000), world, 1, None);
    run_out(&mut driver);
    assert_eq!(driver.world.written.len(), 1);
    assert_eq!(driver.late.to_json(false)["packets"], 40);
}

#[test]
fn datagrams_due_together_are_written_as_one_gso_packet() {
    let send = |longest: usize| {
        let mut world = Fake::new(3, 2);
        world.longest = longest;
        for number in 0..20 {
            // The tenth is shorter, and the last five come from another host.
            let size = if number == 9 { 30 } else { 100 };
            let from = if number < 15 { 0 } else { 2 };
            world.scripts[from].push_back((2_000_000, datagrams(from, 1, number, 1, size)));
        }
        let mut driver = driver(Line::new(3, 0, 0, 100, 1000), world, 1, None);
        run_out(&mut driver);
        driver
    };
    let driver_of_one = send(usize::MAX);
    let written = &driver_of_one.world.written;
    let seen: Vec<_> = written.iter().map(|one| numbers(&one.offload, &one.bytes)).collect();
    // The packets that end a sleep go on before others are read.
    let together = [1..10, 10..15, 16..20].map(|numbers| numbers.collect::<Vec<u32>>());
    assert_eq!(seen, [vec![0], vec![15]].into_iter().chain(together).collect::<Vec<_>>());
    assert_eq!((written[2].offload.kind, written[2].offload.size), (Kind::Udp, 100));
    let counts = driver_of_one.counts.hosts[1].to_json();
    assert_eq!((&counts["received_packets"], &counts["writes"]), (&json!(20), &json!(5)));
    assert_eq!(counts["received_bytes"], json!(20 * 28 + 19 * 100 + 30));
    assert_eq!(driver_of_one.late.to_json(false)["packets"], 20);
    // If a device refuses GSO packets, each datagram is written separately.
    let driver_of_many = send(500);
    let seen = driver_of_many.world.written.iter().flat_map(|one| numbers(&one.offload, &one.bytes));
    let order = written.iter().flat_map(|one| numbers(&one.offload, &one.bytes));
    assert_eq!(seen.collect::<Vec<_>>(), order.collect::<Vec<_>>());
    assert_eq!(driver_of_many.counts.hosts[1].to_json()["failures"], 0);
}

#[test]
fn packets_that_arrive_apart_are_written_when_they_arrive() {
    let mut world = Fake::new(2, 2);
    world.scripts[0].push_back((2_000_000, datagrams(0, 1, 0, 10, 1000)));
    // 1 ms of transmission per packet and 5 ms of delay, both longer than a turn.
    let mut driver = driver(Line::new(2, 1_000_000_000, 5_000_000_000, 100, 1000), world, 1, None);
    run_out(&mut driver);
    let written = &driver.world.written;
    assert_eq!(written.len(), 10);
    for (number, one) in written.iter().enumerate() {
        assert_eq!(numbers(&one.offload, &one.bytes), [number as u32]);
        assert_eq!((one.offload.kind, one.offload.checksum), (Kind::Whole, Some((20, 6))));
        // Reading takes up to 0.1 ms and waking up to 0.1 ms; delays do not accumulate.
        let due = 2_000_000 + (number as u64 + 1) * 1_000_000 + 5_000_000;
        assert!((due..due + 200_000).contains(&one.at), "written at {} instead of {due}", one.at);
    }
    let late = driver.late.to_json(false);
    assert_eq!((&late["packets"], &late["valid"]), (&json!(10), &json!(true)));
    assert!(late["max_ns"].as_u64().expect("a number") < 100_000);
}

#[test]
fn near_arrivals_are_computed_early_and_written_on_time() {
    let mut world = Fake::new(2, 2);
    world.early = Some(2500);
    world.scripts[0].push_back((2_000_000, datagrams(0, 1, 0, 10, 1000)));
    let mut driver = driver(Line::new(2, 1_000_000_000, 5_000_000_000, 100, 1000), world, 1, None);
    run_out(&mut driver);
    assert_eq!(driver.world.written.len(), 10);
    let late = driver.late.to_json(false);
    assert_eq!((&late["packets"], &late["max_ns"]), (&json!(10), &json!(0)));
}

#[test]
fn time_dilation_multiplies_the_time_to_delivery() {
    let mut world = Fake::new(2, 3);
    world.scripts[0].push_back((2_000_000, datagrams(0, 1, 0, 1, 100)));
    let mut driver = driver(Line::new(2, 0, 5_000_000_000, 100, 1000), world, 100, None);
    run_out(&mut driver);
    let at = driver.world.written[0].at;
    assert!((502_000_000..503_000_000).contains(&at), "{at}");
    // In virtual time the lateness is a hundredth of that by the host's clock.
    assert!(driver.late.to_json(false)["max_ns"].as_u64().expect("a number") < 1000);
}

#[test]
fn host_with_a_full_nic_buffer_is_not_read() {
    let mut world = Fake::new(3, 4);
    for number in 0..50 {
        world.scripts[0].push_back((1_000_000, datagrams(0, 1, number, 1, 1000)));
    }
    world.scripts[2].push_back((3_000_000, datagrams(2, 1, 1000, 1, 1000)));
    // The NIC has room for three packets.
    let mut driver = driver(Line::new(3, 1_000_000_000, 0, 3, 1000), world, 1, None);
    for _ in 0..20 {
        driver.turn();
        assert!(driver.backlog(0) <= 1);
        assert!(driver.world.listens[2]);
    }
    assert!(driver.world.scripts[0].len() > 20, "the device keeps the packets that were not read");
    assert!(driver.world.scripts[2].is_empty(), "other hosts are read");
    run_out(&mut driver);
    assert_eq!(driver.world.written.len(), 51);
}

#[test]
fn discarded_packets_are_counted_by_reason() {
    let mut world = Fake::new(2, 5);
    let mut send = |bytes: Vec<u8>| world.scripts[0].push_back((1_000_000, bytes));
    let to = |last: u8, first: u8| {
        let mut bytes = datagrams(0, 1, 0, 1, 100);
        (bytes[12 + 16], bytes[12 + 19]) = (first, last);
        bytes
    };
    send(to(9, 10));
    send(to(1, 224));
    send(to(1, 10));
    send(datagrams(0, 1, 0, 1, 1473));
    send(datagrams(0, 1, 0, 3, 1473));
    send(vec![0; 12]);
    send(vec![0; 3]);
    send(datagrams(0, 1, 0, 1, 1472));
    let mut driver = driver(Line::new(2, 0, 0, 100, 1000), world, 1, None);
    run_out(&mut driver);
    let counts = driver.counts.hosts[0].to_json();
    let expected =
        json!({ "malformed": 2, "group": 1, "unknown": 1, "not-joined": 1, "too-long": 4, "down": 0 });
    assert_eq!(counts["discarded"], expected);
    assert_eq!((driver.world.written.len(), &counts["reads"]), (1, &json!(6)));
}

#[test]
fn device_that_refuses_gso_packets_gets_single_packets() {
    let mut world = Fake::new(2, 6);
    world.longest = 5000;
    world.scripts[0].push_back((1_000_000, datagrams(0, 1, 7, 6, 1000)));
    let mut driver = driver(Line::new(2, 0, 0, 100, 1000), world, 1, None);
    run_out(&mut driver);
    let seen: Vec<_> =
        driver.world.written.iter().flat_map(|one| numbers(&one.offload, &one.bytes)).collect();
    assert_eq!(seen, [7, 8, 9, 10, 11, 12]);
    assert_eq!(driver.counts.hosts[1].to_json()["failures"], 0);
}

#[test]
fn packets_to_a_device_that_is_down_are_discarded_and_no_failures() {
    let mut world = Fake::new(2, 7);
    world.down = Some(1);
    world.scripts[0].push_back((1_000_000, datagrams(0, 1, 7, 3, 1000)));
    let mut driver = driver(Line::new(2, 0, 0, 100, 1000), world, 1, None);
    run_out(&mut driver);
    let counts = driver.counts.hosts[1].to_json();
    assert_eq!((&counts["discarded"]["down"], &counts["failures"]), (&json!(3), &json!(0)));
    assert_eq!(counts["received_packets"], 0);
}

#[test]
fn failed_device_is_reported_once_and_then_skipped() {
    let mut world = Fake::new(3, 8);
    world.gone = Some(2);
    world.scripts[0].push_back((50_000_000, datagrams(0, 1, 7, 1, 1000)));
    let mut driver = driver(Line::new(3, 0, 0, 100, 1000), world, 1, None);
    for _ in 0..10 {
        driver.turn();
    }
    let counts = driver.counts.hosts[2].to_json();
    assert_eq!(counts["failures"], 1);
    assert!(counts["last_failure"].as_str().is_some_and(|told| told.contains("bad state")), "{counts}");
    assert_eq!(driver.world.written.len(), 1, "the other devices still work");
}

#[test]
fn ethernet_devices_get_frames_and_arp_replies() {
    let mut world = Fake::new(2, 7);
    let frame = |kind: [u8; 2], rest: &[u8]| {
        let header = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &kind].concat();
        [&Offload::default().write()[..], &header, rest].concat()
    };
    let mut ask = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1];
    ask.extend(address(0).octets());
    ask.extend([0; 6]);
    ask.extend(address(1).octets());
    world.scripts[0].push_back((1_000_000, frame([8, 6], &ask)));
    let packet = datagrams(0, 1, 5, 4, 500);
    let (offload, packet) = packet.split_at(12);
    let mut offload = Offload::read(offload.try_into().expect("the offload header has 12 bytes"))
        .expect("the offload kind is known");
    offload.checksum = Some((34, 6));
    let mut super_frame = frame([8, 0], packet);
    super_frame[..12].copy_from_slice(&offload.write());
    world.scripts[0].push_back((1_100_000, super_frame));
    let mut driver = driver(Line::new(2, 0, 0, 100, 1000), world, 1, None);
    driver.stations([[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].map(|device| Some(Station { device })));
    run_out(&mut driver);
    let [answer, passed] = &driver.world.written[..] else { panic!("expected an ARP reply and a packet") };
    assert_eq!(
        (answer.host, &answer.bytes[20..28]),
        (0, &[&[0, 2], &ethernet::hardware(1)[..]].concat()[..])
    );
    assert_eq!((passed.host, passed.offload.checksum, passed.offload.head), (1, Some((34, 6)), 42));
    assert_eq!(passed.bytes[..14], [&[2, 0, 0, 0, 0, 2], &ethernet::hardware(0)[..], &[8, 0]].concat());
    assert_eq!(numbers(&passed.offload, &passed.bytes[14..]), [5, 6, 7, 8]);
}

proptest! {
    #![proptest_config(engpass_cases::cases(60))]

    /// Every packet is written once or lost, in order per sender and receiver, with its CE mark, and the packet pool is empty at the end.
    #[test]
    fn every_injected_packet_is_written_once_or_lost(
        sends in prop::collection::vec((0_u64..300_000, 0_usize..3, 1_usize..4, 1_usize..30, 4_usize..1400), 1..60),
        pace in prop_oneof![Just(0_u64), 1_000_u64..200_000_000], delay in 0_u64..5_000_000_000, every in 1_u64..20,
        seed in any::<u64>(),
    ) {
        let mut world = Fake::new(3, seed);
        let (mut now, mut number, mut expected) = (1_000_000, 0_u32, 0_u64);
        for (gap, from, further, segments, size) in sends {
            now += gap;
            let (from, to) = (from, (from + further) % 3);
            if from == to {
                continue;
            }
            let segments = segments.min(60_000 / size);
            world.scripts[from].push_back((now, datagrams(from, to, number, segments, size)));
            number += segments as u32;
            expected += segments as u64;
        }
        let mut driver = driver(Line::new(3, pace, delay, 10, every), world, 1, None);
        run_out(&mut driver);
        let lost: u64 = driver.counts.lost.iter().sum();
        let mut seen = Vec::new();
        let mut last = std::collections::BTreeMap::new();
        let mut marked = 0_u64;
        for one in &driver.world.written {
            let numbers = numbers(&one.offload, &one.bytes);
            let flow = (one.bytes[15], one.host);
            for number in &numbers {
                prop_assert!(last.insert(flow, *number).is_none_or(|before| before < *number), "packets of a flow stay in order");
            }
            marked += if one.bytes[1] & 3 == 3 { numbers.len() as u64 } else { 0 };
            seen.extend(numbers);
        }
        let count = seen.len() as u64;
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!((count, count + lost), (seen.len() as u64, expected));
        // Of every `2 * every` packets one is lost and one is marked.
        prop_assert_eq!((lost, marked), (expected / (2 * every), (expected + every) / (2 * every)));
    }
}
