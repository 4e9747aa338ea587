//! Rules of requests and measured outcomes, from invented answers.

mod ledgers;
mod model;
mod reasons;
mod requests;

use engpass_measured::{Answers, Asked, Engine, Failure, measured};
use engpass_outcome::{Bottleneck, BottleneckKind, FlowOutcome, Ledger, Outcome};
use engpass_testbed::{Point, Source, load};
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

/// Two hosts at the ends of a line of 10 Mbit/s.
const DIRECT: &str = r#"
[host.a]
[host.b]
[link.wire]
ends = ["a", "b"]
medium = "point-to-point"
rate = "10 Mbit/s"
"#;
/// Two hosts with a router between them.
const ROUTED: &str = r#"
[host.a]
[host.b]
[router.r]
[link.near]
ends = ["a", "r"]
medium = "point-to-point"
rate = "10 Mbit/s"
[link.far]
ends = ["r", "b"]
medium = "point-to-point"
rate = "10 Mbit/s"
"#;
const RUN: &str = "[run]\nduration = \"1 s\"\n";
const SECOND: u64 = 1_000_000_000;

/// Returns the point of a file whose traffic `bulk` goes from `a` to `b` for 1 s. `keys` are further lines of the table of `bulk`.
fn bulk(links: &str, kind: &str, keys: &str) -> Point {
    point(&format!("{links}\n[traffic.bulk]\nkind = \"{kind}\"\nfrom = \"a\"\nto = \"b\"\n{keys}\n{RUN}"))
}

fn datagrams(links: &str) -> Point {
    bulk(links, "udp-stream", "message = \"972 B\"")
}

fn point(text: &str) -> Point {
    let source = Source { name: "rule.toml".into(), text: text.into() };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{found}"));
    campaign.point(&campaign.variants()[0].clone(), &[]).unwrap_or_else(|found| panic!("{found}"))
}

fn asked(engine: Engine) -> Asked {
    Asked { engine, seed: 7, slow: 1, fixed: false, congestion: None }
}

/// A point, and invented answers of the agents of hosts `a` and `b` about its first traffic.
struct Case {
    point: Point,
    asked: Asked,
    /// Result of the sender, which completes or replaces fields of a flow that ended after 1 s.
    sent: Value,
    /// Result of the receiver, as `sent`.
    got: Value,
    /// Growth of the counters of hosts `a` and `b`.
    grown: [Value; 2],
    /// Addresses of hosts `a` and `b`.
    addresses: [Value; 2],
    /// Bottleneck of the traffic by the engine `limit`, with a fair share of 100 Mbit/s.
    limit: Option<Bottleneck>,
}

impl Case {
    fn new(point: Point, sent: Value, got: Value) -> Self {
        let none = || [json!({}), json!([])];
        let [grown, addresses] = [none(), none()];
        Self {
            point,
            asked: asked(Engine::Measure),
            sent,
            got,
            grown: [grown[0].clone(), grown[0].clone()],
            addresses: [addresses[1].clone(), addresses[1].clone()],
            limit: None,
        }
    }

    fn try_outcome(&self) -> Result<Outcome, Failure> {
        let name = self.point.testbed.traffic.keys().next().unwrap();
        let end = |role: &str, told: &Value| {
            let own = json!({ "flow": name, "role": role, "ended": "duration", "elapsed_ns": SECOND });
            merged(own, told)
        };
        let host = |end: Value, grown: &Value| {
            let before = nothing_of(grown);
            json!({ "flows": [end], "before": merged(json!({ "at_ns": 0 }), &before), "after": merged(json!({ "at_ns": SECOND }), grown) })
        };
        let hello = |addresses: &Value| json!({ "host": { "addresses": addresses } });
        let receivers = self.point.testbed.traffic[0].receivers();
        let [of_a, of_b] = &self.grown;
        let mut results = IndexMap::from([("a".to_owned(), host(end("send", &self.sent), of_a))]);
        results.extend(receivers.iter().map(|to| ((*to).to_owned(), host(end("receive", &self.got), of_b))));
        let answers = json!({
            "hellos": { "a": hello(&self.addresses[0]), "b": hello(&self.addresses[1]) },
            "results": results, "at": "", "took_s": 1.0, "carrier": "hosts",
        });
        let answers: Answers = serde_json::from_value(answers).unwrap();
        let limit = |bottleneck: &Bottleneck| FlowOutcome {
            goodput_bit_per_s: 100e6,
            bottleneck: Some(bottleneck.clone()),
            ..FlowOutcome::default()
        };
        let limits = self.limit.iter().map(|bottleneck| (name.clone(), limit(bottleneck))).collect();
        measured(&self.point, &self.asked, &limits, answers)
    }

    fn outcome(&self) -> Outcome {
        self.try_outcome().unwrap_or_else(|failure| panic!("{failure}"))
    }

    fn flow(&self) -> FlowOutcome {
        self.outcome().flows.shift_remove_index(0).unwrap().1
    }

    /// Returns kind and name of the bottleneck, and the summary.
    fn why(&self) -> (BottleneckKind, Option<String>, String) {
        let flow = self.flow();
        let found = flow.bottleneck.unwrap();
        (found.kind, found.name, flow.summary.unwrap())
    }

    fn kind(&self) -> BottleneckKind {
        self.why().0
    }
}

/// Returns an object with the fields of another one added or replaced.
fn merged(mut own: Value, told: &Value) -> Value {
    let fields = told.as_object().unwrap().iter().map(|(key, value)| (key.clone(), value.clone()));
    own.as_object_mut().unwrap().extend(fields);
    own
}

/// Returns a copy of this JSON value with 0 in place of every number: the reading of counters before they grew by these amounts.
fn nothing_of(grown: &Value) -> Value {
    match grown {
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), nothing_of(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(values) => values.iter().map(nothing_of).collect(),
        Value::Number(_) => json!(0),
        other => other.clone(),
    }
}

/// Returns the ledger of the line of `link` that begins at `from`.
fn ledger(outcome: &Outcome, link: &str, from: &str) -> Ledger {
    let directions = &outcome.links[link].directions;
    let direction = directions.iter().find(|direction| direction.from == from).unwrap();
    let ledger = direction.ledger.clone().unwrap();
    assert_eq!(ledger.accounts.values().sum::<u128>(), ledger.capacity, "{link} from {from}");
    ledger
}

/// Returns the parts of an account of a line; 0 if the line lacks the account.
fn account(outcome: &Outcome, link: &str, from: &str, name: &str) -> u128 {
    ledger(outcome, link, from).accounts.get(name).copied().unwrap_or(0)
}

/// Returns the idle reasons of a line, without the prefix `idle: `.
fn idle(outcome: &Outcome, link: &str, from: &str) -> Vec<String> {
    let accounts = ledger(outcome, link, from).accounts;
    accounts.keys().filter_map(|name| name.strip_prefix("idle: ")).map(ToOwned::to_owned).collect()
}

/// Returns `TCP_INFO` at the edges of a window in which the counters grew by these amounts.
fn tcp(grown: Value) -> Value {
    let open = json!({ "options": 1, "snd_mss": 1448 });
    let close = merged(open.clone(), &grown);
    json!({ "open": open, "close": close, "end": close })
}

fn of_link(name: &str) -> Bottleneck {
    Bottleneck { kind: BottleneckKind::Link, name: Some(name.to_owned()), title: format!("link `{name}`") }
}
