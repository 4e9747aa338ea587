//! What an emulated network knows itself.

use engpass_measured::{Answers, Engine, Failure, measured};
use engpass_outcome::Outcome;
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::{ROUTED, RUN, SECOND, asked, point};

const FLOW: &str = "kind = \"tcp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1 kB\"\n";

/// Returns the outcome of these flows from `a` to `b`, of which the network lost some packets.
fn outcome(flows: &[&str], closed: &Value) -> Result<Outcome, Failure> {
    let traffic: String = flows.iter().map(|name| format!("[traffic.{name}]\n{FLOW}")).collect();
    let end = |flow: &&str, role: &str| json!({ "flow": flow, "role": role, "ended": "duration", "elapsed_ns": SECOND });
    let ends = |role: &str| json!({ "flows": flows.iter().map(|flow| end(flow, role)).collect::<Vec<_>>() });
    let answers = json!({
        "hellos": {}, "results": { "a": ends("send"), "b": ends("receive") }, "at": "", "took_s": 1.0, "carrier": "model",
        "emulation": { "clock": "spin", "no_offload": false, "max_lateness": "1 ms", "tap": false, "closed": closed },
    });
    let answers: Answers = serde_json::from_value(answers).unwrap();
    measured(&point(&format!("{ROUTED}{traffic}{RUN}")), &asked(Engine::Emulate), &IndexMap::new(), answers)
}

fn closed() -> Value {
    let pair = json!({
        "kind": "outside", "goodput_bit_per_s": 0.0, "offered_bit_per_s": 0.0,
        "datagrams": { "sent": 9, "received": 6, "lost": 2, "in_flight": 1 }, "outage": { "longest_s": 0.5, "lost": 1 },
    });
    let drop = |flow: &str| json!({ "place": { "node": "r", "link": "far", "to": "b" }, "cause": "buffer full", "flow": flow, "cells": 3, "datagrams": 2 });
    json!({
        "outcome": { "flows": { "a to b": pair }, "links": {}, "drops": [drop("a to b"), drop("b to a")] },
        "lateness": { "valid": true, "p999_ns": 5, "limit_ns": 1_000_000 },
    })
}

#[test]
fn losses_and_packets_belong_to_the_only_traffic_of_a_path() {
    let alone = outcome(&["bulk"], &closed()).unwrap();
    let flows: Vec<&str> = alone.drops.iter().map(|drop| drop.flow.as_str()).collect();
    assert_eq!(flows, ["bulk", "b to a"]);
    let counts = alone.flows["bulk"].datagrams.unwrap();
    assert_eq!((counts.sent, counts.received, counts.lost, counts.in_flight), (9, 6, 2, None));
    assert_eq!(alone.flows["bulk"].outage.unwrap().lost, 1);
    let both = outcome(&["bulk", "more"], &closed()).unwrap();
    assert_eq!(both.drops[0].flow, "a to b");
    assert_eq!((both.flows["bulk"].datagrams, both.flows["bulk"].outage), (None, None));
}

#[test]
fn late_network_makes_the_point_invalid() {
    let mut late = closed();
    late["lateness"] = json!({ "valid": false, "p999_ns": 2_500_000, "limit_ns": 1_000_000 });
    let found = outcome(&["bulk"], &late).unwrap();
    assert_eq!(found.valid, Some(false));
    let told = "0.1 % of the packets were 2.5 ms late or more, but the limit is 1 ms: this machine was too slow or too busy";
    assert_eq!(found.invalid.as_deref(), Some(told));
}

#[test]
fn driver_of_another_version_is_rejected() {
    let mut old = closed();
    old["outcome"]["flows"]["a to b"]["sent_datagrams"] = json!(9);
    let failure = outcome(&["bulk"], &old).unwrap_err();
    assert!(failure.cause.starts_with("the driver sent an unknown answer: "), "{failure}");
    assert!(failure.cause.contains("sent_datagrams"), "{failure}");
}
