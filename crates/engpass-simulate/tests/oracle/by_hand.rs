//! The oracle on networks so small that every time can be worked out by hand.
//!
//! The slot of an OC-3c is 424 bit / 149.76 Mbit/s = 2 831 196.58 ps. Slots from the beginning of a busy period, rounded
//! up once: 1: 2 831 197; 2: 5 662 394; 3: 8 493 590; 4: 11 324 787; 5: 14 155 983; 6: 16 987 180; 7: 19 818 377;
//! 9: 25 480 770. All links are OC-3c with a delay of 1 us = 1 000 000 ps. A message of 100 B is an IP packet of 128 B and with 8 B of
//! trailer 3 cells; its AAL5 SDU (no headers on these circuits) is 128 B.

mod arp;
mod bonds;
mod choices;
mod discard;
mod groups;
mod hosts;
mod joined;
mod keepalives;
mod members;
mod path_mtu;
mod ports;
mod routers;

use engpass_testbed::Testbed;

use crate::engine::Engine;
use crate::fast::difference;
use crate::outcome::{Departed, FlowSeen, Losing, Lost, Observed, Place};
use crate::replay::testbed;

/// Runs with seed 1 until `at` picoseconds.
fn seen(testbed: &Testbed, at: u64) -> Observed {
    let mut engine = Engine::new(testbed, 1);
    engine.run_until(at);
    engine.snapshot(at)
}

/// Runs a file without its table `run` for `at` picoseconds. Both engines must agree, and every packet must be accounted for.
fn run_for(file: &str, text: &str, at: u64) -> Observed {
    let testbed = testbed(file, format!("{text}[run]\nduration = \"{at} ps\"\n"));
    assert_eq!(difference(&testbed, 1), Ok(()));
    let mut engine = Engine::new(&testbed, 1);
    engine.run_until(at);
    let seen = engine.snapshot(at);
    assert_eq!(engine.frames_balance(&seen), Ok(()));
    seen
}

/// Sent, received, lost, in flight.
fn fates(flow: &FlowSeen) -> [u64; 4] {
    [flow.sent, flow.received, flow.lost, flow.in_flight]
}

/// Returns the cells that left on a link from this end, by circuit.
fn departed(seen: &Observed, link: usize, end: usize) -> Vec<Departed> {
    let here = seen.departures.iter().filter(|(key, _)| (key.link, key.end) == (link, end));
    here.map(|(_, departed)| departed.clone()).collect()
}

/// Returns a record of cells with CLP = 0 and no mark, the last at this instant.
fn left(cells: u64, last: u64) -> Departed {
    Departed { cells, last, ..Departed::default() }
}

/// Returns losses: place, flow, cells, datagrams.
fn losses(seen: &Observed) -> Vec<(Place, usize, u64, u64)> {
    let entry = |(losing, lost): (&Losing, &Lost)| (losing.place, losing.flow, lost.cells, lost.datagrams);
    seen.losses.iter().map(entry).collect()
}
