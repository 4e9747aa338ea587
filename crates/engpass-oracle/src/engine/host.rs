//! Processes that send datagrams, and the receiving sockets (docs/model.md, "Hosts that send UDP").
//!
//! The state is in `../host.rs`.

use engpass_model::host::Side;
use engpass_model::unit::Share;
use engpass_model::wire::ip::UDP_HEADER_BYTES;

use super::{Engine, Source};
use crate::cost::Costs;
use crate::cpu::Item;
use crate::event_queue::{Event, Group, Position, Sender};
use crate::fragments::fragments;
use crate::host::Process;
use crate::ledger::Datagram;
use crate::outcome::Place;
use crate::packet::way_index;

impl Engine<'_> {
    /// Returns the position of a sender among events of one group.
    pub(crate) fn place_of(&self, sender: Sender) -> Position {
        match sender {
            Sender::Process(flow) => (flow, 0),
            Sender::Endpoint(endpoint) => {
                let this = &self.endpoints[endpoint];
                (this.flow, this.place)
            }
        }
    }

    /// Starts a process: its first message is due at `start`, or one gap later.
    pub(crate) fn process_begins(&mut self, flow: usize) {
        let at = self.process(flow).ready(0);
        self.agenda.put(at, Group::ProcessReady, (flow, 0), Event::ProcessReady { flow });
    }

    fn process(&mut self, flow: usize) -> &mut Process {
        match &mut self.sources[flow] {
            Source::Process(process) => process,
            _ => unreachable!("the flow has a sending process"),
        }
    }

    /// Handles a process that is ready for its next message: it begins the message, pauses first, or ends.
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

    /// Begins the next message of a process.
    pub(crate) fn begin_message(&mut self, now: u64, flow: usize) {
        let bytes = self.process(flow).bytes;
        let datagram = Datagram::udp(flow, UDP_HEADER_BYTES, bytes);
        let receivers = self.receivers_of(flow);
        let datagram = match receivers.is_empty() {
            true => self.ledger.begin(now, datagram),
            false => {
                let counted = |receiver| (receiver, self.counts_now(receiver, now));
                let receivers: Vec<(usize, bool)> = receivers.into_iter().map(counted).collect();
                self.ledger.begin_for_group(now, &datagram, receivers.into_iter())
            }
        };
        let process = self.process(flow);
        process.messages += 1;
        process.datagram = datagram;
        process.fragment = 0;
        self.ask_for_fragment(now, flow);
    }

    /// Returns the fragments of the message in work of a process.
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

    /// Returns the packet with the fragment in work of a process.
    pub(crate) fn fragment_in_work(&mut self, flow: usize) -> crate::packet::Packet {
        let fragments = self.fragments(flow);
        let process = self.process(flow);
        let (datagram, fragment) = (process.datagram, process.fragment);
        let (offset, bytes) = fragments[fragment];
        self.packet(way_index(flow, false), datagram, offset, bytes)
    }

    /// Continues a process whose fragment was handed to the NIC, with the next fragment or message.
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

    /// Handles a datagram of which all packets, `packets` in number, have reached its host.
    pub(crate) fn datagram_complete(&mut self, now: u64, datagram: usize, packets: u64) {
        if !self.reaches_member(now, datagram) {
            return;
        }
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
            self.receives(now, datagram, 0);
        } else if self.receive_buffers[place] + bytes > buffer {
            self.ledger.lose(now, Place::ReceiveBuffer, datagram);
        } else {
            self.receive_buffers[place] += bytes;
            self.ask_cpu(now, host, cost, Item::Receive { datagram });
        }
    }
}
