//! A network whose packets come from outside: real hosts stand where a simulation has modelled ones. `docs/model.md`, "Packets from
//! outside", is its contract.
//!
//! An [`InjectedNetwork`] has a [`Sender`] for every way from one host to another, and generators of cells; no processes, no TCP. Packets are
//! put in at instants, and come out delivered or lost at those that the model computes. Nothing here knows a clock: who waits for
//! [`InjectedNetwork::next_wake`] emulates, who jumps to it simulates.

mod capture;
mod fates;
mod groups;
mod senders;
mod windows;

use std::collections::VecDeque;

use engpass_model::queue::Ecn;
use engpass_model::source::poisson::Sizes;
use engpass_model::source::{Live, Poisson, Traffic};
use engpass_model::unit::{Rate, Size};
use engpass_testbed::topology::FlowPath;
use engpass_testbed::{Testbed, Topology, heads};

pub use engpass_model::forward::Transport;
pub use engpass_model::time::FOREVER;
pub use engpass_model::wire::icmp::{Error, Errors, Said};
pub(in crate::simulate) use fates::DeliveryReports;
use groups::Group;
pub(in crate::simulate) use groups::Groups;
pub(in crate::simulate) use senders::{InjectedSenders, Sender};
pub use windows::LineStats;

use super::frames::Asking;
use super::tally::DropLocation;
use super::{Network, SWEEP, SimError};

/// A packet that comes from outside. Its contents stay there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Length of the IP packet in bytes, header included.
    pub bytes: u32,
    /// Bytes of it behind 20 bytes of IP header that are no payload: the transport's header, IP options, the rest of an IPv6 header.
    /// The books take a packet without payload for control.
    pub header: u32,
    /// What its IP header says about congestion (RFC 3168 section 5).
    pub ecn: Ecn,
    /// Its priority, 7 before 0, for disciplines that know priorities; the class selector of its DSCP (RFC 2474 section 4.2.2).
    pub priority: u8,
    /// Its time to live: it passes one router fewer than this.
    pub ttl: u8,
    /// What its headers show of its transport. It tells the flows of one way apart, for disciplines that serve flows.
    pub transport: Transport,
    /// Routers may not cut it ("don't fragment", and all of IPv6).
    pub whole: bool,
    /// The error messages that routers send about it.
    pub errors: Errors,
    /// Comes back with its fate.
    pub token: u64,
}

impl Default for Packet {
    /// A packet of an IP header alone, with the time to live that hosts use.
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

/// What became of a packet, or of a router's message about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// All of it has arrived at its host.
    Delivered {
        /// When, in picoseconds.
        at: u64,
        /// Index of its way.
        way: u32,
        /// Its token.
        token: u64,
        /// It arrives with the mark of congestion.
        ce: bool,
        /// Routers that it has passed; of a packet that was cut, the fragment that arrived last.
        routers: u8,
    },
    /// Something of it was lost.
    Lost {
        /// When that is certain, in picoseconds: at once where frames are carried, within 10 ms where cells are.
        at: u64,
        /// When it lost its first cell or frame, in picoseconds.
        lost_at: u64,
        /// Index of its way.
        way: u32,
        /// Its token.
        token: u64,
        /// Where: see [`InjectedNetwork::place`].
        place: ReportedDrop,
        /// A router sends a message about it, whose fate is told, too.
        message: bool,
    },
    /// A router's message about a lost packet has arrived at the sender of that.
    Message {
        /// When, in picoseconds.
        at: u64,
        /// Index of the packet's way.
        way: u32,
        /// The packet's token.
        token: u64,
        /// What it says.
        said: Said,
        /// Routers that it has passed.
        routers: u8,
    },
    /// A router's message about a lost packet was lost.
    MessageLost {
        /// When that is certain, in picoseconds.
        at: u64,
        /// Index of the packet's way.
        way: u32,
        /// The packet's token.
        token: u64,
    },
}

impl Output {
    /// When it is told, in picoseconds.
    pub fn at(&self) -> u64 {
        match *self {
            Self::Delivered { at, .. }
            | Self::Lost { at, .. }
            | Self::Message { at, .. }
            | Self::MessageLost { at, .. } => at,
        }
    }

    /// The token of its packet.
    pub fn token(&self) -> u64 {
        match *self {
            Self::Delivered { token, .. }
            | Self::Lost { token, .. }
            | Self::Message { token, .. }
            | Self::MessageLost { token, .. } => token,
        }
    }
}

/// Where a packet was lost, and why. [`InjectedNetwork::place`] has the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedDrop {
    place: DropLocation,
    way: u32,
}

/// A way that packets can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// Index of the sending host in the testbed.
    pub from: usize,
    /// Index of the receiving host.
    pub to: usize,
    /// `FROM to TO`.
    pub name: String,
    /// The largest IP packet that goes all the way whole, in bytes.
    pub mtu: u64,
    /// The largest that leaves the sending host whole, in bytes.
    pub first_mtu: u64,
}

/// Packets alike that were put in and whose time has not come.
#[derive(Clone, Copy, Debug)]
struct Input {
    at: u64,
    way: u32,
    packet: Packet,
    count: u32,
    /// What is copied from it: a number that [`Groups`] knows.
    copies: u64,
}

/// A network in virtual time whose packets come from outside.
pub struct InjectedNetwork {
    network: Network,
    /// What it is built of: generators, and behind them a flow for every way.
    testbed: Testbed,
    topology: Topology,
    ways: Vec<PathInfo>,
    inputs: VecDeque<Input>,
    /// Packets that have come.
    came: u64,
    /// Everything up to this instant has happened.
    reached: u64,
    /// Nothing may come before this.
    earliest: u64,
    /// Events handled before the window.
    handled: u64,
    /// The events of the file have begun.
    has_events: bool,
}

impl InjectedNetwork {
    /// The network of this testbed at time zero, for one seed. Its generators begin at once, its events when [`Self::begin_events`] says so; its
    /// other traffic is made outside.
    ///
    /// # Errors
    /// [`SimError::Unsupported`] when ways part and meet too often.
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
        // Nothing is counted before somebody says so.
        let mut network =
            Network::build(&all, &topology, seed, windows::CLOSED, (true, Asking::Choices, None))?;
        network.fabric.ledger.enable_deferral();
        let has_cells = !network.fabric.vcs.is_empty();
        if let Some(fates) = &mut network.fabric.fates {
            fates.has_cells = has_cells;
        }
        network.frames.watch(&network.fabric.ledger);
        // Disciplines number flows in the order of the tables, and what comes besides behind them.
        for (place, (flow, traffic)) in declared.flows.iter().zip(testbed.traffic.values()).enumerate() {
            if traffic.cells().is_none()
                && let Some(way) = ways.iter().position(|way| (way.from, way.to) == (flow.from, flow.to))
            {
                let transport = heads(testbed, declared, place, 0).transport();
                network.outsiders.number_of(way as u32, transport);
            }
        }
        network.next_sweep = if network.sources.is_empty() { u64::MAX } else { SWEEP };
        Ok(Self {
            network,
            testbed: all,
            topology,
            ways,
            inputs: VecDeque::new(),
            came: 0,
            reached: 0,
            earliest: 0,
            handled: 0,
            has_events: false,
        })
    }

    /// Let the events of the file begin at `at`, in picoseconds, or as soon as everything up to then has happened, if they have not begun: what
    /// they change and when counts from there, for as long as the network goes on. Returns that instant.
    pub fn begin_events(&mut self, at: u64) -> u64 {
        let at = at.max(self.reached).max(self.earliest).min(FOREVER);
        if !std::mem::replace(&mut self.has_events, true) {
            self.network.begin_events(at);
        }
        at
    }

    /// The ways from host to host, by sender, then by receiver.
    pub fn ways(&self) -> &[PathInfo] {
        &self.ways
    }

    /// Put a packet in, which its host hands to its NIC at `at`, in picoseconds, or as soon as everything up to then has happened.
    /// Packets of one instant go in the order in which they are put in. Returns that instant.
    ///
    /// # Panics
    /// When there is no such way.
    pub fn inject(&mut self, at: u64, way: u32, packet: Packet) -> u64 {
        self.inject_identical(at, way, packet, 1)
    }

    /// As [`Self::inject`] for so many packets alike, one behind the other, each with the token behind that of the one before. What becomes of them is the
    /// same; where nothing shares their line it takes less work.
    ///
    /// # Panics
    /// When there is no such way.
    pub fn inject_identical(&mut self, at: u64, way: u32, packet: Packet, count: u32) -> u64 {
        assert!((way as usize) < self.ways.len(), "a packet takes a way that there is");
        let at = at.max(self.reached).max(self.earliest).min(FOREVER);
        self.put_in(Input { at, way, packet, count, copies: 0 });
        at
    }

    fn put_in(&mut self, input: Input) {
        let place = self.inputs.iter().rev().take_while(|other| other.at > input.at).count();
        if place == 0 {
            self.inputs.push_back(input);
        } else {
            self.inputs.insert(self.inputs.len() - place, input);
        }
    }

    /// Hosts that one host sends to at once, as to a multicast group or to all on its segment: those of `members` to which a way leads from
    /// `from`. Nothing was put in yet. [`Self::members`] has the ways.
    pub fn group(&mut self, from: usize, members: &[usize]) -> u32 {
        let way = |to: &usize| self.ways.iter().position(|way| (way.from, way.to) == (from, *to));
        let ways = members.iter().filter_map(way).map(|way| way as u32).collect();
        let network = &mut self.network;
        let group = Group::new(ways, |way| network.outsiders.sender(way).way, &network.frames);
        if group.parts() {
            // A port to which a copy comes knows of it when it comes.
            network.disable_lookahead();
        }
        network.groups.add(group)
    }

    /// The ways to the members of a group.
    pub fn members(&self, group: u32) -> &[u32] {
        &self.network.groups.get(group).ways
    }

    /// Put one packet in for all members of a group, as [`Self::inject`] does: lines that lead to several of them carry it once, and it is
    /// copied where ways part. Each circuit has one of its own. `tokens` are those of the members, in the order of [`Self::members`]; that
    /// of the packet is of no use. For every member a fate is told.
    ///
    /// # Panics
    /// When there is no such group, it has another number of members, or the packet is longer than the MTU of a way to one of them.
    pub fn inject_group(&mut self, at: u64, group: u32, packet: Packet, tokens: &[u64]) -> u64 {
        let members = self.members(group);
        assert_eq!(members.len(), tokens.len(), "every member has a token");
        let fits = |way: &u32| u64::from(packet.bytes) <= self.ways[*way as usize].mtu;
        assert!(members.iter().all(fits), "what goes to a group is cut for none of its members");
        let at = at.max(self.reached).max(self.earliest).min(FOREVER);
        for (way, token, copies) in self.network.groups.send(group, tokens) {
            self.put_in(Input { at, way, packet: Packet { token, ..packet }, count: 1, copies });
        }
        at
    }

    /// Packets that were put in, and messages of routers, of which nothing was told.
    pub fn inside(&self) -> u64 {
        let fates = self.network.fabric.fates.as_ref();
        let waiting: u64 = self.inputs.iter().map(|input| u64::from(input.count)).sum();
        waiting + fates.map_or(0, |fates| fates.inside())
    }

    /// Packets of a host that have come and wait for the memory of its NICs. While there are any, real hosts would be held back.
    pub fn backlog(&self, host: usize) -> usize {
        self.network.outsiders.backlog(host)
    }

    /// Let everything happen up to and including `at`, in picoseconds, and tell what becomes of packets, in order of time.
    pub fn run_until(&mut self, at: u64, each: &mut impl FnMut(Output)) {
        let at = at.min(FOREVER);
        while let Some(&input) = self.inputs.front().filter(|input| input.at <= at) {
            self.inputs.pop_front();
            self.enter(input);
        }
        self.network.reach(at);
        self.tell(each);
        self.reached = self.reached.max(at);
    }

    /// The time of packets has come.
    fn enter(&mut self, Input { at, way, mut packet, mut count, copies }: Input) {
        while count > 0 {
            self.network.reach(at);
            let mut come = self.network.try_inject_train(way as usize, packet, count, self.came);
            if come == 0 {
                self.network.on_packet_injected(way as usize, packet, self.came, copies);
                come = 1;
            }
            self.network.sweep_from_now();
            self.came += u64::from(come);
            packet.token = packet.token.wrapping_add(come.into());
            count -= come;
        }
    }

    fn tell(&mut self, each: &mut impl FnMut(Output)) {
        if let Some(fates) = &mut self.network.fabric.fates {
            fates.drain_reports(each);
        }
    }

    /// When something happens next, in picoseconds, if nothing is put in before; `None`: never.
    pub fn next_wake(&mut self) -> Option<u64> {
        // Who asks has time, and what has come out is on its way.
        self.network.fabric.post_batch_until(self.reached);
        let input = self.inputs.front().map(|input| input.at);
        let sweep = Some(self.network.next_sweep).filter(|at| *at <= FOREVER);
        let wakes = [input, self.network.events.next(), sweep];
        wakes.into_iter().flatten().min()
    }

    /// Where a packet was lost: the transmitter (`switch -> host`) or the node, and why.
    pub fn place(&self, lost: ReportedDrop) -> (engpass_outcome::Place, &'static str) {
        let flow = self.topology.flows.len() - self.ways.len() + lost.way as usize;
        let (place, cause, _) =
            self.network.place_name(lost.place, &self.topology, self.topology.flows[flow].to);
        (place, cause)
    }
}

/// Stands in the traffic table for what a way carries: datagrams of any length. No process is made of it.
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

impl Network {
    /// Handle everything that happens at or before `until`, where packets come from outside.
    fn reach(&mut self, until: u64) {
        self.until = until;
        loop {
            let limit = self.next_sweep.min(until);
            if let Some((at, event)) = self.events.pop_until(limit) {
                self.now = at;
                self.handled += 1;
                self.handle(event);
            } else if self.next_sweep <= until {
                self.sweep_and_report();
            } else {
                break;
            }
        }
        self.now = self.now.max(until);
    }

    /// Look at all cells before the next multiple of [`SWEEP`], and go on with that as long as there are any.
    fn sweep_and_report(&mut self) {
        let at = self.next_sweep;
        self.now = at;
        self.sweep();
        self.fabric.post_until(at - 1);
        let Some(fates) = &mut self.fabric.fates else { return };
        fates.confirm_losses_before(at);
        if self.sources.is_empty() && fates.inside() == 0 {
            self.next_sweep = u64::MAX;
        }
    }

    /// There may be cells from now on.
    fn sweep_from_now(&mut self) {
        if self.next_sweep == u64::MAX {
            self.next_sweep = (self.now / SWEEP + 1) * SWEEP;
        }
    }
}
