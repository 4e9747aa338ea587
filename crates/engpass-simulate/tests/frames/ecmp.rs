//! Routers that choose among equal-cost paths, against arithmetic.

use engpass_simulate::{Carried, SimOutcome};

use super::common::close;
use super::{flow, goodput, run};

/// Two routers with two lines of 100 Mbit/s between them.
pub(super) const PAIR: &str = r#"
    name = "two ways"
    [host.a]
    [host.b]
    [router.near]
    ecmp = "round-robin"
    [router.far]
    [link.in]
    ends = ["a", "near"]
    medium = "ethernet-1g"
    [link.upper]
    ends = ["near", "far"]
    medium = "ethernet-100"
    [link.lower]
    ends = ["near", "far"]
    medium = "ethernet-100"
    [link.out]
    ends = ["far", "b"]
    medium = "ethernet-1g"
    [traffic.stream]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "1472 B"
    rate = "150 Mbit/s"
    [run]
    duration = "500 ms"
    warmup = "100 ms"
"#;

pub(super) fn frames(outcome: &SimOutcome, link: &str) -> u64 {
    let (_, link) = outcome.links.iter().find(|(name, _)| name == link).expect("the outcome has this link");
    match link.directions[0].carried {
        Carried::Frames { frames, .. } => frames,
        Carried::Cells { .. } => panic!("an Ethernet link carries frames"),
    }
}

pub(super) fn share(outcome: &SimOutcome, link: &str, account: &str) -> f64 {
    let (_, link) = outcome.links.iter().find(|(name, _)| name == link).expect("the outcome has this link");
    link.directions[0].ledger.get(account) as f64 / link.directions[0].capacity as f64
}

#[test]
fn round_robin_splits_packets_by_weight() {
    let outcome = run(PAIR, &[]);
    close(goodput(&outcome, "stream"), 150e6, 1e-3);
    assert_eq!(flow(&outcome, "stream").datagrams.unwrap().lost, 0);
    assert!(frames(&outcome, "upper").abs_diff(frames(&outcome, "lower")) <= 1);
    // 75 Mbit/s of payload in frames of 1538 bytes.
    close(share(&outcome, "upper", "delivered"), 0.75, 1e-3);
    let weighted = [("router.near.ecmp", "{ round-robin = { weights = { upper = 3 } } }")];
    let outcome = run(PAIR, &[&weighted[..], &[("traffic.stream.rate", "\"100 Mbit/s\"")]].concat());
    close(frames(&outcome, "upper") as f64 / frames(&outcome, "lower") as f64, 3.0, 1e-3);
}

/// Every line is charged for the fragments that it carried: of 2000 bytes one line has 1480 bytes of IP payload, the other 528.
#[test]
fn fragments_are_posted_to_the_line_that_carried_them() {
    let outcome =
        run(PAIR, &[("traffic.stream.message", "\"2000 B\""), ("traffic.stream.rate", "\"100 Mbit/s\"")]);
    close(goodput(&outcome, "stream"), 100e6, 1e-3);
    let datagrams = 100e6 / 16e3;
    for (link, [payload, header]) in [("upper", [1472.0, 8.0]), ("lower", [528.0, 0.0])] {
        close(share(&outcome, link, "delivered"), datagrams * payload * 8.0 / 100e6, 1e-3);
        close(share(&outcome, link, "transport headers") + 1.0, datagrams * header * 8.0 / 100e6 + 1.0, 1e-5);
        close(share(&outcome, link, "IP headers"), datagrams * 20.0 * 8.0 / 100e6, 1e-3);
        assert!(share(&outcome, link, "in flight") < 1e-3);
    }
}

/// Sixteen connections by their ports: each takes one line, and both lines have some.
#[test]
fn hash_spreads_whole_connections_over_both_lines() {
    let tcp = [
        ("router.near.ecmp", "\"hash\""),
        ("traffic.stream.kind", "\"tcp-stream\""),
        ("traffic.stream.message", "\"64 kB\""),
        ("traffic.stream.streams", "16"),
        ("run.duration", "2 s"),
    ];
    let outcome = run(PAIR, &[&tcp[..], &[("traffic.stream.rate", "\"4 Mbit/s\"")]].concat());
    let [upper, lower] = ["upper", "lower"].map(|link| frames(&outcome, link) as f64);
    assert!(upper > 0.0 && lower > 0.0);
    // Whole connections: the lines carry a whole number of sixteenths.
    let sixteenths = 16.0 * upper / (upper + lower);
    close(sixteenths, sixteenths.round(), 0.03);
}

/// A hash puts one connection on one line. The other line is idle because no flow was assigned to it.
#[test]
fn unchosen_line_is_idle_for_the_other_path() {
    let outcome = run(PAIR, &[("router.near.ecmp", "\"hash\""), ("traffic.stream.rate", "\"50 Mbit/s\"")]);
    let idle = ["upper", "lower"].map(|link| share(&outcome, link, "idle: other way"));
    assert!(idle.iter().filter(|share| **share > 0.99).count() == 1, "{idle:?}");
    // A sender that always sends at 100 Mbit/s uses two such lines in turn. Each is idle half of the time, because packets take the other
    // one.
    let sprayed =
        run(PAIR, &[("link.in.medium", "\"ethernet-100\""), ("traffic.stream.rate", "\"1 Gbit/s\"")]);
    close(share(&sprayed, "upper", "idle: other way"), 0.5, 1e-3);
}
