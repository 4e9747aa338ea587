//! Tunnels: packets that enter and leave them, and fragments of outer packets.

use engpass_frames::{Frames, Packet, TunnelArrival};

use super::hop::Links;
use crate::clock::NewEvent;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::progress::Progress;

/// Returns the event of the earliest reassembly timeout at the end of a tunnel, if none is pending.
fn next_timeout(tunnel: u32, frames: &mut Frames) -> Option<NewEvent> {
    let (until, end) = frames.tunnels.next_timeout(tunnel)?;
    Some((until, end, Event::ReassemblyTimeout(tunnel)))
}

impl Links<'_> {
    /// Encapsulates a packet at the entry of a tunnel.
    pub(super) fn enter_tunnel(&mut self, id: u32, place: u32, direction: u32) -> Progress {
        if !self.passes_router(id, place) {
            return self.stop(id, place, self.clock.now);
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

    /// Takes a fragment at the end of a tunnel into reassembly. Returns the outer packet if it is now complete, and otherwise the progress of the fragment.
    fn gather(&mut self, id: u32, place: u32) -> Result<u32, Progress> {
        let Self { frames, shared, clock } = self;
        let packet = *shared.datagrams.packet(id);
        let gathered = match frames.tunnels.gather(id, &packet, place, clock.now) {
            Ok(gathered) => gathered,
            Err(end) => {
                shared.drop_packet(frames, id, DropLocation::Memory(end), clock.now);
                return Err(Progress::Rests(None));
            }
        };
        let datagram = packet.datagram;
        shared.datagrams[datagram].paths_differ |= gathered.paths_differ;
        let head = shared.trace.as_ref().and_then(|trace| Some((trace.head_of(id)?, trace.hidden_of(id))));
        shared.record_hops_carried(frames, id);
        shared.datagrams.release_packet(id);
        if !gathered.is_whole {
            return Err(Progress::Rests(next_timeout(gathered.tunnel, frames)));
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

    /// Decapsulates a packet at the end of a tunnel. A fragment of an outer packet is reassembled first. Copies that are made here go on behind the
    /// packet.
    pub(super) fn leave_tunnel(&mut self, id: u32, place: u32) -> Progress {
        let whole = match self.frames.tunnels.arrival(id, place) {
            TunnelArrival::Whole => id,
            TunnelArrival::Fragment => match self.gather(id, place) {
                Ok(whole) => whole,
                Err(progress) => return progress,
            },
            TunnelArrival::Late => {
                let end = self.frames.tunnels.end_at(place);
                self.shared.drop_packet(self.frames, id, DropLocation::Timeout(end), self.clock.now);
                return Progress::Rests(None);
            }
        };
        let Self { frames, shared, clock } = self;
        if !frames.tunnels.leave(whole, shared.datagrams.packet_mut(whole), place) {
            let end = frames.tunnels.end_at(place);
            shared.drop_packet(frames, whole, DropLocation::OutOfSequence(end), clock.now);
            return Progress::Rests(None);
        }
        if let Some(trace) = &mut shared.trace {
            trace.leaves_tunnel(whole);
        }
        let onward = Progress::Ahead(clock.now);
        let copies = match shared.copies.is_empty() || !frames.tunnels.at(place + 1).is_empty() {
            true => Vec::new(),
            false => shared.copy(whole, frames),
        };
        if whole == id && copies.is_empty() {
            return onward;
        }
        let count = 1 + copies.len();
        shared.parts.push((whole, onward));
        for copy in copies {
            let progress = self.arrive(copy);
            self.shared.parts.push((copy, progress));
        }
        Progress::Parts(count)
    }

    /// Drops the outer packets of a tunnel whose reassembly has timed out. Returns the event of the next timeout.
    pub(super) fn on_reassembly_timeout(&mut self, tunnel: u32) -> Option<NewEvent> {
        let Self { frames, shared, clock } = self;
        let now = clock.now;
        frames.tunnels.on_timeout(tunnel);
        while let Some((outer, end)) = frames.tunnels.pop_timed_out(tunnel, now) {
            shared.outer_snapshots.remove(&outer.number);
            let (datagram, place) = (outer.whole.datagram, DropLocation::Timeout(end));
            shared.lose_datagram(datagram, place, now);
            if shared.window.holds(now) {
                let flow = shared.datagrams[datagram].flow as usize;
                shared.flows[flow].losses(place).cells += u64::from(outer.fragments);
            }
            for _ in 0..outer.fragments {
                shared.release_datagram(datagram);
            }
        }
        next_timeout(tunnel, frames)
    }
}
