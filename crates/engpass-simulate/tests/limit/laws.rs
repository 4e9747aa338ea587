//! Laws that hold for every testbed.

use proptest::prelude::*;

use crate::layers::MEDIA;
use crate::{circuit, kyoto, limits, pair};
use engpass_limit::{BottleneckKind, FlowLimit, LimitOutcome};

pub(crate) fn check(outcome: &LimitOutcome) {
    for (name, flow) in &outcome.flows {
        for pair in flow.stages.windows(2) {
            assert!(pair[1].rate_bit_per_s <= pair[0].rate_bit_per_s, "{name}: {:#?}", flow.stages);
        }
        assert_eq!(flow.stages.last().unwrap().rate_bit_per_s, flow.goodput_bit_per_s, "{name}");
        for candidate in &flow.candidates {
            assert!(candidate.goodput_bit_per_s.is_finite(), "{name}: {candidate:?}");
            assert!(flow.goodput_bit_per_s <= candidate.goodput_bit_per_s, "{name}: {candidate:?}");
        }
        assert!(flow.goodput_bit_per_s >= 0.0);
        assert!(flow.candidates.iter().any(|candidate| candidate.bottleneck.title == flow.bottleneck.title));
    }
    for (name, link) in &outcome.links {
        for direction in &link.directions {
            let taken: f64 = direction.shares.iter().map(|taken| taken.share).sum();
            assert!((0.0..=1.0 + 1e-9).contains(&taken), "{name}: {direction:?}");
            assert!((direction.utilisation.unwrap() - taken).abs() < 1e-9);
        }
    }
}

/// JSON has no infinity and no NaN: `serde_json` writes `null` for them.
fn no_null(value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().filter(|(key, _)| *key != "next").for_each(|(_, value)| no_null(value));
        }
        serde_json::Value::Array(values) => values.iter().for_each(no_null),
        other => assert!(!other.is_null()),
    }
}

/// Returns the limit by links alone.
fn links(flow: &FlowLimit) -> f64 {
    let links = flow.candidates.iter().filter(|candidate| candidate.bottleneck.kind == BottleneckKind::Link);
    links.map(|candidate| candidate.goodput_bit_per_s).fold(f64::INFINITY, f64::min)
}

/// Returns a stream between the study's hosts, in either direction.
fn streams() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec!["udp-stream", "tcp-stream"]);
    let ends = prop::sample::select(vec![("ss2", "ss20"), ("ss20", "ss2")]);
    (kinds, ends, 1u32..65_507, prop::option::of(1u32..200)).prop_map(|(kind, (from, to), message, rate)| {
        let rate = rate.filter(|_| kind == "udp-stream").map(|rate| format!("rate = \"{rate} Mbit/s\"\n"));
        format!(
            "kind = \"{kind}\"\nfrom = \"{from}\"\nto = \"{to}\"\nmessage = \"{message} B\"\n{}",
            rate.unwrap_or_default()
        )
    })
}

fn generators() -> impl Strategy<Value = String> {
    let ends = prop::sample::select(vec![("generator", "ss20"), ("ss20", "ss2"), ("ss2", "generator")]);
    (ends, 0u32..=100, prop::option::of((1u32..50, 1u32..50)), any::<bool>()).prop_map(
        |((from, to), share, on_off, on_data)| {
            let kind = match on_off {
                Some((on, off)) => format!("kind = \"on-off\"\non = \"{on} ms\"\noff = \"{off} us\"\n"),
                None => "kind = \"cbr\"\n".to_owned(),
            };
            // An on-off source cannot have rate zero.
            let share = share.max(u32::from(on_off.is_some()));
            let circuit = if on_data && from == "ss20" { "circuit = \"data\"\n" } else { "" };
            format!("{kind}from = \"{from}\"\nto = \"{to}\"\nrate = \"{share} %\"\n{circuit}")
        },
    )
}

fn circuits() -> impl Strategy<Value = String> {
    let category = prop::sample::select(vec!["cbr", "ubr"]);
    (category, prop::option::of(1u32..=100), prop::option::of(1u32..=100)).prop_map(
        |(category, shaping, policing)| {
            let shaping = shaping.map(|share| format!("shaping = \"{share} %\"\n")).unwrap_or_default();
            let policing = policing
                .map(|share| format!("policing = {{ rate = \"{share} %\", tolerance = \"1 ms\" }}\n"))
                .unwrap_or_default();
            format!("category = \"{category}\"\n{shaping}{policing}")
        },
    )
}

proptest! {
    #[test]
    fn every_limit_outcome_satisfies_the_invariants(
        circuit in circuits(), streams in prop::collection::vec(streams(), 1..4),
        generators in prop::collection::vec(generators(), 0..4), pauses in any::<bool>(), fifo in any::<bool>(),
    ) {
        let all = streams.iter().chain(&generators).enumerate();
        let traffic: String = all.map(|(index, table)| format!("[traffic.t{index}]\n{table}")).collect();
        let mut text = kyoto(&circuit, &traffic);
        if pauses {
            text = text.replace("[host.ss20]", "pauses = { share = \"1 %\", mean = \"5 ms\" }\n[host.ss20]");
        }
        if fifo {
            text = text.replace("kind = \"atm\"", "kind = \"atm\"\nschedule = \"fifo\"");
        }
        let outcome = limits(&text);
        check(&outcome);
        no_null(&serde_json::to_value(outcome.clone().stored()).unwrap());
    }

    #[test]
    fn more_line_rate_never_lowers_the_goodput(
        rate in 1_000u64..1_000_000_000, more in 0u64..1_000_000_000, cbr in 0u64..=1000,
        kind in prop::sample::select(vec!["udp-stream", "tcp-stream"]), message in 1u64..65_507,
    ) {
        // Cells of the generator, up to what the slower line can carry.
        let cells = rate / 424 * cbr / 1000;
        let goodput = |rate: u64| {
            let text = pair(&format!("medium = \"atm\"\nrate = \"{rate} bit/s\""), &circuit("llc-snap"), kind, &format!("{message} B"));
            let text = text + &format!("[traffic.x]\nkind = \"cbr\"\nfrom = \"ss2\"\nto = \"ss20\"\nrate = \"{cells} cells/s\"\n");
            let outcome = limits(&text);
            check(&outcome);
            outcome.flows["stream"].goodput_bit_per_s
        };
        prop_assert!(goodput(rate + more) >= goodput(rate) - 1e-9 * rate as f64);
    }

    /// On Ethernet a larger message with the same number of fragments is never worse. Cells make steps: there this holds for the same number of cells, and a
    /// message that fills its cells may beat a larger one that does not, by less than a cell's payload.
    #[test]
    fn larger_message_of_equal_fragments_is_not_slower(one in 1u64..9152, other in 1u64..9152, medium in 0..MEDIA.len()) {
        let (small, large) = (one.min(other), one.max(other));
        let name = MEDIA[medium].0;
        let packets = !name.is_atm();
        let goodput = |message: u64| {
            let link = if packets { "medium = \"ethernet-1g\"\nmtu = \"9180 B\"" } else { "medium = \"oc-3c\"" };
            let circuit = if packets { String::new() } else { circuit("llc-snap") };
            links(&limits(&pair(link, &circuit, "udp-stream", &format!("{message} B"))).flows["stream"])
        };
        let slack = if packets || (small + 44).div_ceil(48) == (large + 44).div_ceil(48) {
            1.0
        } else {
            // At worst the larger one carries 47 bytes of padding more.
            large as f64 / (large + 47) as f64
        };
        prop_assert!(goodput(large) >= goodput(small) * slack * (1.0 - 1e-12), "{small} {large}");
    }
}
