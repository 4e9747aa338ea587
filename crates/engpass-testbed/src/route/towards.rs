//! Shortest ways to one node.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::ways::{Step, Ways};
use crate::topology::NodeId;

/// The shortest ways to one node from all others.
pub(super) struct Towards<'w> {
    ways: &'w Ways,
    to: NodeId,
    /// The link that every way ends with, if that is given.
    last: Option<usize>,
    /// Length of the ways to `to` from the nodes that pass packets on, and from `to` itself.
    distance: BTreeMap<NodeId, usize>,
}

impl Ways {
    pub(super) fn towards(&self, to: NodeId, last: Option<usize>) -> Towards<'_> {
        let mut towards = Towards { ways: self, to, last, distance: BTreeMap::new() };
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

impl<'w> Towards<'w> {
    /// Whether a way may end with this step taken backwards.
    fn may_end_with(&self, from_end: &Step) -> bool {
        self.last.is_none_or(|last| from_end.links == [last])
    }

    /// The steps with which shortest ways from `node` begin, in the order of the file; none where no way leads.
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
        // Of the many hosts that a node may have, only one is the end: it knows its own few legs.
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
