//! Shortest ways over links that carry frames, and the ways that packets may take (docs/model.md, "Forwarding").

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use engpass_model::forward::Ecmp;
use engpass_model::source::Traffic;
use engpass_model::source::poisson::Sizes;
use engpass_model::wire::ip::{IP_HEADER_BYTES, UDP_HEADER_BYTES};
use engpass_testbed::Testbed;
use engpass_testbed::topology::{Fan, Hop, Leg, LinkEnds, NodeId, NodeKind};

use crate::agenda::Sender;
use crate::cell::LineId;
use crate::engine::Engine;
use crate::packet::{Way, way_index};
use crate::resolve::kind;

/// A segment without data is no longer than this, in bytes.
const LONGEST_ACKNOWLEDGMENT: u64 = 120;

/// What is known of the way of packets between two nodes.
struct Network<'a> {
    testbed: &'a Testbed,
    hosts: usize,
    links: &'a [LinkEnds],
}

impl Network<'_> {
    /// The hops from a node over links that carry frames, in the order of the links.
    fn hops(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        let frames = self.links.iter().enumerate().filter(|(_, link)| !link.medium.is_atm());
        frames.flat_map(move |(link, ends)| {
            let both = [[ends.ends[0], ends.ends[1]], [ends.ends[1], ends.ends[0]]];
            both.into_iter().filter(move |[from, _]| *from == node).map(move |[from, to]| Hop {
                link,
                from,
                to,
            })
        })
    }

    /// Links from every node to `to`, through no host.
    fn distances(&self, to: NodeId) -> BTreeMap<NodeId, u64> {
        let mut distances = BTreeMap::from([(to, 0)]);
        let mut reached = VecDeque::from([to]);
        while let Some(node) = reached.pop_front() {
            if node < self.hosts && node != to {
                continue;
            }
            for Hop { to: next, .. } in self.hops(node) {
                if !distances.contains_key(&next) {
                    distances.insert(next, distances[&node] + 1);
                    reached.push_back(next);
                }
            }
        }
        distances
    }

    /// The hops that begin a shortest way from a node, in the order of the file.
    fn group(&self, node: NodeId, to: NodeId) -> Vec<Hop> {
        let distances = self.distances(to);
        let closer = |hop: &Hop| {
            let passes = hop.to == to || hop.to >= self.hosts;
            passes && distances.get(&hop.to).is_some_and(|left| left + 1 == distances[&node])
        };
        self.hops(node).filter(closer).collect()
    }

    /// Whether a node is a router whose policy chooses.
    fn chooses(&self, node: NodeId) -> bool {
        let switches = self.testbed.switches.len();
        let router = node.checked_sub(self.hosts + switches);
        router.is_some_and(|router| !matches!(self.testbed.routers[router].ecmp, Ecmp::First(_)))
    }

    /// What each node that packets may come to knows of their way.
    fn fan(&self, from: NodeId, to: NodeId) -> Fan {
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
            come_to.extend(group.iter().map(|hop| hop.to));
            at.insert(node, group.iter().map(|hop| Leg::Link(*hop)).collect());
        }
        Fan { at: at.into_iter().collect() }
    }
}

/// The ways there and back where a policy chooses among several, in one direction at least.
pub(crate) fn fans(
    testbed: &Testbed,
    links: &[LinkEnds],
    (from, to): (NodeId, NodeId),
) -> Option<Box<[Fan; 2]>> {
    let network = Network { testbed, hosts: testbed.hosts.len(), links };
    let fans = [network.fan(from, to), network.fan(to, from)];
    let choice = fans.iter().flat_map(|fan| &fan.at).any(|(_, legs)| legs.len() > 1);
    choice.then(|| Box::new(fans))
}

/// The lines that packets of a sender may take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Possible {
    pub(crate) lines: BTreeSet<LineId>,
    /// Those without which packets may come to their end, too.
    pub(crate) avoidable: BTreeSet<LineId>,
}

/// Where a packet of a sender may be, and whether it is a fragment there.
type Place = (NodeId, bool);

impl Engine<'_> {
    /// The lines that packets of every sender may take, by its number.
    pub(crate) fn possible_ways(&self) -> Vec<Possible> {
        self.senders().into_iter().map(|sender| self.possible_of(sender)).collect()
    }

    fn possible_of(&self, sender: Sender) -> Possible {
        let (flow, back) = match sender {
            Sender::Process(flow) => (flow, false),
            Sender::Endpoint(endpoint) => (self.endpoints[endpoint].flow, !self.endpoints[endpoint].writes()),
        };
        let path = &self.topology.flows[flow];
        let (from, to) = if back { (path.to, path.from) } else { (path.from, path.to) };
        let Way::Links { .. } = &self.ways[way_index(flow, back)] else {
            let Way::Circuit(vc) = self.ways[way_index(flow, back)] else { unreachable!("it is a circuit") };
            let lines = self.vcs[vc].lines.iter().copied().collect();
            return Possible { lines, avoidable: BTreeSet::new() };
        };
        let start = (from, self.length_of(flow, back).is_some_and(|length| length > path.mtu));
        // All steps that a packet may take, as far as they lead to the end: all of them do.
        let mut steps: BTreeMap<Place, Vec<(LineId, Place)>> = BTreeMap::new();
        let mut come_to = vec![start];
        while let Some(place) = come_to.pop() {
            if place.0 == to || steps.contains_key(&place) {
                continue;
            }
            let taken = self.steps_from(place, sender, (flow, back));
            come_to.extend(taken.iter().map(|(_, next)| *next));
            steps.insert(place, taken);
        }
        let lines: BTreeSet<LineId> = steps.values().flatten().map(|(line, _)| *line).collect();
        let without = |avoided: &LineId| {
            let mut reached = BTreeSet::new();
            let mut come_to = vec![start];
            while let Some(place) = come_to.pop() {
                if reached.insert(place) {
                    let taken = steps.get(&place).into_iter().flatten();
                    come_to.extend(taken.filter(|(line, _)| line != avoided).map(|(_, next)| *next));
                }
            }
            reached.iter().any(|(node, _)| *node == to)
        };
        Possible { avoidable: lines.iter().copied().filter(without).collect(), lines }
    }

    /// The lines on which packets of a sender may leave a node, and where they are then.
    fn steps_from(
        &self,
        (node, fragment): Place,
        sender: Sender,
        whose: (usize, bool),
    ) -> Vec<(LineId, Place)> {
        let (flow, back) = whose;
        let mut group = self.group_at(way_index(flow, back), node);
        if group.len() > 1
            && self.is_known(whose)
            && !group.iter().any(|line| self.event_may_change(*line))
            && let Some(member) = self.hashed(&group, &vec![true; group.len()], &self.heads(sender), fragment)
        {
            group = vec![group[member]];
        }
        let cuts = matches!(kind(&self.topology, node), NodeKind::Router(_));
        let length = self.length_of(flow, back);
        let step = |line: LineId| {
            let link = &self.topology.links[line.link];
            let fragment = fragment || cuts && length.is_some_and(|length| length > link.mtu);
            (line, (link.ends[1 - line.end], fragment))
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

    /// Whether it is known of all packets in a direction of a flow where they are fragments.
    fn is_known(&self, (flow, back): (usize, bool)) -> bool {
        let path = &self.topology.flows[flow];
        match &self.testbed.traffic[flow] {
            Traffic::TcpStream(_) => {
                let fans = path.fans.iter().flat_map(|fans| &fans[usize::from(back)].at);
                let mut legs = fans.flat_map(|(_, legs)| legs);
                legs.all(|leg| match leg {
                    Leg::Link(hop) => self.topology.links[hop.link].mtu >= LONGEST_ACKNOWLEDGMENT,
                    Leg::Circuit { .. } => false,
                })
            }
            _ => self.length_of(flow, back).is_some(),
        }
    }

    /// Whether a line is on a way that data of some flow may take where policies choose, whatever they choose.
    pub(crate) fn is_on_a_fan(&self, line: LineId) -> bool {
        let fans = self.topology.flows.iter().filter_map(|path| path.fans.as_ref());
        fans.flat_map(|fans| &fans[0].at).flat_map(|(_, legs)| legs).any(|leg| match leg {
            Leg::Link(hop) => LineId::of(&self.topology, *hop) == line,
            Leg::Circuit { .. } => false,
        })
    }
}
