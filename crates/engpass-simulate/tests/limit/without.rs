//! Unsupported traffic beside supported traffic.

use engpass_limit::limit;
use engpass_simulate::{Engine, left_out, modelled};
use engpass_testbed::{Point, Source, load};

use crate::frames::{chain, stream};

const FAST: &str = "medium = \"ethernet-100\"";

fn point(traffic: &str) -> Point {
    let text = chain(&[FAST, FAST], &["switch"], traffic);
    let source = Source { name: "test.toml".to_owned(), text };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point("base", &[]).unwrap_or_else(|found| panic!("{}", found.render(false)))
}

fn probe(every: &str) -> String {
    let table = "[traffic.probe]\nkind = \"request-response\"\nfrom = \"a\"\nto = \"b\"\nrequest = \"64 B\"\nresponse = \"64 B\"\n";
    format!("{table}{every}\n")
}

/// The other flows get the same results as without it.
#[test]
fn unsupported_probe_is_left_out_and_named() {
    let stream = stream("u", "udp-stream", 1472);
    let (with, alone) = (point(&(probe("every = \"10 ms\"") + &stream)), point(&stream));
    for engine in [Engine::Limit, Engine::Simulate] {
        let this = modelled(&with.testbed, &with.topology, engine).expect("an unsupported probe is left out");
        assert_eq!(this.without.keys().collect::<Vec<_>>(), ["probe"]);
        assert_eq!(*this.testbed, alone.testbed);
        // The other flows keep their source numbers from the file, because their port numbers follow from these.
        let mut topology = (*this.topology).clone();
        topology.flows.iter_mut().for_each(|flow| flow.first_source = 0);
        assert_eq!(topology, alone.topology);
        assert_eq!(limit(&this.testbed, &this.topology), limit(&alone.testbed, &alone.topology));
    }
    let said = left_out(&with.testbed);
    assert!(said.len() == 1 && said[0].starts_with("traffic `probe` has no result"), "{said:?}");
}

/// With noticeable load left out, `limit` is still an upper bound, but `simulate` would be wrong.
#[test]
fn simulate_rejects_probe_traffic_with_noticeable_load() {
    for (every, felt) in [("", true), ("every = \"50 us\"", true), ("every = \"2 ms\"", false)] {
        let point = point(&(stream("u", "udp-stream", 1472) + &probe(every)));
        assert!(modelled(&point.testbed, &point.topology, Engine::Limit).is_ok());
        let simulated = modelled(&point.testbed, &point.topology, Engine::Simulate);
        assert_eq!(simulated.is_err(), felt, "{every}");
    }
}

#[test]
fn limit_rejects_a_file_with_only_unsupported_traffic() {
    let point = point(&probe("every = \"10 ms\""));
    let why = modelled(&point.testbed, &point.topology, Engine::Limit)
        .expect_err("the file has no supported traffic");
    assert!(why.starts_with("traffic `probe` is `request-response`"), "{why}");
    assert_eq!(left_out(&point.testbed), [""; 0], "the refusal says it all");
}

/// An on-off source offers its peak for the share of the time in which it is on.
#[test]
fn udp_on_off_traffic_offers_its_mean_rate() {
    let bursts = stream("b", "udp-on-off", 1000) + "rate = \"40 Mbit/s\"\non = \"10 ms\"\noff = \"30 ms\"\n";
    let point = point(&bursts);
    let outcome = limit(&point.testbed, &point.topology);
    assert!((outcome.flows["b"].goodput_bit_per_s - 10e6).abs() < 1.0);
}
