//! Acknowledgements that certainly arrive at the sender.
//!
//! One acknowledgement per window is enough to keep a sender going: acknowledgements are cumulative, and a full queue or a busy receiver may drop or merge the
//! others. A flow alone on its path gets all of them if none can catch up with the one before it. Then its sender and routers certainly spend time on each one,
//! which lowers the bound.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::discard::Discard;
use engpass_model::host::Side;
use engpass_model::queue::Queue;
use engpass_model::router::Router;
use engpass_model::shape::PolicingAction;
use engpass_model::source::TcpStream;
use engpass_model::switch::Switch;
use engpass_model::time::{Pace, SECOND};
use engpass_model::unit::Share;
use engpass_model::wire::aal5::CELL_PAYLOAD_BYTES;
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_model::wire::layers::Layers;
use engpass_testbed::topology::{FlowPath, Hop, NodeId, NodeKind, PathSegment};
use engpass_testbed::{Testbed, Topology};

use super::connection::Connection;
use super::demand::Builder;
use super::need::Demand;
use super::piece::{PathLink, pieces};

/// Number of flows that may use each link (in either direction), each host and router, and each group of path segments from which a router chooses.
pub(super) struct Sharing {
    links: Vec<u32>,
    nodes: Vec<u32>,
    groups: BTreeMap<(NodeId, Vec<PathSegment>), u32>,
}

impl Sharing {
    pub(super) fn new(testbed: &Testbed, topology: &Topology) -> Self {
        let mut sharing = Self {
            links: vec![0; topology.links.len()],
            nodes: vec![0; topology.nodes.len()],
            groups: BTreeMap::new(),
        };
        for (path, traffic) in topology.flows.iter().zip(testbed.traffic.values()) {
            let hops = possible_hops(topology, path);
            let links: BTreeSet<usize> = hops.iter().map(|hop| hop.link).collect();
            links.into_iter().for_each(|link| sharing.links[link] += 1);
            let is_router = |node: &NodeId| matches!(topology.kind(*node), NodeKind::Router(_));
            let routers = hops.iter().map(|hop| hop.to).filter(is_router);
            let nodes: BTreeSet<NodeId> = [path.from, path.to].into_iter().chain(routers).collect();
            nodes.into_iter().for_each(|node| sharing.nodes[node] += 1);
            // Only TCP has packets on the way back.
            let ways = if traffic.tcp().is_some() { 2 } else { 1 };
            for (node, legs) in path.fans.iter().flat_map(|fans| &fans[..ways]).flat_map(|fan| &fan.at) {
                *sharing.groups.entry((*node, legs.clone())).or_default() += 1;
            }
        }
        sharing
    }

    /// Returns whether no other flow uses any link, host or router of this flow, which must have a single path.
    fn is_alone(&self, topology: &Topology, path: &FlowPath) -> bool {
        let is_router = |node: &NodeId| matches!(topology.kind(*node), NodeKind::Router(_));
        let routers = path.route.iter().map(|hop| hop.to).filter(is_router);
        path.route.iter().all(|hop| self.links[hop.link] == 1)
            && [path.from, path.to].into_iter().chain(routers).all(|node| self.nodes[node] == 1)
    }

    /// Returns whether the packets of only one flow, in one direction, choose from these path segments at a router.
    pub(super) fn is_own_group(&self, node: NodeId, legs: &[PathSegment]) -> bool {
        self.groups.get(&(node, legs.to_vec())) == Some(&1)
    }
}

/// Returns all links that packets of a flow may cross, in the direction of its data; where routers choose, also those of the packets that come back.
pub(super) fn possible_hops(topology: &Topology, path: &FlowPath) -> Vec<Hop> {
    let fans = path.fans.iter().flat_map(|fans| fans.iter()).flat_map(|fan| fan.legs());
    let legs = path.legs.iter().copied().chain(fans).flat_map(|leg| topology.legs_within(leg));
    legs.flat_map(|leg| topology.hops(leg)).collect()
}

impl Builder<'_> {
    /// Returns the number of acknowledgements that certainly arrive per bit of payload; 0 if none are certain.
    pub(super) fn certain_acks(&self, demand: &Demand<'_>, config: &TcpStream, tcp: &Connection) -> f64 {
        let path = demand.path;
        let nothing_happens = path.route.iter().all(|hop| {
            let link = &self.topology.links[hop.link];
            let fails = self.topology.events.iter().any(|event| event.link == hop.link);
            link.loss == Share(0) && link.jitter.ps() == 0 && link.reorder.is_none() && !fails
        });
        if !nothing_happens
            || !tcp.full_segments
            || path.fans.is_some()
            || self.testbed.routers.values().any(Router::has_kinds_of_work)
            // Packets in a tunnel may be fragmented.
            || path.legs.iter().any(|leg| matches!(leg, PathSegment::Tunnel { .. }))
            || !self.sharing.is_alone(self.topology, path)
        {
            return 0.0;
        }
        let time = |piece: &PathLink, layers: &Layers| layers.line() as f64 / piece.wire.capacity() as f64;
        // Segments of several connections come in any order, so each may be acknowledged alone.
        let counted = if config.streams > 1 { 1.0 } else { tcp.segments_per_ack };
        // A faster line keeps the spacing of a slower line before it. A router's packets may queue behind acknowledgements and leave back to back.
        let mut spacing: f64 = 0.0;
        for piece in pieces(self.topology, &demand.lane.there, Vec::new(), false).0 {
            spacing = spacing.max(counted * time(&piece, &piece.wire.packet(tcp.header, tcp.segment)));
            if let NodeKind::Router(router) = self.topology.kind(piece.hop.to) {
                let each = self.testbed.routers[router].per_packet.0 as f64 / SECOND as f64;
                spacing = if each > 0.0 { spacing.min(counted * each) } else { spacing };
            }
        }
        let host = &self.testbed.hosts[path.to];
        let reads = host.occupation(Side::Receive, config.receive_path);
        let taking = counted * (reads.segment() + reads.bytes(tcp.segment)) as f64 + reads.ack() as f64;
        if taking > spacing * SECOND as f64 {
            return 0.0;
        }
        // Most acknowledgements in flight: those of a whole window, and of a short segment of each connection. A timer may acknowledge each segment alone.
        let in_flight = (tcp.window.bytes / tcp.segment + 2) * u64::from(config.streams);
        for piece in pieces(self.topology, &demand.lane.back, Vec::new(), false).0 {
            let ack = piece.wire.packet(tcp.header, 0);
            let shaped = self.shaping(&piece).map_or(0.0, |pace| ack.cells() as f64 / pace.per_second());
            let time = time(&piece, &ack).max(shaped);
            // An acknowledgement may arrive while the one before it is still there. Then the queue must hold all of them.
            let waiting = if time <= spacing { 1 } else { in_flight };
            if !self.have_room(&piece, &ack, IP_HEADER_BYTES + tcp.header, waiting) {
                return 0.0;
            }
            spacing = spacing.max(time);
            if let NodeKind::Router(router) = self.topology.kind(piece.hop.to) {
                // At a router acknowledgements may queue behind data and leave back to back.
                let each = self.testbed.routers[router].per_packet.0 as f64 / SECOND as f64;
                spacing = if each > 0.0 { spacing.min(each) } else { spacing };
            }
        }
        // One segment in each window may be short: its acknowledgement then covers more, or a busy receiver merges it with others.
        let merged = if taking > 0.0 { tcp.segments_per_ack } else { 0.0 };
        let short = (1.0 + merged) * tcp.segment as f64 / tcp.window.bytes as f64;
        (1.0 - short).max(0.0) / (8.0 * tcp.segments_per_ack * tcp.segment as f64)
    }

    /// Returns the pace of the shaper in front of a line; `None` if there is no shaper.
    fn shaping(&self, piece: &PathLink) -> Option<Pace> {
        let (circuit, forward) = piece.circuit()?;
        self.topology.circuits[circuit].shaping.filter(|_| forward && piece.position == 0)
    }

    /// Returns whether `count` acknowledgements certainly fit into the queue of a line, and only a full queue drops one.
    fn have_room(&self, piece: &PathLink, ack: &Layers, packet_bytes: u64, count: u64) -> bool {
        let link = &self.topology.links[piece.hop.link];
        if let Some((circuit, true)) = piece.circuit()
            && piece.position == 1
            && matches!(self.topology.circuits[circuit].policing, Some((_, _, PolicingAction::Discard)))
        {
            return false;
        }
        // One more acknowledgement is on the line.
        let places = count + 1;
        match self.topology.kind(piece.hop.from) {
            NodeKind::Host(host) => {
                let bytes = ack.cells() * CELL_PAYLOAD_BYTES + packet_bytes;
                count == 1 || self.testbed.hosts[host].nic_buffer.bytes() >= places * bytes
            }
            NodeKind::Switch(switch) if matches!(self.testbed.switches[switch], Switch::Atm(_)) => {
                let Switch::Atm(switch) = &self.testbed.switches[switch] else { return false };
                // All other policies look at the queue length.
                let only_when_full = matches!(switch.discard, Discard::Tail(_) | Discard::Ppd(_));
                switch.output_buffer.0 >= places * ack.cells()
                    && (only_when_full || count == 1)
                    && switch.clp_threshold.is_none()
            }
            _ => match &link.queues[link.end_of(piece.hop.from)] {
                Some(Queue::DropTail(queue)) => {
                    let bytes = ack.line() / (8 * ack.parts_per_bit());
                    queue.limit.packets >= places && queue.limit.bytes >= places * bytes
                }
                _ => false,
            },
        }
    }
}
