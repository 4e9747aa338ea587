//! Idle delays: the time of a datagram in a network without other traffic (docs/model.md, "The end").
//!
//! The state is in `../idle.rs`.

use engpass_model::host::Side;
use engpass_model::wire::Framing;
use engpass_model::wire::ip::{IP_HEADER_BYTES, UDP_HEADER_BYTES};
use engpass_testbed::topology::{NodeId, NodeKind};

use super::Engine;
use crate::cell::LineId;
use crate::cost::Costs;
use crate::fragments::fragments;
use crate::idle::{Alone, Busy, Crossing};
use crate::packet::Out;
use crate::resolve::kind;
use crate::wire::{cells, line_bytes};

impl Engine<'_> {
    /// Records that a datagram is received, with its idle delay.
    pub(crate) fn receives(&mut self, now: u64, datagram: usize, refused: u64) {
        let this = self.ledger.datagram(datagram);
        let counted = this.number.is_some() && !this.generated;
        let path = this.path.clone().filter(|_| counted);
        let idle = path.map(|path| (self.idle_delay(datagram, &path), self.roundings(&path)));
        self.ledger.received(now, datagram, refused, idle);
    }

    /// Returns how often an instant may be rounded up on a path: once at each line, and once at each shaper.
    fn roundings(&self, path: &[Crossing]) -> u64 {
        let of = |crossing: &Crossing| match crossing {
            Crossing::Line(_) => 1,
            Crossing::Circuit(vc) => 1 + self.vcs[*vc].lines.len() as u64,
            Crossing::Enters(_) | Crossing::Leaves | Crossing::Engines(_) => 0,
        };
        path.iter().map(of).sum()
    }

    /// Returns the idle delay of a datagram on a path in picoseconds.
    fn idle_delay(&self, datagram: usize, path: &[Crossing]) -> u64 {
        let this = self.ledger.datagram(datagram);
        let traffic = &self.testbed.traffic[this.flow];
        let flow = &self.topology.flows[this.flow];
        let host = this.receiver.map_or(flow.to, |number| self.receiver(number).host);
        let send = Costs::of(&self.testbed.hosts[flow.from], Side::Send, traffic.data_path(Side::Send));
        let receive = Costs::of(&self.testbed.hosts[host], Side::Receive, traffic.data_path(Side::Receive));
        let alone = |bytes: u64, at: u64| Alone { bytes, at, inner: Vec::new() };
        if this.segment.is_some() {
            let mut packets = vec![alone(this.bytes(), send.segment())];
            self.cross(path, &mut packets);
            return packets[0].at + receive.segment() + receive.bytes(this.payload);
        }
        let (mut packets, mut at) = (Vec::new(), send.datagram_start());
        for (offset, bytes) in fragments(this.bytes(), flow.mtu) {
            at += send.fragment(if offset == 0 { bytes - UDP_HEADER_BYTES } else { bytes });
            packets.push(alone(bytes, at));
        }
        self.cross(path, &mut packets);
        let complete = packets.iter().map(|packet| packet.at).max().expect("a datagram has packets");
        complete + receive.datagram(this.payload, packets.len() as u64)
    }

    /// Takes packets over a path.
    fn cross(&self, path: &[Crossing], packets: &mut Vec<Alone>) {
        for crossing in path {
            match *crossing {
                Crossing::Engines(ref times) => times.iter().for_each(|time| process(*time, packets)),
                Crossing::Line(line) => {
                    self.cut_at(self.topology.links[line.link].ends[line.end], Out::Line(line), packets);
                    self.cross_line(line, packets);
                }
                Crossing::Circuit(vc) => {
                    self.cut_at(self.vcs[vc].from, Out::Circuit(vc), packets);
                    self.cross_circuit(vc, packets);
                }
                Crossing::Enters(tunnel) => {
                    self.cut_at(self.tunnels[tunnel].from, Out::Tunnel(tunnel), packets);
                    for (number, packet) in packets.iter_mut().enumerate() {
                        packet.inner.push((number, packet.bytes));
                        packet.bytes += self.tunnels[tunnel].header + IP_HEADER_BYTES;
                    }
                }
                Crossing::Leaves => join(packets),
            }
        }
    }

    /// Cuts packets for the MTU of a path segment, if a router sends them.
    fn cut_at(&self, node: NodeId, out: Out, packets: &mut Vec<Alone>) {
        if !matches!(kind(&self.topology, node), NodeKind::Router(_)) {
            return;
        }
        let mut all = Vec::new();
        for packet in packets.drain(..) {
            for (_, bytes) in fragments(packet.bytes, self.mtu_of(out)) {
                all.push(Alone { bytes, ..packet.clone() });
            }
        }
        *packets = all;
    }

    fn cross_line(&self, line: LineId, packets: &mut [Alone]) {
        let this = &self.frame_lines[&line];
        let link = &self.topology.links[line.link];
        let mut busy = Busy::new(this.byte);
        for packet in packets.iter_mut() {
            busy.takes(packet.at, line_bytes(link, IP_HEADER_BYTES + packet.bytes));
            packet.at = busy.left(this.gap) + this.delay;
        }
    }

    fn cross_circuit(&self, vc: usize, packets: &mut [Alone]) {
        let this = &self.vcs[vc];
        let slot = |line: &LineId| match self.topology.links[line.link].lines[line.end].framing {
            Framing::Cells { slot } => slot,
            Framing::Ethernet | Framing::Packets => unreachable!("a circuit crosses ATM links"),
        };
        let shaping = self.topology.circuits[this.circuit].shaping.filter(|_| this.forward);
        let mut shaper = Busy::new(shaping.unwrap_or(slot(&this.lines[0])));
        let mut lines: Vec<Busy> = this.lines.iter().map(|line| Busy::new(slot(line))).collect();
        for packet in packets.iter_mut() {
            let handed = packet.at;
            for _ in 0..cells(self.sdu(vc, IP_HEADER_BYTES + packet.bytes)) {
                packet.at = shaper.takes(handed, 1);
                for (line, busy) in this.lines.iter().zip(&mut lines) {
                    busy.takes(packet.at, 1);
                    packet.at = busy.left(0) + self.topology.links[line.link].delay.ps();
                }
            }
        }
    }
}

/// Processes packets one after the other.
fn process(time: u64, packets: &mut [Alone]) {
    let mut done = 0;
    for packet in packets {
        done = done.max(packet.at) + time;
        packet.at = done;
    }
}

/// Takes packets out of the tunnel that they entered last. They go on in the order in which they are complete.
fn join(packets: &mut Vec<Alone>) {
    let mut whole: Vec<Alone> = Vec::new();
    for fragment in packets.drain(..) {
        let known = whole.iter_mut().find(|known| known.inner == fragment.inner);
        match known {
            Some(known) => known.at = known.at.max(fragment.at),
            None => whole.push(fragment),
        }
    }
    whole.sort_by_key(|packet| packet.at);
    for packet in &mut whole {
        packet.bytes = packet.inner.pop().expect("the packet is in a tunnel").1;
    }
    *packets = whole;
}
