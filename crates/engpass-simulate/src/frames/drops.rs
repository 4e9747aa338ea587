//! Packets that a port, a line or a router drops.

use engpass_frames::{Frames, Packet};
use engpass_model::queue::Cause;

use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::shared_state::SharedState;

impl Network {
    /// Drops a packet that a port has refused or discarded.
    #[inline(never)]
    pub(super) fn drop_at_port(&mut self, port: u32, id: u32, cause: Cause, at: u64) {
        let place = |number| DropLocation::Queue(number, cause);
        if !self.try_defer_drop(id, place(self.frames.ports[port as usize].port as usize), at) {
            self.shared.drop_on_line(&mut self.frames, port, id, place, at);
        }
    }

    /// Schedules a loss that lies ahead of virtual time, if packets are injected: their losses are reported in order of time. Returns true if it was scheduled.
    #[inline]
    pub(super) fn try_defer_drop(&mut self, packet: u32, place: DropLocation, at: u64) -> bool {
        let Some(reports) = self.shared.reports.as_mut().filter(|_| at > self.clock.now) else {
            return false;
        };
        // Losses at one instant keep the order in which they are found. The packet number would not give this order: it depends on when packets were examined.
        let order = reports.defer_loss(packet, place);
        self.clock.events.push(at, order, Event::DeferredDrop(packet));
        true
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
}

impl SharedState {
    /// Drops a packet at a port, on its line or at the far end. `place` makes drop location and cause from the number of the transmitter.
    #[inline(never)]
    pub(super) fn drop_on_line(
        &mut self,
        frames: &mut Frames,
        port: u32,
        packet: u32,
        place: impl Fn(usize) -> DropLocation,
        at: u64,
    ) {
        let line = &mut frames.ports[port as usize];
        let number = line.port as usize;
        let place = place(number);
        if let Some(deferred) = &mut self.ledger.deferred {
            deferred.lost(number, 1);
        }
        if self.window.holds(at) {
            line.count_lost();
        }
        if let Some(trace) = &mut self.trace
            && !matches!(place, DropLocation::Line(_) | DropLocation::Inactive(_))
        {
            trace.dropped(number, at);
        }
        self.drop_packet(frames, packet, place, at);
    }

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
