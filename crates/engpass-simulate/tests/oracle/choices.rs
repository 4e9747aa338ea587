//! Equal-cost paths, policies and outages: coverage of the random networks.

use engpass_model::forward::Ecmp;
use engpass_testbed::topology::{FlowPath, PathSegment};
use engpass_testbed::{Testbed, Topology};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::engine::Engine;
use crate::networks::{Drawn, mesh};
use crate::outcome::{Observed, Place};
use crate::properties::Met;
use crate::resolve::resolve;

/// Returns the groups of path segments among which routers choose, on the paths of a flow's data (`direction` 0) or of the packets that come back (1). Each
/// group comes with the policy of its router.
fn groups<'a>(
    testbed: &'a Testbed,
    topology: &'a Topology,
    path: &'a FlowPath,
    direction: usize,
) -> impl Iterator<Item = (&'a Ecmp, &'a Vec<PathSegment>)> {
    let at = path.fans.iter().flat_map(move |fans| &fans[direction].at);
    let first = topology.hosts + topology.switches;
    at.filter(|(_, legs)| legs.len() > 1).map(move |(node, legs)| (&testbed.routers[node - first].ecmp, legs))
}

/// Returns the frames that have left on the line of a path segment.
fn sent(topology: &Topology, seen: &Observed, leg: &PathSegment) -> u64 {
    let hop = topology.first_hop(*leg);
    let end = topology.links[hop.link].end_of(hop.from);
    seen.frames.get(&(hop.link, end)).map_or(0, |seen| seen.frames)
}

#[test]
fn random_ecmp_networks_cover_all_cases() {
    let mut met = Met::new(600);
    let mut runner = TestRunner::deterministic();
    for _ in 0..met.sample.drawn {
        let Drawn(testbed) =
            mesh().new_tree(&mut runner).expect("the strategy generates a network").current();
        let topology = resolve(&testbed);
        let mut engine = Engine::new(&testbed, 1);
        engine.run_until(testbed.run.duration.0);
        let seen = engine.snapshot(testbed.run.duration.0);
        met.tcp(&testbed, &seen);
        let flows = || topology.flows.iter().zip(&seen.flows).filter(|(_, flow)| flow.received > 0);
        let among_data = Ecmp::KINDS.iter().filter(|kind| **kind != "first").map(|kind| (*kind, *kind, 0));
        let on_the_way_back = [
            ("a hash chooses on the way back", "hash", 1),
            ("packets take turns on the way back", "round-robin", 1),
        ];
        for (what, kind, direction) in among_data.chain(on_the_way_back) {
            let spread = |(path, _): (&FlowPath, _)| {
                groups(&testbed, &topology, path, direction).any(|(ecmp, legs)| {
                    ecmp.kind() == kind
                        && legs.iter().filter(|leg| sent(&topology, &seen, leg) > 0).count() > 1
                })
            };
            met.meet(what, flows().any(spread));
        }
        let choices = |path: &FlowPath| groups(&testbed, &topology, path, 0).count();
        met.meet("two choices on a way", flows().any(|(path, _)| choices(path) > 1));
        met.meet(
            "three members",
            flows().any(|(path, _)| groups(&testbed, &topology, path, 0).any(|(_, legs)| legs.len() > 2)),
        );
        met.meet(
            "unlike MTUs",
            flows().any(|(path, _)| {
                let mtu = |leg: &PathSegment| topology.mtu(*leg);
                groups(&testbed, &topology, path, 0)
                    .any(|(_, legs)| legs.iter().any(|leg| mtu(leg) != mtu(&legs[0])))
            }),
        );
        met.meet(
            "datagrams that are cut before a choice",
            flows().any(|(path, flow)| {
                choices(path) > 0
                    && flow.tcp.is_none()
                    && flow.received_bytes / flow.received.max(1) + 28 > path.mtu
            }),
        );
        met.meet(
            "a choice without a policy",
            flows().any(|(path, _)| path.fans.is_none() && path.legs.len() > 2),
        );
        let booked = |account: &str| seen.accounts.values().any(|accounts| accounts.contains_key(account));
        met.meet("idle: other way", booked("idle: other way"));
        met.meet("idle: line down", booked("idle: line down"));
        let down = || seen.losses.iter().filter(|(key, _)| matches!(key.place, Place::Down { .. }));
        met.meet("a packet lost to an outage", down().count() > 0);
        let at_host = |place: Place| match place {
            Place::Down { link, end } => topology.links[link].ends[end] < topology.hosts,
            _ => false,
        };
        met.meet("a host sends on a line that is down", down().any(|(key, _)| at_host(key.place)));
        met.meet("a port loses packets to an outage", down().any(|(key, _)| !at_host(key.place)));
        let outages = || seen.flows.iter().filter_map(|flow| flow.outage.as_ref());
        met.meet("an outage of a flow", outages().any(|outage| outage.longest > 0 && outage.lost > 0));
        met.meet(
            "an outage that only one end sees",
            topology.events.iter().any(|event| {
                event.seen_by != [true; 2] && down().any(|(key, _)| {
                matches!(key.place, Place::Down { link, end } if link == event.link && !event.seen_by[end])
            })
            }),
        );
        met.meet(
            "an event seen where a policy chooses",
            flows().any(|(path, _)| {
                groups(&testbed, &topology, path, 0).any(|(_, legs)| {
                    legs.iter().map(|leg| topology.first_hop(*leg)).any(|hop| {
                        let end = topology.links[hop.link].end_of(hop.from);
                        topology.events.iter().any(|event| event.link == hop.link && event.seen_by[end])
                    })
                })
            }),
        );
    }
    met.enough();
}
