//! Networks that carry frames: Ethernet and point-to-point links, Ethernet switches, routers.
//!
//! A packet has one event for every hop, its arrival at the node behind the link: a first in, first out port knows when a packet leaves
//! as soon as it comes. A link has one pending event however many packets are on it.

mod build;
mod port;

use engpass_model::queue::{Cause, Ecn};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::Network;
use super::arena::Arena;
use super::event::Event;
use super::nic::Sending;
use super::tally::Place;
use port::Joined;
pub(super) use port::{FramePort, PortTally};

/// What carries frames.
#[derive(Default)]
pub(super) struct Frames {
    /// By port; `None` where a link carries cells.
    pub(super) ports: Vec<Option<FramePort>>,
    pub(super) packets: Arena<Packet>,
    /// The way of every flow, and the way back: `2 * flow` and `2 * flow + 1`.
    pub(super) routes: Vec<Route>,
    pub(super) routers: Vec<Engine>,
    /// What a discipline has lost, for a moment.
    lost: Vec<(engpass_model::queue::Packet, Cause)>,
}

/// An IP packet on its way.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) datagram: u32,
    /// Bytes, IP header included.
    pub(super) ip: u32,
    pub(super) route: u32,
    /// The step that it is at.
    pub(super) hop: u16,
    pub(super) ttl: u8,
    /// The process or endpoint that sent it: its flow, to a discipline.
    pub(super) sender: u32,
}

/// Where the packets of a flow go in one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    pub(super) steps: Vec<Step>,
    pub(super) priority: u8,
    pub(super) ttl: u8,
}

/// One hop of a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) port: usize,
    /// The router that stands before the port, if one does.
    pub(super) router: Option<usize>,
    pub(super) mtu: u64,
}

/// The forwarding engine of a router: one packet at a time.
#[derive(Debug, Default)]
pub(super) struct Engine {
    pub(super) node: usize,
    pub(super) per_packet: u64,
    free: u64,
    /// What it forwards, and when.
    busy: std::collections::VecDeque<(u64, u32)>,
}

impl Network {
    /// A packet of a host enters its NIC: when it has left.
    pub(super) fn emit_frame(&mut self, sender: usize, sending: Sending, route: u32) -> u64 {
        let ttl = self.frames.routes[route as usize].ttl;
        let packet = Packet {
            datagram: sending.datagram,
            ip: sending.ip as u32,
            route,
            hop: 0,
            ttl,
            sender: sender as u32,
        };
        self.fabric.datagrams[sending.datagram].holds += 1;
        let packet = self.frames.packets.insert(packet);
        let left = self.join(sending.nic, packet).expect("the line of a host takes everything in order");
        self.book_emission(sender, sending.nic, packet);
        left
    }

    /// A packet comes to a port. Returns when it leaves, where that is known.
    fn join(&mut self, port: usize, id: u32) -> Option<u64> {
        let packet = &self.frames.packets[id];
        let (ip, sender, datagram) = (packet.ip, packet.sender, packet.datagram);
        let priority = self.frames.routes[packet.route as usize].priority;
        let segment = self.fabric.datagrams[datagram].to.map(|_| datagram as usize);
        let ecn = segment.map_or(Ecn::NotCapable, |segment| {
            let segment = &self.fabric.segments[segment];
            match (segment.ect, segment.ce) {
                (_, true) => Ecn::Marked,
                (true, false) => Ecn::Capable,
                (false, false) => Ecn::NotCapable,
            }
        });
        let mut lost = std::mem::take(&mut self.frames.lost);
        let mut mark = false;
        let this = self.frames.ports[port].as_mut().expect("frames go over links that carry them");
        let view = this.view(id, ip, sender, priority, ecn);
        let joined = this.join(self.now, view, &mut lost, &mut mark, self.fabric.window);
        let left = match joined {
            Joined::Leaves(left) => {
                if mark {
                    self.mark(datagram);
                }
                self.fly(port, left, id);
                Some(left)
            }
            Joined::Waits(due) => {
                if let Some(due) = due {
                    self.events.push(due, port, Event::Serve(port as u32));
                }
                None
            }
            Joined::Lost(cause) => {
                lost.push((view, cause));
                None
            }
        };
        self.lose_all(port, lost);
        left
    }

    fn mark(&mut self, datagram: u32) {
        let segment = &mut self.fabric.segments[datagram as usize];
        segment.ce |= segment.ect;
    }

    fn fly(&mut self, port: usize, left: u64, packet: u32) {
        let this = self.frames.ports[port].as_mut().expect("frames go over links that carry them");
        if let Some(at) = this.fly(left, packet) {
            self.events.push(at, port, Event::Arrive(port as u32));
        }
        if self.frames.packets[packet].hop > 0 {
            self.book_frame(port, packet);
        }
    }

    /// A packet was handed to the NIC of its host, and its line knows when it goes.
    fn book_emission(&mut self, sender: usize, nic: usize, packet: u32) {
        let end = self.frames.ports[nic].as_ref().map_or(self.now, |port| port.last.end);
        let datagram = self.frames.packets[packet].datagram;
        self.fabric.ledger.emitted_packet(sender, (datagram, packet), self.now, end);
        self.book_frame(nic, packet);
    }

    /// The line of `port` sends this packet last of all that it knows of.
    fn book_frame(&mut self, port: usize, id: u32) {
        let Some(line) = &self.frames.ports[port] else { return };
        let packet = &self.frames.packets[id];
        self.fabric.ledger.transmits(port, packet.hop, (packet.datagram, id), line.last);
    }

    /// The discipline of a port chooses what is sent next.
    pub(super) fn serve_port(&mut self, port: u32) {
        let port = port as usize;
        let mut lost = std::mem::take(&mut self.frames.lost);
        let this = self.frames.ports[port].as_mut().expect("frames go over links that carry them");
        let (next, again) = this.serve(self.now, &mut lost, self.fabric.window);
        if let Some(again) = again {
            self.events.push(again, port, Event::Serve(port as u32));
        }
        if let Some((packet, left)) = next {
            if packet.ecn == Ecn::Marked {
                let datagram = self.frames.packets[packet.id].datagram;
                self.mark(datagram);
            }
            self.fly(port, left, packet.id);
        }
        self.lose_all(port, lost);
    }

    fn lose_all(&mut self, port: usize, mut lost: Vec<(engpass_model::queue::Packet, Cause)>) {
        for (packet, cause) in lost.drain(..) {
            self.lose_packet(packet.id, Place::Queue(port, cause));
            if let Some(trace) = &mut self.fabric.trace {
                trace.dropped(port, self.now);
            }
            if self.fabric.window.holds(self.now)
                && let Some(port) = &mut self.frames.ports[port]
            {
                port.tally.lost += 1;
            }
        }
        self.frames.lost = lost;
    }

    fn lose_packet(&mut self, packet: u32, place: Place) {
        let datagram = self.frames.packets[packet].datagram;
        self.fabric.lose_datagram(datagram, place, self.now);
        if self.fabric.window.holds(self.now) {
            let flow = self.fabric.datagrams[datagram].flow as usize;
            self.fabric.flows[flow].losses(place).cells += 1;
        }
        self.frames.packets.release(packet);
        self.fabric.release_datagram(datagram);
    }

    /// A frame arrives at the node behind this port.
    pub(super) fn frame_lands(&mut self, port: u32) {
        let port = port as usize;
        let this = self.frames.ports[port].as_mut().expect("frames go over links that carry them");
        let (landed, next) = this.land(self.now);
        if let Some(at) = next {
            self.events.push(at, port, Event::Arrive(port as u32));
        }
        let Some(landed) = landed else { return };
        if landed.damaged {
            if self.fabric.window.holds(self.now) {
                this.tally.lost += 1;
            }
            self.lose_packet(landed.packet, Place::Line(port));
            return;
        }
        let packet = &mut self.frames.packets[landed.packet];
        packet.hop += 1;
        let route = &self.frames.routes[packet.route as usize];
        match route.steps.get(usize::from(packet.hop)) {
            None => self.packet_arrived(landed.packet),
            Some(Step { router: Some(router), .. }) => self.route(*router, landed.packet),
            Some(&Step { port, .. }) => {
                self.join(port, landed.packet);
            }
        }
    }

    fn packet_arrived(&mut self, packet: u32) {
        let datagram = self.frames.packets[packet].datagram;
        self.frames.packets.release(packet);
        let this = &mut self.fabric.datagrams[datagram];
        this.arrived += 1;
        if this.arrived == this.fragments && this.loss.is_none() {
            self.receive(datagram);
        }
        self.fabric.release_datagram(datagram);
    }

    /// A packet has come to a router.
    fn route(&mut self, router: usize, packet: u32) {
        let engine = &mut self.frames.routers[router];
        if engine.per_packet == 0 {
            self.forward(router, packet);
            return;
        }
        engine.free = engine.free.max(self.now).saturating_add(engine.per_packet);
        engine.busy.push_back((engine.free, packet));
        if engine.busy.len() == 1 {
            self.events.push(engine.free, engine.node, Event::Forward(router as u32));
        }
    }

    /// A router's engine has done a packet.
    pub(super) fn router_done(&mut self, router: u32) {
        let router = router as usize;
        let engine = &mut self.frames.routers[router];
        let (_, packet) = engine.busy.pop_front().expect("a router that is done had a packet");
        if let Some(&(at, _)) = engine.busy.front() {
            self.events.push(at, engine.node, Event::Forward(router as u32));
        }
        self.forward(router, packet);
    }

    /// Lower the TTL, cut for the MTU of the way out, and go on.
    fn forward(&mut self, router: usize, id: u32) {
        let packet = &mut self.frames.packets[id];
        packet.ttl -= 1;
        if packet.ttl == 0 {
            let node = self.frames.routers[router].node;
            self.lose_packet(id, Place::Ttl(node));
            return;
        }
        let step = self.frames.routes[packet.route as usize].steps[usize::from(packet.hop)];
        if u64::from(packet.ip) <= step.mtu {
            self.join(step.port, id);
            return;
        }
        let cut = Fragments::of(u64::from(packet.ip) - IP_HEADER_BYTES, step.mtu);
        let datagram = packet.datagram;
        let whole = packet.clone();
        self.frames.packets.release(id);
        let more = (cut.count - 1) as u32;
        self.fabric.datagrams[datagram].fragments += more;
        self.fabric.datagrams[datagram].holds += more;
        for index in 0..cut.count {
            let ip = (cut.payload(index) + IP_HEADER_BYTES) as u32;
            let fragment = self.frames.packets.insert(Packet { ip, ..whole.clone() });
            self.fabric.ledger.cut(id, fragment);
            self.join(step.port, fragment);
        }
    }
}
