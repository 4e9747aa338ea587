//! Equal-cost paths and outages, with injected packets.

use engpass_model::time::SECOND;
use engpass_simulate::SimOutcome;
use engpass_simulate::injection::{DeliveryReport, Errors, InjectedNetwork, Packet, Transport};

use super::{all, outside, packet, way};

/// Three hosts at two routers that are joined by two lines, or twice by a line to a middle node and one behind it.
fn joined(middle: Option<[&str; 2]>, policy: &str, events: &str) -> String {
    let mut text = format!(
        r#"
        name = "two ways"
        [host.a]
        [host.b]
        [host.c]
        [router.near]
        ecmp = {policy}
        [router.far]
        [link.in]
        ends = ["a", "near"]
        medium = "ethernet-1g"
        "#
    );
    let mut link = |name: &str, ends: [&str; 2]| {
        text += &format!("[link.{name}]\nends = {ends:?}\nmedium = \"ethernet-100\"\n");
    };
    match middle {
        None => {
            link("upper", ["near", "far"]);
            link("lower", ["near", "far"]);
        }
        Some(_) => {
            for way in ["upper", "lower"] {
                link(way, ["near", &format!("{way}-node")]);
                link(&format!("{way}-far"), [&format!("{way}-node"), "far"]);
            }
        }
    }
    for (node, kind) in ["upper", "lower"].iter().zip(middle.into_iter().flatten()) {
        let kind = if kind == "router" { "" } else { "kind = \"ethernet\"\n" };
        let table = if kind.is_empty() { "router" } else { "switch" };
        text += &format!("[{table}.{node}-node]\n{kind}");
    }
    text += r#"
        [link.out]
        ends = ["far", "b"]
        medium = "ethernet-1g"
        [link.third]
        ends = ["far", "c"]
        medium = "ethernet-1g"
        [traffic.any]
        kind = "udp-stream"
        from = "a"
        to = "b"
        message = "1 kB"
        rate = "1 Mbit/s"
    "#;
    text + events
}

/// Returns the frames that these links have carried from their first end.
fn carried<const N: usize>(network: &mut InjectedNetwork, links: [&str; N]) -> [u64; N] {
    let seen = network.seen();
    links.map(|link| seen.iter().find(|line| line.link == link).expect("the outcome has this link").sent)
}

#[test]
fn round_robin_alternates_and_hash_keeps_each_flow_path() {
    let mut sprayed = outside(&joined(None, "\"round-robin\"", ""));
    let to = way(&sprayed, "a to b");
    // Injected as a train, which is split because each packet needs a decision.
    sprayed.inject_identical(5, to, packet(1000, 0), 10);
    assert_eq!(all(&mut sprayed, SECOND).len(), 10);
    assert_eq!(carried(&mut sprayed, ["upper", "lower"]), [5, 5]);
    let mut hashed = outside(&joined(None, "\"hash\"", ""));
    let mut used = [0, 0];
    for flow in 0..16_u16 {
        let transport = Transport { protocol: 6, ports: [49_152 + flow, 80] };
        let before = carried(&mut hashed, ["upper", "lower"]);
        let at = u64::from(flow + 1) * SECOND;
        for token in 0..4 {
            hashed.inject(at, to, Packet { transport, ..packet(1000, u64::from(4 * flow) + token) });
        }
        assert_eq!(all(&mut hashed, at + SECOND / 2).len(), 4);
        let after = carried(&mut hashed, ["upper", "lower"]);
        let more = [after[0] - before[0], after[1] - before[1]];
        assert!(more == [4, 0] || more == [0, 4], "{more:?}");
        used[usize::from(more[1] > 0)] += 1;
    }
    assert!(used.iter().all(|flows| *flows >= 3), "{used:?}");
}

/// Two paths have the same number of links, and one has a router more.
#[test]
fn delivery_report_counts_the_routers_passed() {
    let text = joined(Some(["router", "switch"]), "\"round-robin\"", "");
    let mut network = outside(&text);
    let to = way(&network, "a to b");
    for token in 0..4 {
        network.inject(1 + token * SECOND / 10, to, packet(1000, token));
    }
    let reports = all(&mut network, SECOND);
    let routers: Vec<u8> = reports
        .iter()
        .map(|report| match report {
            DeliveryReport::Delivered { routers, .. } => *routers,
            _ => panic!("expected deliveries: {reports:?}"),
        })
        .collect();
    assert_eq!(routers, [3, 2, 3, 2]);
    // A packet whose TTL expires at the third router arrives by the path with only two.
    let short = |ttl, token| Packet { ttl, errors: Errors::V4, ..packet(1000, token) };
    for token in 0..4 {
        network.inject((2 + token) * SECOND, to, short(3, token));
    }
    let reports = all(&mut network, 9 * SECOND);
    assert_eq!(speakers(&reports), [("far", 0), ("far", 2)]);
    assert_eq!(reports.len(), 2 + 2 * 2);
    // Packets whose TTL expires at the second node are reported by two different nodes; one whose TTL expires earlier takes no turn.
    for (token, ttl) in [(0, 2), (1, 1), (2, 2)] {
        network.inject((10 + token) * SECOND, to, short(ttl, token));
    }
    let reports = all(&mut network, 19 * SECOND);
    assert_eq!(speakers(&reports), [("upper-node", 0), ("near", 1), ("far", 2)]);
}

/// Returns the routers of messages that have arrived, and the tokens of the packets that they quote.
fn speakers(reports: &[DeliveryReport]) -> Vec<(&'static str, u64)> {
    let speaker = |report: &DeliveryReport| match *report {
        DeliveryReport::Message { said, token, .. } => {
            Some((["near", "far", "upper-node"][usize::from(said.router)], token))
        }
        _ => None,
    };
    reports.iter().filter_map(speaker).collect()
}

/// Packets to a group take the first of equal-cost paths, cross each line once, and take no turn of a policy.
#[test]
fn multicast_takes_the_first_equal_cost_path() {
    for middle in [None, Some(["router", "switch"]), Some(["switch", "router"])] {
        let reports = ["\"first\"", "\"round-robin\"", "{ hash = { seed = 5 } }"].map(|policy| {
            let mut network = outside(&joined(middle, policy, ""));
            let group = network.group(0, &[1, 2]);
            assert_eq!(network.members(group).len(), 2);
            network.begin_window(0, &mut |_| {});
            for number in 0..3 {
                network.inject_group(5 + number, group, packet(1400, 0), &[2 * number, 2 * number + 1]);
            }
            let reports = all(&mut network, SECOND);
            assert_eq!(carried(&mut network, ["in", "upper", "lower", "out", "third"]), [3, 3, 0, 3, 3]);
            let outcome = network.end_window(2 * SECOND, &mut |_| {}).expect("the ledger balances");
            assert_eq!(outcome.flows.len(), 2);
            assert!(outcome.flows.iter().all(|(_, flow)| flow.datagrams.unwrap().received == 3));
            // The next packet to a single host takes the first turn.
            let to = way(&network, "a to b");
            network.inject(3 * SECOND, to, packet(1000, 9));
            all(&mut network, 4 * SECOND);
            if policy.contains("robin") {
                assert_eq!(carried(&mut network, ["upper", "lower"]), [4, 0]);
            }
            reports
        });
        assert_eq!(reports[0].len(), 6);
        assert!(reports.iter().all(|other| *other == reports[0]), "{reports:?}");
    }
}

const CUT: &str = r#"
    [event.cut]
    at = "10 ms"
    target = "upper"
    change = "down"
    every = "100 ms"
    [event.mended]
    at = "30 ms"
    target = "upper"
    change = "up"
    every = "100 ms"
"#;

/// Event times count from `begin_events`, continue beyond the run of the file, and each loss is reported once, at its instant.
#[test]
fn event_times_count_from_begin_events() {
    let ms = SECOND / 1000;
    for begin in [0, 7 * ms, 3 * SECOND] {
        let mut network = outside(&(joined(None, "\"first\"", CUT) + "[run]\nduration = \"50 ms\"\n"));
        let to = way(&network, "a to b");
        let mut reports = Vec::new();
        network.run_until(begin.saturating_sub(1), &mut |_| {});
        assert_eq!(network.begin_events(begin), begin);
        let mut wanted = Vec::new();
        for round in [0, 1, 700] {
            let from = begin + round * 100 * ms;
            for (place, at) in [5, 20, 40].into_iter().enumerate() {
                let token = 3 * round + place as u64;
                network.inject(from + at * ms, to, packet(1000, token));
                wanted.push((token, place == 1));
            }
        }
        network.run_until(begin + 100 * SECOND, &mut |output| reports.push(output));
        let lost: Vec<_> = reports
            .iter()
            .map(|output| (output.token(), matches!(output, DeliveryReport::Lost { .. })))
            .collect();
        assert_eq!(lost, wanted);
        for output in &reports {
            let DeliveryReport::Lost { at, lost_at, place, .. } = *output else { continue };
            let (place, cause) = network.place(place);
            assert_eq!((at, place.to_string().as_str(), cause), (lost_at, "near -> far", "line down"));
        }
    }
}

/// Packets in the queue are lost when the line goes down, the packet being sent when it would have arrived.
#[test]
fn queued_packets_are_lost_with_a_down_line() {
    let ms = SECOND / 1000;
    let once = CUT.replace("every = \"100 ms\"", "");
    for policy in ["\"first\"", "\"hash\"", "\"round-robin\""] {
        let mut network = outside(&joined(None, policy, &once));
        let to = way(&network, "a to b");
        network.begin_events(0);
        network.begin_window(2 * ms, &mut |_| {});
        // Twenty packets at once: at least 1.2 ms on a line of 100 Mbit/s, and some time before the line goes down.
        network.inject_identical(9_500_000_000, to, packet(1500, 0), 20);
        let mut reports = Vec::new();
        network.run_until(15 * ms, &mut |output| reports.push(output));
        let down: Vec<_> =
            network.seen().into_iter().filter(|line| line.down).map(|line| line.link).collect();
        assert_eq!(down, ["upper", "upper"], "both directions of the link are down");
        assert_eq!(reports.len(), 20, "each packet is reported once");
        let down = 10 * ms;
        let lost: Vec<u64> = reports
            .iter()
            .filter_map(|report| match report {
                DeliveryReport::Lost { at, .. } => Some(*at),
                _ => None,
            })
            .collect();
        // The cut loses the packets in the queue, and one on the line.
        assert!(lost.len() > 2 || policy == "\"hash\"", "{policy}: {lost:?}");
        if let Some((last, waiting)) = lost.split_last() {
            assert!(waiting.iter().all(|at| *at == down) && *last > down && *last < down + ms, "{lost:?}");
        }
        // A window ends in the outage, and the next one begins there.
        for (end, begin) in [(20, 2), (50, 20)] {
            let outcome = network.end_window(end * ms, &mut |_| {}).expect("the ledger balances");
            network.begin_window(end * ms, &mut |_| {});
            let upper = &outcome.links[1].1.directions[0];
            let share = upper.ledger.get("idle: line down") as f64 / upper.capacity as f64;
            let down = share * (end - begin) as f64;
            // The outage counts from the end of the packet being sent.
            assert!((9.8..=10.0).contains(&down), "{down} ms");
        }
    }
}

/// Each window has the longest time without a received packet, from its begin to its end, and the packets lost to lines that were down.
#[test]
fn windows_have_the_longest_gap_of_each_path_if_there_are_events() {
    let ms = SECOND / 1000;
    let once = CUT.replace("every = \"100 ms\"", "");
    let mut network = outside(&joined(None, "\"first\"", &once));
    let to = way(&network, "a to b");
    network.begin_events(0);
    network.begin_window(2 * ms, &mut |_| {});
    // A packet every 2 ms; the line is down from 10 to 30 ms.
    for at in (4..50).step_by(2) {
        network.inject(at * ms, to, packet(1500, at));
    }
    let outage = |outcome: SimOutcome| outcome.flows["a to b"].outage.expect("the testbed has events");
    let first = outage(network.end_window(60 * ms, &mut |_| {}).expect("the ledger balances"));
    assert!((20..25).contains(&((1000.0 * first.longest_s) as u64)), "{first:?}");
    assert!((9..=11).contains(&first.lost), "{first:?}");
    network.begin_window(60 * ms, &mut |_| {});
    network.inject(65 * ms, to, packet(1500, 99));
    let second = outage(network.end_window(100 * ms, &mut |_| {}).expect("the ledger balances"));
    assert!((34..35).contains(&((1000.0 * second.longest_s) as u64)), "{second:?}");
    assert_eq!(second.lost, 0);
}
