//! Tests of TCP streams.

use serde_json::json;

use crate::pair::{Agent, MS, Plan, Results, measure, measure_in_time, number, run_pair};

#[test]
fn tcp_transfer_delivers_all_bytes() {
    let plan =
        Plan::of("tcp-stream", json!({ "message_bytes": 10_000 })).connect(json!({ "bytes": 3_141_592 }));
    let results = measure(&plan);
    for end in [&results.connect, &results.listen] {
        assert_eq!((number(&end["bytes"]), number(&end["total_bytes"])), (3_141_592, 3_141_592), "{end}");
        assert_eq!(end["streams"].as_array().map(Vec::len), Some(1));
    }
    assert_eq!((&results.connect["ended"], &results.listen["ended"]), (&json!("bytes"), &json!("peer")));
    // 314 full messages and a rest.
    assert_eq!(number(&results.connect["messages"]), 315);
    // The writes end before all bytes are sent; the readings after them include them all, and their acknowledgements.
    for reading in ["close", "end"] {
        let tcp = &results.connect["streams"][0]["tcp"][reading];
        assert!(number(&tcp["bytes_sent"]).min(number(&tcp["bytes_acked"])) >= 3_141_592, "{tcp}");
        assert_eq!((number(&tcp["unacked"]), number(&tcp["notsent_bytes"])), (0, 0), "{tcp}");
    }
    assert!(number(&results.listen["elapsed_ns"]) > 0);
}

#[test]
fn measurement_window_excludes_the_warm_up() {
    let times = json!({ "message_bytes": 65_536, "warmup_ns": 100 * MS, "duration_ns": 200 * MS, "interval_ns": 50 * MS });
    let plan = Plan::of("tcp-stream", times);
    // On a busy machine the window may open and close late, never early. One run of several has a nearly full window.
    let whole = |results: &Results| {
        [&results.connect, &results.listen].iter().all(|end| number(&end["elapsed_ns"]) >= 150 * MS)
    };
    let results = (0..5).map(|_| measure(&plan)).find(whole).expect("one of five runs has a full window");
    for end in [&results.connect, &results.listen] {
        assert!(number(&end["bytes"]) > 0 && number(&end["bytes"]) < number(&end["total_bytes"]), "{end}");
        let series = end["series"].as_array().expect("the result has a series");
        let sum: u64 = series.iter().map(|record| number(&record["bytes"])).sum();
        assert_eq!(sum, number(&end["total_bytes"]), "records cover all traffic");
        assert!(series.windows(2).all(|pair| pair[0]["to_ns"] == pair[1]["from_ns"]));
    }
    assert_eq!(results.connect["ended"], "duration");
    assert!(number(&results.connect["cpu"]["system_ns"]) + number(&results.connect["cpu"]["user_ns"]) > 0);
    assert!(results.connect["cores"][0]["busy_ppm"].is_u64());
}

#[test]
fn granted_socket_options_match_the_kernel() {
    let socket = json!({ "congestion": "cubic", "mss_bytes": 1000, "dscp": 10, "nodelay": true, "receive_buffer_bytes": 100_000 });
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 1000, "socket": socket }))
        .connect(json!({ "bytes": 5000 }));
    let results = measure(&plan);
    let granted = &results.connect["streams"][0]["granted"];
    assert_eq!(
        (&granted["congestion"], &granted["dscp"], &granted["nodelay"]),
        (&json!("cubic"), &json!(10), &json!(true))
    );
    // Timestamps take 12 of the 1000 bytes.
    assert!((900..=1000).contains(&number(&granted["mss_bytes"])), "{granted}");
    // The kernel doubles the size.
    assert_eq!(number(&granted["receive_buffer_bytes"]), 200_000);
    assert_eq!(granted["protocol"], "tcp");
}

#[test]
fn every_send_method_delivers_the_same_bytes() {
    for method in ["write", "sendfile", "zerocopy", "io-uring", "io-uring-zerocopy"] {
        let (mut listen, mut connect) = (Agent::new(), Agent::new());
        let needs = if method.starts_with("io-uring") { "io_uring" } else { "zerocopy" };
        if method != "write" && method != "sendfile" && connect.hello["capabilities"][needs] == false {
            continue;
        }
        let plan = Plan::of("tcp-stream", json!({ "message_bytes": 70_000 }));
        let plan = plan.connect(json!({ "bytes": 20_000_000, "method": method }));
        let results = run_pair(&mut listen, &mut connect, &plan);
        assert_eq!(number(&results.listen["total_bytes"]), 20_000_000, "{method}: {}", results.connect);
        let copied = &results.connect["copied"];
        if method.ends_with("zerocopy") {
            // On loopback the kernel copies after all, and reports it.
            assert!(number(&copied["completions"]) > 0, "{method}: {copied}");
            assert_eq!(copied["completions"], copied["copied"], "{method}");
        } else {
            assert!(copied.is_null(), "{method}");
        }
    }
}

#[test]
fn listening_sender_serves_parallel_streams() {
    let times = json!({ "message_bytes": 8192, "streams": 3, "duration_ns": 100 * MS });
    let turned =
        Plan::of("tcp-stream", times).listen(json!({ "role": "send" })).connect(json!({ "role": "receive" }));
    let results = measure(&turned);
    assert_eq!((&results.listen["role"], &results.connect["role"]), (&json!("send"), &json!("receive")));
    assert_eq!(results.connect["streams"].as_array().map(Vec::len), Some(3));
    for stream in results.connect["streams"].as_array().expect("the result has streams") {
        assert!(number(&stream["bytes"]) > 0);
    }
    let sent = number(&results.listen["total_bytes"]);
    assert_eq!(number(&results.connect["total_bytes"]), sent);
}

#[test]
fn flow_may_have_128_streams() {
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 1000, "streams": 128 }));
    // Each stream sends little data: loopback packets wait in one backlog per CPU, which other tests use at the same time.
    let results = measure(&plan.connect(json!({ "bytes": 2000 })));
    assert_eq!(number(&results.listen["total_bytes"]), 128 * 2000, "{}", results.connect["error"]);
    let streams = results.listen["streams"].as_array().expect("the result has streams");
    assert_eq!(streams.len(), 128);
    assert!(streams.iter().all(|stream| number(&stream["bytes"]) == 2000));
}

#[test]
fn schedule_paces_tcp_writes() {
    let schedule = json!({ "kind": "cbr", "rate_bit_per_s": 8_000_000 });
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 1000, "duration_ns": 200 * MS }));
    let plan = plan.connect(json!({ "schedule": schedule }));
    let Some(results) = measure_in_time(&plan, 100 * MS) else { return };
    // One message per millisecond, from 0 on and before 200 ms.
    assert_eq!(number(&results.connect["total_messages"]), 200);
    assert_eq!(number(&results.listen["total_bytes"]), 200_000);
    assert_eq!(number(&results.connect["late"]["count"]), 200);
    assert_eq!(results.connect["pacing"]["method"], "sleep");
}

#[test]
fn mptcp_reports_the_granted_protocol() {
    let (mut listen, mut connect) = (Agent::new(), Agent::new());
    if connect.hello["capabilities"]["mptcp"] == false {
        return;
    }
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 1000, "mptcp": true }))
        .connect(json!({ "bytes": 50_000 }));
    let results = run_pair(&mut listen, &mut connect, &plan);
    assert_eq!(number(&results.listen["total_bytes"]), 50_000);
    let granted = &results.connect["streams"][0]["granted"];
    assert_eq!((&granted["protocol"], &granted["mptcp_subflows"]), (&json!("mptcp"), &json!(1)), "{granted}");
    // With a plain TCP listener, MPTCP falls back to TCP.
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 1000 }))
        .connect(json!({ "bytes": 50_000, "mptcp": true }));
    let results = run_pair(&mut listen, &mut connect, &plan);
    assert_eq!(number(&results.listen["total_bytes"]), 50_000);
    let granted = &results.connect["streams"][0]["granted"];
    assert_eq!((&granted["protocol"], &granted["mptcp_subflows"]), (&json!("tcp"), &json!(0)), "{granted}");
}
