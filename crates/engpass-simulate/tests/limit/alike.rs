//! Equivalent flows get the same limits, computed once for all of them.

use proptest::prelude::*;

use crate::limits;

/// A flow through one bottleneck: kind, whether it has separate hosts, rate of its links in Mbit/s, and message size.
type Flow = (bool, bool, u32, u32);

fn dumbbell(flows: &[Flow], bottleneck: u32, offers: impl Fn(usize) -> String) -> String {
    let link = |name: &str, from: &str, to: &str, rate: u32| {
        format!(
            "[link.{name}]\nends = [\"{from}\", \"{to}\"]\nmedium = \"point-to-point\"\nrate = \"{rate} Mbit/s\"\n"
        )
    };
    let mut text = "[router.left]\n[router.right]\n[host.s]\n[host.r]\n".to_owned();
    text += &link("all", "left", "right", bottleneck);
    text += &link("a", "s", "left", 100);
    text += &link("b", "right", "r", 100);
    for (index, (tcp, own, rate, message)) in flows.iter().enumerate() {
        let (mut from, mut to) = ("s".to_owned(), "r".to_owned());
        if *own {
            (from, to) = (format!("s{index}"), format!("r{index}"));
            text += &format!("[host.{from}]\n[host.{to}]\n");
            text += &link(&format!("a{index}"), &from, "left", *rate);
            text += &link(&format!("b{index}"), "right", &to, *rate);
        }
        let kind = if *tcp { "tcp-stream" } else { "udp-stream" };
        text += &format!(
            "[traffic.t{index}]\nkind = \"{kind}\"\nfrom = \"{from}\"\nto = \"{to}\"\nmessage = \"{message} B\"\n{}",
            offers(index)
        );
    }
    text
}

proptest! {
    #[test]
    fn flow_equivalence_class_equals_separate_flows(
        flows in prop::collection::vec((any::<bool>(), any::<bool>(), 1u32..3, 1u32..3), 2..9),
        bottleneck in 1u32..12,
    ) {
        let flows: Vec<Flow> =
            flows.into_iter().map(|(tcp, own, rate, message)| (tcp, own, 3 * rate, 1000 * message)).collect();
        let alike = limits(&dumbbell(&flows, bottleneck, |_| String::new()));
        // Each application offers a different rate above every line rate: no two flows are equivalent.
        let apart = limits(&dumbbell(&flows, bottleneck, |index| format!("rate = \"{} Gbit/s\"\n", 100 + index)));
        for ((name, one), other) in alike.flows.iter().zip(apart.flows.values()) {
            prop_assert_eq!(&one.summary, &other.summary);
            let close = |one: f64, other: f64| (one - other).abs() <= 1e-9 * other;
            prop_assert!(close(one.goodput_bit_per_s, other.goodput_bit_per_s), "{}", name);
            for (one, other) in one.candidates.iter().zip(&other.candidates) {
                // Only the application may differ.
                let is_same = one.bottleneck.title == other.bottleneck.title && close(one.goodput_bit_per_s, other.goodput_bit_per_s);
                prop_assert!(is_same || other.bottleneck.title.starts_with("application"), "{:?} {:?}", one, other);
            }
            for (one, other) in one.stages.iter().zip(&other.stages) {
                prop_assert!(one.name == other.name && close(one.rate_bit_per_s, other.rate_bit_per_s));
            }
        }
        for (one, other) in alike.links.values().zip(apart.links.values()) {
            prop_assert_eq!(one.directions.len(), other.directions.len());
            for (one, other) in one.directions.iter().zip(&other.directions) {
                prop_assert!((one.utilisation.unwrap() - other.utilisation.unwrap()).abs() < 1e-9);
            }
        }
    }
}

#[test]
fn summary_names_other_flows_and_not_the_flow_itself() {
    let three = dumbbell(&[(true, true, 100, 1000); 3], 10, |_| String::new());
    let sentences: Vec<String> = limits(&three)
        .flows
        .values()
        .map(|flow| flow.summary.split_once(": ").unwrap().1.to_owned())
        .collect();
    let others = ["`t1` and `t2`", "`t0` and `t2`", "`t0` and `t1`"];
    for (sentence, others) in sentences.iter().zip(others) {
        assert!(sentence.starts_with(&format!("{others} take 66.7 % of the line")), "{sentence}");
    }
    let five = dumbbell(&[(true, true, 100, 1000); 5], 10, |_| String::new());
    let flows = limits(&five).flows;
    assert!(flows["t1"].summary.contains(": `t0`, `t2` and 2 others take 80.0 % of the line"));
    assert!(flows["t4"].summary.contains(": `t0`, `t1` and 2 others take 80.0 % of the line"));
}
