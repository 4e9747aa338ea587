//! Packets from node to node: how a port handles a packet and hands it to the next step.
//!
//! Nearly all packets need nothing but room: [`FramePort::offer`](engpass_frames::FramePort::offer) takes them,
//! and [`Links::hop`] continues for as many hops as lookahead allows.
//! Packets that are captured, marked, held or dropped, or clipped by a window edge, take the slow path ([`Links::cross`]).

use engpass_frames::{AdmitResult, Departure, FastPathResult, Frames, Lookahead, Packet, Verdict};
use engpass_model::queue::{Cause, Ecn};

use crate::clock::{Clock, NewEvent};
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::host::Hosts;
use crate::progress::{Departed, Progress};
use crate::shared_state::SharedState;

/// The state that a packet changes between nodes: links with their routers, and counters, ledger and recordings of the whole network.
pub(crate) struct Links<'a> {
    pub(crate) frames: &'a mut Frames,
    pub(crate) shared: &'a mut SharedState,
    pub(crate) clock: &'a Clock,
}

impl Links<'_> {
    /// Handles an event of a link or a router. Returns the events that follow, and a packet that goes on.
    pub(crate) fn on_event(&mut self, event: Event) -> Departed {
        match event {
            Event::EngineDone(engine) => self.finish_packet(engine),
            Event::Dequeue(port) => self.dequeue(port),
            Event::IcmpReady(number) => {
                let packet = self.frames.icmp.release(number);
                ([None; 2], Some((packet, self.arrive(packet))))
            }
            Event::ArpTimeout(neighbour) => self.on_arp_timeout(neighbour),
            Event::IgmpTimer(timer) => self.on_igmp_timer(timer),
            Event::KeepaliveTimer(end) => self.on_keepalive_timer(end),
            Event::ReassemblyTimeout(tunnel) => ([self.on_reassembly_timeout(tunnel), None], None),
            Event::DeferredDrop(packet) => ([self.on_deferred_drop(packet), None], None),
            Event::BondMonitor(bond) => {
                let again = self.frames.check_carriers(bond, self.clock.now);
                ([again.map(|at| (at, 0, event)), None], None)
            }
            _ => unreachable!("the driver passes on events of links and routers"),
        }
    }

    /// Handles a packet at a step that is no line: a mark, the end of a branch, or a circuit that its router does not let it enter.
    pub(crate) fn pass_mark(&mut self, id: u32, place: u32, mark: Verdict, at: u64) -> Progress {
        match mark {
            Verdict::Choose(decision) => self.choose_path(id, place, decision),
            Verdict::Wrap(direction) => self.enter_tunnel(id, place, direction),
            Verdict::Unwrap(_) => self.leave_tunnel(id, place),
            Verdict::Hold(neighbour) => self.resolve_or_hold(id, place, neighbour),
            Verdict::Up => self.copy_onward(id),
            Verdict::Circuit(_) => self.stop(id, place, at),
            Verdict::Out(_) | Verdict::Result(_) => unreachable!("no packet comes to this mark"),
        }
    }

    /// Moves a packet that comes to the line of step `place` at `at` as far as lookahead allows. It reaches its host ahead of virtual time only if the `hosts`
    /// are given.
    #[inline(always)]
    pub(crate) fn hop(&mut self, id: u32, mut place: u32, mut at: u64, hosts: Option<&Hosts>) -> Progress {
        let fast = self.shared.fast_path_allowed();
        loop {
            let Self { frames: Frames { ports, steps, .. }, shared, clock } = self;
            let SharedState { datagrams, ledger, window, trace, .. } = &mut **shared;
            let (packet, datagram) = datagrams.packet_of(id);
            let (then, lookahead) = loop {
                let step = &steps[place as usize];
                let port = step.port();
                let line = &mut ports[port as usize];
                let last = match (step.lookahead, hosts) {
                    (Lookahead::NextPort, _) => clock.end,
                    // Until the instant computed here, only this line can cause anything at the host.
                    (Lookahead::Host, Some(hosts)) if line.has_no_pending_arrival() && trace.is_none() => {
                        match datagram.to.get() {
                            Some(to) => hosts.endpoints[to as usize].lookahead_until().min(clock.until),
                            // A UDP socket only counts datagrams: it may take them ahead of virtual time.
                            None => clock.until,
                        }
                    }
                    _ => 0,
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
                        return Progress::Rests(self.drop_at_port(port, id, Cause::Full, at));
                    }
                    FastPathResult::NeedsSlowPath => {
                        packet.place = place;
                        let lookahead = step.lookahead;
                        match self.cross(id, place, at, last) {
                            Progress::Ahead(then) => break (then, lookahead),
                            other => return other,
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
                if then <= last {
                    return Progress::Ahead(then);
                }
                let event = (then, line.port as usize, Event::FrameArrival(port));
                return Progress::Rests(line.expect_arrival_at(then).then_some(event));
            };
            if lookahead == Lookahead::Host {
                return Progress::Ahead(then);
            }
            (place, at) = (place + 1, then);
        }
    }

    /// Decrements the TTL of a packet at a router in front of step `place`. Returns true if the packet continues; the router stops one that is too large, or
    /// whose TTL expires.
    pub(crate) fn passes_router(&mut self, id: u32, place: u32) -> bool {
        self.shared.datagrams.packet_mut(id).passes_router(&self.frames.steps[place as usize])
    }

    /// Slow path of one hop. The packet may be handed ahead up to `last`.
    #[inline(never)]
    fn cross(&mut self, id: u32, place: u32, at: u64, last: u64) -> Progress {
        let Self { frames: Frames { ports, steps, dropped, marks, .. }, shared, .. } = self;
        let step = steps[place as usize];
        if step.is_routed() && !shared.datagrams.packet_mut(id).passes_router(&step) {
            return self.stop(id, place, at);
        }
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
            other => Progress::Rests(self.on_not_sent(step.port(), id, other, at)),
        }
    }

    /// Puts a packet with a known departure on the line of step `place`; it takes `bytes` bytes of the queue until then. The packet may be handed ahead up to
    /// `last`.
    #[inline(always)]
    fn transmit(&mut self, (id, bytes): (u32, u32), place: u32, sent: &Departure, last: u64) -> Progress {
        let Self { frames: Frames { ports, steps, tunnels, .. }, shared, .. } = self;
        let step = steps[place as usize];
        let (port, line_index) = (step.port(), step.line_index);
        let line = &mut ports[port as usize];
        let (packet, datagram) = shared.datagrams.packet_of(id);
        packet.place = place + 1;
        let Packet { datagram: whole, ttl, ecn, .. } = *packet;
        if line.posts_each_packet {
            let owner = (whole, datagram.owner());
            shared.ledger.post_transmission(line_index, owner, id, &{ sent.transmission }, line);
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
        let progress = if at <= last {
            line.push_delivered_ahead(sent.left, bytes);
            Progress::Ahead(at)
        } else {
            let arrival = line.push_in_flight(sent, bytes, id);
            Progress::Rests(arrival.map(|at| (at, line.port as usize, Event::FrameArrival(port))))
        };
        if !sent.in_window {
            shared.clip_to_window(self.frames, place, id, &sent.transmission);
        }
        progress
    }

    /// Returns the instant up to which the line of step `place` may hand arrivals to the next port ahead of time; 0 if it may not.
    #[inline(always)]
    fn delivers_ahead_until(&self, place: u32) -> u64 {
        if self.frames.steps[place as usize].delivers_ahead() { self.clock.end } else { 0 }
    }

    /// Sends packet `id` of a host into its NIC, which must have room. `has_data` is true if it carries data of its sender.
    #[inline(always)]
    pub(crate) fn emit(&mut self, id: u32, sender: usize, has_data: bool) -> Progress {
        let Packet { ip, place, .. } = *self.shared.datagrams.packet(id);
        if self.shared.fast_path_allowed() {
            // Fast path, as for the segments of an endpoint.
            let last = self.delivers_ahead_until(place);
            let step = self.frames.steps[place as usize];
            let (line, now) = (&mut self.frames.ports[step.port() as usize], self.clock.now);
            if let FastPathResult::ArrivesAt(at) = line.offer::<true>(now, ip, id, last, &self.shared.window)
            {
                let (packet, datagram) = self.shared.datagrams.packet_of(id);
                packet.place = place + 1;
                self.shared.ledger.emitted_packet(sender, (has_data, id), now, line.free_at());
                if line.posts_each_packet {
                    let owner = datagram.owner();
                    self.shared.ledger.attribute_shared_idle(step.line_index, owner, id, ip, line);
                }
                if at <= last {
                    return Progress::Ahead(at);
                }
                let event = (at, line.port as usize, Event::FrameArrival(step.port()));
                return Progress::Rests(line.expect_arrival_at(at).then_some(event));
            }
        }
        self.emit_slow_path(id, Some((sender, has_data)))
    }

    /// Slow path: sends a packet from the NIC of its host. `sender` has true if the packet carries its data; ARP and IGMP packets have no sender.
    pub(super) fn emit_slow_path(&mut self, id: u32, sender: Option<(usize, bool)>) -> Progress {
        let Self { frames: Frames { ports, steps, dropped, .. }, shared, clock } = self;
        let packet = *shared.datagrams.packet(id);
        let Packet { ip, place, .. } = packet;
        let line = &mut ports[steps[place as usize].port() as usize];
        let view = packet.queued(id, line.queue_bytes(ip));
        let AdmitResult::Departs(sent, _) = line.admit(clock.now, view, dropped, &shared.window) else {
            unreachable!("a host's line accepts every packet");
        };
        if let Some((sender, has_data)) = sender {
            shared.ledger.emitted_packet(sender, (has_data, id), clock.now, sent.transmission.end);
        }
        self.transmit((id, ip), place, &sent, self.delivers_ahead_until(place))
    }

    /// Drops a packet that a port has refused. Returns the event of the loss if it lies ahead of virtual time.
    #[inline(never)]
    pub(super) fn drop_at_port(&mut self, port: u32, id: u32, cause: Cause, at: u64) -> Option<NewEvent> {
        let place = |number| DropLocation::Queue(number, cause);
        let number = self.frames.ports[port as usize].port as usize;
        let deferred = self.try_defer_drop(id, place(number), at);
        if deferred.is_none() {
            self.drop_on_line(port, id, place, at);
        }
        deferred
    }

    /// Drops the packets that the discipline of a port has dropped in the current call.
    fn drop_discarded(&mut self, port: u32) {
        while let Some((packet, cause)) = self.frames.dropped.pop() {
            let place = |number| DropLocation::Queue(number, cause);
            self.drop_on_line(port, packet.id, place, self.clock.now);
        }
    }

    /// Handles a packet that arrived at a port whose departure is not known: it waits, or is dropped.
    #[inline(never)]
    fn on_not_sent(&mut self, port: u32, id: u32, admitted: AdmitResult, at: u64) -> Option<NewEvent> {
        match admitted {
            AdmitResult::Departs(..) => unreachable!("a departing packet is forwarded by the caller"),
            AdmitResult::Queued(due, marks) => {
                let number = self.frames.ports[port as usize].port as usize;
                if marks {
                    self.frames.marks.add(number, self.shared.window.holds(at));
                }
                self.drop_discarded(port);
                due.map(|due| (due, number, Event::Dequeue(port)))
            }
            AdmitResult::Dropped(cause) => self.drop_at_port(port, id, cause, at),
            AdmitResult::LineDown => {
                self.drop_on_line(port, id, DropLocation::Down, at);
                None
            }
        }
    }

    /// Lets the discipline of a port choose the packet that is sent next. Returns the event of the port's next choice, and the packet.
    fn dequeue(&mut self, port: u32) -> Departed {
        let Self { frames: Frames { ports, dropped, marks, .. }, shared, clock } = self;
        let this = &mut ports[port as usize];
        let number = this.port as usize;
        let (next, again) = this.serve(clock.now, dropped, &shared.window);
        let again = again.map(|again| (again, number, Event::Dequeue(port)));
        let Some((chosen, sent)) = next else {
            self.drop_discarded(port);
            return ([again, None], None);
        };
        if sent.transmission.held > 0 && !this.posts_each_packet {
            shared.ledger.held(number, &sent.transmission, this.totals.idle);
        }
        let packet = shared.datagrams.packet_mut(chosen.id);
        if !this.marks_on_arrival() && packet.ecn != chosen.ecn {
            marks.add(number, shared.window.holds(clock.now));
        }
        packet.ecn = chosen.ecn;
        let place = packet.place;
        let last = self.delivers_ahead_until(place);
        let progress = self.transmit((chosen.id, chosen.bytes), place, &sent, last);
        self.drop_discarded(port);
        ([again, None], Some((chosen.id, progress)))
    }
}
