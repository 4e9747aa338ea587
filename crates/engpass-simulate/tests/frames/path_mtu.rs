//! Path MTU discovery against arithmetic, with routers that send messages and routers that do not.

use engpass_simulate::SimOutcome;

use super::common::close;
use super::{flow, goodput, run};

/// Segments of 1460 bytes (1448 with timestamps) meet a link with an MTU of 1400. The queue never overflows.
const TUNNEL: &str = r#"
    name = "a tunnel"
    [host.a.tcp]
    path_mtu = "discovered"
    congestion = "reno"
    send_buffer = "60 kB"
    [host.b]
    [router.near]
    [router.far]
    [link.left]
    ends = ["a", "near"]
    medium = "ethernet-100"
    [link.tunnel]
    ends = ["near", "far"]
    medium = "point-to-point"
    rate = "10 Mbit/s"
    delay = "10 ms"
    mtu = "1400 B"
    [link.right]
    ends = ["far", "b"]
    medium = "ethernet-100"
    [traffic.stream]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    message = "64 KiB"
    [run]
    duration = "10 s"
"#;

fn too_big(outcome: &SimOutcome) -> u64 {
    outcome.drops.iter().filter(|drop| drop.cause == "too big").map(|drop| drop.datagrams).sum()
}

/// Returns the bytes of acknowledgments and messages in the reverse direction of a link with this capacity.
fn control_bytes(outcome: &SimOutcome, link: &str, capacity: f64) -> f64 {
    let (_, link) = outcome.links.iter().find(|(name, _)| name == link).expect("the outcome has this link");
    let back = &link.directions[1];
    back.ledger.get("ACK and control") as f64 / back.capacity as f64 * capacity
}

/// The ten segments of the initial window are dropped, and ten messages of 576 bytes return at once. After that all packets have 1400 bytes, with 1348 of
/// payload.
#[test]
fn path_mtu_discovery_shrinks_segments_to_fit() {
    let outcome = run(TUNNEL, &[]);
    assert_eq!(too_big(&outcome), 10);
    let all: u64 = outcome.drops.iter().map(|drop| drop.datagrams).sum();
    assert_eq!(all, 10, "only the segments that are too big are dropped");
    let stream = flow(&outcome, "stream");
    assert_eq!(
        stream.tcp.as_ref().map(|tcp| (tcp.timeouts, tcp.retransmitted_segments)),
        Some((Some(0), Some(20)))
    );
    // Each of the ten segments of 1448 bytes is split into two. A slow start follows.
    close(goodput(&outcome, "stream"), 10e6 * 1348.0 / 1400.0, 2e-2);
    // Each message takes 576 bytes of the line in the reverse direction.
    let known = run(TUNNEL, &[("host.a.tcp.path_mtu", "\"known\"")]);
    assert_eq!(too_big(&known), 0);
    assert!(goodput(&known, "stream") > goodput(&outcome, "stream"));
}

/// In the first milliseconds the reverse direction carries only the handshake and the messages.
#[test]
fn icmp_messages_are_posted_as_control() {
    let early = [("run.duration", "\"25 ms\"")];
    let [with, without] =
        ["true", "false"].map(|icmp| run(TUNNEL, &[&early[..], &[("router.near.icmp", icmp)]].concat()));
    assert_eq!((too_big(&with), too_big(&without)), (10, 10));
    close(
        control_bytes(&with, "left", 12.5e6 * 0.025) - control_bytes(&without, "left", 12.5e6 * 0.025),
        10.0 * (576.0 + 18.0),
        1e-9,
    );
    assert_eq!(control_bytes(&with, "tunnel", 1.0), control_bytes(&without, "tunnel", 1.0));
}

/// Without messages the first segment is sent again and again: after 0.2 s (the minimum timeout), and each time after twice the interval.
#[test]
fn router_without_icmp_is_a_path_mtu_black_hole() {
    let outcome = run(TUNNEL, &[("router.near.icmp", "false")]);
    let stream = flow(&outcome, "stream");
    assert_eq!(stream.datagrams.unwrap().received, 0);
    let tcp = stream.tcp.as_ref().expect("the flow is a TCP flow");
    // A tail probe first; then timeouts at about 0.2, 0.6, 1.4, 3.0 and 6.2 s.
    assert_eq!(tcp.timeouts, Some(5));
    assert_eq!(too_big(&outcome), stream.datagrams.unwrap().lost);
    // Segments that fit from the start, or a path that is known, need no messages.
    for cure in [("host.a.tcp.mss", "\"1360 B\""), ("host.a.tcp.path_mtu", "\"known\"")] {
        let outcome = run(TUNNEL, &[("router.near.icmp", "false"), cure]);
        assert_eq!(too_big(&outcome), 0);
        close(goodput(&outcome, "stream"), 10e6 * 1348.0 / 1400.0, 2e-2);
    }
}

/// A router with a time per packet takes it for messages, too: they wait behind segments, and later segments behind them.
#[test]
fn icmp_messages_take_router_processing_time() {
    let [with, without] = ["true", "false"].map(|icmp| {
        let slow = [("router.near.per_packet", "\"300 us\""), ("run.duration", "\"24 ms\"")];
        too_big(&run(TUNNEL, &[&slow[..], &[("router.near.icmp", icmp)]].concat()))
    });
    // The handshake's last packet is finished at 21.05 ms, then a packet every 0.3 ms: nine before 24 ms. Two of the first nine are messages.
    assert_eq!((with, without), (7, 9));
}

/// Messages are lost like other packets: the port towards the sender has room for one. Segments without a message are retransmitted after a timeout.
#[test]
fn icmp_messages_are_lost_in_a_full_queue() {
    let thin = [
        ("link.left.medium", "\"point-to-point\""),
        ("link.left.rate", "{ forward = \"100 Mbit/s\", backward = \"200 kbit/s\" }"),
        ("link.left.queue", "{ drop-tail = { limit = \"1 packets\" } }"),
    ];
    let outcome = run(TUNNEL, &thin);
    let lost = |cause: &str| {
        outcome.drops.iter().filter(|drop| drop.cause == cause).map(|drop| drop.cells).sum::<u64>()
    };
    assert!(lost("buffer full") > 0, "{:?}", outcome.drops);
    assert!(goodput(&outcome, "stream") > 0.0);
    let counts = flow(&outcome, "stream").datagrams.unwrap();
    assert_eq!(counts.sent, counts.received + counts.lost + counts.in_flight.unwrap());
}
