//! The paths of a flow, for its outcome.

use std::collections::BTreeMap;

use engpass_model::source::Traffic;
use engpass_outcome::{MOST_PATHS, Path};

use super::lanes::{Move, Spread, lanes};
use crate::testbed::Testbed;
use crate::topology::{FlowPath, Hop, Leg, Topology};

impl Topology {
    /// The paths that packets of a flow take while everything is up, each with its share of them: the greatest share first, and of equal
    /// ones the path whose links come first in the file. At most [`MOST_PATHS`]. `testbed` is the one that this is the topology of.
    pub fn paths(&self, testbed: &Testbed, flow: usize) -> Vec<Path> {
        let path = &self.flows[flow];
        if !path.branches.is_empty() {
            return self.paths_to_receivers(&testbed.traffic[flow], path);
        }
        if path.fans.is_none() {
            return vec![self.path(&path.route)];
        }
        let lanes = lanes(testbed, self, flow);
        let all: u32 = lanes.iter().map(|lane| lane.connections).sum();
        // By connections that take each. Circuits over the same links are one path.
        let mut found: Vec<(f64, Vec<Hop>)> = Vec::new();
        for lane in &lanes {
            for (share, legs) in lane.there.ways() {
                let connections = share * f64::from(lane.connections);
                let route: Vec<Hop> = legs.iter().flat_map(|leg| self.hops(*leg)).collect();
                match found.iter_mut().find(|(_, known)| *known == route) {
                    Some((sum, _)) => *sum += connections,
                    None => found.push((connections, route)),
                }
            }
        }
        found.sort_by(|(one, first), (other, second)| other.total_cmp(one).then_with(|| first.cmp(second)));
        found.truncate(MOST_PATHS);
        let path = |(connections, route): (f64, Vec<Hop>)| {
            let share = connections / f64::from(all);
            Path { share, ..self.path(&route) }
        };
        found.into_iter().map(path).collect()
    }

    /// The path to each receiver of a group, in the order of the file, however many there are.
    fn paths_to_receivers(&self, traffic: &Traffic, path: &FlowPath) -> Vec<Path> {
        let leaves = path.leaf_by_receiver();
        let leaves: BTreeMap<&str, usize> =
            leaves.iter().map(|(node, leaf)| (self.nodes[*node].as_str(), *leaf)).collect();
        let to = |host: &&str| {
            let route: Vec<Hop> = path.legs_to(leaves[host]).iter().flat_map(|leg| self.hops(*leg)).collect();
            self.path(&route)
        };
        traffic.receivers().iter().map(to).collect()
    }
}

impl Spread {
    /// The ways that packets take while everything is up, with the share of each: at most [`MOST_PATHS`], those with the greatest shares.
    fn ways(&self) -> Vec<(f64, Vec<Leg>)> {
        // From each stop to the end, the legs from behind. A way with one of the greatest shares has one of the greatest on its rest.
        let mut from: Vec<Vec<(f64, Vec<Leg>)>> = vec![Vec::new(); self.stops.len()];
        for (place, stop) in self.stops.iter().enumerate().rev() {
            let mut ways: Vec<(f64, Vec<Leg>)> = Vec::new();
            for onward in stop.onward.iter().filter(|onward| onward.share > 0.0) {
                for (share, legs) in &from[onward.to] {
                    let mut legs = legs.clone();
                    if let Move::Leg(leg) = onward.by {
                        legs.push(leg);
                    }
                    ways.push((onward.share * share, legs));
                }
            }
            if stop.onward.is_empty() {
                ways.push((1.0, Vec::new()));
            }
            ways.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            ways.truncate(MOST_PATHS);
            from[place] = ways;
        }
        let mut ways = from.swap_remove(0);
        ways.iter_mut().for_each(|(_, legs)| legs.reverse());
        ways
    }
}
