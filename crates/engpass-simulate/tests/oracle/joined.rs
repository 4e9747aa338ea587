//! Circuits that begin or end at routers: coverage of the random networks.

use std::collections::BTreeSet;

use engpass_model::queue::Queue;
use engpass_model::shape::PolicingAction;
use engpass_testbed::Topology;
use engpass_testbed::topology::{FlowPath, PathSegment};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::engine::Engine;
use crate::networks::{Drawn, joined};
use crate::outcome::{Observed, Place};
use crate::properties::Met;
use crate::queue::Cause;
use crate::resolve::resolve;

/// Networks in the sample: some losses are rare.
const NETWORKS: u32 = 900;

/// Returns the circuits, with direction, on the first path of a flow's data.
fn circuits(path: &FlowPath) -> impl Iterator<Item = (usize, bool)> {
    path.legs.iter().filter_map(|leg| match leg {
        PathSegment::Circuit { circuit, forward } => Some((*circuit, *forward)),
        PathSegment::Link(_) | PathSegment::Tunnel { .. } => None,
    })
}

/// Returns the link at which a circuit begins, and its end there.
fn entrance(topology: &Topology, (circuit, forward): (usize, bool)) -> Option<(usize, usize)> {
    let route = &topology.circuits[circuit].route;
    let (link, node) = match forward {
        true => (route[0].link, route[0].from),
        false => (route[route.len() - 1].link, route[route.len() - 1].to),
    };
    let end = usize::from(topology.links[link].ends[0] != node);
    (node >= topology.hosts + topology.switches).then_some((link, end))
}

/// Returns true if cells of a circuit direction have left its first line.
fn sends(topology: &Topology, seen: &Observed, circuit: usize, forward: bool) -> bool {
    let first = entrance(topology, (circuit, forward));
    let mut left = seen.departures.keys().filter(|key| (key.circuit, key.forward) == (circuit, forward));
    left.any(|key| first == Some((key.link, key.end)))
}

#[test]
fn random_circuit_at_router_networks_cover_all_cases() {
    let mut met = Met::new(NETWORKS);
    let mut runner = TestRunner::deterministic();
    for _ in 0..met.sample.drawn {
        let Drawn(testbed) =
            joined().new_tree(&mut runner).expect("the strategy generates a network").current();
        let topology = resolve(&testbed);
        let mut engine = Engine::new(&testbed, 1);
        engine.run_until(testbed.run.duration.0);
        let seen = engine.snapshot(testbed.run.duration.0);
        let flows = || topology.flows.iter().zip(&seen.flows).filter(|(_, flow)| flow.received > 0);
        let lost =
            |place: fn(&Topology, &Place) -> bool| seen.losses.keys().any(|key| place(&topology, &key.place));
        for cause in Cause::ALL {
            let in_front = |place: &Place| match *place {
                Place::Queue { link, cause: of, .. } => of == cause && topology.links[link].medium.is_atm(),
                _ => false,
            };
            met.meet(cause.text(), seen.losses.keys().any(|key| in_front(&key.place)));
        }
        let declared = || (0..testbed.circuits.len()).flat_map(|circuit| [(circuit, true), (circuit, false)]);
        let used = || declared().filter(|(circuit, forward)| sends(&topology, &seen, *circuit, *forward));
        for kind in Queue::KINDS {
            let queue = |(link, end): (usize, usize)| topology.links[link].queues[end].as_ref();
            let here = |direction| {
                entrance(&topology, direction).and_then(queue).is_some_and(|queue| queue.kind() == *kind)
            };
            met.meet(kind, used().any(here));
        }
        let config = |circuit: usize| &testbed.circuits[circuit];
        met.meet(
            "no shaper at a router",
            used().any(|(circuit, forward)| {
                forward && config(circuit).shaping.is_none() && config(circuit).adaptive.is_none()
            }),
        );
        met.meet(
            "a shaper at a router",
            used().any(|(circuit, forward)| forward && config(circuit).shaping.is_some()),
        );
        met.meet("against a circuit", used().any(|(_, forward)| !forward));
        met.meet("a policer at the switch behind a router", {
            let at_policer = seen.losses.keys().filter(|key| matches!(key.place, Place::Policer { .. }));
            at_policer.map(|key| &topology.flows[key.flow]).any(|path| path.circuit.is_none())
        });
        met.meet(
            "a tagged cell",
            seen.departures.iter().any(|(key, departed)| {
                let policing = topology.circuits[key.circuit].policing;
                policing.is_some_and(|(.., action)| action == PolicingAction::Tag) && departed.clp > 0
            }),
        );
        met.meet("two circuits of one line", {
            let first: Vec<_> =
                used().filter_map(|(circuit, forward)| entrance(&topology, (circuit, forward))).collect();
            first.iter().collect::<BTreeSet<_>>().len() < first.len()
        });
        met.meet(
            "traffic that names a circuit",
            flows()
                .any(|(path, _)| testbed.traffic[&path.name].circuit().is_some() && path.circuit.is_none()),
        );
        met.meet("two circuits on a way", flows().any(|(path, _)| circuits(path).count() > 1));
        met.meet("a circuit between links", {
            let between = |(path, _): (&FlowPath, _)| {
                let legs = &path.legs;
                legs.len() > 2
                    && matches!(legs[0], PathSegment::Link(_))
                    && matches!(legs[legs.len() - 1], PathSegment::Link(_))
                    && circuits(path).count() > 0
            };
            flows().any(between)
        });
        for (what, first) in [("a circuit from a host", true), ("a circuit to a host", false)] {
            let joins = |(path, _): (&FlowPath, _)| {
                let end = if first { path.legs.first() } else { path.legs.last() };
                path.legs.len() > 1 && matches!(end, Some(PathSegment::Circuit { .. }))
            };
            met.meet(what, flows().any(joins));
        }
        for switches in 0..=2 {
            let what = ["no switch", "one switch", "two switches"][switches];
            let over = |(circuit, _): (usize, bool)| topology.circuits[circuit].route.len() == switches + 1;
            met.meet(what, used().any(over));
        }
        met.meet(
            "cells of generators beside",
            seen.books.values().any(|book| book.generated > 0) && used().count() > 0,
        );
        met.meet(
            "loss at a port",
            lost(|_, place| matches!(place, Place::Port { .. })) && used().count() > 0,
        );
        met.meet(
            "loss at a reassembly of a router",
            lost(|_, place| matches!(place, Place::Reassembly { router: Some(_) })),
        );
        met.meet("a time to live that ran out", lost(|_, place| matches!(place, Place::TimeToLive { .. })));
        met.meet("a PDU with EFCI", flows().any(|(path, flow)| path.circuit.is_none() && flow.marked > 0));
        met.meet("cut for a circuit", {
            let cut = |(path, _): (&FlowPath, _)| {
                circuits(path)
                    .any(|of| entrance(&topology, of).is_some() && topology.circuits[of.0].mtu < path.mtu)
            };
            flows().any(cut)
        });
        met.meet("a choice among a circuit and a link", {
            let among = |path: &FlowPath| {
                let groups = path.fans.iter().flat_map(|fans| &fans[0].at);
                let mixed = |legs: &Vec<PathSegment>| {
                    legs.iter().any(|leg| matches!(leg, PathSegment::Link(_)))
                        && legs.iter().any(|leg| matches!(leg, PathSegment::Circuit { .. }))
                };
                groups.into_iter().any(|(_, legs)| mixed(legs))
            };
            flows().any(|(path, _)| among(path))
        });
        let tcp = || seen.flows.iter().filter_map(|flow| flow.tcp.as_ref());
        met.meet("TCP", tcp().count() > 0 && flows().any(|(_, flow)| flow.tcp.is_some()));
        met.meet("a retransmission", tcp().any(|tcp| tcp.retransmitted > 0));
        let booked = |account: &str| seen.accounts.values().any(|accounts| accounts.contains_key(account));
        met.meet("idle: other way", booked("idle: other way"));
        met.meet("idle: shaper", booked("idle: shaper"));
    }
    met.enough();
}
