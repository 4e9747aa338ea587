//! Closed-form limits: the goodput that every flow can get, its bottleneck, and the next one.
//!
//! Nothing is simulated. For every flow, the needs of one message are computed for each line, shaper, policer and CPU on its path (`Layers` for lines). The
//! flows share these resources max-min fairly. Each resource by itself is a candidate for the bottleneck. `docs/limit.md` has the formulas, their sources and
//! the omissions.

mod acks;
mod bound;
mod certain;
mod closed;
mod connection;
mod cut;
mod demand;
mod engine_work;
mod equivalence;
mod flow;
mod host_demand;
mod idle;
mod max_min;
mod need;
mod node_load;
mod outcome;
mod piece;
mod receivers;
mod summary;
mod waterfall;
mod way;

pub use engpass_outcome::{Bottleneck, BottleneckKind, SetBy, Share, Stage, WindowLimit};
pub use outcome::{Candidate, FlowLimit, LimitOutcome};

use std::collections::BTreeMap;

use engpass_model::time::SECOND;
use engpass_outcome::{DirectionOutcome, LinkOutcome};
use engpass_testbed::topology::{FlowPath, NodeId};
use engpass_testbed::{Testbed, Topology};

use connection::Connection;
use demand::demands;
use flow::{Bound, Flow, LimiterRow, SingleLimit, alone, lanes_of, tightest};
use max_min::{Allocation, allocate};
use need::{Demand, Limiter, Resources};
use receivers::SeparateReceivers;

/// Returns the limit of every flow, and the use of every link if all flows are at their limits.
///
/// # Panics
/// If `engpass_simulate::unmodelled` rejects the testbed.
pub fn limit(testbed: &Testbed, topology: &Topology) -> LimitOutcome {
    match SeparateReceivers::new(testbed, topology) {
        None => limit_of(testbed, topology, None),
        Some(apart) => {
            let answer = limit_of(&apart.testbed, &apart.topology, Some(&apart));
            apart.fold(answer, testbed, topology)
        }
    }
}

/// Like [`limit`], for the testbed of `apart`, if set, in which each receiver of a multicast group is a traffic of its own.
fn limit_of(testbed: &Testbed, topology: &Topology, apart: Option<&SeparateReceivers>) -> LimitOutcome {
    let (resources, demands) = demands(testbed, topology, apart);
    let all = allocate(&resources.capacities, &demands, &BTreeMap::new());
    let lanes = lanes_of(&demands);
    let named = Named { testbed, topology, resources: &resources, demands: &demands, all: &all };
    let mut flows: Vec<Option<FlowLimit>> = lanes.iter().map(|_| None).collect();
    for alike in equivalence::groups(&resources, &demands, &lanes) {
        let of = |index: usize| Flow { index, lanes: &demands[lanes[index].clone()] };
        let first = of(alike[0]);
        let alone: Vec<SingleLimit> =
            first.rows().iter().map(|row| alone(&resources, &demands, &all, &first, row)).collect();
        for index in alike {
            let flow = of(index);
            let rows = flow.rows();
            let answer = |(row, alone): (&LimiterRow, &SingleLimit)| {
                let limiter = row.limiter(&flow);
                let (connections, packets) = row.share(&flow);
                CandidateDetail {
                    limiter,
                    goodput: alone.goodput.min(limiter.in_the_long_run),
                    own: alone.own,
                    others: alone.others_of(first.index, index),
                    part: Part { connections, packets, all: flow.connections() },
                }
            };
            let answers: Vec<CandidateDetail<'_>> = rows.iter().zip(&alone).map(answer).collect();
            flows[index] = Some(flow_limit(&named, &flow, &rows, &answers));
        }
    }
    let names = testbed.traffic.keys().cloned();
    let flows = names.zip(flows.into_iter().map(|flow| flow.expect("every flow is in a group"))).collect();
    let links = (0..topology.links.len())
        .map(|link| (topology.links[link].name.clone(), link_limit(&named, link)))
        .collect();
    LimitOutcome { flows, links, nodes: node_load::nodes(&named) }
}

/// Returns every line, CPU and other resource: its name, its capacity, and the amount that all flows at their fair shares use per second.
#[doc(hidden)]
pub fn uses(testbed: &Testbed, topology: &Topology) -> Vec<(String, f64, f64)> {
    let apart = SeparateReceivers::new(testbed, topology);
    let (testbed, topology) =
        apart.as_ref().map_or((testbed, topology), |apart| (&apart.testbed, &apart.topology));
    let (resources, demands) = demands(testbed, topology, apart.as_ref());
    let all = allocate(&resources.capacities, &demands, &BTreeMap::new());
    let used = |resource: usize| resources.users[resource].iter().map(|lane| all.of(*lane, resource)).sum();
    resources.named().map(|(name, place)| (name, resources.capacities[place], used(place))).collect()
}

/// The results from which the outcome is made, with the testbed that gives names.
struct Named<'d, 'a> {
    testbed: &'a Testbed,
    topology: &'a Topology,
    resources: &'d Resources,
    demands: &'d [Demand<'a>],
    /// Allocation with all flows at their fair shares.
    all: &'d Allocation,
}

/// A candidate for the bottleneck of a flow, with details for the flow's summary.
struct CandidateDetail<'d> {
    limiter: &'d Limiter,
    /// Goodput in bit/s if only this limited the flow.
    goodput: f64,
    /// Share of the link that the flow then takes, from 0 to 1; 0 if the candidate is not a link.
    own: f64,
    others: Others,
    part: Part,
}

/// Other flows on a line.
struct Others {
    count: usize,
    /// Share of the line that all these flows take together, from 0 to 1.
    share: f64,
    /// Indices of the first of these flows, as many as a summary names.
    first: Vec<usize>,
}

/// The part of a flow that needs a candidate.
#[derive(Clone, Copy)]
struct Part {
    /// Number of connections that need it.
    connections: f64,
    /// Share of the flow's packets that need it, from 0 to 1.
    packets: f64,
    /// Number of all connections of the flow.
    all: f64,
}

fn flow_limit(
    named: &Named<'_, '_>,
    flow: &Flow<'_, '_>,
    rows: &[LimiterRow],
    answers: &[CandidateDetail<'_>],
) -> FlowLimit {
    let Named { testbed, topology, resources, .. } = *named;
    // Of equal candidates the first one counts: links in the order of the route, then the ends.
    let smallest = |except: Option<usize>| {
        (0..answers.len())
            .filter(|one| Some(*one) != except)
            .min_by(|one, other| answers[*one].goodput.total_cmp(&answers[*other].goodput))
    };
    let bottleneck = smallest(None).expect("every flow crosses a link");
    let next = smallest(Some(bottleneck)).map(|next| &answers[next]);
    let goodput = answers[bottleneck].goodput;
    let mut bounds = flow.bounds(topology, resources, rows);
    // A link that carries no message may carry sentinels.
    let sentinels = flow.first().sentinels();
    bounds.iter_mut().for_each(|bound| bound.most += sentinels);
    let tightest = tightest(&bounds);
    let Bound { most: bound, together, .. } = &bounds[tightest];
    let idle = flow.lanes.iter().filter_map(|lane| lane.idle_delay).min();
    FlowLimit {
        kind: flow.first().traffic.kind(),
        paths: topology.paths(testbed, flow.index),
        goodput_bit_per_s: goodput,
        offered_bit_per_s: goodput,
        bound_bit_per_s: *bound,
        bound_bottleneck: together.as_ref().unwrap_or(&answers[tightest].limiter.bottleneck).clone(),
        bound_summary: summary::bound(named, flow, &answers[tightest], *bound, together.as_ref()),
        window: window(topology, flow),
        idle_delay_s: idle.map(|ps| ps as f64 / 1e12),
        ignored_events: testbed.events.keys().cloned().collect(),
        bottleneck: answers[bottleneck].limiter.bottleneck.clone(),
        next: next.map(|next| next.limiter.bottleneck.clone()),
        summary: summary::sentence(named, flow, &answers[bottleneck], next),
        stages: waterfall::stages(named, flow, answers),
        receivers: Vec::new(),
        candidates: answers
            .iter()
            .zip(&bounds)
            .map(|(answer, bound)| Candidate {
                bottleneck: answer.limiter.bottleneck.clone(),
                goodput_bit_per_s: answer.goodput,
                bound_bit_per_s: bound.most,
            })
            .collect(),
    }
}

/// Relative differences smaller than this come from rounding, because times of hosts are whole picoseconds.
const ROUNDING: f64 = 1e-6;

/// Returns the bound that one limiter sets on the goodput of a lane, in bit/s.
fn bound(resources: &Resources, demand: &Demand<'_>, limiter: &Limiter) -> f64 {
    limiter.at_most.unwrap_or_else(|| {
        let times = limiter.resources.iter().map(|resource| demand.time(resources, *resource));
        let units = demand.span.seconds() / times.fold(0.0, f64::max);
        demand.span.rate(units * demand.payload_bits)
    })
}

/// Returns the window of each connection of a flow, for the lane with the longest round trip.
fn window(topology: &Topology, flow: &Flow<'_, '_>) -> Option<WindowLimit> {
    let (lane, connection) = farthest(flow)?;
    let (_, product, filling) = filling(topology, lane, &connection);
    Some(WindowLimit {
        bytes: connection.window.bytes,
        set_by: connection.window.set_by,
        round_trip_s: connection.window.round_trip / SECOND as f64,
        bandwidth_delay_product_bytes: product,
        filling_bytes: filling,
    })
}

/// Returns the TCP lane with the longest round trip.
fn farthest<'d, 'a>(flow: &Flow<'d, 'a>) -> Option<(&'d Demand<'a>, Connection)> {
    let lanes = flow.lanes.iter().filter_map(|lane| Some((lane, lane.connection?)));
    // Of equal lanes the first one counts.
    lanes.reduce(|one, other| if other.1.window.round_trip > one.1.window.round_trip { other } else { one })
}

/// Returns the line on a lane's paths that its windows fill first: the name of its link, its bandwidth-delay product, and the payload in flight on each
/// connection that fills it, both in bytes.
fn filling<'t>(topology: &'t Topology, lane: &Demand<'_>, connection: &Connection) -> (&'t str, f64, f64) {
    let lines = lane.limiters.iter().filter_map(|limiter| limiter.line);
    let rates = lines.map(|layers| {
        let link = &topology.links[layers.hop.link];
        let rate = link.line_from(layers.hop.from).rate as f64;
        (link.name.as_str(), rate, rate * (lane.payload_bits * layers.parts_per_bit()) / layers.line())
    });
    let narrowest = rates.min_by(|one, other| one.2.total_cmp(&other.2));
    let (name, line, payload) = narrowest.expect("every flow crosses a link");
    let bytes = |rate: f64| rate * connection.window.round_trip / SECOND as f64 / 8.0;
    (name, bytes(line), bytes(payload) / lane.streams())
}

fn link_limit(named: &Named<'_, '_>, link: usize) -> LinkOutcome {
    let Named { topology, resources, demands, all, .. } = *named;
    let ends = &topology.links[link];
    let direction = |from: usize, to: usize| {
        let mut shares: Vec<(usize, Share)> = Vec::new();
        if let Some(line) = resources.line(link, from) {
            for demand in resources.users[line].iter().map(|lane| &demands[*lane]) {
                let amount = fraction(all.of(demand.index, line), resources.capacities[line]);
                match shares.last_mut() {
                    Some((flow, share)) if *flow == demand.flow => share.share += amount,
                    _ => {
                        let sends = sends_over(topology, demand.path, (link, from));
                        let kind = if sends { demand.traffic.kind() } else { "acknowledgements" };
                        let share =
                            Share { flow: demand.name.to_owned(), kind: kind.to_owned(), share: amount };
                        shares.push((demand.flow, share));
                    }
                }
            }
        }
        let shares: Vec<Share> = shares.into_iter().map(|(_, share)| share).collect();
        DirectionOutcome {
            from: topology.nodes[from].clone(),
            to: topology.nodes[to].clone(),
            line_rate_bit_per_s: Some(ends.line_from(from).rate as f64),
            // An empty sum of floats is -0.0. Starting at 0.0 avoids the minus sign.
            utilisation: Some(
                shares.iter().map(|one| one.share).fold(0.0, |sum, share| sum + share).min(1.0),
            ),
            shares,
            ..DirectionOutcome::default()
        }
    };
    let [one, other] = ends.ends;
    LinkOutcome { directions: vec![direction(one, other), direction(other, one)] }
}

/// Returns whether packets of a flow may take a line in the direction of its data.
fn sends_over(topology: &Topology, path: &FlowPath, line: (usize, NodeId)) -> bool {
    match &path.fans {
        None => path.route.iter().any(|hop| (hop.link, hop.from) == line),
        Some(fans) => {
            let legs = fans[0].legs().flat_map(|leg| topology.legs_within(leg));
            legs.flat_map(|leg| topology.hops(leg)).any(|hop| (hop.link, hop.from) == line)
        }
    }
}

/// Returns `part / whole`, limited to 0 to 1; 0 if `whole` is 0.
fn fraction(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}
