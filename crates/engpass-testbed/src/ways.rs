//! The ways of IP packets: shortest paths over links that carry frames and over circuits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::topology::{CircuitPath, Hop, Leg, LinkEnds, NodeId, reversed};

/// What packets may take. A way is as long as the links in it, those of circuits included.
pub(crate) struct Ways {
    /// Whether a node passes packets on.
    forwards: Vec<bool>,
    /// Legs that begin at each node.
    at: Vec<Vec<Step>>,
}

struct Step {
    leg: Leg,
    to: NodeId,
    /// Links of the leg. Lists of them compare as ways do: the one that comes earlier in the file first.
    links: Vec<usize>,
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
        Self { forwards, at }
    }

    /// The shortest way; among several, the one whose links, from the first on, come earliest in the file, and of circuits
    /// over the same links the first.
    pub(crate) fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<Leg>> {
        let distance = self.distances(to);
        let mut legs = Vec::new();
        let mut node = from;
        while node != to {
            let left = distance[node]?;
            // Legs both ways are alike, so what is as far as it should be from the end leads there.
            let nearer = (self.at[node].iter())
                .filter(|step| step.to == to || self.forwards[step.to])
                .filter(|step| distance[step.to].is_some_and(|after| after + step.links.len() == left));
            let step = nearer.min_by(|one, other| one.links.cmp(&other.links))?;
            legs.push(step.leg);
            node = step.to;
        }
        Some(legs)
    }

    /// The shortest way that takes this circuit, in either direction.
    pub(crate) fn path_over(&self, circuit: usize, from: NodeId, to: NodeId) -> Option<Vec<Leg>> {
        let mut best: Option<(usize, Vec<Leg>)> = None;
        for (start, step) in
            self.at.iter().enumerate().flat_map(|(start, steps)| steps.iter().map(move |step| (start, step)))
        {
            if !matches!(step.leg, Leg::Circuit { circuit: taken, .. } if taken == circuit)
                || !(start == from || self.forwards[start])
                || !(step.to == to || self.forwards[step.to])
            {
                continue;
            }
            let (Some(before), Some(after)) = (self.path(from, start), self.path(step.to, to)) else {
                continue;
            };
            let legs: Vec<Leg> = before.into_iter().chain([step.leg]).chain(after).collect();
            let (length, simple) = self.measure(from, &legs);
            if simple && best.as_ref().is_none_or(|(least, _)| length < *least) {
                best = Some((length, legs));
            }
        }
        best.map(|(_, legs)| legs)
    }

    /// Links of a way, and whether it meets no node twice.
    fn measure(&self, from: NodeId, legs: &[Leg]) -> (usize, bool) {
        let mut length = 0;
        let mut met = vec![from];
        for leg in legs {
            let here = *met.last().expect("it begins somewhere");
            let step = self.at[here].iter().find(|step| step.leg == *leg).expect("a way is made of steps");
            length += step.links.len();
            if met.contains(&step.to) {
                return (length, false);
            }
            met.push(step.to);
        }
        (length, true)
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
