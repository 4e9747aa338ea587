//! Laws where routers choose among equally short ways, and where links fail.

use engpass_model::event::{Event, LinkState};
use engpass_model::forward::{Ecmp, Hash, HashFields, RoundRobin};
use engpass_model::link::Link;
use engpass_model::source::Traffic;
use engpass_model::unit::Duration;
use engpass_network::limit::limit;
use engpass_network::simulate::simulate;
use engpass_testbed::{Point, Source, Testbed, load};
use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

use crate::bounds::obeys_on;
use crate::laws;
use crate::networks::{Drawn, frames, text};

/// What turns a network of frames into one with choices. Numbers choose among what the network has, modulo how many there are.
#[derive(Clone, Debug)]
struct Choices {
    /// Kind, seed, layer 3, and weights of links by turns.
    policies: Vec<(u8, u64, bool, Vec<u32>)>,
    /// Links that get a second one beside them, the one from which it takes rate, delay and MTU, and whether it comes first in the file.
    doubled: Vec<(usize, usize, bool)>,
    /// A router that gets a twin with links to the same nodes.
    twin: Option<usize>,
    events: Vec<EventDraw>,
}

#[derive(Clone, Debug)]
struct EventDraw {
    /// A link, and one of its ends if only that sees it.
    target: (usize, Option<usize>),
    /// In parts per 1000 of the run.
    at: u64,
    every: Option<u64>,
    up: bool,
    /// Means of random times.
    random: Option<(u64, u64)>,
}

fn choices(events: usize) -> impl Strategy<Value = Choices> {
    let policy = (0u8..5, 0u64..100, prop::bool::weighted(0.2), vec(1u32..=4, 3));
    let event = (
        (0usize..12, weighted(0.3, 0usize..2)),
        0u64..=900,
        weighted(0.3, 50u64..=500),
        prop::bool::weighted(0.3),
        weighted(0.3, (20u64..=500, 10u64..=300)),
    )
        .prop_map(|(target, at, every, up, random)| EventDraw { target, at, every, up, random });
    let doubled = vec((0usize..12, 0usize..12, any::<bool>()), 1..=4);
    (vec(policy, 4), doubled, weighted(0.4, 0usize..3), vec(event, 0..=events))
        .prop_map(|(policies, doubled, twin, events)| Choices { policies, doubled, twin, events })
}

impl Choices {
    fn testbed(&self, mut testbed: Testbed) -> Testbed {
        let mut links: Vec<(String, Link)> = testbed.links.into_iter().collect();
        let routers: Vec<String> = testbed.routers.keys().cloned().collect();
        if let Some(twin) = self.twin.filter(|_| !routers.is_empty()) {
            let first = &routers[twin % routers.len()];
            let cloned = links.iter().filter(|(_, link)| link.ends.contains(first)).map(|(name, link)| {
                let mut link = link.clone();
                link.ends.iter_mut().filter(|end| *end == first).for_each(|end| *end = "twin".into());
                (format!("{name}t"), link)
            });
            links.extend(cloned.collect::<Vec<_>>());
            testbed.routers.insert("twin".into(), testbed.routers[first].clone());
        }
        for (index, (one, other, first)) in self.doubled.iter().enumerate() {
            let own = links[one % links.len()].1.clone();
            let like = links[other % links.len()].1.clone();
            // An Ethernet switch has one MTU and no point-to-point link.
            let double = if own.ends.iter().chain(&like.ends).any(|end| end.starts_with('s')) {
                own
            } else {
                Link { ends: own.ends, ..like }
            };
            let place = if *first { 0 } else { links.len() };
            links.insert(place, (format!("d{index}"), double));
        }
        testbed.links = links.into_iter().collect();
        for ((name, router), (kind, seed, layer_3, weights)) in testbed.routers.iter_mut().zip(&self.policies)
        {
            let own = testbed.links.iter().filter(|(_, link)| link.ends.contains(name));
            let weights: IndexMap<String, u32> =
                own.zip(weights).map(|((link, _), weight)| (link.clone(), *weight)).collect();
            let fields = if *layer_3 { HashFields::Layer3 } else { HashFields::Layer4 };
            router.ecmp = match kind {
                0 => Ecmp::default(),
                1 => Ecmp::RoundRobin(RoundRobin::default()),
                2 => Ecmp::RoundRobin(RoundRobin { weights }),
                3 => Ecmp::Hash(Hash { seed: *seed, fields, weights: IndexMap::new() }),
                _ => Ecmp::Hash(Hash { seed: *seed, fields, weights }),
            };
        }
        let duration = testbed.run.duration.0;
        let part = |parts: u64| Duration((duration / 1000 * parts).max(1));
        let event = |(index, draw): (usize, &EventDraw)| {
            let (link, end) = draw.target;
            let (name, link) = testbed.links.get_index(link % testbed.links.len()).expect("there is a link");
            let target = match end {
                Some(end) => format!("{}/{name}", link.ends[end]),
                None => name.clone(),
            };
            let change = if draw.up { LinkState::Up } else { LinkState::Down };
            let event = match draw.random {
                Some((up, down)) => Event {
                    target,
                    at: None,
                    change: None,
                    every: None,
                    mean_time_between_failures: Some(part(up)),
                    mean_time_to_repair: Some(part(down)),
                },
                None => Event {
                    target,
                    at: Some(part(draw.at)),
                    change: Some(change),
                    every: draw.every.map(part),
                    mean_time_between_failures: None,
                    mean_time_to_repair: None,
                },
            };
            (format!("e{index}"), event)
        };
        testbed.events = self.events.iter().enumerate().map(event).collect();
        testbed
    }
}

/// A file, shown as it is.
#[derive(Clone)]
struct File(String);

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\n{}", self.0)
    }
}

/// A random network with choices.
fn spread(events: usize) -> impl Strategy<Value = File> {
    (frames(), choices(events))
        .prop_map(|(Drawn(testbed), choices)| File(text::text(&choices.testbed(testbed))))
}

/// The file as users have it, with the ways that its routers choose from.
fn point(File(text): &File) -> Point {
    let source = Source { name: "test.toml".to_owned(), text: text.clone() };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point("base", &[]).unwrap_or_else(|found| panic!("{}", found.render(false)))
}

/// The laws of all outcomes, of bounds, and of idle delays.
fn obeys(file: &File, seed: u64) -> Result<(), TestCaseError> {
    let Point { testbed, topology, .. } = &point(file);
    let outcome = limit(testbed, topology);
    laws::check(&outcome);
    for (name, flow) in &outcome.flows {
        let shares: f64 = flow.paths.iter().map(|path| path.share).sum();
        prop_assert!((shares - 1.0).abs() < 1e-9 || flow.paths.len() == 64, "`{}`: {:?}", name, flow.paths);
        prop_assert!(flow.bound_bit_per_s >= 0.0 && flow.bound_bit_per_s.is_finite(), "{:#?}", flow);
    }
    obeys_on(testbed, topology, seed)?;
    let simulated = simulate(testbed, topology, seed, &|| false).expect("it is simulated");
    for (name, flow) in &simulated.flows {
        if let (Traffic::UdpStream(_), Some(delays)) = (&testbed.traffic[name], &flow.delays) {
            let idle = outcome.flows[name].idle_delay_s.expect("it sends datagrams");
            prop_assert!(delays.min >= idle, "`{}`: {} s, idle {} s", name, delays.min, idle);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(engpass_cases::cases(1000))]

    #[test]
    fn no_flow_with_choices_exceeds_its_bound(file in spread(0), seed in any::<u64>()) {
        obeys(&file, seed)?;
    }

    #[test]
    fn no_flow_exceeds_its_bound_in_spite_of_events(file in spread(4), seed in any::<u64>()) {
        obeys(&file, seed)?;
    }
}
