//! IP packets and their paths.

use std::collections::BTreeMap;

use engpass_model::wire::arp::BYTES;
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_testbed::Topology;
use engpass_testbed::topology::{Fan, NodeId, PathSegment};

use crate::arp::ArpPacket;
use crate::cell::{LineId, Vc, turned, vc_index};
use crate::group::{Receiver, ways_of};
use crate::idle::Crossing;
use crate::membership::IgmpPacket;
use crate::tunnel::Carries;

/// An IP packet: a datagram, an IGMP message, an outer packet of a tunnel, or a fragment of one of them. Also a generator's cell or an ARP packet, which contain no IP.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Traffic it belongs to.
    pub(crate) flow: usize,
    /// Index of the datagram in the ledger.
    pub(crate) datagram: usize,
    /// Offset of its payload in the IP payload of the datagram, or of the outer packet, in bytes.
    pub(crate) offset: u64,
    /// Bytes of IP payload in it.
    pub(crate) bytes: u64,
    /// Index of its path. The tables of the nodes along the path forward it.
    pub(crate) way: usize,
    /// Number of its sender, by which queue disciplines distinguish flows.
    pub(crate) discipline_flow: u32,
    /// The inner packet, if it is in a tunnel.
    pub(crate) carries: Option<Carries>,
    /// Time to live; in a tunnel, that of the outer header.
    pub(crate) ttl: u8,
    pub(crate) priority: u8,
    /// True if its transport is ECN-capable.
    pub(crate) ect: bool,
    /// True if it was marked (ECN CE).
    pub(crate) ce: bool,
    /// Number of its cells while it is on a circuit.
    pub(crate) cells: u64,
    /// Time at which its NIC has emitted it, or its last cell; `None` until known.
    pub(crate) emitted: Option<u64>,
    /// Bytes that it occupies in the NIC buffer.
    pub(crate) room: u64,
    /// The line over which it arrived at the last router.
    pub(crate) came_by: Option<LineId>,
    /// The line on which the last host or router sent it.
    pub(crate) framed_at: Option<LineId>,
    /// The content of an ARP packet.
    pub(crate) arp: Option<ArpPacket>,
    /// The content of an IGMP message.
    pub(crate) igmp: Option<IgmpPacket>,
    /// The end of a tunnel that sent it, if it is a keepalive.
    pub(crate) keepalive: Option<usize>,
    /// The steps of its path so far; `None` if fragments of it in a tunnel took different ones.
    pub(crate) path: Option<Vec<Crossing>>,
}

impl Packet {
    /// Creates a packet without payload, path and time to live. `number` is that of its sender in queue disciplines.
    pub(crate) fn of_sender(flow: usize, datagram: usize, number: usize) -> Self {
        Self {
            flow,
            datagram,
            offset: 0,
            bytes: 0,
            way: usize::MAX,
            discipline_flow: number as u32,
            carries: None,
            ttl: 0,
            priority: 0,
            ect: false,
            ce: false,
            cells: 0,
            emitted: None,
            room: 0,
            came_by: None,
            framed_at: None,
            arp: None,
            igmp: None,
            keepalive: None,
            path: None,
        }
    }

    /// Records a step of its path.
    pub(crate) fn crosses(&mut self, crossing: Crossing) {
        if let Some(path) = &mut self.path {
            path.push(crossing);
        }
    }

    /// Returns the bytes of the IP or ARP packet.
    pub(crate) fn ip(&self) -> u64 {
        if self.arp.is_some() { BYTES } else { IP_HEADER_BYTES + self.bytes }
    }
}

/// The path segment that a packet takes from one node that handles packets to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Out {
    Line(LineId),
    Circuit(usize),
    Tunnel(usize),
}

/// The path of a flow's packets in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// The first path segment from the sender.
    pub(crate) first: Out,
    /// By node, the path segments that its packets may take from there: equally short ones in the order of the file.
    pub(crate) at: BTreeMap<NodeId, Vec<Out>>,
}

/// Returns the index of the path of a flow, or of its reverse path.
pub(crate) fn way_index(flow: usize, back: bool) -> usize {
    2 * flow + usize::from(back)
}

pub(crate) fn tunnel_index(tunnel: usize, forward: bool) -> usize {
    2 * tunnel + usize::from(!forward)
}

/// Builds all paths: both directions of every flow, then those of ICMP messages, of multicast receivers, and of both directions of every tunnel.
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
            // No policy chooses: one path, and its reverse.
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
        let (_, legs) = to_all
            .into_iter()
            .find(|(to, _)| *to == receiver.host)
            .expect("the group has a path to the receiver");
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

/// Returns a path segment in the other direction.
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
