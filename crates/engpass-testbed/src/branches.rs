//! The distribution tree of multicast traffic. Nodes copy packets where the paths to the receivers diverge.

use std::collections::BTreeMap;

use crate::topology::{FlowPath, NodeId, PathSegment};

/// A branch of a multicast tree: from the sender, or a node that copies packets or decides whether they go on, to the next such node or to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Index of the parent branch, at whose end this branch begins; `None` if it begins at the sender.
    pub of: Option<usize>,
    /// The node at which the branch ends: a receiver, or a node that copies packets or decides whether they go on.
    pub to: NodeId,
    /// Path segments of the branch, at least one.
    pub legs: Vec<PathSegment>,
}

impl FlowPath {
    /// Returns the indices of the branches that end at a receiver; empty unless the traffic has several receivers, or receivers
    /// that join or leave.
    pub fn leaves(&self) -> impl Iterator<Item = usize> {
        let mut is_copied = vec![false; self.branches.len()];
        for of in self.branches.iter().filter_map(|branch| branch.of) {
            is_copied[of] = true;
        }
        (0..self.branches.len()).filter(move |place| !is_copied[*place])
    }

    /// Returns, for each receiver, the index of the branch that ends there.
    pub fn leaf_by_receiver(&self) -> BTreeMap<NodeId, usize> {
        self.leaves().map(|leaf| (self.branches[leaf].to, leaf)).collect()
    }

    /// Returns the indices of the branches from the sender to the end of a branch.
    pub fn branches_to(&self, branch: usize) -> Vec<usize> {
        let mut all: Vec<usize> =
            std::iter::successors(Some(branch), |place| self.branches[*place].of).collect();
        all.reverse();
        all
    }

    /// Returns the path segments from the sender to the end of a branch.
    pub fn legs_to(&self, branch: usize) -> Vec<PathSegment> {
        self.branches_to(branch).into_iter().flat_map(|place| self.branches[place].legs.clone()).collect()
    }
}

/// Builds the multicast tree of these paths from one sender, each given with its receiver. A branch comes after its parent. Branches that begin at one node are
/// in the order of the first receiver behind each. With `prunes`, the first branch ends at the first node behind the sender, so that it can stop all packets.
pub(crate) fn branches(
    ways: &[(NodeId, Vec<PathSegment>)],
    prunes: bool,
    end_of: impl Fn(PathSegment) -> NodeId,
) -> Vec<Branch> {
    let mut tree = Vec::new();
    let ways: Vec<(NodeId, &[PathSegment])> = ways.iter().map(|(to, legs)| (*to, legs.as_slice())).collect();
    grow(&ways, (None, prunes), &end_of, &mut tree);
    tree
}

/// Adds the branches that begin at the end of the branch `of`. With `short`, each has one path segment only.
fn grow(
    ways: &[(NodeId, &[PathSegment])],
    (of, short): (Option<usize>, bool),
    end_of: &impl Fn(PathSegment) -> NodeId,
    tree: &mut Vec<Branch>,
) {
    let mut firsts: Vec<PathSegment> = Vec::new();
    for leg in ways.iter().filter_map(|(_, legs)| legs.first()) {
        if !firsts.contains(leg) {
            firsts.push(*leg);
        }
    }
    for first in firsts {
        let mut taken: Vec<(NodeId, &[PathSegment])> =
            ways.iter().filter(|(_, legs)| legs.first() == Some(&first)).copied().collect();
        let mut legs = Vec::new();
        // The branch goes on to the node where the paths diverge.
        while let Some(leg) = taken[0].1.first().copied()
            && (legs.is_empty() || !short)
            && taken.iter().all(|(_, way)| way.first() == Some(&leg))
        {
            legs.push(leg);
            taken.iter_mut().for_each(|(_, way)| *way = &way[1..]);
        }
        let place = tree.len();
        tree.push(Branch { of, to: end_of(legs[legs.len() - 1]), legs });
        grow(&taken, (Some(place), false), end_of, tree);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Hop;

    fn way(nodes: &[NodeId]) -> (NodeId, Vec<PathSegment>) {
        let hop = |pair: &[NodeId]| {
            PathSegment::Link(Hop { link: 10 * pair[0] + pair[1], from: pair[0], to: pair[1] })
        };
        (nodes[nodes.len() - 1], nodes.windows(2).map(hop).collect())
    }

    #[test]
    fn paths_branch_where_they_differ() {
        let end_of = |leg: PathSegment| match leg {
            PathSegment::Link(hop) => hop.to,
            _ => unreachable!("the path has only links"),
        };
        let ways = [way(&[0, 5, 6, 1]), way(&[0, 5, 7, 2]), way(&[0, 5, 6, 3])];
        let found: Vec<_> = branches(&ways, false, end_of)
            .into_iter()
            .map(|branch| (branch.of, branch.to, branch.legs.len()))
            .collect();
        let expected = [(None, 5, 1), (Some(0), 6, 1), (Some(1), 1, 1), (Some(1), 3, 1), (Some(0), 2, 2)];
        assert_eq!(found, expected);
    }
}
