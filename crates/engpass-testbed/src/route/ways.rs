//! What IP packets may take: links that carry frames, circuits, and tunnels.

use std::collections::BTreeMap;

use engpass_model::router::Router;

use crate::topology::{BondPath, CircuitPath, Hop, Leg, LinkEnds, NodeId, TunnelPath, reversed};

/// What a node does with packets for other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// It does not pass them on.
    None,
    /// It passes them on, always on the first of several equally short ways.
    First,
    /// It passes them on, and a policy chooses among equally short ways.
    Choice,
}

impl Passage {
    /// The passage of a router. A router with errors in its table counts as one that always takes the first way.
    pub(crate) fn of(router: Option<&Router>) -> Self {
        match router {
            Some(router) if router.ecmp.config().chooses() => Self::Choice,
            _ => Self::First,
        }
    }
}

/// What packets may take. A way is as long as the links in it, those of circuits and tunnels included; of ways with as many links those with the
/// most tunnels are the shortest.
pub(crate) struct Ways {
    passages: Vec<Passage>,
    /// Legs that begin at each node, in the order of their links in the file.
    pub(super) at: Vec<Vec<Step>>,
    /// Where nodes choose among the members of a bond: the node, and the links in their order.
    bundles: Vec<(NodeId, Vec<usize>)>,
    /// Places in `at` of those that lead from a node that passes packets on to another: of many thousand hosts there are few.
    pub(super) inner: Vec<Vec<usize>>,
}

/// A leg that begins at a node.
pub(super) struct Step {
    pub(super) leg: Leg,
    pub(super) to: NodeId,
    /// Links of the leg.
    pub(super) links: Vec<usize>,
    /// How long it is.
    pub(super) length: usize,
    /// Place of the leg's other direction in the list of `to`.
    pub(super) back: usize,
}

/// Length of a link: more than there are tunnels on a way.
const LINK: usize = 1 << 24;

impl Ways {
    pub(crate) fn new<'t>(
        passages: Vec<Passage>,
        links: &[LinkEnds],
        circuits: &[Option<CircuitPath>],
        tunnels: impl IntoIterator<Item = (usize, &'t TunnelPath)>,
    ) -> Self {
        let step = |leg: Leg, to: NodeId, links: Vec<usize>, tunnels: usize| {
            let length = links.len() * LINK - tunnels;
            Step { leg, to, links, length, back: 0 }
        };
        let mut at: Vec<Vec<Step>> = passages.iter().map(|_| Vec::new()).collect();
        for (index, link) in links.iter().enumerate().filter(|(_, link)| !link.medium.is_atm()) {
            for [from, to] in [link.ends, [link.ends[1], link.ends[0]]] {
                let leg = Leg::Link(Hop { link: index, from, to });
                at[from].push(step(leg, to, vec![index], 0));
            }
        }
        for (circuit, path) in circuits.iter().enumerate() {
            let Some(path) = path else { continue };
            for forward in [true, false] {
                let route = if forward { path.route.clone() } else { reversed(&path.route) };
                let (from, to) = (route[0].from, route[route.len() - 1].to);
                let links = route.iter().map(|hop| hop.link).collect();
                at[from].push(step(Leg::Circuit { circuit, forward }, to, links, 0));
            }
        }
        for (tunnel, path) in tunnels {
            for forward in [true, false] {
                let [from, to] = path.from_to(forward);
                let links = path.way(forward).route.iter().map(|hop| hop.link).collect();
                at[from].push(step(Leg::Tunnel { tunnel, forward }, to, links, path.depth));
            }
        }
        // Of circuits over the same links the first comes first.
        at.iter_mut().for_each(|steps| steps.sort_by(|one, other| one.links.cmp(&other.links)));
        let places: BTreeMap<Leg, usize> = at
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

    /// The same where nodes have these bonds.
    pub(crate) fn with_bonds(self, bonds: &[BondPath]) -> Self {
        let bundles = bundles(bonds).map(|(node, links)| (node, links.to_vec())).collect();
        Self { bundles, ..self }
    }

    /// Whether a node passes packets on.
    pub(super) fn passes(&self, node: NodeId) -> bool {
        self.passages[node] != Passage::None
    }

    /// The steps of a group that packets may take at a node, and behind them those that they do not take; and how many they take.
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
            (Leg::Link(_), [link]) => links.iter().position(|member| member == link).unwrap_or(links.len()),
            _ => links.len(),
        };
        group.sort_by_key(place);
        let members = group.iter().filter(|step| place(step) < links.len()).count();
        (group, members)
    }

    /// Whether a policy chooses among equally short ways at a node.
    pub(super) fn chooses(&self, node: NodeId) -> bool {
        self.passages[node] == Passage::Choice
    }
}

/// The groups of links among which nodes choose for bonds: a node, and the links in their order. The other end of a bond of which one member
/// carries everything chooses, too, unless it has a bond of its own.
fn bundles(bonds: &[BondPath]) -> impl Iterator<Item = (NodeId, &[usize])> {
    bonds.iter().flat_map(|path| {
        let both = path.config.mode.config().is_single()
            && !bonds.iter().any(|other| other.is_at(path.peer, path.links[0]));
        let peer = both.then_some((path.peer, path.links.as_slice()));
        [(path.node, path.links.as_slice())].into_iter().chain(peer)
    })
}
