//! Whether an agent lives is told at once, whatever it is doing.

use engpass_live::Ended;
use serde_json::json;

use crate::pair::{Agent, MS, Plan, RUN};

#[test]
fn a_ping_is_answered_while_a_request_is_worked_on() {
    let (mut listen, mut connect) = (Agent::new(), Agent::new());
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 1000, "duration_ns": 600_000 * MS }));
    let prepared = listen.ok("prepare", plan.listening());
    connect.ok("prepare", plan.connecting(&prepared["port"]));
    listen.ok("start", json!({ "run": RUN }));
    connect.ok("start", json!({ "run": RUN }));
    // It waits for the end of a sender that goes on for ten minutes.
    listen.write(format!("{{\"id\":100,\"do\":\"collect\",\"run\":\"{RUN}\"}}\n").as_bytes());
    listen.write(b"{\"id\":101,\"do\":\"ping\"}\n");
    let answer = loop {
        let line = listen.line();
        if line.get("event").is_none() {
            break line;
        }
    };
    assert_eq!(answer["id"], 101, "{answer}");
    assert!(answer["ok"]["now_ns"].is_u64());
    // When the sender has gone, the answer that was waited for comes.
    assert_eq!(connect.close(), Ended::Input);
    let answer = loop {
        let line = listen.line();
        if line.get("event").is_none() {
            break line;
        }
    };
    assert_eq!(answer["id"], 100, "{answer}");
    assert_eq!(listen.close(), Ended::Input);
}
