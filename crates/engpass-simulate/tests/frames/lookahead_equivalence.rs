//! Lookahead, instead of an event for every packet and hop, does not change the outcome.

use std::fmt::Write;

use engpass_outcome::Timeline;
use engpass_simulate::{Network, SimOutcome, watched_network};
use engpass_testbed::Point;
use engpass_testbed::topology::{EventPath, Fan, Hop, LinkEnds, PathSegment};
use proptest::prelude::*;

use crate::common::point;

/// A router: index of its queue, and its time per packet in microseconds.
pub(super) type Node = (u8, u8);
/// A flow: its kind, and the routers of its two hosts.
pub(super) type Traffic = (u8, u8, u8);

const QUEUES: [&str; 6] = [
    r#"{ drop-tail = { limit = "12 packets" } }"#,
    r#"{ drop-tail = { limit = "20 kB", ecn_threshold = "5 packets" } }"#,
    r#"{ red = { min = "3 packets", max = "9 packets", limit = "15 packets" } }"#,
    r#"{ fq-codel = {} }"#,
    r#"{ priority = { limit = "10 packets" } }"#,
    r#"{ drop-tail = {} }"#,
];

const TRAFFIC: [&str; 7] = [
    r#"kind = "tcp-stream"
message = "20 kB""#,
    r#"kind = "tcp-stream"
message = "300 B"
streams = 2"#,
    r#"kind = "udp-stream"
message = "4 kB"
rate = "9 Mbit/s""#,
    r#"kind = "poisson"
message = "700 B"
rate = "12 Mbit/s""#,
    r#"kind = "udp-stream"
message = "1 kB"
rate = "30 Mbit/s"
ttl = 4"#,
    r#"kind = "tcp-stream"
message = "5 kB"
start = "7 ms"
stop = "35 ms""#,
    r#"kind = "tcp-stream"
message = "64 kB""#,
];

/// Kinds of hosts.
const HOSTS: [&str; 7] = [
    "",
    r#"tcp = { path_mtu = "discovered" }"#,
    r#"tcp = { path_mtu = "discovered", recovery = "sack", timestamps = false }"#,
    r#"pauses = { share = "20 %", mean = "2 ms" }"#,
    r#"nic_buffer = "2 kB"
tcp = { quick_acks = 0, ack_delay = "3 ms" }"#,
    r#"cost = { per_ack = "20 us" }"#,
    r#"tcp = { congestion = "bbr", receive_buffer = "8 kB" }"#,
];

/// Returns a testbed of routers in a row, with two hosts for every flow, each on its own link.
pub(super) fn text(routers: &[Node], flows: &[Traffic], chance: u8, warmup: bool) -> String {
    let mut text = String::from("name = \"a row of routers\"\n[run]\nduration = \"60 ms\"\n");
    if warmup {
        text += "warmup = \"21 ms\"\n";
    }
    let mut add =
        |part: std::fmt::Arguments<'_>| text.write_fmt(part).expect("writing to a string cannot fail");
    for (index, (queue, time)) in routers.iter().enumerate() {
        let (icmp, queue) = (queue % 16 != 9, QUEUES[usize::from(*queue) % QUEUES.len()]);
        add(format_args!(
            "[router.r{index}]\nqueue = {queue}\nper_packet = \"{} us\"\nicmp = {}\n",
            time % 3 * 10,
            icmp
        ));
        if index > 0 {
            let mtu = if time % 5 == 0 { 1000 } else { 1500 };
            add(format_args!(
                "[link.l{index}]\nends = [\"r{}\", \"r{index}\"]\nmedium = \"point-to-point\"\nrate = \"{} Mbit/s\"\n\
                 delay = \"{} us\"\nmtu = \"{mtu} B\"\n",
                index - 1,
                10 + u32::from(time % 7) * 4,
                100 + 57 * u32::from(time % 11),
            ));
            if chance % 4 == index as u8 % 4 {
                add(format_args!("loss = \"1 %\"\njitter = \"300 us\"\n"));
            }
        }
    }
    for (index, (kind, from, to)) in flows.iter().enumerate() {
        let ends = [from, to].map(|end| usize::from(*end) % routers.len());
        for (host, router) in ["a", "b"].into_iter().zip(ends) {
            add(format_args!(
                "[host.{host}{index}]\n{}\n[link.{host}{index}]\nends = [\"{host}{index}\", \"r{router}\"]\n\
                 medium = \"ethernet-100\"\ndelay = \"{} us\"\n",
                HOSTS[usize::from(*kind / 7) % HOSTS.len()],
                10 + 13 * index,
            ));
        }
        let traffic = TRAFFIC[usize::from(*kind) % TRAFFIC.len()];
        add(format_args!("[traffic.f{index}]\n{traffic}\nfrom = \"a{index}\"\nto = \"b{index}\"\n"));
    }
    text
}

/// Returns the network of a point at time zero, with or without lookahead.
fn network(point: &Point, tells: bool) -> Network {
    let mut network =
        Network::new(&point.testbed, &point.topology, 3).expect("the model supports the testbed");
    if !tells {
        network.disable_lookahead();
    }
    network
}

fn watched(text: &str, tells: bool) -> (Timeline, SimOutcome) {
    let point = point(text, "base", &[]);
    let seen = watched_network(network(&point, tells), &point.testbed, &point.topology, 37, &|| false);
    seen.expect("the ledger balances")
}

/// Runs the testbed without a timeline, so that lookahead includes hosts.
fn alone(text: &str) -> SimOutcome {
    let point = point(text, "base", &[]);
    let mut network = network(&point, true);
    network.run(&|| false).expect("no interrupt is requested");
    network.outcome(&point.testbed, &point.topology).expect("the ledger balances")
}

/// Runs the testbed with events that could take any line down but never do, and with a decision for every packet at every router, although there is one path.
fn phantoms(text: &str) -> (SimOutcome, u64) {
    let Point { testbed, mut topology, .. } = point(text, "base", &[]);
    let any = |(link, of): (usize, &LinkEnds)| EventPath { name: of.name.clone(), link, seen_by: [true; 2] };
    topology.events = topology.links.iter().enumerate().map(any).collect();
    for flow in &mut topology.flows {
        let only = |hop: Hop| (hop.from, vec![PathSegment::Link(hop)]);
        let mut fans = [flow.route.clone(), flow.route.iter().map(|hop| hop.back()).collect()]
            .map(|route| Fan { at: route.into_iter().map(only).collect() });
        fans.iter_mut().for_each(|fan| fan.at.sort());
        flow.fans = Some(Box::new(fans));
    }
    let mut network =
        Network::with_all_decisions(&testbed, &topology, 3).expect("the model supports the testbed");
    network.run(&|| false).expect("no interrupt is requested");
    let mut outcome = network.outcome(&testbed, &topology).expect("the ledger balances");
    outcome.flows.iter_mut().for_each(|(_, flow)| flow.outage = None);
    (outcome, network.decisions())
}

/// Runs the testbed with every link between two routers in a tunnel whose headers have no bytes.
fn empty_headers(text: &str, routers: usize) -> SimOutcome {
    let mut text = text.to_owned();
    for router in 1..routers {
        write!(text, "[tunnel.t{router}]\nends = [\"r{}\", \"r{router}\"]\n", router - 1)
            .expect("writing to a string cannot fail");
    }
    let Point { testbed, mut topology, .. } = point(&text, "base", &[]);
    let mtus: Vec<u64> =
        topology.tunnels.iter().map(|path| topology.mtu(path.ways[0].fan.at[0].1[0])).collect();
    for (path, mtu) in topology.tunnels.iter_mut().zip(mtus) {
        (path.mtu, path.added) = (mtu, 0);
    }
    // Undo the path MTUs that the tunnels have reduced.
    let plain = &point(text.split("[tunnel.t1]").next().expect("a split text has a first part"), "base", &[])
        .topology;
    for (path, without) in topology.flows.iter_mut().zip(&plain.flows) {
        let routers: Vec<_> = without.icmp.iter().map(|way| way.router).collect();
        let known = path.icmp.iter().filter(|way| routers.contains(&way.router)).cloned();
        (path.path_mtu, path.icmp) = (without.path_mtu, known.collect());
    }
    let mut network = Network::new(&testbed, &topology, 3).expect("the model supports the testbed");
    network.run(&|| false).expect("no interrupt is requested");
    network.outcome(&testbed, &topology).expect("the ledger balances")
}

proptest! {
    #[test]
    fn lookahead_equals_event_per_hop(
        routers in prop::collection::vec(any::<Node>(), 1..5),
        flows in prop::collection::vec(any::<Traffic>(), 1..5),
        chance in any::<u8>(),
        warmup in any::<bool>(),
    ) {
        let text = text(&routers, &flows, chance, warmup);
        let (told, plain) = (watched(&text, true), watched(&text, false));
        prop_assert!(told.1.events <= plain.1.events);
        let events = plain.1.events;
        let (phantoms, decisions) = phantoms(&text);
        prop_assert!(decisions > 0 || phantoms.flows.iter().all(|(_, flow)| flow.datagrams.unwrap().received == 0));
        prop_assert_eq!(&SimOutcome { events, ..phantoms }, &plain.1);
        let empty = empty_headers(&text, routers.len());
        prop_assert_eq!(&SimOutcome { events, ..empty }, &plain.1);
        let alone = alone(&text);
        prop_assert!(alone.events <= plain.1.events);
        prop_assert_eq!(&SimOutcome { events, ..alone }, &plain.1);
        prop_assert_eq!((told.0, SimOutcome { events, ..told.1 }), plain);
    }
}

/// The fragments of a packet share the next line, too. The first fragment has crossed both lines before the second one is created.
#[test]
fn fragments_inherit_the_sender_snapshot() {
    let text = text(&[(5, 0), (0, 45), (0, 0), (0, 0)], &[(8, 244, 58), (9, 180, 218)], 38, false);
    let (told, plain) = (watched(&text, true), watched(&text, false));
    assert!(told.1.events < plain.1.events);
    let events = plain.1.events;
    assert_eq!((told.0, SimOutcome { events, ..told.1 }), plain);
}
