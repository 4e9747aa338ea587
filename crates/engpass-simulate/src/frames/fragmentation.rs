//! Packets that routers cannot forward unchanged: too large ones are fragmented (RFC 791 section 3.2) or dropped, those with an expired TTL dropped.

use engpass_frames::{Step, Stop};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use crate::Network;
use crate::flow_counters::DropLocation;

impl Network {
    /// Decrements the TTL of a packet at a router in front of `step`. Returns true if the packet continues; a too large one, or one whose TTL expires, is
    /// handled here.
    pub(super) fn passes_router(&mut self, id: u32, step: Step, at: u64) -> bool {
        let passes = self.shared.datagrams.packet_mut(id).passes_router(&step);
        if !passes {
            self.drop_or_fragment(id, step, at);
        }
        passes
    }

    /// Drops a packet whose TTL has expired. Fragments a packet that is too large, or drops it if it must not be fragmented.
    #[cold]
    pub(super) fn drop_or_fragment(&mut self, id: u32, step: Step, at: u64) {
        let packet = self.shared.datagrams.packet(id);
        let node = self.frames.engines[step.router as usize].node;
        match self.frames.stop(packet, step, || self.shared.has_df_bit(packet.datagram, &self.frames)) {
            Stop::Expired => self.drop_at_router(id, step, DropLocation::Ttl(node), at),
            Stop::TooBig => self.drop_at_router(id, step, DropLocation::TooBig(node), at),
            Stop::Fragment => self.fragment(id, step, at),
            Stop::FragmentOuter => {
                let place = packet.place;
                for fragment in self.shared.fragment_outer(id, step, &mut self.frames) {
                    self.forward(fragment, place, at, false);
                }
            }
        }
    }

    /// Drops a packet at a router in front of `step`, and sends an ICMP message about it if that is due.
    pub(super) fn drop_at_router(&mut self, id: u32, step: Step, place: DropLocation, at: u64) {
        if self.try_defer_drop(id, place, at) {
            return;
        }
        let message = self.shared.message_about(id, step, place, &self.frames);
        self.shared.drop_packet(&self.frames, id, place, at);
        if let Some(message) = message {
            let sender = self.number_of_control(message.number);
            let (line, event) = self.shared.begin_message(message, sender, at, &mut self.frames);
            self.clock.events.push(at, line, event);
        }
    }

    /// Fragments a packet for the MTU of `step`, and forwards the fragments.
    pub(super) fn fragment(&mut self, id: u32, step: Step, at: u64) {
        let whole = *self.shared.datagrams.packet(id);
        let cut = Fragments::of(u64::from(whole.ip) - IP_HEADER_BYTES, step.mtu.into());
        // The first fragment may reuse the packet's index.
        let head = self.shared.trace.as_ref().and_then(|trace| trace.head_of(id));
        // The first fragment may arrive, and use up the sender snapshot, before the second one is created.
        let stamp = self.shared.ledger.snapshot_of(id);
        self.shared.track_per_hop(whole.datagram);
        self.shared.record_hops_carried(&self.frames, id);
        self.shared.datagrams.release_packet(id);
        let more = cut.count - 1;
        let datagram = &mut self.shared.datagrams[whole.datagram];
        datagram.fragments += more as u16;
        datagram.refs += more as u32;
        let since = self.frames.lines_before(whole.place);
        for index in 0..cut.count {
            let packet = whole.fragment(&cut, index, whole.offset, since);
            let ip = packet.ip;
            let fragment = self.shared.datagrams.insert_packet(packet);
            self.shared.ledger.set_snapshot(fragment, stamp.as_ref());
            if let (Some(trace), Some(head)) = (&mut self.shared.trace, head) {
                let offset = (index * cut.full) as u32;
                trace.fragment(head, fragment, (ip, offset), index + 1 == cut.count);
            }
            self.forward(fragment, whole.place, at, false);
        }
    }
}
