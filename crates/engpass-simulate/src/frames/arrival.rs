//! Arrivals of packets: at switches, at routers with their processing time, and at hosts.

use engpass_frames::{ForwardingEngine, Frames, InFlightFrame, Packet, Step, Verdict};
use engpass_model::queue::Ecn;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::shared_state::SharedState;

impl Network {
    /// Handles the frame that arrives at the far end of this port's line, and the frames that follow it up to `limit` as long as no other event comes first.
    #[inline(always)]
    pub(crate) fn on_frame_arrival(&mut self, port: u32, limit: u64) {
        loop {
            let this = &mut self.frames.ports[port as usize];
            let (landed, next) = this.pop_arrival(self.clock.now);
            let number = this.port as usize;
            if let Some(landed) = landed {
                self.process_arrival(port, landed);
            }
            if next == u64::MAX {
                return;
            }
            // Frames that were sent while this one was handled arrive later than those on the line.
            let event = Event::FrameArrival(port);
            if next > limit || !self.clock.events.would_be_next(next, number, event) {
                self.clock.events.push(next, number, event);
                return;
            }
            self.clock.now = next;
            self.clock.handled += 1;
        }
    }

    #[inline(always)]
    fn process_arrival(&mut self, port: u32, landed: InFlightFrame) {
        if landed.damaged || landed.sent.1 > 0 {
            let line = &self.frames.ports[port as usize];
            let place: Option<fn(usize) -> DropLocation> = if landed.damaged {
                Some(DropLocation::Line)
            } else if line.outage_destroyed(&landed) {
                Some(DropLocation::Down)
            } else if self.frames.drops_on_inactive_member(line.port) {
                Some(DropLocation::Inactive)
            } else {
                None
            };
            if let Some(place) = place {
                self.shared.drop_on_line(&mut self.frames, port, landed.packet, place, self.clock.now);
                return;
            }
        }
        if !self.shared.copies.is_empty() {
            self.receive_or_forward_copies(landed.packet);
            return;
        }
        self.receive_or_forward(landed.packet);
    }

    /// Forwards a packet and the copies made of it. At the end of a tunnel the copies are made after decapsulation.
    #[inline(never)]
    fn receive_or_forward_copies(&mut self, packet: u32) {
        let place = self.shared.datagrams.packet(packet).place;
        let is_inside = matches!(self.frames.steps[place as usize].verdict, Verdict::Unwrap(_));
        let copies = if is_inside { Vec::new() } else { self.shared.copy(packet, &self.frames) };
        for id in std::iter::once(packet).chain(copies) {
            self.receive_or_forward(id);
        }
    }

    /// Delivers a packet at its end, or forwards it from a switch or router.
    #[inline(always)]
    pub(crate) fn receive_or_forward(&mut self, packet: u32) {
        let place = self.shared.datagrams.packet(packet).place;
        let step = self.frames.steps[place as usize];
        if step.is_end() && !step.takes_time {
            self.on_packet_at_host(packet);
        } else if !step.takes_time {
            self.hop(packet, place, self.clock.now, true);
        } else if !step.is_line()
            && self.frames.engines.get(step.router as usize).is_none_or(ForwardingEngine::takes_no_time)
        {
            self.leave_engine(packet, place);
        } else if let Some(at) = self.process(step, packet, 1) {
            self.forward(packet, place, at, true);
        }
    }

    #[inline]
    pub(super) fn on_packet_at_host(&mut self, packet: u32) {
        let Packet { datagram, ecn, .. } = *self.shared.datagrams.packet(packet);
        if !self.receive_fast_path(packet, datagram, ecn) {
            self.receive_slow_path(packet);
        }
    }

    #[inline(never)]
    pub(super) fn receive_slow_path(&mut self, packet: u32) {
        let Packet { datagram, ecn, place, ttl, .. } = *self.shared.datagrams.packet(packet);
        if self.shared.is_copied(datagram) {
            self.on_branch_point(packet);
            return;
        }
        if self.frames.is_branched(place) {
            self.shared.note_end(datagram, place);
        }
        let this = &mut self.shared.datagrams[datagram];
        this.trail = super::trail(&self.frames, place);
        this.arrived += 1;
        let (complete, train, tracked_per_hop) =
            (this.arrived == this.fragments, this.train, this.tracked_per_hop);
        let (to, lost) = (this.to.get(), this.lost);
        if ecn == Ecn::Marked && to.is_some() {
            let segment = self.shared.datagrams.segment_mut(datagram);
            segment.ce |= segment.ect;
        } else if let Some(reports) = &mut self.shared.reports {
            reports.arrives(datagram, ttl, ecn == Ecn::Marked);
        }
        if train && !complete {
            self.on_train_packet_arrival(datagram);
            return;
        }
        if tracked_per_hop {
            self.shared.record_hops_carried(&self.frames, packet);
        } else {
            debug_assert!(
                self.shared.has_expected_length(packet),
                "a packet without a per-hop record has its expected length"
            );
        }
        self.shared.datagrams.release_packet(packet);
        if complete && !lost {
            match to {
                Some(_) if self.shared.is_of_tree(datagram) => self.receive_message(datagram),
                Some(direction) if direction as usize >= self.shared.endpoints => {
                    self.take_control(datagram, direction)
                }
                Some(endpoint) => self.receive_segment(datagram, endpoint),
                None => self.receive(datagram),
            }
        }
        self.shared.release_datagram(datagram);
    }

    /// Handles the arrival of a train's packet that is not the last one. The index and token of the datagram advance to the next packet.
    #[inline]
    pub(super) fn on_train_packet_arrival(&mut self, datagram: u32) {
        self.shared.delivered(datagram, self.clock.now);
        self.shared.datagrams[datagram].index += 1;
        if let Some(reports) = &mut self.shared.reports {
            reports.next_token(datagram);
        }
    }

    /// Puts a packet into the engine of a router; `copies` of it will leave. Returns when the engine finishes it, if the packet may continue ahead of
    /// virtual time. Otherwise an event follows.
    #[inline(never)]
    pub(super) fn process(&mut self, step: Step, packet: u32, copies: u64) -> Option<u64> {
        let entered = if self.frames.switching.depends_on_packet(step.router) {
            let arrival = self.shared.arrival_at(&mut self.frames, step.router, packet);
            self.frames.begin_work(&arrival, copies, self.clock.now)
        } else {
            let ip = self.shared.datagrams.packet(packet).ip;
            let times = (self.clock.now, self.clock.end);
            (step.router as usize, self.frames.process(step, (packet, ip), copies, times))
        };
        self.shared.on_engine_entered(packet, entered, &self.frames, &mut self.clock)
    }

    /// Forwards a packet that an engine of a router has finished.
    pub(crate) fn on_engine_done(&mut self, number: u32) {
        let router = self.frames.router_of_engine(number);
        let engine = &mut self.frames.engines[number as usize];
        let (packet, next) = engine.finish(|packet| self.shared.datagrams.packet(packet).ip);
        if let Some(at) = next {
            self.clock.events.push(at, engine.node, Event::EngineDone(number));
        }
        if router != number
            && let Some(copies) = self.frames.switching.take_punted(packet)
        {
            // A line card hands the packet to the route processor.
            let arrival = self.shared.arrival_at(&mut self.frames, router, packet);
            let entered = self.frames.forward_with_engine(&arrival, copies, self.clock.now);
            self.shared.on_engine_entered(packet, entered, &self.frames, &mut self.clock);
            return;
        }
        let place = self.shared.datagrams.packet(packet).place;
        self.leave_engine(packet, place);
    }

    /// Delivers a packet to its host ahead of virtual time, for the instant `at`.
    pub(super) fn deliver_ahead(&mut self, id: u32, at: u64) {
        let now = std::mem::replace(&mut self.clock.now, at);
        let datagram = self.shared.datagrams.packet(id).datagram;
        if let Some(to) = self.shared.datagrams[datagram].to.get() {
            self.hosts.endpoints[to as usize].handled_until = at;
        }
        self.on_packet_at_host(id);
        self.clock.now = now;
    }
}

impl SharedState {
    /// Creates the multicast copies of a packet at the node that it has reached, and returns them.
    #[cold]
    pub(super) fn copy(&mut self, id: u32, frames: &Frames) -> Vec<u32> {
        let whole = *self.datagrams.packet(id);
        let hop = frames.lines_before(whole.place);
        let stamp = self.ledger.snapshot_of(id);
        let mut copies = Vec::new();
        for (datagram, route) in self.copies.take_at(whole.datagram, hop.into()) {
            let place = frames.first_place(route, hop);
            let sender = self.reports.as_ref().map_or(whole.sender, |reports| reports.head(datagram).flow);
            let copy = Packet { datagram, sender, place, since: hop, ..whole };
            let copy = self.datagrams.insert_packet(copy);
            self.ledger.set_snapshot(copy, stamp.as_ref());
            if let Some(trace) = &mut self.trace {
                trace.copied(id, copy);
            }
            copies.push(copy);
        }
        copies
    }

    /// Returns true if a packet that has arrived is as long as the one that the sender sent at its position.
    fn has_expected_length(&self, packet: u32) -> bool {
        let Packet { datagram, ip, .. } = *self.datagrams.packet(packet);
        let this = &self.datagrams[datagram];
        let (direction, bytes) = ((this.flow, this.to.get()), this.header + this.bytes);
        let place = u64::from(this.arrived) - 1;
        self.ledger.fragments_of_sender(direction, bytes.into()).payload(place) + IP_HEADER_BYTES
            == u64::from(ip)
    }
}
