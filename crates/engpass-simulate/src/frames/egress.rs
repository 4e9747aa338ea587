//! Fast path of sending: an unfragmented datagram enters the NIC at once. Sending must cost the host no CPU time, the run must have no timeline and no capture,
//! and no sender may wait for the NIC.

use engpass_frames::{FastPathResult, FramePort, Frames, Packet, Route};
use engpass_model::queue::Ecn;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use crate::clock::{Clock, NewEvent};
use crate::event_queue::Event;
use crate::nic::Nic;
use crate::packet_store::Datagram;
use crate::shared_state::SharedState;

/// The NIC and first line of a route, looked up once for several datagrams.
pub(super) struct Egress<'a> {
    nic: &'a Nic,
    pub(super) route: Route,
    /// The port of the first line; `port` is its index in `Frames::ports`.
    line: &'a mut FramePort,
    port: u32,
    line_index: u16,
    /// Bound of lookahead: a packet that arrives at the next port at or before this instant is handed to it ahead of time; 0 if the line tells no port.
    pub(super) last: u64,
    pub(super) now: u64,
}

/// An unfragmented datagram that is about to be sent.
pub(super) struct UnfragmentedDatagram {
    /// The datagram with one reference: by its packet, or by the sender that has it ready.
    pub(super) datagram: Datagram,
    pub(super) sender: u32,
    /// Index of the sender states in the ledger, if the sender is an endpoint and the ledger keeps any.
    pub(super) states: Option<usize>,
    pub(super) ecn: Ecn,
}

impl<'a> Egress<'a> {
    #[inline(always)]
    pub(super) fn of(nic: &'a Nic, route: u32, frames: &'a mut Frames, clock: &Clock) -> Self {
        let route = frames.routes[route as usize];
        let step = frames.steps[route.first as usize];
        let last = if step.delivers_ahead() { clock.end } else { 0 };
        Self {
            nic,
            route,
            line: &mut frames.ports[step.port() as usize],
            port: step.port(),
            line_index: step.line_index,
            last,
            now: clock.now,
        }
    }

    /// Sends a datagram, which gets the next free index `id`. Returns [`FastPathResult::NeedsSlowPath`], without effect, if it needs the slow path. An event of
    /// its arrival goes to `arrival`; a line has at most one.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        id: u32,
        whole: &UnfragmentedDatagram,
        shared: &mut SharedState,
        arrival: &mut Option<NewEvent>,
    ) -> FastPathResult {
        let Self { nic, route, now, .. } = *self;
        let line = &mut *self.line;
        let UnfragmentedDatagram { datagram, sender, states, ecn } = whole;
        let ip = IP_HEADER_BYTES as u32 + datagram.header + datagram.bytes;
        if nic.has_waiters() || !line.has_memory(now, ip, nic.capacity) {
            return FastPathResult::NeedsSlowPath;
        }
        let FastPathResult::ArrivesAt(at) = line.offer::<true>(now, ip, id, self.last, &shared.window) else {
            return FastPathResult::NeedsSlowPath;
        };
        let packet = Packet {
            datagram: id,
            ip,
            sender: *sender,
            place: route.first + 1,
            ttl: route.ttl,
            priority: route.priority,
            ecn: *ecn,
            ..Packet::NONE
        };
        shared.datagrams.insert_next(id, Datagram { sent: true, begun: now, ..datagram.clone() }, packet);
        let until = line.free_at();
        match datagram.to.get() {
            Some(_) => shared.ledger.sends_packet(*states, (datagram.counted, id), now, until),
            None => shared.ledger.sends_message(*sender as usize, id, now, until),
        }
        if line.posts_each_packet {
            shared.ledger.attribute_shared_idle(self.line_index, shared.datagrams[id].owner(), id, ip, line);
        }
        if datagram.counted {
            let tally = &mut shared.flows[datagram.flow as usize];
            tally.in_flight += 1;
            if shared.window.holds(now) {
                tally.sent += 1;
                tally.sent_bytes += u64::from(datagram.bytes);
            }
        }
        if at > self.last && line.expect_arrival_at(at) {
            *arrival = Some((at, line.port as usize, Event::FrameArrival(self.port)));
        }
        FastPathResult::ArrivesAt(at)
    }
}
