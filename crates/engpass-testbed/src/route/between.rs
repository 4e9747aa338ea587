//! The ways of packets between all hosts, whether or not the file has traffic there.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

use engpass_model::source::Traffic;
use engpass_model::switch::Switch;

use super::{Passage, Ways, narrowest};
use crate::testbed::Testbed;
use crate::topology::{Fan, FlowPath, IcmpWay, Leg, NodeId, NodeKind, Topology};

/// The next hops of the packets that a node sends to one end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The host or router that sends.
    pub at: NodeId,
    /// The link at which the receiving host is reached, and this host.
    pub to: (usize, NodeId),
    /// The next hops, in the order of their links in the file: several where the policy of a router chooses among them.
    pub hops: Vec<NextHop>,
}

/// A next hop of IP packets, behind any number of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The link on which the packets leave.
    pub over: usize,
    /// The link at which the next router receives, and this router; among several hops it may be the receiving host.
    pub via: (usize, NodeId),
    /// Weight that the policy gives it.
    pub weight: u32,
}

impl Topology {
    /// The gateways of all hosts and routers towards every end of a link at a host: the first routers on the shortest ways over links that carry
    /// frames. Hosts and switches, and routers without a policy, take the first way in the order of the file. Packets that meet no router on their
    /// only way have no gateway. `testbed` is the one that this is the topology of.
    pub fn gateways(&self, testbed: &Testbed) -> Vec<Gateway> {
        let passages = (0..self.nodes.len()).map(|node| match self.kind(node) {
            NodeKind::Host(_) => Passage::None,
            NodeKind::Switch(_) => Passage::First,
            NodeKind::Router(router) => Passage::of(Some(&testbed.routers[router])),
        });
        let ways = Ways::new(passages.collect(), &self.links, &[], []);
        let is_router = |node| matches!(self.kind(node), NodeKind::Router(_));
        let senders: Vec<NodeId> =
            (0..self.nodes.len()).filter(|node| *node < self.hosts || is_router(*node)).collect();
        let mut found = Vec::new();
        for target in 0..self.hosts {
            let ends = self.links.iter().enumerate();
            for (last, _) in ends.filter(|(_, link)| !link.medium.is_atm() && link.ends.contains(&target)) {
                let towards = ways.towards(target, Some(last));
                let legs = |node: NodeId| {
                    let mut legs: Vec<(usize, NodeId)> =
                        towards.group(node).iter().map(|step| only_link(step.leg)).collect();
                    legs.truncate(if ways.chooses(node) { usize::MAX } else { 1 });
                    legs
                };
                // A switch has one leg.
                let beyond = |(_, node): &(usize, NodeId)| {
                    let passes = *node != target && !is_router(*node);
                    passes.then(|| legs(*node).first().copied())?
                };
                for sender in senders.iter().copied().filter(|node| *node != target) {
                    let hop = |leg| {
                        let via = successors(Some(leg), beyond).last().expect("it is the leg or behind it");
                        let weight = match self.kind(sender) {
                            NodeKind::Router(router) => {
                                testbed.routers[router].ecmp.weight(&self.links[leg.0].name)
                            }
                            _ => 1,
                        };
                        NextHop { over: leg.0, via, weight }
                    };
                    let hops: Vec<NextHop> = legs(sender).into_iter().map(hop).collect();
                    if hops.len() > 1 || hops.iter().any(|hop| hop.via.1 != target) {
                        found.push(Gateway { at: sender, to: (last, target), hops });
                    }
                }
            }
        }
        found
    }

    /// The way of packets from every host to every other that they can reach, by sender, then by receiver; each is named `FROM to TO`.
    ///
    /// It is the one that the first traffic between the two takes, its own direction before the other; where there is none, the first
    /// circuit that joins them, and else the shortest way, with the choices that policies have. Each has the ways of the messages that routers on it may send
    /// about its packets, whether they discover the path MTU or not. `testbed` is the one that this is the topology of.
    pub fn between_hosts(&self, testbed: &Testbed) -> Vec<FlowPath> {
        let passage = |node| match self.kind(node) {
            NodeKind::Host(_) => Passage::None,
            NodeKind::Switch(switch) => match testbed.switches[switch] {
                Switch::Atm(_) => Passage::None,
                Switch::Ethernet(_) => Passage::First,
            },
            NodeKind::Router(router) => Passage::of(Some(&testbed.routers[router])),
        };
        // Those behind them are brought by generators, for their cells alone.
        let declared: Vec<_> = self.circuits.iter().take(testbed.circuits.len()).cloned().map(Some).collect();
        let tunnels = self.tunnels.iter().enumerate().filter(|(_, path)| path.is_up);
        let ways = Ways::new((0..self.nodes.len()).map(passage).collect(), &self.links, &declared, tunnels)
            .with_bonds(&self.bonds);
        let mut known: BTreeMap<(NodeId, NodeId), Way> = BTreeMap::new();
        for (flow, traffic) in self.flows.iter().zip(testbed.traffic.values()) {
            // What goes to a group has no choice, and other packets have.
            if traffic.cells().is_none() && !matches!(traffic, Traffic::Multicast(_)) {
                let way = || Way { legs: flow.legs.clone(), fans: flow.fans.clone() };
                known.entry((flow.from, flow.to)).or_insert_with(way);
            }
        }
        let mut circuits: BTreeMap<(NodeId, NodeId), Leg> = BTreeMap::new();
        for (circuit, path) in declared.iter().flatten().enumerate() {
            let (from, to) = (path.route[0].from, path.route[path.route.len() - 1].to);
            circuits.entry((from, to)).or_insert(Leg::Circuit { circuit, forward: true });
            circuits.entry((to, from)).or_insert(Leg::Circuit { circuit, forward: false });
        }
        let mut messages = BTreeMap::new();
        let pairs = (0..self.hosts).flat_map(|from| (0..self.hosts).map(move |to| (from, to)));
        pairs
            .filter(|(from, to)| from != to)
            .filter_map(|(from, to)| {
                let way = (known.get(&(from, to)).cloned())
                    .or_else(|| known.get(&(to, from))?.back())
                    .or_else(|| Some(Way { legs: vec![*circuits.get(&(from, to))?], fans: None }))
                    .or_else(|| {
                        let reach = ways.reach(from, to)?;
                        let fans = ways.reach_back(&reach).map(|back| Box::new([reach.fan(), back.fan()]));
                        Some(Way { legs: reach.path(), fans })
                    })?;
                let flow = self.flow_over(from, to, way);
                let icmp = self.messages_about(testbed, &ways, &flow, &mut messages);
                Some(FlowPath { icmp, ..flow })
            })
            .collect()
    }

    /// The ways of the messages about packets of a flow; those from a router to a host are found once.
    fn messages_about(
        &self,
        testbed: &Testbed,
        ways: &Ways,
        flow: &FlowPath,
        known: &mut BTreeMap<(NodeId, NodeId), Option<IcmpWay>>,
    ) -> Box<[IcmpWay]> {
        let chosen = flow.fans.iter().flat_map(|fans| fans[0].legs());
        let nodes = flow.legs.iter().copied().chain(chosen).map(|leg| self.first_hop(leg).from);
        let routers: BTreeSet<NodeId> = nodes
            .filter(
                |node| matches!(self.kind(*node), NodeKind::Router(router) if testbed.routers[router].icmp),
            )
            .collect();
        let way = |router: NodeId| {
            let found = known.entry((router, flow.from)).or_insert_with(|| {
                let reach = ways.reach(router, flow.from)?;
                Some(IcmpWay::along(router, &reach))
            });
            found.clone()
        };
        routers.into_iter().filter_map(way).collect()
    }

    fn flow_over(&self, from: NodeId, to: NodeId, Way { legs, fans }: Way) -> FlowPath {
        let (circuit, forward) = match legs[..] {
            [Leg::Circuit { circuit, forward }] => (Some(circuit), forward),
            _ => (None, true),
        };
        let path_mtu = narrowest(&legs, fans.as_deref(), |leg| Some(self.mtu(leg)));
        FlowPath {
            name: format!("{} to {}", self.nodes[from], self.nodes[to]),
            from,
            to,
            circuit,
            forward,
            route: legs.iter().flat_map(|leg| self.hops(*leg)).collect(),
            mtu: self.mtu(legs[0]),
            path_mtu: path_mtu.expect("a way has a leg"),
            legs,
            fans,
            discovers_mtu: false,
            icmp: Box::default(),
            first_source: 0,
            cells: None,
            branches: Box::default(),
            group: None,
        }
    }
}

/// The link of a leg, and the node at its end.
fn only_link(leg: Leg) -> (usize, NodeId) {
    match leg {
        Leg::Link(hop) => (hop.link, hop.to),
        Leg::Circuit { .. } | Leg::Tunnel { .. } => unreachable!("there are links alone"),
    }
}

/// The way of the packets between two hosts.
#[derive(Clone)]
struct Way {
    legs: Vec<Leg>,
    fans: Option<Box<[Fan; 2]>>,
}

impl Way {
    /// The way of the packets that come back, where it is the reversed one: where policies choose it has choices of its own.
    fn back(&self) -> Option<Self> {
        let legs = self.legs.iter().rev().map(|leg| leg.back()).collect();
        self.fans.is_none().then_some(Self { legs, fans: None })
    }
}
