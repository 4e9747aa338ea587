//! Each rule of lookahead is needed: with one of them disabled, the outcome of some network changes; with all of them, none does.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use engpass_simulate::{LookaheadRule, Network, SimOutcome};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::common::point;
use crate::lookahead_equivalence::{Node, Traffic, text};

/// Two lines between two routers: kind, policy of the first router, and event of the second line.
type Pair = (u8, u8, u8);

const POLICIES: [&str; 3] = ["\"hash\"", "\"round-robin\"", "{ round-robin = { weights = {} } }"];

/// Modes of bonds towards a router.
const MODES: [&str; 2] = ["\"round-robin\"", "{ hash = { layers = \"layer-3+4\" } }"];

/// A router that datagrams enter, too, and at which segments are too long for the next link.
const EDGE: &str = r#"
[router.edge]
[router.core]
[host.m]
tcp = { path_mtu = "discovered" }
[host.n]
[link.m]
ends = ["m", "r0"]
medium = "ethernet-100"
[link.edge]
ends = ["r0", "edge"]
medium = "ethernet-100"
delay = "70 us"
[link.narrow]
ends = ["edge", "core"]
medium = "ethernet-100"
mtu = "700 B"
[link.n]
ends = ["core", "n"]
medium = "ethernet-100"
[traffic.m]
kind = "tcp-stream"
from = "m"
to = "n"
message = "20 kB"
streams = 3
[traffic.n]
kind = "udp-stream"
from = "n"
to = "m"
message = "400 B"
rate = "40 Mbit/s"
"#;

/// A router that answers requests on a line that has packets of one host otherwise.
const ASKING: &str = r#"
[router.answering]
[router.asking]
arp = { lifetime = "1 ms", retry = "3 ms" }
[host.m]
[host.n]
[link.m]
ends = ["m", "answering"]
medium = "ethernet-100"
[link.asking]
ends = ["answering", "asking"]
medium = "ethernet-100"
delay = "70 us"
[link.n]
ends = ["asking", "n"]
medium = "ethernet-100"
[link.join]
ends = ["asking", "r0"]
medium = "ethernet-100"
[traffic.m]
kind = "udp-stream"
from = "m"
to = "n"
message = "400 B"
rate = "40 Mbit/s"
[traffic.n]
kind = "udp-stream"
from = "n"
to = "m"
message = "20 B"
rate = "1 Mbit/s"
"#;

/// Returns a row of routers, some joined by two lines, some of which fail and return.
fn network() -> impl Strategy<Value = String> {
    (
        prop::collection::vec(any::<Node>(), 2..5),
        prop::collection::vec(any::<Traffic>(), 1..5),
        prop::collection::vec(any::<Pair>(), 4),
        any::<u8>(),
        any::<bool>(),
    )
        .prop_map(|(routers, flows, pairs, chance, warmup)| {
            let mut text = text(&routers, &flows, chance, warmup);
            if chance % 2 == 0 {
                // Whether a packet is fragmented depends on its length, so a hash must decide for each.
                text = text.replace("message = \"700 B\"", "message = \"700 B\"\nsizes = \"exponential\"");
            }
            if chance % 4 < 2 {
                // Hosts with two links send on the first one, or on both if they form a bond, and receive on both.
                for (host, end) in [("a0", flows[0].1), ("b0", flows[0].2)] {
                    let router = usize::from(end) % routers.len();
                    write!(
                        text,
                        "[link.second-{host}]\nends = [\"{host}\", \"r{router}\"]\nmedium = \"ethernet-100\"\ndelay = \"200 us\"\n"
                    )
                    .expect("writing to a string cannot fail");
                    if let Some(mode) = MODES.get(usize::from(chance) / 4 % 4) {
                        write!(
                            text,
                            "[bond.{host}]\nnode = \"{host}\"\nlinks = [\"{host}\", \"second-{host}\"]\nmode = {mode}\nmonitor = {{ interval = \"{} us\" }}\n",
                            100 * u32::from(chance % 16),
                        )
                        .expect("writing to a string cannot fail");
                    }
                }
            }
            if chance % 4 == 2 {
                // Two routers resolve the addresses of their neighbours again and again.
                let head = "[router.r0]\n";
                text = text.replace(head, &format!("{head}arp = {{ lifetime = \"1 ms\", retry = \"3 ms\" }}\n"));
                text += ASKING;
            }
            if chance % 4 == 1 {
                // A router with one incoming line that also sends messages.
                text += EDGE;
            }
            for (index, (pair, policy, event)) in (1..routers.len()).zip(pairs) {
                if pair % 2 == 0 {
                    write!(
                        text,
                        "[link.p{index}]\nends = [\"r{}\", \"r{index}\"]\nmedium = \"ethernet-100\"\ndelay = \"{} us\"\n",
                        index - 1,
                        20 + 30 * u32::from(pair),
                    )
                    .expect("writing to a string cannot fail");
                    let policy = POLICIES[usize::from(policy) % POLICIES.len()];
                    for router in [index - 1, index] {
                        let head = format!("[router.r{router}]\n");
                        if !text.contains(&format!("{head}ecmp")) {
                            text = text.replace(&head, &format!("{head}ecmp = {policy}\n"));
                        }
                    }
                }
                let target = match event % 8 {
                    0 => format!("l{index}"),
                    1 if pair % 2 == 0 => format!("p{index}"),
                    2 => format!("r{index}/l{index}"),
                    3 => "a0".into(),
                    4 => "a0/a0".into(),
                    5 => "b0/b0".into(),
                    6 if text.contains("[bond.a0]") => "second-a0".into(),
                    7 if text.contains("[bond.b0]") => "b0/second-b0".into(),
                    _ => continue,
                };
                // The interfaces of hosts flap.
                let every = if event % 8 > 3 { 731 } else { 23_000 };
                let [down, up] = [3000 + 100 * u32::from(event), 3500 + 100 * u32::from(event) + 40 * u32::from(pair)];
                let up = if every < up - down { down + 300 } else { up };
                write!(
                    text,
                    "[event.down{index}]\ntarget = \"{target}\"\nchange = \"down\"\nat = \"{down} us\"\nevery = \"{every} us\"\n\
                     [event.up{index}]\ntarget = \"{target}\"\nchange = \"up\"\nat = \"{up} us\"\nevery = \"{every} us\"\n",
                )
                .expect("writing to a string cannot fail");
            }
            text
        })
}

fn outcome(mut network: Network, text: &str, tells: bool) -> SimOutcome {
    let point = point(text, "base", &[]);
    if !tells {
        network.disable_lookahead();
    }
    network.run(&|| false).expect("no interrupt is requested");
    let outcome = network.outcome(&point.testbed, &point.topology).expect("the ledger balances");
    SimOutcome { events: 0, ..outcome }
}

fn plain(text: &str, tells: bool) -> SimOutcome {
    let point = point(text, "base", &[]);
    outcome(
        Network::new(&point.testbed, &point.topology, 3).expect("the model supports the testbed"),
        text,
        tells,
    )
}

proptest! {
    #[test]
    fn lookahead_with_ecmp_and_outages_equals_event_per_hop(text in network()) {
        prop_assert_eq!(plain(&text, true), plain(&text, false));
    }
}

#[test]
fn every_lookahead_rule_is_needed() {
    let mut runner = TestRunner::deterministic();
    let drawn = network();
    let texts: Vec<String> = (0..2000)
        .map(|_| drawn.new_tree(&mut runner).expect("the strategy generates a network").current())
        .collect();
    let plain: Vec<SimOutcome> = texts.iter().map(|text| plain(text, false)).collect();
    for rule in LookaheadRule::ALL {
        let differs = |(text, plain): (&String, &SimOutcome)| {
            let point = point(text, "base", &[]);
            let network = Network::with_rule_disabled(&point.testbed, &point.topology, 3, rule)
                .expect("the model supports the testbed");
            // A panic counts as a difference.
            let without = catch_unwind(AssertUnwindSafe(|| outcome(network, text, true)));
            without.map_or(true, |without| without != *plain)
        };
        let found = texts.iter().zip(&plain).position(differs);
        println!("without {rule:?}: network {found:?} of {} differs", texts.len());
        assert!(found.is_some(), "no network needs {rule:?}");
    }
}
