//! Equivalence classes of flows: flows that differ only in their names and in resources of their own get equal limits, which are computed once.

use std::collections::BTreeMap;
use std::ops::Range;

use super::need::{Demand, Resources};

/// Returns the equivalence classes of flows, each in the order of the file. `lanes` has the index range of each flow's lanes.
///
/// Two flows with one lane each are equivalent if they need equal amounts of the same resources, or of resources with equal capacity that no other flow needs.
/// If such flows are exchanged, the network stays the same.
pub(super) fn groups(
    resources: &Resources,
    demands: &[Demand<'_>],
    lanes: &[Range<usize>],
) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (flow, lanes) in lanes.iter().enumerate() {
        let [demand] = &demands[lanes.clone()] else {
            groups.push(vec![flow]);
            continue;
        };
        let place = *places.entry(needs(resources, demand)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(flow);
    }
    groups
}

/// Returns a key of all properties of a flow on which its limit depends.
fn needs(resources: &Resources, demand: &Demand<'_>) -> Vec<u64> {
    // Resources that only this flow needs are numbered in the order of its needs.
    let mut own: Vec<usize> = Vec::new();
    let mut resource = |index: usize| {
        if resources.users[index].len() > 1 {
            return [0, index as u64];
        }
        let place = own.iter().position(|one| *one == index).unwrap_or_else(|| {
            own.push(index);
            own.len() - 1
        });
        [1 + place as u64, resources.capacities[index].to_bits()]
    };
    let mut all = vec![
        u64::from(demand.class),
        u64::from(demand.generator),
        demand.weight.to_bits(),
        demand.payload_bits.to_bits(),
        demand.group.map_or(0, |group| 1 + group as u64),
        demand.uses.len() as u64,
    ];
    for need in &demand.uses {
        all.extend(resource(need.resource));
        // For a resource that only one receiver needs, the number of the copy does not matter.
        let copy = if resources.users[need.resource].len() > 1 { need.copy } else { 0 };
        all.extend([need.amount.to_bits(), copy as u64]);
    }
    for limiter in &demand.limiters {
        all.extend([limiter.kind() as u64, limiter.resources.len() as u64]);
        all.extend(limiter.resources.iter().flat_map(|index| resource(*index)));
    }
    all
}
