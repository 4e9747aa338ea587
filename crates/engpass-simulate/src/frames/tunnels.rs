//! Tunnels: packets that enter and leave them, and fragments of outer packets.

use engpass_frames::{OuterCut, Packet, Step, TunnelArrival};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;

impl Network {
    /// Encapsulates a packet at the entry of a tunnel, and forwards it.
    pub(super) fn enter_tunnel(&mut self, id: u32, place: u32, direction: u32) {
        let step = self.frames.steps[place as usize];
        self.shared.datagrams.packet_mut(id).place = place;
        if !self.passes_router(id, step, self.clock.now) || !self.may_enter_tunnel(id, direction) {
            return;
        }
        let packet = self.shared.datagrams.packet_mut(id);
        let inner = (packet.ttl, packet.ecn);
        let (sequence, ttl) = self.frames.tunnels.enter(id, packet, direction);
        if let Some(trace) = &mut self.shared.trace {
            trace.enters(id, (direction, sequence), step.router as usize, (packet.ip, ttl), inner);
        }
        self.leave_engine(id, place + 1);
    }

    /// Decapsulates a packet at the end of a tunnel, and forwards it. A fragment of an outer packet is reassembled first.
    pub(super) fn leave_tunnel(&mut self, id: u32, place: u32) {
        let whole = match self.frames.tunnels.arrival(id, place) {
            TunnelArrival::Whole => Some(id),
            TunnelArrival::Fragment => self.gather(id, place),
            TunnelArrival::Late => {
                let end = self.frames.tunnels.end_at(place);
                self.shared.drop_packet(&self.frames, id, DropLocation::Timeout(end), self.clock.now);
                None
            }
        };
        let Some(id) = whole else { return };
        if !self.frames.tunnels.leave(id, self.shared.datagrams.packet_mut(id), place) {
            let end = self.frames.tunnels.end_at(place);
            self.shared.drop_packet(&self.frames, id, DropLocation::OutOfSequence(end), self.clock.now);
            return;
        }
        if let Some(trace) = &mut self.shared.trace {
            trace.leaves_tunnel(id);
        }
        let parts = !self.shared.copies.is_empty() && self.frames.tunnels.at(place + 1).is_empty();
        let copies = if parts { self.copy(id) } else { Vec::new() };
        self.leave_engine(id, place + 1);
        copies.into_iter().for_each(|copy| self.receive_or_forward(copy));
    }

    /// Fragments the outer packet of a tunnel for the MTU of the next hop.
    pub(super) fn fragment_outer(&mut self, id: u32, step: Step, at: u64) {
        let whole = *self.shared.datagrams.packet(id);
        let cut = Fragments::of(u64::from(whole.ip) - IP_HEADER_BYTES, step.mtu.into());
        let stamp = self.shared.ledger.snapshot_of(id);
        // The first fragment may reuse the packet's index.
        let head =
            self.shared.trace.as_ref().and_then(|trace| Some((trace.head_of(id)?, trace.hidden_of(id))));
        self.shared.track_per_hop(whole.datagram);
        self.shared.record_hops_carried(&self.frames, id);
        self.shared.datagrams.release_packet(id);
        self.shared.datagrams[whole.datagram].refs += (cut.count - 1) as u32;
        let outer = self.frames.tunnels.begin_cut(id, whole);
        let OuterCut { number, is_new, begin, .. } = outer;
        if let Some(stamp) = stamp.filter(|_| is_new) {
            self.shared.outer_snapshots.insert(number, stamp);
        }
        let since = self.frames.lines_before(whole.place);
        let mut fragments = Vec::new();
        for index in 0..cut.count {
            let packet = whole.fragment(&cut, index, begin, since);
            let ip = packet.ip;
            let fragment = self.shared.datagrams.insert_packet(packet);
            self.frames.tunnels.add_fragment(fragment, &outer);
            self.shared.ledger.set_snapshot(fragment, stamp.as_ref());
            if let (Some(trace), Some((head, hidden))) = (&mut self.shared.trace, &head) {
                trace.fragment(*head, fragment, (ip, (index * cut.full) as u32), index + 1 == cut.count);
                trace.hides(fragment, hidden.clone());
            }
            fragments.push(fragment);
        }
        self.frames.tunnels.replace_by_fragments(id, &outer, &fragments);
        let datagrams = &self.shared.datagrams;
        for lost in self.frames.tunnels.forget_lost_cuts(|packet| datagrams.has_packet(packet)) {
            self.shared.outer_snapshots.remove(&lost);
        }
        for fragment in fragments {
            self.forward(fragment, whole.place, at, false);
        }
    }

    /// Takes a fragment at the end of a tunnel into reassembly. Returns the outer packet if it is now complete.
    fn gather(&mut self, id: u32, place: u32) -> Option<u32> {
        let packet = *self.shared.datagrams.packet(id);
        let gathered = match self.frames.tunnels.gather(id, &packet, place, self.clock.now) {
            Ok(gathered) => gathered,
            Err(end) => {
                self.shared.drop_packet(&self.frames, id, DropLocation::Memory(end), self.clock.now);
                return None;
            }
        };
        let datagram = packet.datagram;
        self.shared.datagrams[datagram].paths_differ |= gathered.paths_differ;
        let head =
            self.shared.trace.as_ref().and_then(|trace| Some((trace.head_of(id)?, trace.hidden_of(id))));
        self.shared.record_hops_carried(&self.frames, id);
        self.shared.datagrams.release_packet(id);
        if !gathered.is_whole {
            self.await_timeout(gathered.tunnel);
            return None;
        }
        let outer = self.frames.tunnels.reassemble(gathered);
        self.shared.datagrams[datagram].refs -= outer.fragments - 1;
        let since = self.frames.lines_before(place);
        let whole = self.shared.datagrams.insert_packet(Packet { place, since, ..outer.whole });
        self.frames.tunnels.restore(whole, &outer);
        let stamp = self.shared.outer_snapshots.remove(&outer.number);
        self.shared.ledger.set_snapshot(whole, stamp.as_ref());
        if let (Some(trace), Some((head, hidden))) = (&mut self.shared.trace, head) {
            trace.fragment(head, whole, (outer.whole.ip, 0), true);
            trace.hides(whole, hidden);
        }
        Some(whole)
    }

    /// Schedules an event for the earliest reassembly timeout at the end of a tunnel, if none is pending.
    fn await_timeout(&mut self, tunnel: u32) {
        if let Some((until, end)) = self.frames.tunnels.next_timeout(tunnel) {
            self.clock.events.push(until, end, Event::ReassemblyTimeout(tunnel));
        }
    }

    /// Drops the outer packets of a tunnel whose reassembly has timed out.
    pub(crate) fn on_reassembly_timeout(&mut self, tunnel: u32) {
        self.frames.tunnels.on_timeout(tunnel);
        while let Some((outer, end)) = self.frames.tunnels.pop_timed_out(tunnel, self.clock.now) {
            self.shared.outer_snapshots.remove(&outer.number);
            let (datagram, place) = (outer.whole.datagram, DropLocation::Timeout(end));
            self.shared.lose_datagram(datagram, place, self.clock.now);
            if self.shared.window.holds(self.clock.now) {
                let flow = self.shared.datagrams[datagram].flow as usize;
                self.shared.flows[flow].losses(place).cells += u64::from(outer.fragments);
            }
            for _ in 0..outer.fragments {
                self.shared.release_datagram(datagram);
            }
        }
        self.await_timeout(tunnel);
    }
}
