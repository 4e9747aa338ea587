//! Packets that a port, a line or a router drops.

use engpass_frames::Packet;
use engpass_model::queue::Cause;

use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;

impl Network {
    /// Drops a packet at a port.
    #[inline(never)]
    pub(super) fn drop_at_port(&mut self, port: u32, id: u32, cause: Cause, at: u64) {
        let number = self.frames.ports[port as usize].port as usize;
        if self.try_defer_drop(id, DropLocation::Queue(number, cause), at) {
            return;
        }
        if let Some(deferred) = &mut self.shared.ledger.deferred {
            deferred.lost(number, 1);
        }
        if self.shared.window.holds(at) {
            self.frames.ports[port as usize].count_lost();
        }
        if let Some(trace) = &mut self.shared.trace {
            trace.dropped(number, at);
        }
        self.drop_packet(id, DropLocation::Queue(number, cause), at);
    }

    /// Schedules a loss that lies ahead of virtual time, if packets are injected: their losses are reported in order of time. Returns true if it was scheduled.
    #[inline]
    pub(super) fn try_defer_drop(&mut self, packet: u32, place: DropLocation, at: u64) -> bool {
        let Some(reports) = self.shared.reports.as_mut().filter(|_| at > self.now) else { return false };
        // Losses at one instant keep the order in which they are found. The packet number would not give this order: it depends on when packets were examined.
        let order = reports.defer_loss(packet, place);
        self.events.push(at, order, Event::DeferredDrop(packet));
        true
    }

    /// Carries out a loss that was found ahead of time.
    pub(crate) fn on_deferred_drop(&mut self, packet: u32) {
        let reports = self.shared.reports.as_mut().expect("only injected packets have deferred losses");
        match reports.place_of(packet) {
            DropLocation::Queue(number, cause) => {
                self.drop_at_port(self.frames.port_index(number), packet, cause, self.now);
            }
            place => {
                let step = self.frames.steps[self.shared.datagrams.packet(packet).place as usize];
                self.drop_at_router(packet, step, place, self.now);
            }
        }
    }

    pub(super) fn drop_packet(&mut self, packet: u32, place: DropLocation, at: u64) {
        let Packet { datagram, place: came_to, .. } = *self.shared.datagrams.packet(packet);
        let trail = super::trail(&self.frames, came_to);
        if packet != datagram || !self.shared.try_drop_unfragmented(datagram, trail, place, at) {
            self.drop_packet_slow_path(packet, place, at);
        }
    }

    /// Slow path of a loss: the packet is one of several of its datagram, or the datagram has a per-hop record.
    #[inline(never)]
    pub(super) fn drop_packet_slow_path(&mut self, packet: u32, place: DropLocation, at: u64) {
        let datagram = self.shared.datagrams.packet(packet).datagram;
        self.shared.track_fragments_per_hop(datagram);
        self.record_hops_carried(packet);
        self.shared.lose_datagram(datagram, place, at);
        if !self.groups.is_idle() {
            self.lose_copies(datagram, place, at);
        }
        if self.shared.window.holds(at) {
            let flow = self.shared.datagrams[datagram].flow as usize;
            self.shared.flows[flow].losses(place).cells += 1;
        }
        self.shared.datagrams.release_packet(packet);
        self.shared.release_datagram(datagram);
    }

    /// Drops the packets that the discipline of a port has dropped in the current call.
    pub(super) fn drop_discarded(&mut self, port: u32) {
        while let Some((packet, cause)) = self.frames.dropped.pop() {
            self.drop_at_port(port, packet.id, cause, self.now);
        }
    }
}
