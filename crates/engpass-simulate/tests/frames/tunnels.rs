//! Tunnels against arithmetic: lengths on the line, fragments of the inner or the outer packet, reassembly at the end.

use engpass_simulate::SimOutcome;

use super::common::close;
use super::{flow, goodput, run};

/// Datagrams of 1472 bytes, 1500 as IP packets, cross two links in a tunnel.
const GRE: &str = r#"
    name = "a tunnel"
    [host.a]
    [host.b]
    [router.r1]
    [router.core]
    [router.r2]
    [link.left]
    ends = ["a", "r1"]
    medium = "ethernet-100"
    [link.one]
    ends = ["r1", "core"]
    medium = "ethernet-100"
    [link.two]
    ends = ["core", "r2"]
    medium = "ethernet-100"
    [link.right]
    ends = ["r2", "b"]
    medium = "ethernet-100"
    [tunnel.gre]
    ends = ["r1", "r2"]
    [traffic.stream]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "1472 B"
    rate = "20 Mbit/s"
    [run]
    duration = "1 s"
"#;

const OUTER: (&str, &str) = ("tunnel.gre.fragment", "\"outer\"");

/// Returns the bytes of an account on a line, in a run of one second at 100 Mbit/s.
fn bytes(outcome: &SimOutcome, link: &str, account: &str) -> f64 {
    let (_, link) = outcome.links.iter().find(|(name, _)| name == link).expect("the outcome has this link");
    let there = &link.directions[0];
    there.ledger.get(account) as f64 / there.capacity as f64 * 12.5e6
}

/// RFC 4459 section 3.4: the packet is fragmented for 1476 bytes, into 1476 and 44; each gets 24 bytes. Section 3.1: the outer packet of 1524 bytes is
/// fragmented for 1500, into 1500 and 44.
#[test]
fn tunnel_packet_lengths_match_rfc_4459() {
    let datagrams = 20e6 / 8.0 / 1472.0;
    for (overrides, headers, tunnel) in [(&[][..], 2.0, 48.0), (&[OUTER][..], 2.0, 24.0)] {
        let outcome = run(GRE, overrides);
        close(goodput(&outcome, "stream"), 20e6, 2e-3);
        for link in ["one", "two"] {
            close(bytes(&outcome, link, "IP headers"), datagrams * headers * 20.0, 2e-3);
            close(bytes(&outcome, link, "tunnel headers"), datagrams * tunnel, 2e-3);
            close(bytes(&outcome, link, "transport headers"), datagrams * 8.0, 2e-3);
            close(bytes(&outcome, link, "delivered"), datagrams * 1472.0, 2e-3);
            close(bytes(&outcome, link, "frame headers"), datagrams * 36.0, 2e-3);
        }
        assert_eq!(bytes(&outcome, "left", "tunnel headers"), 0.0);
        // The receiver gets packets that were fragmented before the tunnel as fragments, and those fragmented in the tunnel unfragmented.
        let pieces = if overrides.is_empty() { 2.0 } else { 1.0 };
        close(bytes(&outcome, "right", "IP headers"), datagrams * pieces * 20.0, 2e-3);
        assert_eq!(bytes(&outcome, "right", "tunnel headers"), 0.0);
    }
}

/// A packet that fits with its outer headers is not fragmented.
#[test]
fn packet_of_1476_bytes_enters_gre_unfragmented() {
    let outcome = run(GRE, &[("traffic.stream.message", "\"1448 B\"")]);
    let datagrams = 20e6 / 8.0 / 1448.0;
    close(bytes(&outcome, "one", "IP headers"), datagrams * 20.0, 2e-3);
    close(bytes(&outcome, "one", "tunnel headers"), datagrams * 24.0, 2e-3);
}

/// A tunnel that must not fragment drops packets that are too long.
#[test]
fn tunnel_without_fragmentation_drops_long_packets() {
    let outcome = run(GRE, &[("tunnel.gre.fragment", "\"none\"")]);
    assert_eq!(flow(&outcome, "stream").datagrams.unwrap().received, 0);
    let [drop] = &outcome.drops[..] else { panic!("expected drops at one location") };
    assert_eq!((&*drop.place.node, drop.cause), ("r1", "too big"));
}

/// With losses in the tunnel, fragments wait for missing ones until a timeout, or until the memory is full.
#[test]
fn tunnel_reassembly_ends_by_timeout_or_full_memory() {
    let lossy = [OUTER, ("link.two.loss", "\"10 %\"")];
    let causes = |more: &[(&str, &str)]| {
        let outcome = run(GRE, &[&lossy[..], more].concat());
        let of = |cause: &str| {
            outcome.drops.iter().filter(|drop| drop.cause == cause).map(|drop| drop.cells).sum::<u64>()
        };
        (of("damaged on the line"), of("reassembly timeout"), of("reassembly memory"))
    };
    let (damaged, timeouts, memory) = causes(&[("tunnel.gre.reassembly.timeout", "\"10 ms\"")]);
    // Of 1698 datagrams one in five loses one of its two fragments, and one in a hundred both.
    assert!((300..400).contains(&damaged), "{damaged} datagrams were damaged");
    assert!((250..350).contains(&timeouts), "{timeouts} datagrams timed out");
    assert_eq!(memory, 0);
    // Nothing times out within 30 s; 44 fragments of 1500 bytes and some of 44 fill 64 KiB.
    let (_, timeouts, memory) = causes(&[("tunnel.gre.reassembly.memory", "\"64 KiB\"")]);
    assert_eq!(timeouts, 0);
    assert!(memory > 500, "{memory} fragments found no memory");
}

/// Lines that delay a tenth of the packets by 1 ms let one datagram overtake each, unless the next one is delayed as well: they come every 0.6 ms.
#[test]
fn sequence_numbers_drop_overtaken_packets() {
    let reorder = ("link.one.reorder", r#"{ share = "10 %", delay = "1 ms" }"#);
    let numbered = ("tunnel.gre.header", "{ gre = { sequence = true } }");
    // 28 bytes of GRE and IP fit.
    let short = ("traffic.stream.message", "\"1444 B\"");
    let lost = |overrides: &[(&str, &str)]| {
        let outcome = run(GRE, overrides);
        let stream = &flow(&outcome, "stream");
        let drops: Vec<_> = outcome.drops.iter().map(|drop| (drop.place.node.clone(), drop.cause)).collect();
        let counts = stream.datagrams.unwrap();
        (counts.sent, counts.lost, drops)
    };
    assert_eq!(lost(&[short, reorder]).1, 0);
    let (_, none, drops) = lost(&[short, numbered]);
    assert_eq!((none, drops), (0, vec![]));
    let (sent, old, drops) = lost(&[short, numbered, reorder]);
    assert_eq!(drops, [("r2".to_owned(), "out of sequence")]);
    close(old as f64, sent as f64 * 0.1 * 0.9, 0.15);
    // Four bytes more in every packet.
    let outcome = run(GRE, &[short, numbered]);
    close(bytes(&outcome, "one", "tunnel headers"), sent as f64 * 28.0, 2e-3);
}
