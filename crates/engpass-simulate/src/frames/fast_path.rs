//! Fast path of reception: unfragmented datagrams that cost the host no CPU time, as nearly all are.

use engpass_model::queue::Ecn;

use crate::Network;
use crate::endpoint::Endpoint;
use crate::queueing::PathId;

impl Network {
    /// Returns true if nothing records the run and postings are not deferred.
    #[inline(always)]
    pub(crate) fn fast_path_allowed(&self) -> bool {
        self.shared.fast_path_allowed()
    }

    /// Fast path of reception: receives a packet that is an unfragmented datagram without other references, if that costs the host no CPU time. Returns false,
    /// without effect, for all other packets.
    #[inline(always)]
    pub(super) fn receive_fast_path(&mut self, packet: u32, datagram: u32, ecn: Ecn) -> bool {
        if self.shared.ledger.deferred.is_some() {
            return false;
        }
        match self.shared.datagrams[datagram].to.get() {
            Some(to) => self.receive_segment_fast_path(packet, datagram, to as usize, ecn),
            None => self.is_sole_unmarked(packet, datagram, ecn) && self.receive_datagram_fast_path(datagram),
        }
    }

    /// Like [`Self::receive_fast_path`], for a packet to endpoint `to`; postings must not be deferred.
    #[inline(always)]
    fn receive_segment_fast_path(&mut self, packet: u32, datagram: u32, to: usize, ecn: Ecn) -> bool {
        // Numbers above those of endpoints are ICMP and ARP packets.
        let fast = self.is_sole_unmarked(packet, datagram, ecn)
            && self.hosts.endpoints.get(to).is_some_and(Endpoint::is_zero_cost);
        if fast {
            self.receive_and_post(datagram, to);
        }
        fast
    }

    /// Like [`Self::receive_fast_path`], for an unfragmented datagram to a socket.
    #[inline(never)]
    fn receive_datagram_fast_path(&mut self, datagram: u32) -> bool {
        let flow = self.shared.datagrams[datagram].flow as usize;
        let socket = self.hosts.sockets.get(flow).and_then(Option::as_ref);
        if !socket.is_some_and(|socket| socket.is_zero_cost) {
            return false;
        }
        let end = self.shared.datagrams.packet(datagram).place;
        self.received(datagram, PathId::to(end));
        let this = &self.shared.datagrams[datagram];
        let load = self.shared.load_of(this);
        self.shared.finish_datagram_fast_path(&self.frames, datagram, (this.flow, None), Some(load));
        true
    }

    /// Returns true if a packet is an unfragmented datagram, stored at the same index, without other references and without a congestion mark.
    #[inline(always)]
    fn is_sole_unmarked(&self, packet: u32, datagram: u32, ecn: Ecn) -> bool {
        packet == datagram && self.shared.datagrams[datagram].is_sole_unmarked(ecn)
    }
}
