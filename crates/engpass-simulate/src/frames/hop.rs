//! Packets from node to node: how a port handles a packet and hands it to the next step.
//!
//! Nearly all packets need nothing but room: [`FramePort::offer`](engpass_frames::FramePort::offer) takes them,
//! and [`Network::hop`] continues for as many hops as lookahead allows.
//! Packets that are captured, marked, held or dropped, or clipped by a window edge, take the slow path ([`Network::cross`]).

use engpass_frames::{AdmitResult, Departure, FastPathResult, Frames, Lookahead, Packet, Verdict};
use engpass_model::queue::{Cause, Ecn};
use engpass_model::wire::ip::UDP_HEADER_BYTES;

use super::egress::{Egress, SenderRef, UnfragmentedDatagram};
use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::host::Hosts;
use crate::packet_store::Destination;
use crate::ready_packet::{EgressPath, ReadyPacket};
use crate::shared_state::SharedState;
use crate::tap::Carrier;

impl Network {
    /// Moves a packet that is at step `place` at `at` as far as lookahead allows. It reaches its host ahead of virtual time only if `arrives` is true.
    #[inline(never)]
    pub(super) fn forward(&mut self, id: u32, place: u32, at: u64, arrives: bool) {
        let step = self.frames.steps[place as usize];
        match step.verdict {
            Verdict::Out(_) => self.hop(id, place, at, arrives),
            Verdict::Circuit(entry) => {
                debug_assert_eq!(at, self.clock.now, "a packet enters a circuit at the present instant");
                self.shared.datagrams.packet_mut(id).place = place;
                if self.passes_router(id, step, at) {
                    let queued = (id, entry);
                    let next = self.cells.enter_circuit(queued, at, &self.frames, &mut self.shared);
                    self.clock.schedule([next]);
                }
            }
            Verdict::Wrap(direction) => self.enter_tunnel(id, place, direction),
            Verdict::Hold(neighbour) => self.resolve_or_hold(id, place, neighbour),
            other => unreachable!("{other:?} does not forward a packet"),
        }
    }

    /// Like [`Self::forward`], for a step that is a line.
    #[inline(always)]
    pub(super) fn hop(&mut self, id: u32, mut place: u32, mut at: u64, arrives: bool) {
        let fast = self.shared.fast_path_allowed();
        loop {
            let Self { frames: Frames { ports, steps, .. }, shared, clock, hosts, .. } = self;
            let SharedState { datagrams, ledger, window, trace, .. } = shared;
            let (packet, datagram) = datagrams.packet_of(id);
            let (then, lookahead) = loop {
                let step = &steps[place as usize];
                let port = step.port();
                let line = &mut ports[port as usize];
                let last = match step.lookahead {
                    Lookahead::None => 0,
                    Lookahead::NextPort => clock.end,
                    // Until the instant computed here, only this line can cause anything at the host.
                    Lookahead::Host if arrives && line.has_no_pending_arrival() && trace.is_none() => {
                        match datagram.to.get() {
                            Some(to) => hosts.endpoints[to as usize].lookahead_until().min(clock.until),
                            // A UDP socket only counts datagrams: it may take them ahead of virtual time.
                            None => clock.until,
                        }
                    }
                    Lookahead::Host => 0,
                };
                // A router drops packets whose TTL expires, and fragments or drops those that exceed the MTU.
                let stops = step.is_routed() && (packet.ttl <= 1 || packet.ip > step.mtu);
                let passed = match fast && !stops {
                    true => line.offer::<false>(at, packet.ip, id, last, window),
                    false => FastPathResult::NeedsSlowPath,
                };
                let then = match passed {
                    FastPathResult::ArrivesAt(then) => then,
                    FastPathResult::Dropped => {
                        packet.place = place;
                        self.drop_at_port(port, id, Cause::Full, at);
                        return;
                    }
                    FastPathResult::NeedsSlowPath => {
                        packet.place = place;
                        let lookahead = step.lookahead;
                        match self.cross(id, place, at, last) {
                            Some(then) => break (then, lookahead),
                            None => return,
                        }
                    }
                };
                packet.ttl -= u8::from(step.is_routed());
                if line.posts_each_packet {
                    ledger.attribute_shared_idle(step.line_index, datagram.owner(), id, packet.ip, line);
                }
                if then <= last && step.lookahead == Lookahead::NextPort {
                    (place, at) = (place + 1, then);
                    continue;
                }
                packet.place = place + 1;
                if then > last {
                    if line.expect_arrival_at(then) {
                        clock.events.push(then, line.port as usize, Event::FrameArrival(step.port()));
                    }
                    return;
                }
                self.deliver_ahead(id, then);
                return;
            };
            if lookahead == Lookahead::Host {
                self.deliver_ahead(id, then);
                return;
            }
            (place, at) = (place + 1, then);
        }
    }

    /// Slow path of one hop. Returns when the packet reaches the next step if it was handed ahead, which is possible up to `last`; otherwise `None`.
    #[inline(never)]
    fn cross(&mut self, id: u32, place: u32, at: u64, last: u64) -> Option<u64> {
        let step = self.frames.steps[place as usize];
        if step.is_routed() && !self.passes_router(id, step, at) {
            return None;
        }
        let Self { frames: Frames { ports, dropped, marks, .. }, shared, .. } = self;
        let packet = *shared.datagrams.packet(id);
        let line = &mut ports[step.port() as usize];
        shared.catch_up_before(line, at);
        let view = packet.queued(id, line.queue_bytes(packet.ip));
        match line.admit(at, view, dropped, &shared.window) {
            AdmitResult::Departs(sent, mark) => {
                if mark
                    && std::mem::replace(&mut shared.datagrams.packet_mut(id).ecn, Ecn::Marked) != Ecn::Marked
                {
                    marks.add(line.port as usize, shared.window.holds(at));
                }
                self.transmit((id, view.bytes), place, &sent, last)
            }
            other => {
                self.on_not_sent(step.port(), id, other, at);
                None
            }
        }
    }

    /// Puts a packet with a known departure on the line of step `place`; it takes `bytes` bytes of the queue until then. Returns the instant at which it
    /// reaches the next step if it was handed ahead, which is possible up to `last`.
    #[inline(always)]
    fn transmit(&mut self, (id, bytes): (u32, u32), place: u32, sent: &Departure, last: u64) -> Option<u64> {
        let Self { frames: Frames { ports, steps, tunnels, .. }, shared, clock, .. } = self;
        let step = steps[place as usize];
        let (port, line_index) = (step.port(), step.line_index);
        let line = &mut ports[port as usize];
        let (packet, datagram) = shared.datagrams.packet_of(id);
        packet.place = place + 1;
        let Packet { datagram: whole, ttl, ecn, .. } = *packet;
        if line.posts_each_packet {
            shared.ledger.post_transmission(
                line_index,
                (whole, datagram.owner()),
                id,
                &{ sent.transmission },
                line,
            );
            if shared.ledger.tracks_packets() {
                let piece = tunnels.piece_on(id, packet, place);
                shared.ledger.track_packet(whole, line_index, piece);
            }
        }
        if shared.trace.is_some() {
            shared.tap_packet(line.port as usize, sent.left, id, whole, (ttl, ecn));
        }
        if !line.is_in_order() {
            shared.track_fragments_per_hop(whole);
        }
        let at = sent.left + line.delay;
        // Packets that arrive after the end of the run are never handed over.
        let is_ahead = at <= last;
        if is_ahead {
            line.push_delivered_ahead(sent.left, bytes);
        } else if let Some(at) = line.push_in_flight(sent, bytes, id) {
            clock.events.push(at, line.port as usize, Event::FrameArrival(port));
        }
        if !sent.in_window {
            self.shared.clip_to_window(&self.frames, place, id, &sent.transmission);
        }
        is_ahead.then_some(at)
    }

    /// Returns the instant up to which the line of step `place` may hand arrivals to the next port ahead of time; 0 if it may not.
    #[inline(always)]
    fn delivers_ahead_until(&self, place: u32) -> u64 {
        if self.frames.steps[place as usize].delivers_ahead() { self.clock.end } else { 0 }
    }

    /// Sends the message that a process has ready as one packet, and schedules the next message. It must cost the host no CPU time. Returns false, without
    /// effect, if the slow path must take it.
    #[inline(always)]
    pub(crate) fn try_send_message(&mut self, process: usize) -> bool {
        if !self.shared.fast_path_allowed() || self.shared.reports.is_some() {
            return false;
        }
        let Self { clock, hosts: Hosts { processes, nics, .. }, frames, shared, .. } = self;
        let this = &mut processes[process];
        let EgressPath::Frames { route } = this.way else { return false };
        if this.fragments.count > 1 {
            return false;
        }
        let mut exit = Egress::of(&nics[this.nic], route, frames, clock);
        let whole = UnfragmentedDatagram {
            flow: this.flow as u32,
            index: this.messages,
            to: Destination::SOCKET,
            sender: process as u32,
            header: UDP_HEADER_BYTES as u32,
            bytes: this.message as u32,
            counted: true,
            resent: false,
            ecn: Ecn::NotCapable,
        };
        let id = shared.datagrams.next();
        let FastPathResult::ArrivesAt(at) =
            exit.send(id, whole, shared, &mut clock.events, SenderRef::Process(process))
        else {
            return false;
        };
        let (next, is_ahead) = (exit.route.first + 1, at <= exit.last);
        this.messages += 1;
        let due = this.next_message();
        clock.events.push(due.max(clock.now), this.flow, Event::ProcessWake(process as u32));
        if is_ahead {
            self.forward(id, next, at, false);
        }
        true
    }

    /// Sends a packet of a host into its NIC, which must have room.
    #[inline(always)]
    pub(crate) fn emit_frame(&mut self, sender: usize, ready_packet: &ReadyPacket, route: u32) {
        let id = self.shared.packet_of(&self.frames, sender, ready_packet, route);
        if self.shared.trace.is_some() {
            self.shared.tap_emitted(Carrier::Packet(id), sender, ready_packet, &self.hosts, &self.injected);
        }
        let (datagram, ip) = (ready_packet.datagram, ready_packet.ip as u32);
        let (first, has_data) =
            (self.frames.routes[route as usize].first, self.shared.datagrams[datagram].counted);
        let Self { frames: Frames { ports, steps, .. }, shared, clock, .. } = self;
        let (now, end) = (clock.now, clock.end);
        let step = steps[first as usize];
        let line = &mut ports[step.port() as usize];
        if shared.fast_path_allowed() {
            // Fast path, as for the segments of an endpoint.
            let last = if step.delivers_ahead() { end } else { 0 };
            if let FastPathResult::ArrivesAt(at) = line.offer::<true>(now, ip, id, last, &shared.window) {
                shared.datagrams.packet_mut(id).place = first + 1;
                shared.ledger.emitted_packet(sender, (has_data, id), now, line.free_at());
                if line.posts_each_packet {
                    shared.ledger.attribute_shared_idle(
                        step.line_index,
                        shared.datagrams[datagram].owner(),
                        id,
                        ip,
                        line,
                    );
                }
                if at <= last {
                    self.forward(id, first + 1, at, false);
                } else if line.expect_arrival_at(at) {
                    clock.events.push(at, line.port as usize, Event::FrameArrival(step.port()));
                }
                return;
            }
        }
        self.send_from_nic(id, Some((sender, has_data)));
    }

    /// Slow path: sends a packet from the NIC of its host. `sender` has true if the packet carries its data; ARP and IGMP packets have no sender.
    pub(super) fn send_from_nic(&mut self, id: u32, sender: Option<(usize, bool)>) {
        let Self { frames: Frames { ports, steps, dropped, .. }, shared, .. } = self;
        let packet = *shared.datagrams.packet(id);
        let Packet { ip, place, .. } = packet;
        let line = &mut ports[steps[place as usize].port() as usize];
        let view = packet.queued(id, line.queue_bytes(ip));
        let AdmitResult::Departs(sent, _) = line.admit(self.clock.now, view, dropped, &shared.window) else {
            unreachable!("a host's line accepts every packet");
        };
        if let Some((sender, has_data)) = sender {
            shared.ledger.emitted_packet(sender, (has_data, id), self.clock.now, sent.transmission.end);
        }
        if let Some(at) = self.transmit((id, ip), place, &sent, self.delivers_ahead_until(place)) {
            self.forward(id, place + 1, at, false);
        }
    }

    /// Drops a packet that a port has refused or discarded.
    #[inline(never)]
    pub(super) fn drop_at_port(&mut self, port: u32, id: u32, cause: Cause, at: u64) {
        let place = |number| DropLocation::Queue(number, cause);
        if !self.shared.try_defer_drop(
            id,
            place(self.frames.ports[port as usize].port as usize),
            at,
            &mut self.clock,
        ) {
            self.shared.drop_on_line(&mut self.frames, port, id, place, at);
        }
    }

    /// Carries out a loss that was found ahead of time.
    pub(crate) fn on_deferred_drop(&mut self, packet: u32) {
        let reports = self.shared.reports.as_mut().expect("only injected packets have deferred losses");
        match reports.place_of(packet) {
            DropLocation::Queue(number, cause) => {
                self.drop_at_port(self.frames.port_index(number), packet, cause, self.clock.now);
            }
            place => {
                let step = self.frames.steps[self.shared.datagrams.packet(packet).place as usize];
                self.drop_at_router(packet, step, place, self.clock.now);
            }
        }
    }

    /// Drops the packets that the discipline of a port has dropped in the current call.
    pub(super) fn drop_discarded(&mut self, port: u32) {
        while let Some((packet, cause)) = self.frames.dropped.pop() {
            self.drop_at_port(port, packet.id, cause, self.clock.now);
        }
    }

    /// Handles a packet that arrived at a port whose departure is not known: it waits, or is dropped.
    #[inline(never)]
    fn on_not_sent(&mut self, port: u32, id: u32, admitted: AdmitResult, at: u64) {
        match admitted {
            AdmitResult::Departs(..) => unreachable!("a departing packet is forwarded by the caller"),
            AdmitResult::Queued(due, marks) => {
                if marks {
                    let number = self.frames.ports[port as usize].port as usize;
                    self.frames.marks.add(number, self.shared.window.holds(at));
                }
                if let Some(due) = due {
                    let number = self.frames.ports[port as usize].port as usize;
                    self.clock.events.push(due, number, Event::Dequeue(port));
                }
                self.drop_discarded(port);
            }
            AdmitResult::Dropped(cause) => self.drop_at_port(port, id, cause, at),
            AdmitResult::LineDown => {
                self.shared.drop_on_line(&mut self.frames, port, id, DropLocation::Down, at)
            }
        }
    }

    /// Handles a `Dequeue` event of a port: its discipline chooses the packet that is sent next.
    pub(crate) fn dequeue_port(&mut self, port: u32) {
        let this = &mut self.frames.ports[port as usize];
        let (next, again) = this.serve(self.clock.now, &mut self.frames.dropped, &self.shared.window);
        if let Some(again) = again {
            self.clock.events.push(again, this.port as usize, Event::Dequeue(port));
        }
        if let Some((chosen, sent)) = next {
            if sent.transmission.held > 0 && !this.posts_each_packet {
                self.shared.ledger.held(this.port as usize, &sent.transmission, this.totals.idle);
            }
            let number = this.port as usize;
            let decides_when_free = !this.marks_on_arrival();
            let packet = self.shared.datagrams.packet_mut(chosen.id);
            if decides_when_free && packet.ecn != chosen.ecn {
                self.frames.marks.add(number, self.shared.window.holds(self.clock.now));
            }
            packet.ecn = chosen.ecn;
            let place = packet.place;
            let last = self.delivers_ahead_until(place);
            if let Some(at) = self.transmit((chosen.id, chosen.bytes), place, &sent, last) {
                self.forward(chosen.id, place + 1, at, true);
            }
        }
        self.drop_discarded(port);
    }
}
