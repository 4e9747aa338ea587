//! The input queue of a router.
//!
//! A datagram of 1000 B takes 1066 bytes of an Ethernet line, 1054 of them before the gap: at 100 Mbit/s and with a delay of 1 us it crosses a line in 85.32
//! us. At 80 Mbit/s of payload, datagrams follow every 100 us.

use super::{fates, losses};
use crate::engine::Engine;
use crate::fast::difference;
use crate::outcome::{Observed, Place, Times};
use crate::replay::testbed;

/// Node of the router.
const R: usize = 2;

/// Sends ten datagrams of 1000 B through a router that takes 1 ms for each; both engines must agree.
fn run(room: &str) -> Observed {
    run_until(room, 950)
}

/// Sends those datagrams that begin in the first `stop` microseconds.
fn run_until(room: &str, stop: u64) -> Observed {
    let text = format!(
        "name = \"input queue\"\n[host.a]\n[host.b]\n[router.r]\nper_packet = \"1 ms\"\n{room}\n\
         [link.in]\nends = [\"a\", \"r\"]\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n\
         [link.out]\nends = [\"r\", \"b\"]\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n\
         [traffic.t]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1000 B\"\nrate = \"80 Mbit/s\"\nstop = \"{stop} us\"\n\
         [run]\nduration = \"20 ms\"\n"
    );
    let testbed = testbed("input.toml", text);
    assert_eq!(difference(&testbed, 1), Ok(()));
    let end = testbed.run.duration.0;
    let mut engine = Engine::new(&testbed, 1);
    engine.run_until(end);
    let seen = engine.snapshot(end);
    assert_eq!(engine.frames_balance(&seen), Ok(()));
    seen
}

#[test]
fn router_without_input_limit_drops_nothing() {
    let seen = run("");
    assert_eq!(fates(&seen.flows[0]), [10, 10, 0, 0]);
    // The engine works without a break from 85.32 us on.
    assert_eq!(seen.flows[0].receptions.last, Some(85_320_000 + 10 * 1_000_000_000 + 85_320_000));
}

#[test]
fn packet_being_processed_occupies_the_input_queue() {
    // The tenth one arrives 985.32 us after the beginning, and the first one is finished after 1085.32 us: two find room.
    let seen = run("input_queue = \"2 packets\"");
    assert_eq!(fates(&seen.flows[0]), [10, 2, 8, 0]);
    assert_eq!(losses(&seen), [(Place::InputFull { node: R, engine: 0 }, 0, 8, 8)]);
}

#[test]
fn arrival_precedes_processing_end_at_the_same_instant() {
    // The 11th arrives at the very instant at which the first one is finished, but before that: it finds no room, the 12th does.
    let seen = run_until("input_queue = \"2 packets\"", 1150);
    assert_eq!(fates(&seen.flows[0]), [12, 3, 9, 0]);
}

/// Datagram `k` arrives `k` times 100 us after the first, and the engine begins with it `k` times 1 ms after it began with the first. The first one finds the
/// network idle: it takes 85.32 us on each line and 1 ms in the engine. UDP messages have the delay of their datagrams.
#[test]
fn queueing_delay_is_the_wait_for_the_engine() {
    let seen = run("");
    let (idle, wait) = (2 * 85_320_000 + 1_000_000_000, |number: u64| number * 900_000_000);
    let quantiles = [4, 8, 9, 9];
    let times = |floor, of: &dyn Fn(u64) -> u64| {
        Some(Times { min: of(0), mean: (of(4) + of(5)) / 2, quantiles: quantiles.map(of), max: of(9), floor })
    };
    assert_eq!(seen.queueing, [times(idle / 16, &wait)]);
    let delays = [times(0, &|number| idle + wait(number))];
    assert_eq!((&seen.delays[..], &seen.message_delays[..]), (&delays[..], &delays[..]));
}
