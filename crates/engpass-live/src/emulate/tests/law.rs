//! The replay law: what went in, put in again in virtual time, comes out as it did.

use std::fs;

use engpass_testbed::{Source, load};
use proptest::prelude::*;

use super::super::capture::CaptureConfig;
use super::super::log::{Log, Reading};
use super::super::model::Model;
use super::super::network::{Fate, Network};
use super::super::replay::{self, Replayed};
use super::world::{Fake, Line};
use super::{datagrams, driver, path};

/// Three hosts on ATM: two that send to one through a small buffer, with a generator between.
const ATM: &str = r#"
name = "atm"
[host.a]
[host.b]
[host.c]
[host.g]
[switch.s]
kind = "atm"
output_buffer = "200 cells"
[link.a]
ends = ["a", "s"]
medium = "oc-3c"
[link.b]
ends = ["b", "s"]
medium = "oc-3c"
[link.c]
ends = ["s", "c"]
medium = "oc-3c"
[link.g]
ends = ["g", "s"]
medium = "oc-3c"
[circuit.ac]
from = "a"
to = "c"
mtu = "1500 B"
[circuit.bc]
from = "b"
to = "c"
mtu = "1500 B"
[circuit.gc]
from = "g"
to = "c"
category = "cbr"
[traffic.g]
kind = "cbr"
from = "g"
to = "c"
circuit = "gc"
rate = "60 Mbit/s"
counts = "line"
[run]
duration = "1 s"
"#;

/// Three hosts behind a router, with a queue that loses and marks, and a line that loses and reorders.
const FRAMES: &str = r#"
name = "frames"
[host.a]
[host.b]
[host.c]
[router.r]
[link.a]
ends = ["a", "r"]
medium = "ethernet-1g"
[link.b]
ends = ["b", "r"]
medium = "ethernet-1g"
[link.c]
ends = ["r", "c"]
medium = "ethernet-100"
delay = "3 ms"
loss = "0.5 %"
queue = { fq-codel = { limit = "60 packets" } }
[traffic.any]
kind = "udp-stream"
from = "a"
to = "c"
message = "1 kB"
rate = "1 Mbit/s"
[run]
duration = "1 s"
"#;

fn model(text: &str) -> Model {
    model_of(text, &[])
}

/// With Ethernet devices at these hosts.
pub(super) fn model_of(text: &str, segments: &[usize]) -> Model {
    let source = Source::from_bytes("law.toml", text.as_bytes()).expect("it is text");
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    let point = campaign.point(&campaign.variants()[0], &[]).expect("a checked file has a first point");
    Model::new(&point, 7, segments).expect("the model carries it")
}

/// Random trains, many more than fit.
fn world(hosts: usize, seed: u64, sends: u64) -> Fake {
    let mut world = Fake::new(hosts, seed);
    let (mut now, mut number) = (1_000_000, 0);
    for _ in 0..sends {
        now += world.random(400_000);
        let from = world.random(2) as usize;
        let segments = 1 + world.random(12) as usize;
        let size = 4 + world.random(1400) as usize;
        world.scripts[from].push_back((now, datagrams(from, 2, number, segments, size)));
        number += segments as u32;
        if world.random(4) == 0 {
            world.scripts[2].push_back((now, datagrams(2, from, number, 1, size)));
            number += 1;
        }
    }
    world
}

/// Run a driver with a log, for so many turns after the last packet; how many were written and lost.
fn logged<N: Network>(network: N, world: Fake, name: &str, turns: usize) -> (usize, u64) {
    let log = Log::create(&path(name), &serde_json::json!({ "engpass-log": 1 })).expect("a file");
    let mut driver = driver(network, world, 1, Some(log));
    let mut left = turns;
    while left > 0 {
        driver.turn();
        left -= usize::from(driver.world.is_over());
    }
    driver.end();
    assert!(driver.log.as_ref().expect("it has one").to_json()["error"].is_null());
    (driver.world.written.len(), driver.counts.lost.iter().sum())
}

pub(super) fn again(network: &mut impl Network, bytes: &[u8]) -> Replayed {
    let mut reading = Reading::new(bytes).expect("it begins with a header");
    let found = replay::replay(network, &mut reading, &|| false);
    found.expect("it is readable").expect("nobody interrupts it")
}

fn check(text: &str, name: &str, hosts: usize) {
    for seed in 0..4 {
        let (written, lost) = logged(model(text), world(hosts, seed, 400), name, 200);
        assert!(written > 100 && lost > 20, "{written} written, {lost} lost");
        let bytes = fs::read(path(name)).expect("it was written");
        let mut network = model(text);
        let found = again(&mut network, &bytes);
        assert_eq!((found.difference.as_ref(), found.whole, found.changed), (None, true, 0));
        assert!(found.outputs > found.inputs / 2 && found.outputs >= lost);
        let told = found.to_json(&network);
        assert_eq!(told["identical"], true);
    }
    fs::remove_file(path(name)).expect("it is there");
}

/// Real packets are captured as they pass, and nothing else changes.
#[test]
fn captures_have_the_packets_and_change_nothing() {
    let (written, lost) = logged(model(FRAMES), world(3, 1, 200), "not-captured", 200);
    fs::remove_file(path("not-captured")).expect("it is there");
    let files = ["a", "c"].map(|link| path(&format!("captured-{link}")));
    let points = ["link.a.a", "link.c.r"].map(str::to_owned);
    let config =
        CaptureConfig { files: points.into_iter().zip(files.clone()).collect(), ..Default::default() };
    let mut network = model(FRAMES);
    network.capture(&config, "a test").expect("the testbed has these links");
    let mut driver = driver(network, world(3, 1, 200), 1, None);
    let mut left = 200;
    while left > 0 {
        driver.turn();
        left -= usize::from(driver.world.is_over());
    }
    driver.end();
    assert_eq!((driver.world.written.len(), driver.counts.lost.iter().sum::<u64>()), (written, lost));
    let captured = driver.network.end_capture().expect("it was asked for");
    let packets = [0, 1].map(|file| captured[file]["packets"].as_u64().expect("it was written"));
    assert!(packets[0] > 300 && packets[1] > 100, "{packets:?}");
    for (file, told) in files.iter().zip(captured.as_array().expect("one for each file")) {
        assert_eq!(fs::metadata(file).expect("it is there").len(), told["bytes"].as_u64().expect("a number"));
        fs::remove_file(file).expect("it is there");
    }
    let wrong = CaptureConfig { files: vec![("link.d".into(), path("none"))], ..Default::default() };
    let error = model(FRAMES).capture(&wrong, "").expect_err("there is no such link");
    assert!(error.to_string().contains("help: it has `link.a`"), "{error}");
}

#[test]
fn the_law_holds_where_cells_are_carried() {
    check(ATM, "law-atm", 4);
}

#[test]
fn the_law_holds_where_frames_are_carried() {
    check(FRAMES, "law-frames", 3);
}

#[test]
fn a_log_that_was_changed_is_found_out() {
    let name = "law-changed";
    let line = || Line::new(3, 20_000_000, 1_000_000_000, 10, 9);
    logged(line(), world(3, 1, 50), name, 100);
    let bytes = fs::read(path(name)).expect("it was written");
    fs::remove_file(path(name)).expect("it is there");
    let header = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    assert_eq!(again(&mut line(), &bytes).difference, None);
    let record = |index: usize| header + index * 48;
    let count = (bytes.len() - header) / 48;
    let kind = |index: usize| bytes[record(index) + 40];
    let outputs: Vec<_> = (0..count).filter(|index| (2..5).contains(&kind(*index))).collect();
    // The instant of an output.
    let mut late = bytes.clone();
    late[record(outputs[5])] ^= 1;
    let difference = again(&mut line(), &late).difference.expect("it differs");
    assert_eq!(difference.output, 5);
    let (logged, replayed) = (difference.logged.expect("one"), difference.replayed.expect("one"));
    assert_eq!((logged.token, logged.at ^ 1), (replayed.token, replayed.at));
    // Its fate.
    let delivered = outputs.iter().position(|index| kind(*index) == 2).expect("most are");
    let mut marked = bytes.clone();
    marked[record(outputs[delivered]) + 40] = 3;
    let difference = again(&mut line(), &marked).difference.expect("it differs");
    assert_eq!(difference.output, delivered as u64);
    assert_eq!(difference.replayed.map(|output| output.fate), Some(Fate::Delivered { ce: false }));
    // An output that never was.
    let mut fewer = bytes.clone();
    fewer.drain(record(outputs[3])..record(outputs[3] + 1));
    assert_eq!(again(&mut line(), &fewer).difference.map(|difference| difference.output), Some(3));
    // Another payload than went in.
    let mut other = bytes.clone();
    other[record(outputs[0]) + 16] ^= 1;
    let found = again(&mut line(), &other);
    assert_eq!((found.difference, found.changed), (None, 1));
    // The end of the log is lost.
    let cut = again(&mut line(), &bytes[..record(count / 2) + 9]);
    assert_eq!((cut.difference, cut.whole), (None, false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// However the turns fell: only what went in, and when, decides what comes out.
    #[test]
    fn the_law_holds_for_any_line(
        seed in any::<u64>(), pace in 1_000_u64..100_000_000, delay in 0_u64..2_000_000_000, every in 1_u64..30,
    ) {
        let name = "law-any";
        let line = || Line::new(3, pace, delay, 10, every);
        logged(line(), world(3, seed, 60), name, 400);
        let found = again(&mut line(), &fs::read(path(name)).expect("it was written"));
        fs::remove_file(path(name)).expect("it is there");
        prop_assert!(found.difference.is_none() && found.whole && found.changed == 0, "{found:?}");
    }
}
