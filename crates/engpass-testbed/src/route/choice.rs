//! The choice that a node makes among several path segments.

use engpass_model::forward::{Forward, Member};

use crate::testbed::Testbed;
use crate::topology::{Fan, NodeId, NodeKind, PathSegment, Topology};

/// The choice of a node among several path segments, with all links up.
pub struct Choice {
    /// The path segments as members of the policy, in the same order.
    pub members: Vec<Member>,
    /// The policy of the router, or the mode of the bond.
    pub policy: Box<dyn Forward>,
    /// Index of the bond that chooses; `None` if a router does.
    pub bond: Option<usize>,
}

/// Returns the choice of a node among the path segments `legs` of a [`Fan`], at least two.
pub fn choice(testbed: &Testbed, topology: &Topology, node: NodeId, legs: &[PathSegment]) -> Choice {
    if let Some(bond) = topology.bond_at(node, legs[0]) {
        let policy = topology.bonds[bond].config.policy();
        return Choice { members: vec![Member::of_weight(1); legs.len()], policy, bond: Some(bond) };
    }
    let NodeKind::Router(router) = topology.kind(node) else {
        unreachable!("only routers and bonds choose a path")
    };
    let ecmp = &testbed.routers[router].ecmp;
    let member = |leg: &PathSegment| {
        let link = topology.first_hop(*leg).link;
        Member::of_weight(ecmp.weight(&topology.links[link].name))
    };
    Choice { members: legs.iter().map(member).collect(), policy: ecmp.config().build(), bond: None }
}

/// Returns the last bytes of the source and destination MAC addresses of frames on the path segment `leg`. The source is the transmitter with number
/// `framed_at` at the last host or router. The destination is the interface of the next host or router. Switches take the first of several segments,
/// because all lead to the same interface.
pub fn macs(topology: &Topology, fan: &Fan, framed_at: usize, leg: PathSegment) -> [u8; 2] {
    let mut hop = topology.last_hop(leg);
    while let (NodeKind::Switch(_), Some(onward)) = (topology.kind(hop.to), fan.legs_at(hop.to).first()) {
        hop = topology.last_hop(*onward);
    }
    [framed_at, topology.port_of(&hop.back())].map(|port| topology.hardware_address(port)[5])
}
