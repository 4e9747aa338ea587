//! Multicast groups: their receivers, and the paths to them.

use engpass_model::source::Traffic;
use engpass_testbed::Testbed;
use engpass_testbed::topology::{Branch, NodeId, PathSegment};

use crate::membership::has_members;

/// A receiver of multicast traffic: the traffic and the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiver {
    pub(crate) flow: usize,
    pub(crate) host: NodeId,
}

/// Returns the receivers of all multicast traffic with several receivers, or with receivers that join or leave, in the order of the file.
pub(crate) fn receivers(testbed: &Testbed, node: impl Fn(&str) -> NodeId) -> Vec<Receiver> {
    let mut all = Vec::new();
    for (flow, (name, traffic)) in testbed.traffic.iter().enumerate() {
        if let Traffic::Multicast(config) = traffic
            && (config.to.len() > 1 || has_members(testbed, name))
        {
            all.extend(config.to.iter().map(|to| Receiver { flow, host: node(to) }));
        }
    }
    all
}

/// Builds the tree of these paths to receivers. A branch consists of the path segments with the same set of receivers behind them; if `prunes`, the first segment
/// is a branch of its own.
pub(crate) fn tree(
    ways: &[Vec<PathSegment>],
    prunes: bool,
    end_of: impl Fn(PathSegment) -> NodeId,
) -> Box<[Branch]> {
    let behind = |way: &[PathSegment]| -> Vec<usize> {
        (0..ways.len()).filter(|receiver| ways[*receiver].starts_with(way)).collect()
    };
    let mut found: Vec<(Vec<usize>, Branch)> = Vec::new();
    let mut first: Vec<usize> = Vec::new();
    for way in ways {
        let mut of = None;
        for length in 1..=way.len() {
            let receivers = behind(&way[..length]);
            let leg = way[length - 1];
            // Receivers whose paths have diverged never share a branch again.
            let is_own = |place: &usize| {
                found[*place].0 == receivers && first.contains(place) == (prunes && length == 1)
            };
            let known = (0..found.len()).find(is_own);
            let place = known.unwrap_or_else(|| {
                found.push((receivers, Branch { of, to: end_of(leg), legs: Vec::new() }));
                first.extend((prunes && length == 1).then_some(found.len() - 1));
                found.len() - 1
            });
            let branch = &mut found[place].1;
            if !branch.legs.contains(&leg) {
                branch.legs.push(leg);
                branch.to = end_of(leg);
            }
            of = Some(place);
        }
    }
    // A branch comes before all that begin at its end; those that lead to earlier receivers come first.
    let key = |place: usize| {
        let mut firsts = vec![found[place].0[0]];
        let mut at = found[place].1.of;
        while let Some(before) = at {
            firsts.insert(0, found[before].0[0]);
            at = found[before].1.of;
        }
        firsts
    };
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|place| key(*place));
    let new =
        |old: usize| order.iter().position(|place| *place == old).expect("the order contains every branch");
    let branch = |place: &usize| {
        let Branch { of, to, legs } = found[*place].1.clone();
        Branch { of: of.map(new), to, legs }
    };
    order.iter().map(branch).collect()
}

/// Returns the path to every receiver of a tree, in the order of the tree.
pub(crate) fn ways_of(branches: &[Branch]) -> Vec<(NodeId, Vec<PathSegment>)> {
    let is_last = |place: &usize| branches.iter().all(|other| other.of != Some(*place));
    let way = |last: usize| {
        let (mut legs, mut at) = (Vec::new(), Some(last));
        while let Some(place) = at {
            legs = [branches[place].legs.clone(), legs].concat();
            at = branches[place].of;
        }
        (branches[last].to, legs)
    };
    (0..branches.len()).filter(is_last).map(way).collect()
}
