//! Circuits that begin or end at routers.
//!
//! A line at 42.4 Mbit/s has a slot of 10 us. All delays are 1 us. A datagram of 100 B is an IP packet of 128 B and takes 3 cells of a circuit without
//! headers; on Ethernet at 100 Mbit/s it takes 166 B, 13.28 us, 0.96 us of these after its last bit. So what a host hands over at `t` is at its
//! router 13.32 us later.

use super::{departed, left};
use crate::engine::Engine;
use crate::fast::difference;
use crate::outcome::{Losing, Observed, Place};
use crate::queue::Cause;
use crate::replay::testbed;

/// Two routers with an ATM line between them, and a circuit over it.
const PAIR: &str = r#"
name = "pair"
[host.h0]
[host.h1]
[host.h2]
[router.r0]
QUEUE
[router.r1]
[link.a]
ends = ["r0", "r1"]
medium = "atm"
rate = "42.4 Mbit/s"
delay = "1 us"
[link.in]
ends = ["h0", "r0"]
medium = "ethernet-100"
delay = "1 us"
[link.other]
ends = ["h2", "r0"]
medium = "ethernet-100"
delay = "1 us"
[link.out]
ends = ["r1", "h1"]
medium = "ethernet-100"
delay = "1 us"
[circuit.c]
from = "r0"
to = "r1"
encapsulation = "vc-mux"
"#;
const A: usize = 0;
/// Nodes.
const R1: usize = 4;

/// Runs 10 ms; both engines must agree.
fn run(text: &str) -> Observed {
    let testbed = testbed("joined.toml", format!("{text}[run]\nduration = \"10 ms\"\n"));
    assert_eq!(difference(&testbed, 1), Ok(()));
    let mut engine = Engine::new(&testbed, 1);
    engine.run_until(testbed.run.duration.0);
    engine.snapshot(testbed.run.duration.0)
}

fn pair(queue: &str) -> String {
    PAIR.replace("QUEUE", queue)
}

/// Returns a traffic of one datagram.
fn one(name: &str, from: &str, bytes: u64, start: &str) -> String {
    format!(
        "[traffic.{name}]\nkind = \"udp-stream\"\nfrom = \"{from}\"\nto = \"h1\"\nmessage = \"{bytes} B\"\nrate = \"1 bit/s\"\nstart = \"{start}\"\n"
    )
}

/// Returns losses: place, flow, packets or cells, datagrams.
fn losses(seen: &Observed) -> Vec<(Place, usize, u64, u64)> {
    let all = seen.losses.iter();
    all.map(|(Losing { place, flow }, lost)| (*place, *flow, lost.cells, lost.datagrams)).collect()
}

const FULL: Place = Place::Queue { link: A, end: 0, cause: Cause::Full };

/// It is at `r0` after 13.32 us, its last cell leaves 30 us later and is at `r1` after 44.32 us. Its frame takes 13.32 us to `h1`.
#[test]
fn circuit_between_routers_delay_matches_hand_calculation() {
    let seen = run(&(pair("") + &one("u", "h0", 100, "0 s")));
    assert_eq!(departed(&seen, A, 0), [left(3, 43_320_000)]);
    assert_eq!(seen.flows[0].receptions.last, Some(57_640_000));
}

/// The last cell is emitted after 33.32 us, when the line begins it: a picosecond later the packet has left the queue.
#[test]
fn packet_holds_queue_space_until_its_last_cell_starts() {
    let one_place = "queue = { drop-tail = { limit = \"1 packets\" } }";
    let second =
        |start: &str| run(&(pair(one_place) + &one("u", "h0", 100, "0 s") + &one("v", "h0", 100, start)));
    assert_eq!(losses(&second("20 us")), [(FULL, 1, 1, 1)]);
    let seen = second("20000001 ps");
    assert_eq!(losses(&seen), []);
    // The shaper has the pace of the line: the second packet follows the first at once.
    assert_eq!(departed(&seen, A, 0), [left(6, 73_320_000)]);
}

/// Packets of two hosts reach two circuits of one line together: their cells alternate, starting with the first circuit, which ends its third cell after 63.32
/// us.
#[test]
fn cells_of_two_circuits_alternate_on_a_line() {
    let two = pair("queue = { drop-tail = { limit = \"1 packets\" } }\necmp = \"round-robin\"")
        + "[circuit.d]\nfrom = \"r0\"\nto = \"r1\"\nencapsulation = \"vc-mux\"\n"
        + &one("u", "h0", 100, "0 s")
        + &one("v", "h2", 100, "0 s");
    let seen = run(&two);
    assert_eq!(departed(&seen, A, 0), [left(3, 63_320_000), left(3, 73_320_000)]);
    // The line begins the last cell of the first circuit after 53.32 us.
    let third = |start: &str| losses(&run(&(two.clone() + &one("w", "h0", 100, start))));
    assert_eq!(third("39999999 ps"), [(FULL, 2, 1, 1)]);
    assert_eq!(third("40 us"), []);
}

/// 280, 280, 280 and 168 bytes of IP payload: 7, 7, 7 and 5 cells.
#[test]
fn circuit_mtu_fragments_match_hand_calculation() {
    let text = pair("").replace("\"vc-mux\"", "\"vc-mux\"\nmtu = \"300 B\"");
    let seen = run(&(text + &one("u", "h0", 1000, "0 s")));
    assert_eq!(departed(&seen, A, 0)[0].cells, 26);
    assert_eq!(seen.frames[&(3, 0)].frames, 4);
    assert_eq!(seen.flows[0].received, 1);
}

/// A shaper at half the line rate: cells after 13.32, 33.32 and 53.32 us. The line begins the last one at once, and then the next packet is chosen; its first
/// cell follows after 73.32 us.
#[test]
fn shaper_keeps_its_pace_across_packets() {
    let text = pair("").replace("\"vc-mux\"", "\"vc-mux\"\nshaping = \"50 %\"");
    let seen = run(&(text + &one("u", "h0", 100, "0 s") + &one("v", "h0", 100, "0 s")));
    assert_eq!(departed(&seen, A, 0), [left(6, 123_320_000)]);
}

/// The policer has T = 20 us and a tolerance of 10 us: it drops the last of three cells. Two cells of a short datagram then end the PDU, which is bad.
#[test]
fn router_drops_a_corrupt_pdu() {
    let policed = "\"vc-mux\"\npolicing = { rate = \"50 %\", tolerance = \"10 us\" }";
    let text = pair("")
        .replace(
            "[link.a]\nends = [\"r0\", \"r1\"]",
            "[switch.x]\nkind = \"atm\"\noutput_buffer = \"9 cells\"\n[link.a]\nends = [\"r0\", \"x\"]",
        )
        .replace("\"vc-mux\"", policed)
        + "[link.b]\nends = [\"x\", \"r1\"]\nmedium = \"atm\"\nrate = \"42.4 Mbit/s\"\ndelay = \"1 us\"\n";
    let seen = run(&(text + &one("u", "h0", 100, "0 s") + &one("v", "h0", 40, "1 ms")));
    let policer = Place::Policer { link: 4, end: 0 };
    // Node numbers of switches precede those of routers.
    let reassembly = Place::Reassembly { router: Some(R1 + 1) };
    assert_eq!(losses(&seen), [(policer, 0, 1, 1), (reassembly, 1, 0, 1)]);
}

/// A frame line and a circuit of one line have the same length: the circuit's line is first in the file.
#[test]
fn ecmp_chooses_between_a_circuit_and_a_line() {
    let beside = "[link.z]\nends = [\"r0\", \"r1\"]\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n";
    let flows = one("u", "h0", 100, "0 s") + &one("v", "h0", 100, "1 ms") + &one("w", "h0", 100, "2 ms");
    let spread = |policy: &str| {
        let seen = run(&(pair(policy) + beside + &flows));
        (
            departed(&seen, A, 0).iter().map(|left| left.cells).sum::<u64>(),
            seen.frames.get(&(4, 0)).map(|seen| seen.frames),
        )
    };
    assert_eq!(spread("ecmp = \"first\""), (9, None));
    assert_eq!(spread("ecmp = \"round-robin\""), (6, Some(1)));
    assert_eq!(spread("ecmp = { round-robin = { weights = { z = 2 } } }"), (3, Some(2)));
}

/// Packets take the circuit that their traffic names, although it is second.
#[test]
fn traffic_takes_the_circuit_that_it_names() {
    let text = pair("") + "[circuit.d]\nfrom = \"r1\"\nto = \"r0\"\nencapsulation = \"lane\"\n";
    let seen = run(&(text + &one("u", "h0", 100, "0 s") + "circuit = \"d\"\n"));
    let keys: Vec<_> = seen.departures.keys().map(|key| (key.circuit, key.forward)).collect();
    assert_eq!(keys, [(1, false)]);
    assert_eq!(seen.flows[0].received, 1);
}

/// A TTL of 1 expires at the first router, before the queue of the circuit; a TTL of 2 at the second one, behind the circuit.
#[test]
fn routers_at_both_circuit_ends_decrement_the_ttl() {
    let lives = |ttl: u8| {
        let seen = run(&(pair("") + &one("u", "h0", 100, "0 s") + &format!("ttl = {ttl}\n")));
        (losses(&seen), seen.departures.len(), seen.flows[0].received)
    };
    assert_eq!(lives(1), (vec![(Place::TimeToLive { node: R1 - 1 }, 0, 1, 1)], 0, 0));
    assert_eq!(lives(2), (vec![(Place::TimeToLive { node: R1 }, 0, 1, 1)], 1, 0));
    assert_eq!(lives(3), (vec![], 1, 1));
}

/// `h0` is on the ATM line itself: its NIC emits the cells from 0 on, and they leave until 30 us. The packet is at `r1` after 31 us, and its frame at `h1`
/// 13.32 us later. In the other direction the circuit ends at the host: `r1` after 13.32 us, 30 us of cells, 1 us.
#[test]
fn host_to_router_circuit_delay_matches_hand_calculation() {
    let text = at_a_host().replace("[host.h2]\n", "");
    let seen = run(&(text.clone() + &one("u", "h0", 100, "0 s")));
    assert_eq!(departed(&seen, A, 0), [left(3, 30_000_000)]);
    assert_eq!(seen.flows[0].receptions.last, Some(44_320_000));
    let back = one("u", "h1", 100, "0 s").replace("to = \"h1\"", "to = \"h0\"");
    assert_eq!(run(&(text + &back)).flows[0].receptions.last, Some(44_320_000));
}

/// Returns a testbed with `h0` on the ATM line, whose circuit ends at `r1`.
fn at_a_host() -> String {
    let text = pair("").replace("[router.r0]\n", "").replace("\"r0\"", "\"h0\"");
    let first = text.find("[link.in]").expect("the text has this link");
    let rest = text.find("[link.out]").expect("the text has this link");
    format!("{}{}", &text[..first], &text[rest..])
}

/// Regression: a packet from cells and a frame reach `r1` after 31 us. The outgoing line has one place, which the first in the order of the links gets. The
/// engine took the packet from cells for a PDU at a host, which comes after all frames.
#[test]
fn simultaneous_packets_from_cells_follow_link_order() {
    let other = "[link.other]\nends = [\"h2\", \"r1\"]\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n";
    let text =
        at_a_host().replace("[router.r1]", "[router.r1]\nqueue = { drop-tail = { limit = \"1 packets\" } }");
    let flows = one("u", "h0", 100, "0 s") + &one("v", "h2", 100, "17680 ns");
    let received =
        |text: String| run(&(text + &flows)).flows.iter().map(|flow| flow.received).collect::<Vec<_>>();
    assert_eq!(received(text.clone() + other), [1, 0]);
    assert_eq!(received(text.replace("[link.a]", &(other.to_owned() + "[link.a]"))), [0, 1]);
}

/// Regression: the engine could not run a connection that begins on a circuit to a router.
#[test]
fn tcp_runs_over_a_circuit_from_host_to_router() {
    let text = at_a_host().replace("[host.h2]\n", "");
    let stream = "[traffic.t]\nkind = \"tcp-stream\"\nfrom = \"h0\"\nto = \"h1\"\nmessage = \"10 kB\"\n";
    let seen = run(&(text.clone() + stream));
    assert!(seen.flows[0].received_bytes > 10_000, "{:?}", seen.flows[0]);
    let back = stream.replace("h1", "h").replace("h0", "h1").replace("\"h\"", "\"h0\"");
    assert!(run(&(text + &back)).flows[0].received_bytes > 10_000);
}

/// Regression: the hash sends the only flow elsewhere. The engine assigned this idle reason for frame lines only.
#[test]
fn unchosen_circuit_is_idle_for_the_other_path() {
    let beside = "[link.z]\nends = [\"r0\", \"r1\"]\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n";
    let idle = |seed: u64| {
        let policy = format!("ecmp = {{ hash = {{ seed = {seed} }} }}");
        let seen = run(&(pair(&policy) + beside + &one("u", "h0", 100, "0 s")));
        let lines = [(A, 0), (4, 0)].map(|line| seen.accounts[&line].contains_key("idle: other way"));
        (seen.departures.is_empty(), lines)
    };
    let seen: std::collections::BTreeSet<_> = (0..8).map(idle).collect();
    assert_eq!(Vec::from_iter(seen), [(false, [false, true]), (true, [true, false])]);
}
