//! The `limit` engine against published formulas and numbers, and its laws as properties.

mod alike;
mod bonds;
mod bounds;
mod choices;
mod copies;
mod costs;
mod frames;
mod groups;
mod idle;
mod laws;
mod layers;
#[path = "../networks/mod.rs"]
mod networks;
mod paths;
mod published;
mod shared;
mod simulated;
mod spread;
mod tight;
mod without;

use engpass_oracle::resolve;

use engpass_limit::{FlowLimit, LimitOutcome, limit};
use engpass_testbed::{Source, load};

/// Returns the limits of a testbed in TOML.
fn limits(text: &str) -> LimitOutcome {
    let source = Source { name: "test.toml".to_owned(), text: text.to_owned() };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    let point = campaign.point("base", &[]).unwrap_or_else(|found| panic!("{}", found.render(false)));
    limit(&point.testbed, &point.topology)
}

/// Returns the candidate of this name, in bit/s.
#[track_caller]
fn candidate(flow: &FlowLimit, name: &str) -> f64 {
    let named = flow.candidates.iter().find(|candidate| candidate.bottleneck.title == name);
    named.unwrap_or_else(|| panic!("no candidate {name} in {:#?}", flow.candidates)).goodput_bit_per_s
}

/// Returns the rate that remains after this stage, in bit/s.
#[track_caller]
fn stage(flow: &FlowLimit, name: &str) -> f64 {
    let named = flow.stages.iter().find(|stage| stage.name == name);
    named.unwrap_or_else(|| panic!("no stage {name} in {:#?}", flow.stages)).rate_bit_per_s
}

/// Formats Mbit/s with this number of decimals, as a publication prints it.
fn mbit_s(bit_per_s: f64, decimals: usize) -> String {
    format!("{:.decimals$}", bit_per_s / 1e6)
}

/// TCP without options in segments, as in the published numbers.
const NO_OPTIONS: &str = "tcp = { timestamps = false }";

/// Returns the testbed of the Kyoto study (two workstations, an ATM switch, a CBR generator), with these lines appended.
fn kyoto(circuit: &str, traffic: &str) -> String {
    format!(
        r#"
        [host.ss2]
        cost = {{ per_fragment = "0.93 ms", per_byte = "135 ns" }}
        {NO_OPTIONS}
        [host.ss20]
        [host.generator]
        [switch.atomis5]
        kind = "atm"
        [link.sender]
        ends = ["ss2", "atomis5"]
        medium = "oc-3c"
        [link.interferer]
        ends = ["generator", "atomis5"]
        medium = "oc-3c"
        [link.receiver]
        ends = ["atomis5", "ss20"]
        medium = "oc-3c"
        [circuit.data]
        from = "ss2"
        to = "ss20"
        encapsulation = "llc-snap"
        mtu = "9180 B"
        {circuit}
        {traffic}
        "#
    )
}

/// A CBR of 130 Mbit/s, measured on the line.
const INTERFERENCE: &str = r#"
    [traffic.interference]
    kind = "cbr"
    from = "generator"
    to = "ss20"
    rate = "130 Mbit/s"
    counts = "line"
"#;

/// Returns a stream of this kind and message size from `ss2` to `ss20`.
fn stream(kind: &str, message: &str) -> String {
    format!(
        r#"
        [traffic.stream]
        kind = "{kind}"
        from = "ss2"
        to = "ss20"
        message = "{message}"
        "#
    )
}

/// Returns one link between two hosts and a stream of this kind over it.
fn pair(link: &str, circuit: &str, kind: &str, message: &str) -> String {
    let stream = stream(kind, message);
    format!(
        "[host.ss2]\n{NO_OPTIONS}\n[host.ss20]\n[link.line]\nends = [\"ss2\", \"ss20\"]\n{link}\n{circuit}\n{stream}"
    )
}

/// Returns a circuit from `ss2` to `ss20`.
fn circuit(encapsulation: &str) -> String {
    format!("[circuit.data]\nfrom = \"ss2\"\nto = \"ss20\"\nencapsulation = \"{encapsulation}\"\n")
}
