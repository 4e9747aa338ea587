//! Which engines of a router work on a packet, and how long (docs/model.md, "Engines of routers").

use engpass_model::engine::EngineTimes;
use engpass_model::router::Card;
use engpass_model::source::Traffic;
use engpass_model::switching::PacketKind;
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_testbed::topology::{NodeId, NodeKind};

use super::Engine;
use crate::acted::Mechanism;
use crate::fragments::fragments;
use crate::packet::{Out, Packet};
use crate::resolve::kind;
use crate::router::Job;

/// The work on a packet at a router.
pub(crate) struct Plan {
    /// Work of the card that hands it to the route processor.
    pub(crate) punt: Option<Job>,
    /// Work of the engine that forwards it, without copies and fragments.
    pub(crate) work: Job,
    /// Time of each copy beyond the first.
    pub(crate) per_copy: u64,
    /// Time of all fragments beyond the first.
    pub(crate) fragments: u64,
}

impl Engine<'_> {
    /// Returns the times of an engine: 0 is the route processor, others are cards.
    pub(crate) fn times(&self, router: usize, engine: usize) -> EngineTimes {
        let (_, times) =
            self.testbed.routers[router].engines().nth(engine).expect("the router has the engine");
        times
    }

    /// Returns true if some engine of a router needs time for a packet.
    pub(crate) fn takes_time(&self, router: usize) -> bool {
        let mut all = self.testbed.routers[router].engines();
        all.any(|(_, times)| {
            let control = times.control.filter(|time| *time == 0);
            times != EngineTimes { input_queue: times.input_queue, control, ..EngineTimes::default() }
        })
    }

    /// Returns true if a node is a router that works on control packets that come to it.
    pub(crate) fn works_on_control(&self, node: NodeId) -> bool {
        match kind(&self.topology, node) {
            NodeKind::Router(router) => self.times(router, 0).control.is_some_and(|time| time > 0),
            _ => false,
        }
    }

    /// Returns the work on a packet that has come to a router.
    pub(crate) fn plan(&mut self, router: usize, packet: usize) -> Plan {
        let node = self.router_node(router);
        let mut inside = packet;
        while let Some(of) = self.packets[inside].carries.filter(|of| self.tunnels[of.tunnel].to == node) {
            inside = of.packet;
        }
        let leaves = inside != packet;
        let Packet { flow, way, datagram, carries, .. } = self.packets[inside];
        let Packet { arp, igmp, keepalive, .. } = self.packets[inside];
        let (is_arp, is_igmp) = (arp.is_some(), igmp.is_some());
        let data = carries.is_none() && !is_arp && !is_igmp && keepalive.is_none();
        let multicast = data && matches!(self.testbed.traffic[flow], Traffic::Multicast(_));
        let parts = self.ledger.datagram(datagram).parts.clone();
        let came_by = self.packets[packet].came_by;
        let is_back = keepalive.is_some_and(|end| self.tunnels[self.keepalives[end].tunnel].from == node);
        let ends_here = came_by.is_some() && (is_arp || is_igmp || is_back && carries.is_none());
        let outs: Vec<Out> = if is_arp || is_igmp || ends_here {
            Vec::new()
        } else if data && !parts.is_empty() {
            self.legs_of_parts(node, &parts).into_iter().map(|(out, _)| out).collect()
        } else {
            vec![self.group_at(way, node)[0]]
        };
        let enters = outs.iter().any(|out| matches!(out, Out::Tunnel(_)));
        let mut kinds = Vec::new();
        if enters || leaves {
            kinds.push(PacketKind::Tunnels);
        }
        if multicast {
            kinds.push(PacketKind::Multicast);
        }
        if kinds.is_empty() {
            kinds.push(PacketKind::Unicast);
        }
        let config = &self.testbed.routers[router];
        let card_of = |link: usize| {
            let name = &self.topology.links[link].name;
            config.cards.values().position(|card| card.links.contains(name))
        };
        let card = |number: usize| -> &Card { &config.cards[number] };
        let takes_part = |number: usize| kinds.iter().all(|kind| card(number).distributed.contains(kind));
        let incoming = came_by.and_then(|line| card_of(line.link));
        let incoming = incoming.filter(|number| card(*number).engine.is_some());
        let mut outgoing = outs.iter().filter_map(|out| card_of(self.line_of(*out)));
        let distributed =
            incoming.filter(|number| !ends_here && takes_part(*number) && outgoing.all(takes_part));
        let forwards = distributed.map_or(0, |number| number + 1);
        let times = self.times(router, forwards);
        let process = forwards == 0 && kinds.iter().any(|kind| config.process_switched.contains(kind));
        let control = times.control.filter(|_| came_by.is_none() || ends_here);
        let mut time = control.unwrap_or(if process { times.process } else { times.per_packet });
        time += if enters { times.encapsulate } else { 0 } + if leaves { times.decapsulate } else { 0 };
        let punts = incoming.filter(|_| distributed.is_none()).map(|number| {
            let times = self.times(router, number + 1);
            Job { engine: number + 1, time: times.punt, interrupt: times.interrupt }
        });
        let cuts =
            if multicast || leaves || outs.is_empty() { 0 } else { self.pieces(node, packet, outs[0]) - 1 };
        if cuts > 0 && times.per_fragment > 0 {
            self.acted.note(Mechanism::FragmentsTakeTime);
        }
        Plan {
            punt: punts.filter(|job| job.time > 0),
            work: Job { engine: forwards, time, interrupt: times.interrupt },
            per_copy: times.per_copy,
            fragments: times.per_fragment * cuts,
        }
    }

    /// Returns the first link of a path segment.
    fn line_of(&self, out: Out) -> usize {
        match out {
            Out::Line(line) => line.link,
            Out::Circuit(vc) => self.vcs[vc].lines[0].link,
            Out::Tunnel(tunnel) => self.tunnels[tunnel].first.link,
        }
    }

    /// Returns into how many packets a packet is cut here before it leaves; 1 if it is dropped.
    fn pieces(&self, node: usize, packet: usize, first: Out) -> u64 {
        let mut lengths = vec![self.packets[packet].bytes];
        if self.stays_whole(packet) && IP_HEADER_BYTES + lengths[0] > self.mtu_of(first) {
            return 1;
        }
        let mut out = first;
        loop {
            let mtu = self.mtu_of(out);
            if self.refuses(out) && lengths.iter().any(|bytes| IP_HEADER_BYTES + bytes > mtu) {
                return 1;
            }
            lengths =
                lengths.into_iter().flat_map(|bytes| fragments(bytes, mtu)).map(|(_, bytes)| bytes).collect();
            let Out::Tunnel(tunnel) = out else { return lengths.len() as u64 };
            let header = self.tunnels[tunnel].header + IP_HEADER_BYTES;
            lengths.iter_mut().for_each(|bytes| *bytes += header);
            out = self.group_at(self.tunnels[tunnel].way, node)[0];
        }
    }
}
