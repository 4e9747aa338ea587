//! Multicast, against arithmetic: lines that carry several copies of a datagram, and limits of each receiver.

use engpass_simulate::simulate;
use engpass_testbed::{Point, Source, load};

use crate::limits;

#[track_caller]
fn close(one: f64, other: f64) {
    assert!((one - other).abs() <= 1e-9 * other.abs(), "{one} differs from {other}");
}

fn point(text: &str) -> Point {
    let source = Source { name: "groups.toml".into(), text: text.into() };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point("base", &[]).expect("a checked file has a base point")
}

/// A host, a router in front of a narrow line, and two routers behind it with one receiver each. The copy for the farther receiver enters a tunnel before the
/// line, the other one does not.
fn in_and_out_of_a_tunnel(rate: &str) -> String {
    let mut text = String::from(
        "[host]\ns = {}\na = {}\nb = {}\n[router]\nnear = {}\nmiddle = {}\nfar = {}\n[tunnel.t]\nends = [\"near\", \"far\"]\n",
    );
    for (name, ends, line) in [
        ("up", ["s", "near"], "1 Gbit/s"),
        ("narrow", ["near", "middle"], "20 Mbit/s"),
        ("wide", ["middle", "far"], "1 Gbit/s"),
        ("to-a", ["middle", "a"], "1 Gbit/s"),
        ("to-b", ["far", "b"], "1 Gbit/s"),
    ] {
        let [one, other] = ends;
        text += &format!(
            "[link.{name}]\nends = [\"{one}\", \"{other}\"]\nmedium = \"point-to-point\"\nrate = \"{line}\"\n"
        );
    }
    text + &format!(
        "[traffic.g]\nkind = \"multicast\"\nfrom = \"s\"\nto = [\"a\", \"b\"]\nmessage = \"972 B\"\nrate = \"{rate}\"\n"
    )
}

#[test]
fn line_carries_every_multicast_copy_made_before_it() {
    // Packets of 1,000 bytes, and as many of 1,024 in the tunnel.
    let outcome = limits(&in_and_out_of_a_tunnel("100 Mbit/s"));
    let expected = 972.0 * 20e6 / 2024.0;
    for (host, receiver) in &outcome.flows["g"].receivers {
        close(receiver.goodput_bit_per_s, expected);
        assert_eq!(receiver.bottleneck.name.as_deref(), Some("narrow"), "{host}");
    }
    close(outcome.links["narrow"].directions[0].utilisation.unwrap(), 1.0);
    close(outcome.links["up"].directions[0].utilisation.unwrap(), expected / 1e9 * 1000.0 / 972.0);
    close(outcome.links["wide"].directions[0].utilisation.unwrap(), expected / 1e9 * 1024.0 / 972.0);
}

#[test]
fn multicast_line_utilisation_equals_simulate() {
    let text = in_and_out_of_a_tunnel("8 Mbit/s") + "[run]\nwarmup = \"100 ms\"\nduration = \"1100 ms\"\n";
    let (limits, point) = (limits(&text), point(&text));
    let simulated = simulate(&point.testbed, &point.topology, 1, &|| false).expect("the simulation succeeds");
    for (name, link) in &simulated.links {
        let expected = limits.links[name].directions[0].utilisation.unwrap();
        let found = link.directions[0].utilisation;
        // One frame more or less of about a thousand.
        assert!((found - expected).abs() <= 2e-3 * expected, "{name}: {found} instead of {expected}");
    }
}

#[test]
fn each_multicast_receiver_has_its_own_idle_delay_and_bound() {
    let text = r#"
        [host]
        s = {}
        a = {}
        b = {}
        [router.r]
        [link.up]
        ends = ["s", "r"]
        medium = "ethernet-100"
        [link.near]
        ends = ["r", "a"]
        medium = "ethernet-10"
        [link.far]
        ends = ["r", "b"]
        medium = "ethernet-100"
        delay = "150 ms"
        [traffic.g]
        kind = "multicast"
        from = "s"
        to = ["a", "b"]
        message = "1 kB"
        rate = "5 Mbit/s"
        [run]
        duration = "1 s"
    "#;
    let outcome = limits(text);
    let point = point(text);
    let simulated = simulate(&point.testbed, &point.topology, 1, &|| false).expect("the simulation succeeds");
    let flow = &simulated.flows[0];
    for ((host, received), (_, limit)) in flow.receivers.iter().zip(&outcome.flows["g"].receivers) {
        let delays = received.delay_s.expect("the receiver got datagrams").network;
        close(limit.idle_delay_s.expect("the flow sends datagrams"), delays.min);
        assert_eq!(limit.bound_bottleneck.kind, limit.bottleneck.kind, "{host}");
    }
    let [(_, near), (_, far)] = &outcome.flows["g"].receivers[..] else { panic!("expected two receivers") };
    assert!(far.idle_delay_s > near.idle_delay_s.map(|near| near + 0.149));
    // The whole run is measured: nothing arrives in the first 150 ms, which the bound does not consider.
    close(near.bound_bit_per_s, far.bound_bit_per_s);
}
