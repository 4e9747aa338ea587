//! Address resolution: the neighbour tables of routers, and the trees over which requests are flooded (docs/model.md, "Address resolution").

use std::collections::{BTreeMap, VecDeque};

use engpass_model::arp::Neighbour;
use engpass_model::wire::Framing;
use engpass_testbed::topology::{ArpInterface, Hop, NodeId};
use engpass_testbed::{Testbed, Topology};

use crate::cell::LineId;

/// A neighbour of a router: the router's transmitter, and the station reached over it.
pub(crate) type Key = (LineId, NodeId);

/// An ARP packet. Its position determines what it does next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArpPacket {
    /// True for a request, false for the reply.
    pub(crate) asks: bool,
    /// The transmitter of the router that sent the request.
    pub(crate) interface: LineId,
    /// The station whose address is requested.
    pub(crate) station: NodeId,
}

/// The neighbour tables of all routers.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    /// Held packets are indices into all packets of the run.
    pub(crate) all: BTreeMap<Key, Neighbour<usize>>,
    /// Numbers of packets that were held, that continued, and that were dropped while held.
    pub(crate) held: u64,
    pub(crate) went_on: u64,
    pub(crate) lost: u64,
}

impl Neighbours {
    /// Returns the neighbours reached over a line.
    pub(crate) fn on(&self, line: LineId) -> Vec<Key> {
        self.all.keys().filter(|(on, _)| *on == line).copied().collect()
    }

    /// Number of packets held now.
    pub(crate) fn waiting(&self) -> u64 {
        let held = self.all.values().map(|neighbour| match neighbour {
            Neighbour::Asked { held, .. } => held.len() as u64,
            Neighbour::Unknown | Neighbour::Known { .. } => 0,
        });
        held.sum()
    }
}

pub(crate) fn far_end(topology: &Topology, line: LineId) -> NodeId {
    topology.links[line.link].ends[1 - line.end]
}

/// Returns the lines that requests of an interface take, breadth first: its line, and those on which switches send copies.
pub(crate) fn tree(topology: &Topology, interface: LineId) -> Vec<LineId> {
    let mut lines = vec![interface];
    // The router itself needs no copy.
    let mut reached = vec![topology.links[interface.link].ends[interface.end], far_end(topology, interface)];
    let mut come_to = VecDeque::from([far_end(topology, interface)]);
    while let Some(node) = come_to.pop_front() {
        if !(topology.hosts..topology.hosts + topology.switches).contains(&node) {
            continue;
        }
        for (link, ends) in topology.links.iter().enumerate() {
            let Some(end) = ends.ends.iter().position(|end| *end == node) else { continue };
            let line = LineId { link, end };
            let next = far_end(topology, line);
            if ends.lines[0].framing == Framing::Ethernet && !reached.contains(&next) {
                reached.push(next);
                lines.push(line);
                come_to.push_back(next);
            }
        }
    }
    lines
}

/// Returns the interfaces of all routers that send requests, in the order of the routers, then of the links.
pub(crate) fn interfaces(testbed: &Testbed, topology: &Topology) -> Vec<ArpInterface> {
    let mut found = Vec::new();
    for (place, router) in testbed.routers.values().enumerate() {
        let node = topology.hosts + topology.switches + place;
        for (link, ends) in topology.links.iter().enumerate().filter(|_| router.arp.is_some()) {
            let Some(end) = ends.ends.iter().position(|end| *end == node) else { continue };
            if ends.lines[0].framing == Framing::Ethernet {
                let hop = |line: LineId| {
                    let ends = topology.links[line.link].ends;
                    Hop { link: line.link, from: ends[line.end], to: ends[1 - line.end] }
                };
                let tree = tree(topology, LineId { link, end }).into_iter().map(hop).collect();
                found.push(ArpInterface { router: node, link, tree });
            }
        }
    }
    found
}
