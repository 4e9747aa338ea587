//! Networks of Ethernet switches, routers and circuits that end at routers.

use engpass_limit::BottleneckKind;
use proptest::prelude::*;

use crate::laws::check;
use crate::{NO_OPTIONS, candidate, limits, mbit_s, stage};

/// Returns a chain of links from `a` to `b`, each with its keys, joined by nodes (`switch` or `router`, and more keys).
pub(crate) fn chain(links: &[&str], nodes: &[&str], traffic: &str) -> String {
    let names: Vec<String> = (0..nodes.len()).map(|node| format!("n{node}")).collect();
    let mut text = format!("[host.a]\n{NO_OPTIONS}\n[host.b]\n[host.c]\n");
    for (name, node) in names.iter().zip(nodes) {
        let (family, keys) = node.split_once('\n').unwrap_or((node, ""));
        let kind = if family == "switch" { "kind = \"ethernet\"\n" } else { "" };
        text += &format!("[{family}.{name}]\n{kind}{keys}\n");
    }
    let ends: Vec<&str> = ["a"].into_iter().chain(names.iter().map(String::as_str)).chain(["b"]).collect();
    for (index, keys) in links.iter().enumerate() {
        text += &format!("[link.l{index}]\nends = [{:?}, {:?}]\n{keys}\n", ends[index], ends[index + 1]);
    }
    text + traffic
}

/// Returns a stream of this kind from `a` to `b`.
pub(crate) fn stream(name: &str, kind: &str, message: u64) -> String {
    format!("[traffic.{name}]\nkind = \"{kind}\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"{message} B\"\n")
}

const FAST: &str = "medium = \"ethernet-100\"";

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * other.abs()
}

/// Payload over frame on 100BASE-TX, behind a switch: 1460/1538, 1460/1542 with a tag, 8960/9038 with jumbo frames.
#[test]
fn full_segments() {
    for (keys, payload, frame) in [
        ("", 1460.0, 1538.0),
        ("vlan = true", 1460.0, 1542.0),
        ("mtu = \"9000 B\"", 8960.0, 9038.0),
        ("mtu = \"9000 B\"\nvlan = true", 8960.0, 9042.0),
    ] {
        let link = format!("{FAST}\n{keys}");
        let outcome = limits(&chain(&[&link, &link], &["switch"], &stream("t", "tcp-stream", 65_536)));
        check(&outcome);
        let flow = &outcome.flows["t"];
        assert!(close(flow.goodput_bit_per_s, 100e6 * payload / frame), "{keys}: {flow:?}");
        // Among equal links, the first of the route.
        assert_eq!(
            (flow.bottleneck.title.as_str(), flow.next.as_ref().map(|next| next.title.as_str())),
            ("link `l0`", Some("link `l1`"))
        );
    }
}

/// The application's rate limits a connection, and each of several.
#[test]
fn application_rate_limits_each_tcp_connection() {
    let paced = |streams: u32| {
        stream("t", "tcp-stream", 65_536) + &format!("rate = \"30 Mbit/s\"\nstreams = {streams}\n")
    };
    for (streams, goodput, bottleneck) in [
        (1, 30e6, "application `t`"),
        (3, 90e6, "application `t`"),
        (4, 100e6 * 1460.0 / 1538.0, "link `l0`"),
    ] {
        let outcome = limits(&chain(&[FAST], &[], &paced(streams)));
        check(&outcome);
        let flow = &outcome.flows["t"];
        assert!(close(flow.goodput_bit_per_s, goodput), "{streams}: {flow:?}");
        assert_eq!(flow.bottleneck.title, bottleneck);
    }
}

/// Timestamps take 12 bytes of every segment, acknowledgements included, where both hosts have them: 1448/1538, the 94.15
/// Mbit/s that iperf shows.
#[test]
fn tcp_timestamps_take_12_bytes_of_every_segment() {
    let text = chain(&[FAST], &[], &stream("t", "tcp-stream", 65_536));
    let modern = text.replace(NO_OPTIONS, "");
    let outcome = limits(&modern);
    let flow = &outcome.flows["t"];
    assert!(close(flow.goodput_bit_per_s, 100e6 * 1448.0 / 1538.0));
    assert_eq!(mbit_s(flow.goodput_bit_per_s, 2), "94.15");
    // 52 bytes of IP are no longer padded; half of them for every segment.
    assert!(close(outcome.links["l0"].directions[1].utilisation.unwrap(), 90.0 / 2.0 / 1538.0));
    let old_receiver = modern.replace("[host.b]", "[host.b]\ntcp = { profile = \"bsd-reno\" }");
    assert!(close(limits(&old_receiver).flows["t"].goodput_bit_per_s, 100e6 * 1460.0 / 1538.0));
    // The smaller segment size applies, options included (RFC 6691).
    let small = modern.replace("[host.b]", "[host.b]\ntcp = { mss = \"536 B\", ack_every = 1 }");
    let outcome = limits(&small);
    assert!(close(outcome.flows["t"].goodput_bit_per_s, 100e6 * 524.0 / 614.0));
    assert!(close(outcome.links["l0"].directions[1].utilisation.unwrap(), 90.0 / 614.0));
    // A segment is no larger than the path carries (RFC 9293 section 3.7.1).
    let large = text.replace("timestamps = false", "timestamps = false, mss = \"4000 B\"");
    let large = large.replace("[host.b]", "[host.b]\ntcp = { mss = \"4000 B\" }");
    assert!(close(limits(&large).flows["t"].goodput_bit_per_s, 100e6 * 1460.0 / 1538.0));
}

/// The shortest frame is 64 bytes, 84 of the line: 148 809 a second on 100BASE-TX. A tag stands within the 64 bytes, so 46
/// bytes of IP take 88 bytes of a tagged line, and 42 still 84.
#[test]
fn short_frame_rates_match_hand_calculation() {
    for (ip, vlan, per_second) in
        [(46, false, 148_809), (46, true, 142_045), (42, true, 148_809), (43, true, 147_058)]
    {
        let link = format!("{FAST}\nvlan = {vlan}");
        let text = chain(&[&link, &link], &["switch"], &stream("t", "udp-stream", ip - 28));
        let flow = &limits(&text).flows["t"];
        let packets = flow.goodput_bit_per_s / (8 * (ip - 28)) as f64;
        assert_eq!(packets as u64, per_second, "{ip} {vlan}");
        if vlan {
            let header = 100e6 * (1.0 - (20.0 + 22.0) / (100e6 / 8.0 / packets));
            assert!(close(stage(flow, "Ethernet header, tag and FCS"), header), "{ip}");
        }
    }
}

/// A router that takes 10 us per packet forwards 100 000 per second, whatever their length, acknowledgements included.
#[test]
fn router_per_packet_time_limits_packets_per_second() {
    let router = "router\nper_packet = \"10 us\"";
    let gigabit = "medium = \"ethernet-1g\"";
    let flow = |traffic: &str| limits(&chain(&[gigabit, gigabit], &[router], traffic)).flows["t"].clone();
    let udp = flow(&stream("t", "udp-stream", 18));
    assert!(close(udp.goodput_bit_per_s, 100_000.0 * 18.0 * 8.0));
    insta::assert_snapshot!(udp.summary, @"router `n0` limits `t` to 14.40 Mbit/s: forwarding a message of 18 B takes 10 us; next is link `l0` at 214.29 Mbit/s");
    assert!(close(stage(&udp, "router"), udp.goodput_bit_per_s));
    let tcp = flow(&stream("t", "tcp-stream", 65_536));
    let router =
        tcp.candidates.iter().find(|candidate| candidate.bottleneck.kind == BottleneckKind::Router).unwrap();
    assert!(close(router.goodput_bit_per_s, 100_000.0 / 1.5 * 1460.0 * 8.0));
    // Both streams share it equally in bits: as many packets of 1000 bytes as of 500 would be twice as much.
    let shared = stream("t", "udp-stream", 472) + &stream("other", "udp-stream", 972);
    let half = flow(&shared);
    let (small, large) = (518.0, 1018.0);
    assert!(close(half.goodput_bit_per_s, 100_000.0 * 472.0 * 8.0 * large / (small + large)), "{half:?}");
    assert!(half.summary.contains("takes 10 us, shared with `other`"), "{}", half.summary);
}

/// A packet of 9000 bytes becomes seven on a link with an MTU of 1500: 6 · 1480 + 100 bytes of IP payload.
#[test]
fn router_fragments_match_hand_calculation() {
    let jumbo = "medium = \"ethernet-1g\"\nmtu = \"9000 B\"";
    let mut text = chain(&[jumbo, FAST], &["router"], &stream("t", "udp-stream", 8972));
    let outcome = limits(&text);
    check(&outcome);
    let flow = &outcome.flows["t"];
    assert!(close(candidate(flow, "link `l0`"), 1e9 * 8972.0 / 9038.0));
    assert!(close(flow.goodput_bit_per_s, 100e6 * 8972.0 / (8980.0 + 7.0 * (20.0 + 38.0))));
    assert_eq!(flow.bottleneck.title, "link `l1`");
    // The receiver gets seven packets, the sender sent one.
    text = text.replace(
        "[host.b]",
        "cost = { per_fragment = \"1 ms\" }\n[host.b]\nreceive_cost = { per_fragment = \"1 ms\" }",
    );
    let flow = &limits(&text).flows["t"];
    assert!(close(candidate(flow, "host `a`"), 8972.0 * 8.0 / 1e-3));
    assert!(close(candidate(flow, "host `b`"), 8972.0 * 8.0 / 7e-3));
    // TCP sizes its segments for the whole path: 1460 bytes even where there is room for more.
    let text = chain(&[jumbo, FAST], &["router"], &stream("t", "tcp-stream", 65_536));
    let flow = &limits(&text).flows["t"];
    assert!(close(flow.goodput_bit_per_s, 100e6 * 1460.0 / 1538.0));
    assert!(close(candidate(flow, "link `l0`"), 1e9 * 1460.0 / 1538.0));
}

/// 2960 bytes of IP payload are 2 · 1480 on an MTU of 1500. On one of 1496 after it each of these becomes 1472 + 8, though
/// 1472 + 1472 + 16 would do.
#[test]
fn fragments_are_fragmented_again_and_not_reassembled() {
    let narrow = format!("{FAST}\nmtu = \"1496 B\"");
    let text = chain(&[FAST, &narrow], &["router"], &stream("t", "udp-stream", 2952));
    let frame = |ip_payload: f64| f64::max(ip_payload + 20.0, 46.0) + 38.0;
    let twice = 2.0 * (frame(1472.0) + frame(8.0));
    assert!(close(candidate(&limits(&text).flows["t"], "link `l1`"), 100e6 * 2952.0 / twice));
    let text = chain(&[&narrow, FAST], &["router"], &stream("t", "udp-stream", 2952));
    let once = 2.0 * frame(1472.0) + frame(16.0);
    let flow = &limits(&text).flows["t"];
    assert!(close(candidate(flow, "link `l0`"), 100e6 * 2952.0 / once));
    // Routers do not reassemble.
    assert!(close(candidate(flow, "link `l1`"), 100e6 * 2952.0 / once));
}

/// Two LANs over an ATM network between routers: 1500 bytes of IP are 32 cells of the OC-3c.
#[test]
fn lan_over_atm_limit_matches_hand_calculation() {
    let text = |circuit: &str| {
        format!(
            r#"
            [host.a]
            {NO_OPTIONS}
            [host.b]
            [router.left]
            [router.right]
            [switch.lan]
            kind = "ethernet"
            [switch.wan]
            kind = "atm"
            [link.a]
            ends = ["a", "lan"]
            medium = "ethernet-1g"
            [link.lan]
            ends = ["lan", "left"]
            medium = "ethernet-1g"
            [link.up]
            ends = ["left", "wan"]
            medium = "oc-3c"
            [link.down]
            ends = ["wan", "right"]
            medium = "oc-3c"
            [link.b]
            ends = ["right", "b"]
            medium = "ethernet-1g"
            [circuit.wan]
            from = "left"
            to = "right"
            {circuit}
            [traffic.t]
            kind = "tcp-stream"
            from = "a"
            to = "b"
            message = "64 kB"
            "#
        )
    };
    let outcome = limits(&text(""));
    check(&outcome);
    let flow = &outcome.flows["t"];
    let cells = 149.76e6 / 424.0;
    assert!(close(flow.goodput_bit_per_s, cells / 32.0 * 1460.0 * 8.0));
    assert_eq!(mbit_s(flow.goodput_bit_per_s, 2), "128.92");
    assert_eq!(
        (flow.bottleneck.title.as_str(), flow.next.as_ref().map(|next| next.title.as_str())),
        ("link `up`", Some("link `down`"))
    );
    // Two cells for every second segment come back.
    assert!(close(outcome.links["up"].directions[1].utilisation.unwrap(), 1.0 / 32.0));
    assert_eq!(outcome.links["lan"].directions[1].shares[0].kind, "acknowledgements");

    let shaped = limits(&text("shaping = \"10 %\"\npolicing = { rate = \"8 %\", tolerance = \"1 ms\" }"));
    let flow = &shaped.flows["t"];
    assert!(close(candidate(flow, "shaper of circuit `wan`"), cells / 320.0 * 1460.0 * 8.0));
    assert!(close(flow.goodput_bit_per_s, 0.08 * cells / 32.0 * 1460.0 * 8.0));
    insta::assert_snapshot!(flow.summary, @"policer of circuit `wan` limits `t` to 10.31 Mbit/s: it passes 28256 cells/s, 8.0 % of link `up`; next is shaper of circuit `wan` at 12.89 Mbit/s");

    // In the opposite direction the circuit is not shaped, but the acknowledgements of traffic in that direction are.
    let back = text("shaping = \"1 %\"")
        .replace("from = \"a\"\n            to = \"b\"", "from = \"b\"\n            to = \"a\"");
    let flow = &limits(&back).flows["t"];
    assert!(close(candidate(flow, "shaper of circuit `wan`"), 0.01 * cells * 1460.0 * 8.0));
    assert!(close(candidate(flow, "link `up`"), cells / 32.0 * 1460.0 * 8.0));
}

/// Several connections of one traffic count as several flows: three of four parts for three.
#[test]
fn parallel_connections_count_as_separate_flows() {
    let traffic =
        stream("three", "tcp-stream", 65_536) + "streams = 3\n" + &stream("one", "tcp-stream", 65_536);
    let outcome = limits(&chain(&[FAST, FAST], &["switch"], &traffic));
    check(&outcome);
    let whole = 100e6 * 1460.0 / 1538.0;
    assert!(close(outcome.flows["three"].goodput_bit_per_s, 0.75 * whole));
    assert!(close(outcome.flows["one"].goodput_bit_per_s, 0.25 * whole));
    let alone = stream("t", "tcp-stream", 65_536) + "streams = 10\n";
    assert!(close(limits(&chain(&[FAST], &[], &alone)).flows["t"].goodput_bit_per_s, whole));
}

/// A token bucket counts frames: 1460 of 1518 bytes are payload. It applies to the direction of its transmitter.
#[test]
fn token_bucket_limit_matches_hand_calculation() {
    let bucket = |rate: &str, burst: &str| {
        let keys = format!("queue = {{ token-bucket = {{ rate = \"{rate}\", burst = \"{burst}\" }} }}");
        let text =
            chain(&[FAST, &format!("{FAST}\n{keys}")], &["switch"], &stream("t", "tcp-stream", 65_536));
        limits(&text).flows["t"].clone()
    };
    let flow = bucket("10 Mbit/s", "3 kB");
    assert!(close(flow.goodput_bit_per_s, 10e6 * 1460.0 / 1518.0));
    insta::assert_snapshot!(flow.summary, @"token bucket of `n0` on link `l1` limits `t` to 9.62 Mbit/s: its token rate is 10.00 Mbit/s; next is link `l0` at 94.93 Mbit/s");
    assert!(close(stage(&flow, "token bucket"), flow.goodput_bit_per_s));
    let flow = bucket("10 Mbit/s", "1517 B");
    assert_eq!((flow.goodput_bit_per_s, bucket("10 Mbit/s", "1518 B").goodput_bit_per_s > 9e6), (0.0, true));
    insta::assert_snapshot!(flow.summary, @"token bucket of `n0` on link `l1` limits `t` to 0 bit/s: frames longer than its burst are dropped; next is link `l0` at 94.93 Mbit/s");

    // Acknowledgements pass the bucket of the other end: 64 bytes for two segments.
    let keys = "queue = { token-bucket = { rate = \"1 Mbit/s\", burst = \"2 kB\" } }";
    let text = chain(&[&format!("{FAST}\n{keys}"), FAST], &["switch"], &stream("t", "tcp-stream", 65_536));
    let flow = &limits(&text).flows["t"];
    assert!(close(flow.goodput_bit_per_s, 1e6 / (64.0 * 8.0) * 2.0 * 1460.0 * 8.0));
}

/// A full frame has 1518 bytes. A queue of any discipline that holds fewer bytes drops it, also if it is empty.
#[test]
fn buffer_shorter_than_a_frame_lets_nothing_through() {
    for kind in ["drop-tail", "priority", "fq-codel", "drr"] {
        let queue = |limit: &str| {
            let keys = format!("{FAST}\nqueue = {{ {kind} = {{ limit = \"{limit}\" }} }}");
            let text = chain(&[FAST, &keys], &["switch"], &stream("t", "udp-stream", 1472));
            limits(&text).flows["t"].clone()
        };
        let flow = queue("1517 B");
        assert_eq!((flow.goodput_bit_per_s, flow.bound_bit_per_s), (0.0, 0.0));
        assert_eq!(flow.bottleneck.title, "buffer of `n0` on link `l1`");
        assert!(close(queue("1518 B").goodput_bit_per_s, 100e6 * 1472.0 / 1538.0));
        assert!(close(queue("1 packets").goodput_bit_per_s, 100e6 * 1472.0 / 1538.0));
    }
    let keys = format!("{FAST}\nqueue = {{ drop-tail = {{ limit = \"100 B\" }} }}");
    let flow = &limits(&chain(&[FAST, &keys], &["switch"], &stream("t", "tcp-stream", 65_536))).flows["t"];
    insta::assert_snapshot!(flow.summary, @"buffer of `n0` on link `l1` limits `t` to 0 bit/s: frames longer than its `limit` are dropped; next is link `l0` at 94.93 Mbit/s");
    assert!(flow.bound_bit_per_s > 0.0, "a segment of 40 bytes has room");
    // The acknowledgements of 64 bytes that come back find no room either.
    let keys = format!("{FAST}\nqueue = {{ drop-tail = {{ limit = \"60 B\" }} }}");
    let flow = &limits(&chain(&[&keys, FAST], &["switch"], &stream("t", "tcp-stream", 65_536))).flows["t"];
    assert_eq!(flow.goodput_bit_per_s, 0.0);
}

/// The second router drops packets with a TTL of 2, as every router decrements it.
#[test]
fn packets_whose_ttl_ends_have_a_limit_of_zero() {
    let of = |ttl: u8| {
        let traffic = stream("t", "udp-stream", 1000) + &format!("ttl = {ttl}\n");
        limits(&chain(&[FAST, FAST, FAST], &["router", "router"], &traffic)).flows["t"].clone()
    };
    let flow = of(2);
    assert_eq!((flow.goodput_bit_per_s, flow.bound_bit_per_s), (0.0, 0.0));
    insta::assert_snapshot!(flow.summary, @"TTL at router `n1` limits `t` to 0 bit/s: all packets are dropped there, because their TTL ends; next is link `l0` at 93.81 Mbit/s");
    assert_eq!(of(1).bottleneck.title, "TTL at router `n0`");
    assert!(of(3).goodput_bit_per_s > 90e6);
}

/// Random loss changes no figure, and the summary says so.
#[test]
fn random_loss_is_ignored_and_named_in_the_summary() {
    let lossy = format!("{FAST}\nloss = \"0.5 %\"\njitter = \"1 ms\"");
    let flow = &limits(&chain(&[FAST, &lossy], &["router"], &stream("t", "tcp-stream", 65_536))).flows["t"];
    assert!(close(flow.goodput_bit_per_s, 100e6 * 1460.0 / 1538.0));
    insta::assert_snapshot!(flow.summary, @"link `l0` limits `t` to 94.93 Mbit/s: framing and headers take 5.1 % of the line; next is link `l1` at 94.93 Mbit/s; not counted: random loss of 0.5 % on link `l1`");
}

/// Returns the sizes of the fragments of a datagram, fragmented byte by byte as RFC 791 section 3.2 says.
fn pieces(mut packets: Vec<u64>, mtu: u64) -> Vec<u64> {
    let mut cut = Vec::new();
    for packet in &mut packets {
        while *packet + 20 > mtu {
            let most = (mtu - 20) - (mtu - 20) % 8;
            cut.push(most);
            *packet -= most;
        }
        cut.push(*packet);
    }
    cut
}

proptest! {
    /// Chains of routers: every link is a candidate with the frames that reach it, and the laws hold.
    #[test]
    fn router_chain_limits_match_fragment_lengths(
        hops in prop::collection::vec((68u64..9000, any::<bool>(), 0u64..50), 1..5), message in 1u64..65_508,
        others in prop::collection::vec((any::<bool>(), 1u64..60_000, 1u64..4), 0..3),
    ) {
        let links: Vec<String> = hops.iter()
            .map(|(mtu, vlan, _)| format!("{FAST}\nmtu = \"{mtu} B\"\nvlan = {vlan}"))
            .collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let routers: Vec<String> = hops[1..].iter().map(|(.., us)| format!("router\nper_packet = \"{us} us\"")).collect();
        let routers: Vec<&str> = routers.iter().map(String::as_str).collect();
        let alone = limits(&chain(&links, &routers, &stream("t", "udp-stream", message)));
        check(&alone);
        let mut packets = vec![message + 8];
        for (index, (mtu, vlan, _)) in hops.iter().enumerate() {
            if index > 0 {
                let us = hops[index].2;
                let time = us as f64 * 1e-6 * packets.len() as f64;
                let router = alone.flows["t"].candidates.iter().find(|one| one.bottleneck.title == format!("router `n{}`", index - 1));
                prop_assert_eq!(router.is_some(), us > 0);
                prop_assert!(router.is_none_or(|router| close(router.goodput_bit_per_s, 8.0 * message as f64 / time)));
            }
            packets = pieces(packets, *mtu);
            let tag = if *vlan { 4 } else { 0 };
            let frames: u64 = packets.iter().map(|packet| (packet + 20 + 18 + tag).max(64) + 20).sum();
            let expected = 100e6 * message as f64 / frames as f64;
            let link = candidate(&alone.flows["t"], &format!("link `l{index}`"));
            prop_assert!(close(link, expected), "{} {} {}", index, link, expected);
        }
        let traffic = others.iter().enumerate().map(|(index, (tcp, message, streams))| {
            let (kind, more) = if *tcp { ("tcp-stream", format!("streams = {streams}\n")) } else { ("udp-stream", String::new()) };
            stream(&format!("o{index}"), kind, *message) + &more
        });
        let traffic: String = traffic.collect();
        check(&limits(&chain(&links, &routers, &(stream("t", "udp-stream", message) + &traffic))));
    }
}
