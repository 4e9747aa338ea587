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

/// What routers say, and how it goes.
#[derive(Debug, Default)]
pub(in crate::simulate) struct Icmp {
    /// By flow: routers may not cut packets with data of its sender.
    pub(super) keeps_whole: Vec<bool>,
    /// By flow, then by router.
    pub(in crate::simulate) ways: Vec<IcmpRoute>,
    /// Messages on their way, by datagram. One that is lost stays until its place is taken again.
    messages: BTreeMap<u32, Message>,
    /// Packets that have not begun their way, by number.
    begun: BTreeMap<u32, u32>,
    /// Messages so far.
    made: u32,
}

/// The way of the messages of one router about packets of one flow.
#[derive(Debug)]
pub(in crate::simulate) struct IcmpRoute {
    pub(in crate::simulate) flow: u32,
    pub(in crate::simulate) router: NodeId,
    pub(in crate::simulate) route: u32,
}

/// What a message says: a segment of this endpoint, from this sequence number on, is longer than an MTU.
#[derive(Clone, Copy, Debug)]
struct Message {
    endpoint: u32,
    seq: u64,
    mtu: u32,
}

impl Icmp {
    /// The way of messages of a router about a flow, and its number.
    fn way(&self, flow: u32, router: NodeId) -> Option<(usize, &IcmpRoute)> {
        let place = self.ways.binary_search_by_key(&(flow, router), |way| (way.flow, way.router)).ok()?;
        Some((place, &self.ways[place]))
    }

    /// Messages so far.
    pub(in crate::simulate) fn made(&self) -> u32 {
        self.made
    }
}

impl Network {
    /// Whether routers may not cut the packets of a datagram.
    pub(super) fn keeps_whole(&self, datagram: u32) -> bool {
        let this = &self.fabric.datagrams[datagram];
        // Data goes to the second endpoint of a connection.
        let is_data = this.to.get().is_some_and(|to| to % 2 == 1 && (to as usize) < self.endpoints.len());
        is_data && self.frames.icmp.keeps_whole.get(this.flow as usize) == Some(&true)
    }

    /// A router loses a packet that may not be cut and is longer than the MTU of the way out, and tells its sender.
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
        // For whoever captures it: it carries the beginning of this segment.
        *self.fabric.datagrams.segment_mut(message) = segment;
        let packet = self.fabric.datagrams.insert_packet(Packet {
            datagram: message,
            ip: bytes as u32,
            sender: (self.processes.len() + self.endpoints.len() + number) as u32,
            place: first,
            since: 0,
            offset: 0,
            // Its own router takes nothing of it.
            ttl: icmp::TTL + 1,
            priority: icmp::PRIORITY,
            ecn: Ecn::NotCapable,
        });
        if let (Some(trace), Some(head)) = (&mut self.fabric.trace, head) {
            // The router has taken one of its life.
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
        self.events.push(at, line, Event::Own(icmp.made));
        icmp.made += 1;
    }

    /// A packet that a router has made comes to its engine.
    pub(in crate::simulate) fn send_own(&mut self, number: u32) {
        let packet = self.frames.icmp.begun.remove(&number).expect("it was made and has not begun its way");
        self.goes_on(packet);
    }

    /// A message has come to the sender of what it is about.
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
