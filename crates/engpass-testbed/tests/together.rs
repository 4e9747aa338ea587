//! Unrelated mistakes are all reported in one pass, each once, and nothing else is reported.

use engpass_testbed::{Severity, Source, load};
use proptest::prelude::*;

const KYOTO: &str = include_str!("files/kyoto.toml");

/// A line of the file, its replacement, and the code and path of the expected error.
const MISTAKES: &[(&str, &str, &str, &str)] = &[
    (
        "cost = { per_fragment = \"0.93 ms\", per_byte = \"135 ns\" }",
        "cost = { per_byte = \"135\" }",
        "missing-unit",
        "host.ss2.cost.per_byte",
    ),
    ("[host.ss20]", "[host.ss20]\ncolour = 5", "unknown-key", "host.ss20.colour"),
    (
        "[host.generator]",
        "[host.generator]\nreceive_buffer = \"0 B\"",
        "out-of-range",
        "host.generator.receive_buffer",
    ),
    ("kind = \"atm\"", "kind = \"atmm\"", "unknown-kind", "switch.atomis5.kind"),
    (
        "ends = [\"ss2\", \"atomis5\"]",
        "ends = [\"ss2\", \"atomis\"]",
        "dangling-reference",
        "link.sender.ends.1",
    ),
    ("[link.interferer]", "[link.interferer]\nmtu = \"1500 B\"", "not-allowed", "link.interferer.mtu"),
    ("[link.out]", "[link.out]\ndelay = \"0 s\"", "out-of-range", "link.out.delay"),
    (
        "encapsulation = \"llc-snap\"",
        "encapsulation = \"llc\"",
        "unknown-value",
        "circuit.data.encapsulation",
    ),
    ("mtu = \"9180 B\"", "mtu = \"20 B\"", "out-of-range", "circuit.data.mtu"),
    (
        "kind = \"udp-stream\"",
        "kind = \"udp-stream\"\ncircuit = \"dat\"",
        "dangling-reference",
        "traffic.stream.circuit",
    ),
    ("message = \"9 kB\"", "message = 9180", "missing-unit", "traffic.stream.message"),
    ("from = \"generator\"", "from = \"generater\"", "dangling-reference", "traffic.interference.from"),
    ("rate = \"130 Mbit/s\"", "rate = \"130 Mbps\"", "unknown-unit", "traffic.interference.rate"),
    ("counts = \"line\"", "counts = \"lines\"", "unknown-value", "traffic.interference.counts"),
    ("duration = \"10 s\"", "duration = \"0 s\"", "out-of-range", "run.duration"),
    ("repeats = 5", "repeats = \"five\"", "wrong-type", "run.repeats"),
    (
        "[sweep]",
        "[sweep]\n\"host.ss3.nic_buffer\" = [\"1 kB\", \"2 kB\"]",
        "unknown-path",
        "host.ss3.nic_buffer",
    ),
    (
        "\"traffic.stream.message\" = { from = \"1 kB\", to = \"64 kB\", step = \"1 kB\" }",
        "\"traffic.stream.message\" = { from = \"1 kB\", to = \"64 kB\", step = \"0 kB\" }",
        "impossible-sweep",
        "sweep.\"traffic.stream.message\"",
    ),
    ("[variant.free]", "[variant.free]\n\"circuit.dta.mtu\" = \"1 kB\"", "unknown-path", "circuit.dta.mtu"),
    (
        "[variant.loaded]",
        "[variant.loaded]\n\"traffic.stream.mesage\" = \"1 kB\"",
        "unknown-key",
        "traffic.stream.mesage",
    ),
];

proptest! {
    #![proptest_config(engpass_cases::cases(200))]

    #[test]
    fn every_error_in_a_file_is_reported_once(chosen in proptest::sample::subsequence(MISTAKES, 1..=MISTAKES.len())) {
        let mut lines: Vec<&str> = KYOTO.lines().collect();
        for (line, wrong, ..) in &chosen {
            let at = lines.iter().position(|old| old == line).expect("the file has this line");
            lines[at] = wrong;
        }
        let source = Source { name: "x.toml".into(), text: lines.join("\n") };
        let found = load(&source, &[], None).expect_err("the file has an error");
        let errors = found.list().iter().filter(|found| found.severity == Severity::Error);
        let mut said: Vec<(&str, &str)> =
            errors.map(|found| (found.code, found.path.as_deref().unwrap_or_default())).collect();
        let mut expected: Vec<(&str, &str)> = chosen.iter().map(|(.., code, path)| (*code, *path)).collect();
        said.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(said, expected, "{}", found);
    }
}
