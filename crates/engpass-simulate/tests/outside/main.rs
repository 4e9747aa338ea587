//! Packet injection.

mod arp;
mod choices;
#[path = "../common/mod.rs"]
mod common;
mod groups;
mod messages;

use common::{TWO, point};
use engpass_model::queue::Ecn;
use engpass_simulate::injection::{DeliveryReport, InjectedNetwork, Packet};

pub(crate) const LAN: &str = r#"
    name = "three hosts and a switch"
    [host.a]
    [host.b]
    [host.c]
    nic_buffer = "3000 B"
    [switch.s]
    kind = "ethernet"
    queue = { drop-tail = { limit = "2 packets" } }
    [link.first]
    ends = ["a", "s"]
    medium = "ethernet-100"
    [link.second]
    ends = ["s", "b"]
    medium = "ethernet-10"
    [link.third]
    ends = ["c", "s"]
    medium = "ethernet-100"
    [traffic.questions]
    kind = "request-response"
    from = "a"
    to = "b"
    request = "100 B"
    response = "9 kB"
"#;

pub(crate) fn outside(text: &str) -> InjectedNetwork {
    let point = point(text, "base", &[]);
    InjectedNetwork::new(&point.testbed, &point.topology, 7).expect("the model supports the testbed")
}

pub(crate) fn way(outside: &InjectedNetwork, name: &str) -> u32 {
    let place = outside.ways().iter().position(|way| way.name == name);
    place.unwrap_or_else(|| panic!("no path {name}")) as u32
}

pub(crate) fn packet(bytes: u32, token: u64) -> Packet {
    Packet { bytes, header: 8, token, ..Packet::default() }
}

/// Runs the network from wake to wake and returns all reports.
fn all(outside: &mut InjectedNetwork, until: u64) -> Vec<DeliveryReport> {
    let mut reports = Vec::new();
    while let Some(at) = outside.next_wake().filter(|at| *at <= until) {
        outside.run_until(at, &mut |output| reports.push(output));
    }
    reports
}

#[test]
fn injected_frame_delay_matches_hand_calculation() {
    let mut lan = outside(LAN);
    let ways: Vec<_> = lan.ways().iter().map(|way| (way.from, way.to, way.mtu)).collect();
    assert_eq!(ways, [(0, 1, 1500), (0, 2, 1500), (1, 0, 1500), (1, 2, 1500), (2, 0, 1500), (2, 1, 1500)]);
    let to = way(&lan, "a to b");
    lan.inject(1_000_000, to, packet(1500, 5));
    // 1526 bytes at 100 and at 10 Mbit/s without their gaps, and the delay of the links.
    let delay: u64 = point(LAN, "base", &[]).topology.links[..2].iter().map(|link| link.delay.ps()).sum();
    let at = 1_000_000 + 1526 * 80_000 + 1526 * 800_000 + delay;
    assert_eq!(
        all(&mut lan, u64::MAX),
        [DeliveryReport::Delivered { at, way: to, token: 5, ce: false, routers: 0 }]
    );
    assert_eq!(lan.next_wake(), None);
}

#[test]
fn packet_in_a_full_buffer_is_reported_lost_once() {
    let mut lan = outside(LAN);
    let to = way(&lan, "a to b");
    for token in 0..5 {
        lan.inject(0, to, packet(1500, token));
    }
    let reports = all(&mut lan, u64::MAX);
    let lost: Vec<_> =
        reports.iter().filter(|report| matches!(report, DeliveryReport::Lost { .. })).collect();
    let tokens: Vec<_> = lost.iter().map(|lost| lost.token()).collect();
    assert_eq!(tokens, [2, 3, 4]);
    assert!(reports.is_sorted_by_key(DeliveryReport::at), "{reports:?}");
    let DeliveryReport::Lost { at, lost_at, place, .. } = *lost[0] else { unreachable!() };
    let (place, cause) = lan.place(place);
    assert_eq!((at, place.to_string().as_str(), cause), (lost_at, "s -> b", "buffer full"));
}

#[test]
fn full_nic_buffer_delays_injected_packets() {
    let mut lan = outside(LAN);
    let [near, far] = ["c to a", "c to b"].map(|name| way(&lan, name));
    for token in 0..4 {
        lan.inject(10, if token == 2 { far } else { near }, packet(1500, token));
    }
    assert_eq!(lan.backlog(2), 0);
    let mut reports = Vec::new();
    lan.run_until(10, &mut |output| reports.push(output));
    assert_eq!((lan.backlog(2), lan.backlog(0), reports.len()), (2, 0, 0));
    let reports = all(&mut lan, u64::MAX);
    // In the order of injection, whatever their path.
    let near: Vec<_> =
        reports.iter().filter(|report| report.token() != 2).map(DeliveryReport::token).collect();
    assert_eq!((near, reports.len(), lan.backlog(2)), (vec![0, 1, 3], 4, 0));
}

#[test]
fn injected_cells_delay_matches_hand_calculation() {
    let mut atm = outside(TWO);
    let [to, back] = ["a to b", "b to a"].map(|name| way(&atm, name));
    assert_eq!(atm.ways()[to as usize].mtu, 9180);
    // 8 bytes of LLC/SNAP and 8 of trailer make 9196 bytes in 192 cells, and 56 in 2; the last one goes through two lines.
    let slot = |cells: u128| (cells * 424 * 27 * 1_000_000_000_000).div_ceil(26 * 155_520_000) as u64;
    atm.inject(7, to, packet(9180, 1));
    atm.inject(7, back, packet(40, 2));
    let reports = all(&mut atm, u64::MAX);
    let delay = 2_000_000_000;
    let first = 7 + slot(2) + slot(1) + delay;
    assert_eq!(
        reports,
        [
            DeliveryReport::Delivered { at: first, way: back, token: 2, ce: false, routers: 0 },
            DeliveryReport::Delivered {
                at: 7 + slot(192) + slot(1) + delay,
                way: to,
                token: 1,
                ce: false,
                routers: 0
            },
        ]
    );
}

#[test]
fn ecn_mark_is_reported_at_delivery() {
    let queue = r#"limit = "2 packets" } }"#;
    let marking = LAN.replace(queue, r#"limit = "9 packets", ecn_threshold = "1 packets" } }"#);
    assert_ne!(marking, LAN);
    let mut lan = outside(&marking);
    let to = way(&lan, "a to b");
    for token in 0..4 {
        let ecn = if token == 2 { Ecn::NotCapable } else { Ecn::Capable };
        lan.inject(0, to, Packet { ecn, ..packet(1500, token) });
    }
    let marks: Vec<_> = (all(&mut lan, u64::MAX).iter())
        .map(|report| matches!(report, DeliveryReport::Delivered { ce: true, .. }))
        .collect();
    assert_eq!(marks, [false, false, false, true]);
}

/// After a hundred days nothing overflows and no rounding errors have accumulated.
#[test]
fn delay_is_unchanged_after_a_hundred_days() {
    let day = 86_400 * 1_000_000_000_000;
    for (text, bytes) in [(LAN, 1500), (TWO, 9180)] {
        let mut network = outside(text);
        let to = way(&network, "a to b");
        let mut delays = Vec::new();
        for at in [3, 60 * day + 5, 100 * day + 7] {
            assert_eq!(network.inject(at, to, packet(bytes, at)), at);
            network.begin_window(at - 3, &mut |_| {});
            let reports = all(&mut network, u64::MAX);
            let [DeliveryReport::Delivered { at: arrived, .. }] = reports[..] else {
                panic!("expected one delivery: {reports:?}")
            };
            delays.push(arrived - at);
            let outcome = network.end_window(at + day, &mut |_| {}).expect("the ledger balances");
            let (name, flow) = outcome.flows.first().expect("the outcome has a flow");
            assert_eq!(outcome.flows.len(), 1);
            assert_eq!(
                (name.as_str(), flow.kind.as_str(), flow.datagrams.unwrap().received),
                ("a to b", "outside", 1)
            );
            assert_eq!(outcome.links[0].1.directions[0].carried.sent(), if bytes == 1500 { 1 } else { 192 });
        }
        assert!(delays.iter().all(|delay| *delay == delays[0]), "{delays:?}");
    }
}

/// An acknowledgment is control traffic, and paths without packets leave no trace.
#[test]
fn injected_packets_without_payload_are_control() {
    let mut lan = outside(LAN);
    let [to, back] = ["a to b", "b to a"].map(|name| way(&lan, name));
    lan.begin_window(0, &mut |_| {});
    lan.inject(5, to, Packet { header: 20, ..packet(1500, 1) });
    lan.inject(5, back, Packet { header: 32, ..packet(52, 2) });
    let outcome = lan.end_window(10_000_000_000, &mut |_| {}).expect("the ledger balances");
    let flows: Vec<_> =
        outcome.flows.iter().map(|(name, flow)| (name.as_str(), flow.datagrams.unwrap().sent)).collect();
    assert_eq!(flows, [("a to b", 1)]);
    let first = &outcome.links[0].1;
    let bits = |account: &str| first.ledger.get(account);
    assert_eq!(bits("delivered"), 1460 * 8);
    // Header, FCS and padding to 46 bytes belong to it.
    assert_eq!(bits("ACK and control"), (14 + 52 + 4) * 8);
    let idle: Vec<_> = first.directions.iter().map(|line| line.ledger.get("idle: real host") > 0).collect();
    assert_eq!(idle, [true, true]);
    assert_eq!(lan.window(), None);
}

#[test]
fn line_counters_are_visible_during_the_run() {
    let mut lan = outside(LAN);
    let to = way(&lan, "a to b");
    for token in 0..5 {
        lan.inject(0, to, packet(1500, token));
    }
    lan.run_until(900_000_000, &mut |_| {});
    let seen = lan.seen();
    assert_eq!(seen.len(), 6);
    assert_eq!((seen[0].sent, seen[0].bits, seen[0].lost), (5, 5 * 1538 * 8, 0));
    // Two of five packets find room, and the first is still being sent.
    let second = &seen[2];
    assert_eq!((second.from.as_str(), second.to.as_str(), second.unit), ("s", "b", "bytes"));
    assert_eq!((second.sent, second.lost, second.queue), (0, 3, 2 * 1518));
}

const CELLS: &str = r#"
    name = "a generator beside two hosts"
    [host.a]
    [host.b]
    [host.generator]
    [switch.s]
    kind = "atm"
    [link.first]
    ends = ["a", "s"]
    medium = "oc-3c"
    [link.second]
    ends = ["s", "b"]
    medium = "oc-3c"
    [link.third]
    ends = ["generator", "s"]
    medium = "oc-3c"
    [circuit.data]
    from = "a"
    to = "b"
    [traffic.interference]
    kind = "cbr"
    from = "generator"
    to = "b"
    rate = "77.76 Mbit/s line"
"#;

/// Frequent snapshots show what a line carries, and never more than its capacity.
#[test]
fn cell_counters_are_current_at_every_snapshot() {
    let mut network = outside(CELLS);
    let from_a = way(&network, "a to b");
    // Half of the line's cell rate.
    let cells_until = |at: u64| u128::from(at) * (149_760_000 / 2) / 424 / 1_000_000_000_000;
    for look in 1..500_u64 {
        let at = look * 37_000_000;
        network.run_until(at, &mut |_| {});
        let seen = network.seen();
        for line in seen.iter().filter(|line| line.from == "generator" || line.to == "b") {
            let late = cells_until(at).abs_diff(u128::from(line.sent));
            assert!(late <= 4, "{}: {} cells at {at}, off by {late}", line.link, line.sent);
            assert_eq!(line.bits, line.sent * 424);
        }
        assert!(seen.iter().all(|line| line.queue <= 1));
    }
    let next = 500 * 37_000_000;
    assert_eq!(network.inject(next, from_a, packet(500, 1)), next);
}

const ROUTERS: &str = r#"
    name = "a circuit between routers"
    [host.a]
    [host.b]
    [host.c]
    [router.left]
    [router.right]
    [link.one]
    ends = ["a", "left"]
    medium = "ethernet-100"
    [link.other]
    ends = ["c", "left"]
    medium = "ethernet-100"
    [link.middle]
    ends = ["left", "right"]
    medium = "oc-3c"
    [link.two]
    ends = ["right", "b"]
    medium = "ethernet-100"
    [circuit.vc]
    from = "left"
    to = "right"
    [traffic.near]
    kind = "tcp-stream"
    from = "a"
    to = "c"
    message = "9 kB"
"#;

/// A packet of 1500 bytes: 1538 byte times on each Ethernet, and 32 cells.
#[test]
fn injected_packet_crosses_a_circuit_between_routers() {
    let mut network = outside(ROUTERS);
    let names: Vec<_> = network.ways().iter().map(|way| way.name.clone()).collect();
    assert_eq!(names, ["a to b", "a to c", "b to a", "b to c", "c to a", "c to b"]);
    network.inject(0, 0, packet(1500, 7));
    let mut seen = Vec::new();
    network.run_until(1_000_000_000, &mut |output| seen.push(output));
    let [DeliveryReport::Delivered { at, token: 7, way: 0, ce: false, routers: 2 }] = seen[..] else {
        panic!("{seen:?}")
    };
    // The gap after the last frame does not count.
    let ethernet = (1538 - 12) * 80_000;
    let cells = (32.0 * 424.0 / 149.76e6 * 1e12) as u64;
    assert!(at.abs_diff(2 * ethernet + cells) < 40 + 3 * 5_000_000, "{at}");
}
