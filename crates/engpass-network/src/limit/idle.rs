//! The idle delay of a flow: how long a unit takes one way if it meets nothing else. docs/model.md has each step.

use engpass_model::switch::Switch;
use engpass_model::time::Pace;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};
use engpass_model::wire::{Encapsulation, Framing, ethernet};
use engpass_testbed::topology::{Hop, Leg, Line, NodeId, NodeKind};
use engpass_testbed::{Testbed, Topology};

use super::layers::Wire;

/// A packet of a unit.
#[derive(Clone, Copy)]
pub(super) struct Packet {
    /// Bytes of IP payload.
    pub(super) payload: u64,
    /// Its arrival, as a whole, at the current place of the computation, in picoseconds.
    pub(super) at: u64,
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

/// The packets of a unit at its receiver, given those that the sender hands to its NIC, in order.
pub(super) fn arrivals(
    testbed: &Testbed,
    topology: &Topology,
    legs: &[Leg],
    mut packets: Vec<Packet>,
) -> Vec<Packet> {
    for leg in legs {
        let mtu = topology.mtu(*leg);
        let cut = |packet: Packet| {
            Fragments::cut(&[packet.payload], mtu)
                .into_iter()
                .map(move |payload| Packet { payload, ..packet })
        };
        packets = packets.into_iter().flat_map(cut).collect();
        let hops = topology.hops(*leg);
        match *leg {
            Leg::Link(hop) => frames(topology, hop, &mut packets),
            Leg::Circuit { circuit, forward } => {
                let circuit = &topology.circuits[circuit];
                cells(
                    topology,
                    &hops,
                    circuit.encapsulation,
                    circuit.shaping.filter(|_| forward),
                    &mut packets,
                );
            }
        }
        let last = hops.last().expect("a leg has a link");
        forward(testbed, topology, last.to, &mut packets);
    }
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
    let wire = Wire::new(first, first.end_of(hops[0].from), encapsulation);
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
