//! Networks that carry frames: Ethernet and point-to-point links, Ethernet switches, routers.
//!
//! A first in, first out port knows when a packet leaves as soon as it comes. So a packet has an event only where it meets others: at the
//! ports to which several lines lead, and at its host. Where all packets come one after the other from one line, that line *tells*
//! the next port of each when it knows of its departure, with the instant at which it comes. A line has one pending event
//! however many packets are on it.

mod build;
mod port;

use engpass_model::queue::{self, Cause, Ecn};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::Network;
use super::arena::Arena;
use super::event::Event;
use super::nic::Sending;
use super::tally::Place;
use super::tap::Carrier;
use port::{Flying, Joined, Limited};
pub(super) use port::{FramePort, PortTally, Told};

/// What carries frames.
#[derive(Default)]
pub(super) struct Frames {
    /// By port; `None` where a link carries cells.
    pub(super) ports: Vec<Option<FramePort>>,
    pub(super) packets: Arena<Packet>,
    /// The way of every flow, and the way back: `2 * flow` and `2 * flow + 1`.
    pub(super) routes: Vec<Route>,
    /// Of all routes, one behind the other, each with an end.
    steps: Vec<Step>,
    pub(super) routers: Vec<Engine>,
    /// What a discipline has lost, for a moment.
    lost: Vec<(queue::Packet, Cause)>,
    /// Every packet has an event at every hop, for a test.
    silent: bool,
}

/// An IP packet on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) datagram: u32,
    /// Bytes, IP header included.
    ip: u32,
    /// The process or endpoint that sent it: its flow, to a discipline.
    sender: u32,
    /// Place of the step that it is at, and which of its route it is.
    step: u32,
    hop: u16,
    ttl: u8,
    priority: u8,
    ecn: Ecn,
}

/// Where the packets of a flow go in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    first: u32,
    pub(super) hops: u32,
    priority: u8,
    ttl: u8,
}

/// One hop of a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// [`END`] behind the last hop.
    pub(super) port: u32,
    /// The router that stands before the port, if one does.
    pub(super) router: Option<u32>,
    pub(super) mtu: u32,
    /// The line before this one tells the port what comes.
    told: bool,
}

/// No port: the packet is at its host.
const END: u32 = u32::MAX;

impl Frames {
    /// The hops of a route.
    pub(super) fn steps(&self, route: usize) -> &[Step] {
        let Route { first, hops, .. } = self.routes[route];
        &self.steps[first as usize..][..hops as usize]
    }
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
    /// Let no line tell the next port what comes: every packet has an event at every hop. For a test that it changes nothing.
    #[doc(hidden)]
    pub fn tell_nothing(&mut self) {
        self.frames.silent = true;
        self.frames.steps.iter_mut().for_each(|step| step.told = false);
    }

    /// A packet of a host enters its NIC: when it has left.
    #[inline]
    pub(super) fn emit_frame(&mut self, sender: usize, sending: &Sending, route: u32) -> u64 {
        let Route { first, priority, ttl, .. } = self.frames.routes[route as usize];
        let (datagram, nic, ip) = (sending.datagram, sending.nic, sending.ip as u32);
        let this = &mut self.fabric.datagrams[datagram];
        this.holds += 1;
        let ecn = match this.to.map(|_| &self.fabric.segments[datagram as usize]) {
            Some(segment) if segment.ce => Ecn::Marked,
            Some(segment) if segment.ect => Ecn::Capable,
            _ => Ecn::NotCapable,
        };
        let mut packet =
            Packet { datagram, ip, sender: sender as u32, step: first, hop: 0, ttl, priority, ecn };
        if let Some(fates) = &self.fabric.fates {
            let head = fates.head(datagram);
            (packet.ecn, packet.priority) = (head.ecn, head.priority);
            (packet.ttl, packet.sender) = (head.ttl, head.flow);
        }
        let id = self.frames.packets.insert(packet);
        if self.fabric.trace.is_some() {
            self.tap_emitted(Carrier::Packet(id), sender, sending);
        }
        let line = self.frames.ports[nic].as_mut().expect("frames go over links that carry them");
        let left = line.take(self.now, ip, &self.fabric.window);
        self.fabric.ledger.emitted_packet(sender, (datagram, id), self.now, line.last.end);
        self.fabric.ledger.transmits(nic, 0, (datagram, id), line);
        if let Some((step, at)) = self.depart(nic, left, id) {
            self.go(id, step, at);
        }
        left
    }

    /// A packet comes to the node before the port of `step` at `at`, and goes on to where something else may come between.
    fn go(&mut self, id: u32, mut step: Step, mut at: u64) {
        loop {
            let port = step.port as usize;
            let Some(left) = self.come(id, step, at) else { return };
            let Some(next) = self.depart(port, left, id) else { return };
            (step, at) = next;
        }
    }

    /// A packet has left `port` at `left`. Returns the step to which it comes next and when, if it goes on at once.
    #[inline(always)]
    fn depart(&mut self, port: usize, left: u64, id: u32) -> Option<(Step, u64)> {
        let line = self.frames.ports[port].as_mut().expect("frames go over links that carry them");
        let packet = &mut self.frames.packets[id];
        if self.fabric.trace.is_some() {
            self.fabric.tap_packet(port, left, id, packet.datagram, (packet.ttl, packet.ecn));
        }
        let step = self.frames.steps[packet.step as usize + 1];
        let at = left + line.delay;
        // What would come after the end does not.
        if step.told && at <= self.end {
            packet.step += 1;
            packet.hop += 1;
            return Some((step, at));
        }
        if let Some(at) = line.fly(left, id) {
            self.events.push(at, port, Event::Arrive(port as u32));
        }
        None
    }

    /// A packet comes to the node before the port of `step` at `at`. Returns when it leaves the port, if that is known.
    #[inline(always)]
    fn come(&mut self, id: u32, step: Step, at: u64) -> Option<u64> {
        if let Some(router) = step.router {
            let packet = &mut self.frames.packets[id];
            packet.ttl -= 1;
            if packet.ttl == 0 || packet.ip > step.mtu {
                self.stop(id, step, router, at);
                return None;
            }
        }
        self.join(step.port as usize, id, at)
    }

    /// A router loses a packet that has been through too many, or cuts one that is too large.
    #[cold]
    fn stop(&mut self, id: u32, step: Step, router: u32, at: u64) {
        if self.frames.packets[id].ttl > 0 {
            self.cut(id, step, at);
        } else {
            let node = self.frames.routers[router as usize].node;
            if !self.loses_later(id, Place::Ttl(node), at) {
                self.lose_packet(id, Place::Ttl(node), at);
            }
        }
    }

    /// Cut a packet for the MTU of the way out; its fragments go on.
    fn cut(&mut self, id: u32, step: Step, at: u64) {
        let whole = self.frames.packets[id];
        let cut = Fragments::of(u64::from(whole.ip) - IP_HEADER_BYTES, step.mtu.into());
        // The first fragment may take its place.
        let head = self.fabric.trace.as_ref().and_then(|trace| trace.head_of(id));
        self.frames.packets.release(id);
        let more = (cut.count - 1) as u32;
        let datagram = &mut self.fabric.datagrams[whole.datagram];
        datagram.fragments += more;
        datagram.holds += more;
        for index in 0..cut.count {
            let ip = (cut.payload(index) + IP_HEADER_BYTES) as u32;
            let fragment = self.frames.packets.insert(Packet { ip, ..whole });
            self.fabric.ledger.cut(id, fragment);
            if let (Some(trace), Some(head)) = (&mut self.fabric.trace, head) {
                let offset = (index * cut.full) as u32;
                trace.cut(head, fragment, (ip, offset), index + 1 == cut.count);
            }
            let left = self.join(step.port as usize, fragment, at);
            let next = left.and_then(|left| self.depart(step.port as usize, left, fragment));
            if let Some((step, at)) = next {
                self.go(fragment, step, at);
            }
        }
    }

    /// A packet joins the queue of a port at `at`. Returns when it leaves, if that is known.
    #[inline]
    fn join(&mut self, port: usize, id: u32, at: u64) -> Option<u64> {
        let line = self.frames.ports[port].as_mut().expect("frames go over links that carry them");
        if at > line.opens {
            let from = std::mem::replace(&mut line.opens, u64::MAX);
            self.fabric.ledger.opens_frames(port, line, from);
        }
        if let Some(trace) = &mut self.fabric.trace {
            trace.look_before(port, at, line);
        }
        let packet = &mut self.frames.packets[id];
        let bytes = line.queue_bytes(packet.ip);
        let left = match line.join_limited(at, bytes, &self.fabric.window) {
            Limited::Leaves(left) => left,
            Limited::Lost => {
                self.refuse(port, id, Cause::Full, at);
                return None;
            }
            Limited::Undecided => {
                let &mut Packet { sender, priority, ecn, .. } = packet;
                let view = queue::Packet { id, bytes, flow: sender, priority, ecn };
                return self.join_discipline(port, view, at);
            }
        };
        self.fabric.ledger.transmits(port, packet.hop, (packet.datagram, id), line);
        Some(left)
    }

    /// A packet comes to a discipline.
    fn join_discipline(&mut self, port: usize, view: queue::Packet, at: u64) -> Option<u64> {
        let line = self.frames.ports[port].as_mut().expect("frames go over links that carry them");
        let mut mark = false;
        match line.join(at, view, &mut self.frames.lost, &mut mark, &self.fabric.window) {
            Joined::Leaves(left) => {
                let packet = &mut self.frames.packets[view.id];
                if mark {
                    packet.ecn = Ecn::Marked;
                }
                self.fabric.ledger.transmits(port, packet.hop, (packet.datagram, view.id), line);
                Some(left)
            }
            Joined::Waits(due) => {
                if let Some(due) = due {
                    self.events.push(due, port, Event::Serve(port as u32));
                }
                self.lose_all(port);
                None
            }
            Joined::Lost(cause) => {
                self.refuse(port, view.id, cause, at);
                None
            }
        }
    }

    /// The discipline of a port chooses what is sent next.
    pub(super) fn serve_port(&mut self, port: u32) {
        let port = port as usize;
        let this = self.frames.ports[port].as_mut().expect("frames go over links that carry them");
        let (next, again) = this.serve(self.now, &mut self.frames.lost, &self.fabric.window);
        if let Some(again) = again {
            self.events.push(again, port, Event::Serve(port as u32));
        }
        if let Some((chosen, left)) = next {
            let packet = &mut self.frames.packets[chosen.id];
            packet.ecn = chosen.ecn;
            self.fabric.ledger.transmits(port, packet.hop, (packet.datagram, chosen.id), this);
            if let Some((step, at)) = self.depart(port, left, chosen.id) {
                self.go(chosen.id, step, at);
            }
        }
        self.lose_all(port);
    }

    /// Lose what the discipline of a port has lost now.
    fn lose_all(&mut self, port: usize) {
        while let Some((packet, cause)) = self.frames.lost.pop() {
            self.refuse(port, packet.id, cause, self.now);
        }
    }

    /// A port loses a packet.
    fn refuse(&mut self, port: usize, id: u32, cause: Cause, at: u64) {
        if self.loses_later(id, Place::Queue(port, cause), at) {
            return;
        }
        self.lose_packet(id, Place::Queue(port, cause), at);
        if let Some(later) = &mut self.fabric.ledger.later {
            later.lost(port, 1);
        }
        if let Some(trace) = &mut self.fabric.trace {
            trace.dropped(port, at);
        }
        if self.fabric.window.holds(at)
            && let Some(port) = &mut self.frames.ports[port]
        {
            port.tally.lost += 1;
        }
    }

    /// Where packets come from outside, nothing is lost before its time: whether the loss waits for it.
    #[inline]
    fn loses_later(&mut self, packet: u32, place: Place, at: u64) -> bool {
        let Some(fates) = self.fabric.fates.as_mut().filter(|_| at > self.now) else { return false };
        fates.lost_later(packet, place);
        self.events.push(at, 0, Event::Lose(packet));
        true
    }

    /// A packet is lost, as was known before.
    pub(super) fn lose_now(&mut self, packet: u32) {
        let fates = self.fabric.fates.as_mut().expect("only what came from outside is lost later");
        match fates.place_of(packet) {
            Place::Queue(port, cause) => self.refuse(port, packet, cause, self.now),
            place => self.lose_packet(packet, place, self.now),
        }
    }

    fn lose_packet(&mut self, packet: u32, place: Place, at: u64) {
        let datagram = self.frames.packets[packet].datagram;
        self.fabric.lose_datagram(datagram, place, at);
        if self.fabric.window.holds(at) {
            let flow = self.fabric.datagrams[datagram].flow as usize;
            self.fabric.flows[flow].losses(place).cells += 1;
        }
        self.frames.packets.release(packet);
        self.fabric.release_datagram(datagram);
    }

    /// A frame arrives at the node behind this port; and so do those behind it, as long as nothing else comes first.
    pub(super) fn frame_lands(&mut self, port: u32) {
        let port = port as usize;
        loop {
            let this = self.frames.ports[port].as_mut().expect("frames go over links that carry them");
            let (landed, next) = this.land(self.now);
            if let Some(landed) = landed {
                self.landed(port, landed);
            }
            let Some(next) = next else { return };
            // While it is handled, nothing can come to this line that arrives before what is there.
            if next > self.until || next > self.next_sweep || !self.events.is_before_all(next, port) {
                self.events.push(next, port, Event::Arrive(port as u32));
                return;
            }
            self.now = next;
            self.handled += 1;
        }
    }

    #[inline]
    fn landed(&mut self, port: usize, landed: Flying) {
        if landed.damaged {
            if let Some(later) = &mut self.fabric.ledger.later {
                later.lost(port, 1);
            }
            if self.fabric.window.holds(self.now)
                && let Some(port) = &mut self.frames.ports[port]
            {
                port.tally.lost += 1;
            }
            self.lose_packet(landed.packet, Place::Line(port), self.now);
            return;
        }
        let packet = &mut self.frames.packets[landed.packet];
        packet.step += 1;
        packet.hop += 1;
        let step = self.frames.steps[packet.step as usize];
        if step.port == END {
            self.packet_arrived(landed.packet);
            return;
        }
        if let Some(at) = self.process(step, landed.packet) {
            self.go(landed.packet, step, at);
        }
    }

    #[inline]
    fn packet_arrived(&mut self, packet: u32) {
        let Packet { datagram, ecn, .. } = self.frames.packets[packet];
        self.frames.packets.release(packet);
        let this = &mut self.fabric.datagrams[datagram];
        this.arrived += 1;
        if ecn == Ecn::Marked && this.to.is_some() {
            let segment = &mut self.fabric.segments[datagram as usize];
            segment.ce |= segment.ect;
        } else if ecn == Ecn::Marked
            && let Some(fates) = &mut self.fabric.fates
        {
            fates.mark(datagram);
        }
        if this.arrived == this.fragments && this.loss.is_none() {
            self.receive(datagram);
        }
        self.fabric.release_datagram(datagram);
    }

    /// A packet has come to the node before a port, a router perhaps: when its engine has done it, if that need not be waited for.
    #[inline]
    fn process(&mut self, step: Step, packet: u32) -> Option<u64> {
        let Some(router) = step.router else { return Some(self.now) };
        let engine = &mut self.frames.routers[router as usize];
        if engine.per_packet == 0 {
            return Some(self.now);
        }
        engine.free = engine.free.max(self.now).saturating_add(engine.per_packet);
        // Whatever goes out by the port comes from this engine, in order.
        let port = self.frames.ports[step.port as usize].as_ref();
        if engine.free <= self.end && !self.frames.silent && port.is_some_and(FramePort::decides_on_arrival) {
            return Some(engine.free);
        }
        engine.busy.push_back((engine.free, packet));
        if engine.busy.len() == 1 {
            self.events.push(engine.free, engine.node, Event::Forward(router));
        }
        None
    }

    /// A router's engine has done a packet.
    pub(super) fn router_done(&mut self, router: u32) {
        let engine = &mut self.frames.routers[router as usize];
        let (_, packet) = engine.busy.pop_front().expect("a router that is done had a packet");
        if let Some(&(at, _)) = engine.busy.front() {
            self.events.push(at, engine.node, Event::Forward(router));
        }
        let step = self.frames.steps[self.frames.packets[packet].step as usize];
        self.go(packet, step, self.now);
    }
}
