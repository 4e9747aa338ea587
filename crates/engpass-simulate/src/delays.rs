//! Delays of received datagrams beyond the plain ones: queueing, which is the delay less that of an idle network, and the delays of TCP messages.

use engpass_frames::{Crossing, Frames};
use engpass_model::idle::{self, LonePacket};
use engpass_model::wire::{Encapsulation, aal5};

use super::endpoint::Endpoint;
use super::host::{Hosts, View};
use super::packet_store::Datagram;
use super::queueing::{IdleKey, PathId};
use super::ready_packet::{EgressPath, ONWARD};
use super::shared_state::{SharedState, Vc};

/// What lone packets cross.
struct IdleNetwork<'a> {
    hosts: &'a Hosts,
    view: View<'a>,
    shared: &'a SharedState,
}

impl SharedState {
    /// Counts the queueing delay of a datagram whose idle delay is not the one used last for its flow.
    #[inline(never)]
    pub(super) fn count_queueing(&mut self, datagram: u32, key: IdleKey, hosts: &Hosts, view: View) {
        let this = &self.datagrams[datagram];
        let (flow, begun, apart) = (this.flow as usize, this.begun, this.paths_differ);
        if apart {
            // Its packets took different paths, so it has no idle delay.
            self.flows[flow].lose_queueing();
            return;
        }
        let first = self.flows[flow].queueing_mut().is_new();
        let known = if first { None } else { Some(*self.idle.cache.place(flow as u32, key)) };
        let idle = match known {
            Some((of, same, idle)) if (of as usize, same) == (flow, key) => idle,
            _ => self.idle_delay(datagram, key.path(), hosts, view),
        };
        if !first {
            *self.idle.cache.place(flow as u32, key) = (flow as u32, key, idle);
        }
        let queueing = self.flows[flow].queueing_mut();
        queueing.learn(key, idle);
        queueing.add(key, view.now - begun);
    }

    /// Returns the idle delay of a datagram that took this path, in picoseconds.
    fn idle_delay(&mut self, datagram: u32, path: PathId, hosts: &Hosts, view: View) -> u64 {
        let mut packets = std::mem::take(&mut self.idle.lone_packets);
        packets.clear();
        let this = &self.datagrams[datagram];
        let network = IdleNetwork { hosts, view, shared: self };
        let idle = match this.to.get().filter(|to| (*to as usize) < hosts.endpoints.len()) {
            Some(to) => network.idle_delay_of_segment(this, to as usize, path, &mut packets),
            None => network.idle_delay_of_message(this, path, &mut packets),
        };
        self.idle.lone_packets = packets;
        idle
    }

    /// Counts a segment that has arrived and has brought the application `delivered` bytes, its own or others.
    // Inlined, it would take registers from the code around it.
    #[inline(never)]
    pub(super) fn count_segment(
        &mut self,
        (datagram, path): (u32, PathId),
        delivered: u64,
        hosts: &mut Hosts,
        view: View,
    ) {
        let (this, now) = (&self.datagrams[datagram], view.now);
        let tally = &mut self.flows[this.flow as usize];
        tally.in_flight -= 1;
        tally.receive(this.index, now);
        tally.receive_payload(delivered, now);
        if !self.window.holds(now) {
            return;
        }
        tally.received += 1;
        // Bytes that arrive for the first time count, even if bytes before them are missing. So no more than the lines carried can arrive.
        tally.received_bytes += u64::from(this.bytes.saturating_sub(this.refused));
        let (key, delay) = (IdleKey::of(path, this.header, this.bytes), now - this.begun);
        if !(this.ends_message(delivered) && !this.paths_differ && tally.add_delays(key, delay)) {
            self.count_delays_apart(datagram, key, delivered, hosts, view);
        }
    }

    /// Counts the delays of a segment one by one.
    #[inline(never)]
    fn count_delays_apart(
        &mut self,
        datagram: u32,
        key: IdleKey,
        delivered: u64,
        hosts: &mut Hosts,
        view: View,
    ) {
        let this = &self.datagrams[datagram];
        let delay = view.now - this.begun;
        let tally = &mut self.flows[this.flow as usize];
        let known = !this.paths_differ && tally.queueing_mut().add(key, delay);
        if this.ends_message(delivered) {
            tally.add_delay(delay);
        } else {
            tally.add_segment_delay(delay);
            if delivered > 0 {
                self.count_delivered(datagram, delivered, &mut hosts.endpoints, view.now);
            }
        }
        if !known {
            self.count_queueing(datagram, key, hosts, view);
        }
    }

    /// Counts the message delays of the segments that end within the last `delivered` bytes, which the reading application has just received. The
    /// sender still has their records, because this endpoint has not acknowledged them yet.
    fn count_delivered(&mut self, datagram: u32, delivered: u64, endpoints: &mut [Endpoint], now: u64) {
        let to = self.datagrams[datagram].to.get().expect("a segment is addressed to an endpoint") as usize;
        let this = &endpoints[to];
        let end = this.connection.received_to();
        let tally = &mut self.flows[this.flow as usize];
        for first in endpoints[to ^ 1].connection.whole().first_sent(end - delivered..end) {
            tally.add_late_delay(now - first.ps());
        }
    }

    /// Returns the path of the packets of a datagram, all of which have arrived.
    pub(super) fn path_of(&self, datagram: u32, frames: &Frames, endpoints: &[Endpoint]) -> PathId {
        let this = &self.datagrams[datagram];
        if let Some(end) = this.trail.index().map(|trail| frames.step_behind_trail(trail)) {
            return PathId(end);
        }
        let sender = this.to.get().and_then(|to| endpoints.get(to as usize ^ 1));
        match sender.map(|sender| (sender.egress_path(), sender.route())) {
            None => PathId::ONLY,
            Some((EgressPath::Circuit { vc, .. }, _)) if vc < ONWARD => PathId(PathId::CIRCUIT | vc),
            Some((_, route)) => PathId(frames.end_of(route)),
        }
    }
}

impl IdleNetwork<'_> {
    fn idle_delay_of_segment(
        &self,
        this: &Datagram,
        to: usize,
        path: PathId,
        packets: &mut Vec<LonePacket>,
    ) -> u64 {
        let (sender, receiver, len) =
            (&self.hosts.endpoints[to ^ 1], &self.hosts.endpoints[to], u64::from(this.bytes));
        let formed = sender.segment_cost(&self.hosts.costs, len, false);
        packets.push(LonePacket::new(u64::from(this.header) + len, formed));
        self.cross_alone(path, sender.egress_path(), (&[], false), packets);
        last_arrival(packets).saturating_add(receiver.segment_cost(&self.hosts.costs, len, true))
    }

    fn idle_delay_of_message(&self, this: &Datagram, path: PathId, packets: &mut Vec<LonePacket>) -> u64 {
        let trees = self.shared.trees.as_ref().and_then(|trees| trees.path_of(this));
        let (flow, routes) = trees.unwrap_or((this.flow, Vec::new()));
        let process = self.hosts.processes.binary_search_by_key(&(flow as usize), |process| process.flow);
        let process = &self.hosts.processes[process.expect("a process sends the flow's messages")];
        packets.extend(idle::message(&process.cost, this.bytes.into(), process.mtu));
        self.cross_alone(
            path,
            process.way,
            (&routes, self.view.frames.switching.is_multicast(flow)),
            packets,
        );
        let cost = &self.hosts.socket(this.flow as usize).cost;
        last_arrival(packets).saturating_add(cost.datagram(this.bytes.into(), packets.len() as u64))
    }

    /// Takes lone packets over a circuit.
    fn cross_circuit_alone(&self, vc: u32, encapsulation: Encapsulation, packets: &mut [LonePacket]) {
        let Vc { hops, delays, pace, .. } = &self.shared.vcs[vc as usize];
        let delay = |hop: usize| delays[hop] - delays.get(hop + 1).copied().unwrap_or(0);
        let lines =
            hops.iter().enumerate().map(|(hop, port)| (self.view.cells.ports[*port].slot, delay(hop)));
        let lines: Vec<_> = lines.collect();
        idle::cross_circuit(packets, *pace, &lines, |ip| aal5::cells(encapsulation.sdu(ip)));
    }

    /// Takes lone packets over a path. Packets of a multicast traffic take `routes`, one after the other.
    fn cross_alone(
        &self,
        path: PathId,
        way: EgressPath,
        (routes, is_multicast): (&[u32], bool),
        packets: &mut Vec<LonePacket>,
    ) {
        let circuits = |vc, encapsulation, packets: &mut [LonePacket]| {
            self.cross_circuit_alone(vc, encapsulation, packets)
        };
        let crossing = Crossing { circuits: &circuits, is_multicast };
        let route = match way {
            EgressPath::Circuit { vc, encapsulation } if vc < ONWARD => {
                return self.cross_circuit_alone(vc, encapsulation, packets);
            }
            EgressPath::Circuit { vc: route, .. } => route - ONWARD,
            EgressPath::Frames { route } | EgressPath::Bond { route } => route,
        };
        if path == PathId::ONLY && !routes.is_empty() {
            self.view.frames.cross_alone(routes, crossing, packets);
        } else if path == PathId::ONLY {
            self.view.frames.cross_alone(&[route], crossing, packets);
        } else {
            self.view.frames.cross_alone_to(path.0, crossing, packets);
        }
    }
}

/// Returns the arrival of the last packet.
fn last_arrival(packets: &[LonePacket]) -> u64 {
    packets.iter().map(|packet| packet.at).max().expect("a datagram has a packet")
}
