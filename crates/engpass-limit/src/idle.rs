//! The idle delay of a flow: the time that a unit takes one way without other traffic. docs/model.md describes each step.

use std::collections::BTreeMap;

use engpass_model::switch::Switch;
use engpass_model::time::Pace;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};
use engpass_model::wire::{Encapsulation, Framing, ethernet};
use engpass_testbed::topology::{CircuitPath, Hop, Line, NodeId, NodeKind, PathSegment};
use engpass_testbed::{Move, Onward, Spread, Testbed, Topology};

/// A packet of a unit.
#[derive(Clone)]
pub(super) struct Packet {
    /// Bytes of IP payload.
    pub(super) payload: u64,
    /// Arrival of the complete packet at the current place of the computation, in picoseconds.
    pub(super) at: u64,
    /// For each tunnel around it: number of the packet that entered, and its bytes of IP payload.
    entered: Vec<(usize, u64)>,
}

impl Packet {
    /// Returns a packet at its sender.
    pub(super) fn new(payload: u64, at: u64) -> Self {
        Self { payload, at, entered: Vec::new() }
    }
}

/// A server of bytes or cells, one after the other: a line or a shaper.
struct Server {
    pace: Pace,
    base: u64,
    units: u64,
}

impl Server {
    fn new(pace: Pace) -> Self {
        Self { pace, base: 0, units: 0 }
    }

    /// Serves `units` that arrive at `at`. Returns the begin of the service, and the instant at which all but the last `gap` units have left.
    fn serve(&mut self, at: u64, units: u64, gap: u64) -> (u64, u64) {
        if at > self.base + self.pace.after(self.units) {
            (self.base, self.units) = (at, 0);
        }
        let begins = self.base + self.pace.after(self.units);
        self.units += units;
        (begins, self.base + self.pace.after(self.units - gap))
    }
}

/// Choice among several paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The fastest of all possible paths.
    Shortest,
    /// The slowest of the paths that packets take while everything is up.
    Longest,
}

/// The packets of a unit at its receiver.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    /// Arrival of the last one, in picoseconds.
    pub(super) last: u64,
    /// Least number of packets.
    pub(super) packets: u64,
}

/// Computes the arrival of packets on the paths of a spread without other traffic.
pub(super) struct Travel<'a> {
    testbed: &'a Testbed,
    topology: &'a Topology,
    spread: &'a Spread,
    pick: Pick,
    /// Known arrivals of a lone packet: by stop, its bytes of IP payload, and the bytes of the packets that entered the tunnels around it.
    known: BTreeMap<(usize, u64, Vec<u64>), Arrived>,
}

impl<'a> Travel<'a> {
    pub(super) fn new(testbed: &'a Testbed, topology: &'a Topology, spread: &'a Spread, pick: Pick) -> Self {
        Self { testbed, topology, spread, pick, known: BTreeMap::new() }
    }

    /// Returns the arrival of packets that the sender hands to its NIC, in order.
    pub(super) fn of(&mut self, packets: Vec<Packet>) -> Arrived {
        self.from(0, packets)
    }

    /// Returns the arrival from a stop on. Packets on one path wait for each other. Where they may part, each goes on as if it were alone.
    fn from(&mut self, mut stop: usize, mut packets: Vec<Packet>) -> Arrived {
        loop {
            match self.onward(stop)[..] {
                [] => {
                    let last = packets
                        .iter()
                        .map(|packet| packet.at)
                        .max()
                        .expect("a message or segment has a packet");
                    return Arrived { last, packets: packets.len() as u64 };
                }
                [only] => {
                    packets = self.by(only.by, packets);
                    stop = only.to;
                }
                _ => break,
            }
        }
        let mut all = Arrived { last: 0, packets: 0 };
        // Fragments that are reassembled at the end of a tunnel go on as one packet.
        let mut counted = Vec::new();
        for packet in packets {
            let one = self.lone(stop, &packet);
            all.last = all.last.max(packet.at + one.last);
            if packet.entered.is_empty() || !counted.contains(&packet.entered) {
                all.packets += one.packets;
            }
            counted.push(packet.entered);
        }
        all
    }

    /// Returns the arrival of a packet from a stop with several paths, relative to its arrival there.
    fn lone(&mut self, stop: usize, packet: &Packet) -> Arrived {
        let entered: Vec<u64> = packet.entered.iter().map(|(_, payload)| *payload).collect();
        let key = (stop, packet.payload, entered);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let mut picked: Option<Arrived> = None;
        for onward in self.onward(stop) {
            let packets = self.by(onward.by, vec![Packet { at: 0, ..packet.clone() }]);
            let one = self.from(onward.to, packets);
            picked = Some(picked.map_or(one, |known| Arrived {
                last: match self.pick {
                    Pick::Shortest => known.last.min(one.last),
                    Pick::Longest => known.last.max(one.last),
                },
                packets: known.packets.min(one.packets),
            }));
        }
        let picked = picked.expect("the stop has several paths");
        self.known.insert(key, picked);
        picked
    }

    /// Moves packets on from a stop.
    fn by(&self, by: Move, packets: Vec<Packet>) -> Vec<Packet> {
        match by {
            Move::Leg(leg) => cross(self.testbed, self.topology, leg, packets),
            Move::Enter(leg) => enter(self.topology, leg, packets),
            Move::Leave => leave(packets),
        }
    }

    /// Returns the moves from a stop that count.
    fn onward(&self, stop: usize) -> Vec<Onward> {
        let counts = |onward: &&Onward| self.pick == Pick::Shortest || onward.share > 0.0;
        self.spread.stops[stop].onward.iter().filter(counts).copied().collect()
    }
}

/// Fragments packets that are too long for a path segment.
fn cut(topology: &Topology, leg: PathSegment, packets: Vec<Packet>) -> Vec<Packet> {
    let mtu = topology.mtu(leg);
    let cut = |packet: Packet| {
        let fragments = Fragments::cut(&[packet.payload], mtu).into_iter();
        fragments.map(move |payload| Packet { payload, ..packet.clone() })
    };
    packets.into_iter().flat_map(cut).collect()
}

/// Lets packets enter a tunnel: fragments them for it and adds its headers.
fn enter(topology: &Topology, leg: PathSegment, packets: Vec<Packet>) -> Vec<Packet> {
    let PathSegment::Tunnel { tunnel, .. } = leg else { unreachable!("only a tunnel segment is entered") };
    let added = topology.tunnels[tunnel].added;
    let mut packets = cut(topology, leg, packets);
    for (number, packet) in packets.iter_mut().enumerate() {
        packet.entered.push((number, packet.payload));
        packet.payload += added;
    }
    packets
}

/// Lets packets leave a tunnel. Packets that were fragmented in it are complete when their last fragment arrives.
fn leave(packets: Vec<Packet>) -> Vec<Packet> {
    let mut whole: Vec<Packet> = Vec::new();
    for packet in packets {
        match whole.iter_mut().find(|known| known.entered == packet.entered) {
            Some(known) => known.at = known.at.max(packet.at),
            None => whole.push(packet),
        }
    }
    for packet in &mut whole {
        (_, packet.payload) = packet.entered.pop().expect("the packet is in a tunnel");
    }
    // They go on in the order in which they are complete.
    whole.sort_by_key(|packet| packet.at);
    whole
}

/// Takes packets over a path segment to the node at its end, which forwards them. Fragments packets that are too long for the segment.
fn cross(testbed: &Testbed, topology: &Topology, leg: PathSegment, packets: Vec<Packet>) -> Vec<Packet> {
    let mut packets = cut(topology, leg, packets);
    match leg {
        PathSegment::Link(hop) => frames(topology, hop, &mut packets),
        PathSegment::Circuit { circuit, forward } => {
            let CircuitPath { encapsulation, shaping, .. } = topology.circuits[circuit];
            cells(topology, &topology.hops(leg), encapsulation, shaping.filter(|_| forward), &mut packets);
        }
        PathSegment::Tunnel { .. } => unreachable!("packets enter tunnels and cross the segments inside"),
    }
    forward(testbed, topology, topology.last_hop(leg).to, &mut packets);
    packets
}

/// Takes packets over a frame line.
fn frames(topology: &Topology, hop: Hop, packets: &mut [Packet]) {
    let link = &topology.links[hop.link];
    let Line { rate, framing } = link.line_from(hop.from);
    let mut line = Server::new(Pace::of_bits(8, rate));
    let gap = if framing == Framing::Ethernet { ethernet::GAP_BYTES } else { 0 };
    for packet in packets {
        let (_, left) = line.serve(packet.at, link.line_bytes(packet.payload + IP_HEADER_BYTES), gap);
        packet.at = left + link.delay.ps();
    }
}

/// Takes packets over a circuit, cell by cell.
fn cells(
    topology: &Topology,
    hops: &[Hop],
    encapsulation: Encapsulation,
    shaping: Option<Pace>,
    packets: &mut [Packet],
) {
    let slots: Vec<_> = hops
        .iter()
        .map(|hop| match topology.links[hop.link].line_from(hop.from).framing {
            Framing::Cells { slot } => slot,
            Framing::Ethernet | Framing::Packets => unreachable!("a circuit crosses only ATM links"),
        })
        .collect();
    let mut shaper = Server::new(shaping.unwrap_or(slots[0]));
    let mut lines: Vec<_> = slots.into_iter().map(Server::new).collect();
    let first = &topology.links[hops[0].link];
    let wire = first.wire(first.end_of(hops[0].from), encapsulation);
    for packet in packets {
        let handed = packet.at;
        for _ in 0..wire.packets(0, &[packet.payload]).cells() {
            let (mut at, _) = shaper.serve(handed, 1, 0);
            for (hop, line) in hops.iter().zip(&mut lines) {
                at = line.serve(at, 1, 0).1 + topology.links[hop.link].delay.ps();
            }
            packet.at = at;
        }
    }
}

/// Forwards the packets that have come to a node.
fn forward(testbed: &Testbed, topology: &Topology, node: NodeId, packets: &mut [Packet]) {
    match topology.kind(node) {
        NodeKind::Host(_) => {}
        NodeKind::Switch(index) => {
            if let Switch::Ethernet(switch) = &testbed.switches[index] {
                packets.iter_mut().for_each(|packet| packet.at += switch.latency.0);
            }
        }
        NodeKind::Router(index) => {
            let mut free = 0;
            for packet in packets {
                free = packet.at.max(free) + testbed.routers[index].per_packet.0;
                packet.at = free;
            }
        }
    }
}
