//! The paths of each connection of a flow: those that policies choose with all links up, and those that they may choose otherwise.

use std::collections::BTreeMap;

use engpass_model::forward::{Headers, PacketView};
use engpass_model::source::{Traffic, poisson::Sizes};
use engpass_model::wire::ip::{IP_HEADER_BYTES, UDP_HEADER_BYTES};

use super::choice::{Choice, choice, macs};
use super::heads::{heads, tunnel_heads};
use crate::testbed::Testbed;
use crate::topology::{Fan, NodeId, NodeKind, PathSegment, Topology};

/// Connections of a flow whose packets take the same paths. A flow without connections counts as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Number of connections.
    pub connections: u32,
    /// The paths of their packets.
    pub there: Spread,
    /// The paths of the returning packets.
    pub back: Spread,
}

/// All paths that packets from one node to another may take, as a graph of stops.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// The stops that packets may reach. The first is the sender, the last the receiver, and every move leads to a later stop. A node may have
    /// several stops, because unfragmented datagrams and fragments, or packets inside and outside a tunnel, may continue differently.
    pub stops: Vec<Stop>,
}

/// A stop of packets on their paths: a node, together with the tunnels in which packets are at this node.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// The node of the stop.
    pub node: NodeId,
    /// Indices of the tunnels in which the packets are, in the order in which they entered them.
    pub tunnels: Vec<usize>,
    /// The moves that packets may make from here, in the order of the file; empty at the receiver.
    pub onward: Vec<Onward>,
    /// True if packets take the path segments in turn, with constant weights: no event changes an interface among which the router chooses.
    pub in_turns: bool,
}

/// One move from a stop to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Packets cross a link or a circuit.
    Leg(PathSegment),
    /// Packets enter a tunnel; the node stays the same.
    Enter(PathSegment),
    /// Packets leave the tunnel that they entered last; the node stays the same.
    Leave,
}

impl Move {
    /// Returns the path segment that packets take or enter.
    pub fn leg(self) -> Option<PathSegment> {
        match self {
            Self::Leg(leg) | Self::Enter(leg) => Some(leg),
            Self::Leave => None,
        }
    }
}

/// A move from a stop, with the share of packets that make it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Onward {
    /// The move.
    pub by: Move,
    /// Share of the packets at the stop that make this move with all links up. It is 0 if packets make the move only after an event, or only if they
    /// have another length. If lengths vary, half of the packets count as fragments.
    pub share: f64,
    /// Index of the stop that the move leads to.
    pub to: usize,
}

impl Spread {
    /// Returns the moves of all packets in sequence if there is only one path; otherwise `None`.
    pub fn only_way(&self) -> Option<Vec<Move>> {
        let onward = self.stops.iter().filter(|stop| !stop.onward.is_empty());
        onward.map(|stop| if let [only] = &stop.onward[..] { Some(only.by) } else { None }).collect()
    }

    fn one_way(topology: &Topology, from: NodeId, legs: impl Iterator<Item = PathSegment>) -> Self {
        let mut way = Self { stops: vec![Stop::at(from)] };
        legs.for_each(|leg| way.extend(topology, leg));
        way
    }

    /// Extends the path by a path segment, without a choice.
    fn extend(&mut self, topology: &Topology, leg: PathSegment) {
        let PathSegment::Tunnel { tunnel, forward } = leg else {
            return self.goes_on(Move::Leg(leg), topology.last_hop(leg).to);
        };
        let [from, to] = topology.tunnels[tunnel].from_to(forward);
        self.goes_on(Move::Enter(leg), from);
        let inside = self.stops.len() - 1;
        self.stops[inside].tunnels.push(tunnel);
        let mut node = from;
        while node != to {
            let leg = topology.tunnels[tunnel].way(forward).fan.legs_at(node)[0];
            self.extend(topology, leg);
            node = self.stops[self.stops.len() - 1].node;
        }
        self.goes_on(Move::Leave, to);
        let outside = self.stops.len() - 1;
        self.stops[outside].tunnels.pop();
    }

    fn goes_on(&mut self, by: Move, node: NodeId) {
        let to = self.stops.len();
        let before = &mut self.stops[to - 1];
        before.onward.push(Onward { by, share: 1.0, to });
        let tunnels = before.tunnels.clone();
        self.stops.push(Stop { tunnels, ..Stop::at(node) });
    }
}

impl Stop {
    fn at(node: NodeId) -> Self {
        Self { node, tunnels: Vec::new(), onward: Vec::new(), in_turns: false }
    }
}

/// Groups the connections of a flow by their paths, in the order of the first connection of each group.
pub fn lanes(testbed: &Testbed, topology: &Topology, flow: usize) -> Vec<Lane> {
    let (path, traffic) = (&topology.flows[flow], &testbed.traffic[flow]);
    let connections = traffic.streams();
    let Some(fans) = &path.fans else {
        let there = Spread::one_way(topology, path.from, path.legs.iter().copied());
        let back = Spread::one_way(topology, path.to, path.legs.iter().rev().map(|leg| leg.back()));
        return vec![Lane { connections, there, back }];
    };
    let mut lanes: Vec<Lane> = Vec::new();
    for stream in 0..connections {
        let heads = heads(testbed, topology, flow, stream as usize);
        let spread = |(fan, from, to, heads): (&Fan, NodeId, NodeId, Headers)| {
            let lengths = Lengths::of(traffic, topology, fan, path.mtu);
            let known = BTreeMap::new();
            let stops = Vec::new();
            Walk { testbed, topology, fan, to, heads, lengths, inside: Vec::new(), stops, known }.spread(from)
        };
        let there = spread((&fans[0], path.from, path.to, heads));
        let back = spread((&fans[1], path.to, path.from, heads.reversed()));
        match lanes.iter_mut().find(|lane| lane.there == there && lane.back == back) {
            Some(lane) => lane.connections += 1,
            None => lanes.push(Lane { connections: 1, there, back }),
        }
    }
    lanes
}

/// The kind of packets that reach a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Packets {
    /// Unfragmented datagrams.
    Whole,
    Fragments,
    Both,
}

/// Advance knowledge about the packets of a group of connections.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    /// Length of each datagram as one IP packet, in bytes, if all are equally long.
    all: Option<u64>,
    /// The kind of packets that the sender sends: datagrams or fragments.
    sent: Packets,
    /// True if `sent` is certain for all packets.
    certain: bool,
}

impl Lengths {
    fn of(traffic: &Traffic, topology: &Topology, fan: &Fan, mtu: u64) -> Self {
        /// Upper bound of a TCP segment without data as an IP packet, in bytes.
        const LONGEST_ACK: u64 = 120;
        let equal = |message: u64| {
            let bytes = IP_HEADER_BYTES + UDP_HEADER_BYTES + message;
            let sent = if bytes > mtu { Packets::Fragments } else { Packets::Whole };
            Self { all: Some(bytes), sent, certain: true }
        };
        match traffic {
            Traffic::UdpStream(config) if !config.sentinels => equal(config.message.bytes()),
            Traffic::UdpOnOff(config) => equal(config.message.bytes()),
            Traffic::Video(config) => equal(config.message.bytes()),
            Traffic::Poisson(config) if config.sizes == Sizes::Fixed => equal(config.message.bytes()),
            // The sender sizes segments for the smallest MTU of all paths.
            Traffic::TcpStream(_) => {
                let certain = fan.legs().all(|leg| topology.mtu(leg) >= LONGEST_ACK);
                Self { all: None, sent: Packets::Whole, certain }
            }
            _ => Self { all: None, sent: Packets::Both, certain: false },
        }
    }
}

/// A walk over all paths of a group of connections, in one direction.
struct Walk<'a> {
    testbed: &'a Testbed,
    topology: &'a Topology,
    fan: &'a Fan,
    to: NodeId,
    heads: Headers,
    lengths: Lengths,
    /// The tunnels that packets are in at this point, in the order of entry.
    inside: Vec<Inside>,
    /// Stops found so far; each comes after the stops to which it leads.
    stops: Vec<Stop>,
    known: BTreeMap<(NodeId, FramedAt, Packets, Vec<Inside>), usize>,
}

/// Number of the transmitter of the last host or router that sent it. Known only at switches, and only if the testbed has bonds, which may hash MAC addresses.
type FramedAt = Option<usize>;

/// A tunnel, its direction, and the kind of packets in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Inside {
    tunnel: usize,
    forward: bool,
    packets: Packets,
}

impl Walk<'_> {
    fn spread(mut self, from: NodeId) -> Spread {
        self.stop(from, None, self.lengths.sent);
        let last = self.stops.len() - 1;
        let mut stops = self.stops;
        stops.reverse();
        stops.iter_mut().flat_map(|stop| &mut stop.onward).for_each(|onward| onward.to = last - onward.to);
        Spread { stops }
    }

    /// Returns the index of the stop for these packets at a node; creates the stop if it is new.
    fn stop(&mut self, node: NodeId, framed_at: FramedAt, packets: Packets) -> usize {
        let ends = self
            .inside
            .last()
            .map_or(self.to, |inside| self.topology.tunnels[inside.tunnel].from_to(inside.forward)[1]);
        let key = (node, framed_at, if node == ends { Packets::Whole } else { packets }, self.inside.clone());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let (mut onward, mut in_turns) = (Vec::new(), false);
        if node != ends {
            let legs;
            (legs, in_turns) = self.legs(node, framed_at, packets);
            for (leg, share, packets) in legs {
                let packets = self.behind(node, leg, packets);
                let (by, to) = if let PathSegment::Tunnel { tunnel, forward } = leg {
                    self.inside.push(Inside { tunnel, forward, packets });
                    // Outer packets show no ports, so their fragments get the same choices.
                    let to = self.stop(node, None, Packets::Whole);
                    self.inside.pop();
                    (Move::Enter(leg), to)
                } else {
                    let next = self.topology.last_hop(leg).to;
                    (Move::Leg(leg), self.stop(next, self.framed_behind(node, framed_at, leg), packets))
                };
                onward.push(Onward { by, share, to });
            }
        } else if let Some(inside) = self.inside.pop() {
            let to = self.stop(node, None, inside.packets);
            self.inside.push(inside);
            onward.push(Onward { by: Move::Leave, share: 1.0, to });
        }
        let tunnels = self.inside.iter().map(|inside| inside.tunnel).collect();
        self.stops.push(Stop { node, tunnels, onward, in_turns });
        self.known.insert(key, self.stops.len() - 1);
        self.stops.len() - 1
    }

    /// Returns the path segments that packets take at a node, each with its share and the kind of packets behind it; and true if packets take turns that no
    /// event changes.
    fn legs(
        &self,
        node: NodeId,
        framed_at: FramedAt,
        packets: Packets,
    ) -> (Vec<(PathSegment, f64, Packets)>, bool) {
        let topology = self.topology;
        let (fan, heads, certain) = match self.inside.last() {
            None => (self.fan, self.heads, self.lengths.certain),
            Some(Inside { tunnel, forward, .. }) => {
                let way = topology.tunnels[*tunnel].way(*forward);
                (&way.fan, tunnel_heads(topology, *tunnel, *forward), true)
            }
        };
        let legs = fan.legs_at(node);
        if legs.len() <= 1 {
            return (legs.iter().map(|leg| (*leg, 1.0, packets)).collect(), false);
        }
        let Choice { members, mut policy, .. } = choice(self.testbed, topology, node, legs);
        let may_change = legs.iter().any(|leg| topology.sees_events(node, *leg));
        if let Some(shares) = policy.shares(&members) {
            let legs = legs.iter().zip(shares).map(|(leg, share)| (*leg, share, packets));
            return (legs.collect(), !may_change);
        }
        let framed_at = framed_at.unwrap_or_else(|| topology.port_of(&topology.first_hop(legs[0])));
        let macs = macs(topology, fan, framed_at, legs[0]);
        let mut choose =
            |fragment| policy.decide(&PacketView { heads: &heads, fragment, macs }, &members).member;
        let mut taken = vec![(0.0, packets); legs.len()];
        match packets {
            Packets::Whole => taken[choose(false)].0 = 1.0,
            Packets::Fragments => taken[choose(true)].0 = 1.0,
            Packets::Both => match [choose(false), choose(true)] {
                [whole, fragment] if whole == fragment => taken[whole].0 = 1.0,
                [whole, fragment] => {
                    (taken[whole], taken[fragment]) = ((0.5, Packets::Whole), (0.5, Packets::Fragments))
                }
            },
        }
        let all = !certain || may_change;
        let legs = legs.iter().zip(taken).map(|(leg, (share, packets))| (*leg, share, packets));
        (legs.filter(|(_, share, _)| all || *share > 0.0).collect(), false)
    }

    /// Returns the transmitter that sent a frame which arrives over this path segment, if a switch receives it and a bond may hash its MAC address.
    fn framed_behind(&self, node: NodeId, framed_at: FramedAt, leg: PathSegment) -> FramedAt {
        let is_switch = |node| matches!(self.topology.kind(node), NodeKind::Switch(_));
        let asks = !self.topology.bonds.is_empty() && is_switch(self.topology.last_hop(leg).to);
        let sent_at = || {
            framed_at
                .filter(|_| is_switch(node))
                .unwrap_or_else(|| self.topology.port_of(&self.topology.first_hop(leg)))
        };
        asks.then(sent_at)
    }

    /// Returns the kind of packets on a path segment: a router fragments packets that are too long for it.
    fn behind(&self, node: NodeId, leg: PathSegment, packets: Packets) -> Packets {
        let routed = matches!(self.topology.kind(node), NodeKind::Router(_));
        let too_long =
            self.inside.is_empty() && self.lengths.all.is_some_and(|bytes| bytes > self.topology.mtu(leg));
        if routed && too_long && !self.topology.refuses(leg) { Packets::Fragments } else { packets }
    }
}
