//! What a node chooses among where packets may take several legs, and how.

use engpass_model::forward::{Forward, Member};

use crate::testbed::Testbed;
use crate::topology::{Fan, Leg, NodeId, NodeKind, Topology};

/// The choice of a node among several legs, while everything is up.
pub struct Choice {
    /// The legs as the policy sees them, in their order.
    pub members: Vec<Member>,
    /// The policy of the router, or the mode of the bond.
    pub policy: Box<dyn Forward>,
    /// The bond, by index, if it is one that chooses.
    pub bond: Option<usize>,
}

/// The choice among these legs, several of a [`Fan`], at a node.
pub fn choice(testbed: &Testbed, topology: &Topology, node: NodeId, legs: &[Leg]) -> Choice {
    if let Some(bond) = topology.bond_at(node, legs[0]) {
        let policy = topology.bonds[bond].config.policy();
        return Choice { members: vec![Member::of_weight(1); legs.len()], policy, bond: Some(bond) };
    }
    let NodeKind::Router(router) = topology.kind(node) else { unreachable!("only routers and bonds choose") };
    let ecmp = &testbed.routers[router].ecmp;
    let member = |leg: &Leg| {
        let link = topology.first_hop(*leg).link;
        Member::of_weight(ecmp.weight(&topology.links[link].name))
    };
    Choice { members: legs.iter().map(member).collect(), policy: ecmp.config().build(), bond: None }
}

/// The last bytes of the addresses of frames on a leg: of the transmitter `framed_at`, by its number, at which the last host or router before has sent
/// them, and of the interface of the next one behind. Switches on the way take the first of several legs, which lead to the same interface.
pub fn macs(topology: &Topology, fan: &Fan, framed_at: usize, leg: Leg) -> [u8; 2] {
    let mut hop = topology.last_hop(leg);
    while let (NodeKind::Switch(_), Some(onward)) = (topology.kind(hop.to), fan.legs_at(hop.to).first()) {
        hop = topology.last_hop(*onward);
    }
    [framed_at, topology.port_of(&hop.back())].map(|port| topology.hardware_address(port)[5])
}
