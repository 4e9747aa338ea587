//! Tests the replay guarantee: the same injections in virtual time give the same delivery reports.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use engpass_testbed::{Source, load};
use proptest::prelude::*;
use serde_json::Value;

use super::super::capture::CaptureConfig;
use super::super::log::{Log, Reading};
use super::super::model::Model;
use super::super::network::{DeliveryStatus, Network};
use super::super::replay::{self, Replayed};
use super::super::routers::Routers;
use super::groups::{TREE, group_log};
use super::world::{Fake, Line};
use super::{datagrams, driver, path};

/// Hosts on ATM: two that send to a third through a small buffer, and a generator.
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

/// Three hosts behind a router, with a queue that drops and marks, and a line with random loss.
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

/// Three hosts and several paths to the router of the receiver: two with one router more than the third. One line fails at random, another periodically.
const CHOICES: &str = r#"
name = "choices"
[host.a]
[host.b]
[host.c]
[router.r]
ecmp = "round-robin"
[router.m]
ecmp = "hash"
[switch.s]
kind = "ethernet"
[router.t]
[link.a]
ends = ["a", "r"]
medium = "ethernet-1g"
[link.b]
ends = ["b", "r"]
medium = "ethernet-1g"
[link.rm]
ends = ["r", "m"]
medium = "ethernet-100"
[link.mt]
ends = ["m", "t"]
medium = "ethernet-100"
[link.mt2]
ends = ["m", "t"]
medium = "ethernet-100"
[link.rs]
ends = ["r", "s"]
medium = "ethernet-100"
[link.st]
ends = ["s", "t"]
medium = "ethernet-100"
[link.c]
ends = ["t", "c"]
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
[event.random]
target = "mt"
mean_time_between_failures = "9 ms"
mean_time_to_repair = "5 ms"
[event.cut]
target = "s/rs"
at = "3 ms"
change = "down"
every = "20 ms"
[event.mended]
target = "s/rs"
at = "10 ms"
change = "up"
every = "20 ms"
[run]
duration = "30 ms"
"#;

fn model(text: &str) -> Model {
    model_of(text, &[])
}

/// Builds the network, with TAP devices at the hosts `segments`.
pub(super) fn model_of(text: &str, segments: &[usize]) -> Model {
    let source = Source::from_bytes("law.toml", text.as_bytes()).expect("the testbed text is UTF-8");
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    let point = campaign.point(&campaign.variants()[0], &[]).expect("a checked file has a first point");
    Model::new(&point, 7, segments).expect("the model supports the testbed")
}

/// Random bursts of packets, many more than the network can carry.
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

/// Runs a driver with a log, for `turns` turns after the last packet. Returns the numbers of writes and of lost packets.
fn logged<N: Network>(network: N, world: Fake, name: &str, turns: usize) -> (usize, u64) {
    let log = Log::create(&path(name), &serde_json::json!({ "engpass-log": 1 })).expect("the file opens");
    let mut driver = driver(network, world, 1, Some(log));
    let mut left = turns;
    while left > 0 {
        driver.turn();
        left -= usize::from(driver.world.is_over());
    }
    driver.end();
    assert!(driver.log.as_ref().expect("the driver has a log").to_json()["error"].is_null());
    (driver.world.written.len(), driver.counts.lost.iter().sum())
}

pub(super) fn again(network: &mut impl Network, bytes: &[u8]) -> Replayed {
    let mut reading = Reading::new(io::Cursor::new(bytes)).expect("the log begins with a header");
    let found = replay::replay(network, &mut reading, &|| false);
    found.expect("the log is readable").expect("no interrupt is requested")
}

fn check(text: &str, name: &str, hosts: usize) {
    for seed in 0..4 {
        let (written, lost) = logged(model(text), world(hosts, seed, 400), name, 200);
        assert!(written > 100 && lost > 20, "{written} written, {lost} lost");
        let bytes = fs::read(path(name)).expect("the file was written");
        let mut network = model(text);
        let found = again(&mut network, &bytes);
        assert_eq!((found.difference.as_ref(), found.whole, found.changed), (None, true, 0));
        assert!(found.outputs > found.inputs / 2 && found.outputs >= lost);
        let told = found.to_json(&network);
        assert_eq!(told["identical"], true);
    }
    fs::remove_file(path(name)).expect("the file exists");
}

/// Captures record real packets as they pass and do not change the run.
#[test]
fn captures_do_not_change_the_emulated_run() {
    let (written, lost) = logged(model(FRAMES), world(3, 1, 200), "not-captured", 200);
    fs::remove_file(path("not-captured")).expect("the file exists");
    let files = ["a", "c"].map(|link| path(&format!("captured-{link}")));
    let points = ["link.a.a", "link.c.r"].map(str::to_owned);
    let config =
        CaptureConfig { files: points.into_iter().zip(files.clone()).collect(), ..Default::default() };
    let mut network = model(FRAMES);
    network.capture(&config, "a test", &Routers::default()).expect("the testbed has these links");
    let mut driver = driver(network, world(3, 1, 200), 1, None);
    let mut left = 200;
    while left > 0 {
        driver.turn();
        left -= usize::from(driver.world.is_over());
    }
    driver.end();
    assert_eq!((driver.world.written.len(), driver.counts.lost.iter().sum::<u64>()), (written, lost));
    let captured = driver.network.end_capture().expect("the network has a capture");
    let packets = [0, 1].map(|file| captured[file]["packets"].as_u64().expect("the file was written"));
    assert!(packets[0] > 300 && packets[1] > 100, "{packets:?}");
    for (file, told) in files.iter().zip(captured.as_array().expect("the result lists the files")) {
        assert_eq!(
            fs::metadata(file).expect("the file exists").len(),
            told["bytes"].as_u64().expect("a number")
        );
        fs::remove_file(file).expect("the file exists");
    }
    let wrong = CaptureConfig { files: vec![("link.d".into(), path("none"))], ..Default::default() };
    let error =
        model(FRAMES).capture(&wrong, "", &Routers::default()).expect_err("the testbed has no such link");
    assert!(error.to_string().contains("help: it has `link.a`"), "{error}");
}

/// Runs a driver with captures. Returns their counts, and the length of the last file before the end.
fn captured_by(files: Vec<(String, PathBuf)>, begun: impl FnOnce()) -> (Value, u64) {
    let last = files.last().expect("at least one file is captured").1.clone();
    let mut network = model(FRAMES);
    let config = CaptureConfig { files, ..Default::default() };
    network.capture(&config, "a test", &Routers::default()).expect("the testbed has these links");
    begun();
    let mut world = world(3, 1, 200);
    // More than the capture file buffers before it writes.
    for number in 0..60 {
        world.scripts[0].push_front((1_000_000, datagrams(0, 2, 1_000_000 + 12 * number, 12, 1400)));
    }
    let mut driver = driver(network, world, 1, None);
    let mut left = 200;
    while left > 0 {
        driver.turn();
        left -= usize::from(driver.world.is_over());
    }
    let before_the_end = fs::metadata(last).expect("the file exists").len();
    driver.end();
    (driver.network.end_capture().expect("the network has a capture"), before_the_end)
}

/// A capture that fails does not end the others, and the files can be read while the network runs.
#[test]
fn failed_capture_does_not_stop_the_others() {
    let whole = path("captured-whole");
    let wanted = ("link.c.r".to_owned(), whole.clone());
    let (alone, _) = captured_by(vec![wanted.clone()], || {
        let header = fs::metadata(&whole).expect("the file exists").len();
        assert!(header > 100, "the file has a header at once: {header} B");
    });
    assert!(alone[0]["packets"].as_u64().expect("the file was written") > 100);
    // The first file has no space; the reader of the second disconnects after the header.
    let pipe = path("captured-pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("`mkfifo` is installed");
    assert!(made.success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            fs::File::open(pipe)
                .expect("the file exists")
                .read_exact(&mut [0; 100])
                .expect("the file has 100 bytes")
        }
    });
    let files =
        vec![("link.a.a".to_owned(), "/dev/full".into()), ("link.a.a".to_owned(), pipe.clone()), wanted];
    let (captured, before_the_end) =
        captured_by(files, || reader.join().expect("the reader thread does not panic"));
    let errors = [0, 1].map(|file| captured[file]["error"].as_str().expect("the capture failed").to_owned());
    assert!(errors[0].contains("No space left") && errors[0].contains("virtual time 0.000 s"));
    assert!(errors[1].contains("Broken pipe") && !errors[1].contains("0.000 s"), "{}", errors[1]);
    assert_eq!((&captured[2], before_the_end), (&alone[0], alone[0]["bytes"].as_u64().expect("a number")));
    fs::remove_file(pipe).expect("the file exists");
    fs::remove_file(whole).expect("the file exists");
}

/// If the driver is killed, the log is complete up to shortly before.
#[test]
fn log_is_written_while_the_driver_runs() {
    let name = "law-going";
    let log = Log::create(&path(name), &serde_json::json!({ "engpass-log": 1 })).expect("the file opens");
    let mut driver = driver(Line::new(3, 20_000_000, 1_000_000_000, 10, 9), world(3, 1, 50), 1, Some(log));
    let mut left = 100;
    while left > 0 {
        driver.turn();
        left -= usize::from(driver.world.is_over());
    }
    let logged =
        driver.log.as_ref().expect("the driver has a log").to_json()["records"].as_u64().expect("a number");
    let mut bytes = Vec::new();
    // A separate thread writes the log.
    for _ in 0..10_000 {
        bytes = fs::read(path(name)).expect("the file exists");
        if bytes.len() as u64 > logged * 48 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    fs::remove_file(path(name)).expect("the file exists");
    let found = again(&mut Line::new(3, 20_000_000, 1_000_000_000, 10, 9), &bytes);
    assert_eq!((found.inputs + found.outputs, found.difference, found.whole), (logged, None, false));
    driver.end();
}

#[test]
fn replay_over_atm_equals_the_run() {
    check(ATM, "law-atm", 4);
}

#[test]
fn replay_over_ethernet_equals_the_run() {
    check(FRAMES, "law-frames", 3);
}

/// The TTL shows the number of routers passed, and the log contains the events of the testbed.
#[test]
fn replay_with_ecmp_and_link_failures_equals_the_run() {
    let (mut ttls, log) = (BTreeSet::new(), path("law-choices-ttl"));
    let log = Log::create(&log, &serde_json::json!({ "engpass-log": 2 })).expect("the file opens");
    let mut driver = driver(model(CHOICES), world(3, 1, 400), 1, Some(log));
    for _ in 0..20 {
        driver.turn();
    }
    let begun = driver.begin_events().expect("the events have not begun");
    assert!(driver.begin_events().is_err(), "the events begin only once");
    while !driver.world.is_over() {
        driver.turn();
    }
    driver.end();
    for written in driver.world.written.iter().filter(|written| written.host == 2) {
        ttls.insert(written.bytes[8]);
    }
    assert_eq!(ttls, [61, 62].into());
    let words: BTreeSet<String> = driver.network.words().collect();
    assert!(words.iter().any(|words| words.ends_with("line down")), "{words:?}");
    let bytes = fs::read(path("law-choices-ttl")).expect("the file was written");
    fs::remove_file(path("law-choices-ttl")).expect("the file exists");
    let found = again(&mut model(CHOICES), &bytes);
    assert!(found.difference.is_none() && found.whole, "{found:?}");
    // Without the events the replay differs.
    let header = bytes.iter().position(|byte| *byte == b'\n').expect("the log has a header line") + 1;
    let mut kinds = bytes[header..].chunks(48).map(|record| record[40]);
    let record = header + 48 * kinds.position(|kind| kind == 6).expect("the log records the begin of events");
    assert_eq!(bytes[record..record + 8], begun.to_le_bytes());
    let without = [&bytes[..record], &bytes[record + 48..]].concat();
    assert!(again(&mut model(CHOICES), &without).difference.is_some());
}

#[test]
fn replay_finds_changes_of_the_log() {
    let name = "law-changed";
    let line = || Line::new(3, 20_000_000, 1_000_000_000, 10, 9);
    logged(line(), world(3, 1, 50), name, 100);
    let bytes = fs::read(path(name)).expect("the file was written");
    fs::remove_file(path(name)).expect("the file exists");
    let header = bytes.iter().position(|byte| *byte == b'\n').expect("the log has a header line") + 1;
    assert_eq!(again(&mut line(), &bytes).difference, None);
    let record = |index: usize| header + index * 48;
    let count = (bytes.len() - header) / 48;
    let kind = |index: usize| bytes[record(index) + 40];
    let outputs: Vec<_> = (0..count).filter(|index| (2..5).contains(&kind(*index))).collect();
    // Change the instant of an output.
    let mut late = bytes.clone();
    late[record(outputs[5])] ^= 1;
    let difference = again(&mut line(), &late).difference.expect("the replay differs from the log");
    assert_eq!(difference.output, 5);
    let (logged, replayed) = (
        difference.logged.expect("the difference has this output"),
        difference.replayed.expect("the difference has this output"),
    );
    assert_eq!((logged.token, logged.at ^ 1), (replayed.token, replayed.at));
    // Change its delivery status.
    let delivered = outputs.iter().position(|index| kind(*index) == 2).expect("a packet was delivered");
    let mut marked = bytes.clone();
    marked[record(outputs[delivered]) + 40] = 3;
    let difference = again(&mut line(), &marked).difference.expect("the replay differs from the log");
    assert_eq!(difference.output, delivered as u64);
    assert_eq!(
        difference.replayed.map(|output| output.fate),
        Some(DeliveryStatus::Delivered { ce: false, hops: 1 })
    );
    // Remove an output.
    let mut fewer = bytes.clone();
    fewer.drain(record(outputs[3])..record(outputs[3] + 1));
    assert_eq!(again(&mut line(), &fewer).difference.map(|difference| difference.output), Some(3));
    // Change the payload hash of an output.
    let mut other = bytes.clone();
    other[record(outputs[0]) + 16] ^= 1;
    let found = again(&mut line(), &other);
    assert_eq!((found.difference, found.changed), (None, 1));
    // Cut off the end of the log.
    let cut = again(&mut line(), &bytes[..record(count / 2) + 9]);
    assert_eq!((cut.difference, cut.whole, cut.damage), (None, false, None));
    // Records after a difference are not compared, but the end is still found.
    assert!(again(&mut line(), &late).whole);
}

/// Returns the log of a small run, the length of its header in bytes, and its number of records.
fn small_log(name: &str) -> (Vec<u8>, usize, usize) {
    logged(model(FRAMES), world(3, 5, 60), name, 100);
    let bytes = fs::read(path(name)).expect("the file was written");
    fs::remove_file(path(name)).expect("the file exists");
    let header = bytes.iter().position(|byte| *byte == b'\n').expect("the log has a header line") + 1;
    let count = (bytes.len() - header) / 48;
    (bytes, header, count)
}

#[test]
fn replay_names_the_damaged_record() {
    let (bytes, header, count) = small_log("law-damaged");
    let is_input = |index: usize| bytes[header + index * 48 + 40] == 1;
    let input = (count / 2..count).find(|index| is_input(*index)).expect("the log has an injection");
    let damaged = |place: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[header + input * 48 + place] = value;
        again(&mut model(FRAMES), &bytes)
    };
    // An unknown path; an instant out of range, and one that only the next record reveals; a packet too long and one too short; an unknown kind; and a
    // non-zero unused byte.
    for (place, value, why) in [
        (24, 200, "path 200"),
        (7, 255, "out of range"),
        (7, 1, "after it"),
        (33, 255, "on a path with"),
        (37, 255, "headers"),
        (40, 77, "its format is invalid"),
        (38, 1, "its format is invalid"),
    ] {
        let found = damaged(place, value);
        let damage = found.damage.expect("the record is damaged");
        assert!(damage.record == input as u64 && damage.why.contains(why), "{place}: {damage:?}");
        assert_eq!((found.difference, found.whole), (None, false));
        assert!(found.inputs > 10 && found.outputs > 10, "the records before the damage are compared");
    }
    // A host may send a packet with a TTL of zero; the router drops it.
    let found = damaged(42, 0);
    assert!(found.damage.is_none() && found.difference.is_some(), "{found:?}");
    let behind = [&bytes[..], &bytes[header..header + 48]].concat();
    let found = again(&mut model(FRAMES), &behind);
    let damage = found.damage.expect("a record after the end is damage");
    assert_eq!((damage.record, damage.why.contains("after the end")), (count as u64, true));
    let damage = again(&mut model(FRAMES), &[&bytes[..], b"junk"].concat())
        .damage
        .expect("a partial record after the end is damage");
    assert_eq!((damage.record, damage.why.contains("after the end")), (count as u64, true));
}

proptest! {
    #![proptest_config(engpass_cases::cases(300))]

    /// A damaged log gives an error or a difference, or the damage does not matter.
    #[test]
    fn replay_survives_a_randomly_damaged_log(
        name in "[a-z]{12}",
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..48, any::<u8>()), 1..4),
        moved in prop::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>())),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        static LOG: std::sync::OnceLock<(Vec<u8>, usize, usize)> = std::sync::OnceLock::new();
        let (bytes, header, count) = LOG.get_or_init(|| group_log(&name));
        let mut bytes = bytes.clone();
        for (record, place, value) in changes {
            bytes[header + record.index(*count) * 48 + place] = value;
        }
        if let Some((from, to)) = moved {
            let from = header + from.index(*count) * 48;
            let record: Vec<u8> = bytes.drain(from..from + 48).collect();
            let to = header + to.index(*count) * 48;
            bytes.splice(to..to, record);
        }
        if let Some(cut) = cut {
            bytes.truncate(header + cut.index(*count * 48));
        }
        let mut network = model_of(TREE, &[]);
        let found = again(&mut network, &bytes);
        prop_assert!(found.inputs + found.outputs < *count as u64);
        found.to_json(&network);
    }
}

proptest! {
    #![proptest_config(engpass_cases::cases(12))]

    /// However the turns of the driver fall, the delivery reports depend only on the injected packets and their instants.
    #[test]
    fn replay_over_any_line_equals_the_run(
        seed in any::<u64>(), pace in 1_000_u64..100_000_000, delay in 0_u64..2_000_000_000, every in 1_u64..30,
    ) {
        let name = "law-any";
        let line = || Line::new(3, pace, delay, 10, every);
        logged(line(), world(3, seed, 60), name, 400);
        let found = again(&mut line(), &fs::read(path(name)).expect("the file was written"));
        fs::remove_file(path(name)).expect("the file exists");
        prop_assert!(found.difference.is_none() && found.whole && found.changed == 0, "{found:?}");
    }
}
