//! Shortest paths to one node.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::routing::{RoutingGraph, Step};
use crate::topology::NodeId;

/// The shortest paths to one node from all others.
pub(super) struct DistancesTo<'w> {
    ways: &'w RoutingGraph,
    to: NodeId,
    /// The link with which every path must end; `None` if any will do.
    last: Option<usize>,
    /// Length of the paths to `to`, for nodes that forward packets and for `to` itself.
    distance: BTreeMap<NodeId, usize>,
}

impl RoutingGraph {
    pub(super) fn towards(&self, to: NodeId, last: Option<usize>) -> DistancesTo<'_> {
        let mut towards = DistancesTo { ways: self, to, last, distance: BTreeMap::new() };
        let mut next = BinaryHeap::from([Reverse((0, to))]);
        while let Some(Reverse((length, node))) = next.pop() {
            if towards.distance.contains_key(&node) {
                continue;
            }
            towards.distance.insert(node, length);
            let mut reach = |step: &Step| next.push(Reverse((length + step.length, step.to)));
            if node == to {
                let first = self.at[to].iter().filter(|step| towards.may_end_with(step));
                first.filter(|step| self.passes(step.to)).for_each(&mut reach);
            } else {
                self.inner[node].iter().for_each(|place| reach(&self.at[node][*place]));
            }
        }
        towards
    }
}

impl<'w> DistancesTo<'w> {
    /// Returns true if a path may end with the reverse of this step.
    fn may_end_with(&self, from_end: &Step) -> bool {
        self.last.is_none_or(|last| from_end.links == [last])
    }

    /// Returns the steps from `node` that begin a shortest path, in the order of the file; empty if there is no path.
    pub(super) fn group(&self, node: NodeId) -> Vec<&'w Step> {
        let (ways, to) = (self.ways, self.to);
        let steps = &ways.at[node];
        let all: Vec<usize>;
        let places = if ways.passes(node) {
            &ways.inner[node]
        } else {
            all = (0..steps.len()).collect();
            &all
        };
        let onward =
            places.iter().copied().filter(|place| steps[*place].to != to && ways.passes(steps[*place].to));
        // A node may lead to many hosts, but only one of them is the target. Therefore the target's own short list of steps is searched.
        let ends = ways.at[to]
            .iter()
            .filter(|step| step.to == node && self.may_end_with(step))
            .map(|step| step.back);
        let mut begun: Vec<(usize, usize)> = onward
            .chain(ends)
            .filter_map(|place| Some((self.distance.get(&steps[place].to)? + steps[place].length, place)))
            .collect();
        begun.sort_unstable();
        let shortest = begun.first().map(|(length, _)| *length);
        let group = begun.iter().take_while(|(length, _)| Some(*length) == shortest);
        group.map(|(_, place)| &steps[*place]).collect()
    }
}
