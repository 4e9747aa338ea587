//! The paths that packets of a sender may take (docs/ledger.md, "Who could have used a line").
//!
//! The state is in `../possible.rs`.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::forward::PacketView;
use engpass_model::source::Traffic;
use engpass_model::source::poisson::Sizes;
use engpass_model::wire::icmp::LONGEST;
use engpass_model::wire::ip::{IP_HEADER_BYTES, UDP_HEADER_BYTES};
use engpass_testbed::topology::NodeKind;

use super::Engine;
use crate::cell::LineId;
use crate::event_queue::Sender;
use crate::icmp::Messages;
use crate::packet::{Out, way_index};
use crate::possible::{LONGEST_ACKNOWLEDGMENT, Place, Possible, Stream};
use crate::resolve::kind;

impl Engine<'_> {
    /// Returns the lines that packets of every sender may take, by number of the sender, then those of ICMP messages.
    pub(crate) fn possible_ways(&self) -> Vec<Possible> {
        let senders = self.senders().into_iter().map(|sender| self.streams_of(sender));
        let messages =
            self.messages().into_iter().enumerate().map(|(number, of)| vec![self.messages_of(number, of)]);
        let all = |streams: Vec<Stream>| {
            let mut possible = Possible::default();
            for to_one in streams.iter().map(|stream| self.possible_of(stream)) {
                possible.lines.extend(to_one.lines);
                possible.outs.extend(to_one.outs);
                possible.avoidable.extend(to_one.avoidable);
            }
            possible
        };
        senders.chain(messages).map(all).collect()
    }

    /// Returns the streams of a sender: one, or one per receiver of a multicast group.
    fn streams_of(&self, sender: Sender) -> Vec<Stream> {
        let Sender::Process(flow) = sender else { return vec![self.stream_of(sender)] };
        let to = |number| Stream {
            way: self.way_to(number),
            to: self.receiver(number).host,
            ..self.stream_of(sender)
        };
        match self.receivers_of(flow) {
            one if one.is_empty() => vec![self.stream_of(sender)],
            several => several.into_iter().map(to).collect(),
        }
    }

    fn stream_of(&self, sender: Sender) -> Stream {
        let (flow, back) = match sender {
            Sender::Process(flow) => (flow, false),
            Sender::Endpoint(endpoint) => (self.endpoints[endpoint].flow, !self.endpoints[endpoint].writes()),
        };
        let path = &self.topology.flows[flow];
        let (from, to) = if back { (path.to, path.from) } else { (path.from, path.to) };
        let way = way_index(flow, back);
        let length = self.length_of(flow, back);
        let known = match &self.testbed.traffic[flow] {
            Traffic::TcpStream(_) => self.takes_whole(way, LONGEST_ACKNOWLEDGMENT),
            _ => length.is_some(),
        };
        let cut = length.is_some_and(|length| length > path.mtu);
        Stream { heads: self.heads(sender), way, from, to, length, cut, known }
    }

    fn messages_of(&self, number: usize, messages: Messages) -> Stream {
        let way = self.message_way(number);
        Stream {
            heads: self.message_heads(messages),
            way,
            from: messages.router,
            to: self.topology.flows[messages.flow].from,
            length: None,
            cut: false,
            known: self.takes_whole(way, LONGEST),
        }
    }

    fn possible_of(&self, stream: &Stream) -> Possible {
        let (start, to) = (
            Place { node: stream.from, fragment: stream.cut, tunnels: Vec::new(), framed_at: None },
            stream.to,
        );
        // All steps that a packet may take. Every one of them leads to the end.
        let mut steps: BTreeMap<Place, Vec<(Out, Place)>> = BTreeMap::new();
        let (mut come_to, mut outs) = (vec![(None, start.clone())], Vec::new());
        while let Some((out, place)) = come_to.pop() {
            outs.extend(out);
            if place.node == to || steps.contains_key(&place) {
                continue;
            }
            let taken = self.steps_from(&place, stream);
            come_to.extend(taken.iter().rev().map(|(out, next)| (Some(*out), next.clone())));
            steps.insert(place, taken);
        }
        let lines: BTreeSet<LineId> = outs.iter().flat_map(|out| self.lines_of(*out)).collect();
        let without = |avoided: &LineId| {
            let mut reached = BTreeSet::new();
            let mut come_to = vec![start.clone()];
            while let Some(place) = come_to.pop() {
                let taken = steps.get(&place).into_iter().flatten();
                if reached.insert(place) {
                    let onward = taken.filter(|(out, _)| !self.lines_of(*out).contains(avoided));
                    come_to.extend(onward.map(|(_, next)| next.clone()));
                }
            }
            reached.iter().any(|place| place.node == to)
        };
        Possible { avoidable: lines.iter().copied().filter(without).collect(), lines, outs }
    }

    /// Returns the links and circuits on which packets may leave a node, and their positions after that.
    fn steps_from(&self, place: &Place, stream: &Stream) -> Vec<(Out, Place)> {
        // Outer packets show the same headers, fragmented or not.
        let (way, heads, known) = match place.tunnels.last() {
            Some(&tunnel) => (self.tunnels[tunnel].way, self.outer_heads(tunnel), true),
            None => (stream.way, stream.heads, stream.known),
        };
        let mut group = self.group_at(way, place.node);
        if group.len() > 1 && known && !group.iter().any(|out| self.event_may_change(*out)) {
            let member = if let Some(bond) = self.bond_on(group[0]) {
                let framed_at = place.framed_at.unwrap_or_else(|| self.first_line(group[0]));
                let macs = self.macs(way, framed_at, group[0]);
                self.bonded(bond, &group, &PacketView { heads: &heads, fragment: place.fragment, macs }, None)
            } else {
                let shares = self.shares(&group, &vec![true; group.len()]);
                self.hashed(group[0], &shares, &heads, place.fragment)
            };
            group = member.map_or(group.clone(), |member| vec![group[member]]);
        }
        let cuts =
            place.tunnels.is_empty() && matches!(kind(&self.topology, place.node), NodeKind::Router(_));
        let step = |out: Out| {
            let mut next = place.clone();
            let too_long = stream.length.is_some_and(|length| length > self.mtu_of(out));
            next.fragment |= cuts && too_long && !self.refuses(out);
            if let Out::Tunnel(tunnel) = out {
                next.tunnels.push(tunnel);
                return self.steps_from(&next, stream);
            }
            next.node = self.end_of(out);
            let here = kind(&self.topology, place.node);
            next.framed_at = match (kind(&self.topology, next.node), here) {
                (NodeKind::Switch(_), NodeKind::Switch(_)) => place.framed_at,
                (NodeKind::Switch(_), _) => Some(self.first_line(out)),
                _ => None,
            };
            while next.tunnels.last().is_some_and(|tunnel| self.tunnels[*tunnel].to == next.node) {
                next.tunnels.pop();
            }
            vec![(out, next)]
        };
        group.into_iter().flat_map(step).collect()
    }

    /// Returns the length of the IP packets of a flow before fragmentation in bytes, if all are equally long.
    fn length_of(&self, flow: usize, back: bool) -> Option<u64> {
        let payload = match &self.testbed.traffic[flow] {
            _ if back => return None,
            Traffic::UdpStream(config) if !config.sentinels => config.message,
            Traffic::UdpOnOff(config) => config.message,
            Traffic::Video(config) => config.message,
            Traffic::Multicast(config) => config.message,
            Traffic::Poisson(config) if config.sizes == Sizes::Fixed => config.message,
            _ => return None,
        };
        Some(IP_HEADER_BYTES + UDP_HEADER_BYTES + payload.bytes())
    }

    /// Returns true if all segments of a path have an MTU of at least `bytes`.
    fn takes_whole(&self, way: usize, bytes: u64) -> bool {
        self.ways[way].at.values().flatten().all(|out| self.mtu_of(*out) >= bytes)
    }

    /// Returns true if policies could choose a path over this line for data of some flow.
    pub(crate) fn is_on_a_fan(&self, line: LineId) -> bool {
        let flows = self.topology.flows.iter().enumerate().filter(|(_, path)| path.fans.is_some());
        let mut outs = flows.flat_map(|(flow, _)| self.ways[way_index(flow, false)].at.values().flatten());
        outs.any(|out| self.lines_of(*out).contains(&line))
    }
}
