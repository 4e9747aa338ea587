//! Finds the path over a circuit that a traffic table names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::routing::{RoutingGraph, Step};
use crate::topology::{NodeId, PathSegment};

/// The beginning of a path, during the search. The order of the fields makes beginnings compare as paths do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PartialPath {
    links: Vec<usize>,
    met: Vec<NodeId>,
    legs: Vec<PathSegment>,
    /// True if the path has crossed the wanted circuit.
    over: bool,
    length: usize,
}

impl RoutingGraph {
    /// Returns the shortest path that takes this circuit, in either direction, and visits no node twice. Among equals it chooses like
    /// [`ShortestPaths::path`](super::ShortestPaths::path). Returns `None` if there is no such path, or if the search finds none within `TRIES` steps.
    pub(crate) fn path_over(&self, circuit: usize, from: NodeId, to: NodeId) -> Option<Vec<PathSegment>> {
        const TRIES: usize = 20_000;
        let takes =
            |step: &Step| matches!(step.leg, PathSegment::Circuit { circuit: one, .. } if one == circuit);
        let to_end = self.distances(to);
        let to_each_end: Vec<(Vec<Option<usize>>, usize)> = (self.at.iter().flatten())
            .filter(|step| takes(step))
            .filter_map(|step| {
                let near = self.at[step.to][step.back].to;
                Some((self.distances(near), step.length + to_end[step.to]?))
            })
            .collect();
        // A* search. The estimate of the remaining length is the shortest distance to the circuit, over it, and on to the end.
        let left = |node: NodeId, over: bool| match over {
            true => to_end[node],
            false => to_each_end.iter().filter_map(|(near, rest)| Some(near[node]? + rest)).min(),
        };
        let start =
            PartialPath { links: Vec::new(), met: vec![from], legs: Vec::new(), over: false, length: 0 };
        let mut begun = BinaryHeap::from([Reverse((left(from, false)?, start))]);
        for _ in 0..TRIES {
            let Reverse((_, way)) = begun.pop()?;
            let here = *way.met.last().expect("a partial path has a start");
            if here == to {
                // A path at the end that has not crossed the circuit cannot continue.
                if way.over {
                    return Some(way.legs);
                }
                continue;
            }
            for step in &self.at[here] {
                if !(step.to == to || self.passes(step.to)) || way.met.contains(&step.to) {
                    continue;
                }
                let mut longer = way.clone();
                longer.links.extend(&step.links);
                longer.met.push(step.to);
                longer.legs.push(step.leg);
                longer.over |= takes(step);
                longer.length += step.length;
                if let Some(left) = left(step.to, longer.over) {
                    begun.push(Reverse((longer.length + left, longer)));
                }
            }
        }
        None
    }

    /// Returns the length of the shortest path from each node to `to`.
    fn distances(&self, to: NodeId) -> Vec<Option<usize>> {
        let mut distance = vec![None; self.at.len()];
        let mut next = BinaryHeap::from([Reverse((0, to))]);
        while let Some(Reverse((length, node))) = next.pop() {
            if distance[node].is_some() {
                continue;
            }
            distance[node] = Some(length);
            if node == to || self.passes(node) {
                next.extend(self.at[node].iter().map(|step| Reverse((length + step.length, step.to))));
            }
        }
        distance
    }
}
