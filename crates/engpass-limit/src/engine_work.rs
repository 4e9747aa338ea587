//! Work of the engines of routers on the packets of a flow.

use std::collections::BTreeMap;

use engpass_model::idle::{self, LonePacket};
use engpass_model::source::Traffic;
use engpass_model::switching::{Passage, Work};
use engpass_testbed::topology::{NodeId, NodeKind, PathSegment};
use engpass_testbed::{Move, Spread, Testbed, Topology};

use crate::piece::{Part, cut_into};

/// A node that copies the packets of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopyPoint {
    /// Copies beyond the first that it certainly makes of each packet.
    pub(crate) more: u64,
    /// First path segments of all copies.
    pub(crate) legs: Vec<PathSegment>,
}

/// Context of a flow's packets at routers.
#[derive(Clone, Copy)]
pub(super) struct EngineWork<'a> {
    pub(super) testbed: &'a Testbed,
    pub(super) topology: &'a Topology,
    pub(super) is_multicast: bool,
    /// For a receiver of a group, the nodes that copy its packets.
    pub(super) copies: Option<&'a BTreeMap<NodeId, CopyPoint>>,
}

/// Work of one engine on a packet.
pub(super) struct StepWork {
    /// 0 for the route processor, else the number of the card, from 1.
    pub(super) engine: usize,
    /// Time in picoseconds, copies included.
    pub(super) time: f64,
    /// Time of each fragment beyond the first.
    pub(super) per_fragment: f64,
}

/// Where packets go from a stop.
#[derive(Default)]
struct Onward {
    links: Vec<usize>,
    enters: bool,
    leaves: bool,
    /// Tunnels that packets enter, and the path segment by which they leave.
    segments: Vec<PathSegment>,
}

impl<'a> EngineWork<'a> {
    /// Returns the work on packets of this traffic.
    pub(super) fn new(testbed: &'a Testbed, topology: &'a Topology, traffic: &Traffic) -> Self {
        let is_multicast = matches!(traffic, Traffic::Multicast(_));
        Self { testbed, topology, is_multicast, copies: None }
    }

    /// Returns the work at a router, in order, on packets that come by `link` to a stop of a spread.
    pub(super) fn at(&self, router: usize, link: usize, spread: &Spread, stop: usize) -> Vec<StepWork> {
        let node = spread.stops[stop].node;
        let more = self.copies.and_then(|copies| copies.get(&node)).map_or(0, |point| point.more) as f64;
        let (punt, work) = self.chosen(router, link, spread, stop);
        let of = |work: Work, more: f64| StepWork {
            engine: work.engine,
            time: work.time as f64 + work.per_copy as f64 * more,
            per_fragment: work.per_fragment as f64,
        };
        punt.map(|punt| of(punt, 0.0)).into_iter().chain([of(work, more)]).collect()
    }

    /// Takes lone packets through the engines of a router.
    pub(super) fn pass(
        &self,
        router: usize,
        link: usize,
        (spread, stop): (&Spread, usize),
        packets: &mut [LonePacket],
    ) {
        let (punt, work) = self.chosen(router, link, spread, stop);
        for work in punt.into_iter().chain([work]) {
            idle::pass_engine(packets, work.time);
        }
    }

    /// Returns the number of additional fragments into which the path segments behind a stop cut these packets.
    pub(super) fn fragments(&self, spread: &Spread, stop: usize, parts: &[Part]) -> f64 {
        let count = |parts: &[Part]| parts.iter().map(|part| part.count).sum::<f64>();
        let mut packets = parts.to_vec();
        for leg in self.onward(spread, stop).0.segments {
            let mut cut = Vec::new();
            packets.iter().for_each(|part| cut_into(&mut cut, *part, self.topology.mtu(leg)));
            if let PathSegment::Tunnel { tunnel, .. } = leg {
                let is_refused = self.topology.refuses(leg) && count(&cut) > count(&packets);
                cut = if is_refused { packets.clone() } else { cut };
                cut.iter_mut().for_each(|part| part.added += self.topology.tunnels[tunnel].added);
            }
            packets = cut;
        }
        count(&packets) - count(parts)
    }

    /// Returns true if a node is a router whose work depends on the packet.
    pub(super) fn has_kinds(&self, node: NodeId) -> bool {
        match self.topology.kind(node) {
            NodeKind::Router(router) => self.testbed.routers[router].has_kinds_of_work(),
            _ => false,
        }
    }

    fn chosen(&self, router: usize, link: usize, spread: &Spread, stop: usize) -> (Option<Work>, Work) {
        let (onward, after) = self.onward(spread, stop);
        let name = |link: &usize| self.topology.links[*link].name.as_str();
        let to: Vec<&str> = onward.links.iter().map(name).collect();
        let passage = Passage {
            from: Some(name(&link)),
            to: &to,
            multicast: self.is_multicast && spread.stops[after].tunnels.is_empty(),
            enters: onward.enters,
            leaves: onward.leaves,
        };
        self.testbed.routers[router].work(&passage)
    }

    /// Returns where packets go from a stop, and the stop behind the tunnels that end there.
    fn onward(&self, spread: &Spread, stop: usize) -> (Onward, usize) {
        let (mut onward, mut at, mut after) = (Onward::default(), stop, stop);
        let node = spread.stops[stop].node;
        loop {
            let here = &spread.stops[at];
            let copies = self.copies.filter(|_| here.tunnels.is_empty()).and_then(|copies| copies.get(&node));
            if let Some(point) = copies.filter(|_| !onward.enters) {
                onward.enters = point.legs.iter().any(|leg| matches!(leg, PathSegment::Tunnel { .. }));
                onward.links.extend(point.legs.iter().map(|leg| self.topology.first_hop(*leg).link));
                return (onward, after);
            }
            // At a router with several kinds of work all path segments to choose from take the same work.
            let Some(first) = here.onward.first() else { return (onward, after) };
            match first.by {
                Move::Leave => {
                    onward.leaves = true;
                    after = first.to;
                }
                Move::Enter(leg) => {
                    onward.enters = true;
                    onward.segments.push(leg);
                }
                Move::Leg(leg) => {
                    onward.links.push(self.topology.first_hop(leg).link);
                    onward.segments.push(leg);
                    return (onward, after);
                }
            }
            at = first.to;
        }
    }
}
