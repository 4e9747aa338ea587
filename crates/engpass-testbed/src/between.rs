//! The ways of packets between all hosts, whether or not the file has traffic there.

use std::collections::{BTreeMap, VecDeque};
use std::iter::successors;

use engpass_model::switch::Switch;

use crate::testbed::Testbed;
use crate::topology::{FlowPath, Leg, NodeId, NodeKind, Topology};
use crate::ways::Ways;

/// The router to which a node sends the packets for one end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The host or router that sends.
    pub at: NodeId,
    /// The link at which the receiving host is reached, and this host.
    pub to: (usize, NodeId),
    /// The link at which the router receives, and the router.
    pub via: (usize, NodeId),
}

impl Topology {
    /// The gateways of all hosts and routers towards every end of a link at a host: the first router on the shortest path over links that carry
    /// frames, ties by the order of the links in the file. Packets that meet no router on their path have none.
    pub fn gateways(&self) -> Vec<Gateway> {
        let mut at: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (index, link) in self.links.iter().enumerate().filter(|(_, link)| !link.medium.is_atm()) {
            link.ends.iter().for_each(|end| at[*end].push(index));
        }
        let other = |link: usize, node: NodeId| {
            let [one, two] = self.links[link].ends;
            if one == node { two } else { one }
        };
        let is_router = |node| matches!(self.kind(node), NodeKind::Router(_));
        let mut found = Vec::new();
        for (target, last) in (0..self.hosts).flat_map(|host| at[host].iter().map(move |link| (host, *link)))
        {
            // Breadth first from the receiver: the distance of every node from it, in links.
            let mut distance = vec![None; self.nodes.len()];
            let (first, mut queue) = (other(last, target), VecDeque::new());
            distance[target] = Some(0);
            distance[first] = Some(1);
            queue.push_back(first);
            while let Some(node) = queue.pop_front() {
                let onward = at[node].iter().filter(|_| node >= self.hosts).map(|link| other(*link, node));
                for next in onward {
                    if distance[next].is_none() {
                        distance[next] = distance[node].map(|links: usize| links + 1);
                        queue.push_back(next);
                    }
                }
            }
            let next_hop = |node: NodeId| {
                let closer = |link: &&usize| match other(**link, node) {
                    next if next == target => **link == last,
                    next => next >= self.hosts && distance[next].map(|links| links + 1) == distance[node],
                };
                at[node].iter().find(closer).map(|link| (*link, other(*link, node)))
            };
            let senders = (0..self.nodes.len()).filter(|node| *node < self.hosts || is_router(*node));
            for sender in senders.filter(|node| *node != target && distance[*node].is_some()) {
                let via =
                    successors(next_hop(sender), |(_, node)| (*node != target).then(|| next_hop(*node))?)
                        .find(|(_, node)| is_router(*node));
                found.extend(via.map(|via| Gateway { at: sender, to: (last, target), via }));
            }
        }
        found
    }

    /// The way of packets from every host to every other that they can reach, by sender, then by receiver; each is named `FROM to TO`.
    ///
    /// It is the one that the first traffic between the two takes, its own direction before the other; where there is none, the first
    /// circuit that joins them, and else the shortest way. `testbed` is the one that this is the topology of.
    pub fn between_hosts(&self, testbed: &Testbed) -> Vec<FlowPath> {
        let forwards = |node| match self.kind(node) {
            NodeKind::Host(_) => false,
            NodeKind::Switch(switch) => !matches!(testbed.switches[switch], Switch::Atm(_)),
            NodeKind::Router(_) => true,
        };
        // Those behind them are brought by generators, for their cells alone.
        let declared: Vec<_> = self.circuits.iter().take(testbed.circuits.len()).cloned().map(Some).collect();
        let ways = Ways::new((0..self.nodes.len()).map(forwards).collect(), &self.links, &declared);
        let mut known: BTreeMap<(NodeId, NodeId), Vec<Leg>> = BTreeMap::new();
        for (flow, traffic) in self.flows.iter().zip(testbed.traffic.values()) {
            if traffic.cells().is_none() {
                known.entry((flow.from, flow.to)).or_insert_with(|| flow.legs.clone());
            }
        }
        let mut circuits: BTreeMap<(NodeId, NodeId), Leg> = BTreeMap::new();
        for (circuit, path) in declared.iter().flatten().enumerate() {
            let (from, to) = (path.route[0].from, path.route[path.route.len() - 1].to);
            circuits.entry((from, to)).or_insert(Leg::Circuit { circuit, forward: true });
            circuits.entry((to, from)).or_insert(Leg::Circuit { circuit, forward: false });
        }
        let back = |legs: &Vec<Leg>| legs.iter().rev().map(|leg| leg.back()).collect();
        let pairs = (0..self.hosts).flat_map(|from| (0..self.hosts).map(move |to| (from, to)));
        pairs
            .filter(|(from, to)| from != to)
            .filter_map(|(from, to)| {
                let legs = (known.get(&(from, to)).cloned())
                    .or_else(|| known.get(&(to, from)).map(back))
                    .or_else(|| circuits.get(&(from, to)).map(|leg| vec![*leg]))
                    .or_else(|| ways.path(from, to))?;
                Some(self.way_over(from, to, legs))
            })
            .collect()
    }

    fn way_over(&self, from: NodeId, to: NodeId, legs: Vec<Leg>) -> FlowPath {
        let (circuit, forward) = match legs[..] {
            [Leg::Circuit { circuit, forward }] => (Some(circuit), forward),
            _ => (None, true),
        };
        let mtus = || legs.iter().map(|leg| self.mtu(*leg));
        FlowPath {
            name: format!("{} to {}", self.nodes[from], self.nodes[to]),
            from,
            to,
            circuit,
            forward,
            route: legs.iter().flat_map(|leg| self.hops(*leg)).collect(),
            mtu: mtus().next().expect("a way has a leg"),
            path_mtu: mtus().min().expect("a way has a leg"),
            legs,
            cells: None,
        }
    }
}
