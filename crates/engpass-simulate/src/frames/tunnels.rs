//! Tunnels: packets that enter and leave them, and fragments of outer packets.

use engpass_frames::{Frames, OuterCut, Packet, Step, TunnelArrival};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::hop::{Links, Progress};
use crate::clock::NewEvent;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::shared_state::SharedState;

/// Returns the event of the earliest reassembly timeout at the end of a tunnel, if none is pending.
pub(crate) fn next_timeout(tunnel: u32, frames: &mut Frames) -> Option<NewEvent> {
    let (until, end) = frames.tunnels.next_timeout(tunnel)?;
    Some((until, end, Event::ReassemblyTimeout(tunnel)))
}

impl Links<'_> {
    /// Encapsulates a packet at the entry of a tunnel.
    pub(super) fn enter_tunnel(&mut self, id: u32, place: u32, direction: u32) -> Progress {
        if !self.passes_router(id, place) {
            return Progress::Stopped(place, self.clock.now);
        }
        let Self { frames, shared, clock } = self;
        if !shared.may_enter_tunnel(id, direction, frames, clock.now) {
            return Progress::Rests(None);
        }
        let packet = shared.datagrams.packet_mut(id);
        let inner = (packet.ttl, packet.ecn);
        let (sequence, ttl) = frames.tunnels.enter(id, packet, direction);
        if let Some(trace) = &mut shared.trace {
            let router = frames.steps[place as usize].router as usize;
            trace.enters(id, (direction, sequence), router, (packet.ip, ttl), inner);
        }
        Progress::Ahead(clock.now)
    }

    /// Takes a fragment at the end of a tunnel into reassembly. Returns the outer packet if it is now complete, and otherwise the tunnel
    /// if its timeout is to be scheduled.
    fn gather(&mut self, id: u32, place: u32) -> Result<u32, Option<u32>> {
        let Self { frames, shared, clock } = self;
        let packet = *shared.datagrams.packet(id);
        let gathered = match frames.tunnels.gather(id, &packet, place, clock.now) {
            Ok(gathered) => gathered,
            Err(end) => {
                shared.drop_packet(frames, id, DropLocation::Memory(end), clock.now);
                return Err(None);
            }
        };
        let datagram = packet.datagram;
        shared.datagrams[datagram].paths_differ |= gathered.paths_differ;
        let head = shared.trace.as_ref().and_then(|trace| Some((trace.head_of(id)?, trace.hidden_of(id))));
        shared.record_hops_carried(frames, id);
        shared.datagrams.release_packet(id);
        if !gathered.is_whole {
            return Err(Some(gathered.tunnel));
        }
        let outer = frames.tunnels.reassemble(gathered);
        shared.datagrams[datagram].refs -= outer.fragments - 1;
        let since = frames.lines_before(place);
        let whole = shared.datagrams.insert_packet(Packet { place, since, ..outer.whole });
        frames.tunnels.restore(whole, &outer);
        let stamp = shared.outer_snapshots.remove(&outer.number);
        shared.ledger.set_snapshot(whole, stamp.as_ref());
        if let (Some(trace), Some((head, hidden))) = (&mut shared.trace, head) {
            trace.fragment(head, whole, (outer.whole.ip, 0), true);
            trace.hides(whole, hidden);
        }
        Ok(whole)
    }

    /// Decapsulates a packet at the end of a tunnel. A fragment of an outer packet is reassembled first. Returns the packet that goes on, if there is one, and
    /// the event of a timeout.
    pub(super) fn leave_tunnel(&mut self, id: u32, place: u32) -> (Option<u32>, Option<NewEvent>) {
        let id = match self.frames.tunnels.arrival(id, place) {
            TunnelArrival::Whole => id,
            TunnelArrival::Fragment => match self.gather(id, place) {
                Ok(whole) => whole,
                Err(tunnel) => return (None, tunnel.and_then(|tunnel| next_timeout(tunnel, self.frames))),
            },
            TunnelArrival::Late => {
                let end = self.frames.tunnels.end_at(place);
                self.shared.drop_packet(self.frames, id, DropLocation::Timeout(end), self.clock.now);
                return (None, None);
            }
        };
        let Self { frames, shared, clock } = self;
        if !frames.tunnels.leave(id, shared.datagrams.packet_mut(id), place) {
            let end = frames.tunnels.end_at(place);
            shared.drop_packet(frames, id, DropLocation::OutOfSequence(end), clock.now);
            return (None, None);
        }
        if let Some(trace) = &mut shared.trace {
            trace.leaves_tunnel(id);
        }
        (Some(id), None)
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
