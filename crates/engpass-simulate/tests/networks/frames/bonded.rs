//! Bonds of hosts and Ethernet switches, with members that fail.

use engpass_model::bond::{ActiveBackup, Bond, BondMode, Monitoring};
use engpass_model::event::{Event, EventChange};
use engpass_model::link::Link;
use engpass_model::unit::Duration;
use engpass_testbed::Testbed;
use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::{Drawn, LinkDraw, frame_link, joined, link, mesh, plain, tunnelled};
use crate::networks::of_kind::of_kind;
use crate::networks::text::fits;

/// A bond in place of a link.
#[derive(Clone, Debug)]
struct BondDraw {
    /// The link that becomes its first member, modulo the number of links, and the end that has the bond.
    link: (usize, usize),
    mode: BondMode,
    /// Replaces the primary: index among the members.
    primary: Option<usize>,
    /// The other end has a bond of the same links, with this mode.
    other: Option<BondMode>,
    /// Its further members, and their rotation in the bond.
    more: Vec<LinkDraw>,
    turned: usize,
    /// Monitoring interval and delays, in parts per 1000 of the run.
    monitor: (u64, u64, u64),
    failures: Vec<FailureDraw>,
    up: bool,
}

/// A member that fails and returns: its index, the end that notices, the first instant, the duration, and the interval of repetition; in parts per 1000 of the
/// run.
#[derive(Clone, Copy, Debug)]
struct FailureDraw {
    member: usize,
    /// Only this end of the link notices it.
    seen_by: Option<usize>,
    at: u64,
    lasts: u64,
    every: Option<u64>,
    /// At random times instead.
    random: bool,
}

/// Returns a mode of any kind, more often an active member with a backup.
fn mode() -> impl Strategy<Value = BondMode> {
    let kind = prop_oneof![4 => Just("active-backup"), 8 => select(BondMode::KINDS)];
    let layers = select(vec!["layer-2", "layer-2+3", "layer-3+4", "layer-3+4", "layer-3+4"]);
    let reselect = select(vec!["always", "failure"]);
    (kind, layers, reselect).prop_map(|(kind, layers, reselect)| {
        of_kind("BondMode", kind, |key, _| match key {
            "layers" => Some(json!(layers)),
            "reselect" => Some(json!(reselect)),
            _ => None,
        })
    })
}

fn failure() -> impl Strategy<Value = FailureDraw> {
    let when = (0u64..600, 1u64..500, weighted(0.4, 1u64..600), prop::bool::weighted(0.25));
    (prop_oneof![2 => Just(0usize), 1 => 0usize..3], weighted(0.4, 0usize..2), when).prop_map(
        |(member, seen_by, (at, lasts, every, random))| FailureDraw {
            member,
            seen_by,
            at,
            lasts,
            every,
            random,
        },
    )
}

fn bond() -> impl Strategy<Value = BondDraw> {
    let monitor = prop_oneof![
        1 => Just((0u64, 0u64, 0u64)),
        4 => (1u64..=50, 0u64..=100, 0u64..=100),
    ];
    let ends = ((0usize..8, 0usize..2), weighted(0.5, mode()));
    let members = (vec(link(), 1..=2), 0usize..3, weighted(0.3, 0usize..3));
    (ends, mode(), members, monitor, (vec(failure(), 0..=3), prop::bool::weighted(0.95))).prop_map(
        |((link, other), mode, (more, turned, primary), monitor, (failures, up))| BondDraw {
            link,
            mode,
            primary,
            other,
            more,
            turned,
            monitor,
            failures,
            up,
        },
    )
}

impl BondDraw {
    fn monitoring(&self, run: u64) -> Monitoring {
        let (interval, down, up) = self.monitor;
        let part = |parts: u64| Duration(run / 1000 * parts);
        Monitoring { interval: part(interval), down_delay: part(down), up_delay: part(up) }
    }

    /// Returns its mode, with the primary that was drawn.
    fn mode(&self, links: &[String]) -> BondMode {
        match &self.mode {
            BondMode::ActiveBackup(config) => {
                let primary = self.primary.map(|place| links[place % links.len()].clone());
                BondMode::ActiveBackup(ActiveBackup { primary, ..config.clone() })
            }
            other => other.clone(),
        }
    }

    fn events(&self, number: usize, testbed: &Testbed, links: &[String]) -> IndexMap<String, Event> {
        let run = testbed.run.duration.0;
        let part = |parts: u64| Duration((run / 1000 * parts).max(1));
        let mut events = IndexMap::new();
        for (place, draw) in self.failures.iter().enumerate() {
            let link = &links[draw.member % links.len()];
            let target = match draw.seen_by {
                Some(end) => format!("{}/{link}", testbed.links[link].ends[end]),
                None => link.clone(),
            };
            let none = Event {
                target,
                traffic: None,
                at: Some(part(draw.at)),
                change: None,
                every: None,
                mean_time_between_failures: None,
                mean_time_to_repair: None,
            };
            let name = |what: &str| format!("b{number}{what}{place}");
            if draw.random {
                let event = Event {
                    mean_time_between_failures: Some(part(draw.every.unwrap_or(100))),
                    mean_time_to_repair: Some(part(draw.lasts)),
                    ..none
                };
                events.insert(name("random"), event);
                continue;
            }
            let every = draw.every.map(part);
            let down = Event { change: Some(EventChange::Down), every, ..none.clone() };
            let up =
                Event { at: Some(part(draw.at + draw.lasts)), change: Some(EventChange::Up), every, ..none };
            events.insert(name("down"), down);
            events.insert(name("up"), up);
        }
        events
    }
}

/// Adds those of these bonds that fit into the network.
fn bonded(mut testbed: Testbed, draws: &[BondDraw]) -> Testbed {
    for (number, draw) in draws.iter().enumerate() {
        if let Some(with) = with_bond(&testbed, number, draw).filter(fits) {
            testbed = with;
        }
    }
    testbed
}

fn with_bond(testbed: &Testbed, number: usize, draw: &BondDraw) -> Option<Testbed> {
    let mut with = testbed.clone();
    let frames = || testbed.links.iter().filter(|(_, link)| !link.medium.is_atm());
    let (first, whole) = frames().nth(draw.link.0 % frames().count().max(1))?;
    let mut links = vec![first.clone()];
    for (place, own) in draw.more.iter().enumerate() {
        let link =
            Link { mtu: whole.mtu, vlan: whole.vlan, ..frame_link(own, own, None, whole.ends.clone()) };
        let name = format!("b{number}m{place}");
        // Its position in the file is independent of that in the bond.
        let at = (draw.turned + place) % (with.links.len() + 1);
        with.links.shift_insert(at, name.clone(), link);
        links.push(name);
    }
    links.rotate_left(draw.turned % draw.more.len().max(1));
    let is_single = matches!(draw.mode, BondMode::ActiveBackup(_));
    // With one active member, the bond is at the host.
    let end = whole.ends.iter().position(|end| is_single && end.starts_with('h')).unwrap_or(draw.link.1);
    let (node, peer) = (whole.ends[end].clone(), whole.ends[1 - end].clone());
    let monitor = draw.monitoring(testbed.run.duration.0);
    let bond = Bond { node, links: links.clone(), mode: draw.mode(&links), monitor, up: draw.up };
    let followed = is_single && peer.starts_with('s');
    let other = if is_single && peer.starts_with('h') { Some(&bond.mode) } else { draw.other.as_ref() };
    if let Some(mode) = other.filter(|_| !followed) {
        let other = Bond { node: peer, mode: mode.clone(), ..bond.clone() };
        with.bonds.insert(format!("o{number}"), other);
    }
    with.bonds.insert(format!("b{number}"), bond);
    let events = draw.events(number, &with, &links);
    with.events.extend(events);
    Some(with)
}

/// Returns a random network with bonds, of frames or of links and circuits, some with tunnels.
pub(crate) fn bonds() -> impl Strategy<Value = Drawn> {
    let networks = prop_oneof![
        4 => plain().boxed(),
        2 => mesh::mesh().boxed(),
        1 => tunnelled::at_times(joined::joined()).boxed(),
    ];
    let bonded = (networks, vec(bond(), 1..=3))
        .prop_map(|(Drawn(testbed), draws)| Drawn(self::bonded(testbed, &draws)));
    bonded.prop_filter("it has a bond", |Drawn(testbed)| !testbed.bonds.is_empty())
}
