//! The engine that users run, seen as the oracle is seen, and the law: equal bit for bit.

use std::collections::BTreeMap;

use engpass_model::discard::{Discard, Epd};
use engpass_model::schedule::Schedule;
use engpass_model::switch::Switch;
use engpass_model::unit::FillLevel;
use engpass_model::wire::Medium;
use engpass_network::simulate::{BookSeen, SimOutcome, simulate};
use engpass_testbed::{Testbed, Topology};
use proptest::prelude::*;

use crate::bench::{bench, cbr, circuit, hosts, link, q, switch, udp};
use crate::engine::Engine;
use crate::networks::network;
use crate::outcome::{
    Booked, Booking, Cause, Departed, Departing, FlowSeen, Losing, Lost, Observed, Place, Receptions, compare,
};
use crate::resolve::resolve;

/// What the fast engine shows of a whole run.
fn fast(testbed: &Testbed, topology: &Topology, seed: u64) -> Observed {
    let outcome = simulate(testbed, topology, seed, &|| false).expect("an ATM testbed is simulated");
    observed(&outcome, testbed, topology)
}

/// An outcome, seen as the oracle is seen.
pub(crate) fn observed(outcome: &SimOutcome, testbed: &Testbed, topology: &Topology) -> Observed {
    let flows = outcome.flows.iter().map(|(_, flow)| FlowSeen {
        sent: flow.sent_datagrams,
        received: flow.received_datagrams,
        lost: flow.lost_datagrams,
        marked: flow.efci_pdus,
        in_flight: flow.in_flight_datagrams,
        receptions: Receptions {
            last: flow.receptions.last,
            times: flow.receptions.times,
            weighted: flow.receptions.weighted,
        },
    });
    let mut departures = BTreeMap::new();
    for (link, (_, used)) in outcome.links.iter().enumerate() {
        for (end, direction) in used.directions.iter().enumerate() {
            for vc in &direction.vcs {
                let key = Departing { link, end, circuit: vc.circuit, forward: vc.forward };
                if let Some(last) = vc.last_sent {
                    departures.insert(key, Departed { cells: vc.sent, clp: vc.clp, efci: vc.efci, last });
                }
            }
        }
    }
    let mut losses = BTreeMap::new();
    for drop in &outcome.drops {
        let flow = testbed.traffic.get_index_of(&drop.flow).expect("what is lost is a flow's");
        let circuit = topology.flows[flow].circuit.expect("flows cross circuits");
        let place = match (drop.cause, drop.port) {
            ("buffer full", Some((link, end))) => Place::Port { link, end, cause: Cause::Full },
            ("CLP threshold", Some((link, end))) => Place::Port { link, end, cause: Cause::LowPriority },
            ("discard policy", Some((link, end))) => Place::Port { link, end, cause: Cause::Policy },
            ("policer", _) => Place::Policer { circuit },
            ("reassembly", _) => Place::Reassembly { circuit },
            ("receive buffer", _) => Place::ReceiveBuffer,
            other => panic!("no place: {other:?}"),
        };
        losses.insert(Losing { place, flow }, Lost { cells: drop.cells, datagrams: drop.datagrams });
    }
    let (idle, books) = books(outcome);
    Observed { at: testbed.run.duration.0, flows: flows.collect(), departures, losses, idle, books }
}

/// Idle time of every line, and whose cells it carried, as the ledger has them.
fn books(outcome: &SimOutcome) -> (Vec<[u64; 2]>, BTreeMap<Booking, Booked>) {
    let (mut idle, mut books) = (Vec::new(), BTreeMap::new());
    for (link, (_, used)) in outcome.links.iter().enumerate() {
        idle.push([0, 1].map(|end| used.directions[end].idle));
        for (end, direction) in used.directions.iter().enumerate() {
            for book in &direction.books {
                let BookSeen { flow, against: _, whole, dead, in_flight, generated } = *book;
                let booked = Booked { whole, dead, in_flight, generated };
                if booked != Booked::default() {
                    books.insert(Booking { link, end, flow }, booked);
                }
            }
        }
    }
    (idle, books)
}

/// A generator goes before a stream; it waits for the cell being sent, and so its next cell may find it. With a threshold of 0 that matters.
#[test]
fn a_generator_that_goes_first_meets_itself() {
    let thresholds = [(0, None), (1, None), (1, Some(0)), (1, Some(1)), (40, Some(4))];
    let lost_or_marked = thresholds.map(|(threshold, efci)| {
        let mut testbed = bench("20 ms");
        hosts(&mut testbed, &["a", "g", "c"]);
        switch(&mut testbed, "x", 60, Schedule::Priority(Default::default()));
        for host in ["a", "g", "c"] {
            link(&mut testbed, [host, "x"], Medium::Oc3c);
        }
        circuit(&mut testbed, "a", "c");
        udp(&mut testbed, "a", "c", 1000);
        cbr(&mut testbed, "g", "c", q("80 %"));
        let Switch::Atm(config) = &mut testbed.switches["x"] else { panic!("`x` is an ATM switch") };
        config.discard = Discard::Epd(Epd { threshold: FillLevel::Cells(threshold) });
        config.efci_threshold = efci.map(FillLevel::Cells);
        let topology = resolve(&testbed);
        let mut oracle = Engine::new(&testbed, &topology, 1);
        oracle.run_until(testbed.run.duration.0);
        let seen = oracle.snapshot(testbed.run.duration.0);
        assert_eq!(compare(&fast(&testbed, &topology, 1), &seen), Ok(()), "{threshold}, {efci:?}");
        seen.flows[1].lost + seen.flows[1].marked > 0
    });
    assert_eq!(lost_or_marked, [true, false, true, false, false]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn trains_are_equal_to_cells_bit_for_bit(testbed in network(), seed in any::<u64>()) {
        let topology = resolve(&testbed);
        let mut oracle = Engine::new(&testbed, &topology, seed);
        let end = testbed.run.duration.0;
        oracle.run_until(end);
        let difference = compare(&fast(&testbed, &topology, seed), &oracle.snapshot(end));
        prop_assert!(difference.is_ok(), "{}\n{topology:#?}\n{testbed:#?}", difference.unwrap_err());
    }
}
