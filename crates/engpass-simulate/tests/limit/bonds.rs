//! Bonds against arithmetic: the throughput of each mode, by `limit` and by `simulate`.

use crate::choices::{flow, simulated};
use crate::limits;

/// Returns a server with links of these media to a switch with its client.
fn server(bond: &str, [one, two]: [&str; 2], traffic: &str) -> String {
    format!(
        r#"
        [host.a]
        [host.b]
        [switch.s]
        kind = "ethernet"
        [link.one]
        ends = ["a", "s"]
        medium = "{one}"
        [link.two]
        ends = ["a", "s"]
        medium = "{two}"
        [link.out]
        ends = ["s", "b"]
        medium = "ethernet-10g"
        [bond.x]
        node = "a"
        links = ["one", "two"]
        {bond}
        {traffic}
        "#
    )
}

const ALIKE: [&str; 2] = ["ethernet-100"; 2];
/// Datagrams in packets of 1500 bytes, 1538 on the line, at full speed; and eight connections.
const UDP: &str = "[traffic.t]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1472 B\"\n";
const TCP: &str =
    "[traffic.t]\nkind = \"tcp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"64 KiB\"\nstreams = 8\n";
const OF_UDP: f64 = 1472.0 / 1538.0;
const OF_TCP: f64 = 1448.0 / 1538.0;

#[track_caller]
fn close(one: f64, other: f64, within: f64) {
    assert!((one - other).abs() <= within * other.abs(), "{one} differs from {other}");
}

#[test]
fn bond_hash_uses_both_members_only_for_many_connections() {
    for (bond, traffic, rate, of) in [
        ("mode = { hash = { layers = \"layer-2\" } }", UDP, 100e6, OF_UDP),
        ("mode = { hash = { layers = \"layer-3+4\" } }", UDP, 100e6, OF_UDP),
        ("mode = { hash = { layers = \"layer-2+3\" } }", TCP, 100e6, OF_TCP),
        ("mode = { hash = { layers = \"layer-3+4\" } }", TCP, 200e6, OF_TCP),
    ] {
        let text = server(bond, ALIKE, traffic);
        close(flow(&text).goodput_bit_per_s, rate * of, 1e-9);
        close(simulated(&text).goodput_bit_per_s, rate * of, 2e-3);
    }
}

#[test]
fn host_round_robin_waits_for_the_slowest_member() {
    let alike = server("mode = \"round-robin\"", ALIKE, UDP);
    close(flow(&alike).goodput_bit_per_s, 200e6 * OF_UDP, 1e-9);
    close(simulated(&alike).goodput_bit_per_s, 200e6 * OF_UDP, 1e-3);
    let unequal = server("mode = \"round-robin\"", ["ethernet-1g", "ethernet-100"], UDP);
    let found = flow(&unequal);
    close(found.goodput_bit_per_s, 200e6 * OF_UDP, 1e-9);
    insta::assert_snapshot!(found.summary, @"link `two` limits `t` to 191.42 Mbit/s: 50.0 % of its packets take it, and framing and headers take 4.3 % of the line; next is link `one` at 1.91 Gbit/s");
    // The sender waits, so nothing is lost.
    close(simulated(&unequal).goodput_bit_per_s, 200e6 * OF_UDP, 2e-3);
}

#[test]
fn active_backup_limit_is_that_of_the_active_member() {
    let bond = "mode = { active-backup = { primary = \"two\" } }";
    let unequal = ["ethernet-1g", "ethernet-100"];
    close(flow(&server(bond, unequal, UDP)).goodput_bit_per_s, 100e6 * OF_UDP, 1e-9);
    let event = "[event.cut]\nat = \"400 ms\"\ntarget = \"two\"\nchange = \"down\"\n";
    let text = format!("{}{event}", server(bond, unequal, UDP));
    let found = flow(&text);
    assert_eq!(found.ignored_events, ["cut"]);
    close(found.goodput_bit_per_s, 100e6 * OF_UDP, 1e-9);
    assert!(found.bound_bit_per_s >= simulated(&text).goodput_bit_per_s);
}

#[test]
fn sending_host_cost_counts_over_all_bond_members() {
    let text = server("mode = \"round-robin\"", ["ethernet-1g"; 2], UDP)
        .replace("[host.a]", "[host.a]\ncost = { per_datagram = \"100 us\" }");
    // 10 000 datagrams a second.
    let outcome = limits(&text);
    close(outcome.flows["t"].goodput_bit_per_s, 10_000.0 * 1472.0 * 8.0, 1e-9);
    close(simulated(&text).goodput_bit_per_s, 10_000.0 * 1472.0 * 8.0, 1e-3);
}
