//! Outages of links, against arithmetic.

use engpass_simulate::SimOutcome;

use super::common::close;
use super::ecmp::{PAIR, frames, share};
use super::{flow, goodput, run};

/// 1000 packets per second on one path.
const STREAM: [(&str, &str); 4] = [
    ("traffic.stream.rate", "\"11.776 Mbit/s\""),
    ("run.duration", "\"2 s\""),
    ("run.warmup", "\"0 s\""),
    ("router.near.ecmp", "\"first\""),
];

fn outage(extra: &[(&str, &str)]) -> SimOutcome {
    let text = format!(
        "{PAIR}
        [event.cut]
        at = \"500 ms\"
        target = \"upper\"
        change = \"down\"
        [event.mended]
        at = \"1 s\"
        target = \"upper\"
        change = \"up\"
        "
    );
    run(&text, &[&STREAM[..], extra].concat())
}

fn lost(outcome: &SimOutcome) -> u64 {
    outcome.drops.iter().filter(|drop| drop.cause == "line down").map(|drop| drop.datagrams).sum()
}

/// At 1000 packets per second, an outage of half a second loses 500 packets if there is no other path.
#[test]
fn packets_to_a_down_line_are_lost_without_another_path() {
    let outcome = outage(&[]);
    let stream = flow(&outcome, "stream");
    assert_eq!(lost(&outcome), 500);
    let counts = stream.datagrams.unwrap();
    assert_eq!(counts.sent, counts.received + 500 + counts.in_flight.unwrap());
    let seen = stream.outage.expect("the testbed has events");
    assert_eq!(seen.lost, 500);
    // From the last packet before the outage to the first one after it.
    close(seen.longest_s, 0.501, 1e-3);
    close(share(&outcome, "upper", "idle: line down"), 0.25, 1e-6);
    assert_eq!(share(&outcome, "lower", "idle: line down"), 0.0);
}

/// With a policy, the next packet takes the other line.
#[test]
fn ecmp_policy_avoids_a_down_line() {
    let hashed = outage(&[("router.near.ecmp", "{ hash = { seed = 0 } }")]);
    let other = outage(&[("router.near.ecmp", "{ hash = { seed = 1 } }")]);
    let sprayed = outage(&[("router.near.ecmp", "\"round-robin\"")]);
    for outcome in [&hashed, &other, &sprayed] {
        assert!(lost(outcome) <= 1, "{}", lost(outcome));
        close(goodput(outcome, "stream"), 11.776e6, 2e-3);
    }
    // Both lines in turn for 1.5 s, the lower one alone for 0.5 s.
    close(frames(&sprayed, "upper") as f64, 750.0, 5e-3);
    close(frames(&sprayed, "lower") as f64, 1250.0, 5e-3);
}

/// The far end of an interface that is down keeps sending, because it does not notice.
#[test]
fn interface_failure_is_seen_only_by_its_own_node() {
    let text = |node: &str| {
        format!(
            "{PAIR}
            [event.cut]
            at = \"1 s\"
            target = \"{node}/upper\"
            change = \"down\"
            "
        )
    };
    let extra = [&STREAM[..3], &[("router.near.ecmp", "\"round-robin\"")]].concat();
    let seen = run(&text("near"), &extra);
    let unseen = run(&text("far"), &extra);
    assert!(lost(&seen) <= 1);
    close(lost(&unseen) as f64, 500.0, 5e-3);
}

/// A NIC keeps its pace: the sender does not notice the outage, and all packets are lost.
#[test]
fn host_keeps_sending_to_a_down_line() {
    let text = format!(
        "{PAIR}
        [event.cut]
        at = \"1 s\"
        target = \"in\"
        change = \"down\"
        "
    );
    let outcome = run(&text, &STREAM);
    let stream = flow(&outcome, "stream");
    assert_eq!(stream.datagrams.unwrap().sent, 2000);
    assert_eq!(lost(&outcome), 1000);
}

/// TCP recovers after its retransmission timer; the packets in the queue are lost.
#[test]
fn tcp_recovers_after_an_outage() {
    let tcp = [
        ("traffic.stream.kind", "\"tcp-stream\""),
        ("traffic.stream.message", "\"64 kB\""),
        ("traffic.stream.rate", "\"1 Gbit/s\""),
        ("run.duration", "\"4 s\""),
    ];
    let outcome = outage(&tcp);
    let stream = flow(&outcome, "stream");
    assert!(stream.tcp.expect("the flow is a TCP flow").timeouts >= Some(1));
    assert!(lost(&outcome) > 10, "the queue is flushed: {}", lost(&outcome));
    let goodput = goodput(&outcome, "stream");
    assert!((70e6..85e6).contains(&goodput), "{goodput}");
}

/// A transfer of 100 datagrams has no gap behind its last byte if all have arrived; if some are lost, the gap lasts to the end of the run.
#[test]
fn nothing_is_missing_behind_a_transfer_that_has_arrived() {
    let longest = |count: u32| {
        let outcome = outage(&[("traffic.stream.count", &count.to_string())]);
        flow(&outcome, "stream").outage.expect("the testbed has events").longest_s
    };
    close(longest(100), 0.001, 0.01);
    // The last 100 of 600 datagrams are lost, from 0.5 s on.
    close(longest(600), 2.0 - 0.5, 0.01);
}
