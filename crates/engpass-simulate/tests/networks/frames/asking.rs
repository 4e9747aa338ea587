//! Random networks whose routers resolve addresses.

use engpass_model::arp::Arp;
use engpass_model::queue::{DropTail, Queue};
use engpass_model::unit::{Duration, QueueLimit};
use engpass_model::wire::Medium;
use engpass_testbed::Testbed;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

use super::mesh::{EventDraw, event, events_of};
use super::{Drawn, IndexMap, groups, joined, mesh, narrow, segment, tunnels};

/// How routers resolve addresses, and events of their links. A list that is shorter than the network repeats.
#[derive(Clone, Debug)]
struct AskDraw {
    /// By router; some do not resolve addresses.
    routers: Vec<Option<Arp>>,
    /// All routers use the parameters of the first one, so that some requests coincide.
    alike: bool,
    /// Time per packet of a router in picoseconds, if it differs.
    per_packet: Vec<Option<u64>>,
    /// Events, for a network that has none.
    events: Vec<EventDraw>,
    /// Lines at switches and routers with a queue of so few packets.
    short: Vec<Option<u64>>,
}

/// Lifetimes and retry intervals are often of the order of packet delays.
fn arp() -> impl Strategy<Value = Arp> {
    let lifetime = prop_oneof![
        2 => 1_000_000u64..=200_000_000,
        3 => 200_000_000u64..=20_000_000_000,
        2 => 20_000_000_000u64..=5_000_000_000_000,
    ];
    let retry = prop_oneof![
        2 => 50_000_000u64..=1_000_000_000,
        2 => 1_000_000_000u64..=50_000_000_000,
        1 => Just(1_000_000_000_000),
    ];
    let hold = prop_oneof![6 => 0u64..=5, 1 => Just(101)];
    (lifetime, hold, retry, 1u64..=4).prop_map(|(lifetime, hold, retry, attempts)| Arp {
        lifetime: Duration(lifetime),
        hold,
        retry: Duration(retry),
        attempts,
    })
}

fn ask() -> impl Strategy<Value = AskDraw> {
    let per_packet = prop_oneof![1 => Just(0u64), 1 => 1_000_000u64..=100_000_000];
    (
        (vec(weighted(0.85, arp()), 3), prop::bool::weighted(0.3)),
        vec(weighted(0.3, per_packet), 3),
        prop_oneof![1 => Just(Vec::new()), 1 => vec(event(), 1..=3)],
        vec(weighted(0.15, 1u64..=3), 5),
    )
        .prop_map(|((routers, alike), per_packet, events, short)| AskDraw {
            routers,
            alike,
            per_packet,
            events,
            short,
        })
}

impl AskDraw {
    fn asking(&self, mut testbed: Testbed) -> Testbed {
        for (place, router) in testbed.routers.values_mut().enumerate() {
            let drawn = if self.alike { 0 } else { place };
            router.arp = self.routers[drawn % self.routers.len()].clone();
            let per_packet = self.per_packet[drawn % self.per_packet.len()];
            router.per_packet = per_packet.map_or(router.per_packet, Duration);
        }
        let ethernet = |medium: Medium| !medium.is_atm() && medium != Medium::PointToPoint;
        for (link, short) in testbed.links.values_mut().zip(self.short.iter().cycle()) {
            if let Some(packets) = short.filter(|_| ethernet(link.medium)) {
                let limit = QueueLimit::packets(packets);
                link.queue = Some(Queue::DropTail(DropTail { limit, ecn_threshold: None }));
            }
        }
        if testbed.events.is_empty() {
            let links = testbed.links.iter().filter(|(_, link)| ethernet(link.medium));
            let ends: IndexMap<_, _> = links.map(|(name, link)| (name.clone(), link.ends.clone())).collect();
            if !ends.is_empty() {
                testbed.events = events_of(&self.events, &ends, testbed.run.duration.0);
            }
        }
        testbed
    }
}

/// Returns true if a router resolves addresses on an Ethernet link.
fn asks(testbed: &Testbed) -> bool {
    let asks = |end: &String| testbed.routers.get(end).is_some_and(|router| router.arp.is_some());
    testbed.links.values().any(|link| {
        let ethernet = !link.medium.is_atm() && link.medium != Medium::PointToPoint;
        ethernet && link.ends.iter().any(asks)
    })
}

/// Returns a random network, without bonds, whose routers resolve addresses.
pub(crate) fn asking() -> impl Strategy<Value = Drawn> {
    let networks = prop_oneof![
        5 => segment::segment().boxed(),
        2 => mesh().boxed(),
        1 => narrow().boxed(),
        1 => tunnels().boxed(),
        1 => groups().boxed(),
        1 => joined().boxed(),
    ];
    let asking = (networks, ask()).prop_map(|(Drawn(testbed), draw)| Drawn(draw.asking(testbed)));
    asking.prop_filter("a router asks on Ethernet", |Drawn(testbed)| asks(testbed))
}
