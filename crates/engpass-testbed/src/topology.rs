//! A testbed resolved: names are indices, circuits have routes, rates are paces.

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

/// Index of a node: hosts first, in the order of the file, then switches, then routers.
pub type NodeId = usize;

/// What a node is, and its place in its table of the testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Index in `Testbed::hosts`.
    Host(usize),
    /// Index in `Testbed::switches`.
    Switch(usize),
    /// Index in `Testbed::routers`.
    Router(usize),
}

/// A testbed's graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Number of hosts; nodes from here on are switches.
    pub hosts: usize,
    /// Number of switches; nodes after hosts and switches are routers.
    pub switches: usize,
    /// Names of all nodes.
    pub nodes: Vec<String>,
    /// Links in the order of the file.
    pub links: Vec<LinkEnds>,
    /// Circuits: those of the file in its order, then those that traffic sources without one bring, in the order of the
    /// traffic. The position breaks ties between cells of several circuits on one NIC.
    pub circuits: Vec<CircuitPath>,
    /// Tunnels, in the order of the file.
    pub tunnels: Vec<TunnelPath>,
    /// Bonds that are up, in the order of the file.
    pub bonds: Vec<BondPath>,
    /// One path for each traffic table, in the order of the file.
    pub flows: Vec<FlowPath>,
    /// Events, in the order of the file.
    pub events: Vec<EventPath>,
    /// Interfaces of routers that ask for hardware addresses, in the order of the routers, then of the links.
    pub arp: Vec<ArpInterface>,
}

impl Topology {
    /// The MTUs for which the two ends of a TCP connection form segments at first, in bytes, the sender of the traffic first: those of the
    /// legs on which they send, or the path MTU where it is known from the start.
    pub fn segment_mtus(&self, path: &FlowPath) -> [u64; 2] {
        if !path.discovers_mtu {
            return [path.path_mtu; 2];
        }
        let back = match &path.fans {
            // Hosts take the first leg.
            Some(fans) => fans[1].legs_at(path.to)[0],
            None => path.legs[path.legs.len() - 1].back(),
        };
        [path.mtu, self.mtu(back)]
    }

    /// What a node is.
    pub fn kind(&self, node: NodeId) -> NodeKind {
        node_kind(self.hosts, self.switches, node)
    }

    /// The first link of a leg, in its direction: policies weigh a leg by it.
    pub fn first_hop(&self, leg: Leg) -> Hop {
        self.hops(leg)[0]
    }

    /// The last link of a leg, in its direction.
    pub fn last_hop(&self, leg: Leg) -> Hop {
        let hops = self.hops(leg);
        hops[hops.len() - 1]
    }

    /// Whether events change what a node sees of the link on which a leg begins.
    pub fn sees_events(&self, node: NodeId, leg: Leg) -> bool {
        let Leg::Link(Hop { link, .. }) = leg else {
            // A tunnel is up whatever becomes of the links on its way, and no event changes links that carry cells.
            return false;
        };
        // Who follows a bond sees what that sees.
        let node = self.bond_at(node, leg).map_or(node, |bond| self.bonds[bond].node);
        let end = self.links[link].end_of(node);
        self.events.iter().any(|event| event.link == link && event.seen_by[end])
    }

    /// The bond that chooses the member on which packets leave a node, if this leg begins with one: a bond of the node, or one at the other end
    /// of which one member carries everything, in both directions.
    pub fn bond_at(&self, node: NodeId, leg: Leg) -> Option<usize> {
        let Leg::Link(Hop { link, .. }) = leg else { return None };
        let at = |node: NodeId| self.bonds.iter().position(|bond| bond.is_at(node, link));
        let follows = |bond: &usize| self.bonds[*bond].config.mode.config().is_single();
        at(node).or_else(|| at(self.links[link].ends[1 - self.links[link].end_of(node)]).filter(follows))
    }

    /// Whether this node hears the active member of a bond alone, and this link is a member.
    pub fn hears_active(&self, node: NodeId, link: usize) -> bool {
        self.bonds.iter().any(|bond| bond.is_at(node, link) && bond.config.mode.config().is_single())
    }

    /// The hardware address of the transmitter with this number, twice that of its link and its end: locally administered (IEEE 802 section 8.4).
    /// The members of a bond have that of its first one.
    pub fn hardware_address(&self, port: usize) -> [u8; 6] {
        let (link, node) = (port / 2, self.links[port / 2].ends[port % 2]);
        let first = self.bonds.iter().find(|bond| bond.is_at(node, link)).map(|bond| bond.links[0]);
        let port = first.map_or(port, |link| 2 * link + self.links[link].end_of(node));
        let [a, b, c, d] = (port as u32 + 1).to_be_bytes();
        [0x02, 0x00, a, b, c, d]
    }

    /// The number of the transmitter of a hop: twice that of its link, and its end.
    pub fn port_of(&self, hop: &Hop) -> usize {
        2 * hop.link + self.links[hop.link].end_of(hop.from)
    }

    /// Links of a leg in its direction; of a tunnel, those of the way that always takes the first of several legs.
    pub fn hops(&self, leg: Leg) -> Vec<Hop> {
        match leg {
            Leg::Link(hop) => vec![hop],
            Leg::Circuit { circuit, forward: true } => self.circuits[circuit].route.clone(),
            Leg::Circuit { circuit, forward: false } => reversed(&self.circuits[circuit].route),
            Leg::Tunnel { tunnel, forward } => self.tunnels[tunnel].way(forward).route.clone(),
        }
    }

    /// Whether a leg drops packets that are too long for it, whoever sent them.
    pub fn refuses(&self, leg: Leg) -> bool {
        matches!(leg, Leg::Tunnel { tunnel, .. } if self.tunnels[tunnel].config.fragment == Fragment::None)
    }

    /// A leg, and all legs that packets in it may take if it is a tunnel.
    pub fn legs_within(&self, leg: Leg) -> Vec<Leg> {
        let mut legs = vec![leg];
        if let Leg::Tunnel { tunnel, forward } = leg {
            let within = self.tunnels[tunnel].way(forward).fan.legs();
            legs.extend(within.flat_map(|leg| self.legs_within(leg)));
        }
        legs
    }

    /// The path over these hops, as that of all packets of a flow.
    pub fn path(&self, route: &[Hop]) -> Path {
        let step = |hop: &Hop| Step {
            link: self.links[hop.link].name.clone(),
            from: self.nodes[hop.from].clone(),
            to: self.nodes[hop.to].clone(),
        };
        Path { share: 1.0, steps: route.iter().map(step).collect() }
    }

    /// The largest IP packet of a leg, in bytes.
    pub fn mtu(&self, leg: Leg) -> u64 {
        match leg {
            Leg::Link(hop) => self.links[hop.link].mtu,
            Leg::Circuit { circuit, .. } => self.circuits[circuit].mtu,
            Leg::Tunnel { tunnel, .. } => self.tunnels[tunnel].mtu,
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
    /// The line of the transmitter at each end, in the order of `ends`.
    pub lines: [Line; 2],
    /// Propagation delay, positive.
    pub delay: Time,
    /// Largest IP packet in bytes on Ethernet and point-to-point links.
    pub mtu: u64,
    /// Bytes around a packet on point-to-point links.
    pub overhead: u64,
    /// Whether frames carry a VLAN tag; only on Ethernet links.
    pub vlan: bool,
    /// Most that a packet is late beyond the delay, order kept; zero on ATM links.
    pub jitter: Time,
    /// Share of the packets that are lost at random; zero on ATM links.
    pub loss: Share,
    /// Share of the packets that arrive later than others sent after them, and how much later; never on ATM links.
    pub reorder: Option<(Share, Time)>,
    /// Queue discipline of the transmitter at each end; `None` at hosts and ATM switches, which have none. At a router it is
    /// there on ATM links, too: for the packets that wait to become cells.
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
    /// A line of this medium at `rate` bit/s.
    pub fn new(medium: Medium, rate: u64) -> Self {
        Self { rate, framing: medium.framing(rate) }
    }
}

impl LinkEnds {
    /// Place of `node`, one of the two nodes, in `ends`.
    pub fn end_of(&self, node: NodeId) -> usize {
        usize::from(self.ends[0] != node)
    }

    /// The line of the transmitter at `node`, one of the two nodes.
    pub fn line_from(&self, node: NodeId) -> Line {
        self.lines[self.end_of(node)]
    }

    /// How the line of the transmitter at one end frames packets, in this `encapsulation` if it carries cells.
    pub fn wire(&self, end: usize, encapsulation: Encapsulation) -> Wire {
        let Line { rate, framing } = self.lines[end];
        Wire::new((rate, framing), self.vlan, self.overhead, encapsulation)
    }

    /// Bytes that an IP packet takes of a line that carries frames: on Ethernet with preamble, header, tag, padding, FCS and
    /// gap.
    ///
    /// # Panics
    /// On an ATM link: what a packet takes there depends on its circuit.
    pub fn line_bytes(&self, ip_bytes: u64) -> u64 {
        match self.lines[0].framing {
            Framing::Ethernet => ethernet::line_bytes(ip_bytes, self.vlan),
            Framing::Packets => self.overhead + ip_bytes,
            Framing::Cells { .. } => panic!("a line of cells carries no frames"),
        }
    }
}

/// One link of a route and the direction it is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// Index of the link.
    pub link: usize,
    /// Node at which the hop begins: the transmitter is there.
    pub from: NodeId,
    /// Node at which it ends.
    pub to: NodeId,
}

impl Hop {
    /// The same link in the other direction.
    pub fn back(self) -> Self {
        Self { link: self.link, from: self.to, to: self.from }
    }
}

/// The same way back.
pub(crate) fn reversed(route: &[Hop]) -> Vec<Hop> {
    route.iter().rev().map(|hop| hop.back()).collect()
}

/// A piece of the way of IP packets: between two nodes that handle packets, or an Ethernet switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leg {
    /// A link that carries frames.
    Link(Hop),
    /// A circuit from end to end.
    Circuit {
        /// Index of the circuit.
        circuit: usize,
        /// Whether it goes from the circuit's `from` to its `to`.
        forward: bool,
    },
    /// A tunnel from end to end.
    Tunnel {
        /// Index of the tunnel.
        tunnel: usize,
        /// Whether it goes from the first of the tunnel's ends to the second.
        forward: bool,
    },
}

impl Leg {
    /// The same leg in the other direction.
    pub fn back(self) -> Self {
        match self {
            Self::Link(hop) => Self::Link(hop.back()),
            Self::Circuit { circuit, forward } => Self::Circuit { circuit, forward: !forward },
            Self::Tunnel { tunnel, forward } => Self::Tunnel { tunnel, forward: !forward },
        }
    }
}

/// A circuit resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitPath {
    /// Name of the circuit, or of the traffic that brings it.
    pub name: String,
    /// Route from the circuit's `from` to its `to`; the shortest by number of links, ties by the order of the links in
    /// the file. At least one hop.
    pub route: Vec<Hop>,
    /// Service category.
    pub category: Category,
    /// Encapsulation of IP packets.
    pub encapsulation: Encapsulation,
    /// Largest IP packet in bytes.
    pub mtu: u64,
    /// Pace of the shaper at the sending NIC, the fastest one of a shaper that adapts, never faster than its link; `None`: at the pace of the link.
    pub shaping: Option<Pace>,
    /// CLP of its cells, both ways.
    pub clp: bool,
    /// Increment, tolerance and action of the policer at the first switch.
    pub policing: Option<(Pace, Time, PolicingAction)>,
}

/// Most tunnels that a packet may be in.
pub const MOST_TUNNELS: usize = 8;

/// A tunnel resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelPath {
    /// Name in the file.
    pub name: String,
    /// What the file says of it.
    pub config: Tunnel,
    /// The routers at its ends, in the order of the file.
    pub ends: [NodeId; 2],
    /// Whether packets enter it: it is up, and so are those that carry it.
    pub is_up: bool,
    /// Tunnels that packets in it are in: 1, and those that carry it.
    pub depth: usize,
    /// Largest packet that enters it, in bytes, without the outer headers.
    pub mtu: u64,
    /// Bytes of the outer headers.
    pub added: u64,
    /// The ways of its outer packets from the first end to the second, and back.
    pub ways: [TunnelWay; 2],
}

impl TunnelPath {
    /// The way of its outer packets in one direction.
    pub fn way(&self, forward: bool) -> &TunnelWay {
        &self.ways[usize::from(!forward)]
    }

    /// The routers at which packets enter it and leave it.
    pub fn from_to(&self, forward: bool) -> [NodeId; 2] {
        let [from, to] = self.ends;
        if forward { [from, to] } else { [to, from] }
    }
}

/// A bond resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct BondPath {
    /// Name in the file.
    pub name: String,
    /// The host or Ethernet switch whose interface it is.
    pub node: NodeId,
    /// The node to which all its links lead.
    pub peer: NodeId,
    /// Its links, in the order in which its mode counts them.
    pub links: Vec<usize>,
    /// What the file says of it.
    pub config: Bond,
}

impl BondPath {
    /// Whether a link is one of its members, and this the node whose bond it is.
    pub fn is_at(&self, node: NodeId, link: usize) -> bool {
        self.node == node && self.links.contains(&link)
    }
}

/// The way of a tunnel's outer packets in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelWay {
    /// The links of the way that always takes the first of several legs.
    pub route: Vec<Hop>,
    /// All the legs that they may take.
    pub fan: Fan,
}

/// Where a traffic table's packets go.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPath {
    /// Name of the traffic.
    pub name: String,
    /// Sending host.
    pub from: NodeId,
    /// Receiving host.
    pub to: NodeId,
    /// The circuit it takes if that leads from host to host; it may use it against its direction. `None` where frames are
    /// forwarded: see the legs.
    pub circuit: Option<usize>,
    /// Whether it goes from that circuit's `from` to its `to`.
    pub forward: bool,
    /// Links it crosses, in its own direction, those of circuits included.
    pub route: Vec<Hop>,
    /// The way in pieces, in its own direction; at least one. Where policies choose it is the way that always takes the first of
    /// several legs.
    pub legs: Vec<Leg>,
    /// The largest IP packet at the sender, in bytes: that of the first leg. The sending host cuts datagrams for it.
    pub mtu: u64,
    /// The largest IP packet that passes whole every leg that packets of its own direction may take, in bytes.
    pub path_mtu: u64,
    /// All the legs between which policies choose: those of its packets, and those of the packets that come back. `None` where nothing
    /// chooses on any shortest way in either direction: then all packets take `legs`, and those that come back take them reversed.
    /// Packets that a circuit carries from host to host have no choice, nor those whose traffic names a circuit.
    pub fans: Option<Box<[Fan; 2]>>,
    /// Whether its sender discovers the path MTU (RFC 1191): routers may not cut packets with its data.
    pub discovers_mtu: bool,
    /// The ways of the messages with which routers tell its sender of packets that they drop: of traffic, of those that are too long for the next leg; empty
    /// unless it discovers the path MTU.
    pub icmp: Box<[IcmpWay]>,
    /// Sources of packets and connections of the file before this traffic: the source port of its packets follows from it.
    pub first_source: u64,
    /// Pace of the cells of a `cbr` or `on-off` source; `None` for other kinds and for a rate of zero.
    pub cells: Option<Pace>,
    /// The tree of a multicast traffic with several receivers; empty for other traffic. The fields above are those of the way to the first receiver.
    pub branches: Box<[Branch]>,
    /// The address of the group that a multicast traffic goes to.
    pub group: Option<IpAddr>,
}

/// The way of ICMP messages from a router to the sender of a traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpWay {
    /// The router.
    pub router: NodeId,
    /// The way in pieces; where policies choose, the one that always takes the first of several legs.
    pub legs: Vec<Leg>,
    /// All the legs between which policies choose; `None` where nothing chooses.
    pub fan: Option<Fan>,
}

/// What an event changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPath {
    /// Name of the event.
    pub name: String,
    /// Index of the link.
    pub link: usize,
    /// Which end of the link sees its changes, in the order of the link's `ends`.
    pub seen_by: [bool; 2],
}

/// The legs that packets from one host to another may take. Every leg leads strictly closer to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fan {
    /// For every node to which the packets may come but the end, by node: the legs on which they may go on, in the order of the file, the members of
    /// a bond in that of the bond. Several only at routers whose policy chooses, and where there is a bond.
    pub at: Vec<(NodeId, Vec<Leg>)>,
}

impl Fan {
    /// The legs of one way, each with the node at which it begins.
    pub fn along(legs: impl Iterator<Item = (NodeId, Leg)>) -> Self {
        let mut at: Vec<(NodeId, Vec<Leg>)> = legs.map(|(node, leg)| (node, vec![leg])).collect();
        at.sort_unstable();
        Self { at }
    }

    /// Whether packets may take several legs anywhere.
    pub fn has_choice(&self) -> bool {
        self.at.iter().any(|(_, legs)| legs.len() > 1)
    }

    /// The legs on which packets may go on at a node; none where they do not come to it, and at the end.
    pub fn legs_at(&self, node: NodeId) -> &[Leg] {
        let place = self.at.binary_search_by_key(&node, |(at, _)| *at);
        place.map_or(&[], |place| &self.at[place].1)
    }

    /// All legs.
    pub fn legs(&self) -> impl Iterator<Item = Leg> {
        self.at.iter().flat_map(|(_, legs)| legs.iter().copied())
    }
}
