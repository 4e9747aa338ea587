//! Estimates the memory for the runs of a campaign before they start.

use engpass_simulate::{Engine, Memory, memory, modelled};
use engpass_testbed::Axis;
use serde_json::{Value, json};

use crate::points::Points;

/// Maximum number of points that are examined. Points of a variant: all axes at their first values, all at their largest, and each axis
/// alone at its largest.
const LOOKED_AT: usize = 64;

/// Bytes for the campaign, for one of its points, and for one run of `limit` and of `simulate`. Each is the maximum over the examined
/// points, or the value at `sweep` if given.
pub(crate) fn estimated(points: &Points, variants: &[String], sweep: Option<Vec<(String, String)>>) -> Value {
    let sweeps = sweep.map_or_else(|| sweeps(points.campaign.axes()), |sweep| vec![sweep]);
    let mut most = [Memory::default(); 2];
    let looked_at = variants.iter().flat_map(|variant| sweeps.iter().map(move |sweep| (variant, sweep)));
    for (variant, sweep) in looked_at.take(LOOKED_AT) {
        // An invalid point is reported when it runs.
        let Ok(point) = points.get(variant, sweep) else { continue };
        for (engine, most) in [Engine::Limit, Engine::Simulate].into_iter().zip(&mut most) {
            if let Ok(this) = modelled(&point.testbed, &point.topology, engine) {
                *most = most.max(memory(&this.testbed, &this.topology, engine));
            }
        }
    }
    let one = |memory: Memory| {
        json!({
            "run": memory.run,
            "outcome": memory.outcome,
            "payload": memory.payload,
            "agents": memory.agents,
            "capture": memory.capture,
            "timeline": memory.timeline,
        })
    };
    json!({
        "campaign": points.campaign.memory(),
        "point": most[1].point.max(most[0].point),
        "limit": one(most[0]),
        "simulate": one(most[1]),
    })
}

/// Points of a sweep at which runs are likely to be the largest.
fn sweeps(axes: &[Axis]) -> Vec<Vec<(String, String)>> {
    let at = |axis: &Axis, index: usize| (axis.path.clone(), axis.values[index].text.clone());
    let largest = |axis: &Axis| {
        let number = |index: &usize| axis.values[*index].number.unwrap_or(*index as f64);
        let last = (0..axis.values.len()).max_by(|one, other| number(one).total_cmp(&number(other)));
        last.unwrap_or_default()
    };
    let first: Vec<(String, String)> = axes.iter().map(|axis| at(axis, 0)).collect();
    let all: Vec<(String, String)> = axes.iter().map(|axis| at(axis, largest(axis))).collect();
    let mut found = vec![first.clone(), all];
    for (place, axis) in axes.iter().enumerate() {
        let mut one = first.clone();
        one[place] = at(axis, largest(axis));
        found.push(one);
    }
    found.dedup();
    found
}
