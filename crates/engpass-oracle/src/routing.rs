//! Shortest ways over links that carry frames and over circuits, and the ways that packets may take (docs/model.md, "Forwarding").

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::forward::{Ecmp, Heads};
use engpass_model::source::Traffic;
use engpass_model::source::poisson::Sizes;
use engpass_model::switch::Switch;
use engpass_model::wire::icmp::LONGEST;
use engpass_model::wire::ip::{IP_HEADER_BYTES, UDP_HEADER_BYTES};
use engpass_testbed::Testbed;
use engpass_testbed::topology::{CircuitPath, Fan, Hop, Leg, LinkEnds, NodeId, NodeKind};

use crate::agenda::Sender;
use crate::cell::{LineId, turned};
use crate::engine::Engine;
use crate::icmp::Messages;
use crate::packet::{Out, way_index};
use crate::resolve::kind;

/// A segment without data is no longer than this, in bytes.
const LONGEST_ACKNOWLEDGMENT: u64 = 120;

/// Packets of one sender, or the messages of one router about a traffic.
struct Stream {
    heads: Heads,
    way: usize,
    from: NodeId,
    to: NodeId,
    /// The length of all packets before any is cut, if they have the same.
    length: Option<u64>,
    /// Whether they are cut where they begin.
    cut: bool,
    /// Whether it is known of all of them where they are fragments.
    known: bool,
}

/// What packets may take.
pub(crate) struct Network<'a> {
    pub(crate) testbed: &'a Testbed,
    pub(crate) links: &'a [LinkEnds],
    /// Those of the file: generators bring theirs for their cells alone.
    pub(crate) circuits: &'a [CircuitPath],
}

/// A leg from a node.
struct Step {
    leg: Leg,
    to: NodeId,
    /// Its links in their order.
    links: Vec<usize>,
}

impl Network<'_> {
    fn nodes(&self) -> usize {
        self.testbed.hosts.len() + self.testbed.switches.len() + self.testbed.routers.len()
    }

    /// Whether a node passes packets on.
    fn passes(&self, node: NodeId) -> bool {
        let switch = node.checked_sub(self.testbed.hosts.len());
        switch.is_some_and(|switch| {
            let switch = self.testbed.switches.get_index(switch);
            !switch.is_some_and(|(_, switch)| matches!(switch, Switch::Atm(_)))
        })
    }

    /// The links of a leg in its direction.
    pub(crate) fn hops(&self, leg: Leg) -> Vec<Hop> {
        match leg {
            Leg::Link(hop) => vec![hop],
            Leg::Circuit { circuit, forward: true } => self.circuits[circuit].route.clone(),
            Leg::Circuit { circuit, forward: false } => {
                self.circuits[circuit].route.iter().rev().map(|hop| turned(*hop)).collect()
            }
        }
    }

    /// Bytes of the largest IP packet that a leg takes.
    pub(crate) fn mtu(&self, leg: Leg) -> u64 {
        match leg {
            Leg::Link(hop) => self.links[hop.link].mtu,
            Leg::Circuit { circuit, .. } => self.circuits[circuit].mtu,
        }
    }

    /// The legs from a node, in the order of their links; of circuits over the same links the first comes first.
    fn steps(&self, node: NodeId) -> Vec<Step> {
        let frames = self.links.iter().enumerate().filter(|(_, link)| !link.medium.is_atm());
        #[expect(
            clippy::redundant_closure,
            reason = "a constructor as a function would be a call into what is shared"
        )]
        let over_links = frames.flat_map(|(link, ends)| {
            let [one, other] = ends.ends;
            [Hop { link, from: one, to: other }, Hop { link, from: other, to: one }].map(|hop| Leg::Link(hop))
        });
        let over_circuits = (0..self.circuits.len())
            .flat_map(|circuit| [true, false].map(|forward| Leg::Circuit { circuit, forward }));
        let step = |leg: Leg| {
            let hops = self.hops(leg);
            let links = hops.iter().map(|hop| hop.link).collect();
            (hops[0].from == node).then(|| Step { leg, to: hops[hops.len() - 1].to, links })
        };
        let mut steps: Vec<Step> = over_links.chain(over_circuits).filter_map(step).collect();
        steps.sort_by(|one, other| one.links.cmp(&other.links));
        steps
    }

    /// Links from every node to `to`, those of circuits included, through no host.
    fn distances(&self, to: NodeId) -> BTreeMap<NodeId, usize> {
        let mut distances = BTreeMap::from([(to, 0)]);
        loop {
            let before = distances.clone();
            for node in (0..self.nodes()).filter(|node| *node != to) {
                let lengths = self.steps(node).into_iter().filter_map(|step| {
                    let passes = step.to == to || self.passes(step.to);
                    Some(before.get(&step.to).filter(|_| passes)? + step.links.len())
                });
                if let Some(least) = lengths.min() {
                    distances.insert(node, least);
                }
            }
            if distances == before {
                return distances;
            }
        }
    }

    /// The legs that begin a shortest way from a node, in the order of the file.
    fn group(&self, node: NodeId, to: NodeId) -> Vec<(Leg, NodeId)> {
        let distances = self.distances(to);
        let begins = |step: &Step| {
            let passes = step.to == to || self.passes(step.to);
            passes && distances.get(&step.to).is_some_and(|left| left + step.links.len() == distances[&node])
        };
        self.steps(node).into_iter().filter(begins).map(|step| (step.leg, step.to)).collect()
    }

    /// The way that takes the first of several legs everywhere.
    pub(crate) fn path(&self, from: NodeId, to: NodeId) -> Vec<Leg> {
        let (mut legs, mut node) = (Vec::new(), from);
        while node != to {
            let (leg, next) = self.group(node, to)[0];
            legs.push(leg);
            node = next;
        }
        legs
    }

    /// The shortest way that takes a circuit, in either direction, and meets no node twice; of several the one whose links come first in the file.
    pub(crate) fn path_over(&self, circuit: usize, from: NodeId, to: NodeId) -> Vec<Leg> {
        // Links, how many they are first, nodes and legs: they compare in this order.
        let mut found = Vec::new();
        let mut begun = vec![(Vec::new(), vec![from], Vec::new())];
        while let Some((links, met, legs)) = begun.pop() {
            let here = met[met.len() - 1];
            if here == to {
                let takes = |leg: &Leg| matches!(leg, Leg::Circuit { circuit: one, .. } if *one == circuit);
                if legs.iter().any(takes) {
                    found.push((links.len(), links, met, legs));
                }
                continue;
            }
            for step in self.steps(here) {
                if (step.to == to || self.passes(step.to)) && !met.contains(&step.to) {
                    let links: Vec<usize> = [links.clone(), step.links].concat();
                    begun.push((
                        links,
                        [met.clone(), vec![step.to]].concat(),
                        [legs.clone(), vec![step.leg]].concat(),
                    ));
                }
            }
        }
        found.into_iter().min().expect("a way leads over the circuit").3
    }

    /// Whether a node is a router whose policy chooses.
    fn chooses(&self, node: NodeId) -> bool {
        let before = self.testbed.hosts.len() + self.testbed.switches.len();
        let router = node.checked_sub(before);
        router.is_some_and(|router| !matches!(self.testbed.routers[router].ecmp, Ecmp::First(_)))
    }

    /// What each node that packets may come to knows of their way.
    pub(crate) fn fan(&self, from: NodeId, to: NodeId) -> Fan {
        let mut at = BTreeMap::new();
        let mut come_to = vec![from];
        while let Some(node) = come_to.pop() {
            if node == to || at.contains_key(&node) {
                continue;
            }
            let mut group = self.group(node, to);
            if !self.chooses(node) {
                group.truncate(1);
            }
            come_to.extend(group.iter().map(|(_, next)| *next));
            at.insert(node, group.into_iter().map(|(leg, _)| leg).collect());
        }
        Fan { at: at.into_iter().collect() }
    }

    /// The ways there and back where a policy chooses among several, in one direction at least.
    pub(crate) fn fans(&self, from: NodeId, to: NodeId) -> Option<Box<[Fan; 2]>> {
        let fans = [self.fan(from, to), self.fan(to, from)];
        let choice = fans.iter().flat_map(|fan| &fan.at).any(|(_, legs): &(NodeId, Vec<Leg>)| legs.len() > 1);
        choice.then(|| Box::new(fans))
    }
}

/// The lines that packets of a sender may take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Possible {
    pub(crate) lines: BTreeSet<LineId>,
    /// The legs that these belong to, in the order in which ways meet them that take the first of several first.
    pub(crate) outs: Vec<Out>,
    /// Those without which packets may come to their end, too.
    pub(crate) avoidable: BTreeSet<LineId>,
}

/// Where a packet of a sender may be, and whether it is a fragment there.
type Place = (NodeId, bool);

impl Engine<'_> {
    /// The lines that packets of every sender may take, by its number, and behind them those of the messages of routers.
    pub(crate) fn possible_ways(&self) -> Vec<Possible> {
        let senders = self.senders().into_iter().map(|sender| self.stream_of(sender));
        let messages =
            self.messages().into_iter().enumerate().map(|(number, of)| self.messages_of(number, of));
        senders.chain(messages).map(|stream| self.possible_of(&stream)).collect()
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
        let (start, to) = ((stream.from, stream.cut), stream.to);
        // All steps that a packet may take, as far as they lead to the end: all of them do.
        let mut steps: BTreeMap<Place, Vec<(Out, Place)>> = BTreeMap::new();
        let (mut come_to, mut outs) = (vec![(None, start)], Vec::new());
        while let Some((out, place)) = come_to.pop() {
            outs.extend(out);
            if place.0 == to || steps.contains_key(&place) {
                continue;
            }
            let taken = self.steps_from(place, stream);
            come_to.extend(taken.iter().rev().map(|(out, next)| (Some(*out), *next)));
            steps.insert(place, taken);
        }
        let lines: BTreeSet<LineId> = outs.iter().flat_map(|out| self.lines_of(*out)).collect();
        let without = |avoided: &LineId| {
            let mut reached = BTreeSet::new();
            let mut come_to = vec![start];
            while let Some(place) = come_to.pop() {
                if reached.insert(place) {
                    let taken = steps.get(&place).into_iter().flatten();
                    let onward = taken.filter(|(out, _)| !self.lines_of(*out).contains(avoided));
                    come_to.extend(onward.map(|(_, next)| *next));
                }
            }
            reached.iter().any(|(node, _)| *node == to)
        };
        Possible { avoidable: lines.iter().copied().filter(without).collect(), lines, outs }
    }

    /// The legs on which packets may leave a node, and where they are then.
    fn steps_from(&self, (node, fragment): Place, stream: &Stream) -> Vec<(Out, Place)> {
        let mut group = self.group_at(stream.way, node);
        if group.len() > 1
            && stream.known
            && !group.iter().any(|out| self.event_may_change(self.first_line(*out)))
            && let shares = self.shares(&group, &vec![true; group.len()])
            && let Some(member) = self.hashed(group[0], &shares, &stream.heads, fragment)
        {
            group = vec![group[member]];
        }
        let cuts = matches!(kind(&self.topology, node), NodeKind::Router(_));
        let step = |out: Out| {
            let fragment = fragment || cuts && stream.length.is_some_and(|length| length > self.mtu_of(out));
            (out, (self.end_of(out), fragment))
        };
        group.into_iter().map(step).collect()
    }

    /// The length of the IP packets of a flow before any is cut, if all of them have the same.
    fn length_of(&self, flow: usize, back: bool) -> Option<u64> {
        let payload = match &self.testbed.traffic[flow] {
            _ if back => return None,
            Traffic::UdpStream(config) => config.message,
            Traffic::UdpOnOff(config) => config.message,
            Traffic::Poisson(config) if config.sizes == Sizes::Fixed => config.message,
            _ => return None,
        };
        Some(IP_HEADER_BYTES + UDP_HEADER_BYTES + payload.bytes())
    }

    /// Whether all legs of a way take packets of so many bytes.
    fn takes_whole(&self, way: usize, bytes: u64) -> bool {
        self.ways[way].at.values().flatten().all(|out| self.mtu_of(*out) >= bytes)
    }

    /// Whether a line is on a way that data of some flow may take where policies choose, whatever they choose.
    pub(crate) fn is_on_a_fan(&self, line: LineId) -> bool {
        let flows = self.topology.flows.iter().enumerate().filter(|(_, path)| path.fans.is_some());
        let mut outs = flows.flat_map(|(flow, _)| self.ways[way_index(flow, false)].at.values().flatten());
        outs.any(|out| self.lines_of(*out).contains(&line))
    }
}
