//! Ethernet, point-to-point links, switches and routers in `simulate`, against closed forms and conservation.

mod circuits;
#[path = "../common/mod.rs"]
mod common;
mod ecmp;
mod lookahead;
mod lookahead_equivalence;
mod outage;
mod paced_tcp;
mod path_mtu;
mod transfers;
mod tunnels;

use common::close;
use engpass_outcome::FlowOutcome;
use engpass_simulate::{Carried, SimOutcome};

const LAN: &str = r#"
    name = "two hosts and a switch"
    [host.a]
    [host.b]
    [switch.s]
    kind = "ethernet"
    [link.first]
    ends = ["a", "s"]
    medium = "ethernet-100"
    [link.second]
    ends = ["s", "b"]
    medium = "ethernet-100"
    [traffic.stream]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "1472 B"
    [run]
    duration = "2 s"
    warmup = "100 ms"
"#;

const WAN: &str = r#"
    name = "two senders, a router, a thin line"
    [host.a]
    [host.c]
    [host.b]
    [router.r]
    queue = { drop-tail = { limit = "100 packets" } }
    [link.fast]
    ends = ["a", "r"]
    medium = "ethernet-1g"
    [link.second]
    ends = ["c", "r"]
    medium = "ethernet-1g"
    [link.thin]
    ends = ["r", "b"]
    medium = "point-to-point"
    rate = "20 Mbit/s"
    delay = "5 ms"
    [traffic.one]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    message = "64 KiB"
    [traffic.two]
    kind = "tcp-stream"
    from = "c"
    to = "b"
    message = "64 KiB"
    [run]
    duration = "20 s"
    warmup = "2 s"
"#;

fn run(text: &str, overrides: &[(&str, &str)]) -> SimOutcome {
    common::run(text, "base", overrides)
}

fn flow<'a>(outcome: &'a SimOutcome, name: &str) -> &'a FlowOutcome {
    &outcome.flows[name]
}

fn goodput(outcome: &SimOutcome, name: &str) -> f64 {
    flow(outcome, name).goodput_bit_per_s
}

/// Frames sent back to back fill the line as the standards say.
#[test]
fn back_to_back_frames_fill_ethernet_lines() {
    let udp = |overrides: &[(&str, &str)]| goodput(&run(LAN, overrides), "stream");
    close(udp(&[]), 100e6 * 1472.0 / 1538.0, 1e-4);
    close(udp(&[("link.first.vlan", "true"), ("link.second.vlan", "true")]), 100e6 * 1472.0 / 1542.0, 1e-4);
    // 18 bytes fill the shortest frame: 148 810 frames per second.
    close(udp(&[("traffic.stream.message", "\"1 B\"")]), 148_809.5 * 8.0, 1e-4);
    let jumbo = [
        ("link.first.mtu", "\"9000 B\""),
        ("link.second.mtu", "\"9000 B\""),
        ("traffic.stream.message", "\"8972 B\""),
    ];
    close(udp(&jumbo), 100e6 * 8972.0 / 9038.0, 1e-4);
    // Two fragments, of 1480 and 528 bytes of IP payload.
    close(udp(&[("traffic.stream.message", "\"2000 B\"")]), 100e6 * 2000.0 / (1538.0 + 586.0), 1e-3);
}

/// TCP with timestamps: 1448 of 1538 bytes; acknowledgments use the other direction.
#[test]
fn tcp_fills_the_line() {
    for rate in ["ethernet-100", "ethernet-1g", "ethernet-10g"] {
        let medium = format!("\"{rate}\"");
        let outcome = run(
            LAN,
            &[
                ("traffic.stream.kind", "\"tcp-stream\""),
                ("link.first.medium", &medium),
                ("link.second.medium", &medium),
                ("run.duration", "\"300 ms\""),
            ],
        );
        let line = match rate {
            "ethernet-100" => 100e6,
            "ethernet-1g" => 1e9,
            _ => 10e9,
        };
        close(goodput(&outcome, "stream"), line * 1448.0 / 1538.0, 0.01);
        let Carried::Frames { frames, lost_frames, .. } = outcome.links[0].1.directions[1].carried else {
            panic!("an Ethernet link carries frames")
        };
        assert!(frames > 0 && lost_frames == 0, "the return path carries acknowledgments without loss");
    }
}

/// One window per round trip: delays, one serialization on every line, and the return of the acknowledgment.
#[test]
fn small_window_over_ethernet_matches_hand_calculation() {
    let outcome = run(
        LAN,
        &[
            ("traffic.stream.kind", "\"tcp-stream\""),
            ("link.second.delay", "\"10 ms\""),
            ("host.b.tcp.receive_buffer", "\"14600 B\""),
            ("host.b.tcp.ack_every", "1"),
            ("host.a.tcp.timestamps", "false"),
            ("host.a.tcp.window_scaling", "false"),
            ("run.duration", "\"5 s\""),
        ],
    );
    // From the first bit to the last, a frame takes 1526 byte times, and an acknowledgment without options takes 72.
    let round_trip = 2.0 * (10e-3 + 1e-6) + 2.0 * (1526.0 + 72.0) * 8.0 / 100e6;
    close(goodput(&outcome, "stream"), 14_600.0 * 8.0 / round_trip, 0.002);
}

/// Two equal flows share a thin line evenly, and fill it, whatever the discipline.
#[test]
fn equal_flows_share_a_line_in_every_discipline() {
    for (queue, worst) in [
        ("{ drop-tail = { limit = \"100 packets\" } }", 0.75),
        ("{ red = {} }", 0.75),
        ("{ codel = {} }", 0.75),
        ("{ fq-codel = {} }", 0.98),
        ("{ drr = { limit = \"100 packets\" } }", 0.98),
        ("{ priority = { limit = \"100 packets\" } }", 0.6),
    ] {
        let outcome = run(WAN, &[("router.r.queue", queue)]);
        let (one, two) = (goodput(&outcome, "one"), goodput(&outcome, "two"));
        let sum = one + two;
        // A packet of 1500 bytes has 1448 of payload, and this line adds no framing.
        let most = 20e6 * 1448.0 / 1500.0;
        assert!(sum > 0.93 * most && sum < 1.0005 * most, "{queue}: {one} {two}");
        assert!(one.min(two) / one.max(two) > worst, "{queue}: {one} and {two}");
    }
}

/// All that is sent is received, lost or in flight, and a seed determines the run.
#[test]
fn sent_datagrams_are_received_lost_or_in_flight() {
    let hard = [
        ("run.warmup", "\"0 s\""),
        ("link.thin.loss", "\"0.5 %\""),
        ("link.thin.jitter", "\"2 ms\""),
        ("link.fast.reorder", "{ share = \"1 %\", delay = \"3 ms\" }"),
        ("router.r.queue", "{ red = {} }"),
    ];
    let outcome = run(WAN, &hard);
    for name in ["one", "two"] {
        let flow = flow(&outcome, name);
        let counts = flow.datagrams.unwrap();
        assert_eq!(counts.sent, counts.received + counts.lost + counts.in_flight.unwrap(), "{flow:?}");
        let dropped: u64 =
            outcome.drops.iter().filter(|drop| drop.flow == name).map(|drop| drop.datagrams).sum();
        assert!(dropped >= counts.lost && counts.lost > 0);
    }
    let causes: Vec<_> = outcome.drops.iter().map(|drop| drop.cause).collect();
    assert!(causes.contains(&"damaged on the line") && causes.contains(&"early drop"), "{causes:?}");
    assert_eq!(outcome, run(WAN, &hard));
}

/// A router fragments packets that are too large for the next link, and the receiver reassembles them.
#[test]
fn router_fragments_for_the_next_link_mtu() {
    let outcome = run(
        WAN,
        &[
            ("traffic.one.kind", "\"udp-stream\""),
            ("traffic.one.message", "\"1472 B\""),
            ("traffic.one.rate", "\"8 Mbit/s\""),
            ("traffic.two.stop", "\"1 ms\""),
            ("link.thin.mtu", "\"600 B\""),
        ],
    );
    let one = flow(&outcome, "one");
    close(one.goodput_bit_per_s, 8e6, 1e-3);
    assert_eq!(one.datagrams.unwrap().lost, 0);
    let Carried::Frames { frames, .. } = outcome.links[2].1.directions[0].carried else {
        panic!("a point-to-point link carries frames")
    };
    // 1480 bytes of IP payload in fragments of at most 576: three packets per datagram.
    close(frames as f64, one.datagrams.unwrap().received as f64 * 3.0, 1e-3);
}

/// A TTL that is too small, and a router that is too slow.
#[test]
fn router_drops_expired_ttl_and_keeps_up_below_its_rate() {
    let outcome = run(WAN, &[("traffic.one.ttl", "1")]);
    assert_eq!(flow(&outcome, "one").datagrams.unwrap().received, 0);
    assert!(outcome.drops.iter().any(|drop| drop.place.to_string() == "r" && drop.cause == "time to live"));
    let outcome = run(
        WAN,
        &[
            ("router.r.per_packet", "\"1 ms\""),
            ("traffic.one.kind", "\"udp-stream\""),
            ("traffic.one.message", "\"1000 B\""),
            ("traffic.one.rate", "\"4 Mbit/s\""),
            ("traffic.two.stop", "\"1 ms\""),
        ],
    );
    assert_eq!(
        flow(&outcome, "one").datagrams.unwrap().lost,
        0,
        "500 packets/s do not exceed the router's 1000"
    );
    close(goodput(&outcome, "one"), 4e6, 1e-3);
}

/// Priority 7 goes first: it gets all that it offers, and the other flow the rest.
#[test]
fn strict_priority_serves_the_high_class_first() {
    let outcome = run(
        WAN,
        &[
            ("router.r.queue", "{ priority = { limit = \"50 packets\" } }"),
            ("traffic.one.kind", "\"udp-stream\""),
            ("traffic.one.message", "\"1472 B\""),
            ("traffic.one.rate", "\"15 Mbit/s\""),
            ("traffic.one.priority", "7"),
        ],
    );
    close(goodput(&outcome, "one"), 15e6, 1e-3);
    let left = 20e6 - 15e6 * 1500.0 / 1472.0;
    close(goodput(&outcome, "two"), left * 1448.0 / 1500.0, 0.06);
}

/// A token bucket holds a flow to its rate.
#[test]
fn token_bucket_limits_goodput_to_its_rate() {
    let outcome = run(
        WAN,
        &[
            (
                "router.r.queue",
                "{ token-bucket = { rate = \"5 Mbit/s\", burst = \"10 kB\", limit = \"50 packets\" } }",
            ),
            ("traffic.two.stop", "\"1 ms\""),
        ],
    );
    close(goodput(&outcome, "one"), 5e6 * 1448.0 / 1500.0, 0.05);
    let line = &outcome.links[2].1.directions[0];
    let share = line.ledger.get("idle: shaper") as f64 / line.capacity as f64;
    // Of 20 Mbit/s 5 are used.
    close(share, 0.75, 0.05);
}

/// Parallel connections of one traffic add up.
#[test]
fn parallel_streams_get_one_share_each() {
    let outcome = run(WAN, &[("traffic.one.streams", "3"), ("router.r.queue", "{ fq-codel = {} }")]);
    let (one, two) = (goodput(&outcome, "one"), goodput(&outcome, "two"));
    close(one / two, 3.0, 0.05);
}

/// M/M/1/K: a share (1 - r) r^K / (1 - r^(K + 1)) of Poisson arrivals finds K in the port (Kleinrock, Queueing Systems I, 3.6).
#[test]
fn m_m_1_k_loss_ratio_matches_kleinrock() {
    let text = r#"
        name = "a small queue"
        [host.a]
        [host.b]
        [router.r]
        queue = { drop-tail = { limit = "5 packets" } }
        [link.fast]
        ends = ["a", "r"]
        medium = "point-to-point"
        rate = "100 Gbit/s"
        mtu = "65535 B"
        [link.thin]
        ends = ["r", "b"]
        medium = "point-to-point"
        rate = "1 Gbit/s"
        mtu = "65535 B"
        [traffic.stream]
        kind = "poisson"
        from = "a"
        to = "b"
        message = "8000 B"
        sizes = "exponential"
        rate = "1 Gbit/s"
        [run]
        duration = "20 s"
    "#;
    for (rate, rho) in [("\"500 Mbit/s\"", 0.5), ("\"900 Mbit/s\"", 0.9), ("\"1500 Mbit/s\"", 1.5)] {
        let outcome = run(text, &[("traffic.stream.rate", rate)]);
        let stream = flow(&outcome, "stream");
        // 28 bytes of headers with every 8000 of payload.
        let rho: f64 = rho * 8028.0 / 8000.0;
        let expected = (1.0 - rho) * rho.powi(5) / (1.0 - rho.powi(6));
        let counts = stream.datagrams.unwrap();
        close(counts.lost as f64 / counts.sent as f64, expected, 0.03);
        close(
            stream.offered_bit_per_s,
            rate.trim_matches('"').split(' ').next().expect("a number").parse::<f64>().expect("a number")
                * 1e6,
            0.01,
        );
    }
}
