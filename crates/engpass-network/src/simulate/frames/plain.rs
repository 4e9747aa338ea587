//! What hosts take that nobody watches: whole datagrams that cost nothing, nearly all of them.

use engpass_ledger::{Carried, Fate, Load};
use engpass_model::queue::Ecn;

use crate::simulate::Network;
use crate::simulate::tcp::Endpoint;

impl Network {
    /// Whether what is put on a line is neither captured nor booked later.
    #[inline(always)]
    pub(in crate::simulate) fn is_plain(&self) -> bool {
        self.fabric.is_plain()
    }

    /// Take a packet at its host that carries a whole datagram, if that costs nothing and nobody else holds the datagram.
    #[inline(always)]
    pub(super) fn take_plainly(&mut self, packet: u32, datagram: u32, ecn: Ecn) -> bool {
        if self.fabric.ledger.later.is_some() {
            return false;
        }
        match self.fabric.datagrams[datagram].to.get() {
            Some(to) => self.take_segment_plainly(packet, datagram, to as usize, ecn),
            None => self.is_whole(packet, datagram, ecn) && self.count_plainly(datagram),
        }
    }

    /// The same of one for this endpoint, where nothing is booked later.
    #[inline(always)]
    fn take_segment_plainly(&mut self, packet: u32, datagram: u32, to: usize, ecn: Ecn) -> bool {
        // What goes to none of them is a message of a router.
        let plain =
            self.is_whole(packet, datagram, ecn) && self.endpoints.get(to).is_some_and(Endpoint::is_free);
        if plain {
            self.take_whole(datagram, to);
        }
        plain
    }

    /// A datagram has arrived whole, and nobody holds it. On this lane it carries so much, of which nothing is refused; `None` if something is.
    #[inline(always)]
    pub(in crate::simulate) fn end_whole(
        &mut self,
        datagram: u32,
        lane: (u32, Option<u32>),
        load: Option<Load>,
    ) {
        // Nearly all are like the one before.
        if let Some(load) = load
            && self.fabric.ledger.settle_alike(lane, load)
        {
            self.fabric.datagrams.release(datagram);
            return;
        }
        self.end_unlike(datagram);
    }

    /// The same of one that is not like the one before.
    #[inline(never)]
    fn end_unlike(&mut self, datagram: u32) {
        let trail = self.frames.trail(self.fabric.datagrams.packet(datagram).place);
        let this = &self.fabric.datagrams[datagram];
        let (lane, load) = ((this.flow, this.to.get()), self.fabric.load_of(this));
        self.fabric.ledger.settle(lane, Fate::Delivered, load, Carried::Whole(trail), this.refused);
        self.fabric.datagrams.release(datagram);
    }

    /// The same of one for a socket.
    #[inline(never)]
    fn count_plainly(&mut self, datagram: u32) -> bool {
        let flow = self.fabric.datagrams[datagram].flow as usize;
        let socket = self.sockets.get(flow).and_then(Option::as_ref);
        if !socket.is_some_and(|socket| socket.is_free) {
            return false;
        }
        self.received(datagram);
        let this = &self.fabric.datagrams[datagram];
        let load = self.fabric.load_of(this);
        self.end_whole(datagram, (this.flow, None), Some(load));
        true
    }

    /// Whether a packet is all of its datagram, whose place it has then, and nobody else holds that. It goes with it.
    #[inline(always)]
    fn is_whole(&self, packet: u32, datagram: u32, ecn: Ecn) -> bool {
        packet == datagram && self.fabric.datagrams[datagram].is_whole(ecn)
    }
}
