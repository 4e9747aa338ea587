//! ICMP messages of routers to senders that discover the path MTU (docs/model.md, "Packets of routers").
//!
//! The state is in `../icmp.rs`.

use engpass_model::forward::Headers;
use engpass_model::time::Time;
use engpass_model::wire::icmp::{PRIORITY, TTL, payload_bytes};
use engpass_testbed::topology::NodeId;

use super::Engine;
use crate::acted::Mechanism;
use crate::cell::LineId;
use crate::engine::forwarding::FIRST_ADDRESS;
use crate::event_queue::{Event, Group, Sender};
use crate::icmp::{Message, Messages};
use crate::ledger::Datagram;
use crate::outcome::Place;
use crate::packet::{Packet, way_index};

impl Engine<'_> {
    /// Returns all pairs of traffic and router that may send ICMP messages, in the order in which queue disciplines number them.
    pub(crate) fn messages(&self) -> Vec<Messages> {
        let flows = self.topology.flows.iter().enumerate();
        flows
            .flat_map(|(flow, path)| path.icmp.iter().map(move |way| Messages { flow, router: way.router }))
            .collect()
    }

    /// Returns the index of the path of the messages with this number.
    pub(crate) fn message_way(&self, number: usize) -> usize {
        way_index(self.topology.flows.len(), false) + number
    }

    /// Returns the address of a router. Router addresses follow those of the hosts.
    pub(crate) fn router_address(&self, router: NodeId) -> u32 {
        FIRST_ADDRESS + (router - self.topology.switches) as u32
    }

    /// Returns the headers of the messages of a router about a traffic.
    pub(crate) fn message_heads(&self, Messages { flow, router }: Messages) -> Headers {
        let destination = FIRST_ADDRESS + self.topology.flows[flow].from as u32;
        Headers { source: self.router_address(router), destination, protocol: 1, ports: [0, 0] }
    }

    /// Returns the MTUs by which the two ends of a connection size segments, the writing end first.
    pub(crate) fn segment_mtus(&self, flow: usize) -> [u64; 2] {
        let path = &self.topology.flows[flow];
        match path.discovers_mtu {
            true => [false, true].map(|back| self.mtu_of(self.ways[way_index(flow, back)].first)),
            false => [path.path_mtu; 2],
        }
    }

    /// Returns true if a packet has the "don't fragment" flag.
    pub(crate) fn stays_whole(&self, packet: usize) -> bool {
        let Packet { flow, datagram, carries, keepalive, .. } = self.packets[packet];
        // Only segments with data from the writing end have numbers. Outer packets do not copy the flag.
        let datagram = self.ledger.datagram(datagram);
        carries.is_none()
            && keepalive.is_none()
            && self.topology.flows[flow].discovers_mtu
            && datagram.segment.is_some()
            && datagram.number.is_some()
    }

    /// Drops a packet at a router that exceeds the MTU of its path segment and must not be fragmented. Sends an ICMP message to the sender if the
    /// router does that.
    pub(crate) fn lose_too_big(&mut self, now: u64, router: usize, packet: usize, mtu: u64) {
        let node = self.router_node(router);
        let Packet { flow, datagram, came_by, .. } = self.packets[packet];
        let bytes = self.packets[packet].ip();
        self.ledger.lose_carrier(now, Place::TooBig { node }, datagram);
        let mut all = self.messages().into_iter();
        let Some(number) = all.position(|messages| messages.flow == flow && messages.router == node) else {
            return self.acted.note(Mechanism::BlackHole);
        };
        self.acted.note(Mechanism::Signalled);
        let (segment, to) =
            self.ledger.datagram(datagram).segment.expect("only TCP segments must not be fragmented");
        let message = Message { endpoint: to ^ 1, seq: segment.seq, mtu };
        let datagram = self.ledger.begin(now, Datagram::message(flow, message, payload_bytes(bytes)));
        let sender = self.senders().len() + number;
        self.packets.push(Packet {
            bytes: self.ledger.datagram(datagram).bytes(),
            way: self.message_way(number),
            // The router that creates it does not decrement the TTL.
            ttl: TTL + 1,
            priority: PRIORITY,
            ..Packet::of_sender(flow, datagram, sender)
        });
        let position = came_by.map(LineId::position).expect("the packet came to the router over a line");
        let begins = Event::MessageBegins { router, packet: self.packets.len() - 1 };
        self.agenda.put(now, Group::MessageBegins, position, begins);
    }

    /// Delivers an ICMP message to the sender that it is for.
    pub(crate) fn message_arrives(&mut self, now: u64, datagram: usize) {
        let Message { endpoint, seq, mtu } =
            self.ledger.datagram(datagram).message.expect("the datagram is an ICMP message");
        self.ledger.received(now, datagram, 0, None);
        let connection = &mut self.endpoints[endpoint].connection;
        connection.on_too_big(Time(now), seq, mtu);
        if connection.stats().path_mtu_signals > 1 {
            self.acted.note(Mechanism::ShrankTwice);
        }
        self.history(Sender::Endpoint(endpoint)).stirs(now);
        self.look_after(now, endpoint);
    }
}
