//! Multicast copies: routers make them when their engine has finished a packet, switches when the packet arrives.

use engpass_frames::{Packet, Step};

use super::hop::Links;
use crate::progress::Progress;

impl Links<'_> {
    /// Handles a packet at the node where its branch ends: the copies are made at once, or after the processing time of the router.
    #[cold]
    pub(crate) fn on_branch_point(&mut self, id: u32) -> Progress {
        let Packet { datagram, ip, .. } = *self.shared.datagrams.packet(id);
        let router = self.shared.copying_router(datagram);
        let Some(router) = router.filter(|router| !self.frames.engines[*router].takes_no_time()) else {
            return self.copy_onward(id);
        };
        // A packet that finds no room decides nothing.
        let first = self.shared.first_engine(self.frames, router, id);
        let copies = match self.frames.engines[first].has_room(ip) {
            true => self.shared.decide_copies(datagram, self.clock.now),
            false => 0,
        };
        self.enter_engine(Step::at_router(router), id, copies)
    }

    /// Replaces a packet by its copies for the branches that begin at the node where its own branch ends.
    pub(super) fn copy_onward(&mut self, id: u32) -> Progress {
        let (whole, now) = (*self.shared.datagrams.packet(id), self.clock.now);
        if let Some(router) = self.shared.copying_router(whole.datagram)
            && whole.ttl <= 1
        {
            self.shared.datagrams.packet_mut(id).ttl = 0;
            return self.drop_or_fragment(id, Step::at_router(router), now);
        }
        let Self { frames, shared, .. } = self;
        // For a packet that has left a tunnel here, the copies were not decided before.
        shared.decide_copies(whole.datagram, now);
        let stamp = shared.ledger.snapshot_of(id);
        let copies = shared.copies_of(whole.datagram);
        let count = copies.len();
        for (datagram, route) in copies {
            let place = frames.routes[route as usize].first;
            let copy = shared.insert_copy(id, Packet { datagram, place, since: 0, ..whole }, stamp.as_ref());
            shared.datagrams[datagram].refs += 1;
            shared.parts.push((copy, Progress::Ahead(now)));
        }
        shared.datagrams[whole.datagram].arrived += 1;
        shared.record_hops_carried(frames, id);
        shared.datagrams.release_packet(id);
        shared.release_datagram(whole.datagram);
        Progress::Parts(count)
    }
}
