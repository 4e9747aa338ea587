//! Memory estimates, against the bytes that the heap counts.

use engpass_simulate::Network;
use engpass_simulate::{Engine, memory};

use crate::dumbbell::{OC3, SACK, dumbbell};
use crate::phones::phones;
use crate::{heap, point};

const LONG_FAT: &str = include_str!("../../../../benches/testbeds/long-fat.toml");

const UDP: &str = r#"
host = { a = {}, b = {} }
router.r = { queue = { drop-tail = { limit = "1000 packets" } } }
link.access = { ends = ["a", "r"], medium = "ethernet-100g" }
link.far = { ends = ["r", "b"], medium = "ethernet-10g", delay = "1 ms" }
traffic.stream = { kind = "udp-stream", from = "a", to = "b", message = "1000 B", rate = "5 Gbit/s" }
run = { duration = "200 ms" }
"#;

const CELLS: &str = r#"
host = { a = {}, b = {} }
switch.s = { kind = "atm", output_buffer = "100000 cells" }
link.in = { ends = ["a", "s"], medium = "oc-12c" }
link.out = { ends = ["s", "b"], medium = "oc-3c" }
circuit.c = { from = "a", to = "b" }
traffic.stream = { kind = "udp-stream", from = "a", to = "b", message = "9000 B", rate = "300 Mbit/s" }
run = { duration = "1 s" }
"#;

/// Returns a switch with a circuit to each of `count` hosts: every port has a rule for every circuit.
fn circuits(count: usize) -> String {
    let host = |number: usize| {
        format!(
            "host.h{number} = {{}}\nlink.l{number} = {{ ends = [\"h{number}\", \"s\"], medium = \"oc-3c\" }}\n\
             circuit.c{number} = {{ from = \"h{number}\", to = \"z\" }}\n\
             traffic.t{number} = {{ kind = \"udp-stream\", from = \"h{number}\", to = \"z\", message = \"1 kB\", rate = \"1 Mbit/s\" }}\n"
        )
    };
    let hosts: String = (0..count).map(host).collect();
    format!(
        "host.z = {{}}\nswitch.s = {{ kind = \"atm\" }}\nlink.z = {{ ends = [\"s\", \"z\"], medium = \"oc-12c\" }}\n\
         run = {{ duration = \"50 ms\" }}\n{hosts}"
    )
}

/// Returns a chain of routers with several lines between neighbours, and pairs of hosts at its ends with a traffic each.
fn lattice((routers, lines, pairs): (usize, usize, usize), policy: &str, traffic: &str) -> String {
    let mut text = "run = { duration = \"200 ms\" }\n".to_owned();
    for router in 0..routers {
        text += &format!(
            "router.r{router} = {{ ecmp = {policy}, queue = {{ drop-tail = {{ limit = \"20000 packets\" }} }} }}\n"
        );
    }
    let mut link = |name: String, ends: [String; 2], medium: &str| {
        text += &format!("link.{name} = {{ ends = {ends:?}, medium = \"{medium}\" }}\n");
    };
    for (stage, line) in (1..routers).flat_map(|stage| (0..lines).map(move |line| (stage, line))) {
        link(format!("l{stage}-{line}"), [format!("r{}", stage - 1), format!("r{stage}")], "ethernet-1g");
    }
    for pair in 0..pairs {
        link(format!("a{pair}"), [format!("a{pair}"), "r0".into()], "ethernet-10g");
        link(format!("b{pair}"), [format!("r{}", routers - 1), format!("b{pair}")], "ethernet-10g");
    }
    for pair in 0..pairs {
        text += &format!(
            "host.a{pair} = {{}}\nhost.b{pair} = {{}}\ntraffic.t{pair} = {{ from = \"a{pair}\", to = \"b{pair}\", {traffic} }}\n"
        );
    }
    text
}

/// Returns the peak bytes of a run: with its network, then of its outcome with two copies of its text.
fn counted(text: &str, overrides: &[(&str, &str)]) -> [u64; 2] {
    let point = point(text, "base", overrides);
    let before = heap::live();
    heap::begin();
    let mut network =
        Network::new(&point.testbed, &point.topology, 1).expect("the model supports the workload");
    network.run(&|| false).expect("no interrupt is requested");
    let outcome = network.outcome(&point.testbed, &point.topology).expect("the ledger balances");
    drop(network);
    let stored = outcome.stored();
    let text = serde_json::to_string(&stored).expect("an outcome serializes to JSON");
    let with_text = heap::live() - before + 2 * text.len() as i64;
    let most = (heap::most() - before).max(with_text);
    let estimate = memory(&point.testbed, &point.topology, Engine::Simulate).run;
    [estimate, most.cast_unsigned()]
}

/// A workload: name, testbed, and overrides.
type Case<'a> = (&'a str, String, Vec<(&'a str, &'a str)>);

/// Estimates are within a factor of two where a run takes more than a megabyte.
#[test]
#[cfg_attr(feature = "event-log", ignore = "the log takes memory")]
fn memory_estimate_is_within_a_factor_of_two() {
    let short = ("run.duration", "200 ms");
    let queue = |packets: &str| format!("{{ drop-tail = {{ limit = \"{packets} packets\" }} }}");
    let (wide, narrow) = (queue("40000"), queue("100000"));
    let streams = "{ kind = \"tcp-stream\", from = \"a\", to = \"b\", message = \"64 KiB\", streams = 2000 }";
    let cases: Vec<Case<'_>> = vec![
        ("1,000 TCP flows", dumbbell(1000, OC3, SACK), vec![("run.duration", "500 ms")]),
        ("100 TCP flows, 10 Gbit/s", dumbbell(100, 10_000, SACK), vec![("run.duration", "500 ms")]),
        ("2,000 phones", phones(2000), vec![short]),
        ("one flow, 10 Gbit/s, 50 ms", LONG_FAT.into(), vec![("run.duration", "1 s")]),
        ("the same, wide queue", LONG_FAT.into(), vec![("router.r.queue", &wide), ("run.duration", "1 s")]),
        ("the same, BBR", LONG_FAT.into(), vec![("host.a.tcp.congestion", "bbr")]),
        ("datagrams on a long line", UDP.into(), vec![("link.far.delay", "100 ms")]),
        (
            "datagrams in a queue",
            UDP.into(),
            vec![("router.r.queue", &narrow), ("traffic.stream.rate", "20 Gbit/s")],
        ),
        (
            "fragments in a queue",
            UDP.into(),
            vec![
                ("link.access.mtu", "9000 B"),
                ("link.far.mtu", "68 B"),
                ("router.r.queue", &narrow),
                ("traffic.stream.message", "8000 B"),
                ("traffic.stream.rate", "20 Gbit/s"),
                ("run.duration", "20 ms"),
            ],
        ),
        (
            "cells in a queue that is never full",
            CELLS.into(),
            vec![("switch.s.output_buffer", "10000000 cells")],
        ),
        ("2,000 connections", UDP.into(), vec![("traffic.stream", streams)]),
        ("cells in a queue", CELLS.into(), vec![]),
        ("150 circuits", circuits(150), vec![]),
    ];
    for (name, text, overrides) in cases {
        let [estimate, most] = counted(&text, &overrides);
        assert!(most > 1_000_000, "{name} takes only {most} B");
        let ratio = estimate as f64 / most as f64;
        assert!((0.5..=2.0).contains(&ratio), "{name}: {estimate} B estimated, {most} B counted");
    }
}

/// With choices of routers, a run needs no more than the estimate, which counts the steps and ledger records of all paths and every queue that packets may
/// fill.
#[test]
#[cfg_attr(feature = "event-log", ignore = "the log takes memory")]
fn memory_estimate_with_ecmp_is_an_upper_bound() {
    let udp = |message: &str, rate: &str| {
        format!("kind = \"udp-stream\", message = \"{message}\", rate = \"{rate}\"")
    };
    let (slow, fast, cut) = (udp("1000 B", "1 Mbit/s"), udp("1000 B", "8 Gbit/s"), udp("9000 B", "4 Gbit/s"));
    let tcp = "kind = \"tcp-stream\", message = \"64 KiB\"";
    // With this seed the two fast flows take different lines.
    let (robin, hash) = ("\"round-robin\"", "{ hash = { seed = 1 } }");
    let event = "event.e = { target = \"l1-0\", at = \"50 ms\", change = \"down\" }\n";
    for (shape, policy, traffic, more) in [
        ((2, 2, 200), robin, &slow[..], ""),
        ((4, 3, 50), robin, &slow, ""),
        ((4, 3, 50), hash, &slow, event),
        ((3, 3, 100), hash, &slow, ""),
        ((2, 4, 2), robin, &fast, ""),
        ((2, 4, 2), hash, &fast, ""),
        ((2, 3, 3), robin, &cut, ""),
        ((3, 4, 100), robin, tcp, ""),
        ((3, 4, 100), hash, &format!("{tcp}, streams = 20"), ""),
        ((3, 4, 100), hash, &format!("{tcp}, streams = 20"), event),
        ((4, 3, 10), robin, &format!("{tcp}, streams = 20"), ""),
    ] {
        let text = lattice(shape, policy, traffic) + more;
        let [estimate, most] = counted(&text, &[]);
        assert!(most > 600_000, "{shape:?}, {policy}, {traffic} takes only {most} B");
        let ratio = estimate as f64 / most as f64;
        println!("{shape:?}, {policy}, {traffic}: {ratio}");
        let over = if shape.2 < 5 && policy == hash { 4.0 } else { 2.5 };
        assert!(
            (1.0..=over).contains(&ratio),
            "{shape:?}, {policy}, {traffic}: {estimate} B estimated, {most} B counted"
        );
    }
}
