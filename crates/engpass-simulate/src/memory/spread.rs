//! Distribution of packets over equal-cost paths, as far as the memory estimate needs it.

use std::collections::BTreeMap;

use engpass_frames::choices_are_known;
use engpass_model::source::Traffic;
use engpass_testbed::topology::{Fan, FlowPath, NodeId, NodeKind, PathSegment};
use engpass_testbed::{Testbed, Topology};

/// Number of connections and sources for which each router chooses a path.
pub(super) type Choosers = BTreeMap<NodeId, f64>;

/// The part of a flow's packets that uses a path segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) leg: PathSegment,
    /// Nodes at which the path segment starts and ends, and the number of path segments before it.
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) depth: usize,
    /// Share of the packets at `from` that take this path segment: the average, and a value that is hardly ever exceeded. Both are equal if the policy
    /// distributes packets, not flows.
    pub(super) share: f64,
    pub(super) most: f64,
}

/// Needs of a flow's routes beyond those of a flow without choices.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ways {
    /// Steps of the routes with decision steps, of all connections of the flow and in both directions.
    pub(super) steps: f64,
    /// Number of connections with routes of their own, summed over both directions.
    pub(super) own: f64,
    /// Number of ledger records of lines beyond those of a single path.
    pub(super) usages: f64,
}

/// Returns how many connections and sources each router chooses for.
pub(super) fn choosers(testbed: &Testbed, topology: &Topology) -> Choosers {
    let mut choosers = Choosers::new();
    for (path, traffic) in topology.flows.iter().zip(testbed.traffic.values()) {
        let fans = path.fans.iter().map(|fans| &fans[0]);
        for (node, _) in fans.flat_map(|fan| &fan.at).filter(|(_, legs)| legs.len() > 1) {
            *choosers.entry(*node).or_default() += f64::from(traffic.streams());
        }
    }
    choosers
}

/// Returns the path segments that a flow's data may take, each after all that lead to it.
pub(super) fn parts(
    testbed: &Testbed,
    topology: &Topology,
    path: &FlowPath,
    choosers: &Choosers,
) -> Vec<Part> {
    let to = |leg: PathSegment| topology.hops(leg).last().expect("a path segment has links").to;
    let Some(fans) = &path.fans else {
        let part = |(depth, leg): (usize, &PathSegment)| {
            let from = topology.first_hop(*leg).from;
            Part { leg: *leg, from, to: to(*leg), depth, share: 1.0, most: 1.0 }
        };
        return path.legs.iter().enumerate().map(part).collect();
    };
    let mut parts = Vec::new();
    let mut depths: BTreeMap<NodeId, usize> = BTreeMap::new();
    for node in in_order(topology, &fans[0], path.from) {
        let legs = fans[0].legs_at(node);
        let depth = depths.get(&node).copied().unwrap_or(0);
        let (weights, per_packet) = match topology.kind(node) {
            NodeKind::Router(router) => {
                let ecmp = &testbed.routers[router].ecmp;
                let weight = |leg: &PathSegment| {
                    f64::from(ecmp.weight(&topology.links[topology.first_hop(*leg).link].name))
                };
                (legs.iter().map(weight).collect(), ecmp.config().build().is_per_packet())
            }
            _ => (vec![1.0; legs.len()], true),
        };
        let total: f64 = weights.iter().sum();
        let flows = choosers.get(&node).copied().unwrap_or(1.0).max(1.0);
        for (leg, weight) in legs.iter().zip(weights) {
            let share = weight / total;
            // `most` is two standard deviations above the mean.
            let spread = if per_packet { 0.0 } else { 2.0 * (share * (1.0 - share) / flows).sqrt() };
            let (to, most) = (to(*leg), (share + spread).min(1.0));
            parts.push(Part { leg: *leg, from: node, to, depth, share, most });
            let behind = depths.entry(to).or_default();
            *behind = (*behind).max(depth + 1);
        }
    }
    parts
}

/// Returns the nodes of a fan, each after all nodes from which packets reach it.
fn in_order(topology: &Topology, fan: &Fan, from: NodeId) -> Vec<NodeId> {
    let to = |leg: &PathSegment| topology.hops(*leg).last().expect("a path segment has links").to;
    let mut before: BTreeMap<NodeId, usize> = BTreeMap::new();
    for (_, legs) in &fan.at {
        legs.iter().for_each(|leg| *before.entry(to(leg)).or_default() += 1);
    }
    let (mut order, mut next) = (Vec::new(), vec![from]);
    while let Some(node) = next.pop() {
        order.push(node);
        for leg in fan.legs_at(node) {
            let left = before.get_mut(&to(leg)).expect("every reached node has a count");
            *left -= 1;
            if *left == 0 {
                next.push(to(leg));
            }
        }
    }
    order
}

/// Returns the needs of a flow's routes, for both directions.
pub(super) fn ways(testbed: &Testbed, topology: &Topology, path: &FlowPath, traffic: &Traffic) -> Ways {
    let Some(fans) = &path.fans else { return Ways::default() };
    let streams = f64::from(traffic.streams());
    let mut all = Ways::default();
    for (fan, from) in fans.iter().zip([path.from, path.to]) {
        let known = |node: NodeId| choices_are_known(testbed, topology, traffic, fan, node);
        let chooses = || fan.at.iter().filter(|(_, legs)| legs.len() > 1);
        let (asked, own) =
            (chooses().any(|(node, _)| !known(*node)), chooses().any(|(node, _)| known(*node)));
        if !asked {
            all.own += streams;
            continue;
        }
        let mut steps: BTreeMap<NodeId, f64> = BTreeMap::new();
        for node in in_order(topology, fan, from).into_iter().rev() {
            let behind = fan.legs_at(node).iter().map(|leg| {
                let to = topology.hops(*leg).last().expect("a path segment has links").to;
                steps.get(&to).copied().unwrap_or(1.0)
            });
            let here = if fan.legs_at(node).len() > 1 && !known(node) {
                // A decision step; and for each result a mark, a line, and the steps behind.
                1.0 + behind.map(|behind| 2.0 + behind).sum::<f64>()
            } else {
                1.0 + behind.fold(0.0, f64::max)
            };
            steps.insert(node, here);
        }
        // Connections share routes, unless some of their choices are known.
        let trees = if own { streams } else { 1.0 };
        all.own += streams;
        all.steps += trees * steps.get(&from).copied().unwrap_or(1.0);
        let lines = fan.legs().flat_map(|leg| topology.hops(leg)).count().saturating_sub(path.route.len());
        all.usages += streams * lines as f64;
    }
    all
}
