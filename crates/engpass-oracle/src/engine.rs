//! The reference engine: every cell is an event.
//!
//! It is written from docs/model.md alone and does one thing after the other. What happens at hosts, NICs, switches and
//! reassembly stands in the files of these names, each with its part of [`Engine`].

use std::collections::BTreeMap;

use engpass_model::random::Stream;
use engpass_model::schedule::Schedule;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::wire::Framing;
use engpass_testbed::{Testbed, Topology};

use crate::agenda::{Agenda, Event, Group};
use crate::books::Books;
use crate::cell::{Cell, Frame, LineId, Vc, vc_index, vcs};
use crate::generator::Generator;
use crate::host::{Host, Process};
use crate::ledger::Ledger;
use crate::line::Line;
use crate::nic::{Nic, Shaper};
use crate::outcome::Observed;
use crate::reassembly::Reassembly;
use crate::switch::{Fate, Policer};

/// docs/model.md says only how cells move.
const ON_CIRCUITS: &str = "the oracle knows flows on circuits only";

/// A source of traffic and its state.
#[derive(Debug)]
pub(crate) enum Source {
    /// A `udp-stream`.
    Process(Process),
    /// A `cbr` or `on-off` source.
    Generator(Generator),
}

/// A network while it runs.
#[derive(Debug)]
pub struct Engine<'a> {
    pub(crate) testbed: &'a Testbed,
    pub(crate) topology: &'a Topology,
    pub(crate) agenda: Agenda,
    pub(crate) ledger: Ledger,
    pub(crate) books: Books,
    /// Both directions of all circuits.
    pub(crate) vcs: Vec<Vc>,
    /// Cells that reached the NIC's line so far, by direction of circuit.
    pub(crate) emitted: Vec<u64>,
    /// The transmitters at both ends of all links.
    pub(crate) lines: Vec<[Line; 2]>,
    /// At both ends of all links; only those at hosts are used.
    pub(crate) nics: Vec<[Nic; 2]>,
    /// By direction of circuit.
    pub(crate) shapers: Vec<Shaper>,
    /// By circuit.
    pub(crate) policers: Vec<Option<Policer>>,
    /// What a port does with the PDU of a direction of a circuit that has begun to arrive and has not ended.
    pub(crate) pdus: BTreeMap<(LineId, usize), Fate>,
    /// By direction of circuit.
    pub(crate) reassembly: Vec<Reassembly>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) sources: Vec<Source>,
    /// Bytes in use of the flow's receive buffer.
    pub(crate) receive_buffers: Vec<u64>,
    /// Every frame that was ever handed over.
    pub(crate) frames: Vec<Frame>,
}

impl<'a> Engine<'a> {
    /// The network at its beginning, nothing done.
    ///
    /// # Panics
    /// When something in it is not of ATM: docs/model.md does not say how that moves.
    pub fn new(testbed: &'a Testbed, topology: &'a Topology, seed: u64) -> Self {
        let vcs = vcs(topology);
        let flows = topology.flows.len();
        let mut engine = Self {
            testbed,
            topology,
            agenda: Agenda::default(),
            ledger: Ledger::new(flows, testbed.run.warmup.map_or(0, |warmup| warmup.0)),
            books: Books::new(topology.links.len(), testbed.run.warmup.map_or(0, |warmup| warmup.0)),
            emitted: vec![0; vcs.len()],
            lines: lines(testbed, topology),
            nics: topology.links.iter().map(|_| <[Nic; 2]>::default()).collect(),
            shapers: vcs.iter().map(|vc| Shaper::new(testbed, topology, vc)).collect(),
            policers: topology.circuits.iter().map(|circuit| Policer::of(topology, circuit)).collect(),
            pdus: BTreeMap::new(),
            reassembly: vcs.iter().map(|_| Reassembly::default()).collect(),
            hosts: testbed.hosts.values().map(|_| Host::default()).collect(),
            sources: Vec::new(),
            receive_buffers: vec![0; flows],
            frames: Vec::new(),
            vcs,
        };
        for (flow, (name, traffic)) in testbed.traffic.iter().enumerate() {
            let random = Stream::new(seed, &format!("traffic.{name}"));
            let path = &topology.flows[flow];
            engine.sources.push(match traffic {
                Traffic::UdpStream(config) => {
                    let circuit = path.circuit.expect(ON_CIRCUITS);
                    Source::Process(Process::new(config, topology.circuits[circuit].mtu, random))
                }
                Traffic::Cbr(config) => Source::Generator(Generator::cbr(config, path.cells, random)),
                Traffic::OnOff(config) => Source::Generator(Generator::on_off(config, path.cells, random)),
                Traffic::TcpStream(_) => panic!("the oracle knows no TCP"),
                Traffic::Poisson(_) => panic!("the oracle knows no datagrams at random"),
                Traffic::RequestResponse(_) | Traffic::Multicast(_) => {
                    panic!("no engine of the model knows them")
                }
            });
            match engine.sources[flow] {
                Source::Process(_) => engine.process_begins(flow),
                Source::Generator(_) => engine.generator_begins(flow),
            }
        }
        engine
    }

    /// Do all that happens at or before `until`, in picoseconds.
    pub fn run_until(&mut self, until: u64) {
        while let Some((now, event)) = self.agenda.next(until) {
            self.happens(now, event);
        }
    }

    /// What was seen, after `run_until(at)`.
    pub fn snapshot(&self, at: u64) -> Observed {
        Observed { idle: self.idle(at), books: self.booked(), ..self.ledger.snapshot(at) }
    }

    /// End of the run in picoseconds.
    pub(crate) fn end(&self) -> u64 {
        self.testbed.run.duration.0
    }

    /// The direction of a circuit that a flow takes.
    pub(crate) fn vc_of(&self, flow: usize) -> usize {
        let path = &self.topology.flows[flow];
        vc_index(path.circuit.expect(ON_CIRCUITS), path.forward)
    }

    /// Whether a flow is a generator's.
    pub(crate) fn generates(&self, flow: usize) -> bool {
        matches!(self.sources[flow], Source::Generator(_))
    }

    /// The transmitter.
    pub(crate) fn line(&mut self, line: LineId) -> &mut Line {
        &mut self.lines[line.link][line.end]
    }

    /// Whether the transmitter is at a host.
    pub(crate) fn at_host(&self, line: LineId) -> bool {
        self.topology.links[line.link].ends[line.end] < self.topology.hosts
    }

    fn happens(&mut self, now: u64, event: Event) {
        match event {
            Event::TransmissionEnds(line) => self.transmission_ends(now, line),
            Event::CellArrives(line, cell) => self.cell_arrives(now, line, cell),
            Event::Takes(line) => self.takes(line),
            Event::Answer { vc, marked } => self.answer(vc, marked),
            Event::PduComplete { frame } => self.pdu_complete(now, frame),
            Event::CpuEnds { host } => self.cpu_ends(now, host),
            Event::ProcessReady { flow } => self.process_ready(now, flow),
            Event::PauseEnds { flow } => self.begin_message(now, flow),
            Event::FrameHanded { flow } => self.frame_handed(now, flow),
            Event::RoomFreed(nic) => self.serve_waiting(now, nic),
            Event::ShaperEmits { vc } => self.shaper_emits(now, vc),
            Event::GeneratorEmits { flow } => self.generator_emits(now, flow),
            Event::OnTimeBegins { flow } => self.on_time_begins(now, flow),
        }
    }

    /// A cell joins a line's queue, which takes it as soon as it is free.
    pub(crate) fn join(&mut self, now: u64, line: LineId, cell: Cell, class: usize) {
        self.book_idle(now, line);
        self.line(line).join(now, cell, class);
        self.may_take(now, line);
    }

    fn may_take(&mut self, now: u64, line: LineId) {
        let group = if self.at_host(line) { Group::NicTakes } else { Group::PortTakes };
        self.agenda.put(now, group, line.position(), Event::Takes(line));
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
        self.agenda.put(arrival, Group::CellArrives, line.position(), Event::CellArrives(line, cell));
        self.may_take(now, line);
    }

    fn cell_arrives(&mut self, now: u64, line: LineId, mut cell: Cell) {
        assert_eq!(self.vcs[cell.vc].lines[cell.hop], line, "a cell stays on its circuit");
        cell.hop += 1;
        match self.vcs[cell.vc].lines.get(cell.hop) {
            Some(next) => self.arrives_at_switch(now, *next, cell),
            None => self.arrives_at_host(now, cell),
        }
    }
}

/// Transmitters at both ends of all links: with one queue, or at a switch with priorities with one per category.
fn lines(testbed: &Testbed, topology: &Topology) -> Vec<[Line; 2]> {
    let classes = |node: usize| {
        let priorities = node.checked_sub(topology.hosts).is_some_and(|switch| {
            let Switch::Atm(config) = &testbed.switches[switch] else {
                panic!("the oracle knows ATM switches only")
            };
            matches!(config.schedule, Schedule::Priority(_))
        });
        if priorities { 2 } else { 1 }
    };
    let both_ends = |link: &engpass_testbed::topology::LinkEnds| {
        let Framing::Cells { slot } = link.framing else { panic!("the oracle knows ATM links only") };
        link.ends.map(|node| Line::new(slot, link.delay.ps(), classes(node)))
    };
    topology.links.iter().map(both_ends).collect()
}
