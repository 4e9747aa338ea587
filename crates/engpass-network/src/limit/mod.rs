//! Closed forms: the most that every flow could get, what limits it, and what limits it next.
//!
//! Nothing is simulated. Every flow is asked what a message of it needs of each line, shaper, policer and CPU it meets
//! ([`layers`] for the lines); these are shared max-min fairly; and each of them alone is a candidate for the
//! bottleneck. The page `docs/limit.md` has the formulas, their sources and what is left out.

mod acks;
mod alike;
mod bound;
mod certain;
mod connection;
mod demand;
mod fill;
mod hosts;
mod idle;
pub mod layers;
mod outcome;
mod sentence;
mod stages;
mod way;

pub use engpass_outcome::{Bottleneck, BottleneckKind, SetBy, Share, Stage, WindowLimit};
pub use outcome::{Candidate, DirectionLimit, FlowLimit, LimitOutcome, LinkLimit};

use engpass_outcome::Path;
use engpass_testbed::{Testbed, Topology};

use connection::Connection;
use demand::{Demand, Resources, demands};
use engpass_model::time::SECOND;
use fill::{Allocation, allocate};
use layers::Layer;

/// The limit of every flow, and what all of them at their limits take of every link.
///
/// # Panics
/// Where [`unmodelled`](crate::unmodelled) says why there is none.
pub fn limit(testbed: &Testbed, topology: &Topology) -> LimitOutcome {
    let (resources, demands) = demands(testbed, topology);
    let all = allocate(&resources.capacities, &demands, None);
    let mut flows: Vec<Option<FlowLimit>> = demands.iter().map(|_| None).collect();
    for alike in alike::groups(&resources, &demands) {
        let first = alike[0];
        let alone: Vec<Alone> = demands[first]
            .limiters
            .iter()
            .map(|limiter| alone(&resources, &demands, first, limiter))
            .collect();
        for flow in alike {
            let limiters = demands[flow].limiters.iter();
            let answers: Vec<_> =
                limiters.zip(&alone).map(|(limiter, alone)| alone.answer(limiter, first, flow)).collect();
            let paths = topology.paths(testbed, flow);
            flows[flow] = Some(flow_limit(topology, &resources, &demands, flow, &answers, paths));
        }
    }
    let named = demands.iter().zip(flows);
    let flows = named.map(|(demand, flow)| (demand.name.to_owned(), flow.expect("every flow is in a group")));
    let flows = flows.collect();
    let links = (0..topology.links.len())
        .map(|link| {
            (topology.links[link].name.clone(), link_limit(topology, &resources, &demands, &all, link))
        })
        .collect();
    LimitOutcome { flows, links }
}

/// Every line, CPU and other resource by name, with its capacity and the amount that all flows at their fair shares use of it, per second.
#[doc(hidden)]
pub fn uses(testbed: &Testbed, topology: &Topology) -> Vec<(String, f64, f64)> {
    let (resources, demands) = demands(testbed, topology);
    let all = allocate(&resources.capacities, &demands, None);
    let used = |resource: usize| resources.users[resource].iter().map(|flow| all.of(*flow, resource)).sum();
    resources.named().map(|(name, place)| (name, resources.capacities[place], used(place))).collect()
}

/// What a flow would get if it needed nothing but one of its limiters, the other flows all they need.
struct Alone {
    goodput: f64,
    /// What the flow and the others, by index, take of the link then, as shares of it; nothing for what is no link.
    own: f64,
    others: Vec<(usize, f64)>,
    /// What these take together.
    share: f64,
}

/// A candidate with what it says about its flow.
struct Answer<'a> {
    limiter: &'a demand::Limiter,
    /// Goodput if only this limited the flow.
    goodput: f64,
    /// What the flow takes of the link then, as a share of it; nothing for what is no link.
    own: f64,
    others: Others,
}

/// Other flows on a line.
struct Others {
    count: usize,
    /// Share of the line that they take together.
    share: f64,
    /// The first of them, as many as a sentence names.
    first: Vec<usize>,
}

impl Alone {
    /// The same of a `flow` that is like the one it was found for, each in the place of the other.
    fn answer<'a>(&self, limiter: &'a demand::Limiter, found_for: usize, flow: usize) -> Answer<'a> {
        let others = self.others.iter().map(|(one, _)| *one);
        let mut first: Vec<usize> = others.filter(|one| *one != flow).take(sentence::NAMED).collect();
        if self.others.binary_search_by_key(&flow, |(one, _)| *one).is_ok() {
            first.push(found_for);
            first.sort_unstable();
            first.truncate(sentence::NAMED);
        }
        let others = Others { count: self.others.len(), share: self.share, first };
        let goodput = self.goodput.min(limiter.in_the_long_run);
        Answer { limiter, goodput, own: self.own, others }
    }
}

fn flow_limit(
    topology: &Topology,
    resources: &Resources,
    demands: &[Demand<'_>],
    flow: usize,
    answers: &[Answer<'_>],
    paths: Vec<Path>,
) -> FlowLimit {
    let demand = &demands[flow];
    // The first of equals: links in the order of the route, then what is at the ends.
    let smallest = |except: Option<usize>| {
        (0..answers.len())
            .filter(|one| Some(*one) != except)
            .min_by(|one, other| answers[*one].goodput.total_cmp(&answers[*other].goodput))
    };
    let bottleneck = smallest(None).expect("every flow crosses a link");
    let next = smallest(Some(bottleneck)).map(|next| &answers[next]);
    let goodput = answers[bottleneck].goodput;
    let bounds: Vec<f64> = demand.limiters.iter().map(|limiter| bound(resources, demand, limiter)).collect();
    let tightest = (0..bounds.len()).fold(0, |tightest, one| {
        // Rounding must not decide between equal bounds: the first of them wins.
        if bounds[one] < bounds[tightest] * (1.0 - ROUNDING) { one } else { tightest }
    });
    FlowLimit {
        kind: demand.traffic.kind(),
        paths,
        goodput_bit_per_s: goodput,
        offered_bit_per_s: goodput,
        bound_bit_per_s: bounds[tightest],
        bound_bottleneck: demand.limiters[tightest].bottleneck.clone(),
        bound_summary: sentence::bound(topology, resources, demands, flow, tightest, bounds[tightest]),
        window: window(topology, demand),
        idle_delay_s: demand.idle_delay.map(|ps| ps as f64 / 1e12),
        bottleneck: answers[bottleneck].limiter.bottleneck.clone(),
        next: next.map(|next| next.limiter.bottleneck.clone()),
        summary: sentence::sentence(topology, resources, demands, flow, &answers[bottleneck], next),
        stages: stages::stages(topology, demand, answers),
        candidates: answers
            .iter()
            .zip(&bounds)
            .map(|(answer, bound)| Candidate {
                bottleneck: answer.limiter.bottleneck.clone(),
                goodput_bit_per_s: answer.goodput,
                bound_bit_per_s: *bound,
            })
            .collect(),
    }
}

/// Relative differences below this come from rounding: times of hosts are whole picoseconds.
const ROUNDING: f64 = 1e-6;

/// The bound of a flow's goodput by one limiter, in bit/s.
fn bound(resources: &Resources, demand: &Demand<'_>, limiter: &demand::Limiter) -> f64 {
    limiter.at_most.unwrap_or_else(|| {
        let times = limiter.resources.iter().map(|resource| demand.time(resources, *resource));
        let units = demand.span.seconds() / times.fold(0.0, f64::max);
        demand.span.rate(units * demand.payload_bits)
    })
}

/// The window of each of a flow's connections.
fn window(topology: &Topology, demand: &Demand<'_>) -> Option<WindowLimit> {
    let connection = demand.connection?;
    let (_, product, filling) = filling(topology, demand, &connection);
    Some(WindowLimit {
        bytes: connection.window.bytes,
        set_by: connection.window.set_by,
        round_trip_s: connection.window.round_trip / SECOND as f64,
        bandwidth_delay_product_bytes: product,
        filling_bytes: filling,
    })
}

/// The narrowest line on a flow's path: the name of its link, its bandwidth-delay product, and the payload in flight on each connection that
/// fills it, both in bytes.
fn filling<'t>(topology: &'t Topology, demand: &Demand<'_>, connection: &Connection) -> (&'t str, f64, f64) {
    let lines = demand.limiters.iter().filter_map(|limiter| limiter.line);
    let rates = lines.map(|(hop, layers)| {
        let link = &topology.links[hop.link];
        let rate = link.line_from(hop.from).rate as f64;
        (link.name.as_str(), rate, rate * layers.parts(Layer::Payload) as f64 / layers.line() as f64)
    });
    let narrowest = rates.min_by(|one, other| one.2.total_cmp(&other.2));
    let (name, line, payload) = narrowest.expect("every flow crosses a link");
    let bytes = |rate: f64| rate * connection.window.round_trip / SECOND as f64 / 8.0;
    (name, bytes(line), bytes(payload) / demand.streams())
}

/// What `flow` would get if it needed nothing but `limiter`, the other flows all they need.
///
/// The smallest of these is the flow's max-min fair rate: up to the level at which that rate stops nothing else the flow needs
/// was used up, so leaving the rest out changes nothing before.
fn alone(resources: &Resources, demands: &[Demand<'_>], flow: usize, limiter: &demand::Limiter) -> Alone {
    let allocation = allocate(&resources.capacities, demands, Some((flow, &limiter.resources)));
    let share = |one: usize| {
        let line = limiter.resources[0];
        fraction(allocation.of(one, line), resources.capacities[line])
    };
    let on_a_line = matches!(limiter.kind(), BottleneckKind::Link | BottleneckKind::Acknowledgements);
    let others = (0..demands.len()).filter(|one| on_a_line && *one != flow);
    let others: Vec<_> = others.map(|one| (one, share(one))).filter(|(_, share)| *share > 0.0).collect();
    Alone {
        goodput: allocation.rates[flow] * demands[flow].payload_bits,
        own: if on_a_line { share(flow) } else { 0.0 },
        share: others.iter().map(|(_, share)| share).sum(),
        others,
    }
}

fn link_limit(
    topology: &Topology,
    resources: &Resources,
    demands: &[Demand<'_>],
    all: &Allocation,
    link: usize,
) -> LinkLimit {
    let ends = &topology.links[link];
    let direction = |from: usize, to: usize| {
        let shares: Vec<Share> = resources.line(link, from).map_or(Vec::new(), |line| {
            let of = |flow: usize, demand: &Demand<'_>| Share {
                flow: demand.name.to_owned(),
                kind: if demand.path.route.iter().any(|hop| (hop.link, hop.from) == (link, from)) {
                    demand.traffic.kind().to_owned()
                } else {
                    "acknowledgements".to_owned()
                },
                share: fraction(all.of(flow, line), resources.capacities[line]),
            };
            resources.users[line].iter().map(|flow| of(*flow, &demands[*flow])).collect()
        });
        DirectionLimit {
            from: topology.nodes[from].clone(),
            to: topology.nodes[to].clone(),
            line_rate_bit_per_s: ends.line_from(from).rate as f64,
            // An empty sum of floats is -0.0, which no reader wants to see.
            utilisation: shares.iter().map(|one| one.share).fold(0.0, |sum, share| sum + share).min(1.0),
            shares,
        }
    };
    let [one, other] = ends.ends;
    LinkLimit { directions: vec![direction(one, other), direction(other, one)] }
}

/// A share from 0 to 1; of nothing, nothing.
fn fraction(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}
