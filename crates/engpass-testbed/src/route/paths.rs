//! The paths of a flow, for its outcome.

use std::collections::BTreeMap;

use engpass_model::source::Traffic;
use engpass_outcome::{MOST_PATHS, Path};

use super::lanes::{Move, Spread, lanes};
use crate::testbed::Testbed;
use crate::topology::{FlowPath, Hop, PathSegment, Topology};

impl Topology {
    /// Returns the paths of the packets of a flow with all links up, each with its share of the packets. The largest share comes first; equal shares
    /// are in the order of their links in the file. At most [`MOST_PATHS`] paths, except for multicast traffic with several receivers. `testbed` must
    /// be the testbed of this topology.
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
        // Shares are weighted by connections. Two circuits over the same links count as one path.
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

    /// Returns the path to each receiver of a group, in the order of the file, without a limit on their number.
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
    /// Returns the paths that packets take with all links up, with the share of each: the [`MOST_PATHS`] with the largest shares.
    fn ways(&self) -> Vec<(f64, Vec<PathSegment>)> {
        // The paths from each stop to the end, segments in reverse order. A path with one of the largest shares also has one of the largest shares from every
        // later stop on; therefore it is safe to truncate the list at each stop.
        let mut from: Vec<Vec<(f64, Vec<PathSegment>)>> = vec![Vec::new(); self.stops.len()];
        for (place, stop) in self.stops.iter().enumerate().rev() {
            let mut ways: Vec<(f64, Vec<PathSegment>)> = Vec::new();
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
