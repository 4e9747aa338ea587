//! The ledger against closed forms, account by account.

#[path = "../common/mod.rs"]
mod common;
mod window;

use common::{TWO, run};
use engpass_model::time::SECOND;
use engpass_model::unit::Duration;
use engpass_simulate::{Accounts, Direction, LinkUse, SimOutcome, simulate};
use engpass_testbed::{Source, load};

const KYOTO: &str = include_str!("../../../../gallery/kyoto-1997/testbed.toml");

/// Parts of a cell on an OC-3c: 13 per bit, 424 * 27 / 26 bits.
const CELL: u128 = 5724;

fn link<'a>(outcome: &'a SimOutcome, name: &str) -> &'a LinkUse {
    &outcome.links.iter().find(|(link, _)| link == name).expect("the outcome has this link").1
}

/// Returns the names of idle accounts with at least `least` parts.
fn idle_names(accounts: &Accounts, least: u128) -> Vec<&str> {
    let idle = accounts.iter().filter(|(name, parts)| name.starts_with("idle: ") && *parts >= least);
    idle.map(|(name, _)| name).collect()
}

/// Returns the direction of a link from this node.
fn from<'a>(outcome: &'a SimOutcome, name: &str, node: &str) -> &'a Direction {
    link(outcome, name)
        .directions
        .iter()
        .find(|direction| direction.from == node)
        .expect("the link has this end")
}

/// Checks the accounts of every link for what always holds.
fn in_order(outcome: &SimOutcome) {
    for (name, link) in &outcome.links {
        assert_eq!(link.ledger.total(), link.capacity, "{name}");
        assert_eq!(link.capacity, link.directions.iter().map(|direction| direction.capacity).sum(), "{name}");
        for direction in &link.directions {
            assert_eq!(direction.ledger.total(), direction.capacity, "{name}");
        }
        for (account, parts) in link.ledger.iter() {
            let of = |direction: &Direction| direction.ledger.get(account);
            assert_eq!(parts, link.directions.iter().map(of).sum(), "{name}, {account}");
        }
    }
}

#[test]
fn every_variant_of_the_kyoto_study_balances() {
    let source = Source { name: "kyoto.toml".into(), text: KYOTO.into() };
    let campaign = load(&source, &[("run.duration".into(), "1 s".into())], None).expect("the study is valid");
    for variant in campaign.variants() {
        for message in ["1 kB", "9152 B", "64 kB"] {
            let sweep = [("traffic.stream.message".to_owned(), message.to_owned())];
            let Ok(point) = campaign.point(variant, &sweep) else { continue };
            for warmup in [None, Some(Duration(300_000_000_001))] {
                let mut testbed = point.testbed.clone();
                testbed.run.warmup = warmup;
                let outcome = simulate(&testbed, &point.topology, 3, &|| false);
                in_order(&outcome.unwrap_or_else(|wrong| panic!("{variant}, {message}: {wrong:?}")));
            }
        }
    }
}

/// Without other traffic only the CPU keeps the first line idle, and sent bits and idle time add up to the line.
#[test]
fn unloaded_sender_leaves_its_line_idle_for_cpu() {
    let overrides = [("traffic.stream.message", "9 kB"), ("host.ss2.pauses.share", "0 %")];
    let outcome = run(KYOTO, "free", &overrides);
    let line = from(&outcome, "sender", "ss2");
    assert_eq!(line.capacity, 155_520_000 * 13 * 10);
    assert_eq!(line.ledger.get("physical framing"), line.capacity / 27);
    assert_eq!(idle_names(&line.ledger, 1), ["idle: CPU"]);
    // One fragment of 9028 bytes, 189 cells, every 0.919 ms + 9000 * 137 ns.
    let period = 919_000_000 + 9000 * 137_000;
    let sent = 10 * SECOND / period;
    let whole = line.ledger.get("delivered") / (9000 * 8 * 13);
    assert!(u128::from(sent) - whole <= 1, "{sent} sent, {whole} delivered");
    let cells = u128::from(line.carried.sent());
    let rest = line.capacity / 27 * 26 - cells * (CELL - CELL / 27) - line.ledger.get("idle: CPU");
    // A cell that the end of the run clips.
    assert!(rest < CELL, "{rest}");
    assert_eq!(line.ledger.get("transport headers"), whole * 8 * 8 * 13);
    // An SDU of 9036 bytes in 189 cells.
    assert_eq!(line.ledger.get("padding"), whole * (189 * 48 - 9036 - 8) * 8 * 13);
    // In the other direction there is no sender.
    assert_eq!(idle_names(&from(&outcome, "sender", "atomis5").ledger, 1), ["idle: no sender"]);
    assert_eq!(idle_names(&from(&outcome, "generator", "generator").ledger, 1), ["idle: application"]);
}

/// A shaper that is slower than the CPU keeps the first line idle once it has something to send.
#[test]
fn slow_shaper_is_the_idle_reason() {
    let overrides = [("traffic.stream.message", "9 kB"), ("host.ss2.pauses.share", "0 %")];
    let outcome = run(KYOTO, "shaped-16", &overrides);
    let line = from(&outcome, "sender", "ss2");
    assert_eq!(idle_names(&line.ledger, 1), ["idle: CPU", "idle: shaper"]);
    // The first fragment: 0.919 ms + 9000 * 137 ns of 149.76 Mbit/s.
    let first = (919_000_000 + 9000 * 137_000) * 149_760_000 * 13 / u128::from(SECOND);
    assert!(line.ledger.get("idle: CPU").abs_diff(first) <= 1);
    // The shaper leaves 84 of 100 slots idle.
    let shaper = line.ledger.get("idle: shaper") as f64 / (line.capacity as f64 * 26.0 / 27.0);
    assert!((shaper - 0.84).abs() < 0.001, "{shaper}");
}

/// A line that is faster than the one before it waits for upstream, if there is no shaper.
#[test]
fn fast_line_behind_a_slow_line_is_idle_for_upstream() {
    let text = r#"
        host = { a = {}, b = {} }
        switch.s = { kind = "atm" }
        link.slow = { ends = ["a", "s"], medium = "oc-3c" }
        link.fast = { ends = ["s", "b"], medium = "oc-12c" }
        circuit.c = { from = "a", to = "b" }
        traffic.stream = { kind = "udp-stream", from = "a", to = "b", message = "9 kB" }
        run = { duration = "100 ms" }
    "#;
    let idle = |overrides: &[(&str, &str)], name, node| {
        let outcome = run(text, "base", overrides);
        idle_names(&from(&outcome, name, node).ledger, 1_000_000).join(" ")
    };
    assert_eq!(idle(&[], "fast", "s"), "idle: upstream");
    assert_eq!(idle(&[("circuit.c.shaping", "300000 cells/s")], "fast", "s"), "idle: shaper");
    assert_eq!(idle(&[("circuit.c.shaping", "300000 cells/s")], "slow", "a"), "idle: shaper");
}

/// Congestion collapse: nearly nothing of what the stream brings to the receiver is useful.
#[test]
fn congested_port_carries_mostly_lost_datagrams() {
    let outcome = run(KYOTO, "congested", &[("traffic.stream.message", "9 kB")]);
    let line = from(&outcome, "receiver", "atomis5");
    let [dead, delivered] = ["lost datagrams", "delivered"].map(|account| line.ledger.get(account));
    assert!(dead > 20 * delivered, "{dead} for lost datagrams, {delivered} delivered");
    // 130 of 155.52 Mbit/s, all of it carried: 48 of 53 bytes, and the framing apart.
    let other = line.ledger.get("generator: interference") as f64 / line.capacity as f64;
    assert!((other - 130.0 / 155.52 * 26.0 / 27.0 * 48.0 / 53.0).abs() < 1e-6, "{other}");
    // Nothing is lost on the first line: lost and delivered datagrams together are all that was sent.
    let first = from(&outcome, "sender", "ss2");
    assert!(first.ledger.get("lost datagrams") > dead);
}

/// A window that is too small for the path leaves the line idle for the rest of every round trip.
#[test]
fn small_receive_window_is_the_idle_reason() {
    let buffer = format!("\"{} B\"", 4 * 9140);
    let overrides = [
        ("host.a.tcp.profile", "\"bsd-reno\""),
        ("host.b.tcp.profile", "\"bsd-reno\""),
        ("host.a.tcp.send_buffer", "\"256 KiB\""),
        ("host.b.tcp.receive_buffer", &buffer),
        ("host.b.tcp.ack_every", "1"),
    ];
    let outcome = run(TWO, "base", &overrides);
    let slot = 1e-6 / 0.353_207_547;
    let round_trip = 4e-3 + (192.0 + 1.0) * slot + 3.0 * slot;
    let share = (1.0 - 4.0 * 192.0 * slot / round_trip) * 26.0 / 27.0;
    for (name, node) in [("first", "a"), ("second", "s")] {
        let line = from(&outcome, name, node);
        let waits = line.ledger.get("idle: receive window") as f64 / line.capacity as f64;
        assert!((waits / share - 1.0).abs() < 0.01, "{name}: {waits}, not {share}");
    }
    // Acknowledgments of two cells go back, and nothing else.
    let back = from(&outcome, "second", "b");
    assert_eq!(back.ledger.get("ACK and control"), u128::from(back.carried.sent()) * 48 * 8 * 13);
    assert_eq!(idle_names(&back.ledger, 1), ["idle: no sender"]);
}

/// If only the timer repairs losses, the line waits for the timer.
#[test]
fn retransmission_timer_is_the_idle_reason() {
    let overrides = [
        ("host.a.tcp.profile", "\"bsd-reno\""),
        ("host.b.tcp.profile", "\"bsd-reno\""),
        ("host.a.tcp.recovery", "\"plain\""),
        ("host.a.tcp.send_buffer", "\"256 KiB\""),
        ("host.b.tcp.receive_buffer", "\"256 KiB\""),
        ("host.b.tcp.window_scaling", "true"),
        ("host.a.tcp.window_scaling", "true"),
        ("switch.s.output_buffer", "\"600 cells\""),
        ("link.second.medium", "\"ds3\""),
        ("run.duration", "\"20 s\""),
    ];
    let outcome = run(TWO, "base", &overrides);
    in_order(&outcome);
    let timeouts = outcome.flows[0].tcp.and_then(|tcp| tcp.timeouts).expect("a TCP flow has counters");
    assert!(timeouts > 3, "{timeouts} timeouts");
    for (name, node) in [("first", "a"), ("second", "s")] {
        let line = from(&outcome, name, node);
        let timer = line.ledger.get("idle: retransmission timer");
        let least = line.capacity / 19 * u128::from(timeouts) / 2;
        assert!(timer > least, "{name}: {:#?}", line.ledger);
        // Retransmitted data that had arrived before is no goodput.
        assert!(line.ledger.get("duplicate") > 0 || line.ledger.get("lost datagrams") > 0);
    }
}

/// Ethernet, bit by bit: 1538 bytes for 1472 of a message, back to back.
#[test]
fn full_ethernet_line_ledger_matches_hand_calculation() {
    let text = r#"
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
    let outcome = run(text, "base", &[]);
    in_order(&outcome);
    let line = from(&outcome, "first", "a");
    assert_eq!((link(&outcome, "first").units_per_bit, line.capacity), (1, 190_000_000));
    let whole = line.ledger.get("delivered") / (1472 * 8);
    for (account, bytes) in [("frame headers", 18), ("IP headers", 20), ("transport headers", 8)] {
        let frames = line.ledger.get(account) / (bytes * 8);
        assert!(frames.abs_diff(whole) <= 2, "{account}: {frames} frames, {whole} messages");
    }
    // The window edges clip two frames, and those on the line at its end are in flight.
    assert!(line.capacity - whole * 1538 * 8 < 8 * 1538 * 8, "{:#?}", line.ledger);
    assert_eq!(idle_names(&line.ledger, 1).len(), 0, "{:#?}", line.ledger);
    assert_eq!(idle_names(&from(&outcome, "first", "s").ledger, 1), ["idle: no sender"]);
}
