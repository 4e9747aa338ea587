//! What holds for the oracle on every network.

use std::collections::BTreeMap;

use engpass_model::discard::{Discard, EpdPpd, Fba, SelectiveDrop};
use engpass_model::shape::PolicingAction;
use engpass_model::switch::{AtmSwitch, Switch};
use engpass_model::unit::Share;
use engpass_testbed::{Testbed, Topology};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::cell::vc_index;
use crate::engine::Engine;
use crate::networks::network;
use crate::outcome::{Observed, Place, compare};
use crate::resolve::resolve;

/// Later than everything in a drained network: an hour in picoseconds.
const LATE: u64 = 3_600_000_000_000_000;

/// Four instants of a run, the last one its end.
fn instants(testbed: &Testbed) -> [u64; 4] {
    let end = testbed.run.duration.0;
    [0, end / 3, end - end / 7, end]
}

/// Whether the inside of the engine is in order.
fn in_order(engine: &Engine<'_>, seen: &Observed) -> Result<(), TestCaseError> {
    engine.balance(seen).map_err(TestCaseError::fail)
}

/// Every datagram has one fate; one that was lost before it was sent is lost and not sent.
fn fates(seen: &Observed) -> Result<(), TestCaseError> {
    for flow in &seen.flows {
        let known = flow.received + flow.lost + flow.in_flight;
        prop_assert!(known == flow.sent || known == flow.sent + 1, "{:?}", flow);
    }
    let datagrams: u64 = seen.losses.values().map(|lost| lost.datagrams).sum();
    prop_assert_eq!(datagrams, seen.flows.iter().map(|flow| flow.lost).sum::<u64>());
    Ok(())
}

fn at_the_end(testbed: &Testbed, topology: &Topology, seed: u64) -> Observed {
    let mut engine = Engine::new(testbed, topology, seed);
    let end = testbed.run.duration.0;
    engine.run_until(end);
    engine.snapshot(end)
}

proptest! {
    #[test]
    fn cells_and_datagrams_balance_at_every_instant(mut testbed in network(), seed in any::<u64>()) {
        testbed.run.warmup = None;
        let topology = resolve(&testbed);
        let mut engine = Engine::new(&testbed, &topology, seed);
        for at in instants(&testbed) {
            engine.run_until(at);
            let seen = engine.snapshot(at);
            in_order(&engine, &seen)?;
            engine.within_buffers().map_err(TestCaseError::fail)?;
            fates(&seen)?;
        }
        // Sources have stopped; what is on its way comes to its end.
        engine.run_until(LATE);
        let seen = engine.snapshot(LATE);
        in_order(&engine, &seen)?;
        for flow in &seen.flows {
            prop_assert_eq!(flow.in_flight, 0);
            prop_assert_eq!(flow.sent, flow.received + flow.lost);
        }
    }

    #[test]
    fn looking_does_not_change_a_run(testbed in network(), seed in any::<u64>()) {
        let topology = resolve(&testbed);
        let mut engine = Engine::new(&testbed, &topology, seed);
        for at in instants(&testbed) {
            engine.run_until(at);
            engine.snapshot(at);
        }
        let end = testbed.run.duration.0;
        prop_assert_eq!(compare(&engine.snapshot(end), &at_the_end(&testbed, &topology, seed)), Ok(()));
    }

    #[test]
    fn a_warmup_takes_away_what_was_before_it(mut testbed in network(), seed in any::<u64>()) {
        let end = testbed.run.duration.0;
        testbed.run.warmup = None;
        let topology = resolve(&testbed);
        let mut engine = Engine::new(&testbed, &topology, seed);
        engine.run_until(end / 3);
        let before = engine.snapshot(end / 3);
        engine.run_until(end);
        let whole = engine.snapshot(end);
        testbed.run.warmup = Some(engpass_model::unit::Duration(end / 3));
        let warm = at_the_end(&testbed, &topology, seed);
        for ((before, whole), warm) in before.flows.iter().zip(&whole.flows).zip(&warm.flows) {
            prop_assert_eq!(warm.sent, whole.sent - before.sent);
            prop_assert_eq!(warm.received, whole.received - before.received);
            prop_assert_eq!(warm.lost, whole.lost - before.lost);
            prop_assert_eq!(warm.in_flight, whole.in_flight);
            prop_assert_eq!(&warm.receptions, &whole.receptions);
        }
        for (key, whole) in &whole.departures {
            let before = before.departures.get(key).map_or(0, |departed| departed.cells);
            prop_assert_eq!(warm.departures[key].cells, whole.cells - before);
        }
    }
}

fn fair(config: &AtmSwitch) -> bool {
    matches!(config.discard, Discard::SelectiveDrop(_) | Discard::Fba(_))
}

/// Networks in a sample.
const NETWORKS: u32 = 600;

/// How many of a sample of networks show what a property test should meet.
#[test]
fn random_networks_meet_everything() {
    let mut met: BTreeMap<&str, u64> = BTreeMap::new();
    let mut runner = TestRunner::deterministic();
    let mut most = 0;
    for _ in 0..NETWORKS {
        let testbed = network().new_tree(&mut runner).expect("a network can be drawn").current();
        let topology = resolve(&testbed);
        let seen = at_the_end(&testbed, &topology, 1);
        most = most.max(seen.departures.values().map(|departed| departed.cells).sum());
        let mut meet = |what, there: bool| *met.entry(what).or_default() += u64::from(there);
        let lost = |place: fn(&Place) -> bool| seen.losses.keys().any(|key| place(&key.place));
        meet("loss at a port", lost(|place| matches!(place, Place::Port { .. })));
        meet("loss at a policer", lost(|place| matches!(place, Place::Policer { .. })));
        meet("loss at a reassembly", lost(|place| matches!(place, Place::Reassembly { .. })));
        meet("loss at a receive buffer", lost(|place| matches!(place, Place::ReceiveBuffer)));
        meet("something received", seen.flows.iter().any(|flow| flow.received > 0));
        meet("something in flight", seen.flows.iter().any(|flow| flow.in_flight > 0));
        // Where nothing is lost or marked, nothing is there to be told apart.
        let idle = !lost(|place| matches!(place, Place::Port { .. }))
            && seen.departures.values().all(|departed| departed.efci == 0);
        // What is lost or marked because a policy or a threshold is there, and would not be with tail drop.
        let mut matters =
            |what: &'static str, of: &dyn Fn(&AtmSwitch) -> bool, without: fn(&mut AtmSwitch)| {
                let mut other = testbed.clone();
                for switch in other.switches.values_mut() {
                    let Switch::Atm(config) = switch else { continue };
                    if of(config) {
                        without(config);
                    }
                }
                let matters = !idle && other != testbed && at_the_end(&other, &topology, 1) != seen;
                *met.entry(what).or_default() += u64::from(matters);
            };
        for kind in Discard::KINDS.iter().filter(|kind| **kind != "tail") {
            matters(kind, &|config| config.discard.kind() == *kind, |config| {
                config.discard = Discard::Tail(Default::default());
            });
        }
        matters("selective drop tells circuits apart", &fair, |config| {
            if let Discard::SelectiveDrop(SelectiveDrop { threshold, .. })
            | Discard::Fba(Fba { threshold, .. }) = config.discard
            {
                config.discard = Discard::EpdPpd(EpdPpd { threshold });
            }
        });
        matters("a CLP threshold matters", &|_| true, |config| config.clp_threshold = None);
        matters("an EFCI threshold matters", &|_| true, |config| config.efci_threshold = None);
        let mut meet = |what, there: bool| *met.entry(what).or_default() += u64::from(there);
        meet("a shaper that adapts matters", {
            let mut other = testbed.clone();
            for circuit in other.circuits.values_mut() {
                if let Some(adaptive) = &mut circuit.adaptive {
                    adaptive.increase = Share(Share::WHOLE / 10_000);
                }
            }
            other != testbed && at_the_end(&other, &topology, 1) != seen
        });
        meet("a PDU with EFCI", seen.flows.iter().any(|flow| flow.marked > 0));
        meet("a tagged cell", {
            let tagging = |circuit: usize| {
                topology.circuits[circuit]
                    .policing
                    .is_some_and(|(_, _, action)| action == PolicingAction::Tag)
            };
            seen.departures.iter().any(|(key, departed)| tagging(key.circuit) && departed.clp > 0)
        });
        meet("a warm-up", testbed.run.warmup.is_some());
        meet("against a circuit", topology.flows.iter().any(|flow| !flow.forward));
        meet("three hops or more", topology.flows.iter().any(|flow| flow.route.len() > 2));
        meet("both directions of a circuit", {
            let used: Vec<usize> = topology
                .flows
                .iter()
                .map(|flow| vc_index(flow.circuit.expect("on ATM"), flow.forward))
                .collect();
            used.iter().any(|vc| used.contains(&(vc ^ 1)))
        });
    }
    for (what, times) in &met {
        assert!(*times >= 15, "{what}: only {times} of {NETWORKS} networks");
    }
    assert!(most > 5_000 && most < 60_000, "cells sent in the largest network: {most}");
    println!("{met:?}, at most {most} cells");
}

#[test]
fn differences_are_named() {
    let testbed =
        network().new_tree(&mut TestRunner::deterministic()).expect("a network can be drawn").current();
    let oracle = at_the_end(&testbed, &resolve(&testbed), 1);
    let mut fast = oracle.clone();
    assert_eq!(compare(&fast, &oracle), Ok(()));
    fast.flows[0].received += 1;
    let key = *fast.departures.keys().next().expect("a cell was sent");
    fast.departures.remove(&key);
    let differences = compare(&fast, &oracle).unwrap_err();
    assert_eq!(differences.lines().count(), 2, "{differences}");
    assert!(differences.starts_with("flow 0: fast FlowSeen"), "{differences}");
    assert!(differences.contains(": fast None, oracle Some(Departed"), "{differences}");
}
