//! Arrivals of packets: at switches, at routers with their processing time, and at hosts.

use engpass_frames::{Frames, Packet, Verdict};
use engpass_ledger::StateTimes;
use engpass_model::queue::Ecn;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use crate::endpoint::Endpoint;
use crate::host::{HostStep, Hosts, View};
use crate::queueing::PathId;
use crate::shared_state::SharedState;

impl Hosts {
    /// Fast path of reception: receives a packet that is an unfragmented datagram without other references, if that costs the host no CPU time. Returns `None`,
    /// without effect, for other packets.
    #[inline(always)]
    pub(crate) fn receive_fast_path(
        &mut self,
        packet: u32,
        shared: &mut SharedState,
        view: View,
    ) -> Option<HostStep> {
        let Packet { datagram, ecn, .. } = *shared.datagrams.packet(packet);
        let this = &shared.datagrams[datagram];
        if shared.ledger.deferred.is_some() || packet != datagram || !this.is_sole_unmarked(ecn) {
            return None;
        }
        match this.to.get().map(|to| to as usize) {
            // Numbers above those of endpoints are ICMP and ARP packets.
            Some(to) if self.endpoints.get(to).is_some_and(Endpoint::is_zero_cost) => {
                self.receive_and_post(datagram, to, shared, view);
                Some(HostStep::Sends(to))
            }
            None if self.receive_datagram_fast_path(datagram, shared, view) => Some(HostStep::Waits(None)),
            _ => None,
        }
    }

    /// Like [`Self::receive_fast_path`], for a datagram to a socket. Returns false, without effect, if it needs the slow path.
    #[inline(never)]
    fn receive_datagram_fast_path(&self, datagram: u32, shared: &mut SharedState, view: View) -> bool {
        let socket = self.sockets.get(shared.datagrams[datagram].flow as usize).and_then(Option::as_ref);
        if !socket.is_some_and(|socket| socket.is_zero_cost) {
            return false;
        }
        let end = shared.datagrams.packet(datagram).place;
        self.received(datagram, PathId::to(end), shared, view);
        let this = &shared.datagrams[datagram];
        let load = shared.load_of(this);
        shared.finish_datagram_fast_path(view.frames, datagram, (this.flow, None), Some(load));
        true
    }
}

impl SharedState {
    /// Handles the arrival of a packet at the end of its route. Returns true if its datagram is now complete; the caller then releases the datagram.
    pub(crate) fn completes_datagram(
        &mut self,
        packet: u32,
        datagram: u32,
        now: u64,
        frames: &Frames,
    ) -> bool {
        let Packet { ecn, place, ttl, .. } = *self.datagrams.packet(packet);
        if frames.is_branched(place) {
            self.note_end(datagram, place);
        }
        let this = &mut self.datagrams[datagram];
        this.trail = super::trail(frames, place);
        this.arrived += 1;
        let (complete, lost, tracked_per_hop) =
            (this.arrived == this.fragments, this.lost, this.tracked_per_hop);
        if ecn == Ecn::Marked && this.to.get().is_some() {
            let segment = self.datagrams.segment_mut(datagram);
            segment.ce |= segment.ect;
        } else if let Some(reports) = &mut self.reports {
            reports.arrives(datagram, ttl, ecn == Ecn::Marked);
        }
        if self.datagrams[datagram].train && !complete {
            self.train_packet_arrived(datagram, now);
            return false;
        }
        if tracked_per_hop {
            self.record_hops_carried(frames, packet);
        } else {
            debug_assert!(
                self.has_expected_length(packet),
                "a packet without a per-hop record has its expected length"
            );
        }
        self.datagrams.release_packet(packet);
        if !complete || lost {
            self.release_datagram(datagram);
        }
        complete && !lost
    }

    /// Handles the arrival of a train's packet that is not the last one. The index and token of the datagram advance to the next packet.
    fn train_packet_arrived(&mut self, datagram: u32, now: u64) {
        self.delivered(datagram, now);
        self.datagrams[datagram].index += 1;
        if let Some(reports) = &mut self.reports {
            reports.next_token(datagram);
        }
    }

    /// Creates the copies of a packet that has come to a node. At the end of a tunnel they are made after decapsulation.
    pub(crate) fn copy_on_arrival(&mut self, id: u32, frames: &Frames) -> Vec<u32> {
        let place = self.datagrams.packet(id).place;
        let is_inside = matches!(frames.steps[place as usize].verdict, Verdict::Unwrap(_));
        if is_inside { Vec::new() } else { self.copy(id, frames) }
    }

    /// Creates the multicast copies of a packet at the node that it has reached, and returns them.
    #[cold]
    pub(super) fn copy(&mut self, id: u32, frames: &Frames) -> Vec<u32> {
        let whole = *self.datagrams.packet(id);
        let hop = frames.lines_before(whole.place);
        let stamp = self.ledger.snapshot_of(id);
        let mut copies = Vec::new();
        for (datagram, route) in self.copies.take_at(whole.datagram, hop.into()) {
            let place = frames.first_place(route, hop);
            let sender = self.reports.as_ref().map_or(whole.sender, |reports| reports.head(datagram).flow);
            let copy = Packet { datagram, sender, place, since: hop, ..whole };
            copies.push(self.insert_copy(id, copy, stamp.as_ref()));
        }
        copies
    }

    /// Adds a copy of packet `id`, with the packet's sender snapshot.
    pub(super) fn insert_copy(&mut self, id: u32, copy: Packet, stamp: Option<&StateTimes>) -> u32 {
        let copy = self.datagrams.insert_packet(copy);
        self.ledger.set_snapshot(copy, stamp);
        if let Some(trace) = &mut self.trace {
            trace.copied(id, copy);
        }
        copy
    }

    /// Returns true if a packet that has arrived is as long as the one that the sender sent at its position.
    fn has_expected_length(&self, packet: u32) -> bool {
        let Packet { datagram, ip, .. } = *self.datagrams.packet(packet);
        let this = &self.datagrams[datagram];
        let (direction, bytes) = ((this.flow, this.to.get()), this.header + this.bytes);
        let place = u64::from(this.arrived) - 1;
        self.ledger.fragments_of_sender(direction, bytes.into()).payload(place) + IP_HEADER_BYTES
            == u64::from(ip)
    }
}
