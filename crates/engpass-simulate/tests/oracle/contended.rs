//! Chains of switches with contention: interleaved trains, and queues that fill and stay full, over several hops.
//!
//! [`network`](crate::networks::network) covers everything a little; this covers what the tight loops and closed forms of queues are for.

use std::collections::BTreeMap;
use std::fmt::Write;

use engpass_simulate::simulate;
use engpass_testbed::{Point, Source, load};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::engine::Engine;
use crate::fast::observed;
use crate::outcome::{Observed, Place, compare};
use crate::properties::Sample;

/// Kind of a stream; rates in parts per 1000 of its access link.
#[derive(Clone, Debug)]
enum Kind {
    /// Bytes of a message, and the pace of its circuit.
    Udp {
        message: u64,
        shaping: Option<u64>,
    },
    Cbr {
        rate: u64,
    },
    /// Times in microseconds.
    OnOff {
        rate: u64,
        on: u64,
        off: u64,
        exponential: bool,
    },
}

/// A stream from a host at one switch to a host behind another, both modulo their number.
#[derive(Clone, Debug)]
struct Stream {
    kind: Kind,
    from: usize,
    hops: usize,
    access: &'static str,
    high: bool,
    clp: u8,
    /// It leaves from the host of the stream before it.
    joins: bool,
}

#[derive(Clone, Debug)]
struct Hop {
    buffer: u64,
    schedule: &'static str,
    discard: String,
    efci: Option<u64>,
    clp: Option<u64>,
}

fn kind() -> impl Strategy<Value = Kind> {
    let rate = || prop_oneof![Just(1000u64), Just(500), Just(836), 1u64..=1000];
    let message = prop_oneof![Just(9152u64), 1u64..=2000, 2000u64..=65_000];
    let shaping = weighted(0.5, prop_oneof![Just(160u64), Just(180), Just(240), 20u64..=1000]);
    let time = || prop_oneof![10u64..=100, 100u64..=2000];
    prop_oneof![
        3 => (message, shaping).prop_map(|(message, shaping)| Kind::Udp { message, shaping }),
        3 => rate().prop_map(|rate| Kind::Cbr { rate }),
        2 => (rate(), time(), time(), any::<bool>())
            .prop_map(|(rate, on, off, exponential)| Kind::OnOff { rate, on, off, exponential }),
    ]
}

fn stream() -> impl Strategy<Value = Stream> {
    let access = select(vec!["oc-3c", "oc-3c", "oc-12c"]);
    let some = |parts| prop::bool::weighted(parts);
    (kind(), 0usize..3, 1usize..=3, access, some(0.4), some(0.15), some(0.15)).prop_map(
        |(kind, from, hops, access, high, clp, joins)| Stream {
            kind,
            from,
            hops,
            access,
            high,
            clp: u8::from(clp),
            joins,
        },
    )
}

fn hop() -> impl Strategy<Value = Hop> {
    let buffer = prop_oneof![1u64..=8, 8u64..=100, 100u64..=600];
    let discard = prop_oneof![
        4 => Just("tail".to_owned()),
        1 => Just("ppd".to_owned()),
        2 => (select(vec!["epd", "epd-ppd", "selective-drop", "fba"]), 1u64..=99)
            .prop_map(|(kind, share)| format!("{kind}={share}")),
    ];
    let level = || weighted(0.15, 1u64..=99);
    (buffer, select(vec!["fifo", "fifo", "priority"]), discard, level(), level())
        .prop_map(|(buffer, schedule, discard, efci, clp)| Hop { buffer, schedule, discard, efci, clp })
}

/// Returns the file of a chain.
fn text(hops: &[Hop], streams: &[Stream], (duration, warmup): (u64, Option<u64>)) -> String {
    let mut text = format!("name = \"contended\"\n[run]\nduration = \"{duration} us\"\n");
    if let Some(warmup) = warmup {
        writeln!(text, "warmup = \"{} us\"", duration * warmup / 100).unwrap();
    }
    let quoted = |kind: &str| format!("\"{kind}\"");
    for (index, hop) in hops.iter().enumerate() {
        let discard = match hop.discard.split_once('=') {
            Some((kind, share)) => format!("{{ {kind} = {{ threshold = \"{share} %\" }} }}"),
            None => quoted(&hop.discard),
        };
        writeln!(
            text,
            "[switch.s{index}]\nkind = \"atm\"\noutput_buffer = \"{} cells\"\nschedule = \"{}\"\ndiscard = {discard}",
            hop.buffer, hop.schedule
        )
        .unwrap();
        for (name, level) in [("efci_threshold", hop.efci), ("clp_threshold", hop.clp)] {
            if let Some(share) = level {
                writeln!(text, "{name} = \"{share} %\"").unwrap();
            }
        }
    }
    let last = hops.len();
    writeln!(text, "[switch.s{last}]\nkind = \"atm\"\noutput_buffer = \"64 cells\"").unwrap();
    let mut links = String::new();
    let mut link = |ends: [String; 2], medium: &str, delay: u64| {
        let [a, b] = &ends;
        writeln!(
            links,
            "[link.{a}-{b}]\nends = [\"{a}\", \"{b}\"]\nmedium = \"{medium}\"\ndelay = \"{delay} us\""
        )
        .unwrap();
    };
    for hop in 0..hops.len() {
        link([format!("s{hop}"), format!("s{}", hop + 1)], "oc-3c", 7);
    }
    for (index, stream) in streams.iter().enumerate() {
        let enters = |index: usize| streams[index].from % hops.len();
        // Hosts of two streams need one link only.
        let host = if stream.joins && index > 0 && !streams[index - 1].joins { index - 1 } else { index };
        let leaves = (enters(host) + stream.hops).min(last);
        if host == index {
            writeln!(text, "[host.a{index}]").unwrap();
            link([format!("a{index}"), format!("s{}", enters(index))], stream.access, 1);
        }
        writeln!(text, "[host.b{index}]").unwrap();
        link([format!("s{leaves}"), format!("b{index}")], "oc-3c", 2);
        let rate = |parts: u64| format!("{}.{} %", parts / 10, parts % 10);
        let category = if stream.high { "cbr" } else { "ubr" };
        writeln!(
            text,
            "[circuit.c{index}]\nfrom = \"a{host}\"\nto = \"b{index}\"\ncategory = \"{category}\"\nclp = {}",
            stream.clp
        )
        .unwrap();
        if let Kind::Udp { shaping: Some(parts), .. } = stream.kind {
            writeln!(text, "shaping = \"{}\"", rate(parts)).unwrap();
        }
        let what = match stream.kind {
            Kind::Udp { message, .. } => format!("\"udp-stream\"\nmessage = \"{message} B\""),
            Kind::Cbr { rate: parts } => format!("\"cbr\"\nrate = \"{}\"", rate(parts)),
            Kind::OnOff { rate: parts, on, off, exponential } => {
                let lengths = if exponential { "exponential" } else { "fixed" };
                let rate = rate(parts);
                format!(
                    "\"on-off\"\nrate = \"{rate}\"\non = \"{on} us\"\noff = \"{off} us\"\nlengths = \"{lengths}\""
                )
            }
        };
        writeln!(
            text,
            "[traffic.t{index}]\nfrom = \"a{host}\"\nto = \"b{index}\"\ncircuit = \"c{index}\"\nkind = {what}"
        )
        .unwrap();
    }
    text + &links
}

fn contended() -> impl Strategy<Value = String> {
    let run = (1000u64..=12_000, weighted(0.2, 1u64..=90));
    (vec(hop(), 1..=3), vec(stream(), 2..=4), run).prop_map(|(hops, streams, run)| text(&hops, &streams, run))
}

/// The Kyoto port: a stream of PDUs beside one `cbr` source with priority, or in one queue with it. Both go to one host right behind the port, so the instants
/// of cells do not matter.
fn congested_port() -> impl Strategy<Value = String> {
    let schedule = select(vec!["priority", "priority", "fifo"]);
    let shaping = weighted(0.7, prop_oneof![Just(160u64), Just(164), Just(180), Just(240), 20u64..=1000]);
    let message = prop_oneof![Just(9152u64), 1u64..=65_000];
    let rate = prop_oneof![2 => Just(836u64), 1 => 1u64..=999];
    (1u64..=450, schedule, message, shaping, rate, 5_000u64..=25_000).prop_map(
        |(buffer, schedule, message, shaping, rate, duration)| {
            let shaping = shaping
                .map_or(String::new(), |parts| format!("shaping = \"{}.{} %\"", parts / 10, parts % 10));
            format!(
                r#"
name = "a congested port"
host = {{ a = {{}}, g = {{}}, b = {{}} }}
link.a = {{ ends = ["a", "s"], medium = "oc-3c", delay = "1 us" }}
link.g = {{ ends = ["g", "s"], medium = "oc-3c", delay = "2 us" }}
link.b = {{ ends = ["s", "b"], medium = "oc-3c", delay = "3 us" }}
run.duration = "{duration} us"
[switch.s]
kind = "atm"
output_buffer = "{buffer} cells"
schedule = "{schedule}"
[circuit.data]
from = "a"
to = "b"
{shaping}
[traffic.stream]
kind = "udp-stream"
from = "a"
to = "b"
message = "{message} B"
[traffic.beside]
kind = "cbr"
from = "g"
to = "b"
rate = "{}.{} %"
"#,
                rate / 10,
                rate % 10
            )
        },
    )
}

fn point(text: &str) -> Point {
    let source = Source { name: "contended.toml".into(), text: text.into() };
    let campaign = load(&source, &[], None).unwrap_or_else(|wrong| panic!("{}\n{text}", wrong.render(false)));
    campaign.point("base", &[]).unwrap_or_else(|wrong| panic!("{}\n{text}", wrong.render(false)))
}

/// Returns the observations of the oracle, if the fast engine agrees.
fn both(text: &str, seed: u64) -> Result<Observed, String> {
    let Point { testbed, topology, .. } = &point(text);
    let mut oracle = Engine::new(testbed, seed);
    let end = testbed.run.duration.0;
    oracle.run_until(end);
    let seen = oracle.snapshot(end);
    let outcome = simulate(testbed, topology, seed, &|| false).map_err(|wrong| format!("{wrong:?}"))?;
    compare(&observed(&outcome, testbed, topology), &seen)?;
    Ok(seen)
}

proptest! {
    #![proptest_config(engpass_cases::cases(256))]

    #[test]
    fn interleaved_train_engine_equals_cell_oracle(text in contended(), seed in any::<u64>()) {
        let difference = both(&text, seed).err();
        prop_assert!(difference.is_none(), "{}\n{text}", difference.unwrap_or_default());
    }

    #[test]
    fn congested_port_equals_oracle(text in congested_port(), seed in any::<u64>()) {
        let difference = both(&text, seed).err();
        prop_assert!(difference.is_none(), "{}\n{text}", difference.unwrap_or_default());
    }
}

/// Coverage of a sample, so that the tests above are meaningful.
#[test]
fn contended_sample_covers_full_queues_and_three_hops() {
    let mut met: BTreeMap<&str, u64> = BTreeMap::new();
    let mut runner = TestRunner::deterministic();
    let sample = Sample::new(100);
    for _ in 0..sample.drawn {
        let text = contended().new_tree(&mut runner).expect("the strategy generates a line").current();
        let Point { testbed, .. } = &point(&text);
        let mut oracle = Engine::new(testbed, 1);
        oracle.run_until(testbed.run.duration.0);
        let seen = oracle.snapshot(testbed.run.duration.0);
        let lost = seen.losses.iter().filter(|(key, _)| matches!(key.place, Place::Port { .. }));
        let mut meet = |what, there: bool| *met.entry(what).or_default() += u64::from(there);
        meet("a queue that stays full", lost.map(|(_, lost)| lost.cells).sum::<u64>() > 50);
        meet("frames that arrive", seen.flows.iter().any(|flow| flow.received > 3));
        meet("three contended hops", testbed.switches.len() == 4);
    }
    for (what, times) in &met {
        assert!(*times >= sample.enough(20), "{what}: only {times} of {} networks", sample.drawn);
    }
}
