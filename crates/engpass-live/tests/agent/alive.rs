//! Tests that an agent answers a ping at once, whatever it is doing.

use engpass_live::Ended;
use serde_json::json;

use crate::pair::{Agent, MS, Plan, RUN, start_pair};

#[test]
fn ping_is_answered_during_a_pending_request() {
    let (mut listen, mut connect) = (Agent::new(), Agent::new());
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 1000, "duration_ns": 600_000 * MS }));
    start_pair(&mut listen, &mut connect, &plan);
    // The listening end waits for a sender that goes on for ten minutes.
    listen.write(format!("{{\"id\":100,\"do\":\"collect\",\"run\":\"{RUN}\"}}\n").as_bytes());
    listen.write(b"{\"id\":101,\"do\":\"ping\"}\n");
    let answer = listen.answer();
    assert_eq!(answer["id"], 101, "{answer}");
    assert!(answer["ok"]["now_ns"].is_u64());
    // When the sender disconnects, the pending answer arrives.
    assert_eq!(connect.close(), Ended::Input);
    let answer = listen.answer();
    assert_eq!(answer["id"], 100, "{answer}");
    assert_eq!(listen.close(), Ended::Input);
}
