//! Packet injection: a network whose packets come from real hosts instead of modelled ones. Contract: `docs/model.md`, "Packets from outside".
//!
//! An [`InjectedNetwork`] has a [`Sender`] for every path from one host to another, and cell generators, but no processes and no TCP. A caller injects packets
//! at given instants, and gets a report of each as delivered or lost at the instant that the model computes. The network reads no clock: a caller that waits
//! for [`InjectedNetwork::next_wake`] emulates, a caller that jumps to it simulates.

mod capture;
mod measurement;
mod multicast;
mod nic_queues;
mod pending_copies;
mod reports;

use std::collections::VecDeque;

use engpass_model::queue::Ecn;
use engpass_model::source::poisson::Sizes;
use engpass_model::source::{Live, Poisson, Traffic};
use engpass_model::unit::{Rate, Size};
use engpass_testbed::topology::FlowPath;
use engpass_testbed::{Testbed, Topology, heads};

pub use engpass_model::forward::Transport;
pub use engpass_model::time::FOREVER;
pub use engpass_model::wire::icmp::{Error, Errors, MessageContent};
pub use measurement::LineStats;
use multicast::Group;
use multicast::Groups;
pub(crate) use nic_queues::{InjectedSenders, QueuedPacket, Sender};
pub(crate) use pending_copies::PendingCopies;
pub(crate) use reports::DeliveryReports;

use super::build::build;
use super::flow_counters::DropLocation;
use super::frames::begin_events;
use super::outcome::place_name;
use super::{ADVANCE_INTERVAL, Network, SimError};
use engpass_frames::DecisionMode;

/// A packet to be injected. Its bytes stay with the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Length of the IP packet in bytes, header included.
    pub bytes: u32,
    /// Bytes after the first 20 bytes of IP header that are no payload: transport header, IP options, the rest of an IPv6 header. For the ledger, a packet
    /// without payload is control traffic.
    pub header: u32,
    /// ECN field of its IP header (RFC 3168 section 5).
    pub ecn: Ecn,
    /// Priority of the packet, 7 highest, for disciplines with priorities: the class selector of its DSCP (RFC 2474 section 4.2.2).
    pub priority: u8,
    /// Time to live: the packet passes one router fewer than this.
    pub ttl: u8,
    /// Visible part of the transport header. Disciplines with a queue per flow use it to tell the flows of one path apart.
    pub transport: Transport,
    /// True if routers must not fragment the packet ("don't fragment", and all of IPv6).
    pub whole: bool,
    /// ICMP error messages that routers send about the packet.
    pub errors: Errors,
    /// Number chosen by the caller, which the delivery report returns.
    pub token: u64,
}

impl Default for Packet {
    /// A bare IP header with a TTL of 64, as hosts use.
    fn default() -> Self {
        Self {
            bytes: 20,
            header: 0,
            ecn: Ecn::NotCapable,
            priority: 0,
            ttl: 64,
            transport: Transport::default(),
            whole: false,
            errors: Errors::None,
            token: 0,
        }
    }
}

/// Delivery report of a packet, or of a router's ICMP message about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryReport {
    /// The packet has arrived completely at its host.
    Delivered {
        /// Instant of arrival, in picoseconds.
        at: u64,
        /// Index of the packet's path.
        way: u32,
        /// Token of the packet.
        token: u64,
        /// True if the packet arrives with a congestion mark (CE).
        ce: bool,
        /// Number of routers passed; of a fragmented packet, by the fragment that arrived last.
        routers: u8,
    },
    /// A part of the packet was lost.
    Lost {
        /// Instant of the report, in picoseconds: the loss itself for frames, at most 10 ms later for cells.
        at: u64,
        /// Instant of the first loss of a cell or frame, in picoseconds.
        lost_at: u64,
        /// Index of the packet's path.
        way: u32,
        /// Token of the packet.
        token: u64,
        /// Place and cause of the loss: see [`InjectedNetwork::place`].
        place: ReportedDrop,
        /// True if a router sends an ICMP message about the packet, which gets a report as well.
        message: bool,
    },
    /// A router's ICMP message about a lost packet has arrived at the sender of that packet.
    Message {
        /// Instant of arrival, in picoseconds.
        at: u64,
        /// Index of the packet's path.
        way: u32,
        /// The packet's token.
        token: u64,
        /// Content of the message.
        said: MessageContent,
        /// Number of routers that the message has passed.
        routers: u8,
    },
    /// A router's ICMP message about a lost packet was lost.
    MessageLost {
        /// Instant of the report, in picoseconds.
        at: u64,
        /// Index of the packet's path.
        way: u32,
        /// The packet's token.
        token: u64,
    },
}

impl DeliveryReport {
    /// Returns the instant of the report, in picoseconds.
    pub fn at(&self) -> u64 {
        match *self {
            Self::Delivered { at, .. }
            | Self::Lost { at, .. }
            | Self::Message { at, .. }
            | Self::MessageLost { at, .. } => at,
        }
    }

    /// Returns the token of the reported packet.
    pub fn token(&self) -> u64 {
        match *self {
            Self::Delivered { token, .. }
            | Self::Lost { token, .. }
            | Self::Message { token, .. }
            | Self::MessageLost { token, .. } => token,
        }
    }
}

/// Place and cause of a loss. [`InjectedNetwork::place`] returns them in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedDrop {
    place: DropLocation,
    way: u32,
}

/// A path from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// Index of the sending host in the testbed.
    pub from: usize,
    /// Index of the receiving host.
    pub to: usize,
    /// Name of the path: `FROM to TO`.
    pub name: String,
    /// Path MTU: the largest IP packet that reaches the receiver unfragmented, in bytes.
    pub mtu: u64,
    /// The largest IP packet that leaves the sending host unfragmented, in bytes.
    pub first_mtu: u64,
}

/// Identical packets that were injected for an instant that has not come.
#[derive(Clone, Copy, Debug)]
struct Input {
    at: u64,
    way: u32,
    packet: Packet,
    count: u32,
    /// Key of the packet's copies in [`Groups`]; 0 if there are none.
    copies: u64,
}

/// A network in virtual time with packet injection.
pub struct InjectedNetwork {
    network: Network,
    /// The testbed from which the network is built: its generators, followed by a flow for every path.
    testbed: Testbed,
    topology: Topology,
    ways: Vec<PathInfo>,
    inputs: VecDeque<Input>,
    /// Number of packets that have entered the network.
    injected: u64,
    /// Virtual time that the network has reached, in picoseconds: all events up to this instant were handled.
    reached: u64,
    /// Earliest instant for the next injection, in picoseconds.
    earliest: u64,
    /// Number of events handled before the measurement window.
    handled: u64,
    /// True if the events of the testbed file have been started.
    has_events: bool,
}

impl InjectedNetwork {
    /// Builds the network at time zero, for one seed. Its generators start at once, its events with [`Self::begin_events`]. The caller injects all other
    /// traffic.
    ///
    /// # Errors
    /// [`SimError::Unsupported`] if too many equally short paths part and meet.
    pub fn new(testbed: &Testbed, topology: &Topology, seed: u64) -> Result<Self, SimError> {
        let mut all = Testbed { traffic: Default::default(), ..testbed.clone() };
        let mut flows = Vec::new();
        for ((name, traffic), flow) in testbed.traffic.iter().zip(&topology.flows) {
            if traffic.cells().is_some() {
                all.traffic.insert(name.clone(), traffic.clone());
                flows.push(flow.clone());
            }
        }
        let mut ways = Vec::new();
        for mut flow in topology.between_hosts(testbed) {
            while all.traffic.contains_key(&flow.name) {
                flow.name.push('\'');
            }
            let (from, to, mtu, first_mtu) = (flow.from, flow.to, flow.path_mtu, flow.mtu);
            ways.push(PathInfo { from, to, name: flow.name.clone(), mtu, first_mtu });
            all.traffic.insert(flow.name.clone(), stand_in(&flow, topology));
            flows.push(flow);
        }
        let declared = topology;
        let topology = Topology { flows, ..declared.clone() };
        // Nothing is counted before the first measurement window.
        let mut network =
            build(&all, &topology, seed, measurement::CLOSED, (true, DecisionMode::Choices, None))?;
        network.shared.ledger.enable_deferral();
        network.frames.update_posting(|port| network.shared.ledger.needs_every_transmission(port));
        let reports = network.shared.reports.as_mut().expect("an injected network has delivery reports");
        reports.has_cells = !network.shared.vcs.is_empty();
        // Disciplines number flows in the order of the traffic tables; flows that appear later follow.
        for (place, (flow, traffic)) in declared.flows.iter().zip(testbed.traffic.values()).enumerate() {
            if traffic.cells().is_none()
                && let Some(way) = ways.iter().position(|way| (way.from, way.to) == (flow.from, flow.to))
            {
                let transport = heads(testbed, declared, place, 0).transport();
                reports.number_of(way as u32, transport);
            }
        }
        network.clock.next_advance =
            if network.cells.sources.is_empty() { u64::MAX } else { ADVANCE_INTERVAL };
        Ok(Self {
            network,
            testbed: all,
            topology,
            ways,
            inputs: VecDeque::new(),
            injected: 0,
            reached: 0,
            earliest: 0,
            handled: 0,
            has_events: false,
        })
    }

    /// Starts the events of the testbed file at `at`, in picoseconds, unless they have been started; if the network has run beyond `at`, as soon as possible.
    /// Times in the file are relative to this instant, which is returned. Events occur for as long as the network runs.
    pub fn begin_events(&mut self, at: u64) -> u64 {
        let at = at.max(self.reached).max(self.earliest).min(FOREVER);
        if !std::mem::replace(&mut self.has_events, true) {
            let network = &mut self.network;
            begin_events(at, &mut network.frames, &network.shared, &mut network.clock);
        }
        at
    }

    /// Returns the paths between hosts, sorted by sender, then by receiver.
    pub fn ways(&self) -> &[PathInfo] {
        &self.ways
    }

    /// Injects a packet: its host hands it to the NIC at `at`, in picoseconds, or as soon as possible if the network has run beyond that. Packets of one
    /// instant keep the order of injection. Returns the instant.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn inject(&mut self, at: u64, way: u32, packet: Packet) -> u64 {
        self.inject_identical(at, way, packet, 1)
    }

    /// Injects `count` identical packets one after the other, with consecutive tokens. Their reports equal those of single injections; the work is less if
    /// nothing shares their line.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn inject_identical(&mut self, at: u64, way: u32, packet: Packet, count: u32) -> u64 {
        assert!((way as usize) < self.ways.len(), "the path of an injected packet exists");
        let at = at.max(self.reached).max(self.earliest).min(FOREVER);
        self.insert_input(Input { at, way, packet, count, copies: 0 });
        at
    }

    fn insert_input(&mut self, input: Input) {
        let place = self.inputs.iter().rev().take_while(|other| other.at > input.at).count();
        if place == 0 {
            self.inputs.push_back(input);
        } else {
            self.inputs.insert(self.inputs.len() - place, input);
        }
    }

    /// Defines a multicast or broadcast group: the hosts in `members` to which there is a path from `from`. Must be called before any injection. Returns the
    /// number of the group; [`Self::members`] returns its paths.
    pub fn group(&mut self, from: usize, members: &[usize]) -> u32 {
        let way = |to: &usize| self.ways.iter().position(|way| (way.from, way.to) == (from, *to));
        let ways = members.iter().filter_map(way).map(|way| way as u32).collect();
        let network = &mut self.network;
        let group = Group::new(ways, |way| network.injected.sender(way as usize).way, &network.frames);
        if group.has_copies() {
            // Copies come to a port only when they are made, so no packet may pass a port ahead of time.
            network.disable_lookahead();
        }
        network.injected.groups.add(group)
    }

    /// Returns the paths to the members of a group.
    pub fn members(&self, group: u32) -> &[u32] {
        &self.network.injected.groups.get(group).ways
    }

    /// Injects one packet for all members of a group, like [`Self::inject`]. A line that leads to several members carries the packet once, and nodes copy it
    /// where paths part; every circuit carries a packet of its own. `tokens` has one token for each member, in the order of [`Self::members`]; the token in
    /// `packet` is not used. Each member gets a report.
    ///
    /// # Panics
    /// If there is no such group, if the number of tokens is wrong, or if the packet exceeds the MTU of a path to a member.
    pub fn inject_group(&mut self, at: u64, group: u32, packet: Packet, tokens: &[u64]) -> u64 {
        let members = self.members(group);
        assert_eq!(members.len(), tokens.len(), "every member has a token");
        let fits = |way: &u32| u64::from(packet.bytes) <= self.ways[*way as usize].mtu;
        assert!(members.iter().all(fits), "a group packet fits the MTU of every member's path");
        let at = at.max(self.reached).max(self.earliest).min(FOREVER);
        for (way, token, copies) in self.network.injected.groups.send(group, tokens) {
            self.insert_input(Input { at, way, packet: Packet { token, ..packet }, count: 1, copies });
        }
        at
    }

    /// Returns the number of injected packets and routers' messages that were not reported yet.
    pub fn count_unreported(&self) -> u64 {
        let reports = self.network.shared.reports.as_ref();
        let waiting: u64 = self.inputs.iter().map(|input| u64::from(input.count)).sum();
        waiting + reports.map_or(0, |reports| reports.count_unreported())
    }

    /// Returns the number of packets of a host that wait for room in its NICs. While packets wait, a real host would be held back.
    pub fn backlog(&self, host: usize) -> usize {
        self.network.injected.backlog(host)
    }

    /// Runs up to and including `at`, in picoseconds, and passes delivery reports to `each`, in order of time.
    pub fn run_until(&mut self, at: u64, each: &mut impl FnMut(DeliveryReport)) {
        let at = at.min(FOREVER);
        while let Some(&input) = self.inputs.front().filter(|input| input.at <= at) {
            self.inputs.pop_front();
            self.enter(input);
        }
        self.run_network(at);
        self.pass_reports(each);
        self.reached = self.reached.max(at);
    }

    /// Passes injected packets whose instant has come to their sender.
    fn enter(&mut self, Input { at, way, mut packet, mut count, copies }: Input) {
        while count > 0 {
            self.run_network(at);
            let (sender, number) = (way as usize, self.injected);
            let way = self.network.injected.sender(sender).way;
            let first = QueuedPacket { sender, way, packet, since: self.network.clock.now, number, copies };
            let mut come = self.network.try_inject_train(&first, count);
            if come == 0 {
                self.network.on_packet_injected(first);
                come = 1;
            }
            // There may be cells from now on.
            self.network.clock.resume_sweeps();
            self.injected += u64::from(come);
            packet.token = packet.token.wrapping_add(come.into());
            count -= come;
        }
    }

    fn run_network(&mut self, until: u64) {
        self.network.run_until(until, &|| false).expect("nothing interrupts the run");
    }

    fn pass_reports(&mut self, each: &mut impl FnMut(DeliveryReport)) {
        if let Some(reports) = &mut self.network.shared.reports {
            reports.drain_reports(each);
        }
    }

    /// Returns the instant of the network's next activity, in picoseconds, if nothing is injected before; `None` if there is none.
    pub fn next_wake(&mut self) -> Option<u64> {
        // The caller has time now, because it has received all reports so far.
        self.network.shared.post_batch_until(self.reached);
        let input = self.inputs.front().map(|input| input.at);
        let sweep = Some(self.network.clock.next_advance).filter(|at| *at <= FOREVER);
        let wakes = [input, self.network.clock.events.next(), sweep];
        wakes.into_iter().flatten().min()
    }

    /// Returns the place of a loss, a transmitter (`switch -> host`) or a node, and the cause.
    pub fn place(&self, lost: ReportedDrop) -> (engpass_outcome::Place, &'static str) {
        let flow = self.topology.flows.len() - self.ways.len() + lost.way as usize;
        let (place, cause, _) =
            place_name(&self.network.frames, lost.place, &self.topology, self.topology.flows[flow].to);
        (place, cause)
    }
}

/// Returns a traffic that stands for a path in the testbed: datagrams of any length. No process is built from it.
fn stand_in(flow: &FlowPath, topology: &Topology) -> Traffic {
    Traffic::Poisson(Poisson {
        from: topology.nodes[flow.from].clone(),
        to: topology.nodes[flow.to].clone(),
        message: Size(1),
        rate: Rate(1),
        sizes: Sizes::Fixed,
        circuit: None,
        send_path: None,
        receive_path: None,
        receive_buffer: None,
        live: Live::default(),
        priority: 0,
        ttl: u8::MAX,
        start: None,
        stop: None,
    })
}
