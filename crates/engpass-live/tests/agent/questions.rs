//! Tests of requests and responses.

use serde_json::json;

use crate::pair::{MS, Plan, Results, measure, number};

#[test]
fn sequential_tcp_requests_do_not_overlap() {
    let times =
        json!({ "message_bytes": 1, "response_bytes": 1000, "warmup_ns": 20 * MS, "duration_ns": 500 * MS });
    let results = measure(&Plan::of("request-response", times));
    let latency = &results.connect["latency"];
    let asked = number(&results.connect["messages"]);
    assert!(asked > 10, "{asked}");
    assert!(number(&latency["count"]).abs_diff(asked) <= 2, "{latency}");
    assert!(number(&latency["min_ns"]) > 0 && latency["p50_ns"].as_u64() <= latency["p99_ns"].as_u64());
    // Requests do not overlap, so the sum of their latencies does not exceed the time that passed.
    let whole = number(&results.connect["elapsed_ns"]);
    assert!(
        number(&latency["mean_ns"]) * number(&latency["count"]) <= whole + 2 * number(&latency["max_ns"])
    );
    assert!(number(&results.listen["total_messages"]) >= asked);
}

#[test]
fn scheduled_requests_are_sent_and_answered() {
    let schedule = json!({ "kind": "cbr", "rate_bit_per_s": 64_000 });
    for transport in ["udp", "tcp"] {
        // 40 bytes every 5 ms.
        let both = json!({ "message_bytes": 40, "transport": transport, "duration_ns": 200 * MS });
        let plan = Plan::of("request-response", both).connect(json!({ "schedule": schedule }));
        // The last requests may be too late to be sent or answered before the end. On a busy machine, one run of several is nearly complete.
        let asked = |results: &Results| number(&results.connect["late"]["count"]);
        let answered = |results: &Results| number(&results.connect["latency"]["count"]);
        let unanswered = |results: &Results| number(&results.connect["unanswered"]);
        let most =
            |results: &Results| asked(results) >= 30 && answered(results) >= 30 && unanswered(results) == 0;
        let results = (0..5)
            .map(|_| measure(&plan))
            .find(most)
            .expect("most of 40 requests are sent, and all are answered");
        assert!(asked(&results) <= 40 && answered(&results) <= asked(&results), "{}", results.connect);
        assert_eq!(number(&results.listen["unfit"]["malformed"]), 0);
    }
}
