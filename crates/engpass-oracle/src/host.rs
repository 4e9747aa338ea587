//! Processes that send datagrams, and their sockets at the other end (docs/model.md, "Hosts that send UDP").

use engpass_model::host::Side;
use engpass_model::random::Stream;
use engpass_model::source::{Multicast, Poisson, UdpOnOff, UdpStream};
use engpass_model::time::Pace;
use engpass_model::unit::{Duration, Share};
use engpass_model::wire::ip::UDP_HEADER_BYTES;

use crate::agenda::{Event, Group, Position, Sender};
use crate::arrivals::{Arrivals, Bursts, Gaps};
use crate::cell::after;
use crate::cost::{Costs, ps};
use crate::cpu::Item;
use crate::engine::{Engine, Source};
use crate::fragments::fragments;
use crate::ledger::Datagram;
use crate::outcome::Place;
use crate::packet::way_index;

/// When messages are due, and how long they are.
#[derive(Debug)]
enum Due {
    /// As soon as the one before is handed over, or at a pace (of a payload byte); so many bytes.
    Stream(Option<Pace>, u64),
    /// One after the other, as they are drawn.
    Drawn(Arrivals),
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
    /// Index of the fragment in work.
    fragment: usize,
}

impl Process {
    /// A `udp-stream` before its first message.
    pub(crate) fn stream(config: &UdpStream, random: Stream) -> Self {
        let pace = config.rate.map(|rate| Pace::of_bits(8, rate.0));
        let due = Due::Stream(pace, config.message.bytes());
        Self::new((config.start, config.stop), due, random)
    }

    /// A `poisson` source before its first message; gaps and payloads come from a stream of their own.
    pub(crate) fn poisson(config: &Poisson, random: Stream, gaps: Stream) -> Self {
        let due = Due::Drawn(Arrivals::Poisson(Gaps::new(config, gaps)));
        Self::new((config.start, config.stop), due, random)
    }

    /// A `udp-on-off` source before its first message; on- and off-times come from a stream of their own.
    pub(crate) fn on_off(config: &UdpOnOff, random: Stream, times: Stream) -> Self {
        let due = Due::Drawn(Arrivals::OnOff(Bursts::new(config, times)));
        Self::new((config.start, config.stop), due, random)
    }

    /// What sends to a group before its first message.
    pub(crate) fn group(config: &Multicast, random: Stream) -> Self {
        let due = Due::Stream(Some(Pace::of_bits(8, config.rate.0)), config.message.bytes());
        Self::new((config.start, config.stop), due, random)
    }

    fn new((start, stop): (Option<Duration>, Option<Duration>), due: Due, random: Stream) -> Self {
        let (start, stop) = (ps(start), stop.map(|stop| stop.0));
        Self { random, start, stop, due, bytes: 0, messages: 0, datagram: 0, fragment: 0 }
    }

    /// When the next message may begin, if the one before was handed over at `handed`.
    fn ready(&mut self, handed: u64) -> u64 {
        let due = match &mut self.due {
            Due::Stream(pace, bytes) => {
                self.bytes = *bytes;
                self.start + pace.map_or(0, |pace| after(pace, self.messages * *bytes))
            }
            Due::Drawn(arrivals) => {
                let (due, bytes) = arrivals.next();
                self.bytes = bytes;
                due
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
        let datagram = Datagram::udp(flow, UDP_HEADER_BYTES, bytes);
        let receivers = self.receivers_of(flow);
        let datagram = match receivers.is_empty() {
            true => self.ledger.begin(now, datagram),
            false => self.ledger.begin_for_group(now, &datagram, receivers.into_iter()),
        };
        let process = self.process(flow);
        process.messages += 1;
        process.datagram = datagram;
        process.fragment = 0;
        self.ask_for_fragment(now, flow);
    }

    /// The fragments of the message that a process has in work.
    fn fragments(&mut self, flow: usize) -> Vec<(u64, u64)> {
        let mtu = self.topology.flows[flow].mtu;
        fragments(self.process(flow).bytes + UDP_HEADER_BYTES, mtu)
    }

    fn ask_for_fragment(&mut self, now: u64, flow: usize) {
        let host = self.topology.flows[flow].from;
        let own = self.testbed.traffic[flow].data_path(Side::Send);
        let cost = Costs::of(&self.testbed.hosts[host], Side::Send, own);
        let fragment = self.process(flow).fragment;
        let (_, ip_payload) = self.fragments(flow)[fragment];
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
        let (offset, bytes) = fragments[fragment];
        self.packet(way_index(flow, false), datagram, offset, bytes)
    }

    /// The fragment in work has been handed to the NIC: the process goes on with the next, or the next message.
    pub(crate) fn process_goes_on(&mut self, now: u64, flow: usize) {
        let count = self.fragments(flow).len();
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
        let receiver = self.ledger.datagram(datagram).receiver;
        let host = receiver.map_or(self.topology.flows[flow].to, |number| self.receiver(number).host);
        let place = receiver.unwrap_or(flow);
        let receiver = &self.testbed.hosts[host];
        let traffic = &self.testbed.traffic[flow];
        let cost =
            Costs::of(receiver, Side::Receive, traffic.data_path(Side::Receive)).datagram(bytes, packets);
        let buffer = traffic.receive_buffer().unwrap_or(receiver.receive_buffer).bytes();
        if cost == 0 {
            self.ledger.received(now, datagram, 0);
        } else if self.receive_buffers[place] + bytes > buffer {
            self.ledger.lose(now, Place::ReceiveBuffer, datagram);
        } else {
            self.receive_buffers[place] += bytes;
            self.ask_cpu(now, host, cost, Item::Receive { datagram });
        }
    }
}
