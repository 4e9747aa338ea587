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
    /// Those that lead from a node that passes packets on to another: what a way consists of, but for its ends. A testbed has few of
    /// them and many hosts.
    inner: Vec<Inner>,
    /// Place of each node in `inner`, if it has one.
    place: Vec<Option<usize>>,
}

/// A node that passes packets on.
struct Inner {
    node: NodeId,
    /// Places in `at` of the legs to others of its kind, and the places of those in [`Ways::inner`].
    steps: Vec<(usize, usize)>,
}

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
        let mut place = vec![None; at.len()];
        let nodes: Vec<NodeId> = (0..at.len()).filter(|node| forwards[*node]).collect();
        for (index, node) in nodes.iter().enumerate() {
            place[*node] = Some(index);
        }
        let steps = |node: NodeId| {
            let steps = at[node].iter().enumerate();
            steps.filter_map(|(step, leads)| Some((step, place[leads.to]?))).collect()
        };
        let inner = nodes.into_iter().map(|node| Inner { node, steps: steps(node) }).collect();
        Self { forwards, at, inner, place }
    }

    /// The shortest way; among several, the one whose links, from the first on, come earliest in the file, and of circuits
    /// over the same links the first.
    pub(crate) fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<Leg>> {
        let distance = self.distances(to);
        let mut legs = Vec::new();
        let mut node = from;
        while node != to {
            let left = distance.from(node)?;
            // Legs both ways are alike, so what is as far as it should be from the end leads there.
            let nearer =
                |step: &Step| distance.after(step).is_some_and(|after| after + step.links.len() == left);
            let (leg, next) = match self.place[node] {
                None => {
                    let steps = self.at[node].iter().filter(|step| nearer(step));
                    let step = steps.min_by(|one, other| one.links.cmp(&other.links))?;
                    (step.leg, step.to)
                }
                Some(place) => {
                    let steps = self.inner[place].steps.iter().map(|(step, _)| &self.at[node][*step]);
                    let inner = steps.filter(|step| nearer(step));
                    let inner = inner.min_by(|one, other| one.links.cmp(&other.links));
                    // A host at the end is looked at from there: it has few legs.
                    let last = self.at[to].iter().filter(|step| self.place[to].is_none() && step.to == node);
                    let last = last.filter(|step| step.links.len() == left);
                    let last = last.min_by(|one, other| one.links.iter().rev().cmp(other.links.iter().rev()));
                    match (inner, last) {
                        (Some(step), Some(back)) if step.links.iter().lt(back.links.iter().rev()) => {
                            (step.leg, step.to)
                        }
                        (_, Some(back)) => (back.leg.back(), to),
                        (Some(step), None) => (step.leg, step.to),
                        (None, None) => return None,
                    }
                }
            };
            legs.push(leg);
            node = next;
        }
        Some(legs)
    }

    /// The shortest way that takes this circuit, in either direction, and meets no node twice; among several as in
    /// [`Ways::path`]. `None` also where it is not found within a great number of tries.
    pub(crate) fn path_over(&self, circuit: usize, from: NodeId, to: NodeId) -> Option<Vec<Leg>> {
        const TRIES: usize = 20_000;
        let takes = |step: &Step| matches!(step.leg, Leg::Circuit { circuit: one, .. } if one == circuit);
        let to_end = self.distances(to);
        let to_each_end: Vec<(Distances<'_>, usize)> = (self.at.iter().flatten())
            .filter(|step| takes(step))
            .filter_map(|step| {
                let near = self.at[step.to].iter().find(|back| back.leg == step.leg.back())?.to;
                Some((self.distances(near), step.links.len() + to_end.from(step.to)?))
            })
            .collect();
        // Best first: what is left cannot be shorter than the shortest way to the circuit, over it, and on.
        let left = |node: NodeId, over: bool| match over {
            true => to_end.from(node),
            false => to_each_end.iter().filter_map(|(near, rest)| Some(near.from(node)? + rest)).min(),
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

    /// How far it is to `to`.
    fn distances(&self, to: NodeId) -> Distances<'_> {
        let mut inner = vec![None; self.inner.len()];
        let mut next = BinaryHeap::new();
        match self.place[to] {
            Some(place) => next.push(Reverse((0, place))),
            None => {
                let first =
                    self.at[to].iter().filter_map(|step| Some((step.links.len(), self.place[step.to]?)));
                next.extend(first.map(Reverse));
            }
        }
        while let Some(Reverse((length, place))) = next.pop() {
            if inner[place].is_some() {
                continue;
            }
            inner[place] = Some(length);
            let Inner { node, steps } = &self.inner[place];
            let further = steps.iter().map(|(step, to)| (length + self.at[*node][*step].links.len(), *to));
            next.extend(further.map(Reverse));
        }
        Distances { ways: self, to, inner }
    }
}

/// Links to one node on the shortest way.
struct Distances<'a> {
    ways: &'a Ways,
    to: NodeId,
    /// From each node that passes packets on.
    inner: Vec<Option<usize>>,
}

impl Distances<'_> {
    /// From any node, if it leads there.
    fn from(&self, node: NodeId) -> Option<usize> {
        match self.ways.place[node] {
            _ if node == self.to => Some(0),
            Some(place) => self.inner[place],
            None => {
                let ways = self.ways.at[node].iter();
                ways.filter_map(|step| Some(step.links.len() + self.after(step)?)).min()
            }
        }
    }

    /// From where a leg leads, unless nothing goes on there.
    fn after(&self, step: &Step) -> Option<usize> {
        match self.ways.place[step.to] {
            _ if step.to == self.to => Some(0),
            Some(place) => self.inner[place],
            None => None,
        }
    }
}
