//! A resolved testbed: names have become indices, circuits have routes, rates are paces.

use std::net::IpAddr;

use engpass_model::bond::Bond;
use engpass_model::circuit::Category;
use engpass_model::queue::Queue;
use engpass_model::shape::PolicingAction;
use engpass_model::time::{Pace, Time};
use engpass_model::tunnel::{Fragment, Tunnel};
use engpass_model::unit::Share;
use engpass_model::wire::layers::Wire;
use engpass_model::wire::{Encapsulation, Framing, Medium, ethernet};
use engpass_outcome::{Path, Step};

pub use crate::arp::ArpInterface;
pub use crate::branches::Branch;
pub use crate::membership::Member;

/// Index of a node: hosts first, in the order of the file, then switches, then routers.
pub type NodeId = usize;

/// Kind of a node, and its index in that table of the testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Index in `Testbed::hosts`.
    Host(usize),
    /// Index in `Testbed::switches`.
    Switch(usize),
    /// Index in `Testbed::routers`.
    Router(usize),
}

/// The graph of a testbed.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Number of hosts. Nodes with this index and above are switches, then routers.
    pub hosts: usize,
    /// Number of switches; nodes after hosts and switches are routers.
    pub switches: usize,
    /// Names of all nodes.
    pub nodes: Vec<String>,
    /// Links in the order of the file.
    pub links: Vec<LinkEnds>,
    /// Circuits: those of the file in its order, then those of traffic sources without one, in the order of the traffic. The index breaks ties
    /// between cells of several circuits on one NIC.
    pub circuits: Vec<CircuitPath>,
    /// Tunnels, in the order of the file.
    pub tunnels: Vec<TunnelPath>,
    /// Bonds that are up, in the order of the file.
    pub bonds: Vec<BondPath>,
    /// One path for each traffic table, in the order of the file.
    pub flows: Vec<FlowPath>,
    /// Events that change links, in the order of the file.
    pub events: Vec<EventPath>,
    /// Router interfaces that resolve hardware addresses (ARP), in the order of the routers, then of the links.
    pub arp: Vec<ArpInterface>,
}

impl Topology {
    /// Returns the MTUs by which the two ends of a TCP connection size their first segments, in bytes, the sender of the traffic first: the MTU of the path
    /// segment on which the end sends, or the path MTU if that is known from the start.
    pub fn segment_mtus(&self, path: &FlowPath) -> [u64; 2] {
        if !path.discovers_mtu {
            return [path.path_mtu; 2];
        }
        let back = match &path.fans {
            // Hosts take the first path segment.
            Some(fans) => fans[1].legs_at(path.to)[0],
            None => path.legs[path.legs.len() - 1].back(),
        };
        [path.mtu, self.mtu(back)]
    }

    /// Returns the kind of a node.
    pub fn kind(&self, node: NodeId) -> NodeKind {
        node_kind(self.hosts, self.switches, node)
    }

    /// Returns the first link of a path segment, in the segment's direction. Policies take the weight of a segment from this link.
    pub fn first_hop(&self, leg: PathSegment) -> Hop {
        self.hops(leg)[0]
    }

    /// Returns the last link of a path segment, in the segment's direction.
    pub fn last_hop(&self, leg: PathSegment) -> Hop {
        let hops = self.hops(leg);
        hops[hops.len() - 1]
    }

    /// Returns true if events or keepalives change whether a node takes a path segment for up.
    pub fn sees_events(&self, node: NodeId, leg: PathSegment) -> bool {
        let PathSegment::Link(Hop { link, .. }) = leg else {
            // Without keepalives, a tunnel stays up when links on its path fail, and events never change ATM links.
            return matches!(leg, PathSegment::Tunnel { tunnel, .. } if self.tunnels[tunnel].has_keepalives());
        };
        // A node that follows the bond at the other end sees the state that the bond sees.
        let node = self.bond_at(node, leg).map_or(node, |bond| self.bonds[bond].node);
        let end = self.links[link].end_of(node);
        self.events.iter().any(|event| event.link == link && event.seen_by[end])
    }

    /// Returns the bond that chooses the member link for packets that leave a node on this path segment: a bond of the node, or a bond of the node at the other
    /// end that uses one member at a time, for both directions.
    pub fn bond_at(&self, node: NodeId, leg: PathSegment) -> Option<usize> {
        let PathSegment::Link(Hop { link, .. }) = leg else { return None };
        let at = |node: NodeId| self.bonds.iter().position(|bond| bond.is_at(node, link));
        let follows = |bond: &usize| self.bonds[*bond].config.mode.config().is_single();
        at(node).or_else(|| at(self.links[link].ends[1 - self.links[link].end_of(node)]).filter(follows))
    }

    /// Returns true if this link is a member of a bond of the node that receives only on its active member.
    pub fn hears_active(&self, node: NodeId, link: usize) -> bool {
        self.bonds.iter().any(|bond| bond.is_at(node, link) && bond.config.mode.config().is_single())
    }

    /// Returns the hardware address of the transmitter with this number (twice the link index plus the end). It is locally administered (IEEE 802
    /// section 8.4). All members of a bond have the address of the first one.
    pub fn hardware_address(&self, port: usize) -> [u8; 6] {
        let (link, node) = (port / 2, self.links[port / 2].ends[port % 2]);
        let first = self.bonds.iter().find(|bond| bond.is_at(node, link)).map(|bond| bond.links[0]);
        let port = first.map_or(port, |link| 2 * link + self.links[link].end_of(node));
        let [a, b, c, d] = (port as u32 + 1).to_be_bytes();
        [0x02, 0x00, a, b, c, d]
    }

    /// Returns the number of the transmitter of a hop: twice the link index plus the end.
    pub fn port_of(&self, hop: &Hop) -> usize {
        2 * hop.link + self.links[hop.link].end_of(hop.from)
    }

    /// Returns the links of a path segment, in its direction. For a tunnel, these are the links of the path that takes the first of several equally short
    /// segments.
    pub fn hops(&self, leg: PathSegment) -> Vec<Hop> {
        match leg {
            PathSegment::Link(hop) => vec![hop],
            PathSegment::Circuit { circuit, forward: true } => self.circuits[circuit].route.clone(),
            PathSegment::Circuit { circuit, forward: false } => reversed(&self.circuits[circuit].route),
            PathSegment::Tunnel { tunnel, forward } => self.tunnels[tunnel].way(forward).route.clone(),
        }
    }

    /// Returns true if a path segment drops packets that are too long for it instead of having them fragmented, even if their sender allows it.
    pub fn refuses(&self, leg: PathSegment) -> bool {
        matches!(leg, PathSegment::Tunnel { tunnel, .. } if self.tunnels[tunnel].config.fragment == Fragment::None)
    }

    /// Returns a path segment; for a tunnel, also all segments that its outer packets may take.
    pub fn legs_within(&self, leg: PathSegment) -> Vec<PathSegment> {
        let mut legs = vec![leg];
        if let PathSegment::Tunnel { tunnel, forward } = leg {
            let within = self.tunnels[tunnel].way(forward).fan.legs();
            legs.extend(within.flat_map(|leg| self.legs_within(leg)));
        }
        legs
    }

    /// Returns the path over these hops, with a share of 1.
    pub fn path(&self, route: &[Hop]) -> Path {
        let step = |hop: &Hop| Step {
            link: self.links[hop.link].name.clone(),
            from: self.nodes[hop.from].clone(),
            to: self.nodes[hop.to].clone(),
        };
        Path { share: 1.0, steps: route.iter().map(step).collect() }
    }

    /// Returns the MTU of a path segment in bytes.
    pub fn mtu(&self, leg: PathSegment) -> u64 {
        match leg {
            PathSegment::Link(hop) => self.links[hop.link].mtu,
            PathSegment::Circuit { circuit, .. } => self.circuits[circuit].mtu,
            PathSegment::Tunnel { tunnel, .. } => self.tunnels[tunnel].mtu,
        }
    }
}

pub(crate) fn node_kind(hosts: usize, switches: usize, node: NodeId) -> NodeKind {
    match node.checked_sub(hosts) {
        None => NodeKind::Host(node),
        Some(switch) if switch < switches => NodeKind::Switch(switch),
        Some(other) => NodeKind::Router(other - switches),
    }
}

/// A link between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkEnds {
    /// Name in the file.
    pub name: String,
    /// The two nodes.
    pub ends: [NodeId; 2],
    /// Medium.
    pub medium: Medium,
    /// The line that begins at each end, in the order of `ends`.
    pub lines: [Line; 2],
    /// Propagation delay, positive.
    pub delay: Time,
    /// MTU in bytes, for Ethernet and point-to-point links only.
    pub mtu: u64,
    /// Bytes that framing adds to a packet on point-to-point links.
    pub overhead: u64,
    /// True if frames carry a VLAN tag; only on Ethernet links.
    pub vlan: bool,
    /// Largest random extra delay of a packet, order kept; zero on ATM links.
    pub jitter: Time,
    /// Share of the packets that are lost at random; zero on ATM links.
    pub loss: Share,
    /// Share of the packets that are delayed so that later packets overtake them, and their extra delay; `None` on ATM links.
    pub reorder: Option<(Share, Time)>,
    /// Queue discipline of the transmitter at each end; `None` at hosts and ATM switches. A router also has one on an ATM link, for the packets that wait to
    /// become cells.
    pub queues: [Option<Queue>; 2],
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Line rate in bit/s.
    pub rate: u64,
    /// Framing at this rate; for ATM the slot of a cell.
    pub framing: Framing,
}

impl Line {
    /// Returns a line of this medium at `rate` bit/s.
    pub fn new(medium: Medium, rate: u64) -> Self {
        Self { rate, framing: medium.framing(rate) }
    }
}

impl LinkEnds {
    /// Returns the index in `ends` of `node`, which must be one of the two nodes.
    pub fn end_of(&self, node: NodeId) -> usize {
        usize::from(self.ends[0] != node)
    }

    /// Returns the line that begins at `node`, which must be one of the two nodes.
    pub fn line_from(&self, node: NodeId) -> Line {
        self.lines[self.end_of(node)]
    }

    /// Returns the format in which the line at one end frames packets. `encapsulation` matters only for lines that carry cells.
    pub fn wire(&self, end: usize, encapsulation: Encapsulation) -> Wire {
        let Line { rate, framing } = self.lines[end];
        Wire::new((rate, framing), self.vlan, self.overhead, encapsulation)
    }

    /// Returns the bytes that an IP packet occupies on a line that carries frames: on Ethernet with preamble, header, tag, padding, FCS and gap.
    ///
    /// # Panics
    /// On an ATM link, because the bytes there depend on the circuit.
    pub fn line_bytes(&self, ip_bytes: u64) -> u64 {
        match self.lines[0].framing {
            Framing::Ethernet => ethernet::line_bytes(ip_bytes, self.vlan),
            Framing::Packets => self.overhead + ip_bytes,
            Framing::Cells { .. } => panic!("an ATM line carries no frames"),
        }
    }

    /// Returns the bytes with which the frame of an IP packet counts in a queue: those on the line without preamble and gap.
    ///
    /// # Panics
    /// On an ATM link, because the bytes there depend on the circuit.
    pub fn frame_bytes(&self, ip_bytes: u64) -> u64 {
        let physical = match self.lines[0].framing {
            Framing::Ethernet => ethernet::PREAMBLE_BYTES + ethernet::GAP_BYTES,
            Framing::Packets | Framing::Cells { .. } => 0,
        };
        self.line_bytes(ip_bytes) - physical
    }
}

/// One link of a route, in the direction in which the route takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// Index of the link.
    pub link: usize,
    /// Node at which the hop begins; its transmitter sends.
    pub from: NodeId,
    /// Node at which the hop ends.
    pub to: NodeId,
}

impl Hop {
    /// Returns the hop over the same link in the other direction.
    pub fn back(self) -> Self {
        Self { link: self.link, from: self.to, to: self.from }
    }
}

/// Returns the route in the other direction.
pub(crate) fn reversed(route: &[Hop]) -> Vec<Hop> {
    route.iter().rev().map(|hop| hop.back()).collect()
}

/// A path segment: the part of a path of IP packets between two neighbouring hosts, routers or Ethernet switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathSegment {
    /// A link that carries frames.
    Link(Hop),
    /// A circuit from end to end.
    Circuit {
        /// Index of the circuit.
        circuit: usize,
        /// True from the circuit's `from` to its `to`, false for the reverse.
        forward: bool,
    },
    /// A tunnel from end to end.
    Tunnel {
        /// Index of the tunnel.
        tunnel: usize,
        /// True from the first of the tunnel's ends to the second, false for the reverse.
        forward: bool,
    },
}

impl PathSegment {
    /// Returns the path segment in the other direction.
    pub fn back(self) -> Self {
        match self {
            Self::Link(hop) => Self::Link(hop.back()),
            Self::Circuit { circuit, forward } => Self::Circuit { circuit, forward: !forward },
            Self::Tunnel { tunnel, forward } => Self::Tunnel { tunnel, forward: !forward },
        }
    }
}

/// A resolved circuit.
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitPath {
    /// Name of the circuit, or of the traffic that it was created for.
    pub name: String,
    /// Route from the circuit's `from` to its `to`, at least one hop: the one with the fewest links, ties by the order of the links in the file.
    pub route: Vec<Hop>,
    /// Service category.
    pub category: Category,
    /// Encapsulation of IP packets.
    pub encapsulation: Encapsulation,
    /// MTU in bytes.
    pub mtu: u64,
    /// Pace of the shaper at the sending NIC, never faster than its link; for an adaptive shaper the fastest pace. `None`: cells leave at the pace of
    /// the link.
    pub shaping: Option<Pace>,
    /// CLP bit of the circuit's cells, in both directions.
    pub clp: bool,
    /// Increment, tolerance and action of the policer at the first switch.
    pub policing: Option<(Pace, Time, PolicingAction)>,
}

/// Largest number of nested tunnels around a packet.
pub const MOST_TUNNELS: usize = 8;

/// A resolved tunnel.
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelPath {
    /// Name in the file.
    pub name: String,
    /// The tunnel's table in the file.
    pub config: Tunnel,
    /// The routers at the ends of the tunnel, in the order of the file.
    pub ends: [NodeId; 2],
    /// True if packets enter the tunnel: it is up, and so are the tunnels that carry it.
    pub is_up: bool,
    /// Nesting depth: 1, plus the depth of the tunnels that carry it.
    pub depth: usize,
    /// MTU in bytes, without the outer headers.
    pub mtu: u64,
    /// Length of the outer headers in bytes.
    pub added: u64,
    /// Paths of the tunnel's outer packets from the first end to the second, and back.
    pub ways: [TunnelWay; 2],
}

impl TunnelPath {
    /// Returns the path of the tunnel's outer packets in one direction.
    pub fn way(&self, forward: bool) -> &TunnelWay {
        &self.ways[usize::from(!forward)]
    }

    /// Returns true if its ends send keepalives.
    pub fn has_keepalives(&self) -> bool {
        self.is_up && self.config.keepalive.is_some()
    }

    /// Returns the path of the keepalives of one end: through the tunnel, number `tunnel`, in the direction `forward`, and back on the path of the outer packets
    /// of the other direction.
    pub fn keepalive_fan(&self, tunnel: usize, forward: bool) -> Fan {
        let [from, _] = self.from_to(forward);
        let mut at = self.way(!forward).fan.at.clone();
        at.push((from, vec![PathSegment::Tunnel { tunnel, forward }]));
        at.sort_unstable();
        Fan { at }
    }

    /// Returns the routers at which packets of one direction enter and leave the tunnel.
    pub fn from_to(&self, forward: bool) -> [NodeId; 2] {
        let [from, to] = self.ends;
        if forward { [from, to] } else { [to, from] }
    }
}

/// A resolved bond.
#[derive(Clone, Debug, PartialEq)]
pub struct BondPath {
    /// Name in the file.
    pub name: String,
    /// The host or Ethernet switch that has the bond as an interface.
    pub node: NodeId,
    /// The node to which all links of the bond lead.
    pub peer: NodeId,
    /// Indices of the bond's links, in the order in which the bond's mode counts them.
    pub links: Vec<usize>,
    /// The bond's table in the file.
    pub config: Bond,
}

impl BondPath {
    /// Returns true if the bond belongs to this node and the link is a member.
    pub fn is_at(&self, node: NodeId, link: usize) -> bool {
        self.node == node && self.links.contains(&link)
    }
}

/// The path of a tunnel's outer packets in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelWay {
    /// The links of the path that takes the first of several equally short path segments.
    pub route: Vec<Hop>,
    /// All path segments that the outer packets may take.
    pub fan: Fan,
}

/// The path of the packets of one traffic table.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPath {
    /// Name of the traffic.
    pub name: String,
    /// Sending host.
    pub from: NodeId,
    /// Receiving host.
    pub to: NodeId,
    /// The circuit that carries the flow from host to host; the flow may use it against its direction. `None` if frames are forwarded: see `legs`.
    pub circuit: Option<usize>,
    /// True if the flow goes from that circuit's `from` to its `to`.
    pub forward: bool,
    /// Links that data packets cross, those inside circuits and tunnels included.
    pub route: Vec<Hop>,
    /// The path segments that data packets cross, at least one. If policies choose, the path that takes the first of several.
    pub legs: Vec<PathSegment>,
    /// MTU of the first path segment, in bytes, to which the sending host fragments datagrams.
    pub mtu: u64,
    /// Path MTU in bytes: the smallest MTU of all path segments that data packets may take.
    pub path_mtu: u64,
    /// All path segments among which policies choose: those of the data packets, and those of the packets that come back. `None` if nothing chooses on any
    /// shortest path in either direction: then all packets take `legs`, and packets that come back take them reversed. Packets that a circuit carries from host
    /// to host, or whose traffic names a circuit, have no choice.
    pub fans: Option<Box<[Fan; 2]>>,
    /// True if the sender discovers the path MTU (RFC 1191). Routers must not fragment its data packets.
    pub discovers_mtu: bool,
    /// Paths of the ICMP messages with which routers tell the sender that packets are too long for the next path segment; empty unless the sender discovers the
    /// path MTU.
    pub icmp: Box<[IcmpWay]>,
    /// Number of packet sources and connections before this traffic in the file. It determines the source ports.
    pub first_source: u64,
    /// Pace of the cells of a `cbr` or `on-off` source; `None` for other kinds and for a rate of zero.
    pub cells: Option<Pace>,
    /// The distribution tree of multicast traffic with several receivers, or with receivers that join or leave; empty for other traffic. The fields above
    /// describe the path to the first receiver.
    pub branches: Box<[Branch]>,
    /// Receivers of multicast traffic that join or leave, in the order of the file. If there are any, the first branch ends at the first node behind the sender.
    pub members: Box<[Member]>,
    /// Group address of multicast traffic.
    pub group: Option<IpAddr>,
}

/// Path of ICMP messages from a router to the sender of a traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpWay {
    /// The router.
    pub router: NodeId,
    /// The path segments of the messages; if policies choose, the path that takes the first of several.
    pub legs: Vec<PathSegment>,
    /// All path segments among which policies choose; `None` if nothing chooses.
    pub fan: Option<Fan>,
}

/// A resolved event: the link and the ends that it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPath {
    /// Name of the event.
    pub name: String,
    /// Index of the link.
    pub link: usize,
    /// True for each end of the link that sees the changes, in the order of the link's `ends`.
    pub seen_by: [bool; 2],
}

/// The path segments that packets from one node to another may take. Every segment leads strictly closer to the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fan {
    /// For every node that the packets may reach, except the destination, sorted by node: the path segments on which they may continue, in the order of the
    /// file, or of the bond for its members. Only a router with a policy and a node with a bond have several.
    pub at: Vec<(NodeId, Vec<PathSegment>)>,
}

impl Fan {
    /// Returns the path segments of a single path, each with the node at which it begins.
    pub fn along(legs: impl Iterator<Item = (NodeId, PathSegment)>) -> Self {
        let mut at: Vec<(NodeId, Vec<PathSegment>)> = legs.map(|(node, leg)| (node, vec![leg])).collect();
        at.sort_unstable();
        Self { at }
    }

    /// Returns true if packets have a choice at any node.
    pub fn has_choice(&self) -> bool {
        self.at.iter().any(|(_, legs)| legs.len() > 1)
    }

    /// Returns the path segments on which packets may continue from a node; empty at the destination and where packets never arrive.
    pub fn legs_at(&self, node: NodeId) -> &[PathSegment] {
        let place = self.at.binary_search_by_key(&node, |(at, _)| *at);
        place.map_or(&[], |place| &self.at[place].1)
    }

    /// Returns all path segments.
    pub fn legs(&self) -> impl Iterator<Item = PathSegment> {
        self.at.iter().flat_map(|(_, legs)| legs.iter().copied())
    }
}
