//! Networks that carry frames: Ethernet and point-to-point links, Ethernet switches, routers.
//!
//! A first in, first out port knows when a packet leaves as soon as it comes. So a packet has an event only where it meets others: at the
//! ports to which several lines lead, and at its host. Where all packets come one after the other from one line, that line *tells*
//! the next port of each when it knows of its departure, with the instant at which it comes. A line has one pending event
//! however many packets are on it.

mod act;
mod arp;
mod arrive;
mod bonds;
mod branches;
mod build;
mod choices;
mod circuits;
mod clock;
mod cut;
mod exit;
mod hop;
mod icmp;
mod lengths;
mod lost;
mod lottery;
mod marks;
mod outage;
mod packet;
mod plain;
mod port;
mod rules;
mod runs;
mod sent;
mod told;
mod trains;
mod tunnels;
mod ways;

use std::collections::BTreeMap;

use engpass_ledger::{Ledger, Trail};
use engpass_model::line::Transmission;
use engpass_model::queue::{self, Backlog, Cause, Ecn};
use engpass_model::unit::QueueLimit;
use engpass_testbed::topology::NodeId;

use super::Network;
use super::fabric::Fabric;
use super::sending::Sending;
use arp::Resolution;
use bonds::Bonds;
use choices::{BRANCH, Choices};
use circuits::Entry;
use icmp::Icmp;
pub(super) use marks::tunnel_of;
use marks::{ENTRY, HOLD, UNWRAP, WRAP};
pub(super) use outage::Upcoming;
pub(super) use packet::Packet;
pub(super) use port::FramePort;
pub use rules::Rule;
pub(super) use told::PortTally;
use tunnels::Tunnels;
pub(super) use ways::WayLine;
pub(crate) use ways::choices_are_known;

/// What carries frames.
#[derive(Default)]
pub(super) struct Frames {
    /// The transmitters of the links that carry frames, and which of them a port is, [`END`] where its link carries cells.
    pub(super) ports: Vec<FramePort>,
    places: Vec<u32>,
    /// The way of every flow, and the way back: `2 * flow` and `2 * flow + 1`.
    pub(super) routes: Vec<Route>,
    /// Of all routes, one behind the other, each with an end.
    steps: Vec<Step>,
    pub(super) routers: Vec<Engine>,
    /// By link the nodes at its ends, where events may change lines.
    ends: Vec<[NodeId; 2]>,
    seed: u64,
    /// Where packets enter circuits.
    entries: Vec<Entry>,
    /// Where routers choose.
    pub(super) choices: Choices,
    /// The steps from this place on belong to ways with questions; and the slots of the lines behind each of them.
    branched: u32,
    pub(super) trails: Vec<Box<[u16]>>,
    /// The lines of such ways by slot, by the place of their first step.
    trees: BTreeMap<u32, Vec<WayLine>>,
    /// Routes of senders that have one of their own: by flow, connection and direction.
    own: BTreeMap<(usize, u32, usize), u32>,
    /// By port: data of some flow could go this way, if routers chose so.
    pub(super) spared: Vec<bool>,
    /// Where packets are asked for their way.
    asking: Asking,
    /// A rule of lookahead that is not obeyed, for a test that it is needed.
    pub(super) disobeyed: Option<Rule>,
    /// What a discipline has lost, for a moment.
    lost: Vec<(queue::Packet, Cause)>,
    /// Every packet has an event at every hop, for a test.
    silent: bool,
    /// What routers say.
    pub(super) icmp: Icmp,
    pub(super) arp: Resolution,
    pub(super) tunnels: Tunnels,
    bonds: Bonds,
    /// Routes of the branches of all trees, in their order.
    pub(super) branches: Vec<u32>,
}

/// Where the packets of a flow go in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    first: u32,
    pub(super) hops: u16,
    ttl: u8,
    priority: u8,
}

/// One hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Place among the ports of frames; [`END`] behind the last hop.
    pub(super) port: u32,
    /// The router that stands before the port, [`END`] if none does.
    router: u32,
    pub(super) mtu: u32,
    /// Place of the line's book among those of a lane that takes this way; behind the last hop the number of lines before it.
    pub(super) slot: u16,
    /// Whom its line tells what comes.
    tells: Tells,
    /// The router takes its time for a packet.
    takes_time: bool,
}

/// Where packets are asked for their way, on ways with choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Asking {
    /// Where the choice is not known when the network is built.
    #[default]
    Unknown,
    /// Wherever there is a choice: headers of packets from outside are not known before they come.
    Choices,
    /// At every router, for a test that it changes nothing.
    Routers,
}

/// Whom a line tells what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tells {
    Nobody,
    /// The next port.
    Port,
    /// The host behind the last hop, where nothing else happens.
    Host,
}

/// No port: the packet is at its host.
const END: u32 = u32::MAX;

impl Step {
    /// No line: the end of a way, a question, or the beginning of an answer.
    const MARK: Self =
        Self { port: END, router: END, mtu: 0, slot: 0, tells: Tells::Nobody, takes_time: false };

    /// Whether it is a hop over one line of frames.
    #[inline(always)]
    fn is_line(&self) -> bool {
        self.port < ENTRY
    }

    /// Whether packets enter a tunnel here.
    fn is_wrap(&self) -> bool {
        (WRAP..UNWRAP).contains(&self.port)
    }

    /// Whether packets leave a tunnel here.
    fn is_unwrap(&self) -> bool {
        (UNWRAP..HOLD).contains(&self.port)
    }

    /// Whether a router may hold packets here.
    fn is_hold(&self) -> bool {
        (HOLD..BRANCH).contains(&self.port)
    }

    /// Whether a router stands before the port.
    #[inline(always)]
    pub(super) fn is_routed(&self) -> bool {
        self.router != END
    }

    /// Whether its line tells the next port what comes.
    #[inline(always)]
    fn tells_port(&self) -> bool {
        self.tells == Tells::Port
    }
}

impl Frames {
    /// Tell the books of every transmission on the lines where they ask for that.
    pub(super) fn watch(&mut self, ledger: &Ledger) {
        self.ports.iter_mut().for_each(|line| line.watched = ledger.is_watched(line.port as usize));
    }

    /// The transmitter with this number, if it sends frames.
    #[inline]
    pub(super) fn port(&self, port: usize) -> Option<&FramePort> {
        // Where only cells are sent there are none.
        self.ports.get(self.places[port] as usize)
    }

    #[inline]
    pub(super) fn port_mut(&mut self, port: usize) -> Option<&mut FramePort> {
        self.ports.get_mut(self.places[port] as usize)
    }

    /// Whether a rule of lookahead holds for what it is about.
    #[inline]
    pub(super) fn obeys(&self, rule: Rule, holds: bool) -> bool {
        holds || self.disobeyed == Some(rule)
    }

    /// The trail of a packet that has come to `place`.
    #[inline(always)]
    pub(super) fn trail(&self, place: u32) -> Trail {
        match place.checked_sub(self.branched) {
            None => Trail::along(self.steps[place as usize].slot),
            Some(branched) => Trail::listed(branched),
        }
    }

    /// Lines on the way to `place`.
    fn lines_before(&self, place: u32) -> u16 {
        match place.checked_sub(self.branched) {
            None => self.steps[place as usize].slot,
            Some(branched) => self.trails[branched as usize].len() as u16,
        }
    }

    /// The number of the transmitter that has carried a packet to `place`.
    fn last_line(&self, place: u32) -> usize {
        let mut steps = self.carried(place, 0).map(|there| self.steps[there as usize]);
        let carries = |step: &Step| step.is_line() || self.entry(*step).is_some();
        let step = steps.find(carries).expect("a line leads to every router");
        match self.entry(step) {
            Some(entry) => entry.ports[entry.ports.len() - 1],
            None => self.ports[step.port as usize].port as usize,
        }
    }

    /// The places of the steps whose lines have carried a packet that has come to `place`, the last one first, but for the first `since` of its
    /// way; and those of marks.
    fn carried(&self, place: u32, since: u16) -> impl Iterator<Item = u32> {
        let mut at = place as usize;
        std::iter::from_fn(move || {
            loop {
                at = at.checked_sub(1)?;
                let step = &self.steps[at];
                if step.port == BRANCH {
                    // Behind the question.
                    at = step.mtu as usize;
                    continue;
                }
                return (step.port != END && self.lines_before(at as u32) >= since).then_some(at as u32);
            }
        })
    }
}

impl Fabric {
    /// Something comes to a line at `at`: what is to be seen of it before.
    #[inline(always)]
    fn see_before(&mut self, line: &mut FramePort, at: u64) {
        if line.is_to_open(at)
            && let Some(from) = line.open()
        {
            self.ledger.opens_frames(line, from);
        }
        if let Some(trace) = &mut self.trace {
            trace.look_before(line.port as usize, at, line);
        }
    }
}

/// The forwarding engine of a router: one packet at a time.
#[derive(Debug, Default)]
pub(super) struct Engine {
    pub(super) node: usize,
    pub(super) per_packet: u64,
    /// Room for packets that it has not finished, and the bytes of those, where there is a bound.
    room: Option<QueueLimit>,
    bytes: u64,
    free: u64,
    /// It makes choices for some of its packets, or its queue is bounded: then no packet goes on ahead of the clock.
    asks: bool,
    /// What it forwards, and when.
    busy: std::collections::VecDeque<(u64, u32)>,
}

impl Engine {
    /// Whether a packet of `ip` bytes finds room.
    fn has_room(&self, ip: u32) -> bool {
        let held = Backlog { bytes: self.bytes, packets: self.busy.len() as u64 };
        self.room.is_none_or(|room| held.has_room(room, ip))
    }
}

impl Network {
    /// Let no line tell the next port what comes: every packet has an event at every hop. For a test that it changes nothing.
    #[doc(hidden)]
    pub fn tell_nothing(&mut self) {
        self.frames.silent = true;
        self.frames.steps.iter_mut().for_each(|step| step.tells = Tells::Nobody);
    }

    /// The packet that a host hands to its NIC comes into being.
    #[inline(always)]
    fn packet_of(&mut self, sender: usize, sending: &Sending, route: u32) -> u32 {
        let Route { first, priority, ttl, .. } = self.frames.routes[route as usize];
        let (datagram, ip, offset) = (sending.datagram, sending.ip as u32, sending.offset);
        let this = &mut self.fabric.datagrams[datagram];
        this.holds += 1;
        let ecn = match this.to.get().map(|_| self.fabric.datagrams.segment(datagram)) {
            Some(segment) if segment.ce => Ecn::Marked,
            Some(segment) if segment.ect => Ecn::Capable,
            _ => Ecn::NotCapable,
        };
        let mut packet = Packet {
            datagram,
            ip,
            sender: sender as u32,
            place: first,
            since: 0,
            offset,
            ttl,
            priority,
            ecn,
        };
        if let Some(fates) = &self.fabric.fates {
            let head = fates.head(datagram);
            (packet.ecn, packet.priority) = (head.ecn, head.priority);
            (packet.ttl, packet.sender) = (head.ttl, head.flow);
        }
        self.fabric.datagrams.insert_packet(packet)
    }

    /// A transmission on the line of the step at `place` does not lie in the window: it does not count as carried.
    #[cold]
    #[inline(never)]
    fn cut_off(&mut self, place: u32, id: u32, sent: &Transmission) {
        if self.fabric.ledger.later.is_some() {
            // It is booked when it has ended.
            return;
        }
        let Packet { datagram, ip, .. } = *self.fabric.datagrams.packet(id);
        let step = self.frames.steps[place as usize];
        let line = &self.frames.ports[step.port as usize];
        self.fabric.ledger.cut_off(line.port as usize, sent);
        self.fabric.write_down(datagram);
        self.fabric.ledger.write(datagram, step.slot, line.queue_bytes(ip), true);
    }

    /// A packet is gone, or the run is over: note which lines have carried it.
    #[inline(always)]
    fn note_lines(&mut self, id: u32) {
        let Packet { datagram, place, .. } = *self.fabric.datagrams.packet(id);
        let this = &mut self.fabric.datagrams[datagram];
        this.trail = self.frames.trail(place);
        if this.written && self.fabric.ledger.later.is_none() {
            self.write_lines(id);
        }
    }

    /// Write down which lines have carried a packet.
    #[inline(never)]
    fn write_lines(&mut self, id: u32) {
        let packet = *self.fabric.datagrams.packet(id);
        let Packet { datagram, ip, place, since, .. } = packet;
        let branched = self.frames.is_branched(place);
        for there in self.frames.carried(place, since) {
            let step = self.frames.steps[there as usize];
            if !step.is_line() {
                continue;
            }
            let line = &self.frames.ports[step.port as usize];
            let bytes = line.queue_bytes(self.frames.length_at(ip, place, there));
            self.fabric.ledger.write(datagram, step.slot, bytes, false);
            if branched {
                let piece = self.frames.piece(id, &packet, there);
                self.fabric.ledger.write_piece(datagram, step.slot, piece);
            }
        }
    }

    /// The run is over: note what the lines have carried of the packets that are still on their way.
    pub(super) fn note_all_lines(&mut self) {
        let datagrams = &mut self.fabric.datagrams;
        datagrams.forget_free();
        // Before a packet of any is noted.
        for id in 0..datagrams.len() {
            let this = &self.fabric.datagrams[id];
            if this.holds > 0 && this.arrived < this.fragments {
                self.fabric.follow_fragments(id);
            }
        }
        for id in 0..self.fabric.datagrams.len() {
            if !self.fabric.datagrams.packet(id).is_none() {
                self.note_lines(id);
            }
        }
    }
}
