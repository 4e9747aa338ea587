//! Processes that send datagrams, and their sockets at the other end (docs/model.md, "Hosts that send UDP").

use engpass_model::host::{Side, ps};
use engpass_model::random::Stream;
use engpass_model::source::{Arrivals, UdpStream};
use engpass_model::time::Pace;
use engpass_model::unit::{Duration, Share};
use engpass_model::wire::ip::{Fragments, UDP_HEADER_BYTES};

use crate::agenda::{Event, Group, Position, Sender};
use crate::cell::after;
use crate::cpu::Item;
use crate::engine::{Engine, Source};
use crate::ledger::Datagram;
use crate::outcome::Place;
use crate::packet::way_index;

/// When messages are due, and how long they are.
#[derive(Debug)]
enum Due {
    /// As soon as the one before is handed over, or at a pace (of a payload byte); so many bytes.
    Stream(Option<Pace>, u64),
    /// Drawn; when the last one drawn is due.
    Drawn(Arrivals, u64),
}

/// A process that sends datagrams.
#[derive(Debug)]
pub(crate) struct Process {
    random: Stream,
    start: u64,
    stop: Option<u64>,
    due: Due,
    /// Payload of the message in work, in bytes, or of the next one.
    bytes: u64,
    /// Messages begun.
    messages: u64,
    /// The message in work, as the ledger has it.
    datagram: usize,
    /// Fragment in work.
    fragment: u64,
}

impl Process {
    /// A `udp-stream` before its first message.
    pub(crate) fn stream(config: &UdpStream, random: Stream) -> Self {
        let pace = config.rate.map(|rate| Pace::of_bits(8, rate.0));
        let due = Due::Stream(pace, config.message.bytes());
        Self::new((ps(config.start), config.stop.map(|stop| stop.0)), due, random)
    }

    /// A `poisson` or `udp-on-off` source before its first message; `arrivals` has gaps and payloads.
    pub(crate) fn uneven(
        (start, stop): (Option<Duration>, Option<Duration>),
        random: Stream,
        arrivals: Arrivals,
    ) -> Self {
        let due = Due::Drawn(arrivals, ps(start));
        Self::new((ps(start), stop.map(|stop| stop.0)), due, random)
    }

    fn new((start, stop): (u64, Option<u64>), due: Due, random: Stream) -> Self {
        Self { random, start, stop, due, bytes: 0, messages: 0, datagram: 0, fragment: 0 }
    }

    /// When the next message may begin, if the one before was handed over at `handed`.
    fn ready(&mut self, handed: u64) -> u64 {
        let due = match &mut self.due {
            Due::Stream(pace, bytes) => {
                self.bytes = *bytes;
                self.start + pace.map_or(0, |pace| after(pace, self.messages * *bytes))
            }
            Due::Drawn(arrivals, due) => {
                let arrival = arrivals.next().expect("they do not end");
                self.bytes = arrival.bytes;
                *due += arrival.gap.ps();
                *due
            }
        };
        handed.max(due)
    }
}

impl Engine<'_> {
    /// A sender's place among those of its group.
    pub(crate) fn place_of(&self, sender: Sender) -> Position {
        match sender {
            Sender::Process(flow) => (flow, 0),
            Sender::Endpoint(endpoint) => {
                let this = &self.endpoints[endpoint];
                (this.flow, this.place)
            }
        }
    }

    /// A process begins: its first message comes at `start`, or a gap later.
    pub(crate) fn process_begins(&mut self, flow: usize) {
        let at = self.process(flow).ready(0);
        self.agenda.put(at, Group::ProcessReady, (flow, 0), Event::ProcessReady { flow });
    }

    fn process(&mut self, flow: usize) -> &mut Process {
        match &mut self.sources[flow] {
            Source::Process(process) => process,
            _ => unreachable!("only datagrams have a process"),
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
        let bytes = self.process(flow).bytes;
        let datagram = self.ledger.begin(now, Datagram::udp(flow, UDP_HEADER_BYTES, bytes));
        let process = self.process(flow);
        process.messages += 1;
        process.datagram = datagram;
        process.fragment = 0;
        self.ask_for_fragment(now, flow);
    }

    /// How a host cuts the message that it has in work.
    fn fragments(&mut self, flow: usize) -> Fragments {
        let mtu = self.topology.flows[flow].mtu;
        Fragments::of(self.process(flow).bytes + UDP_HEADER_BYTES, mtu)
    }

    fn ask_for_fragment(&mut self, now: u64, flow: usize) {
        let host = self.topology.flows[flow].from;
        let own = self.testbed.traffic[flow].data_path(Side::Send);
        let cost = self.testbed.hosts[host].occupation(Side::Send, own);
        let fragments = self.fragments(flow);
        let fragment = self.process(flow).fragment;
        let ip_payload = fragments.payload(fragment);
        let picoseconds = if fragment == 0 {
            cost.datagram_start() + cost.fragment(ip_payload - UDP_HEADER_BYTES)
        } else {
            cost.fragment(ip_payload)
        };
        self.ask_cpu(now, host, picoseconds, Item::Send { flow });
    }

    /// The packet with the fragment that a process has in work.
    pub(crate) fn fragment_in_work(&mut self, flow: usize) -> crate::packet::Packet {
        let fragments = self.fragments(flow);
        let process = self.process(flow);
        let (datagram, fragment) = (process.datagram, process.fragment);
        let bytes = fragments.payload(fragment);
        self.packet(way_index(flow, false), datagram, fragment * fragments.full, bytes)
    }

    /// The fragment in work has been handed to the NIC: the process goes on with the next, or the next message.
    pub(crate) fn process_goes_on(&mut self, now: u64, flow: usize) {
        let count = self.fragments(flow).count;
        let process = self.process(flow);
        process.fragment += 1;
        if process.fragment < count {
            return self.ask_for_fragment(now, flow);
        }
        let (datagram, at) = (process.datagram, process.ready(now));
        self.ledger.sent(now, datagram);
        self.agenda.put(at, Group::ProcessReady, (flow, 0), Event::ProcessReady { flow });
    }

    /// All packets of a datagram are at its host; so many they were.
    pub(crate) fn datagram_complete(&mut self, now: u64, datagram: usize, packets: u64) {
        let (flow, bytes) = (self.ledger.datagram(datagram).flow, self.ledger.datagram(datagram).payload);
        let host = self.topology.flows[flow].to;
        let receiver = &self.testbed.hosts[host];
        let traffic = &self.testbed.traffic[flow];
        let cost =
            receiver.occupation(Side::Receive, traffic.data_path(Side::Receive)).datagram(bytes, packets);
        let buffer = traffic.receive_buffer().unwrap_or(receiver.receive_buffer).bytes();
        if cost == 0 {
            self.ledger.received(now, datagram, 0);
        } else if self.receive_buffers[flow] + bytes > buffer {
            self.ledger.lose(now, Place::ReceiveBuffer, datagram);
        } else {
            self.receive_buffers[flow] += bytes;
            self.ask_cpu(now, host, cost, Item::Receive { datagram });
        }
    }
}
