//! Packets that a port, a line or a router drops.

use engpass_frames::{Frames, InFlightFrame, Packet, Step};

use super::hop::Links;
use crate::clock::NewEvent;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::shared_state::SharedState;

impl Links<'_> {
    /// Postpones a loss that lies ahead of virtual time, if packets are injected: their losses are reported in order of time. Returns the event of the loss;
    /// `None`, without effect, if it is not postponed.
    #[inline]
    pub(super) fn try_defer_drop(&mut self, id: u32, place: DropLocation, at: u64) -> Option<NewEvent> {
        let reports = self.shared.reports.as_mut().filter(|_| at > self.clock.now)?;
        // Losses at one instant keep the order in which they are found. The packet number would not give this order: it depends on when packets were examined.
        Some((at, reports.defer_loss(id, place), Event::DeferredDrop(id)))
    }

    /// Carries out a loss that was found ahead of time. Returns the event of an ICMP message about it.
    pub(super) fn on_deferred_drop(&mut self, packet: u32) -> Option<NewEvent> {
        let now = self.clock.now;
        let reports = self.shared.reports.as_mut().expect("only injected packets have deferred losses");
        match reports.place_of(packet) {
            DropLocation::Queue(number, cause) => {
                self.drop_at_port(self.frames.port_index(number), packet, cause, now)
            }
            place => {
                let step = self.frames.steps[self.shared.datagrams.packet(packet).place as usize];
                self.drop_at_router(packet, step, place, now)
            }
        }
    }

    /// Drops a packet at a router in front of `step`. Returns the event of the loss, if it is postponed, or of the ICMP message about it.
    pub(super) fn drop_at_router(
        &mut self,
        id: u32,
        step: Step,
        place: DropLocation,
        at: u64,
    ) -> Option<NewEvent> {
        let deferred = self.try_defer_drop(id, place, at);
        if deferred.is_some() {
            return deferred;
        }
        let Self { frames, shared, .. } = self;
        let message = shared.message_about(id, step, place, frames);
        shared.drop_packet(frames, id, place, at);
        Some(shared.begin_message(message?, at, frames))
    }

    /// Drops a packet that has just come to the end of the line of a port if it is damaged, or if an outage or its bond does not let it arrive. Returns true if
    /// it is dropped.
    #[inline(always)]
    pub(crate) fn drops_on_arrival(&mut self, port: u32, landed: InFlightFrame) -> bool {
        let line = &self.frames.ports[port as usize];
        let place: fn(usize) -> DropLocation = if landed.damaged {
            DropLocation::Line
        } else if line.outage_destroyed(&landed) {
            DropLocation::Down
        } else if self.frames.drops_on_inactive_member(line.port) {
            DropLocation::Inactive
        } else {
            return false;
        };
        self.drop_on_line(port, landed.packet, place, self.clock.now);
        true
    }

    /// Drops a packet at a port, on its line or at the far end. `place` makes drop location and cause from the number of the transmitter.
    #[inline(never)]
    pub(super) fn drop_on_line(
        &mut self,
        port: u32,
        id: u32,
        place: impl Fn(usize) -> DropLocation,
        at: u64,
    ) {
        let Self { frames, shared, .. } = self;
        let line = &mut frames.ports[port as usize];
        let number = line.port as usize;
        let place = place(number);
        if let Some(deferred) = &mut shared.ledger.deferred {
            deferred.lost(number, 1);
        }
        if shared.window.holds(at) {
            line.count_lost();
        }
        if let Some(trace) = &mut shared.trace
            && !matches!(place, DropLocation::Line(_) | DropLocation::Inactive(_))
        {
            trace.dropped(number, at);
        }
        shared.drop_packet(frames, id, place, at);
    }
}

impl SharedState {
    /// Drops a packet that leaves the network here.
    pub(super) fn drop_packet(&mut self, frames: &Frames, packet: u32, place: DropLocation, at: u64) {
        let Packet { datagram, place: came_to, .. } = *self.datagrams.packet(packet);
        let trail = super::trail(frames, came_to);
        if packet != datagram || !self.try_drop_unfragmented(datagram, trail, place, at) {
            self.drop_packet_slow_path(frames, packet, place, at);
        }
    }

    /// Slow path of a loss: the packet is one of several of its datagram, or the datagram has a per-hop record.
    #[inline(never)]
    fn drop_packet_slow_path(&mut self, frames: &Frames, packet: u32, place: DropLocation, at: u64) {
        let datagram = self.datagrams.packet(packet).datagram;
        self.track_fragments_per_hop(datagram);
        self.record_hops_carried(frames, packet);
        self.lose_datagram(datagram, place, at);
        if !self.copies.is_empty() {
            self.lose_copies(datagram, place, at);
        }
        if self.window.holds(at) {
            let flow = self.datagrams[datagram].flow as usize;
            self.flows[flow].losses(place).cells += 1;
        }
        self.datagrams.release_packet(packet);
        self.release_datagram(datagram);
    }
}
