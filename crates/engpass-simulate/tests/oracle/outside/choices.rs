//! Random networks with equal-cost paths and outages.

use std::fmt::Write;

use engpass_testbed::{Source, load};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use crate::networks::Drawn;

/// How two routers are joined: by several links (or circuits over them), or by two paths with a router or a switch between.
#[derive(Clone, Copy, Debug)]
enum Between {
    Links,
    Routers,
    Switches,
}

#[derive(Clone, Debug)]
struct LinkDraw {
    medium: &'static str,
    /// In nanoseconds.
    delay: u64,
    mtu: Option<u64>,
    chance: &'static str,
    queue: Option<&'static str>,
    /// It carries cells, and a circuit joins its ends, if possible.
    cells: bool,
}

/// Policy, seed, a weight, and the time per packet.
type RouterDraw = (u8, u64, Option<u32>, &'static str);

/// Target, the end if it is an interface, the instant in parts per 1000 of the run, and the kind: down, up, repeatedly down, or random.
type EventDraw = (usize, Option<bool>, u64, u8, u64);

/// Ends, bytes, priority, TTL.
type TrafficDraw = ((usize, usize), u64, u8, u8);

const MEDIA: [&str; 4] = [
    "medium = \"ethernet-10\"",
    "medium = \"ethernet-100\"",
    "medium = \"point-to-point\"\nrate = \"2 Mbit/s\"",
    "medium = \"point-to-point\"\nrate = \"7 Mbit/s\"\noverhead = \"9 B\"",
];

const QUEUES: [&str; 6] = [
    "{ drop-tail = { limit = \"3 packets\" } }",
    "{ drop-tail = { limit = \"5000 B\" } }",
    "{ red = { min = \"1 packets\", max = \"4 packets\", weight_log2 = 1, limit = \"9 packets\" } }",
    "{ fq-codel = { target = \"1 ms\", interval = \"9 ms\", limit = \"9 packets\" } }",
    "{ drr = { quantum = \"700 B\", limit = \"9 packets\" } }",
    "{ token-bucket = { rate = \"1 Mbit/s\", burst = \"3000 B\", limit = \"9 packets\" } }",
];

const CHANCES: [&str; 6] =
    ["", "", "", "loss = \"5 %\"", "jitter = \"3 ms\"", "reorder = { share = \"9 %\", delay = \"2 ms\" }"];

/// Returns a random chain of routers with hosts, where neighbours are joined by several paths.
pub(crate) fn choices() -> impl Strategy<Value = Drawn> {
    let between = select(vec![Between::Links, Between::Links, Between::Routers, Between::Switches]);
    let stages = vec((between, 1usize..=3), 1..=2);
    let mtu = weighted(0.3, select(vec![200u64, 576, 1000, 1400, 1492]));
    let link = (
        select(MEDIA.to_vec()),
        1u64..=3_000_000,
        mtu,
        select(CHANCES.to_vec()),
        weighted(0.3, select(QUEUES.to_vec())),
        prop::bool::weighted(0.15),
    )
        .prop_map(|(medium, delay, mtu, chance, queue, cells)| LinkDraw {
            medium,
            delay,
            mtu,
            chance,
            queue,
            cells,
        });
    let time = select(vec!["0 s", "0 s", "3 us", "2 ms"]);
    let router = (0u8..6, 0u64..9, weighted(0.4, 1u32..5), time);
    let event = (0usize..16, weighted(0.4, any::<bool>()), 0u64..900, 0u8..6, 1u64..400);
    let traffic = (
        (0usize..3, 0usize..3),
        prop_oneof![1u64..=100, 100u64..=1400, 1400u64..=9000],
        0u8..8,
        prop_oneof![6 => Just(64u8), 1 => 1u8..=4],
    );
    let run = (20u64..=400, weighted(0.3, 1u64..=900), weighted(0.7, 0usize..3));
    (stages, vec(link, 16), vec(router, 6), vec(event, 0..=3), vec(traffic, 1..=4), run).prop_map(
        |(stages, links, routers, events, traffic, run)| {
            Parts { stages, links, routers, events, traffic, run }.drawn()
        },
    )
}

struct Parts {
    stages: Vec<(Between, usize)>,
    links: Vec<LinkDraw>,
    routers: Vec<RouterDraw>,
    events: Vec<EventDraw>,
    traffic: Vec<TrafficDraw>,
    /// Milliseconds, parts of the warm-up, and where the third host is, if there is one.
    run: (u64, Option<u64>, Option<usize>),
}

impl Parts {
    fn drawn(self) -> Drawn {
        let (routers, switches, links) = self.graph();
        let mut text = "name = \"choices\"\n[host.a]\n[host.b]\n".to_owned();
        let hosts = if self.run.2.is_some() { 3 } else { 2 };
        if hosts == 3 {
            text += "[host.c]\n";
        }
        for switch in switches {
            writeln!(text, "[switch.{switch}]\nkind = \"ethernet\"")
                .expect("writing to a string cannot fail");
        }
        for (place, router) in routers.iter().enumerate() {
            let (policy, seed, weight, time) = self.routers[place % self.routers.len()];
            // The last of its links is more often on a path than the first one.
            let own = links.iter().rposition(|ends| ends.contains(router)).expect("the router has links");
            let weights = weight.map_or(String::new(), |weight| format!("weights = {{ l{own} = {weight} }}"));
            let comma = if weights.is_empty() { "" } else { ", " };
            let policy = match policy {
                0 => "\"first\"".to_owned(),
                1 => format!("{{ hash = {{ seed = {seed}{comma}{weights} }} }}"),
                2 | 3 => format!("{{ hash = {{ fields = \"layer-3\", seed = {seed}{comma}{weights} }} }}"),
                _ => format!("{{ round-robin = {{ {weights} }} }}"),
            };
            writeln!(text, "[router.{router}]\nper_packet = \"{time}\"\necmp = {policy}")
                .expect("writing to a string cannot fail");
        }
        for (place, ends) in links.iter().enumerate() {
            let draw = &self.links[place % self.links.len()];
            let switched = ends.iter().any(|end| end.starts_with('s'));
            if self.has_cells(place, ends) {
                let mtu = draw.mtu.unwrap_or(1500);
                writeln!(
                    text,
                    "[link.l{place}]\nends = {ends:?}\nmedium = \"e1\"\ndelay = \"{} ns\"\n\
                     [circuit.v{place}]\nfrom = {:?}\nto = {:?}\nmtu = \"{mtu} B\"",
                    draw.delay, ends[0], ends[1],
                )
                .expect("writing to a string cannot fail");
                continue;
            }
            // An Ethernet switch has one MTU.
            let medium = if switched { MEDIA[place % 2] } else { draw.medium };
            writeln!(
                text,
                "[link.l{place}]\nends = {ends:?}\n{medium}\ndelay = \"{} ns\"\n{}",
                draw.delay, draw.chance
            )
            .expect("writing to a string cannot fail");
            if let Some(mtu) = draw.mtu.filter(|_| !switched) {
                writeln!(text, "mtu = \"{mtu} B\"").expect("writing to a string cannot fail");
            }
            if let Some(queue) = draw.queue {
                writeln!(text, "queue = {queue}").expect("writing to a string cannot fail");
            }
        }
        let (duration, warmup, _) = self.run;
        for (place, (ends, bytes, priority, ttl)) in self.traffic.iter().enumerate() {
            let (from, to) = (ends.0 % hosts, ends.1 % hosts);
            let to = if from == to { (to + 1) % hosts } else { to };
            let [from, to] = [from, to].map(|host| ["a", "b", "c"][host]);
            let rate = (bytes * 8 * 40_000 / duration).max(1);
            writeln!(
                text,
                "[traffic.t{place}]\nkind = \"poisson\"\nfrom = \"{from}\"\nto = \"{to}\"\nmessage = \"{bytes} B\"\nrate = \"{rate} bit/s\"\npriority = {priority}\nttl = {ttl}"
            )
            .expect("writing to a string cannot fail");
        }
        for (place, (link, interface, at, what, time)) in self.events.iter().enumerate() {
            let link = link % links.len();
            if self.has_cells(link, &links[link]) {
                continue;
            }
            let node = interface.map_or(String::new(), |end| format!("{}/", links[link][usize::from(end)]));
            let (at, time) = (at * duration, time * duration);
            let what = match what {
                0 | 1 => format!("at = \"{at} us\"\nchange = \"down\""),
                2 => format!("at = \"{at} us\"\nchange = \"up\""),
                3 => format!("at = \"{at} us\"\nchange = \"down\"\nevery = \"{time} us\""),
                _ => format!(
                    "mean_time_between_failures = \"{time} us\"\nmean_time_to_repair = \"{} us\"",
                    time.div_ceil(2)
                ),
            };
            writeln!(text, "[event.e{place}]\ntarget = \"{node}l{link}\"\n{what}")
                .expect("writing to a string cannot fail");
        }
        writeln!(text, "[run]\nduration = \"{duration} ms\"").expect("writing to a string cannot fail");
        if let Some(parts) = warmup {
            writeln!(text, "warmup = \"{} us\"", parts * duration).expect("writing to a string cannot fail");
        }
        let source = Source { name: "choices.toml".into(), text };
        let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
        Drawn(campaign.point("base", &[]).unwrap_or_else(|found| panic!("{}", found.render(false))).testbed)
    }

    /// Returns true if a link carries cells.
    fn has_cells(&self, link: usize, ends: &[String; 2]) -> bool {
        self.links[link % self.links.len()].cells && !ends.iter().any(|end| end.starts_with('s'))
    }

    /// Returns routers, switches, and the ends of the links.
    fn graph(&self) -> (Vec<String>, Vec<String>, Vec<[String; 2]>) {
        let mut routers: Vec<String> = (0..=self.stages.len()).map(|place| format!("r{place}")).collect();
        let (last, mut switches) = (self.stages.len(), Vec::new());
        let mut links = vec![["a".to_owned(), "r0".to_owned()]];
        for (stage, (between, ways)) in self.stages.iter().enumerate() {
            let ends = [stage, stage + 1].map(|router| format!("r{router}"));
            for way in 0..*ways {
                let middle = match between {
                    Between::Links => {
                        links.push(ends.clone());
                        continue;
                    }
                    Between::Routers => format!("m{stage}{way}"),
                    Between::Switches => format!("s{stage}{way}"),
                };
                links.push([ends[0].clone(), middle.clone()]);
                links.push([middle.clone(), ends[1].clone()]);
                let nodes = if matches!(between, Between::Routers) { &mut routers } else { &mut switches };
                nodes.push(middle);
            }
        }
        links.push([format!("r{last}"), "b".to_owned()]);
        let third = self.run.2.map(|router| ["c".to_owned(), format!("r{}", router % (last + 1))]);
        links.extend(third);
        (routers, switches, links)
    }
}
