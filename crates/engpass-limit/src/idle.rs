//! The idle delay of a flow: how long a unit takes one way if it meets nothing else. docs/model.md has each step.

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
    /// Its arrival, as a whole, at the current place of the computation, in picoseconds.
    pub(super) at: u64,
    /// By tunnel that it is in, the packet that entered: its number, and its bytes of IP payload.
    entered: Vec<(usize, u64)>,
}

impl Packet {
    /// A packet at its sender.
    pub(super) fn new(payload: u64, at: u64) -> Self {
        Self { payload, at, entered: Vec::new() }
    }
}

/// Something that serves bytes or cells one after the other: a line, or a shaper.
struct Server {
    pace: Pace,
    base: u64,
    units: u64,
}

impl Server {
    fn new(pace: Pace) -> Self {
        Self { pace, base: 0, units: 0 }
    }

    /// Serves `units` that come at `at`. Returns the begin of the service, and the instant at which all but the last `gap` units have left.
    fn serve(&mut self, at: u64, units: u64, gap: u64) -> (u64, u64) {
        if at > self.base + self.pace.after(self.units) {
            (self.base, self.units) = (at, 0);
        }
        let begins = self.base + self.pace.after(self.units);
        self.units += units;
        (begins, self.base + self.pace.after(self.units - gap))
    }
}

/// The ways that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The shortest of all possible ones.
    Shortest,
    /// The longest of those that packets take while everything is up.
    Longest,
}

/// The packets of a unit at its receiver.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    /// When the last of them is there, in picoseconds.
    pub(super) last: u64,
    /// How many there are, at least.
    pub(super) packets: u64,
}

/// Packets on the ways of a spread that meet nothing else.
pub(super) struct Travel<'a> {
    testbed: &'a Testbed,
    topology: &'a Topology,
    spread: &'a Spread,
    pick: Pick,
    /// Of a lone packet with so many bytes of IP payload at a stop, in tunnels that packets of so many entered.
    known: BTreeMap<(usize, u64, Vec<u64>), Arrived>,
}

impl<'a> Travel<'a> {
    pub(super) fn new(testbed: &'a Testbed, topology: &'a Topology, spread: &'a Spread, pick: Pick) -> Self {
        Self { testbed, topology, spread, pick, known: BTreeMap::new() }
    }

    /// The arrival of packets that the sender hands to its NIC, in order.
    pub(super) fn of(&mut self, packets: Vec<Packet>) -> Arrived {
        self.from(0, packets)
    }

    /// From a stop on. Packets on one way wait for each other; where they may part, each goes on as if it were alone.
    fn from(&mut self, mut stop: usize, mut packets: Vec<Packet>) -> Arrived {
        loop {
            match self.onward(stop)[..] {
                [] => {
                    let last = packets.iter().map(|packet| packet.at).max().expect("a unit has a packet");
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
        // Fragments that are put together at the end of a tunnel come from there as one.
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

    /// Of a packet at a stop with several ways, from its arrival there on.
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
        let picked = picked.expect("there are several ways");
        self.known.insert(key, picked);
        picked
    }

    /// Packets take what leads on from a stop.
    fn by(&self, by: Move, packets: Vec<Packet>) -> Vec<Packet> {
        match by {
            Move::Leg(leg) => cross(self.testbed, self.topology, leg, packets),
            Move::Enter(leg) => enter(self.topology, leg, packets),
            Move::Leave => leave(packets),
        }
    }

    /// The legs that count at a stop.
    fn onward(&self, stop: usize) -> Vec<Onward> {
        let counts = |onward: &&Onward| self.pick == Pick::Shortest || onward.share > 0.0;
        self.spread.stops[stop].onward.iter().filter(counts).copied().collect()
    }
}

/// Packets are cut if they are too long for a leg.
fn cut(topology: &Topology, leg: PathSegment, packets: Vec<Packet>) -> Vec<Packet> {
    let mtu = topology.mtu(leg);
    let cut = |packet: Packet| {
        let fragments = Fragments::cut(&[packet.payload], mtu).into_iter();
        fragments.map(move |payload| Packet { payload, ..packet.clone() })
    };
    packets.into_iter().flat_map(cut).collect()
}

/// Packets enter a tunnel.
fn enter(topology: &Topology, leg: PathSegment, packets: Vec<Packet>) -> Vec<Packet> {
    let PathSegment::Tunnel { tunnel, .. } = leg else { unreachable!("packets enter tunnels") };
    let added = topology.tunnels[tunnel].added;
    let mut packets = cut(topology, leg, packets);
    for (number, packet) in packets.iter_mut().enumerate() {
        packet.entered.push((number, packet.payload));
        packet.payload += added;
    }
    packets
}

/// Packets leave a tunnel: what was cut in it is put together when the last fragment is there.
fn leave(packets: Vec<Packet>) -> Vec<Packet> {
    let mut whole: Vec<Packet> = Vec::new();
    for packet in packets {
        match whole.iter_mut().find(|known| known.entered == packet.entered) {
            Some(known) => known.at = known.at.max(packet.at),
            None => whole.push(packet),
        }
    }
    for packet in &mut whole {
        (_, packet.payload) = packet.entered.pop().expect("packets are in a tunnel");
    }
    // They go on in the order in which they are whole.
    whole.sort_by_key(|packet| packet.at);
    whole
}

/// A leg takes packets to the node at its end, and the node passes them on. They are cut if they are too long for the leg.
fn cross(testbed: &Testbed, topology: &Topology, leg: PathSegment, packets: Vec<Packet>) -> Vec<Packet> {
    let mut packets = cut(topology, leg, packets);
    match leg {
        PathSegment::Link(hop) => frames(topology, hop, &mut packets),
        PathSegment::Circuit { circuit, forward } => {
            let CircuitPath { encapsulation, shaping, .. } = topology.circuits[circuit];
            cells(topology, &topology.hops(leg), encapsulation, shaping.filter(|_| forward), &mut packets);
        }
        PathSegment::Tunnel { .. } => unreachable!("packets enter tunnels, and cross what is in them"),
    }
    forward(testbed, topology, topology.last_hop(leg).to, &mut packets);
    packets
}

/// A line of frames takes packets to its other end.
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

/// A circuit takes packets to its other end, cell by cell.
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
            Framing::Ethernet | Framing::Packets => unreachable!("a circuit is made of ATM links"),
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

/// A node passes on the packets that have come to it.
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
