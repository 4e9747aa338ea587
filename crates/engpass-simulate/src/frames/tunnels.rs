//! Tunnels: packets that enter and leave them, and fragments of outer packets.

use engpass_frames::{Frames, OuterCut, Packet, Step};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use crate::clock::Clock;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::shared_state::SharedState;

/// Schedules an event for the earliest reassembly timeout at the end of a tunnel, if none is pending.
pub(crate) fn await_timeout(tunnel: u32, frames: &mut Frames, clock: &mut Clock) {
    if let Some((until, end)) = frames.tunnels.next_timeout(tunnel) {
        clock.events.push(until, end, Event::ReassemblyTimeout(tunnel));
    }
}

impl SharedState {
    /// Fragments the outer packet of a tunnel for the MTU of the next hop. Returns the fragments.
    pub(super) fn fragment_outer(&mut self, id: u32, step: Step, frames: &mut Frames) -> Vec<u32> {
        let whole = *self.datagrams.packet(id);
        let cut = Fragments::of(u64::from(whole.ip) - IP_HEADER_BYTES, step.mtu.into());
        let stamp = self.ledger.snapshot_of(id);
        // The first fragment may reuse the packet's index.
        let head = self.trace.as_ref().and_then(|trace| Some((trace.head_of(id)?, trace.hidden_of(id))));
        self.track_per_hop(whole.datagram);
        self.record_hops_carried(frames, id);
        self.datagrams.release_packet(id);
        self.datagrams[whole.datagram].refs += (cut.count - 1) as u32;
        let outer = frames.tunnels.begin_cut(id, whole);
        let OuterCut { number, is_new, begin, .. } = outer;
        if let Some(stamp) = stamp.filter(|_| is_new) {
            self.outer_snapshots.insert(number, stamp);
        }
        let since = frames.lines_before(whole.place);
        let mut fragments = Vec::new();
        for index in 0..cut.count {
            let packet = whole.fragment(&cut, index, begin, since);
            let ip = packet.ip;
            let fragment = self.datagrams.insert_packet(packet);
            frames.tunnels.add_fragment(fragment, &outer);
            self.ledger.set_snapshot(fragment, stamp.as_ref());
            if let (Some(trace), Some((head, hidden))) = (&mut self.trace, &head) {
                trace.fragment(*head, fragment, (ip, (index * cut.full) as u32), index + 1 == cut.count);
                trace.hides(fragment, hidden.clone());
            }
            fragments.push(fragment);
        }
        frames.tunnels.replace_by_fragments(id, &outer, &fragments);
        let datagrams = &self.datagrams;
        for lost in frames.tunnels.forget_lost_cuts(|packet| datagrams.has_packet(packet)) {
            self.outer_snapshots.remove(&lost);
        }
        fragments
    }

    /// Takes a fragment at the end of a tunnel into reassembly. Returns the outer packet if it is now complete, and otherwise the tunnel
    /// if its timeout is to be scheduled.
    pub(super) fn gather(
        &mut self,
        id: u32,
        place: u32,
        now: u64,
        frames: &mut Frames,
    ) -> Result<u32, Option<u32>> {
        let packet = *self.datagrams.packet(id);
        let gathered = match frames.tunnels.gather(id, &packet, place, now) {
            Ok(gathered) => gathered,
            Err(end) => {
                self.drop_packet(frames, id, DropLocation::Memory(end), now);
                return Err(None);
            }
        };
        let datagram = packet.datagram;
        self.datagrams[datagram].paths_differ |= gathered.paths_differ;
        let head = self.trace.as_ref().and_then(|trace| Some((trace.head_of(id)?, trace.hidden_of(id))));
        self.record_hops_carried(frames, id);
        self.datagrams.release_packet(id);
        if !gathered.is_whole {
            return Err(Some(gathered.tunnel));
        }
        let outer = frames.tunnels.reassemble(gathered);
        self.datagrams[datagram].refs -= outer.fragments - 1;
        let since = frames.lines_before(place);
        let whole = self.datagrams.insert_packet(Packet { place, since, ..outer.whole });
        frames.tunnels.restore(whole, &outer);
        let stamp = self.outer_snapshots.remove(&outer.number);
        self.ledger.set_snapshot(whole, stamp.as_ref());
        if let (Some(trace), Some((head, hidden))) = (&mut self.trace, head) {
            trace.fragment(head, whole, (outer.whole.ip, 0), true);
            trace.hides(whole, hidden);
        }
        Ok(whole)
    }

    /// Drops the outer packets of a tunnel whose reassembly has timed out.
    pub(crate) fn on_reassembly_timeout(&mut self, tunnel: u32, now: u64, frames: &mut Frames) {
        frames.tunnels.on_timeout(tunnel);
        while let Some((outer, end)) = frames.tunnels.pop_timed_out(tunnel, now) {
            self.outer_snapshots.remove(&outer.number);
            let (datagram, place) = (outer.whole.datagram, DropLocation::Timeout(end));
            self.lose_datagram(datagram, place, now);
            if self.window.holds(now) {
                let flow = self.datagrams[datagram].flow as usize;
                self.flows[flow].losses(place).cells += u64::from(outer.fragments);
            }
            for _ in 0..outer.fragments {
                self.release_datagram(datagram);
            }
        }
    }
}
