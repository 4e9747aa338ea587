//! Routers that stop packets: those whose TTL expires, and those that are too large and are fragmented or dropped.

use engpass_frames::{OuterCut, Step, Stop};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::hop::Links;
use crate::flow_counters::DropLocation;
use crate::progress::Progress;

impl Links<'_> {
    /// Like [`Self::drop_or_fragment`], for the router in front of step `place`.
    #[cold]
    pub(super) fn stop(&mut self, id: u32, place: u32, at: u64) -> Progress {
        self.drop_or_fragment(id, self.frames.steps[place as usize], at)
    }

    /// Drops a packet whose TTL has expired. Fragments a packet that is too large, or drops it if it must not be fragmented.
    #[cold]
    pub(super) fn drop_or_fragment(&mut self, id: u32, step: Step, at: u64) -> Progress {
        let packet = self.shared.datagrams.packet(id);
        let node = self.frames.engines[step.router as usize].node;
        match self.frames.stop(packet, step, || self.shared.has_df_bit(packet.datagram, self.frames)) {
            Stop::Expired => Progress::Rests(self.drop_at_router(id, step, DropLocation::Ttl(node), at)),
            Stop::TooBig => Progress::Rests(self.drop_at_router(id, step, DropLocation::TooBig(node), at)),
            Stop::Fragment => self.fragment(id, step, at, false),
            Stop::FragmentOuter => self.fragment(id, step, at, true),
        }
    }

    /// Fragments a packet, or with `is_outer` the outer packet of a tunnel, for the MTU of `step`. The fragments go on at `at`.
    fn fragment(&mut self, id: u32, step: Step, at: u64, is_outer: bool) -> Progress {
        let Self { frames, shared, .. } = self;
        let whole = *shared.datagrams.packet(id);
        let cut = Fragments::of(u64::from(whole.ip) - IP_HEADER_BYTES, step.mtu.into());
        // The first fragment may reuse the packet's index.
        let head = shared.trace.as_ref().and_then(|trace| {
            let hidden = is_outer.then(|| trace.hidden_of(id));
            Some((trace.head_of(id)?, hidden))
        });
        let stamp = shared.ledger.snapshot_of(id);
        shared.track_per_hop(whole.datagram);
        shared.record_hops_carried(frames, id);
        shared.datagrams.release_packet(id);
        let datagram = &mut shared.datagrams[whole.datagram];
        datagram.refs += (cut.count - 1) as u32;
        let outer = is_outer.then(|| frames.tunnels.begin_cut(id, whole));
        match outer {
            Some(OuterCut { number, is_new: true, .. }) => {
                shared.outer_snapshots.extend(stamp.map(|stamp| (number, stamp)));
            }
            Some(_) => {}
            None => datagram.fragments += (cut.count - 1) as u16,
        }
        let begin = outer.as_ref().map_or(whole.offset, |outer| outer.begin);
        let since = frames.lines_before(whole.place);
        for index in 0..cut.count {
            let packet = whole.fragment(&cut, index, begin, since);
            let ip = packet.ip;
            let fragment = shared.datagrams.insert_packet(packet);
            if let Some(outer) = &outer {
                frames.tunnels.add_fragment(fragment, outer);
            }
            shared.ledger.set_snapshot(fragment, stamp.as_ref());
            if let (Some(trace), Some((head, hidden))) = (&mut shared.trace, &head) {
                trace.fragment(*head, fragment, (ip, (index * cut.full) as u32), index + 1 == cut.count);
                if let Some(hidden) = hidden {
                    trace.hides(fragment, hidden.clone());
                }
            }
            shared.parts.push((fragment, Progress::Ahead(at)));
        }
        if let Some(outer) = outer {
            let fragments = &shared.parts[shared.parts.len() - cut.count as usize..];
            let fragments: Vec<u32> = fragments.iter().map(|(id, _)| *id).collect();
            frames.tunnels.replace_by_fragments(id, &outer, &fragments);
            let datagrams = &shared.datagrams;
            for lost in frames.tunnels.forget_lost_cuts(|packet| datagrams.has_packet(packet)) {
                shared.outer_snapshots.remove(&lost);
            }
        }
        Progress::Parts(cut.count as usize)
    }
}
