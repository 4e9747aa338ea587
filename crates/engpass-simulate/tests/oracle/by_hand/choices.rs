//! Path choices of routers, and outages.
//!
//! A frame with a datagram of 1000 B takes 1066 bytes of a line, 852.8 us at 10 Mbit/s, of which 9.6 us follow its last bit. All delays are 1 us. A datagram
//! that `h0` hands over at 0 is at `r0` after 844.2 us, and its last bit leaves there after 1687.4 us.

use crate::engine::Engine;
use crate::fast::difference;
use crate::outcome::{Accounts, Observed, Place};
use crate::replay::testbed;

/// Two routers with two lines between them, `a` and `b`.
const PAIR: &str = r#"
name = "pair"
[host.h0]
[host.h1]
[router.r0]
ecmp = POLICY
[router.r1]
ecmp = "first"
[link.in]
ends = ["h0", "r0"]
medium = "ethernet-10"
delay = "1 us"
[link.a]
ends = ["r0", "r1"]
medium = "ethernet-10"
delay = "1 us"
[link.b]
ends = ["r0", "r1"]
medium = "ethernet-10"
delay = "1 us"
[link.out]
ends = ["r1", "h1"]
medium = "ethernet-10"
delay = "1 us"
"#;
const FIRST: &str = "\"first\"";
const IN: usize = 0;
const A: usize = 1;
const B: usize = 2;

/// Runs with this policy at `r0`; both engines must agree.
fn run(policy: &str, tables: &str) -> Observed {
    let testbed = testbed("pair.toml", PAIR.replace("POLICY", policy) + tables);
    assert_eq!(difference(&testbed, 1), Ok(()));
    let mut engine = Engine::new(&testbed, 1);
    engine.run_until(testbed.run.duration.0);
    engine.snapshot(testbed.run.duration.0)
}

/// Returns a stream with this message size and rate, up to `stop`, in a run of 10 ms.
fn stream(message: &str, rate: &str, stop: &str) -> String {
    format!(
        "[traffic.u]\nkind = \"udp-stream\"\nfrom = \"h0\"\nto = \"h1\"\nmessage = \"{message}\"\nrate = \"{rate}\"\nstop = \"{stop}\"\n[run]\nduration = \"10 ms\"\n"
    )
}

fn event(name: &str, target: &str, at: &str, change: &str) -> String {
    format!("[event.{name}]\ntarget = \"{target}\"\nat = \"{at}\"\nchange = \"{change}\"\n")
}

/// Returns the frames that left `r0` on `a` and `b`.
fn spread(seen: &Observed) -> [u64; 2] {
    [A, B].map(|link| seen.frames.get(&(link, 0)).map_or(0, |seen| seen.frames))
}

/// Returns cells and datagrams lost to an outage of a link, in the direction from its first end.
fn lost(seen: &Observed, link: usize) -> (u64, u64) {
    let here = seen.losses.iter().filter(|(key, _)| key.place == Place::Down { link, end: 0 });
    here.fold((0, 0), |sum, (_, lost)| (sum.0 + lost.cells, sum.1 + lost.datagrams))
}

#[test]
fn weighted_round_robin_matches_hand_calculation() {
    // Seven datagrams, one every millisecond: two by `a`, one by `b`, and so on.
    let stream = stream("1000 B", "8 Mbit/s", "6500 us");
    let seen = run("{ round-robin = { weights = { a = 2 } } }", &stream);
    assert_eq!(spread(&seen), [5, 2]);
    // While `a` is down, `b` takes turns 3 to 5. Turns 5 and 6 are unaffected: 5 mod 3 = 2, and 0.
    let down = event("d", "a", "2700 us", "down") + &event("u", "a", "5 ms", "up");
    let seen = run("{ round-robin = { weights = { a = 2 } } }", &(down + &stream));
    assert_eq!(spread(&seen), [3, 4]);
    assert_eq!(lost(&seen, A), (0, 0));
    // If all lines are down, all have their turns, and lose the packets.
    let down = event("d", "a", "2700 us", "down") + &event("e", "b", "2700 us", "down");
    let seen = run("{ round-robin = { weights = { a = 2 } } }", &(down + &stream));
    assert_eq!(spread(&seen), [2, 0]);
    assert_eq!([lost(&seen, A), lost(&seen, B)], [(3, 3), (2, 2)]);
}

#[test]
fn packet_with_expired_ttl_takes_no_round_robin_turn() {
    let traffic = |name: &str, start: &str, ttl: u8| {
        format!(
            "[traffic.{name}]\nkind = \"udp-stream\"\nfrom = \"h0\"\nto = \"h1\"\nmessage = \"1000 B\"\nrate = \"1 kbit/s\"\nstart = \"{start}\"\nttl = {ttl}\n"
        )
    };
    let flows = traffic("x", "0 s", 64) + &traffic("dead", "1 ms", 1) + &traffic("y", "2 ms", 64);
    let seen = run("\"round-robin\"", &(flows + "[run]\nduration = \"10 ms\"\n"));
    assert_eq!(spread(&seen), [1, 1]);
}

/// Twelve connections with ports from 49 152 on. A Python program computed which of three lines each takes, with weights 3, 1 and 2.
#[test]
fn hash_choice_of_connections_equals_reference_program() {
    let text = PAIR.replace("POLICY", "{ hash = { seed = 7, weights = { a = 3, c = 2 } } }")
        + "[link.c]\nends = [\"r1\", \"r0\"]\nmedium = \"ethernet-10\"\ndelay = \"1 us\"\n";
    let tables = (0..12).map(|index| {
        format!(
            "[traffic.t{index}]\nkind = \"tcp-stream\"\nfrom = \"h0\"\nto = \"h1\"\nmessage = \"100 B\"\n"
        )
    });
    let text = text + &tables.collect::<String>() + "[run]\nduration = \"200 ms\"\n";
    let testbed = testbed("hash.toml", text);
    assert_eq!(difference(&testbed, 1), Ok(()));
    let mut engine = Engine::new(&testbed, 1);
    engine.run_until(testbed.run.duration.0);
    let seen = engine.snapshot(testbed.run.duration.0);
    // `c` comes behind `out` in the file.
    let lines = [(A, 0), (B, 0), (4, 1)];
    for (flow, member) in [2, 0, 0, 0, 0, 0, 2, 0, 2, 0, 2, 0].into_iter().enumerate() {
        for (other, (link, end)) in lines.into_iter().enumerate() {
            let books = seen.books.keys();
            let carries =
                books.filter(|key| (key.link, key.end, key.flow, key.back) == (link, end, flow, false));
            assert_eq!(carries.count() > 0, other == member, "connection {flow}, line {other}");
        }
    }
}

/// The first fragment of 2000 B has 8 bytes of UDP header and 1472 of payload, the second one 528.
#[test]
fn each_line_is_charged_for_the_fragments_it_carried() {
    let seen = run("\"round-robin\"", &stream("2000 B", "1 kbit/s", "1 ms"));
    assert_eq!(spread(&seen), [1, 1]);
    let carried = |accounts: &Accounts| -> Vec<(String, u128)> {
        let bits = accounts.iter().filter(|(name, _)| !name.starts_with("idle"));
        bits.map(|(name, bits)| (name.clone(), *bits)).collect()
    };
    let bits = |layers: &[(&str, u128)]| -> Vec<(String, u128)> {
        layers.iter().map(|(name, bytes)| ((*name).to_owned(), 8 * bytes)).collect()
    };
    let around = |payload| {
        [("IP headers", 20), ("delivered", payload), ("frame headers", 18), ("physical framing", 20)]
    };
    assert_eq!(
        carried(&seen.accounts[&(A, 0)]),
        bits(&[&around(1472)[..], &[("transport headers", 8)]].concat())
    );
    assert_eq!(carried(&seen.accounts[&(B, 0)]), bits(&around(528)));
}

/// A window edge clips a fragment on one line, which is then in flight only there. The first fragment is at `r0` after 1221.8 us, and `a` sends its 1538 bytes
/// until 2452.2 us. The second one is there after 1690.6 us.
#[test]
fn fragment_clipped_by_window_edge_is_in_flight_on_one_line() {
    let stream = stream("2000 B", "1 kbit/s", "1 ms") + "warmup = \"1500 us\"\n";
    let seen = run("\"round-robin\"", &stream);
    let fates = |link| {
        let accounts = &seen.accounts[&(link, 0)];
        ["delivered", "in flight"].map(|account| accounts.get(account).copied().unwrap_or_default())
    };
    assert_eq!(fates(A), [0, 9_522]);
    assert_eq!(fates(B), [528 * 8, 0]);
}

/// A frame is lost if its last bit leaves after the line went down, and its first bit before the line came up.
#[test]
fn frame_is_lost_if_its_line_is_down_while_it_is_sent() {
    let one = stream("1000 B", "1 kbit/s", "1 ms");
    let down = |at: &str| {
        let seen = run(FIRST, &(event("d", "a", at, "down") + &one));
        (seen.flows[0].received, lost(&seen, A))
    };
    assert_eq!(down("1687400000 ps"), (1, (0, 0)));
    assert_eq!(down("1687399999 ps"), (0, (1, 1)));
    // It reaches the port at that instant: the change comes first.
    assert_eq!(down("844200 ns"), (0, (1, 1)));
    let both = |link: &str, down: &str, up: &str| {
        let seen = run(FIRST, &(event("d", link, down, "down") + &event("u", link, up, "up") + &one));
        (seen.flows[0].received, lost(&seen, if link == "a" { A } else { IN }))
    };
    assert_eq!(both("a", "100 us", "844200 ns"), (1, (0, 0)));
    assert_eq!(both("a", "100 us", "844200001 ps"), (0, (1, 1)));
    // A host keeps sending, from instant 0 on.
    assert_eq!(both("in", "0 s", "1 ps"), (0, (1, 1)));
    assert_eq!(both("in", "0 s", "0 s"), (1, (0, 0)));
    // The line goes down and up again during the frame.
    assert_eq!(both("a", "1 ms", "1001 us"), (0, (1, 1)));
    assert_eq!(both("a", "1690 us", "2 ms"), (1, (0, 0)));
}

/// Three fragments reach `r0` at 100 Mbit/s, while `a` sends the first one.
#[test]
fn queued_packets_are_lost_when_the_line_goes_down() {
    let stream = stream("4000 B", "1 kbit/s", "1 ms");
    let text = PAIR.replacen("ethernet-10", "ethernet-100", 1).replace("POLICY", FIRST)
        + &event("d", "a", "1 ms", "down")
        + &stream;
    let testbed = testbed("waits.toml", text);
    assert_eq!(difference(&testbed, 1), Ok(()));
    let mut engine = Engine::new(&testbed, 1);
    // 100 Mbit/s: the first is at `r0` after 123.08 us. It leaves after 1230.4 - 9.6 us more, and is lost where it would arrive.
    for (at, cells) in [(999_999_999, 0), (1_000_000_000, 2), (1_344_879_999, 2), (1_344_880_000, 3)] {
        engine.run_until(at);
        assert_eq!(lost(&engine.snapshot(at), A), (cells, u64::from(cells > 0)), "at {at} ps");
    }
    assert_eq!(spread(&engine.snapshot(1_344_880_000)), [1, 0]);
}

/// An interface is down for both directions, and only its own node chooses the other line.
#[test]
fn interface_down_is_noticed_only_by_its_node() {
    let stream = stream("1000 B", "8 Mbit/s", "3500 us");
    let seen =
        |node: &str| run("\"round-robin\"", &(event("d", &format!("{node}/a"), "500 us", "down") + &stream));
    assert_eq!((spread(&seen("r0")), lost(&seen("r0"), A)), ([0, 4], (0, 0)));
    assert_eq!((spread(&seen("r1")), lost(&seen("r1"), A)), ([0, 2], (2, 2)));
}

#[test]
fn idle_time_of_a_down_line_is_posted_to_line_down() {
    let events = event("d", "a", "500 us", "down") + &event("u", "a", "700 us", "up");
    let seen = run(FIRST, &(events + &stream("1000 B", "1 kbit/s", "1 ms")));
    // 200 us at 10 Mbit/s, in both directions; the frame comes later. Before and after it the application has nothing, because the sender has sent for 852.8
    // us, like the line.
    let [there, back] = [0, 1].map(|end| &seen.accounts[&(A, end)]);
    assert_eq!((there["idle: line down"], back["idle: line down"]), (2_000, 2_000));
    assert_eq!(back["idle: no sender"], 98_000);
    assert_eq!(there["idle: application"], 100_000 - 8_528 - 2_000);
    // `b` is spare: no policy chooses.
    assert_eq!(seen.accounts[&(B, 0)]["idle: no sender"], 100_000);
}

/// Datagrams, sent every 2 ms from 0 on, are received 2532.6 us later: the last bit leaves `r1` 843.2 us after it arrived there, and reaches `h1` 1 us later.
#[test]
fn an_outage_is_the_longest_time_without_a_reception() {
    let outage = |stop: &str, events: &str| {
        let stream = stream("1000 B", "4 Mbit/s", stop);
        let outage = run(FIRST, &(events.to_owned() + &stream)).flows[0].outage.clone();
        outage.map(|outage| (outage.longest, outage.lost))
    };
    assert_eq!(outage("3500 us", ""), None);
    let down = |at: &str| event("d", "a", at, "down");
    // Nothing is lost after 6 ms, and nothing is received before the first one.
    assert_eq!(outage("3500 us", &down("6 ms")), Some((2_532_600_000, 0)));
    // All after the first one are lost: the gap is from the first reception to the end of the traffic.
    assert_eq!(outage("3500 us", &down("2600 us")), Some((2_532_600_000, 1)));
    assert_eq!(outage("7 ms", &down("2600 us")), Some((4_467_400_000, 3)));
    // Nothing arrives: the gap is the whole duration of the traffic.
    assert_eq!(outage("7 ms", &down("1 us")), Some((7_000_000_000, 4)));
}
