//! Shortest paths over links that carry frames, over circuits and through tunnels (docs/model.md, "Forwarding", "Tunnels").

use std::collections::BTreeMap;

use engpass_model::forward::Ecmp;
use engpass_model::switch::Switch;
use engpass_testbed::Testbed;
use engpass_testbed::topology::{BondPath, CircuitPath, Fan, Hop, LinkEnds, NodeId, PathSegment, TunnelPath};

use crate::bond::bond_of;
use crate::cell::turned;
use crate::packet::leg_back;

/// The links, circuits and tunnels that packets may use.
pub(crate) struct Network<'a> {
    pub(crate) testbed: &'a Testbed,
    pub(crate) links: &'a [LinkEnds],
    /// The circuits of the file. Those created for generators carry only cells of generators.
    pub(crate) circuits: &'a [CircuitPath],
    /// Tunnels by index in the file. For outer packets it holds only the tunnel that carries them, if any.
    pub(crate) tunnels: BTreeMap<usize, &'a TunnelPath>,
    pub(crate) bonds: &'a [BondPath],
}

/// Length of a path: number of links, then the negated number of tunnels. The smallest is the best.
type Length = (usize, isize);

/// A path segment from a node.
struct Step {
    leg: PathSegment,
    to: NodeId,
    /// Its links in order.
    links: Vec<usize>,
    /// Nesting depth of a tunnel: one, plus the tunnels that carry it; 0 for other segments.
    tunnels: isize,
}

impl Step {
    /// Returns the length of a path that begins with this step. The argument is the length of the rest.
    pub(crate) fn before(&self, (links, tunnels): Length) -> Length {
        (self.links.len() + links, tunnels - self.tunnels)
    }
}

impl Network<'_> {
    fn nodes(&self) -> usize {
        self.testbed.hosts.len() + self.testbed.switches.len() + self.testbed.routers.len()
    }

    /// Returns true if a node forwards packets.
    fn passes(&self, node: NodeId) -> bool {
        let switch = node.checked_sub(self.testbed.hosts.len());
        switch.is_some_and(|switch| {
            let switch = self.testbed.switches.get_index(switch);
            !switch.is_some_and(|(_, switch)| matches!(switch, Switch::Atm(_)))
        })
    }

    /// Returns the links of a path segment in its direction.
    pub(crate) fn hops(&self, leg: PathSegment) -> Vec<Hop> {
        match leg {
            PathSegment::Link(hop) => vec![hop],
            PathSegment::Circuit { circuit, forward: true } => self.circuits[circuit].route.clone(),
            PathSegment::Circuit { circuit, forward: false } => {
                self.circuits[circuit].route.iter().rev().map(|hop| turned(*hop)).collect()
            }
            // The first path of its outer packets.
            PathSegment::Tunnel { tunnel, forward } => {
                self.tunnels[&tunnel].ways[usize::from(!forward)].route.clone()
            }
        }
    }

    /// Returns the MTU of a path segment in bytes.
    pub(crate) fn mtu(&self, leg: PathSegment) -> u64 {
        match leg {
            PathSegment::Link(hop) => self.links[hop.link].mtu,
            PathSegment::Circuit { circuit, .. } => self.circuits[circuit].mtu,
            PathSegment::Tunnel { tunnel, .. } => self.tunnels[&tunnel].mtu,
        }
    }

    /// Returns the path segments from a node in the order of their links. Circuits or tunnels over the same links keep their order.
    fn steps(&self, node: NodeId) -> Vec<Step> {
        let frames = self.links.iter().enumerate().filter(|(_, link)| !link.medium.is_atm());
        #[expect(
            clippy::redundant_closure,
            reason = "a constructor as a function would be a call into what is shared"
        )]
        let over_links = frames.flat_map(|(link, ends)| {
            let [one, other] = ends.ends;
            [Hop { link, from: one, to: other }, Hop { link, from: other, to: one }]
                .map(|hop| PathSegment::Link(hop))
        });
        let over_circuits = (0..self.circuits.len())
            .flat_map(|circuit| [true, false].map(|forward| PathSegment::Circuit { circuit, forward }));
        let over_tunnels = self.tunnels.keys();
        let over_tunnels = over_tunnels
            .flat_map(|&tunnel| [true, false].map(|forward| PathSegment::Tunnel { tunnel, forward }));
        let step = |leg: PathSegment| {
            let hops = self.hops(leg);
            let links = hops.iter().map(|hop| hop.link).collect();
            let tunnels = match leg {
                PathSegment::Tunnel { tunnel, .. } => self.tunnels[&tunnel].depth as isize,
                PathSegment::Link(_) | PathSegment::Circuit { .. } => 0,
            };
            (hops[0].from == node).then(|| Step { leg, to: hops[hops.len() - 1].to, links, tunnels })
        };
        let mut steps: Vec<Step> =
            over_links.chain(over_circuits).chain(over_tunnels).filter_map(step).collect();
        steps.sort_by(|one, other| one.links.cmp(&other.links));
        steps
    }

    /// Returns the lengths of the best paths from every node to `to`, through no host.
    fn distances(&self, to: NodeId) -> BTreeMap<NodeId, Length> {
        let mut distances = BTreeMap::from([(to, (0, 0))]);
        loop {
            let before = distances.clone();
            for node in (0..self.nodes()).filter(|node| *node != to) {
                let lengths = self.steps(node).into_iter().filter_map(|step| {
                    let passes = step.to == to || self.passes(step.to);
                    Some(step.before(*before.get(&step.to).filter(|_| passes)?))
                });
                if let Some(least) = lengths.min() {
                    distances.insert(node, least);
                }
            }
            if distances == before {
                return distances;
            }
        }
    }

    /// Returns the path segments that begin a best path from a node (fewest links, then most tunnels), in the order of the file.
    fn group(&self, node: NodeId, to: NodeId) -> Vec<(PathSegment, NodeId)> {
        let distances = self.distances(to);
        let begins = |step: &Step| {
            let passes = step.to == to || self.passes(step.to);
            passes && distances.get(&step.to).is_some_and(|left| step.before(*left) == distances[&node])
        };
        self.steps(node).into_iter().filter(begins).map(|step| (step.leg, step.to)).collect()
    }

    /// Returns the path that takes the first path segment at every node.
    pub(crate) fn path(&self, from: NodeId, to: NodeId) -> Vec<PathSegment> {
        let (mut legs, mut node) = (Vec::new(), from);
        while node != to {
            let (leg, next) = self.taken(node, to)[0];
            legs.push(leg);
            node = next;
        }
        legs
    }

    /// Returns the shortest path that takes a circuit, in either direction, and visits no node twice. Among equals it is the one whose links come
    /// first in the file.
    pub(crate) fn path_over(&self, circuit: usize, from: NodeId, to: NodeId) -> Vec<PathSegment> {
        // Length, links, nodes and path segments, compared in this order.
        let mut found = Vec::new();
        let mut begun = vec![((0, 0), Vec::new(), vec![from], Vec::new())];
        while let Some((length, links, met, legs)) = begun.pop() {
            let here = met[met.len() - 1];
            if here == to {
                let takes = |leg: &PathSegment| matches!(leg, PathSegment::Circuit { circuit: one, .. } if *one == circuit);
                if legs.iter().any(takes) {
                    found.push((length, links, met, legs));
                }
                continue;
            }
            for step in self.steps(here) {
                if (step.to == to || self.passes(step.to)) && !met.contains(&step.to) {
                    begun.push((
                        step.before(length),
                        [links.clone(), step.links].concat(),
                        [met.clone(), vec![step.to]].concat(),
                        [legs.clone(), vec![step.leg]].concat(),
                    ));
                }
            }
        }
        found.into_iter().min().expect("a path crosses the circuit").3
    }

    /// Returns true if a node is a router whose policy chooses.
    fn chooses(&self, node: NodeId) -> bool {
        let before = self.testbed.hosts.len() + self.testbed.switches.len();
        let router = node.checked_sub(before);
        router.is_some_and(|router| !matches!(self.testbed.routers[router].ecmp, Ecmp::First(_)))
    }

    /// Returns the path segments that packets may take from a node: all shortest ones if the policy of a router chooses, all members if a bond
    /// chooses, else the first one.
    fn taken(&self, node: NodeId, to: NodeId) -> Vec<(PathSegment, NodeId)> {
        let group = self.group(node, to);
        if self.chooses(node) {
            return group;
        }
        let Some(first) = group.first() else { return Vec::new() };
        let (PathSegment::Link(hop), to) = *first else { return vec![*first] };
        let Some(bond) = bond_of(self.bonds, self.links, node, hop.link) else { return vec![*first] };
        let links = self.bonds[bond].links.iter();
        links.map(|link| (PathSegment::Link(Hop { link: *link, from: node, to }), to)).collect()
    }

    /// Returns the path segments at every node that packets may reach.
    pub(crate) fn fan(&self, from: NodeId, to: NodeId) -> Fan {
        let mut at = BTreeMap::new();
        let mut come_to = vec![from];
        while let Some(node) = come_to.pop() {
            if node == to || at.contains_key(&node) {
                continue;
            }
            let group = self.taken(node, to);
            come_to.extend(group.iter().map(|(_, next)| *next));
            at.insert(node, group.into_iter().map(|(leg, _)| leg).collect());
        }
        Fan { at: at.into_iter().collect() }
    }

    /// Returns the paths in both directions if there is a choice in at least one of them.
    pub(crate) fn fans(&self, from: NodeId, to: NodeId) -> Option<Box<[Fan; 2]>> {
        let fans = [self.fan(from, to), self.fan(to, from)];
        let choice =
            fans.iter().flat_map(|fan| &fan.at).any(|(_, legs): &(NodeId, Vec<PathSegment>)| legs.len() > 1);
        choice.then(|| Box::new(fans))
    }

    /// Returns the path segments of a path, and of its reverse.
    pub(crate) fn there_and_back(&self, legs: &[PathSegment]) -> [Fan; 2] {
        let back: Vec<PathSegment> = legs.iter().map(|leg| leg_back(*leg)).collect();
        [legs, &back].map(|legs| {
            let begins = |leg: &PathSegment| (self.hops(*leg)[0].from, vec![*leg]);
            let at: BTreeMap<NodeId, Vec<PathSegment>> = legs.iter().map(begins).collect();
            Fan { at: at.into_iter().collect() }
        })
    }

    /// Returns true if there is a choice for outer packets of a tunnel, in either direction, or of one that carries it.
    pub(crate) fn chooses_within(&self, leg: PathSegment) -> bool {
        let PathSegment::Tunnel { tunnel, .. } = leg else { return false };
        let legs = self.tunnels[&tunnel].ways.iter().flat_map(|way| &way.fan.at);
        legs.into_iter().any(|(_, legs)| legs.len() > 1 || self.chooses_within(legs[0]))
    }
}
