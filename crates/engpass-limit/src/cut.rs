//! Bounds of flows with several paths: what all parallel lines carry together.
//!
//! All paths have the same number of links, so every packet crosses one link of each *level*. A flow gets no more than the lines of a level carry together, and
//! each line carries no more than the traffic that can come to it.

use std::collections::BTreeMap;

use engpass_testbed::topology::{Hop, NodeId, PathSegment};
use engpass_testbed::{Move, Spread, Stop, Topology, choice};

use super::ROUNDING;
use super::demand::Builder;
use super::need::{Demand, Place, Spot, Turns};
use super::piece::Part;
use super::way::There;

impl Builder<'_> {
    /// Returns the stops of a lane at which strict round-robin is certain. All its datagrams have one length.
    pub(super) fn turns(&self, demand: &Demand<'_>, there: &There) -> BTreeMap<usize, Turns> {
        let mut turns = BTreeMap::new();
        let own = |stop: &&Stop| stop.in_turns && stop.tunnels.is_empty();
        for (place, stop) in demand.lane.there.stops.iter().enumerate().filter(|(_, stop)| own(stop)) {
            let legs: Vec<PathSegment> = stop.onward.iter().filter_map(|onward| onward.by.leg()).collect();
            if !self.sharing.is_own_group(stop.node, &legs) {
                continue;
            }
            let bits = || there.arriving[place].parts.iter().map(Part::bits);
            let (longest, shortest) = (bits().fold(0.0, f64::max), bits().fold(f64::INFINITY, f64::min));
            // Packets without payload also take part in the round-robin.
            if shortest <= 0.0 {
                continue;
            }
            let members = choice(self.testbed, self.topology, stop.node, &legs).members;
            let above = members.iter().zip(&stop.onward);
            let above =
                above.map(|(member, onward)| f64::from(member.weight) * (1.0 - onward.share) * longest);
            turns.insert(place, Turns { ratio: longest / shortest, above: above.collect() });
        }
        turns
    }
}

/// Payload that can pass the resources at one place, for all lanes of a flow, in bit/s.
#[derive(Clone, Copy)]
struct PlaceTotals {
    /// Largest bound of any lane that uses the place alone, without `ahead`.
    most: f64,
    /// Payload of all lanes that arrives without using the resource in the measurement window.
    ahead: f64,
    /// Payload that can come to the place.
    comes: f64,
}

impl PlaceTotals {
    /// A place to which no lane was added.
    const OPEN: Self = Self { most: f64::NEG_INFINITY, ahead: 0.0, comes: 0.0 };

    /// Adds lanes whose payload `comes` arrives here and whose own bound here is `own`. Returns the part of this payload that passes.
    fn add(&mut self, own: Option<&Self>, comes: f64) -> f64 {
        let (most, ahead) = own.map_or((f64::INFINITY, 0.0), |own| (own.most, own.ahead));
        self.most = self.most.max(most);
        self.ahead += ahead;
        self.comes += comes;
        comes.min(most + ahead)
    }

    /// Returns the payload that passes the place, and the payload that could pass if more came.
    fn passes(&self) -> [f64; 2] {
        let most = self.most + self.ahead;
        [self.comes.min(most), most]
    }
}

/// One level of the paths of a flow.
#[derive(Default)]
struct Level {
    /// The lines of the level, each with the resources before it by path segment.
    lines: BTreeMap<Hop, (PlaceTotals, BTreeMap<PathSegment, PlaceTotals>)>,
    /// The nodes before these lines at which a path segment begins.
    nodes: BTreeMap<NodeId, PlaceTotals>,
    /// Payload that is inside circuits on this level, and therefore comes to no node here.
    inside: f64,
}

/// The bounds of a flow with several paths, by level.
pub(super) struct LevelBounds {
    there: Vec<Level>,
    back: Vec<Level>,
}

/// The bound that parallel resources set together.
pub(super) struct LevelBound {
    /// Largest payload that passes all these resources together, in bit/s.
    pub(super) most: f64,
    /// True if all these resources are then used up: no resource elsewhere holds a part of the packets back.
    pub(super) is_full: bool,
    pub(super) beside: ParallelResources,
}

/// Parallel resources.
pub(super) enum ParallelResources {
    /// Links, by index.
    Links(Vec<usize>),
    /// Nodes.
    Nodes(Vec<NodeId>),
}

impl LevelBounds {
    /// Returns the bounds for the lanes of a flow. `sent` is the largest payload that each lane can send, in bit/s.
    pub(super) fn new(topology: &Topology, lanes: &[Demand<'_>], sent: &[f64]) -> Self {
        let mut cuts = Self { there: Vec::new(), back: Vec::new() };
        // Lanes with equal paths in a direction are treated as one there.
        for like in alike(lanes, |lane| &lane.lane.there) {
            let sent = like.iter().map(|lane| sent[*lane]).sum();
            follow(&mut cuts.there, topology, lanes, &like, false, sent);
        }
        // Acknowledgements carry no payload. Only resources on their paths bound them.
        for like in alike(lanes, |lane| &lane.lane.back) {
            follow(&mut cuts.back, topology, lanes, &like, true, f64::INFINITY);
        }
        cuts
    }

    /// Returns the bound that a place and all resources parallel to it set together; `None` if there are no parallel resources.
    pub(super) fn at(&self, place: Place) -> Option<LevelBound> {
        let level = if place.back { self.back.get(place.level) } else { self.there.get(place.level) }?;
        let cut = |passes: Vec<[f64; 2]>, beside| {
            let [most, could] = [0, 1].map(|which| passes.iter().map(|both| both[which]).sum::<f64>());
            LevelBound { most, is_full: most >= could * (1.0 - ROUNDING), beside }
        };
        if let Spot::Node(node) = place.spot {
            if !level.nodes.contains_key(&node) || (level.nodes.len() == 1 && level.inside == 0.0) {
                return None;
            }
            let inside = (level.inside > 0.0).then_some([level.inside, f64::INFINITY]);
            let passes = level.nodes.values().map(PlaceTotals::passes).chain(inside);
            return Some(cut(
                passes.collect(),
                ParallelResources::Nodes(level.nodes.keys().copied().collect()),
            ));
        }
        if level.lines.values().map(|(_, legs)| legs.len()).sum::<usize>() == 1 {
            return None;
        }
        let passes = level.lines.values().map(|(line, legs)| {
            let legs = legs.values().map(PlaceTotals::passes);
            let [most, could] =
                legs.fold([0.0; 2], |[one, other], [most, could]| [one + most, other + could]);
            [most, could].map(|legs| legs.min(line.most + line.ahead))
        });
        Some(cut(
            passes.collect(),
            ParallelResources::Links(level.lines.keys().map(|hop| hop.link).collect()),
        ))
    }
}

/// Returns the indices of lanes, in groups with equal paths.
fn alike<'l>(lanes: &'l [Demand<'_>], ways: impl Fn(&'l Demand<'_>) -> &'l Spread) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for lane in 0..lanes.len() {
        match groups.iter_mut().find(|group| ways(&lanes[group[0]]) == ways(&lanes[lane])) {
            Some(group) => group.push(lane),
            None => groups.push(vec![lane]),
        }
    }
    groups
}

/// Adds the traffic that lanes with equal paths may send to each level of these paths.
fn follow(
    levels: &mut Vec<Level>,
    topology: &Topology,
    lanes: &[Demand<'_>],
    alike: &[usize],
    back: bool,
    sent: f64,
) {
    let lane = &lanes[alike[0]];
    let mut gates: BTreeMap<(usize, Spot), PlaceTotals> = BTreeMap::new();
    for gate in alike.iter().flat_map(|lane| &lanes[*lane].gates).filter(|gate| gate.place.back == back) {
        let joint = gates.entry((gate.place.level, gate.place.spot)).or_insert(PlaceTotals::OPEN);
        joint.most = joint.most.max(if gate.ahead > 0.0 { gate.most - gate.ahead } else { gate.most });
        joint.ahead += gate.ahead;
    }
    let stops = if back { &lane.lane.back.stops } else { &lane.lane.there.stops };
    // By stop: number of links before it, and payload that comes to it.
    let mut arriving = vec![(0, 0.0); stops.len()];
    arriving[0].1 = sent;
    // By stop: true if packets have already reached its node before, because they only enter or leave a tunnel at the stop.
    let mut is_known = vec![false; stops.len()];
    for (place, stop) in stops.iter().enumerate() {
        let (first, comes) = arriving[place];
        let gate = gates.get(&(first, Spot::Node(stop.node)));
        let comes = if is_known[place] {
            comes
        } else {
            level(levels, first).nodes.entry(stop.node).or_insert(PlaceTotals::OPEN).add(gate, comes)
        };
        let turns = lane.turns.get(&place).filter(|_| !back);
        for (index, onward) in stop.onward.iter().enumerate() {
            let mut passes = comes.min(turns.map_or(f64::INFINITY, |turns| {
                comes * onward.share * turns.ratio + lane.span.rate(turns.above[index])
            }));
            let Move::Leg(own) = onward.by else {
                is_known[onward.to] = true;
                let (links, sum) = &mut arriving[onward.to];
                (*links, *sum) = (first, *sum + passes);
                continue;
            };
            let hops = topology.hops(own);
            for (position, hop) in hops.iter().enumerate() {
                let here = level(levels, first + position);
                here.inside += if position > 0 { passes } else { 0.0 };
                let (line, legs) = here.lines.entry(*hop).or_insert((PlaceTotals::OPEN, BTreeMap::new()));
                let gate = |spot| gates.get(&(first + position, spot));
                passes = line.add(gate(Spot::Line(*hop)), passes);
                let leg = legs.entry(own).or_insert(PlaceTotals::OPEN);
                passes = leg.add(gate(Spot::Leg(*hop, own)), passes);
            }
            let (links, sum) = &mut arriving[onward.to];
            (*links, *sum) = (first + hops.len(), *sum + passes);
        }
    }
}

/// Returns the level behind this number of links.
fn level(levels: &mut Vec<Level>, links: usize) -> &mut Level {
    if levels.len() <= links {
        levels.resize_with(links + 1, Level::default);
    }
    &mut levels[links]
}
