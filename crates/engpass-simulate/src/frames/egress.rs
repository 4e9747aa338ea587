//! Fast path of sending: an unfragmented datagram enters the NIC at once. Sending must cost the host no CPU time, the run must have no timeline and no capture,
//! and no sender may wait for the NIC.

use engpass_frames::{FastPathResult, FramePort, Frames, Packet, Route};
use engpass_model::queue::Ecn;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use crate::clock::{Clock, NewEvent};
use crate::event_queue::Event;
use crate::nic::Nic;
use crate::packet_store::{Datagram, Destination};
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
#[derive(Clone, Copy)]
pub(super) struct UnfragmentedDatagram {
    pub(super) flow: u32,
    pub(super) index: u64,
    /// The receiving endpoint of a TCP segment; otherwise the socket.
    pub(super) to: Destination,
    pub(super) sender: u32,
    /// Length of the transport header, and of the payload, in bytes.
    pub(super) header: u32,
    pub(super) bytes: u32,
    /// True if the datagram carries data of the sender, so that it counts in the results of its flow.
    pub(super) counted: bool,
    /// True for a segment whose data was sent before.
    pub(super) resent: bool,
    pub(super) ecn: Ecn,
}

impl UnfragmentedDatagram {
    /// Returns the datagram with one reference: by its packet, or by the sender that has it ready.
    #[inline(always)]
    pub(super) fn datagram(self, begun: u64, sent: bool) -> Datagram {
        let Self { flow, index, to, header, bytes, counted, resent, .. } = self;
        Datagram {
            flow,
            index,
            bytes,
            fragments: 1,
            resent,
            sent,
            to,
            counted,
            header,
            begun,
            refs: 1,
            ..Datagram::default()
        }
    }
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

    /// Sends a datagram, which gets the next free index `id`. Of an endpoint, `states` is the index of its sender states in the ledger, if the ledger keeps any.
    /// Returns [`FastPathResult::NeedsSlowPath`], without effect, if it needs the slow path. An event of
    /// its arrival goes to `arrival`; a line has at most one.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        id: u32,
        whole: UnfragmentedDatagram,
        shared: &mut SharedState,
        arrival: &mut Option<NewEvent>,
        states: Option<usize>,
    ) -> FastPathResult {
        let Self { nic, route, now, .. } = *self;
        let line = &mut *self.line;
        let ip = IP_HEADER_BYTES as u32 + whole.header + whole.bytes;
        if nic.has_waiters() || !line.has_memory(now, ip, nic.capacity) {
            return FastPathResult::NeedsSlowPath;
        }
        let FastPathResult::ArrivesAt(at) = line.offer::<true>(now, ip, id, self.last, &shared.window) else {
            return FastPathResult::NeedsSlowPath;
        };
        let packet = Packet {
            datagram: id,
            ip,
            sender: whole.sender,
            place: route.first + 1,
            ttl: route.ttl,
            priority: route.priority,
            ecn: whole.ecn,
            ..Packet::NONE
        };
        shared.datagrams.insert_next(id, whole.datagram(now, true), packet);
        let until = line.free_at();
        match whole.to.get() {
            Some(_) => shared.ledger.sends_packet(states, (whole.counted, id), now, until),
            None => shared.ledger.sends_message(whole.sender as usize, id, now, until),
        }
        if line.posts_each_packet {
            shared.ledger.attribute_shared_idle(self.line_index, shared.datagrams[id].owner(), id, ip, line);
        }
        if whole.counted {
            let tally = &mut shared.flows[whole.flow as usize];
            tally.in_flight += 1;
            if shared.window.holds(now) {
                tally.sent += 1;
                tally.sent_bytes += u64::from(whole.bytes);
            }
        }
        if at > self.last && line.expect_arrival_at(at) {
            *arrival = Some((at, line.port as usize, Event::FrameArrival(self.port)));
        }
        FastPathResult::ArrivesAt(at)
    }
}
