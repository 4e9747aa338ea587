//! Paths between all pairs of hosts, with or without traffic in the file.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

use engpass_model::source::Traffic;
use engpass_model::switch::Switch;

use super::{Passage, RoutingGraph, narrowest};
use crate::testbed::Testbed;
use crate::topology::{Fan, FlowPath, IcmpWay, NodeId, NodeKind, PathSegment, Topology};

/// The next hops of packets from one node towards one interface of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The host or router that sends.
    pub at: NodeId,
    /// The last link and the receiving host at its end.
    pub to: (usize, NodeId),
    /// The next hops, in the order of their links in the file. Only a router with a policy has several.
    pub hops: Vec<NextHop>,
}

/// A next hop of IP packets, behind any number of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The link over which the packets leave the node.
    pub over: usize,
    /// The link over which the next hop receives, and that router. One of several next hops may be the receiving host itself.
    pub via: (usize, NodeId),
    /// Weight of the next hop in the policy.
    pub weight: u32,
}

impl Topology {
    /// Returns the next hops of all hosts and routers towards every link end at a host that carries frames: the first routers on the shortest paths over links
    /// with frames. Hosts, switches and routers without a policy take the first path in the order of the file. A node whose only next hop is the receiver
    /// itself has no entry. `testbed` must be the testbed of this topology.
    pub fn gateways(&self, testbed: &Testbed) -> Vec<Gateway> {
        let passages = (0..self.nodes.len()).map(|node| match self.kind(node) {
            NodeKind::Host(_) => Passage::None,
            NodeKind::Switch(_) => Passage::First,
            NodeKind::Router(router) => Passage::of(Some(&testbed.routers[router])),
        });
        let ways = RoutingGraph::new(passages.collect(), &self.links, &[], []);
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
                // A switch uses a single link towards the target.
                let beyond = |(_, node): &(usize, NodeId)| {
                    let passes = *node != target && !is_router(*node);
                    passes.then(|| legs(*node).first().copied())?
                };
                for sender in senders.iter().copied().filter(|node| *node != target) {
                    let hop = |leg| {
                        let via = successors(Some(leg), beyond)
                            .last()
                            .expect("`successors` yields the first segment");
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

    /// Returns the path between every ordered pair of hosts that can reach each other, sorted by sender, then by receiver. Each is named `FROM to TO`.
    ///
    /// The path is that of the first traffic between the two hosts, traffic in the same direction first. Without traffic it is the first circuit
    /// between them, else the shortest path with the choices of the policies. Each path includes the paths of ICMP messages from its routers, even if
    /// nothing discovers the path MTU. `testbed` must be the testbed of this topology.
    pub fn between_hosts(&self, testbed: &Testbed) -> Vec<FlowPath> {
        let passage = |node| match self.kind(node) {
            NodeKind::Host(_) => Passage::None,
            NodeKind::Switch(switch) => match testbed.switches[switch] {
                Switch::Atm(_) => Passage::None,
                Switch::Ethernet(_) => Passage::First,
            },
            NodeKind::Router(router) => Passage::of(Some(&testbed.routers[router])),
        };
        // The circuits behind these belong to generators and carry only their cells.
        let declared: Vec<_> = self.circuits.iter().take(testbed.circuits.len()).cloned().map(Some).collect();
        let tunnels = self.tunnels.iter().enumerate().filter(|(_, path)| path.is_up);
        let ways =
            RoutingGraph::new((0..self.nodes.len()).map(passage).collect(), &self.links, &declared, tunnels)
                .with_bonds(&self.bonds);
        let mut known: BTreeMap<(NodeId, NodeId), Way> = BTreeMap::new();
        for (flow, traffic) in self.flows.iter().zip(testbed.traffic.values()) {
            // Multicast packets never have a choice among paths, but other packets may have one. Therefore the path of multicast traffic is not reused.
            if traffic.cells().is_none() && !matches!(traffic, Traffic::Multicast(_)) {
                let way = || Way { legs: flow.legs.clone(), fans: flow.fans.clone() };
                known.entry((flow.from, flow.to)).or_insert_with(way);
            }
        }
        let mut circuits: BTreeMap<(NodeId, NodeId), PathSegment> = BTreeMap::new();
        for (circuit, path) in declared.iter().flatten().enumerate() {
            let (from, to) = (path.route[0].from, path.route[path.route.len() - 1].to);
            circuits.entry((from, to)).or_insert(PathSegment::Circuit { circuit, forward: true });
            circuits.entry((to, from)).or_insert(PathSegment::Circuit { circuit, forward: false });
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

    /// Returns the paths of ICMP messages about packets of a flow. `known` caches them by router and host.
    fn messages_about(
        &self,
        testbed: &Testbed,
        ways: &RoutingGraph,
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
            [PathSegment::Circuit { circuit, forward }] => (Some(circuit), forward),
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
            path_mtu: path_mtu.expect("a path has a segment"),
            legs,
            fans,
            discovers_mtu: false,
            icmp: Box::default(),
            first_source: 0,
            cells: None,
            branches: Box::default(),
            members: Box::default(),
            group: None,
        }
    }
}

fn only_link(leg: PathSegment) -> (usize, NodeId) {
    match leg {
        PathSegment::Link(hop) => (hop.link, hop.to),
        PathSegment::Circuit { .. } | PathSegment::Tunnel { .. } => unreachable!("the path has only links"),
    }
}

/// Path of the packets between two hosts.
#[derive(Clone)]
struct Way {
    legs: Vec<PathSegment>,
    fans: Option<Box<[Fan; 2]>>,
}

impl Way {
    /// Returns the reversed path. `None` if policies choose, because then the reverse direction has choices that need not mirror this one.
    fn back(&self) -> Option<Self> {
        let legs = self.legs.iter().rev().map(|leg| leg.back()).collect();
        self.fans.is_none().then_some(Self { legs, fans: None })
    }
}
