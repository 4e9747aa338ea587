//! Requests and responses.

use serde_json::json;

use crate::pair::{MS, Plan, measure, measure_in_time, number};

#[test]
fn one_after_the_other_over_tcp() {
    let times =
        json!({ "message_bytes": 1, "response_bytes": 1000, "warmup_ns": 20 * MS, "duration_ns": 100 * MS });
    let results = measure(&Plan::of("request-response", times));
    let latency = &results.connect["latency"];
    let asked = number(&results.connect["messages"]);
    assert!(asked > 10, "{asked}");
    assert!(number(&latency["count"]).abs_diff(asked) <= 2, "{latency}");
    assert!(number(&latency["min_ns"]) > 0 && latency["p50_ns"].as_u64() <= latency["p99_ns"].as_u64());
    // One after the other: all of them together are not longer than the time there was.
    assert!(number(&latency["mean_ns"]) * number(&latency["count"]) <= 300 * MS + number(&latency["max_ns"]));
    assert!(number(&results.listen["total_messages"]) >= asked);
}

#[test]
fn a_probe_asks_on_its_schedule() {
    let schedule = json!({ "kind": "cbr", "rate_bit_per_s": 64_000 });
    for transport in ["udp", "tcp"] {
        // 40 bytes every 5 ms.
        let both = json!({ "message_bytes": 40, "transport": transport, "duration_ns": 200 * MS });
        let plan = Plan::of("request-response", both).connect(json!({ "schedule": schedule }));
        let Some(results) = measure_in_time(&plan, 40 * MS) else { return };
        // The last ones may come too late to be asked, or to be answered, before the end.
        let asked = number(&results.connect["late"]["count"]);
        assert!((30..=40).contains(&asked), "{transport}: {asked}");
        assert!((30..=asked).contains(&number(&results.connect["latency"]["count"])), "{}", results.connect);
        assert_eq!(number(&results.connect["unanswered"]), 0, "{transport}");
        assert_eq!(number(&results.listen["unfit"]["malformed"]), 0);
    }
}
