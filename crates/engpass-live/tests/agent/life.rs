//! Tests how an agent begins and ends, which limits it enforces and what it refuses.

use std::time::{Duration, Instant};

use engpass_live::{Ended, Limits, PROTOCOL};
use serde_json::json;

use crate::pair::{Agent, MS, Plan, RUN, measure, number, run_pair, start_pair, with};

#[test]
fn hello_describes_the_host_and_its_timer() {
    let agent = Agent::new();
    let hello = &agent.hello;
    assert_eq!((&hello["event"], &hello["protocol"]), (&json!("hello"), &json!(PROTOCOL)));
    assert!(hello["host"]["cores"].as_array().is_some_and(|cores| !cores.is_empty()));
    let addresses = hello["host"]["addresses"].as_array().expect("the host has a list of addresses");
    assert!(addresses.iter().any(|own| own["address"] == "127.0.0.1" && own["prefix"] == 8), "{hello}");
    assert!(hello["settings"]["congestion"].as_array().is_some_and(|names| !names.is_empty()));
    assert!(number(&hello["timer"]["samples"]) > 0 && hello["timer"]["sleep_p99_ns"].is_u64());
    assert_eq!(agent.close(), Ended::Input);
}

#[test]
fn agent_ends_with_its_channel_during_traffic() {
    let (mut listen, mut connect) = (Agent::new(), Agent::new());
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 1000, "duration_ns": 600_000 * MS }));
    start_pair(&mut listen, &mut connect, &plan);
    let begin = Instant::now();
    assert_eq!(connect.close(), Ended::Input);
    // The peer sees the end of the stream and is free for another run.
    assert_eq!(listen.event("done")["flow"], "f");
    listen.ok("collect", json!({ "run": RUN }));
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(listen.deafen(), Ended::Input);
}

#[test]
fn agent_ends_after_the_idle_timeout() {
    let agent = Agent::with(Limits::default(), Duration::from_secs(1));
    let begin = Instant::now();
    let mut agent = agent;
    agent.ok("ping", json!({}));
    let ended = agent.wait();
    assert_eq!(ended, Ended::Silence);
    assert!(begin.elapsed() >= Duration::from_secs(1));
}

#[test]
fn agent_rejects_requests_in_the_wrong_order() {
    let mut agent = Agent::new();
    let run = json!({ "run": RUN });
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 1000, "duration_ns": MS }));
    assert_eq!(agent.refused("start", run.clone()), "unknown-run");
    agent.ok("prepare", plan.listening());
    assert_eq!(agent.refused("prepare", plan.listening()), "bad-request");
    let other = with(&plan.listening(), &json!({ "run": "ff112233445566778899aabbccddeeff" }));
    assert_eq!(agent.refused("prepare", other), "busy");
    assert_eq!(agent.refused("collect", run.clone()), "wrong-order");
    // No peer has connected.
    assert_eq!(agent.refused("start", run.clone()), "wrong-order");
    assert_eq!(agent.refused("stop", json!({ "run": RUN, "flow": "g" })), "unknown-flow");
    agent.ok("drop", run.clone());
    assert_eq!(agent.refused("drop", run), "unknown-run");
    assert_eq!(agent.close(), Ended::Input);
}

#[test]
fn prepare_errors_distinguish_missing_and_wrong_peers() {
    let mut agent = Agent::new();
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 1000, "duration_ns": MS }));
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = json!(free.expect("loopback is available").port());
    assert_eq!(agent.refused("prepare", plan.connecting(&port)), "refused");
    let datagrams = Plan::of("udp-stream", json!({ "message_bytes": 1000, "duration_ns": MS }));
    assert_eq!(agent.refused("prepare", datagrams.connecting(&port)), "refused");
    // An agent of another run.
    let mut other = Agent::new();
    let theirs = with(&plan.listening(), &json!({ "run": "ff112233445566778899aabbccddeeff" }));
    let prepared = other.ok("prepare", theirs);
    assert_eq!(agent.refused("prepare", plan.connecting(&prepared["port"])), "wrong-peer");
    assert_eq!(
        agent.refused("prepare", with(&plan.connecting(&json!(9)), &json!({ "cores": [5000], "bytes": 0 }))),
        "bad-request"
    );
}

#[test]
fn silent_peer_gets_one_probe_for_all_streams_and_flows() {
    let mut agent = Agent::new();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback is available");
    let port = json!(silent.local_addr().expect("the socket is bound").port());
    let many = json!({ "message_bytes": 1000, "duration_ns": MS, "streams": 128 });
    let datagrams = Plan::of("udp-stream", many.clone());
    assert_eq!(agent.refused("prepare", datagrams.connecting(&port)), "no-answer");
    let other = with(&datagrams.connecting(&port), &json!({ "flow": "g" }));
    assert_eq!(agent.refused("prepare", other), "no-answer");
    silent.set_nonblocking(true).expect("the socket is open");
    let mut heads = Vec::new();
    let mut bytes = [0; 2000];
    while let Ok(length) = silent.recv(&mut bytes) {
        heads.push(bytes[..length].to_vec());
    }
    assert!((1..=5).contains(&heads.len()), "{} datagrams", heads.len());
    assert_eq!(heads[0].len(), 64);
    assert!(heads.iter().all(|head| *head == heads[0]), "all datagrams are copies of one hello");

    // A server that accepts connections and sends nothing.
    let mut agent = Agent::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback is available");
    let port = json!(silent.local_addr().expect("the socket is bound").port());
    assert_eq!(agent.refused("prepare", Plan::of("tcp-stream", many).connecting(&port)), "no-answer");
    silent.set_nonblocking(true).expect("the socket is open");
    let connections = std::iter::from_fn(|| silent.accept().ok()).count();
    assert_eq!(connections, 1);
}

#[test]
fn new_run_probes_a_silent_peer_again() {
    let mut agent = Agent::new();
    let plan = Plan::of("udp-stream", json!({ "message_bytes": 1000, "duration_ns": MS }));
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback is available");
    let port = json!(silent.local_addr().expect("the socket is bound").port());
    assert_eq!(agent.refused("prepare", plan.connecting(&port)), "no-answer");
    let mut other = Agent::new();
    let next = json!({ "run": "ff112233445566778899aabbccddeeff" });
    let prepared = other.ok("prepare", with(&plan.listening(), &next));
    agent.ok("prepare", with(&plan.connecting(&prepared["port"]), &next));
}

#[test]
fn receiver_ends_a_flow_that_exceeds_its_limits() {
    // A limit in bytes that only the receiver knows.
    let plan = Plan::of("tcp-stream", json!({ "message_bytes": 10_000 }));
    let limits = json!({ "limits": { "bytes": 1_000_000 } });
    let results = measure(&plan.listen(limits).connect(json!({ "duration_ns": 20_000 * MS })));
    assert_eq!(
        (&results.listen["ended"], &results.connect["ended"]),
        (&json!("limit-bytes"), &json!("peer"))
    );
    assert!(number(&results.listen["total_bytes"]) < 2_000_000);
    // A limit of the rate, set by the owner of the host.
    let owner = Limits { rate_bit_per_s: Some(8_000_000), ..Limits::default() };
    let (mut listen, mut connect) = (Agent::with(owner, Duration::from_secs(60)), Agent::new());
    let schedule = json!({ "kind": "cbr", "rate_bit_per_s": 80_000_000 });
    let plan = Plan::of("udp-stream", json!({ "message_bytes": 1000 }));
    let plan = plan.connect(json!({ "schedule": schedule, "duration_ns": 1500 * MS }));
    let results = run_pair(&mut listen, &mut connect, &plan);
    assert_eq!(results.listen["ended"], "limit-rate");
    // A request cannot raise it.
    let fast = json!({ "schedule": schedule, "limits": { "rate_bit_per_s": 100_000_000 }, "role": "send", "duration_ns": MS });
    let request = with(&plan.listening(), &fast);
    assert_eq!(listen.refused("prepare", request), "limit");
}

#[test]
fn sender_keeps_to_the_allowed_rate() {
    let owner = Limits { rate_bit_per_s: Some(40_000_000), ..Limits::default() };
    for kind in ["udp-stream", "tcp-stream"] {
        let (mut listen, mut connect) = (Agent::new(), Agent::with(owner.clone(), Duration::from_secs(60)));
        let plan = Plan::of(kind, json!({ "message_bytes": 1000, "duration_ns": 500 * MS }));
        let results = run_pair(&mut listen, &mut connect, &plan);
        // 2.5 MB, plus what a socket holds before TCP's pacing takes effect.
        let bytes = number(&results.listen["total_bytes"]);
        assert!((500_000..8_000_000).contains(&bytes), "{kind}: {bytes}");
    }
}

#[test]
fn kernel_counters_are_read_before_and_after() {
    let (mut listen, mut connect) = (Agent::new(), Agent::new());
    let plan = Plan::of("udp-stream", json!({ "message_bytes": 100, "duration_ns": 50 * MS }));
    start_pair(&mut listen, &mut connect, &plan);
    connect.event("done");
    let result = connect.ok("collect", json!({ "run": RUN }));
    let sent = number(&result["flows"][0]["total_messages"]);
    let counted = |when: &str| number(&result[when]["snmp"]["Udp"]["OutDatagrams"]);
    assert!(counted("after") - counted("before") >= sent);
    let packets = |when: &str| number(&result[when]["interfaces"]["lo"]["tx_packets"]);
    assert!(packets("after") - packets("before") >= sent);
    assert!(number(&result["after"]["at_ns"]) > number(&result["before"]["at_ns"]));
    assert!(
        result["after"]["softnet"][0]["dropped"].is_u64() && result["after"]["cores"][0]["steal"].is_u64()
    );
}
