//! The way of packets that nobody watches, over lines that know on arrival what becomes of them: nearly all of them.

use engpass_ledger::{Carried, Fate, Load};
use engpass_model::queue::{Cause, Ecn};

use super::port::Passed;
use super::{Frames, Packet, Tells};
use crate::simulate::Network;
use crate::simulate::event::Event;
use crate::simulate::fabric::Fabric;
use crate::simulate::tcp::Endpoint;

impl Network {
    /// Whether what is put on a line is neither captured nor booked later.
    #[inline(always)]
    pub(in crate::simulate) fn is_plain(&self) -> bool {
        self.fabric.is_plain()
    }

    /// A packet comes to the node before the port of the step at `place`, and goes on to where something else may come between: to
    /// its host at most, if it `arrives` there ahead of the clock.
    #[inline(never)]
    pub(super) fn go(&mut self, id: u32, place: u32, at: u64, arrives: bool) {
        let step = self.frames.steps[place as usize];
        if step.is_line() {
            self.go_at_once(id, place, at, arrives);
        } else if step.is_wrap() {
            self.enter_tunnel(id, place);
        } else if step.is_hold() {
            self.meets_hold(id, place);
        } else {
            self.enter_circuit(id, place, at);
        }
    }

    /// The same, for where nearly all come by.
    #[inline(always)]
    pub(super) fn go_at_once(&mut self, id: u32, mut place: u32, mut at: u64, arrives: bool) {
        if !self.is_plain() {
            self.go_watched(id, place, at, arrives);
            return;
        }
        let Self { frames: Frames { ports, steps, .. }, fabric, events, endpoints, .. } = self;
        let Fabric { datagrams, ledger, window, .. } = fabric;
        let (packet, datagram) = datagrams.packet_of(id);
        loop {
            let step = &steps[place as usize];
            let line = &mut ports[step.port as usize];
            let mut host = None;
            let last = match step.tells {
                Tells::Nobody => 0,
                Tells::Port => self.end,
                // Nothing happens at the host until then but what this line brings.
                Tells::Host if arrives && line.is_clear() => match datagram.to.get() {
                    Some(to) => {
                        let this = &mut endpoints[to as usize];
                        let until = this.foreseen().min(self.until);
                        host = Some((this, to as usize));
                        until
                    }
                    // A socket only counts.
                    None => self.until,
                },
                Tells::Host => 0,
            };
            // A router stops what has been through too many, and cuts what is too large.
            let stops = step.is_routed() && (packet.ttl <= 1 || packet.ip > step.mtu);
            let passed =
                if stops { Passed::Odd } else { line.offer::<false>(at, packet.ip, id, last, window) };
            let then = match passed {
                Passed::On(then) => then,
                Passed::Lost => {
                    packet.place = place;
                    let port = step.port;
                    self.refuse(port, id, Cause::Full, at);
                    return;
                }
                Passed::Odd => {
                    packet.place = place;
                    self.go_watched(id, place, at, arrives);
                    return;
                }
            };
            packet.ttl -= u8::from(step.is_routed());
            if line.watched {
                ledger.shares_line(step.slot, datagram.whose(), id, packet.ip, line);
            }
            if then <= last && step.tells == Tells::Port {
                (place, at) = (place + 1, then);
                continue;
            }
            packet.place = place + 1;
            if then > last {
                if line.awaits(then) {
                    events.push(then, line.port as usize, Event::Arrive(step.port));
                }
                return;
            }
            let Packet { datagram: whole, ecn, .. } = *packet;
            let now = std::mem::replace(&mut self.now, then);
            let taken = match host {
                Some((this, to)) => {
                    this.ahead = then;
                    let plain = whole == id && datagram.is_whole(ecn) && this.is_free();
                    if plain {
                        self.take_whole(id, to);
                    }
                    plain
                }
                None => self.take_plainly(id, whole, ecn),
            };
            if !taken {
                self.take_packet(id);
            }
            self.now = now;
            return;
        }
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
