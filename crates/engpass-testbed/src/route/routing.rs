//! The path segments that IP packets may take: links that carry frames, circuits, and tunnels.

use std::collections::BTreeMap;

use engpass_model::router::Router;

use crate::topology::{BondPath, CircuitPath, Hop, LinkEnds, NodeId, PathSegment, TunnelPath, reversed};

/// How a node treats packets for other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The node does not forward them.
    None,
    /// The node forwards them, always on the first of several equally short paths.
    First,
    /// The node forwards them, and a policy chooses among equally short paths.
    Choice,
}

impl Passage {
    /// Returns the passage of a router. A router with errors in its table (`None`) counts as one that takes the first path.
    pub(crate) fn of(router: Option<&Router>) -> Self {
        match router {
            Some(router) if router.ecmp.config().chooses() => Self::Choice,
            _ => Self::First,
        }
    }
}

/// All path segments that packets may take. The length of a path is its number of links, those inside circuits and tunnels included. Among paths with
/// equally many links, the one with the most tunnels is the shortest.
pub(crate) struct RoutingGraph {
    passages: Vec<Passage>,
    /// Path segments that begin at each node, in the order of their links in the file.
    pub(super) at: Vec<Vec<Step>>,
    /// Nodes that choose among the links of a bond, each with these links in the order of the bond.
    bundles: Vec<(NodeId, Vec<usize>)>,
    /// For each node that forwards packets, the indices in `at` of the segments to others that do. There are few of them even with many thousand hosts.
    pub(super) inner: Vec<Vec<usize>>,
}

/// A path segment that begins at a node.
pub(super) struct Step {
    pub(super) leg: PathSegment,
    pub(super) to: NodeId,
    pub(super) links: Vec<usize>,
    /// Length of the segment: `LINK` for each link, less its tunnel depth.
    pub(super) length: usize,
    /// Index of the reverse step in the list of the node `to`.
    pub(super) back: usize,
}

/// Length of a link. It exceeds the number of tunnels on any path, so tunnels only break ties.
const LINK: usize = 1 << 24;

impl RoutingGraph {
    pub(crate) fn new<'t>(
        passages: Vec<Passage>,
        links: &[LinkEnds],
        circuits: &[Option<CircuitPath>],
        tunnels: impl IntoIterator<Item = (usize, &'t TunnelPath)>,
    ) -> Self {
        let step = |leg: PathSegment, to: NodeId, links: Vec<usize>, tunnels: usize| {
            let length = links.len() * LINK - tunnels;
            Step { leg, to, links, length, back: 0 }
        };
        let mut at: Vec<Vec<Step>> = passages.iter().map(|_| Vec::new()).collect();
        for (index, link) in links.iter().enumerate().filter(|(_, link)| !link.medium.is_atm()) {
            for [from, to] in [link.ends, [link.ends[1], link.ends[0]]] {
                let leg = PathSegment::Link(Hop { link: index, from, to });
                at[from].push(step(leg, to, vec![index], 0));
            }
        }
        for (circuit, path) in circuits.iter().enumerate() {
            let Some(path) = path else { continue };
            for forward in [true, false] {
                let route = if forward { path.route.clone() } else { reversed(&path.route) };
                let (from, to) = (route[0].from, route[route.len() - 1].to);
                let links = route.iter().map(|hop| hop.link).collect();
                at[from].push(step(PathSegment::Circuit { circuit, forward }, to, links, 0));
            }
        }
        for (tunnel, path) in tunnels {
            for forward in [true, false] {
                let [from, to] = path.from_to(forward);
                let links = path.way(forward).route.iter().map(|hop| hop.link).collect();
                at[from].push(step(PathSegment::Tunnel { tunnel, forward }, to, links, path.depth));
            }
        }
        // The sort is stable: circuits over the same links keep their order.
        at.iter_mut().for_each(|steps| steps.sort_by(|one, other| one.links.cmp(&other.links)));
        let places: BTreeMap<PathSegment, usize> = at
            .iter()
            .flat_map(|steps| steps.iter().enumerate().map(|(place, step)| (step.leg, place)))
            .collect();
        at.iter_mut().flatten().for_each(|step| step.back = places[&step.leg.back()]);
        let passes = |node: NodeId| passages[node] != Passage::None;
        let to_others = |node: NodeId| {
            let places = 0..at[node].len();
            places.filter(|place| passes(node) && passes(at[node][*place].to)).collect()
        };
        let inner = (0..at.len()).map(to_others).collect();
        Self { passages, at, bundles: Vec::new(), inner }
    }

    /// Adds the bonds of the nodes.
    pub(crate) fn with_bonds(self, bonds: &[BondPath]) -> Self {
        let bundles = bundles(bonds).map(|(node, links)| (node, links.to_vec())).collect();
        Self { bundles, ..self }
    }

    /// Returns true if a node forwards packets.
    pub(super) fn passes(&self, node: NodeId) -> bool {
        self.passages[node] != Passage::None
    }

    /// Sorts the steps of a group so that those that packets may take at the node come first. Returns the steps and the number of the former.
    pub(super) fn taken<'s>(&self, node: NodeId, mut group: Vec<&'s Step>) -> (Vec<&'s Step>, usize) {
        if self.chooses(node) {
            let all = group.len();
            return (group, all);
        }
        let first = group.first().map(|step| step.links.as_slice());
        let bundle = self
            .bundles
            .iter()
            .find(|(at, links)| *at == node && matches!(first, Some([link]) if links.contains(link)));
        let Some((_, links)) = bundle else { return (group, 1) };
        let place = |step: &&Step| match (&step.leg, &step.links[..]) {
            (PathSegment::Link(_), [link]) => {
                links.iter().position(|member| member == link).unwrap_or(links.len())
            }
            _ => links.len(),
        };
        group.sort_by_key(place);
        let members = group.iter().filter(|step| place(step) < links.len()).count();
        (group, members)
    }

    /// Returns true if a policy chooses among equally short paths at a node.
    pub(super) fn chooses(&self, node: NodeId) -> bool {
        self.passages[node] == Passage::Choice
    }
}

/// Returns the groups of links among which nodes choose because of bonds: a node, and the links in order. If a bond uses one member at a time, the node at the
/// other end chooses as well, unless it has a bond of its own on these links.
fn bundles(bonds: &[BondPath]) -> impl Iterator<Item = (NodeId, &[usize])> {
    bonds.iter().flat_map(|path| {
        let both = path.config.mode.config().is_single()
            && !bonds.iter().any(|other| other.is_at(path.peer, path.links[0]));
        let peer = both.then_some((path.peer, path.links.as_slice()));
        [(path.node, path.links.as_slice())].into_iter().chain(peer)
    })
}
