//! Random networks with equal-cost paths, policies that choose among them, and links with outages.

use engpass_model::event::{Event, EventChange};
use engpass_model::forward::Ecmp;
use engpass_model::unit::Duration;
use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use serde_json::json;

use super::{Parts, link, node, uneven, way};
use crate::networks::of_kind::of_kind;
use crate::networks::{Drawn, tcp, udp};

/// Switches and routers, and the links between them.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Two with several links between them.
    Parallel,
    /// A row of three with two links each.
    Row,
    /// Two paths over one node each, and perhaps a third over another.
    Diamond,
    /// A diamond whose first path has two links to its middle.
    Uneven,
    /// Two diamonds in series: paths part and meet again.
    Chain,
    /// Four in a ring.
    Square,
}

impl Shape {
    fn edges(self) -> &'static [(usize, usize)] {
        match self {
            Self::Parallel => &[(0, 1), (0, 1), (1, 0)],
            Self::Row => &[(0, 1), (1, 2), (0, 1), (2, 1)],
            Self::Diamond => &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 4), (4, 3)],
            Self::Uneven => &[(0, 1), (2, 0), (1, 3), (2, 3), (0, 1)],
            Self::Chain => &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 4)],
            Self::Square => &[(0, 1), (1, 2), (2, 3), (3, 0)],
        }
    }
}

/// The policy of a router: its kind, and a weight for each of its links.
#[derive(Clone, Debug)]
pub(super) struct EcmpDraw {
    kind: &'static str,
    layer_3: bool,
    seed: u64,
    weights: Vec<Option<u32>>,
}

/// Times of link changes.
#[derive(Clone, Copy, Debug)]
enum When {
    /// Once or repeatedly: instants in parts per 1000 of the run.
    At { at: u64, down: bool, every: Option<u64> },
    /// At random times with these means, in parts per 1000 of the run.
    Random { at: Option<u64>, up: u64, down: u64 },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EventDraw {
    /// A link, modulo their number, and the end whose interface changes.
    link: usize,
    end: Option<usize>,
    when: When,
}

/// Properties of a mesh beyond those of all frame networks.
#[derive(Clone, Debug)]
pub(super) struct Mesh {
    shape: Shape,
    policies: Vec<EcmpDraw>,
    events: Vec<EventDraw>,
}

impl Mesh {
    /// Returns the pairs of nodes that links join, for this number of nodes.
    pub(super) fn edges(&self, nodes: usize) -> impl Iterator<Item = (usize, usize)> {
        self.shape.edges().iter().copied().filter(move |(one, other)| one.max(other) < &nodes)
    }

    /// Returns the policy of a node with these links.
    pub(super) fn policy(&self, node: usize, links: &[&String]) -> Ecmp {
        policy_of(&self.policies[node], links)
    }

    /// Returns the events of a run of this length, for links with these ends.
    pub(super) fn events(&self, links: &IndexMap<String, [String; 2]>, run: u64) -> IndexMap<String, Event> {
        events_of(&self.events, links, run)
    }
}

/// Returns the drawn events for a run of this length.
pub(super) fn events_of(
    draws: &[EventDraw],
    links: &IndexMap<String, [String; 2]>,
    run: u64,
) -> IndexMap<String, Event> {
    let part = |parts: u64| Duration((u128::from(run) * u128::from(parts) / 1000) as u64);
    // Events must be frequent enough to matter, and rare enough for a quick check.
    let some = |parts: u64| Duration(part(parts).0.max(run / 1000).max(1));
    let event = |(index, draw): (usize, &EventDraw)| {
        let (name, ends) = links.get_index(draw.link % links.len()).expect("the testbed has links");
        let target = match draw.end {
            Some(end) => format!("{}/{name}", ends[end]),
            None => name.clone(),
        };
        let none = Event {
            target,
            traffic: None,
            at: None,
            change: None,
            every: None,
            mean_time_between_failures: None,
            mean_time_to_repair: None,
        };
        let event = match draw.when {
            When::At { at, down, every } => Event {
                at: Some(part(at)),
                change: Some(if down { EventChange::Down } else { EventChange::Up }),
                every: every.map(some),
                ..none
            },
            When::Random { at, up, down } => Event {
                at: at.map(part),
                mean_time_between_failures: Some(some(up)),
                mean_time_to_repair: Some(some(down)),
                ..none
            },
        };
        (format!("e{index}"), event)
    };
    draws.iter().enumerate().map(event).collect()
}

/// Returns the policy of a router with these links.
pub(super) fn policy_of(draw: &EcmpDraw, links: &[&String]) -> Ecmp {
    let EcmpDraw { kind, layer_3, seed, weights } = draw;
    let given = links.iter().zip(weights.iter().cycle());
    let weights: IndexMap<String, u32> =
        given.filter_map(|(link, weight)| Some(((*link).clone(), (*weight)?))).collect();
    of_kind("Ecmp", kind, |key, _| match key {
        "fields" => Some(json!(if *layer_3 { "layer-3" } else { "layer-4" })),
        "seed" => Some(json!(seed)),
        "weights" => Some(json!(weights)),
        _ => None,
    })
}

pub(super) fn policy() -> impl Strategy<Value = EcmpDraw> {
    let weight = prop_oneof![4 => 1u32..=4, 1 => Just(65_535)];
    let often = |kind: &str| match kind {
        "first" => 1,
        "hash" => 5,
        _ => 4,
    };
    (
        Union::new_weighted(Ecmp::KINDS.iter().map(|kind| (often(kind), Just(*kind))).collect()),
        any::<bool>(),
        0u64..6,
        vec(weighted(0.4, weight), 4),
    )
        .prop_map(|(kind, layer_3, seed, weights)| EcmpDraw { kind, layer_3, seed, weights })
}

pub(super) fn event() -> impl Strategy<Value = EventDraw> {
    let at = (0u64..=1000, prop::bool::weighted(0.6), weighted(0.4, 1u64..=400));
    let random = (weighted(0.3, 0u64..=500), 1u64..=500, 1u64..=300);
    let when = prop_oneof![
        3 => at.prop_map(|(at, down, every)| When::At { at, down, every }),
        1 => random.prop_map(|(at, up, down)| When::Random { at, up, down }),
    ];
    (0usize..12, weighted(0.35, 0usize..2), when).prop_map(|(link, end, when)| EventDraw { link, end, when })
}

/// Returns a random mesh whose TCP knows the path MTU.
pub(super) fn mesh() -> impl Strategy<Value = Drawn> {
    use Shape::{Chain, Diamond, Parallel, Row, Square, Uneven};
    let shape = select(vec![Parallel, Parallel, Row, Diamond, Uneven, Chain, Square]);
    // Most nodes are routers, and most hosts are at the ends.
    let nodes = vec((node(), prop::bool::weighted(0.9)), 4..=5);
    let at = vec(prop_oneof![2 => 0usize..2, 1 => 0usize..5], 2..=4);
    // The first two hosts are usually at different ends.
    let at = (at, prop::bool::weighted(0.7)).prop_map(|(mut at, apart)| {
        if apart {
            (at[0], at[1]) = (0, 1);
        }
        at
    });
    let graph = (shape, nodes, at, vec(link(), 10));
    let order = (0usize..10, 0usize..5, prop::bool::weighted(0.5));
    let sent =
        (vec((udp(), way()), 0..=3), vec((uneven(), way()), 0..=2), vec((tcp::stream(), way()), 0..=3));
    let sent =
        sent.prop_filter("something is sent", |(udp, uneven, tcp)| udp.len() + uneven.len() + tcp.len() > 0);
    let run = (200u64..=1000, weighted(0.25, 0u64..=900));
    let chosen = (vec(policy(), 5), prop_oneof![1 => Just(Vec::new()), 2 => vec(event(), 1..=4)]);
    (graph, order, vec(crate::networks::host(), 4), sent, run, chosen).prop_map(
        |(graph, order, hosts, sent, run, (policies, events))| {
            let (shape, drawn, at, links) = graph;
            let mut nodes = drawn;
            let count = match shape {
                Parallel => 2,
                Row => 3,
                Chain => nodes.len().max(4),
                Diamond => nodes.len(),
                Uneven | Square => 4,
            };
            nodes.truncate(count);
            let nodes: Vec<_> = nodes
                .into_iter()
                .map(|(mut node, routes)| {
                    node.switch = !routes;
                    node
                })
                .collect();
            let (udp, uneven, tcp) = sent;
            // The far end is second, so that most hosts are at the ends.
            let ends = [0, if count == 2 { 1 } else { count.min(4) - 1 }];
            let at = at.into_iter().map(|at| ends.get(at).copied().unwrap_or(at)).collect();
            let mesh = Some(Mesh { shape, policies, events });
            Drawn(
                Parts { ring: false, nodes, at, links, order, hosts, udp, uneven, tcp, run, mesh }.testbed(),
            )
        },
    )
}
