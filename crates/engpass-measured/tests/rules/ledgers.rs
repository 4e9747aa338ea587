//! Ledgers of measured points.

use engpass_outcome::BottleneckKind;
use serde_json::{Value, json};

use crate::{Case, DIRECT, ROUTED, account, bulk, datagrams, idle, ledger, of_link, point, tcp};

/// Returns an end that sent or received this number of datagrams of 972 B: 1000 B with their headers.
fn messages(number: u64) -> Value {
    json!({ "messages": number, "bytes": number * 972, "sequence": { "received": number } })
}

fn lossy(links: &str) -> Case {
    Case::new(datagrams(links), messages(1000), messages(900))
}

#[test]
fn losses_behind_the_first_link_are_posted_to_it() {
    let outcome = lossy(ROUTED).outcome();
    for (link, from) in [("near", "a"), ("far", "r")] {
        assert_eq!(account(&outcome, link, from, "delivered"), 900 * 972 * 8);
        assert_eq!(account(&outcome, link, from, "IP headers"), 900 * 160);
        assert_eq!(account(&outcome, link, from, "transport headers"), 900 * 64);
    }
    assert_eq!(account(&outcome, "near", "a", "lost datagrams"), 100 * 1000 * 8);
    assert_eq!(account(&outcome, "far", "r", "lost datagrams"), 0);
    assert_eq!(idle(&outcome, "far", "b"), ["no sender"]);
    assert_eq!(ledger(&outcome, "far", "b").capacity, 10_000_000);
}

#[test]
fn queued_datagrams_are_in_flight_on_the_first_link() {
    let mut case = Case::new(datagrams(ROUTED), messages(900), messages(900));
    case.got["elapsed_ns"] = json!(1_500_000_000);
    let outcome = case.outcome();
    assert_eq!(account(&outcome, "near", "a", "delivered"), 600 * 972 * 8);
    assert_eq!(account(&outcome, "far", "r", "delivered"), 600 * 972 * 8);
    assert_eq!(account(&outcome, "near", "a", "in flight"), 300 * 972 * 8);
    assert_eq!(account(&outcome, "far", "r", "in flight"), 0);
    assert_eq!(account(&outcome, "near", "a", "IP headers"), 900 * 160);
    assert_eq!(account(&outcome, "far", "r", "IP headers"), 600 * 160);
}

#[test]
fn receive_buffer_drops_have_crossed_the_last_link() {
    let mut case = lossy(ROUTED);
    case.grown[1] = json!({ "snmp": { "Udp": { "RcvbufErrors": 60 } } });
    assert_eq!(account(&case.outcome(), "far", "r", "lost datagrams"), 60 * 1000 * 8);
    // The counter of the socket itself takes precedence.
    case.got["streams"] = json!([{ "dropped": 10 }]);
    assert_eq!(account(&case.outcome(), "far", "r", "lost datagrams"), 10 * 1000 * 8);
}

#[test]
fn drops_of_the_senders_queue_have_not_crossed_the_first_link() {
    let mut case = lossy(ROUTED);
    case.grown[0] = json!({ "interfaces": { "near": { "qdiscs": [{ "kind": "tbf", "drops": 70 }] } } });
    assert_eq!(account(&case.outcome(), "near", "a", "lost datagrams"), 30 * 1000 * 8);
}

#[test]
fn unreassembled_fragments_are_lost_datagrams() {
    let sent = json!({ "messages": 100, "total_messages": 200 });
    let got = json!({ "messages": 80, "sequence": { "received": 80 } });
    let mut case = Case::new(bulk(ROUTED, "udp-stream", "message = \"4000 B\""), sent, got);
    // In total 160 complete datagrams of 3 fragments, and 60 fragments of others; half of the run is measured.
    case.grown[1] = json!({ "snmp": { "Ip": { "ReasmReqds": 160 * 3 + 60, "ReasmOKs": 160 } } });
    let each = (4008 + 60) * 8 / 3;
    assert_eq!(account(&case.outcome(), "far", "r", "lost datagrams"), 30 * each);
}

#[test]
fn multicast_is_posted_once_per_link() {
    let other = "[host.c]\n[link.other]\nends = [\"r\", \"c\"]\nmedium = \"ethernet-100\"\n";
    let traffic = "[traffic.tv]\nkind = \"multicast\"\nfrom = \"a\"\nto = [\"b\", \"c\"]\nmessage = \"972 B\"\nrate = \"1 Mbit/s\"\n";
    let point = point(&format!("{ROUTED}{other}{traffic}{}", crate::RUN));
    let outcome = Case::new(point, messages(100), messages(100)).outcome();
    for (link, from) in [("near", "a"), ("far", "r"), ("other", "r")] {
        assert_eq!(account(&outcome, link, from, "delivered"), 100 * 972 * 8, "{link}");
    }
}

fn tcp_case(links: &str, sent: Value, got: Value) -> Case {
    let end = |grown: Value| json!({ "streams": [{ "tcp": tcp(grown) }] });
    Case::new(bulk(links, "tcp-stream", "message = \"1 kB\""), end(sent), end(got))
}

#[test]
fn line_of_responses_has_a_sender_with_both_transports() {
    for transport in ["tcp", "udp"] {
        let keys = format!("request = \"1 kB\"\nresponse = \"1 kB\"\ntransport = \"{transport}\"");
        let end = json!({ "messages": 100, "streams": [{ "tcp": tcp(json!({ "data_segs_out": 100, "segs_out": 100 })) }] });
        let outcome = Case::new(bulk(DIRECT, "request-response", &keys), end.clone(), end).outcome();
        for from in ["a", "b"] {
            assert_eq!(idle(&outcome, "wire", from), ["application"], "{transport} from {from}");
        }
    }
}

#[test]
fn tcp_ledger_matches_hand_calculation() {
    let sent = json!({
        "data_segs_out": 110, "segs_out": 110, "bytes_sent": 110 * 1448, "bytes_retrans": 10 * 1448, "dsack_dups": 2,
        "data_segs_in": 0, "segs_in": 55, "busy_us": 900_000, "rwnd_limited_us": 300_000,
    });
    let got = json!({ "data_segs_in": 102, "segs_in": 102, "bytes_received": 100 * 1448, "segs_out": 55 });
    let outcome = tcp_case(ROUTED, sent, got).outcome();
    for (link, from) in [("near", "a"), ("far", "r")] {
        assert_eq!(account(&outcome, link, from, "delivered"), 100 * 1448 * 8);
    }
    // Ten segments were retransmitted: two of them arrived twice, eight had been lost, headers included.
    assert_eq!(account(&outcome, "near", "a", "duplicate"), 2 * 1448 * 8);
    assert_eq!(account(&outcome, "near", "a", "lost datagrams"), 8 * (1448 + 52) * 8);
    assert_eq!(account(&outcome, "near", "a", "transport headers"), 102 * 32 * 8);
    assert_eq!(account(&outcome, "far", "r", "lost datagrams"), 0);
    assert_eq!(account(&outcome, "near", "r", "ACK and control"), 55 * 52 * 8);
    // Of the idle time, 30 % are due to the receive window, 60 % to the congestion window, 10 % are unknown.
    assert_eq!(idle(&outcome, "near", "a"), ["receive window", "congestion window", "unknown"]);
    let of = |reason: &str| account(&outcome, "near", "a", &format!("idle: {reason}"));
    let whole = of("receive window") + of("congestion window") + of("unknown");
    assert!(
        of("receive window").abs_diff(whole * 3 / 10) <= 1
            && of("congestion window").abs_diff(whole * 6 / 10) <= 1
    );
}

#[test]
fn idle_time_behind_the_bottleneck_is_upstream() {
    let reasons = |kind: BottleneckKind, name: &str| {
        let mut case = Case::new(datagrams(ROUTED), messages(100), messages(100));
        case.limit = Some(engpass_outcome::Bottleneck { kind, ..of_link(name) });
        let outcome = case.outcome();
        [idle(&outcome, "near", "a"), idle(&outcome, "far", "r")].concat()
    };
    assert_eq!(reasons(BottleneckKind::Link, "near"), ["unknown", "upstream"]);
    assert_eq!(reasons(BottleneckKind::Link, "far"), ["unknown", "unknown"]);
    assert_eq!(reasons(BottleneckKind::Acknowledgements, "near"), ["unknown", "unknown"]);
}

#[test]
fn idle_time_follows_the_state_of_the_sender() {
    let of = |keys: &str, sent: Value| {
        let case =
            Case::new(bulk(DIRECT, "udp-stream", &format!("message = \"1 kB\"\n{keys}")), sent, json!({}));
        let outcome = case.outcome();
        idle(&outcome, "wire", "a")
    };
    assert_eq!(of("rate = \"1 Mbit/s\"", json!({ "bytes": 125_000 })), ["application"]);
    assert_eq!(of("rate = \"1 Mbit/s\"", json!({ "bytes": 100_000 })), ["application", "CPU"]);
    let busy = json!({ "user_ns": 500_000_000, "system_ns": 250_000_000, "waited_ns": 250_000_000 });
    assert_eq!(of("", json!({ "cpu": busy })), ["CPU"]);
    let others = json!([{ "busy_ppm": 990_000 }, { "busy_ppm": 900_000, "steal_ppm": 90_000 }]);
    assert_eq!(of("", json!({ "cores": others })), ["CPU"]);
    assert_eq!(of("", json!({})), ["unknown"]);
}

#[test]
fn data_in_the_sender_queue_has_not_crossed_the_link() {
    let sent = json!({ "data_segs_out": 2000, "bytes_sent": 2000 * 1448 });
    let got = json!({ "data_segs_in": 700, "bytes_received": 700 * 1448 });
    let outcome = tcp_case(DIRECT, sent, got).outcome();
    assert_eq!(ledger(&outcome, "wire", "a").capacity, 10_000_000);
    assert_eq!(outcome.measured.unwrap().notes, Vec::<String>::new());
}

#[test]
fn line_above_its_rate_has_a_note() {
    let outcome = Case::new(datagrams(DIRECT), messages(2000), messages(2000)).outcome();
    assert_eq!(ledger(&outcome, "wire", "a").capacity, 2000 * 1000 * 8);
    assert!(outcome.measured.unwrap().notes[0].contains("carried 60.0 % more than its rate"));
}

#[test]
fn line_without_a_capacity_has_a_note_without_a_share() {
    let traffic = "kind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"972 B\"";
    let short = point(&format!("{DIRECT}\n[traffic.bulk]\n{traffic}\n[run]\nduration = \"10 ns\"\n"));
    let mut got = messages(2);
    got["elapsed_ns"] = json!(10);
    let outcome = Case::new(short, messages(2), got).outcome();
    let notes = outcome.measured.unwrap().notes;
    assert!(notes[0].starts_with("link `wire` carried more than its rate from `a` on"), "{notes:?}");
}

#[test]
fn undeclared_traffic_is_counted_at_the_interface() {
    let mut case = Case::new(datagrams(DIRECT), messages(100), messages(100));
    case.sent = json!({ "messages": 100, "total_messages": 100, "streams": [{ "granted": { "local": "192.0.2.1:9" } }] });
    case.addresses[0] = json!([{ "interface": "eth0", "address": "192.0.2.1/24" }]);
    // The kernel counts frames without their FCS, here of 14 B more than the packets.
    case.grown[0] = json!({ "interfaces": { "eth0": { "tx_bytes": 100 * 1014 + 50_000 } } });
    assert_eq!(account(&case.outcome(), "wire", "a", "undeclared traffic"), 400_000);
    case.grown[0]["interfaces"]["eth0"]["tx_bytes"] = json!(100 * 1014 + 10_000);
    assert_eq!(account(&case.outcome(), "wire", "a", "undeclared traffic"), 0);
}

#[test]
fn links_without_an_agent_have_no_ledger() {
    let more = "[router.x]\n[link.middle]\nends = [\"r\", \"x\"]\nmedium = \"ethernet-100\"\n";
    let outcome = Case::new(datagrams(&format!("{ROUTED}{more}")), messages(1), messages(1)).outcome();
    assert_eq!(outcome.links.keys().collect::<Vec<_>>(), ["near", "far"]);
    let notes = outcome.measured.unwrap().notes;
    assert_eq!(notes, ["no agent runs at the ends of link `middle`: packets on it were not counted"]);
}

#[test]
fn ipv6_has_longer_headers_and_its_own_in_fragments() {
    let sent = |size: u64| json!({ "messages": 10, "bytes": 10 * size, "streams": [{ "granted": { "local": "[2001:db8::1]:9" } }] });
    let headers = |size: u64| {
        let point = bulk(DIRECT, "udp-stream", &format!("message = \"{size} B\""));
        let outcome = Case::new(point, sent(size), json!({ "messages": 10, "bytes": 10 * size })).outcome();
        account(&outcome, "wire", "a", "IP headers") / 80
    };
    assert_eq!(headers(1000), 40);
    // Three fragments of at most 1500 B with headers of 48 B.
    assert_eq!(headers(4000), 3 * 48);
}

#[test]
fn short_frames_are_padded_and_a_tag_counts_among_their_bytes() {
    let padding = |tag: &str| {
        let links = format!(
            "[host.a]\n[host.b]\n[link.wire]\nends = [\"a\", \"b\"]\nmedium = \"ethernet-10\"\n{tag}"
        );
        let sent = json!({ "messages": 10 });
        let outcome =
            Case::new(bulk(&links, "udp-stream", "message = \"12 B\""), sent.clone(), sent).outcome();
        (account(&outcome, "wire", "a", "padding") / 80, account(&outcome, "wire", "a", "frame headers") / 80)
    };
    assert_eq!(padding(""), (64 - 18 - 40, 18));
    assert_eq!(padding("vlan = true"), (64 - 22 - 40, 22));
}

/// A cell of an OC-3c is not a whole number of bits, and the line also frames idle time.
#[test]
fn atm_links_have_cells_in_their_ledgers() {
    let links = "[host.a]\n[host.b]\n[link.wire]\nends = [\"a\", \"b\"]\nmedium = \"oc-3c\"\n[circuit.vc]\nfrom = \"a\"\nto = \"b\"\n";
    let outcome = Case::new(datagrams(links), messages(100), messages(100)).outcome();
    let unit = 13;
    assert_eq!(ledger(&outcome, "wire", "a").units_per_bit, unit);
    // 1008 B with LLC/SNAP and trailer take 22 cells.
    assert_eq!(account(&outcome, "wire", "a", "cell headers"), 100 * 22 * 40 * u128::from(unit));
    assert_eq!(account(&outcome, "wire", "a", "AAL5 trailers"), 100 * 64 * u128::from(unit));
    assert_eq!(account(&outcome, "wire", "a", "encapsulation"), 100 * 64 * u128::from(unit));
    assert_eq!(account(&outcome, "wire", "a", "delivered"), 100 * 972 * 8 * u128::from(unit));
    let capacity = ledger(&outcome, "wire", "a").capacity;
    assert!(account(&outcome, "wire", "a", "physical framing").abs_diff(capacity / 27) < 1000);
}

#[test]
fn each_direction_has_its_own_capacity() {
    let links = DIRECT.replace("\"10 Mbit/s\"", "{ forward = \"20 Mbit/s\", backward = \"1 Mbit/s\" }");
    let outcome = Case::new(datagrams(&links), messages(1), messages(1)).outcome();
    assert_eq!(ledger(&outcome, "wire", "a").capacity, 20_000_000);
    assert_eq!(ledger(&outcome, "wire", "b").capacity, 1_000_000);
}

#[test]
fn every_subflow_is_posted_to_its_own_link() {
    let two = DIRECT.replace("link.wire", "link.one")
        + &DIRECT[DIRECT.find("[link").unwrap()..].replace("link.wire", "link.two");
    let mut case = Case::new(
        bulk(&two, "tcp-stream", "message = \"8 kB\"\nlive = { mptcp = true }"),
        json!({}),
        json!({}),
    );
    let address = |host: u64| json!([{ "interface": "one", "address": format!("10.64.0.{host}") }, { "interface": "two", "address": format!("10.64.1.{host}") }]);
    case.addresses = [address(1), address(2)];
    let subflows = |host: u64, peer: u64, bytes: &str, segments: &str| {
        let info =
            |size: u64| json!({ "bytes_retrans": 0, "snd_mss": 1000, bytes: size, segments: size / 1000 });
        let one = |link: u64, open: Value, close: Value| json!({ "local": format!("10.64.{link}.{host}:1"), "remote": format!("10.64.{link}.{peer}:1"), "tcp": { "open": open, "close": close, "end": close } });
        // The second subflow began within the window.
        let subflows = [one(0, info(100_000), info(400_000)), one(1, Value::Null, info(200_000))];
        json!({ "messages": 60, "streams": [{ "subflows": subflows }] })
    };
    case.sent = subflows(1, 2, "bytes_sent", "data_segs_out");
    case.got = subflows(2, 1, "bytes_received", "data_segs_in");
    let outcome = case.outcome();
    assert_eq!(account(&outcome, "one", "a", "delivered"), 300_000 * 8);
    assert_eq!(account(&outcome, "two", "a", "delivered"), 200_000 * 8);
    // 200 segments of 1000 B with their headers: no line has segments of the other one.
    assert_eq!(account(&outcome, "two", "a", "IP headers"), 200 * 160);
}
