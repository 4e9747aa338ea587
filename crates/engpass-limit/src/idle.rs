//! The idle delay of a flow: the time that a message or segment takes to its receiver without other traffic. docs/model.md describes each step.

use std::collections::BTreeMap;

use engpass_model::idle::{self, LoneLine, LonePacket};
use engpass_model::switch::Switch;
use engpass_model::time::Pace;
use engpass_model::wire::{Encapsulation, Framing, aal5, ethernet};
use engpass_testbed::topology::{CircuitPath, Hop, Line, NodeKind, PathSegment};
use engpass_testbed::{Move, Onward, Spread, Topology};

use crate::engine_work::EngineWork;

/// The path that an idle delay is computed for, if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The fastest of all possible paths.
    Shortest,
    /// The slowest of the paths that packets take while everything is up.
    Longest,
}

/// Arrival of the packets of a message or segment at its receiver.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    /// Instant at which the last packet arrives, in picoseconds.
    pub(super) last: u64,
    /// Least number of packets that arrive.
    pub(super) packets: u64,
}

/// Computes the arrival of packets on the paths of a spread without other traffic.
pub(super) struct Travel<'a> {
    work: EngineWork<'a>,
    topology: &'a Topology,
    spread: &'a Spread,
    pick: Pick,
    /// Arrivals of a lone packet that are known: by stop, the packet's bytes of IP payload, and the bytes of the packets that entered the tunnels around it.
    known: BTreeMap<(usize, u64, Vec<u64>), Arrived>,
}

impl<'a> Travel<'a> {
    pub(super) fn new(work: EngineWork<'a>, spread: &'a Spread, pick: Pick) -> Self {
        Self { work, topology: work.topology, spread, pick, known: BTreeMap::new() }
    }

    /// Returns the arrival of the packets that the sender hands to its NIC, in order.
    pub(super) fn of(&mut self, packets: Vec<LonePacket>) -> Arrived {
        self.from(0, packets)
    }

    /// Returns the arrival of packets that are at a stop. Packets on one path wait for each other; where they may part, each continues as if it were alone.
    fn from(&mut self, mut stop: usize, mut packets: Vec<LonePacket>) -> Arrived {
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
                    self.by(only, &mut packets);
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
            if packet.entered().is_empty()
                || !counted.iter().any(|known: &LonePacket| known.entered() == packet.entered())
            {
                all.packets += one.packets;
            }
            counted.push(packet);
        }
        all
    }

    /// Returns the arrival of a packet at a stop with several paths, relative to the instant at which it is at this stop.
    fn lone(&mut self, stop: usize, packet: &LonePacket) -> Arrived {
        let entered: Vec<u64> = packet.entered().iter().map(|(_, payload)| *payload).collect();
        let key = (stop, packet.payload, entered);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let mut picked: Option<Arrived> = None;
        for onward in self.onward(stop) {
            let mut packets = vec![packet.clone()];
            packets[0].at = 0;
            self.by(onward, &mut packets);
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
    fn by(&self, onward: Onward, packets: &mut Vec<LonePacket>) {
        match onward.by {
            Move::Leg(leg) => {
                cross(self.topology, leg, packets);
                self.forward(self.topology.last_hop(leg), onward.to, packets);
            }
            Move::Enter(leg) => {
                let PathSegment::Tunnel { tunnel, .. } = leg else {
                    unreachable!("only a tunnel segment is entered")
                };
                idle::enter_tunnel(packets, self.topology.mtu(leg), self.topology.tunnels[tunnel].added);
            }
            Move::Leave => idle::leave_tunnel(packets),
        }
    }

    /// Forwards packets that have come to a stop over a link.
    fn forward(&self, hop: Hop, stop: usize, packets: &mut [LonePacket]) {
        match self.topology.kind(hop.to) {
            NodeKind::Host(_) => {}
            NodeKind::Switch(index) => {
                if let Switch::Ethernet(switch) = &self.work.testbed.switches[index] {
                    packets.iter_mut().for_each(|packet| packet.at += switch.latency.0);
                }
            }
            NodeKind::Router(index) => self.work.pass(index, hop.link, (self.spread, stop), packets),
        }
    }

    /// Returns the moves from a stop that count.
    fn onward(&self, stop: usize) -> Vec<Onward> {
        let counts = |onward: &&Onward| self.pick == Pick::Shortest || onward.share > 0.0;
        self.spread.stops[stop].onward.iter().filter(counts).copied().collect()
    }
}

/// Takes packets over a path segment to the node at its end. Fragments packets that are too long for the segment.
fn cross(topology: &Topology, leg: PathSegment, packets: &mut Vec<LonePacket>) {
    idle::cut(packets, topology.mtu(leg));
    match leg {
        PathSegment::Link(hop) => frames(topology, hop, packets),
        PathSegment::Circuit { circuit, forward } => {
            let CircuitPath { encapsulation, shaping, .. } = topology.circuits[circuit];
            cells(topology, &topology.hops(leg), encapsulation, shaping.filter(|_| forward), packets);
        }
        PathSegment::Tunnel { .. } => unreachable!("packets enter tunnels and cross the segments inside"),
    }
}

/// Takes packets over a frame line.
fn frames(topology: &Topology, hop: Hop, packets: &mut [LonePacket]) {
    let link = &topology.links[hop.link];
    let Line { rate, framing } = link.line_from(hop.from);
    let gap = if framing == Framing::Ethernet { ethernet::GAP_BYTES } else { 0 };
    let line = LoneLine { byte: Pace::of_bits(8, rate), gap, delay: link.delay.ps() };
    idle::cross_line(packets, line, |ip| link.line_bytes(ip));
}

/// Takes packets over a circuit.
fn cells(
    topology: &Topology,
    hops: &[Hop],
    encapsulation: Encapsulation,
    shaping: Option<Pace>,
    packets: &mut [LonePacket],
) {
    let line = |hop: &Hop| {
        let link = &topology.links[hop.link];
        match link.line_from(hop.from).framing {
            Framing::Cells { slot } => (slot, link.delay.ps()),
            Framing::Ethernet | Framing::Packets => unreachable!("a circuit crosses only ATM links"),
        }
    };
    let lines: Vec<_> = hops.iter().map(line).collect();
    let cells = |ip| aal5::cells(encapsulation.sdu(ip));
    idle::cross_circuit(packets, shaping.unwrap_or(lines[0].0), &lines, cells);
}
