//! Routers (docs/model.md, "Ethernet switches" and "Routers").
//!
//! The state is in `../router.rs`.

use engpass_testbed::topology::NodeId;

use super::Engine;
use crate::acted::Mechanism;
use crate::cell::LineId;
use crate::event_queue::{Event, Group};
use crate::fragments::fragments;
use crate::outcome::Place;
use crate::packet::{Out, Packet};

impl Engine<'_> {
    /// Handles the arrival of a packet at a router over a line.
    pub(crate) fn arrives_at_router(&mut self, now: u64, router: usize, packet: usize, line: LineId) {
        self.packets[packet].came_by = Some(line);
        self.comes_to_engine(now, router, packet);
    }

    /// Adds a packet to the queue of a router, which processes one packet after the other.
    pub(crate) fn comes_to_engine(&mut self, now: u64, router: usize, packet: usize) {
        let waiting = &self.routers[router].waiting;
        let bytes = |packet: usize| self.packets[packet].ip();
        let held: u64 = waiting.iter().map(|packet| bytes(*packet)).sum();
        let room = self.testbed.routers[router].input_queue;
        if room.is_some_and(|room| waiting.len() as u64 >= room.packets || held + bytes(packet) > room.bytes)
        {
            self.acted.note(Mechanism::InputFull);
            let place = Place::InputFull { node: self.router_node(router) };
            return self.ledger.lose_carrier(now, place, self.packets[packet].datagram);
        }
        // The packet decides now how many copies of it leave.
        let copies = self.copies_at(now, self.router_node(router), packet);
        self.routers[router].copies.insert(packet, copies);
        self.routers[router].waiting.push_back(packet);
        let config = &self.testbed.routers[router];
        if config.per_packet.0 == 0 && config.per_copy.0 == 0 {
            self.router_done(now, router);
        } else if self.routers[router].waiting.len() == 1 {
            self.processes_next(now, router);
        }
    }

    fn processes_next(&mut self, now: u64, router: usize) {
        let config = &self.testbed.routers[router];
        let copies = self.routers[router].copies[&self.routers[router].waiting[0]];
        let at = now + config.per_packet.0 + config.per_copy.0 * copies.saturating_sub(1);
        self.routers[router].since = Some(now);
        self.agenda.put(at, Group::RouterDone, (router, 0), Event::RouterDone { router });
    }

    /// Handles the end of processing of a packet at a router, and forwards it.
    pub(crate) fn router_done(&mut self, now: u64, router: usize) {
        let packet = self.routers[router].waiting.pop_front().expect("a busy router has a packet");
        self.routers[router].copies.remove(&packet);
        if let Some(since) = self.routers[router].since.take() {
            self.routers[router].worked += self.books.counted(since, now);
        }
        if !self.routers[router].waiting.is_empty() {
            self.processes_next(now, router);
        }
        if self.packets[packet].arp.is_some() {
            return self.arp_leaves_router(now, router, packet);
        }
        let Some(packet) = self.leaves_tunnels(now, router, packet) else { return };
        self.packets[packet].ttl -= 1;
        if self.packets[packet].ttl == 0 {
            let node = self.router_node(router);
            let place = Place::TimeToLive { node };
            return self.ledger.lose_carrier(now, place, self.packets[packet].datagram);
        }
        self.goes_on(now, router, packet);
    }

    /// Forwards a packet from a router, copied for multicast receivers and fragmented if necessary.
    fn goes_on(&mut self, now: u64, router: usize, packet: usize) {
        for copy in self.parted(now, self.router_node(router), packet) {
            self.goes_on_alone(now, router, copy);
        }
    }

    fn goes_on_alone(&mut self, now: u64, router: usize, packet: usize) {
        let node = self.router_node(router);
        let out = self.way_out(node, packet);
        let whole = self.packets[packet].clone();
        let mtu = self.mtu_of(out);
        let cut = fragments(whole.bytes, mtu);
        if cut.len() == 1 {
            return self.goes_out(now, router, out, packet);
        }
        let (stays_whole, refused) = (self.stays_whole(packet), self.refuses(out));
        if matches!(out, Out::Tunnel(_)) {
            let refused = stays_whole || refused;
            self.acted.note(if refused { Mechanism::TunnelRefused } else { Mechanism::InnerFragmented });
        }
        if stays_whole {
            return self.lose_too_big(now, router, packet, mtu);
        }
        if refused {
            return self.ledger.lose_carrier(now, Place::TooBig { node }, whole.datagram);
        }
        match whole.carries {
            Some(of) => {
                self.cut.insert(of);
                self.acted.note(Mechanism::OuterFragmented);
            }
            None if self.ledger.datagram(whole.datagram).message.is_some() => {
                self.acted.note(Mechanism::MessageCut);
            }
            None => {}
        }
        for (offset, bytes) in cut {
            self.packets.push(Packet { offset: whole.offset + offset, bytes, ..whole.clone() });
            self.goes_out(now, router, out, self.packets.len() - 1);
        }
    }

    /// Adds a packet to the queue of a path segment, holds it for address resolution, or wraps it for a tunnel and forwards it.
    fn goes_out(&mut self, now: u64, router: usize, out: Out, packet: usize) {
        match out {
            Out::Line(line) => self.goes_to_neighbour(now, line, packet),
            Out::Circuit(vc) => self.joins_entrance(now, vc, packet),
            Out::Tunnel(tunnel) => {
                let outer = self.enters_tunnel(tunnel, packet);
                self.goes_on(now, router, outer);
            }
        }
    }

    pub(crate) fn router_node(&self, router: usize) -> NodeId {
        self.topology.hosts + self.topology.switches + router
    }
}
