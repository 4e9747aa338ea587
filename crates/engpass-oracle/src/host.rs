//! Hosts: the CPU, and processes that send UDP (docs/model.md, "Hosts that send UDP").

use std::collections::VecDeque;

use engpass_model::host::{Side, ps};
use engpass_model::random::Stream;
use engpass_model::source::{Traffic, UdpStream};
use engpass_model::time::Pace;
use engpass_model::unit::Share;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES, UDP_HEADER_BYTES};

use crate::agenda::{Event, Group};
use crate::cell::{Frame, after};
use crate::engine::{Engine, Source};

/// What the CPU is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// The next fragment of a process.
    Send { flow: usize },
    /// A datagram in the receive buffer.
    Receive { flow: usize, datagram: usize },
}

impl Item {
    fn flow(&self) -> usize {
        match self {
            Self::Send { flow } | Self::Receive { flow, .. } => *flow,
        }
    }
}

/// A host's CPU: one item at a time, first come first served.
#[derive(Debug, Default)]
pub(crate) struct Host {
    busy: Option<Item>,
    /// Items that wait, with their costs.
    waiting: VecDeque<(u64, Item)>,
}

/// A process that sends a `udp-stream`.
#[derive(Debug)]
pub(crate) struct Process {
    random: Stream,
    start: u64,
    stop: Option<u64>,
    /// Pace of a payload byte at the stream's rate.
    pace: Option<Pace>,
    bytes: u64,
    fragments: Fragments,
    /// Messages begun.
    messages: u64,
    /// Number of the message in work, as the ledger counts it.
    datagram: usize,
    /// Fragment in work.
    fragment: u64,
}

impl Process {
    /// A process before its first message; `mtu` in bytes.
    pub(crate) fn new(config: &UdpStream, mtu: u64, random: Stream) -> Self {
        let bytes = config.message.bytes();
        Self {
            random,
            start: ps(config.start),
            stop: config.stop.map(|stop| stop.0),
            pace: config.rate.map(|rate| Pace::of_bits(8, rate.0)),
            bytes,
            fragments: Fragments::of(bytes + UDP_HEADER_BYTES, mtu),
            messages: 0,
            datagram: 0,
            fragment: 0,
        }
    }

    /// When the next message may begin, if the one before was handed over at `handed`.
    fn ready(&self, handed: u64) -> u64 {
        let paced = self.pace.map_or(0, |pace| self.start + after(pace, self.messages * self.bytes));
        handed.max(self.start).max(paced)
    }
}

impl Engine<'_> {
    /// A process begins: its first message comes at `start`.
    pub(crate) fn process_begins(&mut self, flow: usize) {
        let at = self.process(flow).ready(0);
        self.agenda.put(at, Group::ProcessReady, (flow, 0), Event::ProcessReady { flow });
    }

    fn process(&mut self, flow: usize) -> &mut Process {
        match &mut self.sources[flow] {
            Source::Process(process) => process,
            Source::Generator(_) => unreachable!("a generator has no process"),
        }
    }

    /// A process is ready for its next message.
    pub(crate) fn process_ready(&mut self, now: u64, flow: usize) {
        let end = self.end();
        let pauses = self.testbed.hosts[self.topology.flows[flow].from].pauses.clone();
        let process = self.process(flow);
        if now >= end || process.stop.is_some_and(|stop| now >= stop) {
            return;
        }
        if let Some(pauses) = pauses
            && process.random.below(Share::WHOLE) < pauses.share.0
        {
            let awake = now + process.random.exponential(pauses.mean.0);
            return self.agenda.put(awake, Group::ProcessReady, (flow, 0), Event::PauseEnds { flow });
        }
        self.begin_message(now, flow);
    }

    /// A process begins its next message.
    pub(crate) fn begin_message(&mut self, now: u64, flow: usize) {
        let fragments = self.process(flow).fragments.count;
        let datagram = self.ledger.begin(flow, fragments);
        let process = self.process(flow);
        process.messages += 1;
        process.datagram = datagram;
        process.fragment = 0;
        self.ask_for_fragment(now, flow);
    }

    fn ask_for_fragment(&mut self, now: u64, flow: usize) {
        let host = self.topology.flows[flow].from;
        let own = self.testbed.traffic[flow].data_path(Side::Send);
        let cost = self.testbed.hosts[host].occupation(Side::Send, own);
        let process = self.process(flow);
        let ip_payload = process.fragments.payload(process.fragment);
        let picoseconds = if process.fragment == 0 {
            cost.datagram_start() + cost.fragment(ip_payload - UDP_HEADER_BYTES)
        } else {
            cost.fragment(ip_payload)
        };
        self.ask_cpu(now, host, picoseconds, Item::Send { flow });
    }

    /// The CPU gets an item of so many picoseconds to do.
    pub(crate) fn ask_cpu(&mut self, now: u64, host: usize, cost: u64, item: Item) {
        self.hosts[host].waiting.push_back((cost, item));
        self.next_item(now, host);
    }

    fn next_item(&mut self, now: u64, host: usize) {
        let cpu = &mut self.hosts[host];
        if cpu.busy.is_some() {
            return;
        }
        if let Some((cost, item)) = cpu.waiting.pop_front() {
            let position = (item.flow(), 0);
            cpu.busy = Some(item);
            self.agenda.put(now + cost, Group::CpuEnds, position, Event::CpuEnds { host });
        }
    }

    /// The CPU has done an item.
    pub(crate) fn cpu_ends(&mut self, now: u64, host: usize) {
        match self.hosts[host].busy.take().expect("an item that ends has begun") {
            Item::Send { flow } => {
                self.agenda.put(now, Group::FrameHanded, (flow, 0), Event::FrameHanded { flow });
            }
            Item::Receive { flow, datagram } => {
                self.receive_buffers[flow] -= self.message(flow);
                self.ledger.received(now, flow, datagram, false);
            }
        }
        self.next_item(now, host);
    }

    /// Payload in bytes of a flow's datagrams.
    fn message(&self, flow: usize) -> u64 {
        match &self.testbed.traffic[flow] {
            Traffic::UdpStream(config) => config.message.bytes(),
            _ => unreachable!("only datagrams are kept in receive buffers"),
        }
    }

    /// The frame with the fragment that a process has in work.
    pub(crate) fn frame_in_work(&mut self, flow: usize) -> Frame {
        let circuit = self.vcs[self.vc_of(flow)].circuit;
        let encapsulation = self.topology.circuits[circuit].encapsulation;
        let process = self.process(flow);
        let sdu = encapsulation.sdu(IP_HEADER_BYTES + process.fragments.payload(process.fragment));
        Frame { flow, datagram: process.datagram, cells: engpass_model::wire::aal5::cells(sdu), sdu }
    }

    /// The fragment in work has been handed to the NIC: the process goes on with the next, or the next message.
    pub(crate) fn process_goes_on(&mut self, now: u64, flow: usize) {
        let process = self.process(flow);
        process.fragment += 1;
        if process.fragment < process.fragments.count {
            return self.ask_for_fragment(now, flow);
        }
        let (datagram, at) = (process.datagram, process.ready(now));
        self.ledger.sent(now, flow, datagram);
        self.agenda.put(at, Group::ProcessReady, (flow, 0), Event::ProcessReady { flow });
    }
}
