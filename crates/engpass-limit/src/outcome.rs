//! Results of the `limit` engine. Rates are in bit/s; none is infinite or not a number, except an unbounded `bound_bit_per_s` of a candidate.

use engpass_outcome::{
    Bottleneck, Bound, FlowOutcome, LinkOutcome, NodeOutcome, Path, Receiver, Results, Stage, WindowLimit,
};
use indexmap::IndexMap;

/// The limits of a testbed.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitOutcome {
    /// Every flow by name, in the order of the file.
    pub flows: IndexMap<String, FlowLimit>,
    /// Every link by name, in the order of the file, if all flows are at their limits.
    pub links: IndexMap<String, LinkOutcome>,
    /// Nodes whose engine takes time, with the load if all flows are at their fair shares.
    pub nodes: IndexMap<String, NodeOutcome>,
}

/// The limit of one flow, and its bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowLimit {
    /// Kind of traffic, as in the file.
    pub kind: &'static str,
    /// Paths of its packets.
    pub paths: Vec<Path>,
    /// Payload that arrives if all flows get their fair shares, in bit/s: of messages, or the 48 bytes of a generator's cells.
    pub goodput_bit_per_s: f64,
    /// Payload to offer to reach this goodput; equal to it.
    pub offered_bit_per_s: f64,
    /// Largest goodput of this flow over the measurement window. No engine of the model exceeds it, apart from the backlog at the end of the warm-up.
    pub bound_bit_per_s: f64,
    /// Candidate with the smallest bound.
    pub bound_bottleneck: Bottleneck,
    /// The bound and its bottleneck in words.
    pub bound_summary: String,
    /// The window of each connection; only for a `tcp-stream`.
    pub window: Option<WindowLimit>,
    /// One-way delay of a message, or of a full TCP segment, that meets no other traffic, in seconds, over the fastest path. `None` for generators.
    pub idle_delay_s: Option<f64>,
    /// Names of events of the file that the fair share ignores.
    pub ignored_events: Vec<String>,
    /// The candidate with the smallest fair goodput.
    pub bottleneck: Bottleneck,
    /// The candidate with the second smallest fair goodput, which limits once the bottleneck is removed; `None` if there is only one.
    pub next: Option<Bottleneck>,
    /// Bottleneck, reason and next bottleneck in words.
    pub summary: String,
    /// The waterfall: the rate that is left after each step, from the line rate of the most limiting link to the goodput.
    pub stages: Vec<Stage>,
    /// For multicast traffic: the limit of each receiver, by host, in the order of the file. The flow has the limit of the receiver that gets least.
    pub receivers: Vec<(String, FlowLimit)>,
    /// All candidates for the bottleneck: links along the route, shaper, policer, token buckets, routers, hosts with their memories and buses, the
    /// application, and for TCP the acknowledgements.
    pub candidates: Vec<Candidate>,
}

/// A candidate for the bottleneck of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The resource that limits.
    pub bottleneck: Bottleneck,
    /// Goodput if nothing else limited this flow and all other flows had their fair shares.
    pub goodput_bit_per_s: f64,
    /// The bound if nothing else limited this flow; infinite for a random source without a bound. For one of several parallel links it is the bound of all
    /// of them together, given the traffic that can come to each.
    pub bound_bit_per_s: f64,
}

impl LimitOutcome {
    /// Returns the outcome in its stored form.
    pub fn stored(self) -> Results {
        Results {
            flows: self.flows.into_iter().map(|(name, one)| (name, flow(one))).collect(),
            links: self.links,
            nodes: self.nodes,
            drops: Vec::new(),
            events: None,
        }
    }
}

fn flow(flow: FlowLimit) -> FlowOutcome {
    let receivers = flow.receivers.iter().map(|(host, one)| (host.clone(), receiver(one)));
    FlowOutcome {
        kind: flow.kind.to_owned(),
        receivers: receivers.collect(),
        limit: Some(Box::new(details(&flow))),
        paths: flow.paths,
        goodput_bit_per_s: flow.goodput_bit_per_s,
        offered_bit_per_s: flow.offered_bit_per_s,
        bottleneck: Some(flow.bottleneck),
        next_bottleneck: flow.next,
        summary: Some(flow.summary),
        ..FlowOutcome::default()
    }
}

fn receiver(one: &FlowLimit) -> Receiver {
    Receiver {
        bottleneck: Some(one.bottleneck.clone()),
        next_bottleneck: one.next.clone(),
        summary: Some(one.summary.clone()),
        limit: Some(Box::new(details(one))),
        ..Receiver::of(one.goodput_bit_per_s, one.offered_bit_per_s)
    }
}

fn details(flow: &FlowLimit) -> engpass_outcome::FlowLimit {
    let candidate = |one: &Candidate| engpass_outcome::Candidate {
        bottleneck: one.bottleneck.clone(),
        goodput_bit_per_s: one.goodput_bit_per_s,
        bound_bit_per_s: Some(one.bound_bit_per_s).filter(|rate| rate.is_finite()),
    };
    let bound = Bound {
        bit_per_s: flow.bound_bit_per_s,
        bottleneck: flow.bound_bottleneck.clone(),
        summary: flow.bound_summary.clone(),
    };
    engpass_outcome::FlowLimit {
        bound: Some(bound),
        window: flow.window.clone(),
        idle_delay_s: flow.idle_delay_s,
        ignored_events: flow.ignored_events.clone(),
        stages: flow.stages.clone(),
        candidates: flow.candidates.iter().map(candidate).collect(),
    }
}
