//! IP packets, and what nodes know of their ways.

use std::collections::BTreeMap;

use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_testbed::Topology;
use engpass_testbed::topology::{Leg, NodeId};

use crate::cell::{LineId, Vc, turned, vc_index};

/// An IP packet: a datagram or a fragment of one. Or a generator's cell, which has no IP in it.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Traffic it belongs to.
    pub(crate) flow: usize,
    /// The datagram, by its place in the ledger.
    pub(crate) datagram: usize,
    /// Bytes of the datagram's IP payload that come before it.
    pub(crate) offset: u64,
    /// Bytes of IP payload in it.
    pub(crate) bytes: u64,
    /// Where it is to go: the nodes know their part of the way.
    pub(crate) way: usize,
    /// Who sent it, as queue disciplines number their flows.
    pub(crate) discipline_flow: u32,
    /// Time to live.
    pub(crate) ttl: u8,
    /// Its transport understands ECN.
    pub(crate) ect: bool,
    /// It has been marked.
    pub(crate) ce: bool,
    /// Cells it is cut into, if it goes on a circuit.
    pub(crate) cells: u64,
    /// When its NIC has emitted it, or has emitted its last cell: `None` before that is known.
    pub(crate) emitted: Option<u64>,
    /// Bytes it occupies in the NIC.
    pub(crate) room: u64,
}

impl Packet {
    /// Bytes of the IP packet.
    pub(crate) fn ip(&self) -> u64 {
        IP_HEADER_BYTES + self.bytes
    }
}

/// What there is to know of the way of a flow's packets in one direction.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// A direction of a circuit, from host to host.
    Circuit(usize),
    /// Links that carry frames: the line of the host's NIC, and by node those on which its packets may leave it, equally short ways in the order of
    /// the file.
    Links { nic: LineId, at: BTreeMap<NodeId, Vec<LineId>> },
}

/// The way of a flow, or the one back.
pub(crate) fn way_index(flow: usize, back: bool) -> usize {
    2 * flow + usize::from(back)
}

/// Both ways of every flow.
///
/// # Panics
/// When a way joins circuits and links: docs/model.md does not say how a router does that.
pub(crate) fn ways(topology: &Topology) -> Vec<Way> {
    let mut ways = Vec::new();
    for path in &topology.flows {
        if let Some(circuit) = path.circuit {
            ways.push(Way::Circuit(vc_index(circuit, path.forward)));
            ways.push(Way::Circuit(vc_index(circuit, !path.forward)));
            continue;
        }
        let hop = |leg: &Leg| match leg {
            Leg::Link(hop) => *hop,
            Leg::Circuit { .. } => panic!("the oracle knows no ways that join circuits and links"),
        };
        let line = |leg: &Leg| LineId::of(topology, hop(leg));
        let [there, back] = match &path.fans {
            Some(fans) => fans.each_ref().map(|fan| {
                fan.at.iter().map(|(node, legs)| (*node, legs.iter().map(line).collect())).collect()
            }),
            // No policy chooses: one way, and the same one back.
            None => {
                let there = path.legs.iter().map(|leg| (hop(leg).from, vec![line(leg)])).collect();
                let back = path.legs.iter().map(|leg| turned(hop(leg)));
                [there, back.map(|hop| (hop.from, vec![LineId::of(topology, hop)])).collect()]
            }
        };
        for (host, at) in [(path.from, there), (path.to, back)] {
            let at: BTreeMap<NodeId, Vec<LineId>> = at;
            ways.push(Way::Links { nic: at[&host][0], at });
        }
    }
    ways
}

impl Way {
    /// The line of the host's NIC that it begins with.
    pub(crate) fn nic(&self, vcs: &[Vc]) -> LineId {
        match self {
            Self::Circuit(vc) => vcs[*vc].lines[0],
            Self::Links { nic, .. } => *nic,
        }
    }
}
