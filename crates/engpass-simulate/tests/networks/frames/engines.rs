//! Networks whose routers have line cards, or several kinds of work.

use engpass_model::engine::{Engine, Preset};
use engpass_model::forward::Ecmp;
use engpass_model::router::{Card, Router};
use engpass_model::switching::PacketKind;
use engpass_model::unit::{Duration, QueueLimit};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::super::Drawn;
use super::{asking, grouped, narrow, tunnelled};

/// An engine: its times in picoseconds, in the order of [`engine_of`], and its input queue.
type EngineDraw = (Vec<Option<u64>>, Option<QueueLimit>, bool);

/// Cards of a router.
#[derive(Clone, Debug)]
struct RouterDraw {
    processor: EngineDraw,
    process_switched: Vec<PacketKind>,
    cards: Vec<(Option<EngineDraw>, Vec<PacketKind>)>,
    /// By link of the router, modulo their number: the card at which it ends; none for the number after the last.
    at: Vec<usize>,
}

const KINDS: [PacketKind; 3] = [PacketKind::Unicast, PacketKind::Multicast, PacketKind::Tunnels];

fn engine() -> impl Strategy<Value = EngineDraw> {
    let time = prop_oneof![1 => Just(0u64), 1 => 1u64..=1_000_000, 3 => 1_000_000u64..=200_000_000];
    let limit = prop_oneof![
        4 => (1u64..=3).prop_map(QueueLimit::packets),
        1 => (65_535u64..=70_000).prop_map(QueueLimit::bytes),
    ];
    (vec(weighted(0.6, time), 9), weighted(0.5, limit), prop::bool::weighted(0.1))
}

fn router() -> impl Strategy<Value = RouterDraw> {
    let kinds = || subsequence(KINDS.to_vec(), 0..=3);
    let distributed = prop_oneof![2 => Just(KINDS.to_vec()), 3 => kinds()];
    let cards = vec((weighted(0.85, engine()), distributed), 0..=3);
    (engine(), kinds(), cards, vec(0usize..4, 6)).prop_map(|(processor, process_switched, cards, at)| {
        RouterDraw { processor, process_switched, cards, at }
    })
}

fn engine_of((times, input_queue, preset): &EngineDraw) -> Engine {
    let time = |place: usize| times[place].map(Duration);
    Engine {
        preset: preset.then_some(Preset::LinuxCore),
        per_packet: time(0),
        process: time(1),
        per_copy: time(2),
        per_fragment: time(3),
        encapsulate: time(4),
        decapsulate: time(5),
        punt: time(6),
        interrupt: time(7),
        control: time(8),
        input_queue: *input_queue,
    }
}

impl RouterDraw {
    fn router(&self, router: &Router, links: &[String]) -> Router {
        let cards = self.cards.iter().enumerate().map(|(number, (engine, distributed))| {
            let own = links.iter().zip(self.at.iter().cycle()).filter(|(_, at)| **at == number);
            let card = Card {
                links: own.map(|(link, _)| link.clone()).collect(),
                engine: engine.as_ref().map(engine_of),
                distributed: distributed.clone(),
            };
            (format!("card{number}"), card)
        });
        let processor = Engine {
            process: Some(Duration(self.processor.0[1].unwrap_or(5_000_000).max(1))),
            ..engine_of(&self.processor)
        };
        Router {
            per_packet: Duration(0),
            per_copy: Duration(0),
            input_queue: None,
            processor: Some(processor),
            process_switched: self.process_switched.clone(),
            cards: cards.collect(),
            // `first` sends all packets for a destination on one path. The check refuses a choice between path segments that need different work.
            ecmp: Ecmp::First(Default::default()),
            ..router.clone()
        }
    }
}

/// Returns a random network in which some routers have line cards or several kinds of work, often with multicast and tunnels.
pub(crate) fn engines() -> impl Strategy<Value = Drawn> {
    let networks = prop_oneof![
        3 => grouped::groups().boxed(),
        3 => tunnelled::tunnels().boxed(),
        1 => super::mesh().boxed(),
        1 => asking::asking().boxed(),
        1 => narrow::narrow().boxed(),
        1 => super::joined().boxed(),
    ];
    let networks = networks.prop_filter("it has a router", |Drawn(testbed)| !testbed.routers.is_empty());
    (networks, vec(weighted(0.85, router()), 6)).prop_map(|(Drawn(mut testbed), draws)| {
        let ends: Vec<(String, [String; 2])> =
            testbed.links.iter().map(|(name, link)| (name.clone(), link.ends.clone())).collect();
        for ((name, router), draw) in testbed.routers.iter_mut().zip(draws.iter().cycle()) {
            let Some(draw) = draw else { continue };
            let own = ends.iter().filter(|(_, ends)| ends.contains(name)).map(|(link, _)| link.clone());
            *router = draw.router(router, &own.collect::<Vec<_>>());
        }
        Drawn(testbed)
    })
}
