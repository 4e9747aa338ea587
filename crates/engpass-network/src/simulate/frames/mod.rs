//! Ethernet and point-to-point links: their ports, switches and routers.
//!
//! A FIFO port knows when a packet leaves as soon as the packet arrives. Therefore a packet needs an event only at its host and at ports that several lines
//! feed. A line that is the only feeder of a port hands it each packet ahead of time, together with the instant of arrival, as soon as it knows the departure
//! (lookahead). A line has at most one pending event, however many packets are on it.

mod arp;
mod arrival;
mod bonds;
mod branches;
mod build;
mod choices;
mod circuits;
mod control;
mod drops;
mod egress;
mod engines;
mod fast_path;
mod fragmentation;
mod hop;
mod icmp;
mod idle;
mod igmp;
mod impairments;
mod keepalive;
mod lengths;
mod line_clock;
mod lookahead_rules;
mod outage;
mod packet;
mod packet_trains;
mod port;
mod port_counts;
mod routes;
mod runs;
mod tcp_fast_path;
mod transmit_ring;
mod tunnels;
mod verdict;

use std::collections::BTreeMap;

use engpass_ledger::{Ledger, Trail};
use engpass_model::engine::BusyTime;
use engpass_model::line::Transmission;
use engpass_model::queue::{self, Backlog, Cause, Ecn};
use engpass_model::unit::QueueLimit;
use engpass_testbed::topology::NodeId;

use super::Network;
use super::ready_packet::ReadyPacket;
use super::shared_state::SharedState;
use arp::Resolution;
use bonds::Bonds;
use choices::Choices;
use circuits::Entry;
use engines::Switching;
use icmp::Icmp;
pub(super) use idle::Crossing;
use igmp::Igmp;
use keepalive::Keepalives;
pub use lookahead_rules::LookaheadRule;
pub(super) use outage::NextChange;
pub(super) use packet::Packet;
pub(super) use port::FramePort;
use port_counts::CongestionMarks;
pub(super) use port_counts::PortTally;
pub(super) use routes::RouteLine;
pub(crate) use routes::choices_are_known;
use tunnels::Tunnels;
pub(super) use verdict::{Verdict, tunnel_of};

/// State of all frame links: ports, the step table that packets walk, routers and the policies that choose paths.
#[derive(Default)]
pub(super) struct Frames {
    /// Transmitters of the links that carry frames.
    pub(super) ports: Vec<FramePort>,
    /// By transmitter, its index in `ports`; [`NONE`] if its link carries cells.
    port_indices: Vec<u32>,
    /// Routes of every flow: that of the data at `2 * flow`, that of the reverse direction at `2 * flow + 1`. Further routes follow.
    pub(super) routes: Vec<Route>,
    /// The step table: the steps of all routes in one array. A mark ends each route.
    steps: Vec<Step>,
    /// The engines of all routers: first the route processors, in the order of the file, then the line cards.
    pub(super) engines: Vec<ForwardingEngine>,
    /// Which of them work on a packet.
    pub(super) switching: Switching,
    /// Nodes at the ends of every link; empty if the testbed has no events.
    link_ends: Vec<[NodeId; 2]>,
    seed: u64,
    /// For each circuit direction, the node at which packets enter it and become cells.
    entries: Vec<Entry>,
    /// Decision steps with their policies.
    pub(super) choices: Choices,
    /// From this step index on, steps belong to routes with decision steps.
    branched: u32,
    /// By step from `branched` on, its trail: the indices of the lines before it.
    pub(super) trails: Vec<Box<[u16]>>,
    /// Lines of each route with decision steps, by line index. The key is the index of the route's first step in `steps`.
    branched_lines: BTreeMap<u32, Vec<RouteLine>>,
    /// Routes of senders whose route differs from that of their flow, by flow, connection and direction (0 for data).
    own_routes: BTreeMap<(usize, u32, usize), u32>,
    /// By transmitter: true if data of some flow could use its line, if policies chose that.
    pub(super) usable_for_data: Vec<bool>,
    /// The nodes whose policies decide for every packet.
    decision_mode: DecisionMode,
    /// Test switch: a lookahead rule to ignore, to prove that the rule is needed.
    pub(super) disabled_rule: Option<LookaheadRule>,
    /// Scratch buffer: packets that the queue discipline dropped in the current call.
    dropped: Vec<(queue::Packet, Cause)>,
    /// Test switch: disables lookahead, so that every hop schedules an event.
    lookahead_disabled: bool,
    /// Number of packets that queue disciplines have marked.
    pub(super) marks: CongestionMarks,
    /// ICMP messages of routers.
    pub(super) icmp: Icmp,
    pub(super) arp: Resolution,
    /// IGMP messages of receivers that join and leave.
    pub(super) igmp: Igmp,
    pub(super) keepalives: Keepalives,
    /// Index of the counters of ARP packets, IGMP messages and keepalives, which follow those of all flows.
    pub(super) control_counters: u32,
    pub(super) tunnels: Tunnels,
    bonds: Bonds,
    /// Routes of the branches of all multicast trees, tree by tree.
    pub(super) branches: Vec<u32>,
}

/// The path of a flow direction: its first step, with the priority and TTL of its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    first: u32,
    /// Number of lines; 0 if the route has decision steps, circuits, tunnels or holds.
    pub(super) hops: u16,
    ttl: u8,
    priority: u8,
}

/// One entry of the step table: a verdict on packets that have come to this place of their route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) verdict: Verdict,
    /// Index of the router that does it; [`NONE`] if a host or switch does.
    router: u32,
    pub(super) mtu: u32,
    /// Line index: position of this line among the lines of the route. At the end of a route, the number of its lines.
    pub(super) line_index: u16,
    /// The receiver of packets ahead of time (lookahead).
    lookahead: Lookahead,
    /// True if an arriving packet does not continue at once: a router's forwarding engine, a circuit, a tunnel, a policy or address resolution comes first.
    takes_time: bool,
}

/// The nodes whose policies decide for every packet, on routes with choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DecisionMode {
    /// Only nodes whose choice is not known when the network is built.
    #[default]
    Unknown,
    /// All nodes with a choice, because the headers of injected packets are unknown before they arrive.
    Choices,
    /// Every router, for a test that this changes nothing.
    Routers,
}

/// The receiver to which a line hands packets ahead of time (lookahead).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lookahead {
    None,
    /// The next port.
    NextPort,
    /// The host after the last hop, if only this line brings it work.
    Host,
}

/// In place of an index, "none".
const NONE: u32 = u32::MAX;

impl Step {
    /// The end of a route.
    const END: Self = Self {
        verdict: Verdict::Up,
        router: NONE,
        mtu: 0,
        line_index: 0,
        lookahead: Lookahead::None,
        takes_time: false,
    };

    /// Returns the index of the frame port by which packets leave.
    ///
    /// # Panics
    /// If they do not leave by a frame port.
    #[inline(always)]
    pub(super) fn port(&self) -> u32 {
        match self.verdict {
            Verdict::Out(port) => port,
            _ => unreachable!("only a line has a frame port"),
        }
    }

    /// Returns true if this step is a hop over one frame line.
    #[inline(always)]
    fn is_line(&self) -> bool {
        matches!(self.verdict, Verdict::Out(_))
    }

    /// Returns true if this step is the end of a route.
    #[inline(always)]
    fn is_end(&self) -> bool {
        self.verdict == Verdict::Up
    }

    /// Returns true if a router does what the verdict says.
    #[inline(always)]
    pub(super) fn is_routed(&self) -> bool {
        self.router != NONE
    }

    /// Returns true if the step's line hands packets to the next port ahead of time.
    #[inline(always)]
    fn delivers_ahead(&self) -> bool {
        self.lookahead == Lookahead::NextPort
    }
}

impl Frames {
    /// Makes every line whose transmissions the ledger needs report each of them.
    pub(super) fn update_posting(&mut self, ledger: &Ledger) {
        self.ports
            .iter_mut()
            .for_each(|line| line.posts_each_packet = ledger.needs_every_transmission(line.port as usize));
    }

    /// Returns the frame port of this transmitter; `None` if it sends cells.
    #[inline]
    pub(super) fn port(&self, port: usize) -> Option<&FramePort> {
        // Links of cells have the index `NONE`, for which `get` finds nothing.
        self.ports.get(self.port_indices[port] as usize)
    }

    #[inline]
    pub(super) fn port_mut(&mut self, port: usize) -> Option<&mut FramePort> {
        self.ports.get_mut(self.port_indices[port] as usize)
    }

    /// Returns the longest queue in front of a transmitter of a switch or router: its own, or those of circuits that begin there. `None` without a queue.
    pub(super) fn longest_queue(&self, port: usize) -> Option<Backlog> {
        match self.port(port) {
            Some(line) => line.longest_queue(),
            None => {
                let own = self.entries.iter().filter(|entry| entry.ports[0] == port);
                own.filter_map(Entry::longest_queue).reduce(|one, other| Backlog {
                    bytes: one.bytes.max(other.bytes),
                    packets: one.packets.max(other.packets),
                })
            }
        }
    }

    /// Returns true if the condition `holds`, or if a test disables this rule.
    #[inline]
    pub(super) fn rule_holds(&self, rule: LookaheadRule, holds: bool) -> bool {
        holds || self.disabled_rule == Some(rule)
    }

    /// Returns the trail of a packet that is at step `place`.
    #[inline(always)]
    pub(super) fn trail(&self, place: u32) -> Trail {
        match place.checked_sub(self.branched) {
            None => Trail::along(self.steps[place as usize].line_index),
            Some(branched) => Trail::listed(branched),
        }
    }

    /// Returns the step at which a trail of a route with decision steps ends; `None` for trails of other routes.
    #[inline]
    pub(super) fn end_of_trail(&self, trail: Trail) -> Option<u32> {
        trail.index().map(|index| self.branched + index)
    }

    /// Returns the number of lines that a packet has crossed before step `place`.
    fn lines_before(&self, place: u32) -> u16 {
        match place.checked_sub(self.branched) {
            None => self.steps[place as usize].line_index,
            Some(branched) => self.trails[branched as usize].len() as u16,
        }
    }

    /// Returns the transmitter of the line over which a packet came to step `place`.
    fn last_line(&self, place: u32) -> usize {
        let mut steps = self.carried(place, 0).map(|there| self.steps[there as usize]);
        let carries = |step: &Step| step.is_line() || self.entry(*step).is_some();
        let step = steps.find(carries).expect("a packet at a router has crossed a line");
        match self.entry(step) {
            Some(entry) => entry.ports[entry.ports.len() - 1],
            None => self.ports[step.port() as usize].port as usize,
        }
    }

    /// Iterates backwards over the indices of the steps that a packet at `place` has taken, marks included, without the first `since` lines of its route.
    fn carried(&self, place: u32, since: u16) -> impl Iterator<Item = u32> {
        let mut at = place as usize;
        std::iter::from_fn(move || {
            loop {
                at = at.checked_sub(1)?;
                let step = &self.steps[at];
                if let Verdict::Result(decision_step) = step.verdict {
                    at = decision_step as usize;
                    continue;
                }
                return (!step.is_end() && self.lines_before(at as u32) >= since).then_some(at as u32);
            }
        })
    }
}

impl ForwardingEngine {
    /// Returns true if packets never wait at this router.
    pub(super) fn takes_no_time(&self) -> bool {
        !self.takes_time
    }
}

impl SharedState {
    /// Brings the records of a line up to date before an arrival at `at`: starts the line's measurement if it is due, and takes the samples of a timeline.
    #[inline(always)]
    fn catch_up_before(&mut self, line: &mut FramePort, at: u64) {
        if line.window_is_due(at)
            && let Some(from) = line.begin_window()
        {
            self.ledger.begin_window_on_frame_line(line, from);
        }
        if let Some(trace) = &mut self.trace {
            trace.sample_queue_before(line.port as usize, at, line);
        }
    }
}

/// The forwarding engine of a router: processes one packet at a time.
#[derive(Debug, Default)]
pub(super) struct ForwardingEngine {
    pub(super) node: usize,
    pub(super) per_packet: u64,
    /// Time for each copy of a multicast packet beyond the first, in picoseconds.
    pub(super) per_copy: u64,
    /// Bound of the input queue; `None` if there is no bound.
    input_limit: Option<QueueLimit>,
    /// Bytes of the packets that wait for the engine or are in it.
    bytes: u64,
    pub(super) busy: BusyTime,
    /// Of a route processor: some engine of the router takes time.
    takes_time: bool,
    /// It never works ahead of virtual time: its input queue is bounded, its work depends on the packet, copies take time, or some packets need a decision, a copy, a tunnel or an address when it finishes them.
    never_ahead: bool,
    /// Packets that wait for the engine or are in it, in order: the instant at which each is finished, and its packet number.
    packets: std::collections::VecDeque<(u64, u32)>,
}

impl ForwardingEngine {
    /// Returns true if the input queue has room for a packet of `ip` bytes.
    fn has_room(&self, ip: u32) -> bool {
        let held = Backlog { bytes: self.bytes, packets: self.packets.len() as u64 };
        self.input_limit.is_none_or(|room| held.has_room(room, ip))
    }

    /// Adds a packet of `ip` bytes, which it finishes at `done`.
    fn hold(&mut self, done: u64, packet: u32, ip: u32) {
        self.bytes += u64::from(ip);
        self.packets.push_back((done, packet));
    }
}

impl Network {
    /// Test switch: disables lookahead, so that every packet has an event at every hop. The outcome must not change.
    #[doc(hidden)]
    pub fn disable_lookahead(&mut self) {
        self.frames.lookahead_disabled = true;
        self.frames.steps.iter_mut().for_each(|step| step.lookahead = Lookahead::None);
    }

    /// Creates the packet that a host hands to its NIC, and returns its number.
    #[inline(always)]
    fn packet_of(&mut self, sender: usize, ready_packet: &ReadyPacket, route: u32) -> u32 {
        let Route { first, priority, ttl, .. } = self.frames.routes[route as usize];
        let (datagram, ip, offset) = (ready_packet.datagram, ready_packet.ip as u32, ready_packet.offset);
        let this = &mut self.shared.datagrams[datagram];
        this.refs += 1;
        let ecn = match this.to.get().map(|_| self.shared.datagrams.segment(datagram)) {
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
        if let Some(reports) = &self.shared.reports {
            let head = reports.head(datagram);
            (packet.ecn, packet.priority) = (head.ecn, head.priority);
            (packet.ttl, packet.sender) = (head.ttl, head.flow);
        }
        self.shared.datagrams.insert_packet(packet)
    }

    /// Tells the ledger that an edge of the window cuts a transmission on the line of step `place`: the packet does not count as carried there.
    #[cold]
    #[inline(never)]
    fn clip_to_window(&mut self, place: u32, id: u32, sent: &Transmission) {
        if self.shared.ledger.deferred.is_some() {
            // With deferred postings, the transmission is posted when it has ended.
            return;
        }
        let Packet { datagram, ip, .. } = *self.shared.datagrams.packet(id);
        let step = self.frames.steps[place as usize];
        let line = &self.frames.ports[step.port() as usize];
        self.shared.ledger.clip_to_window(line.port as usize, sent);
        self.shared.track_per_hop(datagram);
        self.shared.ledger.write(datagram, step.line_index, line.queue_bytes(ip), true);
    }

    /// Records which lines have carried a packet that leaves the network, or that is in flight at the end of the run.
    #[inline(always)]
    fn record_hops_carried(&mut self, id: u32) {
        let Packet { datagram, place, .. } = *self.shared.datagrams.packet(id);
        let this = &mut self.shared.datagrams[datagram];
        this.trail = self.frames.trail(place);
        if this.tracked_per_hop && self.shared.ledger.deferred.is_none() {
            self.record_bytes_per_hop(id);
        }
    }

    /// Records in the ledger, line by line, the bytes of a packet on the lines that carried it.
    #[inline(never)]
    fn record_bytes_per_hop(&mut self, id: u32) {
        let packet = *self.shared.datagrams.packet(id);
        let Packet { datagram, ip, place, since, .. } = packet;
        let branched = self.frames.is_branched(place);
        for there in self.frames.carried(place, since) {
            let step = self.frames.steps[there as usize];
            if !step.is_line() {
                continue;
            }
            let line = &self.frames.ports[step.port() as usize];
            let bytes = line.queue_bytes(self.frames.length_at(ip, place, there));
            self.shared.ledger.write(datagram, step.line_index, bytes, false);
            if branched {
                let piece = self.frames.piece(id, &packet, there);
                self.shared.ledger.track_packet(datagram, step.line_index, piece);
            }
        }
    }

    /// Records, at the end of the run, which lines have carried the packets in flight.
    pub(super) fn record_packets_in_flight(&mut self) {
        let datagrams = &mut self.shared.datagrams;
        datagrams.forget_free();
        // The per-hop records must exist before the first packet is recorded.
        for id in 0..datagrams.len() {
            let this = &self.shared.datagrams[id];
            if this.refs > 0 && this.arrived < this.fragments {
                self.shared.track_fragments_per_hop(id);
            }
        }
        for id in 0..self.shared.datagrams.len() {
            if !self.shared.datagrams.packet(id).is_none() {
                self.record_hops_carried(id);
            }
        }
    }
}
