//! Helpers shared by the tests of `simulate`: from a text to a point and its outcome.

#![allow(dead_code, reason = "every test program takes its part")]

use engpass_simulate::{SimOutcome, simulate};
use engpass_testbed::{Point, Source, load};

/// Two hosts and an ATM switch, a TCP stream between them.
pub(crate) const TWO: &str = r#"
    name = "two hosts"
    [host.a]
    [host.b]
    [switch.s]
    kind = "atm"
    output_buffer = "20000 cells"
    [link.first]
    ends = ["a", "s"]
    medium = "oc-3c"
    delay = "1 ms"
    [link.second]
    ends = ["s", "b"]
    medium = "oc-3c"
    delay = "1 ms"
    [circuit.vc]
    from = "a"
    to = "b"
    [traffic.stream]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    message = "64 KiB"
    [run]
    duration = "4 s"
    warmup = "1 s"
"#;

/// Returns the single point of a variant with these overrides.
pub(crate) fn point(text: &str, variant: &str, overrides: &[(&str, &str)]) -> Point {
    let source = Source { name: "test.toml".into(), text: text.into() };
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let campaign = load(&source, &overrides, None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point(variant, &[]).unwrap_or_else(|found| panic!("{}", found.render(false)))
}

/// Returns the outcome of that point, for seed 7.
pub(crate) fn run(text: &str, variant: &str, overrides: &[(&str, &str)]) -> SimOutcome {
    let point = point(text, variant, overrides);
    simulate(&point.testbed, &point.topology, 7, &|| false)
        .expect("the simulation succeeds and its ledger balances")
}

/// Asserts that two figures differ by at most this share.
#[track_caller]
pub(crate) fn close(measured: f64, expected: f64, share: f64) {
    assert!((measured / expected - 1.0).abs() <= share, "{measured} is not within {share} of {expected}");
}
