//! Figures and bottlenecks of measured flows.

use engpass_outcome::BottleneckKind as Kind;
use serde_json::{Value, json};

use crate::{Case, DIRECT, ROUTED, bulk, merged, of_link, tcp};

fn writes(sent: Value, got: Value) -> Case {
    Case::new(bulk(DIRECT, "tcp-stream", "message = \"1 kB\""), sent, got)
}

/// 1000 datagrams of 1 kB in a second, at 8 Mbit/s, of which `lost` are lost.
fn paced(lost: u64) -> Case {
    let sent = json!({ "messages": 1000, "bytes": 1_000_000, "late": { "max_ns": 5 } });
    let received = 1000 - lost;
    let got = json!({ "messages": received, "bytes": received * 1000, "sequence": { "received": received } });
    Case::new(bulk(FAST, "udp-stream", "message = \"1 kB\"\nrate = \"8 Mbit/s\""), sent, got)
}

/// A line of which 8 Mbit/s are little.
const FAST: &str = "[host.a]\n[host.b]\n[link.wire]\nends = [\"a\", \"b\"]\nmedium = \"ethernet-1g\"\n";

fn asks(sent: Value) -> Case {
    let keys = "request = \"1 kB\"\nresponse = \"1 kB\"\ntransport = \"udp\"\nevery = \"1 ms\"";
    Case::new(bulk(FAST, "request-response", keys), sent, json!({}))
}

#[test]
fn bottleneck_is_unknown_if_nothing_is_near_its_bound() {
    let mut case = writes(json!({ "bytes": 100_000 }), json!({ "bytes": 100_000 }));
    case.limit = Some(of_link("wan"));
    let (kind, _, said) = case.why();
    assert_eq!(kind, Kind::Unknown);
    assert_eq!(said, "the bottleneck of `bulk` is unknown: no measured resource was near its limit");
}

#[test]
fn link_near_its_fair_share_is_the_bottleneck() {
    let got = json!({ "bytes": 97 * 125_000 });
    let mut case = Case::new(bulk(FAST, "tcp-stream", "message = \"1 kB\""), got.clone(), got);
    case.limit = Some(of_link("wan"));
    let (kind, name, said) = case.why();
    assert_eq!((kind, name.as_deref()), (Kind::Link, Some("wan")));
    assert_eq!(said, "link `wan` limits `bulk`: the flow gets 97 % of its fair share");
    // The CPU of a host is no link.
    case.limit = Some(engpass_outcome::Bottleneck { kind: Kind::SendingHost, ..of_link("uplink") });
    assert_eq!(case.kind(), Kind::Unknown);
}

#[test]
fn full_line_behind_the_losses_is_the_bottleneck() {
    // Both lines are full with 1200 datagrams of 1028 B; the first one drops none.
    let sent = json!({ "messages": 2400, "bytes": 2_400_000 });
    let got = json!({ "messages": 1200, "bytes": 1_200_000, "sequence": { "received": 1200 } });
    let case = Case::new(bulk(ROUTED, "udp-stream", "message = \"1 kB\""), sent, got);
    let flow = case.flow();
    assert_eq!(flow.bottleneck.unwrap().name.as_deref(), Some("far"));
    // The line is the reason for losses in the queue before it.
    assert_eq!(flow.next_bottleneck.unwrap().kind, Kind::LossOnTheWay);
    let findings = flow.real.unwrap().findings;
    assert!((findings[1].weight - findings[0].weight * 0.99).abs() < 1e-4, "{findings:?}");
}

#[test]
fn other_load_on_the_core_is_the_bottleneck() {
    let sent = json!({ "cpu": { "waited_ns": 600_000_000 } });
    let (kind, name, said) = writes(sent, json!({})).why();
    assert_eq!((kind, name.as_deref()), (Kind::OtherLoad, Some("a")));
    assert!(said.contains("other threads used the core for 60 % of the time"));
    let stolen = json!({ "streams": [{ "core": 1 }], "cores": [{ "core": 1, "steal_ppm": 700_000 }] });
    assert_eq!(writes(stolen, json!({})).kind(), Kind::Hypervisor);
}

#[test]
fn busy_thread_names_the_cpu_unless_it_polls_the_clock() {
    let busy = json!({ "cpu": { "user_ns": 100_000_000, "system_ns": 900_000_000 } });
    let (kind, name, said) = writes(json!({}), busy.clone()).why();
    assert_eq!((kind, name.as_deref()), (Kind::ReceivingHost, Some("b")));
    assert!(said.contains("its receiving threads were busy 100 % of the time"));
    assert_eq!(writes(busy.clone(), json!({})).kind(), Kind::SendingHost);
    let polls = merged(busy, &json!({ "pacing": { "method": "busy" } }));
    assert_eq!(writes(polls, json!({})).kind(), Kind::Unknown);
}

fn of_tcp(grown: Value) -> Case {
    writes(json!({ "streams": [{ "tcp": tcp(grown) }] }), json!({}))
}

#[test]
fn limited_times_of_the_kernel_name_what_held_the_sender_back() {
    let (kind, _, said) =
        of_tcp(json!({ "busy_us": 1000, "rwnd_limited_us": 800, "sndbuf_limited_us": 100 })).why();
    assert_eq!(kind, Kind::ReceiveWindow);
    assert!(said.ends_with("next is the send buffer: it was too small 10 % of the time"));
    let again = json!({ "busy_us": 1000, "total_retrans": 12 });
    assert_eq!(of_tcp(again.clone()).kind(), Kind::CongestionWindow);
    assert_eq!(of_tcp(merged(again, &json!({ "rwnd_limited_us": 900 }))).kind(), Kind::ReceiveWindow);
    let timeouts = json!({ "busy_us": 1_000_000, "total_rto_time_ms": 600, "total_rto": 3 });
    assert_eq!(of_tcp(timeouts).kind(), Kind::RetransmissionTimer);
}

#[test]
fn application_at_its_offered_rate_is_the_bottleneck() {
    let (kind, name, _) = paced(0).why();
    assert_eq!((kind, name.as_deref()), (Kind::Application, Some("bulk")));
    let mut case = paced(0);
    case.sent = json!({ "messages": 750, "bytes": 750_000, "late": { "max_ns": 200_000_000 } });
    case.got = json!({ "messages": 750, "bytes": 750_000 });
    let (kind, name, said) = case.why();
    assert_eq!((kind, name.as_deref()), (Kind::Sender, Some("a")));
    assert!(said.contains("it sent at 75 % of the requested rate"), "{said}");
}

#[test]
fn schedule_is_kept_below_its_mean_in_a_window() {
    let keys = "message = \"1 kB\"\nrate = \"80 Mbit/s\"\non = \"10 ns\"\noff = \"10 ns\"";
    let kept = |late: u64| {
        let sent = json!({ "bytes": 4_600_000, "late": { "max_ns": late } });
        Case::new(bulk(FAST, "udp-on-off", keys), sent, json!({})).flow().real.unwrap().schedule_kept.unwrap()
    };
    assert_eq!(kept(5_000_000), 1.0);
    assert!((kept(200_000_000) - 0.92).abs() < 1e-9);
    assert_eq!(writes(json!({}), json!({})).flow().real.unwrap().schedule_kept, None);
}

/// TCP reports what the sender waited for, so the host is not named as the bottleneck.
#[test]
fn late_writes_do_not_blame_the_sender() {
    let keys = "message = \"1 kB\"\nrate = \"8 Mbit/s\"";
    let sent = json!({ "bytes": 300_000, "late": { "max_ns": 900_000_000 } });
    let mut case = Case::new(bulk(FAST, "tcp-stream", keys), sent, json!({}));
    assert_eq!(case.kind(), Kind::Unknown);
    case.sent["streams"] = json!([{ "tcp": tcp(json!({ "busy_us": 1000, "rwnd_limited_us": 900 })) }]);
    assert_eq!(case.kind(), Kind::ReceiveWindow);
}

#[test]
fn queued_datagrams_count_in_the_time_they_arrive() {
    let rates = |late: u64, elapsed: u64| {
        let mut case = paced(0);
        case.sent["late"]["max_ns"] = json!(late);
        case.got["elapsed_ns"] = json!(elapsed);
        case.flow().goodput_bit_per_s
    };
    assert_eq!(rates(0, 1_500_000_000), 8e6 / 1.5);
    assert_eq!(rates(0, 1_010_000_000), 8e6);
    // Datagrams that a scheduled sender sent late arrive late, but did not wait in a queue.
    assert_eq!(rates(90_000_000, 1_090_000_000), 8e6);
    assert_eq!(rates(500_000_000, 1_500_000_000), 8e6 / 1.5);
}

#[test]
fn unanswered_requests_count_as_loss_on_the_way() {
    let sent = json!({ "messages": 500, "bytes": 500_000, "unanswered": 500, "latency": { "count": 500 }, "late": { "max_ns": 5 } });
    let (kind, _, said) = asks(sent).why();
    assert_eq!(kind, Kind::LossOnTheWay);
    assert!(said.contains("500 requests (50 %) had no response within 1 s"), "{said}");
}

#[test]
fn path_that_drops_large_packets_is_named() {
    let mut silent = paced(1000);
    silent.got["total_bytes"] = json!(0);
    let unanswered = asks(json!({ "unanswered": 9, "latency": { "count": 0 } }));
    let stuck = writes(json!({ "bytes": 9000 }), json!({ "total_bytes": 0 }));
    for case in [silent, unanswered, stuck] {
        let (kind, _, said) = case.why();
        assert_eq!(kind, Kind::LargePackets);
        assert!(said.contains("`engpass path` finds the MTU"));
    }
    // Data arrived, although not within the window: this is another case.
    let mut later = paced(1000);
    later.got["total_bytes"] = json!(1000);
    assert_ne!(later.kind(), Kind::LargePackets);
}

#[test]
fn counters_of_the_receiver_locate_lost_datagrams() {
    let kind = |grown: Value| {
        let mut case = paced(250);
        case.grown[1] = grown;
        case.kind()
    };
    assert_eq!(kind(json!({ "snmp": { "Udp": { "RcvbufErrors": 250 } } })), Kind::ReceiverSocketBuffer);
    assert_eq!(kind(json!({ "softnet": [{ "core": 0, "dropped": 250 }] })), Kind::ReceiverBacklog);
    let fragments = json!({ "snmp": { "Ip": { "ReasmFails": 500, "ReasmReqds": 3000 } } });
    assert_eq!(kind(fragments), Kind::LossOfFragments);
    // Fragments of an earlier run time out during this run, in which no fragments arrive.
    assert_eq!(kind(json!({ "snmp": { "Ip": { "ReasmFails": 500 } } })), Kind::LossOnTheWay);
    assert_eq!(kind(json!({})), Kind::LossOnTheWay);
    // The host's counter belongs to another flow.
    let mut case = paced(250);
    case.grown[1] = json!({ "snmp": { "Udp": { "RcvbufErrors": 250 } } });
    case.got["streams"] = json!([{ "dropped": 0 }]);
    assert_eq!(case.kind(), Kind::LossOnTheWay);
}

#[test]
fn stalls_of_the_sender_explain_deviating_gaps() {
    let mut case = paced(0);
    let stalls = json!({
        "count": 3, "longest_ns": 4_000_000, "total_ns": 5_000_000, "squares_ns2": 90_000_000_000_000u64,
        "waited": { "squares_ppm": 0 }, "stolen": { "squares_ppm": 900_000 }, "kernel": { "squares_ppm": 100_000 },
    });
    case.sent["pacing"] = json!({ "method": "hybrid", "stalls": stalls });
    case.got["gaps"] = json!({ "count": 10_000, "sd_ns": 100_000, "mad_ns": 500 });
    let found = case.flow().real.unwrap().pacing.unwrap();
    assert!((found.explained_share.unwrap() - 0.9).abs() < 1e-9);
    assert_eq!(
        found.summary.unwrap(),
        "gaps deviate by 100.0 us, and half of them by at most 0.5 us: the sender stalled 3 times, for at most 4,000.0 us, which explains 90 % of the deviation; 90 %: the hypervisor of the sending host used its core, or woke it late, 10 %: the sending host's kernel used its core, for interrupts and for sending"
    );
    case.got["gaps"]["sd_ns"] = json!(1_000_000);
    let found = case.flow().real.unwrap().pacing.unwrap();
    assert!(found.summary.unwrap().ends_with("; the rest arose on the path"));
    assert_eq!(paced(0).flow().real.unwrap().pacing, None);
}

#[test]
fn default_congestion_control_unlike_the_model_is_noted() {
    let notes = |keys: &str, granted: &str| {
        let sent = json!({ "streams": [{ "granted": { "congestion": granted } }] });
        let case =
            Case::new(bulk(DIRECT, "tcp-stream", &format!("message = \"1 kB\"\n{keys}")), sent, json!({}));
        case.outcome().measured.unwrap().notes
    };
    let [note] = &notes("", "bbr")[..] else { panic!("there is one note") };
    assert!(note.contains("`bbr`, but the model uses `cubic`"), "{note}");
    assert!(notes("tcp = { congestion = \"bbr\" }", "bbr").is_empty() && notes("", "cubic").is_empty());
}

#[test]
fn null_of_an_agent_is_a_missing_field() {
    let sent = json!({ "gaps": null, "late": { "max_ns": null }, "bytes": 5, "streams": null });
    let case = writes(sent, json!({ "cpu": null, "cores": null }));
    assert_eq!(case.flow().offered_bit_per_s, 40.0);
    // The answer is stored as the agent gave it.
    assert_eq!(case.flow().real.unwrap().ends["a"]["late"], json!({ "max_ns": null }));
}

#[test]
fn failed_end_fails_the_point_with_its_cause() {
    let cause = |told: Value| {
        let failure = writes(json!({}), told).try_outcome().unwrap_err();
        (failure.cause, failure.help)
    };
    let error = json!({ "ended": "failed", "error": { "cause": "no buffers", "help": "wait" } });
    assert_eq!(cause(error), ("traffic `bulk` failed at host `b`: no buffers".into(), Some("wait".into())));
    let slow = json!({ "ended": "limit-rate" });
    assert_eq!(
        cause(slow).0,
        "traffic `bulk` failed at host `b`: the owner of that host does not allow this rate"
    );
    // A receiver ends with its peer.
    assert!(writes(json!({}), json!({ "ended": "peer" })).try_outcome().is_ok());
    assert!(writes(json!({ "ended": "peer" }), json!({})).try_outcome().is_err());
}

#[test]
fn transfer_lasts_from_the_first_to_the_last_byte_at_the_receiver() {
    let case = |ended: &str| {
        let point = bulk(DIRECT, "udp-stream", "message = \"1 kB\"\ncount = 50");
        let sent = json!({ "ended": ended, "bytes": 50_000, "messages": 50, "elapsed_ns": 200_000_000 });
        let got =
            json!({ "bytes": 40_000, "total_bytes": 40_000, "messages": 40, "elapsed_ns": 250_000_000 });
        Case::new(point, sent, got).flow()
    };
    let whole = case("bytes").transfer.unwrap();
    assert_eq!(
        (whole.received_bytes, whole.duration_s, whole.goodput_bit_per_s),
        (40_000, Some(0.25), Some(1.28e6))
    );
    // A TCP sender is done when its socket buffer has everything; the receiver's window ends before all has come.
    let point = bulk(DIRECT, "tcp-stream", "message = \"1 kB\"\ncount = 50");
    let sent = json!({ "ended": "bytes", "bytes": 50_000 });
    let got = json!({ "bytes": 40_000, "total_bytes": 50_000 });
    let drains = Case::new(point, sent, got).flow().transfer.unwrap();
    assert_eq!((drains.received_bytes, drains.duration_s), (40_000, None));
    // Its time was over before all was sent.
    let cut = case("duration").transfer.unwrap();
    assert_eq!((cut.received_bytes, cut.duration_s), (40_000, None));
}
