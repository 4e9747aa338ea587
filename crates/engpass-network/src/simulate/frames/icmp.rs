//! Packets that routers make: ICMP messages to senders that discover the path MTU ("fragmentation needed", RFC 792, RFC 1191 section 4).
//!
//! A message begins at the engine of its router like a packet that arrives, crosses lines like any other, and may be lost. For the books it has
//! a lane of its own, behind those of all endpoints: the destination of its datagram is the number of that lane.

use std::collections::BTreeMap;

use engpass_model::queue::Ecn;
use engpass_model::time::Time;
use engpass_model::wire::icmp;
use engpass_testbed::topology::NodeId;

use super::{Packet, Step};
use crate::simulate::Network;
use crate::simulate::datagrams::{Datagram, To};
use crate::simulate::event::Event;
use crate::simulate::tally::Place;
use crate::simulate::tap::{Head, Quoted};

/// ICMP messages of routers, and the routes that they take.
#[derive(Debug, Default)]
pub(in crate::simulate) struct Icmp {
    /// By flow: its sender sets the DF bit, so no router fragments its data.
    pub(super) keeps_whole: Vec<bool>,
    /// Sorted by flow, then by router.
    pub(in crate::simulate) ways: Vec<IcmpRoute>,
    /// Messages that have not arrived, by datagram. A lost one stays until its datagram number is used again.
    messages: BTreeMap<u32, Message>,
    /// Packets of messages that have not left their router, by message number.
    begun: BTreeMap<u32, u32>,
    /// Number of messages so far.
    made: u32,
}

/// The route of the messages of one router about packets of one flow.
#[derive(Debug)]
pub(in crate::simulate) struct IcmpRoute {
    pub(in crate::simulate) flow: u32,
    pub(in crate::simulate) router: NodeId,
    pub(in crate::simulate) route: u32,
}

/// Content of a message: the segment of this endpoint that begins at `seq` is longer than `mtu`, in bytes.
#[derive(Clone, Copy, Debug)]
struct Message {
    endpoint: u32,
    seq: u64,
    mtu: u32,
}

impl Icmp {
    /// The route of messages of a router about a flow, and its number.
    fn way(&self, flow: u32, router: NodeId) -> Option<(usize, &IcmpRoute)> {
        let place = self.ways.binary_search_by_key(&(flow, router), |way| (way.flow, way.router)).ok()?;
        Some((place, &self.ways[place]))
    }

    /// Number of messages so far.
    pub(in crate::simulate) fn made(&self) -> u32 {
        self.made
    }
}

impl Network {
    /// Whether the packets of a datagram carry the DF bit: routers may not fragment them.
    pub(super) fn keeps_whole(&self, datagram: u32) -> bool {
        let this = &self.fabric.datagrams[datagram];
        // Data goes to the second endpoint of a connection.
        let is_data = this.to.get().is_some_and(|to| to % 2 == 1 && (to as usize) < self.endpoints.len());
        is_data && self.frames.icmp.keeps_whole.get(this.flow as usize) == Some(&true)
    }

    /// A router drops a packet with the DF bit that is longer than the MTU of its next hop, and sends its sender a message.
    #[cold]
    pub(super) fn lose_too_big(&mut self, id: u32, step: Step, at: u64) {
        let Packet { datagram, ip, place, ttl, .. } = *self.fabric.datagrams.packet(id);
        let head = self.fabric.trace.as_ref().and_then(|trace| trace.head_of(id));
        let router = self.frames.routers[step.router as usize].node;
        let this = &self.fabric.datagrams[datagram];
        let (flow, to) = (this.flow, this.to.get().expect("only segments are kept whole"));
        let segment = *self.fabric.datagrams.segment(datagram);
        let line = self.frames.last_line(place);
        self.lose_packet(id, Place::TooBig(router), at);
        let Some((number, way)) = self.frames.icmp.way(flow, router) else { return };
        let (first, bytes) = (self.frames.routes[way.route as usize].first, icmp::error_bytes(ip.into()));
        let lane = self.endpoints.len() + 2 * number + 1;
        let message = self.fabric.begin_datagram(
            false,
            Datagram {
                flow,
                to: To::endpoint(lane),
                header: icmp::HEADER_BYTES as u32,
                bytes: icmp::payload_bytes(ip.into()) as u32,
                fragments: 1,
                holds: 1,
                begun: at,
                ..Datagram::default()
            },
        );
        // A capture shows the segment that the message quotes.
        *self.fabric.datagrams.segment_mut(message) = segment;
        let packet = self.fabric.datagrams.insert_packet(Packet {
            datagram: message,
            ip: bytes as u32,
            sender: (self.processes.len() + self.endpoints.len() + number) as u32,
            place: first,
            since: 0,
            offset: 0,
            // The engine of its router subtracts one, although the router does not forward it.
            ttl: icmp::TTL + 1,
            priority: icmp::PRIORITY,
            ecn: Ecn::NotCapable,
        });
        if let (Some(trace), Some(head)) = (&mut self.fabric.trace, head) {
            // The router has subtracted one already; the message quotes the packet as it arrived.
            let quoted = Quoted {
                router: step.router as usize,
                mtu: step.mtu,
                head: Head { ttl: ttl + 1, ..head },
                endpoint: to ^ 1,
            };
            trace.made(packet, bytes as u32, quoted);
        }
        let icmp = &mut self.frames.icmp;
        icmp.messages.insert(message, Message { endpoint: to ^ 1, seq: segment.seq, mtu: step.mtu });
        icmp.begun.insert(icmp.made, packet);
        self.events.push(at, line, Event::Icmp(icmp.made));
        icmp.made += 1;
    }

    /// The packet of a message enters the engine of the router that made it.
    pub(in crate::simulate) fn send_icmp(&mut self, number: u32) {
        let packet = self.frames.icmp.begun.remove(&number).expect("it was made and has not left its router");
        self.goes_on(packet);
    }

    /// A message arrives at the sender of the segment that it quotes.
    pub(super) fn take_message(&mut self, datagram: u32) {
        let message = self.frames.icmp.messages.remove(&datagram);
        let Message { endpoint, seq, mtu } = message.expect("a message that arrives was made");
        let endpoint = endpoint as usize;
        let connection = &mut self.endpoints[endpoint].connection;
        connection.on_too_big(Time(self.now), seq, mtu.into());
        self.fabric.ledger.stirs(self.processes.len() + endpoint, self.now);
        self.go_on(endpoint);
    }
}
