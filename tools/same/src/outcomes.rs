//! `same-outcomes SECONDS < PATHS` prints the outcomes of the engines for testbed files, as text for a comparison.
//!
//! For each point of a file it computes the limit, the first repeat in `simulate`, and a run with injected random packets. Runs are shortened to
//! SECONDS of virtual time. `=== PATH` begins a file, `--- VARIANT SWEEP: ENGINE` an outcome. The number of events is left out.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use engpass_limit::limit;
use engpass_model::queue::Ecn;
use engpass_model::random::Stream;
use engpass_outcome::Results;
use engpass_simulate::injection::{DeliveryReport, Errors, InjectedNetwork, Packet, Transport};
use engpass_simulate::{Engine, modelled};
use engpass_simulate::{SimError, SimOutcome, simulate};
use engpass_testbed::{Campaign, Point, Source, load};
use serde::Serialize;

/// An outcome, or the reason why there is none.
type Answer = Result<String, String>;

fn main() {
    let seconds =
        std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("give a number of seconds");
    for path in std::io::stdin().lines() {
        let path = path.expect("paths are text");
        println!("=== {path}");
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        // Every file has its own random packets.
        let seed = text.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        match load(&Source { name: "testbed.toml".into(), text }, &[], None) {
            Ok(campaign) => points(&campaign, seconds, seed),
            Err(found) => println!("refused: {}", found.summary()),
        }
    }
}

fn points(campaign: &Campaign, seconds: u64, seed: u64) {
    let mut sweeps = vec![Vec::new()];
    for axis in campaign.axes() {
        let values = axis.values.iter().map(|value| (axis.path.clone(), value.text.clone()));
        let longer = |value| sweeps.iter().map(move |sweep| [&sweep[..], slice::from_ref(&value)].concat());
        sweeps = values.flat_map(longer).collect();
    }
    for variant in campaign.variants() {
        for sweep in &sweeps {
            let answer = |name: &str, ask: &dyn Fn(&Point) -> Answer| {
                let point = || campaign.point(variant, sweep).map_err(|found| found.summary());
                let answer = catch_unwind(AssertUnwindSafe(|| ask(&shortened(point()?, seconds))));
                let answer = answer.unwrap_or_else(|_| Err("panic".into()));
                println!("--- {variant} {sweep:?}: {name}");
                print!("{}", answer.unwrap_or_else(|cause| format!("refused: {cause}\n")));
            };
            answer("limit", &limited);
            answer("simulate", &simulated);
            answer("outside", &|point| from_outside(point, Stream::new(seed, "outside")));
        }
    }
}

/// Shortens a run to `seconds`; the warm-up becomes at most half of that.
fn shortened(mut point: Point, seconds: u64) -> Point {
    let run = &mut point.testbed.run;
    let most = seconds * 1_000_000_000_000;
    if run.duration.0 > most {
        run.duration.0 = most;
        run.warmup.iter_mut().for_each(|warmup| warmup.0 = warmup.0.min(most / 2));
    }
    point
}

fn limited(point: &Point) -> Answer {
    let this = modelled(&point.testbed, &point.topology, Engine::Limit)?;
    Ok(stored(&limit(&this.testbed, &this.topology).stored()))
}

fn simulated(point: &Point) -> Answer {
    let this = modelled(&point.testbed, &point.topology, Engine::Simulate)?;
    whole(simulate(&this.testbed, &this.topology, point.testbed.run.seed, &|| false))
}

/// Formats an outcome as it is stored, with the numbers that only tests compare, such as the sum of all reception times.
fn whole(outcome: Result<SimOutcome, SimError>) -> Answer {
    let outcome = outcome.map_err(|wrong| format!("{wrong:?}"))?;
    let flows = outcome.instants.iter().map(|(name, flow)| format!("{name}: {}\n", numbers(flow)));
    let links = outcome.links.iter().map(|(name, link)| format!("{name}: {}\n", numbers(link)));
    let hidden: String = flows.chain(links).collect();
    Ok(hidden + &stored(&outcome.stored()))
}

fn stored(results: &Results) -> String {
    let flows = results.flows.iter().map(|(name, flow)| format!("{name}: {}\n", json(flow)));
    let links = results.links.iter().map(|(name, link)| format!("{name}: {}\n", json(link)));
    flows.chain(links).chain(results.drops.iter().map(|drop| json(drop) + "\n")).collect()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("outcomes are plain data")
}

/// Lists the numbers in a value. It leaves out field names and zeros, because a commit may rename a field, or add one that is zero here.
fn numbers(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    let words = text.split(|letter: char| !(letter.is_alphanumeric() || "_-.".contains(letter)));
    let digit = |word: &&str| word.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit());
    words.filter(digit).filter(|word| !matches!(*word, "0" | "0.0")).collect::<Vec<_>>().join(" ")
}

/// Injects random packets at random instants: single ones, in trains and multicast, inside and outside of measurement windows.
fn from_outside(point: &Point, mut random: Stream) -> Answer {
    let network = InjectedNetwork::new(&point.testbed, &point.topology, point.testbed.run.seed);
    let mut network = network.map_err(|wrong| format!("{wrong:?}"))?;
    let (ways, hosts) = (network.ways().to_vec(), Vec::from_iter(0..point.testbed.hosts.len()));
    let first = ways.first().ok_or("no way leads from host to host")?;
    // A multicast group disables lookahead, so only half of the files have one.
    let group = (random.below(2) == 0).then(|| network.group(first.from, &hosts));
    let (mut told, mut text, mut now) = (Vec::new(), String::new(), 0);
    for token in (0..100_000).step_by(1000) {
        // Gaps are between zero and ten milliseconds, on a logarithmic scale.
        let longest = 10_u64.pow(random.below(11) as u32);
        now += random.below(longest);
        let each = &mut |output| told.push(output);
        match random.below(12) {
            0 | 1 => network.run_until(now, each),
            2 => drop(network.seen()),
            3..=5 if network.window().is_none() => network.begin_window(now, each),
            5 => text += &whole(network.end_window(now, each))?,
            6 => text += &format!("next: {:?}\n", network.next_wake()),
            _ => {}
        }
        let longest = [80, 1500, 1500, 9000, 40_000][random.below(5) as usize];
        let count = [1, 1, 1, 1 + random.below(50) as u32][random.below(4) as usize];
        let (bytes, flow) = (20 + random.below(longest) as u32, random.below(3) as u16);
        let ecn = [Ecn::NotCapable, Ecn::Capable, Ecn::Marked][random.below(3) as usize];
        let (priority, ttl) = (random.below(8) as u8, [64, 64, 64, 2][random.below(4) as usize]);
        let transport = Transport { protocol: 17, ports: [flow, 9] };
        let errors = [Errors::None, Errors::V4, Errors::V6][random.below(3) as usize];
        let whole = random.below(4) == 0;
        let packet = Packet { bytes, header: 8, ecn, priority, ttl, transport, whole, errors, token };
        if let Some(group) = group.filter(|_| random.below(4) == 0) {
            let members = network.members(group);
            let tokens: Vec<u64> = (token..).take(members.len()).collect();
            let fits = members.iter().map(|way| ways[*way as usize].mtu as u32).fold(bytes, u32::min);
            network.inject_group(now, group, Packet { bytes: fits, ..packet }, &tokens);
        } else {
            let way = random.below(ways.len() as u64) as u32;
            network.inject_identical(now, way, packet, count);
        }
    }
    network.run_until(now + 500_000_000_000, &mut |output| told.push(output));
    for output in told {
        let line = match output {
            DeliveryReport::Delivered { at, way, token, ce, .. } => {
                format!("{token}, way {way}: delivered {at}, {ce}")
            }
            DeliveryReport::Lost { at, lost_at, way, token, place, message } => {
                format!(
                    "{token}, way {way}: lost {lost_at}, told {at}, {message}, {:?}",
                    network.place(place)
                )
            }
            DeliveryReport::Message { at, way, token, said, routers } => {
                format!("{token}, way {way}: {said:?} {at}, {routers}")
            }
            DeliveryReport::MessageLost { at, way, token } => {
                format!("{token}, way {way}: message lost {at}")
            }
        };
        text += &(line + "\n");
    }
    Ok(text + &format!("inside: {}\n", network.count_unreported()))
}
