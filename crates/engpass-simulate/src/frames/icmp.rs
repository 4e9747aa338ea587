//! ICMP messages of routers: when a router makes one, and what its receiver does.

use engpass_frames::{Frames, Packet, Step};
use engpass_model::queue::Ecn;
use engpass_model::tcp::Segment;
use engpass_model::time::Time;
use engpass_model::wire::icmp::{self, MessageContent};
use engpass_model::wire::ip::IP_HEADER_BYTES;

use crate::clock::NewEvent;
use crate::endpoint::Endpoint;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::packet_store::{Datagram, Destination};
use crate::shared_state::{SharedState, TooBigMessage};
use crate::tap::{Head, Quoted};

/// Content of a message, for its receiver.
enum About {
    Segment(TooBigMessage),
    /// An injected packet: its path and token, and the content of the message about it.
    Outside((u32, u64), MessageContent),
}

/// A message that a router sends after it has dropped a packet.
pub(super) struct Draft {
    about: About,
    flow: u32,
    /// Index of the route of this router's messages about the flow; `route` is the route itself.
    number: usize,
    route: u32,
    segment: Segment,
    /// Length of the message's IP packet, in bytes.
    bytes: u64,
    /// The transmitter that brought the packet to the router; it breaks ties.
    line: usize,
    /// For captures: the router, and the header of the dropped packet when it arrived there.
    router: usize,
    head: Option<Head>,
}

impl SharedState {
    /// Returns true if the packets of a datagram carry the DF bit, so that routers must not fragment them.
    pub(super) fn has_df_bit(&self, datagram: u32, frames: &Frames) -> bool {
        let this = &self.datagrams[datagram];
        if let Some(reports) = &self.reports {
            return reports.head(datagram).whole;
        }
        // Data goes to the second endpoint of a connection.
        let is_data = this.to.get().is_some_and(|to| to % 2 == 1 && (to as usize) < self.endpoints);
        is_data && frames.icmp.keeps_whole(this.flow)
    }

    /// Returns the ICMP message of a router about a packet that it is about to drop at `place`, in front of `step`; `None` if it sends none.
    #[cold]
    pub(super) fn message_about(
        &mut self,
        id: u32,
        step: Step,
        place: DropLocation,
        frames: &Frames,
    ) -> Option<Draft> {
        let Packet { datagram, ip, place: came_to, ttl, offset, ecn, .. } = *self.datagrams.packet(id);
        let this = &self.datagrams[datagram];
        let (flow, to, was_lost, more) = (this.flow, this.to.get(), this.lost, this.fragments > 1);
        let in_tunnel = !frames.tunnels.at(came_to).is_empty();
        let is_too_big = matches!(place, DropLocation::TooBig(_));
        if in_tunnel || is_too_big && !self.has_df_bit(datagram, frames) {
            return None;
        }
        let node = frames.engines[step.router as usize].node;
        let (number, way) = frames.icmp.way(flow, node)?;
        let route = way.route;
        let segment = *self.datagrams.segment(datagram);
        let (about, bytes) = match &mut self.reports {
            None if is_too_big => {
                let endpoint = to.expect("only TCP segments must not be fragmented") ^ 1;
                let message = TooBigMessage { endpoint, seq: segment.seq, mtu: step.mtu };
                (About::Segment(message), icmp::error_bytes(ip.into()))
            }
            None => return None,
            Some(_) if to.is_some() || was_lost || offset > 0 => return None,
            Some(reports) => {
                let bytes = reports.message_bytes(datagram, ip)?;
                reports.awaits_message(datagram);
                let error = match is_too_big {
                    true => icmp::Error::TooBig { mtu: step.mtu },
                    false => icmp::Error::TimeExceeded,
                };
                // The router has already decremented the TTL if it was above zero.
                let passed = reports.head(datagram).ttl.saturating_sub(ttl + 1);
                let router = u16::try_from(step.router).expect("a network has fewer than 65 536 routers");
                let marked = ecn == Ecn::Marked;
                let said = MessageContent { router, error, passed, bytes: ip as u16, more, marked };
                (About::Outside(reports.packet(datagram), said), bytes)
            }
        };
        let head = self.trace.as_ref().and_then(|trace| trace.head_of(id));
        // The router has already decremented the TTL; the message quotes the packet as it arrived.
        let head = head.map(|head| Head { ttl: ttl + 1, ..head });
        let (line, router) = (frames.last_line(came_to), step.router as usize);
        Some(Draft { about, flow, number, route, segment, bytes, line, router, head })
    }

    /// Creates the ICMP message of a router. Returns the event at which it enters the router's forwarding engine, at `at`.
    pub(super) fn begin_message(&mut self, draft: Draft, at: u64, frames: &mut Frames) -> NewEvent {
        let Draft { about, flow, number, route, segment, bytes, line, router, head } = draft;
        let sender = self.number_of_control(number);
        let made = frames.icmp.begin_message();
        let tracked_per_hop = self.reports.is_some();
        let datagram = Datagram {
            flow,
            // No datagram of the flow has this index.
            index: u64::MAX - u64::from(made),
            to: Destination::endpoint(self.endpoints + 2 * number + 1),
            header: icmp::HEADER_BYTES as u32,
            bytes: (bytes - IP_HEADER_BYTES - icmp::HEADER_BYTES) as u32,
            fragments: 1,
            refs: 1,
            begun: at,
            tracked_per_hop,
            ..Datagram::default()
        };
        let datagram = self.begin_datagram(tracked_per_hop, datagram);
        // A capture shows the segment that the message quotes.
        *self.datagrams.segment_mut(datagram) = segment;
        let quoted = match about {
            About::Segment(message) => {
                self.messages.insert(datagram, message);
                let TooBigMessage { endpoint, mtu, .. } = message;
                head.map(|head| Quoted { mtu, head, endpoint })
            }
            About::Outside(lost, said) => {
                let reports = self.reports.as_mut().expect("an injected network has delivery statuses");
                reports.register_message(datagram, lost, said, sender);
                None
            }
        };
        let packet = self.datagrams.insert_packet(Packet {
            datagram,
            ip: bytes as u32,
            sender,
            place: frames.routes[route as usize].first,
            // The router decrements the TTL, although it does not forward the message.
            ttl: icmp::TTL + 1,
            priority: icmp::PRIORITY,
            ..Packet::NONE
        });
        if let Some(trace) = &mut self.trace {
            trace.made(packet, router, (bytes as u32, icmp::TTL, icmp::PRIORITY), quoted);
        }
        frames.icmp.hold(made, packet);
        (at, line, Event::IcmpReady(made))
    }

    /// Delivers an ICMP message to the sender of the packet that it is about. Returns the endpoint that may now send, if it is one.
    pub(crate) fn deliver_icmp_message(
        &mut self,
        datagram: u32,
        endpoints: &mut [Endpoint],
        now: u64,
    ) -> Option<usize> {
        if let Some(reports) = &mut self.reports {
            reports.on_message_delivered(datagram, now);
            return None;
        }
        let message = self.messages.remove(&datagram);
        let TooBigMessage { endpoint, seq, mtu } = message.expect("an arriving ICMP message is registered");
        let endpoint = endpoint as usize;
        endpoints[endpoint].connection.on_too_big(Time(now), seq, mtu.into());
        self.ledger.note_activity(self.processes + endpoint, now);
        Some(endpoint)
    }
}
