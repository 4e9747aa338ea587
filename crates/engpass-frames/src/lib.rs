//! Ethernet and point-to-point links: their ports, and the routes of packets over switches and routers.
//!
//! The crate holds the state of frame links and the rules by which it changes. It has no state of hosts or TCP, no ledger and no event queue. Its functions
//! return what has happened. The engine `simulate` then schedules events, tells the ledger, and reports losses and deliveries. Of a circuit, the crate knows the
//! entry and the queue there, but no cells.
//!
//! - A [`FramePort`] has a queue, a transmitter and a line. It knows when a packet leaves as soon as the packet arrives, unless its queue discipline chooses
//!   packets when the line is free.
//! - A [`Packet`] is at a [`Step`] of its [`Route`]. [`Frames::steps`] holds the steps of all routes. Each has a [`Verdict`].
//! - [`Choices`] holds the policies that choose paths, [`Tunnels`] the state of packets in tunnels, [`Frames`] also that of bonds.
//! - [`Resolution`] (ARP), [`Icmp`], [`Igmp`] and [`Keepalives`] hold the tables of packets that nodes make for themselves.
//!
//! A line that is the only feeder of a port hands it each packet ahead of time, together with the instant of arrival, as soon as it knows the departure
//! (lookahead, [`LookaheadRule`]).

mod arp;
mod bonds;
mod branches;
mod build;
mod choices;
mod circuits;
mod control;
mod engines;
mod forwarding_engine;
mod fragmentation;
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
mod port;
mod port_counts;
mod routes;
mod runs;
mod steps;
mod transmit_ring;
mod tunnels;
mod verdict;

use std::collections::BTreeMap;

use engpass_model::queue::{self, Cause};
use engpass_testbed::topology::NodeId;

pub use arp::{ALL_NEIGHBOURS, ArpMessage, Resolution};
pub use choices::Choices;
pub use circuits::{CircuitQueue, Entry};
pub use control::ControlKind;
pub use engines::{Arrival, Switching};
pub use forwarding_engine::{EngineResult, ForwardingEngine};
pub use fragmentation::Stop;
pub use icmp::{Icmp, IcmpRoute};
pub use idle::Crossing;
pub use igmp::{Igmp, Reporter};
pub use impairments::InFlightFrame;
pub use keepalive::Keepalives;
pub use lookahead_rules::LookaheadRule;
pub use outage::NextChange;
pub use packet::Packet;
pub use port::{AdmitResult, Departure, FastPathResult, FramePort};
pub use port_counts::{CongestionMarks, PortTally};
pub use routes::{RouteLine, TooManyPaths, choices_are_known};
pub(crate) use steps::NONE;
pub use steps::{Lookahead, Route, Step};
pub use tunnels::{EndedReassembly, Gathered, OuterCut, TunnelArrival, Tunnels};
pub use verdict::{Verdict, tunnel_of};

/// State of all frame links: ports, the step table that packets walk, routers and the policies that choose paths.
#[derive(Default)]
pub struct Frames {
    /// Transmitters of the links that carry frames.
    pub ports: Vec<FramePort>,
    /// By transmitter, its index in `ports`; [`NONE`] if its link carries cells.
    port_indices: Vec<u32>,
    /// Routes of every flow: that of the data at `2 * flow`, that of the reverse direction at `2 * flow + 1`. Further routes follow.
    pub routes: Vec<Route>,
    /// The step table: the steps of all routes in one array. A step with [`Verdict::Up`] ends each route.
    pub steps: Vec<Step>,
    /// The engines of all routers: first the route processors, in the order of the file, then the line cards.
    pub engines: Vec<ForwardingEngine>,
    /// Routers whose work depends on the packet: which engine works on it, and how long.
    pub switching: Switching,
    /// Nodes at the ends of every link; empty if the testbed has no events.
    link_ends: Vec<[NodeId; 2]>,
    /// For each circuit direction, the node at which packets enter it and become cells.
    pub entries: Vec<Entry>,
    /// Decision steps with their policies.
    pub choices: Choices,
    /// From this step index on, steps belong to routes with decision steps.
    branched: u32,
    /// By step from `branched` on, its trail: the indices of the lines before it.
    pub trails: Vec<Box<[u16]>>,
    /// Lines of each route with decision steps, by line index. The key is the index of the route's first step in `steps`.
    branched_lines: BTreeMap<u32, Vec<RouteLine>>,
    /// Routes of senders whose route differs from that of their flow, by flow, connection and direction (0 for data).
    own_routes: BTreeMap<(usize, u32, usize), u32>,
    /// By transmitter: true if data of some flow could use its line, if policies chose that.
    pub usable_for_data: Vec<bool>,
    /// The nodes whose policies decide for every packet.
    decision_mode: DecisionMode,
    /// Test switch: a lookahead rule to ignore, to prove that the rule is needed.
    disabled_rule: Option<LookaheadRule>,
    /// Scratch buffer: packets that the queue discipline dropped in the current call.
    pub dropped: Vec<(queue::Packet, Cause)>,
    /// Test switch: disables lookahead, so that every hop schedules an event.
    lookahead_disabled: bool,
    /// Number of packets that queue disciplines have marked in the measurement window, by transmitter.
    pub marks: CongestionMarks,
    /// ICMP messages of routers.
    pub icmp: Icmp,
    /// Address resolution by routers.
    pub arp: Resolution,
    /// IGMP messages of receivers that join and leave.
    pub igmp: Igmp,
    /// Keepalives of tunnels.
    pub keepalives: Keepalives,
    /// Tunnels, with the packets in them.
    pub tunnels: Tunnels,
    bonds: bonds::Bonds,
    /// By event of the testbed file: its next change of a line.
    pub changes: Vec<NextChange>,
    /// Routes of the branches of all multicast trees, tree by tree.
    pub branches: Vec<u32>,
}

/// The lines that a packet has crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossedLines {
    /// The first lines of its route: their number.
    First(u16),
    /// The lines of a trail, on a route with decision steps: the index of the trail in [`Frames::trails`].
    Trail(u32),
}

/// The nodes whose policies decide for every packet, on routes with choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionMode {
    /// Only nodes whose choice is not known when the network is built.
    #[default]
    Unknown,
    /// All nodes with a choice, because the headers of injected packets are unknown before they arrive.
    Choices,
    /// Every router, for a test that this changes nothing.
    Routers,
}

impl Frames {
    /// Sets which lines report each of their transmissions: those with a transmitter for which `needs` returns true.
    pub fn update_posting(&mut self, needs: impl Fn(usize) -> bool) {
        self.ports.iter_mut().for_each(|line| line.posts_each_packet = needs(line.port as usize));
    }

    /// Returns the frame port of this transmitter; `None` if it sends cells.
    #[inline]
    pub fn port(&self, port: usize) -> Option<&FramePort> {
        // Links of cells have the index `NONE`, for which `get` finds nothing.
        self.ports.get(self.port_indices[port] as usize)
    }

    /// Like [`Self::port`], to change the port.
    #[inline]
    pub fn port_mut(&mut self, port: usize) -> Option<&mut FramePort> {
        self.ports.get_mut(self.port_indices[port] as usize)
    }

    /// Returns the index in [`Self::ports`] of a transmitter; its link must carry frames.
    #[inline]
    pub fn port_index(&self, port: usize) -> u32 {
        self.port_indices[port]
    }

    /// Test switch: disables lookahead, so that every hop schedules an event.
    pub fn disable_lookahead(&mut self) {
        self.lookahead_disabled = true;
        self.steps.iter_mut().for_each(|step| step.lookahead = Lookahead::None);
    }

    /// Returns true if the condition `holds`, or if a test disables this rule.
    #[inline]
    pub fn rule_holds(&self, rule: LookaheadRule, holds: bool) -> bool {
        holds || self.disabled_rule == Some(rule)
    }

    /// Returns the lines that a packet at step `place` has crossed.
    #[inline(always)]
    pub fn crossed_lines(&self, place: u32) -> CrossedLines {
        match place.checked_sub(self.branched) {
            None => CrossedLines::First(self.steps[place as usize].line_index),
            Some(trail) => CrossedLines::Trail(trail),
        }
    }

    /// Returns how many packets of `ip` bytes, sent one after the other from `now` on, surely find room in all queues behind the first line of a route without
    /// decision steps. Returns 0 if a line does not hand packets ahead of time, if `is_shared` is true for its transmitter, or if a router stops the packets.
    pub fn room_behind_first_line(
        &mut self,
        route: u32,
        (ip, mut ttl): (u32, u8),
        now: u64,
        is_shared: impl Fn(usize) -> bool,
    ) -> u64 {
        let Route { first, hops, .. } = self.routes[route as usize];
        let mut most = u64::MAX;
        for place in first + 1..first + u32::from(hops) {
            let (before, step) = (self.steps[place as usize - 1], self.steps[place as usize]);
            let line = &mut self.ports[step.port() as usize];
            if step.is_routed() {
                ttl = ttl.saturating_sub(1);
            }
            if !before.delivers_ahead()
                || is_shared(line.port as usize)
                || step.is_routed() && (ttl == 0 || ip > step.mtu)
            {
                return 0;
            }
            most = most.min(line.has_room_for(now, ip));
        }
        most
    }

    /// Returns the step at which this trail of a route with decision steps ends.
    #[inline]
    pub fn step_behind_trail(&self, trail: u32) -> u32 {
        self.branched + trail
    }

    /// Returns the number of lines that a packet has crossed before step `place`.
    #[inline]
    pub fn lines_before(&self, place: u32) -> u16 {
        match place.checked_sub(self.branched) {
            None => self.steps[place as usize].line_index,
            Some(branched) => self.trails[branched as usize].len() as u16,
        }
    }

    /// Returns the transmitter of the line over which a packet came to step `place`.
    pub fn last_line(&self, place: u32) -> usize {
        let mut steps = self.carried(place, 0).map(|there| self.steps[there as usize]);
        let carries = |step: &Step| step.is_line() || self.entry(*step).is_some();
        let step = steps.find(carries).expect("a packet at a router has crossed a line");
        match self.entry(step) {
            Some(entry) => entry.ports[entry.ports.len() - 1],
            None => self.ports[step.port() as usize].port as usize,
        }
    }

    /// Iterates backwards over the indices of the steps that a packet at `place` has taken, marks included, without the first `since` lines of its route.
    pub fn carried(&self, place: u32, since: u16) -> impl Iterator<Item = u32> {
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
