//! Multicast copies: routers make them when their engine has finished a packet, switches when the packet arrives.

use engpass_frames::{Frames, Packet, Step};

use crate::Network;
use crate::shared_state::SharedState;

impl Network {
    /// Handles a packet at the node where its branch ends: the copies are made at once, or after the processing time of the router.
    #[cold]
    pub(super) fn on_branch_point(&mut self, packet: u32) {
        let Packet { datagram, ip, .. } = *self.shared.datagrams.packet(packet);
        let router = self
            .shared
            .copying_router(datagram)
            .filter(|router| !self.frames.engines[*router].takes_no_time());
        let Some(router) = router else {
            self.copy_onward(packet);
            return;
        };
        // A packet that finds no room decides nothing.
        let first = self.shared.first_engine(&mut self.frames, router, packet);
        let copies = match self.frames.engines[first].has_room(ip) {
            true => self.shared.decide_copies(datagram, self.clock.now),
            false => 0,
        };
        self.process(Step::at_router(router), packet, copies);
    }

    /// Copies a packet to the branches that begin at the node where its own branch ends.
    pub(super) fn copy_onward(&mut self, id: u32) {
        let whole = *self.shared.datagrams.packet(id);
        if let Some(router) = self.shared.copying_router(whole.datagram)
            && whole.ttl <= 1
        {
            self.shared.datagrams.packet_mut(id).ttl = 0;
            self.drop_or_fragment(id, Step::at_router(router), self.clock.now);
            return;
        }
        let now = self.clock.now;
        for (copy, place) in self.shared.copy_to_branches(id, &self.frames, now) {
            self.forward(copy, place, now, true);
        }
    }
}

impl SharedState {
    /// Replaces a packet by its copies, and returns them with their first steps.
    fn copy_to_branches(&mut self, id: u32, frames: &Frames, now: u64) -> Vec<(u32, u32)> {
        let whole = *self.datagrams.packet(id);
        // For a packet that has left a tunnel here, the copies were not decided before.
        self.decide_copies(whole.datagram, now);
        let stamp = self.ledger.snapshot_of(id);
        let mut copies = Vec::new();
        for (datagram, route) in self.copies_of(whole.datagram) {
            let place = frames.routes[route as usize].first;
            let copy = self.datagrams.insert_packet(Packet { datagram, place, since: 0, ..whole });
            self.datagrams[datagram].refs += 1;
            self.ledger.set_snapshot(copy, stamp.as_ref());
            if let Some(trace) = &mut self.trace {
                trace.copied(id, copy);
            }
            copies.push((copy, place));
        }
        self.datagrams[whole.datagram].arrived += 1;
        self.record_hops_carried(frames, id);
        self.datagrams.release_packet(id);
        self.release_datagram(whole.datagram);
        copies
    }
}
