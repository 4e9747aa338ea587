//! The ways of IP packets: shortest paths over links that carry frames and over circuits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::topology::{CircuitPath, Hop, Leg, LinkEnds, NodeId, reversed};

/// What packets may take. A way is as long as the links in it, those of circuits included.
pub(crate) struct Ways {
    /// Whether a node passes packets on.
    forwards: Vec<bool>,
    /// Legs that begin at each node.
    at: Vec<Vec<Step>>,
    /// Those of them that lead from a node that passes packets on to another: of many thousand hosts there are few.
    inner: Vec<Vec<Step>>,
}

#[derive(Clone)]
struct Step {
    leg: Leg,
    to: NodeId,
    /// Links of the leg. Lists of them compare as ways do: the one that comes earlier in the file first.
    links: Vec<usize>,
}

/// The beginning of a way. Beginnings compare as ways do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Begun {
    links: Vec<usize>,
    met: Vec<NodeId>,
    legs: Vec<Leg>,
    /// Whether it takes the circuit that is wanted.
    over: bool,
}

impl Ways {
    pub(crate) fn new(forwards: Vec<bool>, links: &[LinkEnds], circuits: &[Option<CircuitPath>]) -> Self {
        let mut at: Vec<Vec<Step>> = forwards.iter().map(|_| Vec::new()).collect();
        for (index, link) in links.iter().enumerate().filter(|(_, link)| !link.medium.is_atm()) {
            for [from, to] in [link.ends, [link.ends[1], link.ends[0]]] {
                let leg = Leg::Link(Hop { link: index, from, to });
                at[from].push(Step { leg, to, links: vec![index] });
            }
        }
        for (circuit, path) in circuits.iter().enumerate() {
            let Some(path) = path else { continue };
            for forward in [true, false] {
                let route = if forward { path.route.clone() } else { reversed(&path.route) };
                let (from, to) = (route[0].from, route[route.len() - 1].to);
                let links = route.iter().map(|hop| hop.link).collect();
                at[from].push(Step { leg: Leg::Circuit { circuit, forward }, to, links });
            }
        }
        let to_others = |node: usize| {
            let steps = at[node].iter().filter(|step| forwards[node] && forwards[step.to]);
            steps.cloned().collect()
        };
        let inner = (0..at.len()).map(to_others).collect();
        Self { forwards, at, inner }
    }

    /// The shortest way; among several, the one whose links, from the first on, come earliest in the file, and of circuits
    /// over the same links the first.
    pub(crate) fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<Leg>> {
        let distance = self.inner_distances(to);
        let mut legs = Vec::new();
        let mut node = from;
        while node != to {
            // Legs both ways are alike, so what is as far as it should be from the end leads there.
            let steps = if self.forwards[node] { &self.inner[node] } else { &self.at[node] };
            let onward = steps.iter().filter(|step| step.to != to && self.forwards[step.to]).cloned();
            let ends = self.at[to].iter().filter(|step| step.to == node).map(|step| {
                let links = step.links.iter().rev().copied().collect();
                Step { leg: step.leg.back(), to, links }
            });
            let steps = onward
                .chain(ends)
                .filter_map(|step| Some((distance.get(&step.to)? + step.links.len(), step)));
            let (_, step) =
                steps.min_by(|(one, this), (two, other)| (one, &this.links).cmp(&(two, &other.links)))?;
            legs.push(step.leg);
            node = step.to;
        }
        Some(legs)
    }

    /// Links from the nodes that pass packets on to `to` on the shortest way.
    fn inner_distances(&self, to: NodeId) -> BTreeMap<NodeId, usize> {
        let mut distance = BTreeMap::new();
        let mut next = BinaryHeap::from([Reverse((0, to))]);
        while let Some(Reverse((length, node))) = next.pop() {
            if distance.contains_key(&node) {
                continue;
            }
            distance.insert(node, length);
            let steps = if node == to { &self.at[node] } else { &self.inner[node] };
            let onward = steps.iter().filter(|step| self.forwards[step.to]);
            next.extend(onward.map(|step| Reverse((length + step.links.len(), step.to))));
        }
        distance
    }

    /// The shortest way that takes this circuit, in either direction, and meets no node twice; among several as in
    /// [`Ways::path`]. `None` also where it is not found within a great number of tries.
    pub(crate) fn path_over(&self, circuit: usize, from: NodeId, to: NodeId) -> Option<Vec<Leg>> {
        const TRIES: usize = 20_000;
        let takes = |step: &Step| matches!(step.leg, Leg::Circuit { circuit: one, .. } if one == circuit);
        let to_end = self.distances(to);
        let to_each_end: Vec<(Vec<Option<usize>>, usize)> = (self.at.iter().flatten())
            .filter(|step| takes(step))
            .filter_map(|step| {
                let near = self.at[step.to].iter().find(|back| back.leg == step.leg.back())?.to;
                Some((self.distances(near), step.links.len() + to_end[step.to]?))
            })
            .collect();
        // Best first: what is left cannot be shorter than the shortest way to the circuit, over it, and on.
        let left = |node: NodeId, over: bool| match over {
            true => to_end[node],
            false => to_each_end.iter().filter_map(|(near, rest)| Some(near[node]? + rest)).min(),
        };
        let start = Begun { links: Vec::new(), met: vec![from], legs: Vec::new(), over: false };
        let mut begun = BinaryHeap::from([Reverse((left(from, false)?, start))]);
        for _ in 0..TRIES {
            let Reverse((_, way)) = begun.pop()?;
            let here = *way.met.last().expect("a way begins somewhere");
            if here == to {
                // A way that comes there without the circuit leads nowhere else.
                if way.over {
                    return Some(way.legs);
                }
                continue;
            }
            for step in &self.at[here] {
                if !(step.to == to || self.forwards[step.to]) || way.met.contains(&step.to) {
                    continue;
                }
                let mut longer = way.clone();
                longer.links.extend(&step.links);
                longer.met.push(step.to);
                longer.legs.push(step.leg);
                longer.over |= takes(step);
                if let Some(left) = left(step.to, longer.over) {
                    begun.push(Reverse((longer.links.len() + left, longer)));
                }
            }
        }
        None
    }

    /// Links from each node to `to` on the shortest way.
    fn distances(&self, to: NodeId) -> Vec<Option<usize>> {
        let mut distance = vec![None; self.at.len()];
        let mut next = BinaryHeap::from([Reverse((0, to))]);
        while let Some(Reverse((length, node))) = next.pop() {
            if distance[node].is_some() {
                continue;
            }
            distance[node] = Some(length);
            if node == to || self.forwards[node] {
                next.extend(self.at[node].iter().map(|step| Reverse((length + step.links.len(), step.to))));
            }
        }
        distance
    }
}
