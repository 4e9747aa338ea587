//! Multicast copies: routers make them when their engine has finished a packet, switches when the packet arrives.

use engpass_frames::{Frames, Packet};

use crate::shared_state::SharedState;

impl SharedState {
    /// Replaces a packet by its copies, and returns them with their first steps.
    pub(super) fn copy_to_branches(&mut self, id: u32, frames: &Frames, now: u64) -> Vec<u32> {
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
            copies.push(copy);
        }
        self.datagrams[whole.datagram].arrived += 1;
        self.record_hops_carried(frames, id);
        self.datagrams.release_packet(id);
        self.release_datagram(whole.datagram);
        copies
    }
}
