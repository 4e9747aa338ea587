//! The shortest paths between two nodes: those that policies choose among, and those that no packet takes.

use std::collections::BTreeMap;

use super::routing::RoutingGraph;
use crate::topology::{Fan, NodeId, PathSegment};

/// All shortest paths between two nodes: the nodes that packets may reach, and for each the path segments that begin a shortest path from there.
pub(crate) struct ShortestPaths {
    from: NodeId,
    to: NodeId,
    groups: BTreeMap<NodeId, Group>,
}

struct Group {
    /// Path segments and the nodes at their ends, in the order of the file.
    legs: Vec<(PathSegment, NodeId)>,
    /// Number of path segments, from the first on, that packets may take; the others are spare.
    taken: usize,
}

impl RoutingGraph {
    /// Returns the shortest paths between two nodes; `None` if there is no path.
    pub(crate) fn reach(&self, from: NodeId, to: NodeId) -> Option<ShortestPaths> {
        let towards = self.towards(to, None);
        let mut reach = ShortestPaths { from, to, groups: BTreeMap::new() };
        let mut next = vec![from];
        while let Some(node) = next.pop() {
            if node == to || reach.groups.contains_key(&node) {
                continue;
            }
            let group = towards.group(node);
            if group.is_empty() {
                return None;
            }
            let (group, taken) = self.taken(node, group);
            next.extend(group[..taken].iter().map(|step| step.to));
            let legs = group.iter().map(|step| (step.leg, step.to)).collect();
            reach.groups.insert(node, Group { legs, taken });
        }
        Some(reach)
    }

    /// Returns the shortest paths of the reverse direction; `None` if these packets take the reversed path, because nothing chooses in either direction.
    pub(crate) fn reach_back(&self, there: &ShortestPaths) -> Option<ShortestPaths> {
        // A unique shortest path is also the unique one back.
        if !there.has_several() {
            return None;
        }
        let back = self.reach(there.to, there.from)?;
        (there.has_choice() || back.has_choice()).then_some(back)
    }
}

impl ShortestPaths {
    /// Returns the path that takes the first path segment at every node.
    pub(crate) fn path(&self) -> Vec<PathSegment> {
        let mut legs = Vec::new();
        let mut node = self.from;
        while node != self.to {
            let (leg, to) = self.groups[&node].legs[0];
            legs.push(leg);
            node = to;
        }
        legs
    }

    /// Returns true if there are several shortest paths, used or not.
    fn has_several(&self) -> bool {
        self.groups.values().any(|group| group.legs.len() > 1)
    }

    /// Returns true if packets have a choice of path segments at any node.
    pub(crate) fn has_choice(&self) -> bool {
        self.groups.values().any(|group| group.taken > 1)
    }

    /// Returns the path segments that packets may take.
    pub(crate) fn fan(&self) -> Fan {
        let legs = |group: &Group| group.legs[..group.taken].iter().map(|(leg, _)| *leg).collect();
        Fan { at: self.groups.iter().map(|(node, group)| (*node, legs(group))).collect() }
    }

    /// Returns the path segments that are on a shortest path but that no packet takes: the node, the segment that packets take there, and the unused one.
    pub(crate) fn spare(&self) -> impl Iterator<Item = (NodeId, PathSegment, PathSegment)> {
        self.groups.iter().flat_map(|(node, group)| {
            let spare = group.legs[group.taken..].iter();
            spare.map(|(leg, _)| (*node, group.legs[0].0, *leg))
        })
    }

    /// Returns the path with the most nodes for which `counts` is true, of those that packets may take.
    pub(crate) fn longest(&self, counts: impl Fn(NodeId) -> bool) -> Vec<PathSegment> {
        let mut most: BTreeMap<NodeId, (usize, Option<(PathSegment, NodeId)>)> =
            BTreeMap::from([(self.to, (0, None))]);
        let mut next = vec![self.from];
        while let Some(node) = next.last().copied() {
            if most.contains_key(&node) {
                next.pop();
                continue;
            }
            let group = &self.groups[&node];
            let taken = &group.legs[..group.taken];
            let pending = next.len();
            next.extend(taken.iter().map(|(_, to)| *to).filter(|to| !most.contains_key(to)));
            if next.len() > pending {
                continue;
            }
            // The first one among equals.
            let best =
                taken.iter().rev().max_by_key(|(_, to)| most[to].0).expect("a choice has a path segment");
            most.insert(node, (most[&best.1].0 + usize::from(counts(node)), Some(*best)));
        }
        let mut legs = Vec::new();
        let mut node = self.from;
        while let Some((leg, to)) = most[&node].1 {
            legs.push(leg);
            node = to;
        }
        legs
    }
}

/// Returns the minimum of `of` over all path segments that packets in the forward direction may take; `None` if `of` returns `None` for one of them.
pub(crate) fn narrowest(
    legs: &[PathSegment],
    fans: Option<&[Fan; 2]>,
    of: impl Fn(PathSegment) -> Option<u64>,
) -> Option<u64> {
    let chosen = fans.into_iter().flat_map(|[there, _]| there.legs());
    let all: Option<Vec<u64>> = legs.iter().copied().chain(chosen).map(of).collect();
    all?.into_iter().min()
}
