//! Tests UDP streams: exact counts, pacing, segmentation, several streams and multicast.

use std::time::Duration;

use serde_json::{Value, json};

use crate::pair::{Agent, MS, Plan, RUN, Results, measure, measure_in_time, number, with};

fn lost(results: &Results) -> u64 {
    number(&results.connect["messages"]) - number(&results.listen["sequence"]["received"])
}

#[test]
fn paced_datagrams_are_all_counted() {
    let schedule = json!({ "kind": "cbr", "rate_bit_per_s": 8_000_000 });
    let times =
        json!({ "message_bytes": 500, "warmup_ns": 50 * MS, "duration_ns": 200 * MS, "schedule": schedule });
    // The test checks the mean of 399 gaps to a fifth, so the lateness of first and last must be below a fifth of 200 ms.
    let Some(results) = measure_in_time(&Plan::of("udp-stream", times), 35 * MS) else { return };
    // One message every 500 us: 100 in the warm-up and 400 measured.
    assert_eq!(
        (number(&results.connect["total_messages"]), number(&results.connect["messages"])),
        (500, 400)
    );
    assert_eq!((number(&results.listen["total_messages"]), lost(&results)), (500, 0));
    let sequence = &results.listen["sequence"];
    assert_eq!((number(&sequence["first"]), number(&sequence["highest"])), (100, 499));
    assert_eq!((number(&sequence["duplicate"]), number(&sequence["reordered"])), (0, 0));
    for end in [&results.connect, &results.listen] {
        assert_eq!(number(&end["gaps"]["count"]), 399, "{end}");
        // The schedule is absolute. Single gaps vary, but 399 of them take 199.5 ms, apart from the lateness of the first and the last.
        let mean = number(&end["gaps"]["mean_ns"]);
        assert!((400_000..600_000).contains(&mean), "{mean}");
        assert!(number(&end["gaps"]["worst_ms"]) >= 2);
    }
    assert_eq!(number(&results.connect["late"]["count"]), 400);
    assert_eq!(number(&results.listen["delay"]["count"]), 400, "one host has one clock");
    assert!(results.connect["pacing"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
}

#[test]
fn stream_with_a_number_of_bytes_ends_after_whole_datagrams() {
    // 2500 bytes are three datagrams of 1000; in bursts of two, the last one goes alone. The time would last for 200 datagrams.
    let schedule = json!({ "kind": "cbr", "rate_bit_per_s": 8_000_000 });
    let times = json!({ "message_bytes": 1000, "duration_ns": 200 * MS, "schedule": schedule });
    let plan = Plan::of("udp-stream", times);
    let plan = plan.connect(json!({ "bytes": 2500, "pacing": "burst", "burst_messages": 2 }));
    let results = measure(&plan);
    assert_eq!((number(&results.connect["messages"]), &results.connect["ended"]), (3, &json!("bytes")));
    assert_eq!(number(&results.connect["bytes"]), 3000);
    assert_eq!(number(&results.listen["messages"]) + lost(&results), 3);
}

#[test]
fn segmented_datagrams_arrive_intact() {
    let plan = Plan::of(
        "udp-stream",
        json!({ "message_bytes": 100, "duration_ns": 100 * MS, "segmentation": true }),
    );
    let results = measure(&plan);
    assert!(number(&results.listen["sequence"]["received"]) > 1000);
    assert_eq!(number(&results.listen["unfit"]["malformed"]), 0);
    let sent = &results.connect["streams"][0]["granted"];
    assert_eq!(number(&sent["udp_segment_bytes"]), 100);
    assert_eq!(results.listen["streams"][0]["granted"]["udp_gro"], true);
    let missing = number(&results.listen["sequence"]["missing"]);
    assert!(missing <= lost(&results), "missing numbers are lost datagrams");
}

#[test]
fn bursts_are_sent_together_at_the_mean_rate() {
    let schedule = json!({ "kind": "cbr", "rate_bit_per_s": 80_000_000 });
    let plan = Plan::of(
        "udp-stream",
        json!({ "message_bytes": 1000, "duration_ns": 200 * MS, "schedule": schedule }),
    );
    let plan = plan.connect(json!({ "pacing": "burst", "burst_messages": 20 }));
    let Some(results) = measure_in_time(&plan, 45 * MS) else { return };
    assert_eq!(number(&results.connect["messages"]), 2000);
    assert!(number(&results.connect["gaps"]["longest_burst"]) >= 20);
    assert_eq!(results.connect["pacing"]["method"], "burst");
    assert_eq!(lost(&results), 0);
}

#[test]
fn udp_streams_share_a_port() {
    let schedule = json!({ "kind": "cbr", "rate_bit_per_s": 8_000_000 });
    let plan = Plan::of(
        "udp-stream",
        json!({ "message_bytes": 1000, "streams": 4, "duration_ns": 100 * MS, "schedule": schedule }),
    );
    let Some(results) = measure_in_time(&plan, 45 * MS) else { return };
    assert_eq!(number(&results.connect["messages"]), 400);
    for stream in results.listen["streams"].as_array().expect("the result has streams") {
        assert_eq!(number(&stream["sequence"]["received"]), 100, "{stream}");
    }
}

#[test]
fn kernel_pacing_without_fq_is_rejected() {
    let (mut listen, mut connect) = (Agent::new(), Agent::new());
    let schedule = json!({ "kind": "cbr", "rate_bit_per_s": 8_000_000 });
    let plan = Plan::of(
        "udp-stream",
        json!({ "message_bytes": 1000, "duration_ns": 100 * MS, "schedule": schedule }),
    );
    let plan = plan.connect(json!({ "pacing": "kernel" }));
    let results = crate::pair::run_pair(&mut listen, &mut connect, &plan);
    // Loopback has no queue discipline that paces.
    assert_eq!(
        (&results.connect["ended"], &results.connect["error"]["code"]),
        (&json!("failed"), &json!("not-supported"))
    );
    assert_eq!(number(&results.listen["total_messages"]), 0);
}

/// Returns the requests for one sender and two receivers of a group on loopback.
fn group(fields: &Value) -> (Plan, Value) {
    let schedule = json!({ "kind": "cbr", "rate_bit_per_s": 8_000_000 });
    let both = json!({ "message_bytes": 1000, "duration_ns": 600 * MS, "schedule": schedule });
    let plan = Plan::of("udp-stream", with(&both, fields));
    let listening = with(&plan.listening(), &json!({ "group": "239.255.77.1:0", "interface": "lo" }));
    (plan, listening)
}

#[test]
fn group_is_received_only_by_joined_members() {
    let (mut first, mut second, mut sender) = (Agent::new(), Agent::new(), Agent::new());
    let (plan, listening) = group(&json!({}));
    let prepared = first.ok("prepare", listening.clone());
    let address = prepared["group"].as_str().expect("the answer has a group address").to_owned();
    // The second receiver uses the same port and joins on request.
    let late = with(&listening, &json!({ "group": address, "joined": false }));
    let other = second.ok("prepare", late);
    let to = [&prepared, &other].map(|end| format!("127.0.0.1:{}", end["port"]));
    let connecting = json!({ "to": to, "group": address, "address": "127.0.0.1" });
    sender.ok("prepare", with(&plan.connecting(&json!(0)), &connecting));
    let run = json!({ "run": RUN });
    let member = json!({ "run": RUN, "flow": "f" });
    for agent in [&mut first, &mut second, &mut sender] {
        agent.ok("start", run.clone());
    }
    std::thread::sleep(Duration::from_millis(100));
    second.ok("join", member.clone());
    assert_eq!(second.refused("join", member.clone()), "wrong-order");
    sender.event("done");
    std::thread::sleep(Duration::from_millis(30));
    second.ok("leave", member.clone());
    assert_eq!(sender.refused("leave", member), "wrong-order");
    let mut results = [&mut sender, &mut first, &mut second].map(|agent| agent.ok("collect", run.clone()));
    let [sent, all, some] = results.each_mut().map(|result| result["flows"][0].take());
    let messages = number(&sent["messages"]);
    assert!(messages == 600 || number(&sent["late"]["max_ns"]) >= 100 * MS, "{sent}");
    assert_eq!(number(&all["sequence"]["received"]), messages, "{all}");
    let heard = number(&some["sequence"]["received"]);
    assert!(heard > 0 && heard < messages, "{heard} of {messages} after joining late");
    assert_eq!(number(&some["sequence"]["missing"]), 0);
    let joined = &some["membership"][0];
    assert!(number(&joined["first_ns"]) >= number(&joined["join_ns"]), "{some}");
    assert!(some["membership"][1]["leave_ns"].is_u64(), "{some}");
}
