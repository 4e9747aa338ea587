//! Arrivals of packets: at switches, at routers with their processing time, and at hosts.

use engpass_frames::{ForwardingEngine, Frames, InFlightFrame, Packet, Verdict};
use engpass_model::queue::Ecn;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use crate::Network;
use crate::endpoint::Endpoint;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::queueing::PathId;
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

    /// Fast path of reception: receives a packet that is an unfragmented datagram without other references, if that costs the host no CPU time. Returns false,
    /// without effect, for all other packets.
    #[inline(always)]
    pub(super) fn receive_fast_path(&mut self, packet: u32, datagram: u32, ecn: Ecn) -> bool {
        if self.shared.ledger.deferred.is_some() {
            return false;
        }
        match self.shared.datagrams[datagram].to.get() {
            Some(to) => self.receive_segment_fast_path(packet, datagram, to as usize, ecn),
            None => {
                self.shared.is_sole_unmarked(packet, datagram, ecn)
                    && self.receive_datagram_fast_path(datagram)
            }
        }
    }

    /// Like [`Self::receive_fast_path`], for a packet to endpoint `to`; postings must not be deferred.
    #[inline(always)]
    fn receive_segment_fast_path(&mut self, packet: u32, datagram: u32, to: usize, ecn: Ecn) -> bool {
        // Numbers above those of endpoints are ICMP and ARP packets.
        let fast = self.shared.is_sole_unmarked(packet, datagram, ecn)
            && self.hosts.endpoints.get(to).is_some_and(Endpoint::is_zero_cost);
        if fast {
            self.receive_and_post(datagram, to);
        }
        fast
    }

    /// Like [`Self::receive_fast_path`], for an unfragmented datagram to a socket.
    #[inline(never)]
    fn receive_datagram_fast_path(&mut self, datagram: u32) -> bool {
        let flow = self.shared.datagrams[datagram].flow as usize;
        let socket = self.hosts.sockets.get(flow).and_then(Option::as_ref);
        if !socket.is_some_and(|socket| socket.is_zero_cost) {
            return false;
        }
        let end = self.shared.datagrams.packet(datagram).place;
        self.received(datagram, PathId::to(end));
        let this = &self.shared.datagrams[datagram];
        let load = self.shared.load_of(this);
        self.shared.finish_datagram_fast_path(&self.frames, datagram, (this.flow, None), Some(load));
        true
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
    /// Returns true if a packet is an unfragmented datagram, stored at the same index, without other references and without a congestion mark.
    #[inline(always)]
    fn is_sole_unmarked(&self, packet: u32, datagram: u32, ecn: Ecn) -> bool {
        packet == datagram && self.datagrams[datagram].is_sole_unmarked(ecn)
    }

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
