//! IP packets, and what nodes know of their ways.

use std::collections::BTreeMap;

use engpass_model::wire::arp::BYTES;
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_testbed::Topology;
use engpass_testbed::topology::{Fan, NodeId, PathSegment};

use crate::arp::ArpPacket;
use crate::cell::{LineId, Vc, turned, vc_index};
use crate::group::{Receiver, ways_of};
use crate::tunnel::Carries;

/// An IP packet: a datagram or a fragment of one; an outer packet of a tunnel or a fragment of one. Or a generator's cell, or an ARP packet, which have no IP in them.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Traffic it belongs to.
    pub(crate) flow: usize,
    /// The datagram, by its place in the ledger.
    pub(crate) datagram: usize,
    /// Bytes of the datagram's IP payload that come before it, or of the outer packet's.
    pub(crate) offset: u64,
    /// Bytes of IP payload in it.
    pub(crate) bytes: u64,
    /// Where it is to go: the nodes know their part of the way.
    pub(crate) way: usize,
    /// Who sent it, as queue disciplines number their flows.
    pub(crate) discipline_flow: u32,
    /// What it carries, if it is in a tunnel.
    pub(crate) carries: Option<Carries>,
    /// Time to live; in a tunnel that of the outer header.
    pub(crate) ttl: u8,
    pub(crate) priority: u8,
    /// Its transport understands ECN.
    pub(crate) ect: bool,
    /// It has been marked.
    pub(crate) ce: bool,
    /// Cells it is cut into, while it is on a circuit.
    pub(crate) cells: u64,
    /// When its NIC has emitted it, or has emitted its last cell: `None` before that is known.
    pub(crate) emitted: Option<u64>,
    /// Bytes it occupies in the NIC.
    pub(crate) room: u64,
    /// The line that has brought it to the last router.
    pub(crate) came_by: Option<LineId>,
    /// The line on which the last host or router has sent it.
    pub(crate) framed_at: Option<LineId>,
    /// It is no IP packet, but one of ARP.
    pub(crate) arp: Option<ArpPacket>,
}

impl Packet {
    /// Bytes of the IP packet, or of what is in its place.
    pub(crate) fn ip(&self) -> u64 {
        if self.arp.is_some() { BYTES } else { IP_HEADER_BYTES + self.bytes }
    }
}

/// What a packet takes from one node that handles packets to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Out {
    /// A line that carries frames.
    Line(LineId),
    /// A direction of a circuit.
    Circuit(usize),
    /// A direction of a tunnel.
    Tunnel(usize),
}

/// What there is to know of the way of a flow's packets in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// What the sender takes.
    pub(crate) first: Out,
    /// By node what its packets may take from there: equally short ways in the order of the file.
    pub(crate) at: BTreeMap<NodeId, Vec<Out>>,
}

/// The way of a flow, or the one back.
pub(crate) fn way_index(flow: usize, back: bool) -> usize {
    2 * flow + usize::from(back)
}

/// Index of a direction of a tunnel.
pub(crate) fn tunnel_index(tunnel: usize, forward: bool) -> usize {
    2 * tunnel + usize::from(!forward)
}

/// Both ways of every flow, behind them those of the messages of routers, those to the receivers of groups, and last those of both directions of every tunnel.
pub(crate) fn ways(topology: &Topology, vcs: &[Vc], receivers: &[Receiver]) -> Vec<Way> {
    let mut ways = Vec::new();
    let out = |leg: &PathSegment| Out::of(topology, *leg);
    let along = |outs: Vec<Out>| outs.into_iter().map(|out| (out.begins_at(topology, vcs), vec![out]));
    let over = |fan: &Fan| -> Vec<(NodeId, Vec<Out>)> {
        fan.at.iter().map(|(node, legs)| (*node, legs.iter().map(out).collect())).collect()
    };
    for path in &topology.flows {
        let [there, back]: [BTreeMap<NodeId, Vec<Out>>; 2] = match &path.fans {
            Some(fans) => fans.each_ref().map(|fan| over(fan).into_iter().collect()),
            // No policy chooses: one way, and the same one back.
            None => {
                let there = path.legs.iter().map(out).collect();
                let back = path.legs.iter().map(|leg| Out::of(topology, leg_back(*leg))).collect();
                [along(there).collect(), along(back).collect()]
            }
        };
        for (host, at) in [(path.from, there), (path.to, back)] {
            ways.push(Way { first: at[&host][0], at });
        }
    }
    for way in topology.flows.iter().flat_map(|path| &path.icmp) {
        let at: BTreeMap<NodeId, Vec<Out>> = match &way.fan {
            Some(fan) => over(fan).into_iter().collect(),
            None => along(way.legs.iter().map(out).collect()).collect(),
        };
        ways.push(Way { first: at[&way.router][0], at });
    }
    for receiver in receivers {
        let to_all = ways_of(&topology.flows[receiver.flow].branches);
        let (_, legs) = to_all.into_iter().find(|(to, _)| *to == receiver.host).expect("a way leads to it");
        let at: BTreeMap<NodeId, Vec<Out>> = along(legs.iter().map(out).collect()).collect();
        ways.push(Way { first: at[&topology.flows[receiver.flow].from][0], at });
    }
    for path in &topology.tunnels {
        for (from, way) in path.ends.iter().zip(&path.ways) {
            let at: BTreeMap<NodeId, Vec<Out>> = over(&way.fan).into_iter().collect();
            ways.push(Way { first: at[from][0], at });
        }
    }
    ways
}

/// A leg in the other direction.
pub(crate) fn leg_back(leg: PathSegment) -> PathSegment {
    match leg {
        PathSegment::Link(hop) => PathSegment::Link(turned(hop)),
        PathSegment::Circuit { circuit, forward } => PathSegment::Circuit { circuit, forward: !forward },
        PathSegment::Tunnel { tunnel, forward } => PathSegment::Tunnel { tunnel, forward: !forward },
    }
}

impl Out {
    pub(crate) fn of(topology: &Topology, leg: PathSegment) -> Self {
        match leg {
            PathSegment::Link(hop) => Self::Line(LineId::of(topology, hop)),
            PathSegment::Circuit { circuit, forward } => Self::Circuit(vc_index(circuit, forward)),
            PathSegment::Tunnel { tunnel, forward } => Self::Tunnel(tunnel_index(tunnel, forward)),
        }
    }

    fn begins_at(self, topology: &Topology, vcs: &[Vc]) -> NodeId {
        match self {
            Self::Line(line) => topology.links[line.link].ends[line.end],
            Self::Circuit(vc) => vcs[vc].from,
            Self::Tunnel(tunnel) => topology.tunnels[tunnel / 2].ends[tunnel % 2],
        }
    }
}
