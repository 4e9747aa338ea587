//! Routers (docs/model.md, "Ethernet switches", "Forwarding" and "Engines of routers").
//!
//! The state is in `../router.rs`.

use engpass_testbed::topology::NodeId;

use super::Engine;
use super::engines::Plan;
use crate::acted::Mechanism;
use crate::cell::LineId;
use crate::event_queue::{Event, Group};
use crate::fragments::fragments;
use crate::idle::Crossing;
use crate::outcome::Place;
use crate::packet::{Out, Packet};
use crate::router::{Job, Waiting};

impl Engine<'_> {
    /// Handles the arrival of a packet at a router over a line.
    pub(crate) fn arrives_at_router(&mut self, now: u64, router: usize, packet: usize, line: LineId) {
        self.packets[packet].came_by = Some(line);
        let node = self.router_node(router);
        if self.is_keepalive_back(node, packet) && !self.works_on_control(node) {
            return self.control_arrives(now, line, packet);
        }
        self.comes_to_engine(now, router, packet);
    }

    /// Adds a packet to the queue of the first engine of a router that works on it.
    pub(crate) fn comes_to_engine(&mut self, now: u64, router: usize, packet: usize) {
        let Plan { punt, work, per_copy, fragments } = self.plan(router, packet);
        if !self.has_room(router, punt.unwrap_or(work).engine, packet) {
            return self.finds_no_room(now, router, punt.unwrap_or(work).engine, packet);
        }
        // The packet decides now how many copies of it leave.
        let copies = self.copies_at(now, self.router_node(router), packet);
        let whole = Job { time: work.time + per_copy * copies.saturating_sub(1) + fragments, ..work };
        let lone = punt.into_iter().chain([work]).map(|job| job.time).collect();
        self.packets[packet].crosses(Crossing::Engines(lone));
        match punt {
            Some(punt) => {
                self.acted.note(Mechanism::Punted);
                self.begins_job(now, router, packet, punt, Some(whole));
            }
            None => {
                if work.engine > 0 {
                    self.acted.note(Mechanism::ForwardedByCard);
                }
                self.begins_job(now, router, packet, whole, None);
            }
        }
    }

    /// Handles an ARP packet, IGMP message or keepalive at the far end of its last line.
    pub(crate) fn control_arrives(&mut self, now: u64, line: LineId, packet: usize) {
        match (self.packets[packet].igmp, self.packets[packet].keepalive) {
            (Some(of), _) => self.igmp_arrives(now, line, packet, of),
            (None, Some(end)) => self.keepalive_returns(now, end, packet),
            (None, None) => self.arp_arrives(now, line, packet),
        }
    }

    fn has_room(&self, router: usize, engine: usize, packet: usize) -> bool {
        let waiting = &self.routers[router][engine].waiting;
        let held: u64 = waiting.iter().map(|waiting| self.packets[waiting.packet].ip()).sum();
        self.times(router, engine).input_queue.is_none_or(|room| {
            (waiting.len() as u64) < room.packets && held + self.packets[packet].ip() <= room.bytes
        })
    }

    fn finds_no_room(&mut self, now: u64, router: usize, engine: usize, packet: usize) {
        self.acted.note(if engine == 0 { Mechanism::InputFull } else { Mechanism::CardFull });
        let place = Place::InputFull { node: self.router_node(router), engine };
        self.ledger.lose_carrier(now, place, self.packets[packet].datagram);
    }

    /// Adds a packet to the queue of an engine that has room for it.
    fn begins_job(&mut self, now: u64, router: usize, packet: usize, job: Job, then: Option<Job>) {
        let is_timed = self.takes_time(router);
        let this = &mut self.routers[router][job.engine];
        let time = job.time + if this.waiting.is_empty() { job.interrupt } else { 0 };
        this.waiting.push_back(Waiting { packet, time, then });
        if !is_timed {
            self.router_done(now, router, job.engine);
        } else if self.routers[router][job.engine].waiting.len() == 1 {
            self.processes_next(now, router, job.engine);
        }
    }

    fn processes_next(&mut self, now: u64, router: usize, engine: usize) {
        let this = &mut self.routers[router][engine];
        let at = now + this.waiting[0].time;
        this.since = Some(now);
        self.agenda.put(at, Group::RouterDone, (router, engine), Event::RouterDone { router, engine });
    }

    /// Handles the end of the work of an engine on a packet: another engine goes on, or the router forwards the packet.
    pub(crate) fn router_done(&mut self, now: u64, router: usize, engine: usize) {
        let this = &mut self.routers[router][engine];
        let Waiting { packet, then, .. } = this.waiting.pop_front().expect("a busy engine has a packet");
        if let Some(since) = this.since.take() {
            this.worked += self.books.counted(since, now);
        }
        if !this.waiting.is_empty() {
            self.processes_next(now, router, engine);
        }
        if let Some(job) = then {
            if !self.has_room(router, job.engine, packet) {
                return self.finds_no_room(now, router, job.engine, packet);
            }
            return self.begins_job(now, router, packet, job, None);
        }
        let Packet { arp, igmp, came_by, .. } = self.packets[packet];
        match (arp, igmp, came_by) {
            (None, None, _) => {}
            (Some(_), _, None) => return self.arp_leaves_router(now, router, packet),
            (_, _, Some(line)) => {
                self.acted.note(Mechanism::ControlTakesTime);
                return self.control_arrives(now, line, packet);
            }
            (None, Some(_), None) => unreachable!("routers send no IGMP messages"),
        }
        let Some(packet) = self.leaves_tunnels(now, router, packet) else { return };
        if self.is_keepalive_back(self.router_node(router), packet) {
            self.acted.note(Mechanism::ControlTakesTime);
            let line = self.packets[packet].came_by.expect("the keepalive came by a line");
            return self.control_arrives(now, line, packet);
        }
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
                if !self.may_enter(now, tunnel, packet) {
                    return;
                }
                let outer = self.enters_tunnel(tunnel, packet);
                self.goes_on(now, router, outer);
            }
        }
    }

    pub(crate) fn router_node(&self, router: usize) -> NodeId {
        self.topology.hosts + self.topology.switches + router
    }
}
