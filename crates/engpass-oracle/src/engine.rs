//! The reference engine: every cell, and every begin and end of a transmission, is an event.
//!
//! It is written from docs/model.md alone and handles one event after the other. The behaviour of hosts, NICs, switches and so on is in the files of
//! these names in `engine/`, each with its part of [`Engine`]. Their state is in the files next to this one.

mod accounts;
mod acted;
mod arp;
mod bonds;
mod books;
mod check;
mod copies;
mod cpu;
pub(crate) mod engines;
mod entrance;
pub(crate) mod forwarding;
mod frame_line;
mod generator;
mod host;
mod icmp;
mod idle;
mod idle_reasons;
pub(crate) mod keepalive;
mod loads;
mod membership;
mod nic;
mod outages;
mod packet;
mod possible;
mod reassembly;
mod router;
mod sender_state;
mod switch;
mod tcp;
mod tunnel;

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::random::Stream;
use engpass_model::schedule::Schedule;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::wire::Framing;
use engpass_testbed::topology::{NodeId, NodeKind};
use engpass_testbed::{Testbed, Topology};

use crate::acted::Acted;
use crate::arp::Neighbours;
use crate::bond::BondState;
use crate::cell::{Cell, LineId, Vc, vc_index, vcs};
use crate::cpu::Cpu;
use crate::entrance::{Entrance, entrances};
use crate::event_queue::{Event, EventQueue, Group, Sender};
use crate::frame_line::FrameLine;
use crate::generator::Generator;
use crate::group::{Receiver, receivers};
use crate::host::Process;
use crate::idle_reasons::LineReasons;
use crate::ledger::Ledger;
use crate::line::Line;
use crate::line_usage::LineUsage;
use crate::longest_queues::LongestQueues;
use crate::membership::MemberState;
use crate::nic::{Nic, Shaper};
use crate::outages::Outages;
use crate::outcome::Observed;
use crate::packet::{Out, Packet, Way, ways};
use crate::policer::Policer;
use crate::possible::Possible;
use crate::reassembly::Reassembly;
use crate::resolve::{kind, resolve};
use crate::router::RouterEngine;
use crate::sender_state::History;
use crate::switch::Fate;
use crate::tcp::Endpoint;
use crate::transfer::measured;
use crate::tunnel::{Carries, Tunnel, tunnels};

/// A source of traffic and its state.
#[derive(Debug)]
pub(crate) enum Source {
    /// A `udp-stream`, `poisson`, `udp-on-off`, `video` or `multicast`.
    Process(Process),
    /// A `cbr` or `on-off` source.
    Generator(Generator),
    /// A `tcp-stream`. Its state is in its endpoints.
    Connections,
}

/// A running network.
#[derive(Debug)]
pub struct Engine<'a> {
    pub(crate) testbed: &'a Testbed,
    pub(crate) topology: Topology,
    pub(crate) agenda: EventQueue,
    pub(crate) ledger: Ledger,
    pub(crate) books: LineUsage,
    pub(crate) longest: LongestQueues,
    /// States of every sender over time, by number of the sender.
    pub(crate) histories: Vec<History>,
    /// The lines that packets of each sender may take.
    pub(crate) possible: Vec<Possible>,
    /// Idle time by reason, for lines that sent data or were down.
    pub(crate) reasons: BTreeMap<LineId, LineReasons>,
    /// All circuit directions.
    pub(crate) vcs: Vec<Vc>,
    /// Paths: both directions of all flows, then those of ICMP messages, of multicast receivers, and of outer packets.
    pub(crate) ways: Vec<Way>,
    /// Both directions of all tunnels.
    pub(crate) tunnels: Vec<Tunnel>,
    /// Outer packets that were fragmented.
    pub(crate) cut: BTreeSet<Carries>,
    /// Number of cells that reached the first line so far, by circuit direction.
    pub(crate) emitted: Vec<u64>,
    /// Transmitters at both ends of all ATM links.
    pub(crate) lines: BTreeMap<LineId, Line>,
    /// Transmitters at both ends of all other links.
    pub(crate) frame_lines: BTreeMap<LineId, FrameLine>,
    /// For a circuit direction that begins at a router, the queue in front of it.
    pub(crate) entrances: BTreeMap<usize, Entrance>,
    /// Number of cells dropped at each line or at the policer in front of it, by circuit direction.
    pub(crate) cells_lost: BTreeMap<(LineId, usize), u64>,
    /// Number of packets that arrived at each frame line, and number of those dropped from its queue when the line went down.
    pub(crate) entered: BTreeMap<LineId, u64>,
    pub(crate) flushed: BTreeMap<LineId, u64>,
    /// Number of turns taken, by router and group.
    pub(crate) turns: BTreeMap<(NodeId, Vec<Out>), u64>,
    pub(crate) outages: Outages,
    pub(crate) neighbours: Neighbours,
    pub(crate) bonds: Vec<BondState>,
    /// By sender, the path segment on which its ready packet leaves the host.
    pub(crate) chosen: BTreeMap<usize, Out>,
    pub(crate) acted: Acted,
    pub(crate) seed: u64,
    /// NICs at both ends of all links; only those at hosts are used.
    pub(crate) nics: Vec<[Nic; 2]>,
    /// Shapers by circuit direction.
    pub(crate) shapers: Vec<Shaper>,
    pub(crate) policers: Vec<Option<Policer>>,
    /// Discard state of the current PDU at a port, by circuit direction; kept from the first cell of a PDU to its last.
    pub(crate) pdus: BTreeMap<(LineId, usize), Fate>,
    /// Random number streams of the discard policies, by line and class.
    pub(crate) discard_random: BTreeMap<(LineId, usize), Stream>,
    /// Reassembly states by circuit direction.
    pub(crate) reassembly: Vec<Reassembly>,
    /// By router, its route processor, then its line cards.
    pub(crate) routers: Vec<Vec<RouterEngine>>,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) sources: Vec<Source>,
    /// Two endpoints per connection, the writing one first.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Bytes in use in the receive buffer of every flow, then of every multicast receiver.
    pub(crate) receive_buffers: Vec<u64>,
    pub(crate) receivers: Vec<Receiver>,
    /// Receivers that join or leave, in the order of the receivers.
    pub(crate) members: Vec<MemberState>,
    /// Ends of tunnels that send keepalives, in the order of the tunnel directions.
    pub(crate) keepalives: Vec<keepalive::KeepaliveEnd>,
    /// For a multicast datagram at a node, the parts that do not go on from there.
    pub(crate) pruned: BTreeMap<(usize, NodeId), Vec<usize>>,
    /// For a multicast datagram and a subset of its parts that continues separately, the index of the new datagram.
    pub(crate) apart: BTreeMap<(usize, Vec<usize>), usize>,
    /// Every packet of the run.
    pub(crate) packets: Vec<Packet>,
    /// Time of the last event in picoseconds.
    now: u64,
    /// True after the warm-up.
    warm: bool,
}

impl<'a> Engine<'a> {
    /// Builds the network in its initial state.
    pub fn new(testbed: &'a Testbed, seed: u64) -> Self {
        let topology = resolve(testbed);
        let vcs = vcs(&topology);
        let shapers: Vec<_> = vcs.iter().map(|vc| Shaper::new(testbed, &topology, vc)).collect();
        let flows = topology.flows.len();
        let node = |name: &str| {
            topology.nodes.iter().position(|node| node == name).expect("the testbed has this node")
        };
        let receivers = receivers(testbed, node);
        let ways = ways(&topology, &vcs, &receivers);
        let warmup = testbed.run.warmup.map_or(0, |warmup| warmup.0);
        let mut engine = Self {
            testbed,
            agenda: EventQueue::default(),
            ledger: Ledger::new(flows + receivers.len(), warmup),
            books: LineUsage::new(topology.links.len(), warmup),
            longest: LongestQueues::new(warmup),
            histories: Vec::new(),
            possible: Vec::new(),
            reasons: BTreeMap::new(),
            tunnels: tunnels(&topology, ways.len() - 2 * topology.tunnels.len()),
            cut: BTreeSet::new(),
            ways,
            emitted: vec![0; vcs.len()],
            lines: lines(testbed, &topology),
            frame_lines: frame_lines(testbed, &topology, seed),
            entrances: entrances(&topology, (&vcs, &shapers), seed),
            cells_lost: BTreeMap::new(),
            entered: BTreeMap::new(),
            flushed: BTreeMap::new(),
            turns: BTreeMap::new(),
            outages: Outages::default(),
            neighbours: Neighbours::default(),
            bonds: topology.bonds.iter().map(BondState::new).collect(),
            chosen: BTreeMap::new(),
            acted: Acted::default(),
            seed,
            nics: topology.links.iter().map(|_| <[Nic; 2]>::default()).collect(),
            shapers,
            policers: topology.circuits.iter().map(Policer::of).collect(),
            pdus: BTreeMap::new(),
            discard_random: BTreeMap::new(),
            reassembly: vcs.iter().map(|_| Reassembly::default()).collect(),
            routers: testbed
                .routers
                .values()
                .map(|router| router.engines().map(|_| RouterEngine::default()).collect())
                .collect(),
            cpus: testbed.hosts.values().map(|_| Cpu::default()).collect(),
            sources: Vec::new(),
            endpoints: Vec::new(),
            receive_buffers: vec![0; flows + receivers.len()],
            receivers,
            members: Vec::new(),
            keepalives: Vec::new(),
            pruned: BTreeMap::new(),
            apart: BTreeMap::new(),
            packets: Vec::new(),
            now: 0,
            warm: false,
            vcs,
            topology,
        };
        for (flow, (name, traffic)) in testbed.traffic.iter().enumerate() {
            let random = Stream::new(seed, format_args!("traffic.{name}"));
            let arrivals = || Stream::new(seed, format_args!("traffic.{name}.arrivals"));
            let cells = engine.topology.flows[flow].cells;
            engine.sources.push(match traffic {
                Traffic::UdpStream(config) => Source::Process(Process::stream(config, random)),
                Traffic::Poisson(config) => Source::Process(Process::poisson(config, random, arrivals())),
                Traffic::UdpOnOff(config) => Source::Process(Process::on_off(config, random, arrivals())),
                Traffic::Video(config) => Source::Process(Process::video(config, random)),
                Traffic::Cbr(config) => Source::Generator(Generator::cbr(config, cells, random)),
                Traffic::OnOff(config) => Source::Generator(Generator::on_off(config, cells, random)),
                Traffic::TcpStream(_) => Source::Connections,
                Traffic::Multicast(config) => Source::Process(Process::group(config, random)),
                Traffic::RequestResponse(_) => panic!("no model engine supports request-response traffic"),
            });
            match (&engine.sources[flow], traffic) {
                (Source::Process(_), _) => engine.process_begins(flow),
                (Source::Generator(_), _) => engine.generator_begins(flow),
                (_, Traffic::TcpStream(config)) => engine.connections_begin(flow, config, seed),
                _ => unreachable!("only `tcp-stream` traffic has connections"),
            }
        }
        engine.histories = vec![History::default(); engine.senders().len()];
        engine.keepalives_begin();
        engine.possible = engine.possible_ways();
        engine.events_begin(testbed, seed);
        engine.memberships_begin();
        engine
    }

    /// Handles all events at or before `until`, in picoseconds.
    pub fn run_until(&mut self, until: u64) {
        let warmup = self.testbed.run.warmup.map_or(0, |warmup| warmup.0);
        if !self.warm && warmup > 0 && until >= warmup {
            self.go_on_until(warmup);
            self.warm = true;
            self.warm(warmup);
            self.begin_queues();
        }
        self.go_on_until(until);
    }

    fn go_on_until(&mut self, until: u64) {
        while let Some((now, event)) = self.agenda.next(until) {
            if now > self.now {
                self.note_states(self.now);
                self.now = now;
            }
            self.happens(now, event);
        }
        self.note_states(self.now);
    }

    /// Returns the observations up to `at`. Call it after `run_until(at)`.
    pub fn snapshot(&self, at: u64) -> Observed {
        let mut seen = Observed {
            idle: self.idle(at),
            books: self.booked(),
            accounts: self.accounts(at),
            queues: self.longest.seen(),
            busy: self.busy_times(at),
            ..self.ledger.snapshot(at)
        };
        for (flow, of) in seen.flows.iter_mut().enumerate() {
            of.tcp = if flow < self.topology.flows.len() { self.connections(flow) } else { None };
            of.outage = self.outage_of(flow, at);
            of.member = self.member_seen(flow, at);
            if let Some(traffic) = self.testbed.traffic.values().nth(flow) {
                of.transfer = measured(traffic, self.ledger.payloads(flow));
            }
        }
        seen
    }

    /// Returns the end of the run in picoseconds.
    pub(crate) fn end(&self) -> u64 {
        self.testbed.run.duration.0
    }

    /// Returns the circuit direction that the cells of a generator take.
    ///
    /// # Panics
    /// If the flow does not belong to a generator.
    pub(crate) fn vc_of(&self, flow: usize) -> usize {
        let path = &self.topology.flows[flow];
        vc_index(path.circuit.expect("a cell flow has a circuit"), path.forward)
    }

    /// Returns true if a flow belongs to a generator.
    pub(crate) fn generates(&self, flow: usize) -> bool {
        matches!(self.sources.get(flow), Some(Source::Generator(_)))
    }

    /// Returns a transmitter of cells.
    pub(crate) fn line(&mut self, line: LineId) -> &mut Line {
        self.lines.get_mut(&line).expect("the line carries cells")
    }

    /// Returns true if the transmitter is at a host.
    pub(crate) fn at_host(&self, line: LineId) -> bool {
        self.topology.links[line.link].ends[line.end] < self.topology.hosts
    }

    /// Returns true if the transmitter is at a switch.
    fn at_switch(&self, line: LineId) -> bool {
        let node = self.topology.links[line.link].ends[line.end];
        matches!(kind(&self.topology, node), NodeKind::Switch(_))
    }

    fn happens(&mut self, now: u64, event: Event) {
        match event {
            Event::TransmissionEnds(line) => self.transmission_ends(now, line),
            Event::LastBitLeaves(line) => self.last_bit_leaves(now, line),
            Event::FrameEnds(line) => self.frame_ends(now, line),
            Event::CellArrives(line, cell) => self.cell_arrives(now, line, cell),
            Event::FrameArrives { line, flying } => self.frame_arrives(now, line, flying),
            Event::LinkChanges { event, down } => self.link_changes(now, event, down),
            Event::BondLooks { bond } => self.bond_looks(now, bond),
            Event::RouterDone { router, engine } => self.router_done(now, router, engine),
            Event::MessageBegins { router, packet } => self.comes_to_engine(now, router, packet),
            Event::TunnelGivesUp { of } => self.tunnel_gives_up(now, of),
            Event::ArpRetry { of } => self.arp_retry(now, of),
            Event::IgmpIsDue { member, message } => self.igmp_is_due(now, member, message),
            Event::KeepaliveIsDue { end } => self.keepalive_is_due(now, end),
            Event::MembershipEnds { member } => self.membership_ends(now, member),
            Event::Takes(line) if self.lines.contains_key(&line) => self.takes(line),
            Event::Takes(line) => self.takes_packet(now, line),
            Event::LastCellBegins { vc } => self.last_cell_begins(now, vc),
            Event::AsksForPacket { vc } => self.asks_for_packet(now, vc),
            Event::Answer { vc, marked } => self.answer(vc, marked),
            Event::PacketComplete { packet } => self.packet_complete(now, packet),
            Event::CpuEnds { host, item } => self.cpu_ends(now, host, item),
            Event::ProcessReady { flow } => self.process_ready(now, flow),
            Event::PauseEnds { flow } => self.begin_message(now, flow),
            Event::EndpointStarts { endpoint } => self.endpoint_starts(now, endpoint),
            Event::EndpointAwakes { endpoint } => self.endpoint_awakes(now, endpoint),
            Event::WriteIsDue { endpoint } => self.write_is_due(now, endpoint),
            Event::TimerExpires { endpoint } => self.timer_expires(now, endpoint),
            Event::PacketHanded { flow } => self.packet_handed(now, Sender::Process(flow)),
            Event::RoomFreed(nic) => self.serve_waiting(now, nic),
            Event::ShaperEmits { vc } => self.shaper_emits(now, vc),
            Event::GeneratorEmits { flow } => self.generator_emits(now, flow),
            Event::OnTimeBegins { flow } => self.on_time_begins(now, flow),
        }
    }

    /// Adds a cell to the queue of a line. The line takes it as soon as it is free.
    pub(crate) fn join(&mut self, now: u64, line: LineId, cell: Cell, class: usize) {
        self.book_idle(now, line);
        self.line(line).join(now, cell, class);
        self.may_take(now, line);
    }

    /// Schedules the instant at which a transmitter may take its next cell or packet.
    pub(crate) fn may_take(&mut self, at: u64, line: LineId) {
        // Where packets become cells (at routers, too), a line takes its next cell after all arrivals of the instant.
        let becomes_cells = self.lines.contains_key(&line) && !self.at_switch(line);
        let group = if self.at_host(line) || becomes_cells { Group::NicTakes } else { Group::PortTakes };
        self.agenda.put(at, group, line.position(), Event::Takes(line));
    }

    fn takes(&mut self, line: LineId) {
        if let Some(end) = self.line(line).take() {
            self.agenda.put(end, Group::TransmissionEnds, line.position(), Event::TransmissionEnds(line));
        }
    }

    fn transmission_ends(&mut self, now: u64, line: LineId) {
        self.book_cell(now, line);
        let cell = self.line(line).end(now);
        let arrival = now + self.line(line).delay;
        self.ledger.departed(now, line, &self.vcs[cell.vc], &cell);
        if self.at_host(line) {
            self.left_the_nic(now, line, &cell);
        }
        self.agenda.put(arrival, Group::Arrives, line.position(), Event::CellArrives(line, cell));
        self.may_take(now, line);
    }

    fn cell_arrives(&mut self, now: u64, line: LineId, mut cell: Cell) {
        assert_eq!(self.vcs[cell.vc].lines[cell.hop], line, "a cell stays on its circuit");
        cell.hop += 1;
        match self.vcs[cell.vc].lines.get(cell.hop) {
            Some(next) => self.arrives_at_switch(now, *next, cell),
            None => self.leaves_circuit(now, cell),
        }
    }
}

/// Returns both ends of the links that carry cells, or of the others.
fn ends(topology: &Topology, cells: bool) -> impl Iterator<Item = LineId> {
    let of = move |framing| matches!(framing, Framing::Cells { .. }) == cells;
    let links = topology.links.iter().enumerate().filter(move |(_, ends)| of(ends.lines[0].framing));
    links.flat_map(|(link, _)| [0, 1].map(|end| LineId { link, end }))
}

/// Builds the transmitters of cells. They have one queue, or one per category at a switch with priorities.
fn lines(testbed: &Testbed, topology: &Topology) -> BTreeMap<LineId, Line> {
    let line = |id: LineId| {
        let link = &topology.links[id.link];
        let Framing::Cells { slot } = link.lines[id.end].framing else {
            unreachable!("the line carries cells")
        };
        let classes = match kind(topology, link.ends[id.end]) {
            NodeKind::Switch(switch) => match &testbed.switches[switch] {
                Switch::Atm(config) if matches!(config.schedule, Schedule::Priority(_)) => 2,
                _ => 1,
            },
            _ => 1,
        };
        (id, Line::new(slot, link.delay.ps(), classes))
    };
    ends(topology, true).map(line).collect()
}

fn frame_lines(testbed: &Testbed, topology: &Topology, seed: u64) -> BTreeMap<LineId, FrameLine> {
    let line = |id: LineId| (id, FrameLine::new(testbed, topology, id.link, id.end, seed));
    ends(topology, false).map(line).collect()
}
