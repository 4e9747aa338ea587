//! The replay guarantee of packet injection: injected packets and their instants determine all reports; every token returns once; the ledgers of consecutive
//! windows add up.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::event::Event;
use engpass_model::queue::Ecn;
use engpass_simulate::SimOutcome;
use engpass_simulate::injection::{DeliveryReport, Errors, InjectedNetwork, Packet, Transport};
use engpass_testbed::{Source, Testbed, load};
use proptest::collection::vec;
use proptest::prelude::*;

use super::choices::choices;
use super::modelled::{SEED, plain, plan, topology, way};
use crate::networks::{asking, bonds, frames, joined, mesh, network};

/// A step of the caller: a preceding action, the elapsed picoseconds, identical packets to inject (path, bytes, flow, ECN, whether they may be fragmented,
/// messages about them, TTL), and their number.
type Step = (u8, u64, (usize, u32, u8, u8, (bool, u8, u8)), u8);

/// Returns steps with at most `most` packets each.
fn steps(most: u8) -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![Just(0), 1u64..=1_000, 1_000u64..=100_000_000, 100_000_000u64..=20_000_000_000];
    let bytes = prop_oneof![20u32..=60, 60u32..=1500, 1500u32..=20_000];
    let count = prop_oneof![4 => Just(1u8), 1 => 1..=most];
    let ttl = prop_oneof![4 => Just(64u8), 1 => 0u8..4];
    let headers = (any::<bool>(), 0u8..3, ttl);
    vec((0u8..9, gap, (0usize..64, bytes, 0u8..3, 0u8..3, headers), count), 1..60)
}

/// Returns two hosts joined by one line, or by several with switches or routers between, whose queues may be small.
fn line() -> impl Strategy<Value = Testbed> {
    let medium = || prop::sample::select(vec!["ethernet-10", "ethernet-1g", "ethernet-100g"]);
    let delay = prop::sample::select(vec!["", "delay = \"3 us\"", "delay = \"2 ms\"", "loss = \"3 %\""]);
    let queue = prop::sample::select(vec!["7 packets", "30 packets", "20 kB", "2 MB"]);
    ((medium(), medium(), medium()), delay, 1u32..60, 0u8..4, queue).prop_map(
        |((first, second, third), delay, room, between, queue)| {
            let own = |limit: &str| format!("queue = {{ drop-tail = {{ limit = \"{limit}\" }} }}\n");
            let link = |name: &str, ends: [&str; 2], medium: &str, more: &str| {
                format!("[link.{name}]\nends = {ends:?}\nmedium = \"{medium}\"\n{more}\n")
            };
            let inner = match between {
                0 => link("line", ["a", "b"], first, delay),
                1 => {
                    let switch = format!("[switch.s]\nkind = \"ethernet\"\n{}", own(queue));
                    switch + &link("line", ["a", "s"], first, "") + &link("last", ["s", "b"], second, delay)
                }
                _ => {
                    // A router that may send messages disables lookahead, and therefore trains.
                    let icmp = format!("icmp = {}\n", between == 2);
                    let routers = format!("[router.r]\n{icmp}[router.t]\n{icmp}{}", own(queue));
                    routers
                        + &link("line", ["a", "r"], first, "")
                        + &link("middle", ["r", "t"], second, delay)
                        + &link("last", ["t", "b"], third, "mtu = \"1400 B\"")
                }
            };
            let text = format!(
                "name = \"line\"\n[host.a]\nnic_buffer = \"{} B\"\n[host.b]\n{inner}\
                 [traffic.any]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1 kB\"\nrate = \"1 Mbit/s\"\n[run]\nduration = \"1 s\"\n",
                room * 1500
            );
            let source = Source { name: "line.toml".into(), text };
            let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.summary()));
            campaign.point("base", &[]).expect("a checked file has a base point").testbed
        },
    )
}

fn outside(testbed: &Testbed) -> InjectedNetwork {
    InjectedNetwork::new(testbed, &topology(testbed), SEED).expect("the model supports the testbed")
}

/// Returns the packet that a step injects.
fn packet(step: &Step, token: u64) -> Packet {
    let (_, _, (_, bytes, flow, ecn, (whole, errors, ttl)), _) = *step;
    let ecn = [Ecn::NotCapable, Ecn::Capable, Ecn::Marked][usize::from(ecn)];
    let errors = [Errors::None, Errors::V4, Errors::V6][usize::from(errors)];
    let transport = Transport { protocol: 17, ports: [flow.into(), 9] };
    Packet { bytes, header: 8, transport, ecn, token, whole, errors, ttl, ..Packet::default() }
}

/// A network after a sequence of steps.
struct Played {
    /// Injected packets with their instants, the end of the run, and the reports up to then.
    log: Vec<(u64, u32, Packet)>,
    end: u64,
    /// Instant at which the events of the file started, if they did.
    events: Option<u64>,
    reports: Vec<DeliveryReport>,
    /// Outcomes of windows.
    outcomes: Vec<String>,
}

/// Executes steps on a network, until some time after the last packet. With `once`, identical packets are injected in one call, otherwise one by one.
fn played(testbed: &Testbed, steps: &[Step], once: bool) -> Played {
    let mut live = outside(testbed);
    let (mut log, mut reports, mut outcomes, mut now) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut events = None;
    for step in steps {
        let each = &mut |output| reports.push(output);
        match step.0 {
            0 | 1 => {}
            2 => live.run_until(now, each),
            3 => {
                while let Some(at) = live.next_wake().filter(|at| *at <= now) {
                    live.run_until(at, each);
                }
            }
            // The caller is late.
            4 => {
                now += step.1 / 2;
                live.run_until(now, each);
            }
            5 => drop(live.seen()),
            8 => {
                let at = live.begin_events(now);
                events.get_or_insert(at);
            }
            _ if live.window().is_none() => live.begin_window(now, each),
            _ => {
                let outcome = live.end_window(now, each).expect("the ledger balances");
                outcomes
                    .push(serde_json::to_string(&outcome.stored()).expect("an outcome serializes to JSON"));
            }
        }
        now += step.1;
        let way = (step.2.0 % live.ways().len()) as u32;
        let first = packet(step, log.len() as u64);
        let packets = (0..step.3.into()).map(|place| Packet { token: first.token + place, ..first });
        if once {
            let at = live.inject_identical(now, way, first, step.3.into());
            log.extend(packets.map(|packet| (at, way, packet)));
        } else {
            log.extend(packets.map(|packet| (live.inject(now, way, packet), way, packet)));
        }
    }
    let end = now + 40_000_000_000;
    live.run_until(end, &mut |output| reports.push(output));
    let put_in = log.len() + messages(&reports);
    assert_eq!(
        reports.len() as u64 + live.count_unreported(),
        put_in as u64,
        "each packet is reported or still in the network"
    );
    Played { log, end, events, reports, outcomes }
}

/// Returns the number of losses about which a router sends a message.
fn messages(reports: &[DeliveryReport]) -> usize {
    reports.iter().filter(|output| matches!(output, DeliveryReport::Lost { message: true, .. })).count()
}

fn is_of_message(output: &DeliveryReport) -> bool {
    matches!(output, DeliveryReport::Message { .. } | DeliveryReport::MessageLost { .. })
}

fn obeys(testbed: &Testbed, steps: &[Step]) -> Result<(), TestCaseError> {
    let Played { log, end, events, reports, outcomes } = played(testbed, steps, true);
    let one_by_one = played(testbed, steps, false);
    prop_assert_eq!(&one_by_one.reports, &reports, "identical packets may be injected together");
    prop_assert_eq!(&one_by_one.outcomes, &outcomes);
    let count = log.len();
    prop_assert!(reports.is_sorted_by_key(DeliveryReport::at), "reports are in order of time: {:?}", reports);
    let tokens: BTreeSet<_> = reports.iter().map(|output| (output.token(), is_of_message(output))).collect();
    prop_assert_eq!(tokens.len(), reports.len(), "each packet is reported once");
    let announced = |output: &DeliveryReport| {
        let is_loss = |other: &&DeliveryReport| matches!(other, DeliveryReport::Lost { message: true, token, .. } if *token == output.token());
        reports.iter().take_while(|other| *other != output).any(|other| is_loss(&other))
    };
    prop_assert!(reports.iter().filter(|output| is_of_message(output)).all(announced), "{:?}", reports);
    let count = count + messages(&reports);
    let (mut again, mut replayed) = (outside(testbed), Vec::new());
    if let Some(at) = events {
        prop_assert_eq!(again.begin_events(at), at);
    }
    for (at, way, packet) in log {
        prop_assert_eq!(again.inject(at, way, packet), at);
    }
    again.run_until(end, &mut |output| replayed.push(output));
    prop_assert_eq!(replayed, reports);
    // Without endless generators, events and keepalives, everything comes to an end.
    let goes_on = |event: &Event| event.every.is_some() || event.change.is_none();
    if testbed.traffic.values().all(|traffic| traffic.cells().is_none())
        && !testbed.events.values().any(goes_on)
        && testbed.tunnels.values().all(|tunnel| tunnel.keepalive.is_none())
    {
        let mut rest = Vec::new();
        while let Some(at) = again.next_wake() {
            again.run_until(at, &mut |output| rest.push(output));
        }
        prop_assert_eq!((again.count_unreported(), rest.len()), (0, count + messages(&rest) - tokens.len()));
    }
    Ok(())
}

/// Returns the outcomes of consecutive windows with these edges.
fn windows(testbed: &Testbed, edges: &[u64]) -> Vec<SimOutcome> {
    let mut outside = outside(testbed);
    outside.begin_events(0);
    for (at, ends, packet) in plan(testbed) {
        let way = way(&outside, &ends);
        outside.inject(at, way, packet);
    }
    let window = |edges: &[u64]| {
        outside.begin_window(edges[0], &mut |_| {});
        outside.end_window(edges[1], &mut |_| {}).expect("the ledger balances")
    };
    edges.windows(2).map(window).collect()
}

/// Returns the reports of packets to all hosts, with `parts` measurement windows during the run.
fn sent_to_all(testbed: &Testbed, packets: &[(u64, u32)], parts: u64) -> Vec<DeliveryReport> {
    let mut network = outside(testbed);
    network.begin_events(0);
    let group = network.group(0, &[0, 1, 2]);
    let ways = network.members(group).to_vec();
    let mtu = ways.iter().map(|way| network.ways()[*way as usize].mtu).min().unwrap_or(0);
    let (mut at, mut token, mut reports) = (0, 0, Vec::new());
    for (gap, bytes) in packets {
        at += gap;
        let tokens: Vec<u64> = (token..).take(ways.len()).collect();
        token += tokens.len() as u64;
        let packet = Packet { bytes: (*bytes).min(mtu as u32), header: 8, ..Packet::default() };
        network.inject_group(at, group, packet, &tokens);
        // And one to a single member.
        network.inject(at, ways[0], Packet { token, ..packet });
        token += 1;
    }
    let end = at + 40_000_000_000;
    for part in 1..=parts {
        let edge = end / (parts + 1) * part;
        network.begin_window(edge, &mut |output| reports.push(output));
        network.run_until(edge + 1_000_000, &mut |output| reports.push(output));
        network
            .end_window(edge + 2_000_000, &mut |output| reports.push(output))
            .expect("the ledger balances");
    }
    network.run_until(end, &mut |output| reports.push(output));
    assert_eq!(
        reports.len() as u64 + network.count_unreported(),
        token,
        "each packet is reported or still in the network"
    );
    reports
}

/// By flow: datagrams sent, received and lost. By line: units sent, lost, and idle time.
#[derive(Debug, PartialEq)]
struct Sums {
    flows: BTreeMap<String, [u64; 3]>,
    lines: Vec<[u64; 3]>,
}

/// Returns sums over outcomes.
fn sums(outcomes: &[SimOutcome]) -> Sums {
    let (mut flows, mut lines) = (BTreeMap::new(), Vec::new());
    for outcome in outcomes {
        for (name, flow) in &outcome.flows {
            let sum: &mut [u64; 3] = flows.entry(name.clone()).or_default();
            let seen = flow.datagrams.unwrap();
            let counts = [seen.sent, seen.received, seen.lost];
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        let directions = outcome.links.iter().flat_map(|(_, link)| &link.directions);
        for (place, line) in directions.enumerate() {
            if lines.len() <= place {
                lines.push([0; 3]);
            }
            let counts = [line.carried.sent(), line.carried.lost(), line.idle];
            lines[place].iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    flows.retain(|_, counts| *counts != [0; 3]);
    Sums { flows, lines }
}

fn adds_up(testbed: &Testbed, parts: &[u64]) -> Result<(), TestCaseError> {
    let (from, end) = (testbed.run.warmup.expect("the testbed has a warm-up").0, testbed.run.duration.0 * 2);
    let mut edges: Vec<u64> = parts.iter().map(|part| from + (end - from) / 1000 * part).collect();
    edges.extend([from, end]);
    edges.sort_unstable();
    edges.dedup();
    let [whole, parts] = [&[from, end], &edges[..]].map(|edges| windows(testbed, edges));
    prop_assert_eq!(sums(&parts), sums(&whole));
    Ok(())
}

proptest! {
    #[test]
    fn frames_satisfy_the_replay_guarantee(drawn in frames(), steps in steps(3)) {
        obeys(&plain(&drawn), &steps)?;
    }

    #[test]
    fn ecmp_frames_satisfy_the_replay_guarantee(drawn in mesh(), steps in steps(3)) {
        obeys(&plain(&drawn), &steps)?;
    }

    #[test]
    fn circuits_at_routers_satisfy_the_replay_guarantee(drawn in joined(), steps in steps(3)) {
        obeys(&plain(&drawn), &steps)?;
    }

    #[test]
    fn bonds_satisfy_the_replay_guarantee(drawn in bonds(), steps in steps(3)) {
        obeys(&drawn.0, &steps)?;
    }

    #[test]
    fn address_resolution_satisfies_the_replay_guarantee(drawn in asking(), steps in steps(3)) {
        obeys(&plain(&drawn), &steps)?;
    }

    /// Identical packets form trains here.
    #[test]
    fn trains_satisfy_the_replay_guarantee(line in line(), steps in steps(50)) {
        obeys(&line, &steps)?;
    }

    #[test]
    fn cells_satisfy_the_replay_guarantee(drawn in network(), steps in steps(3)) {
        obeys(&plain(&drawn), &steps)?;
    }

    /// Hosts wait for room in their NICs here.
    #[test]
    fn hosts_with_full_nics_satisfy_the_replay_guarantee(drawn in prop_oneof![frames().boxed(), network().boxed()], steps in steps(3)) {
        obeys(&drawn.0, &steps)?;
    }

    #[test]
    fn ecmp_with_outages_satisfies_the_replay_guarantee(drawn in choices(), steps in steps(6)) {
        obeys(&drawn.0, &steps)?;
    }

    #[test]
    fn multicast_with_outages_satisfies_the_replay_guarantee(
        drawn in choices(),
        packets in vec((prop_oneof![0u64..=1_000_000, 0u64..=9_000_000_000], 20u32..=1500), 1..40),
        parts in 1u64..9,
    ) {
        let reports = sent_to_all(&drawn.0, &packets, parts);
        let tokens: BTreeSet<_> = reports.iter().map(DeliveryReport::token).collect();
        prop_assert_eq!(tokens.len(), reports.len(), "each packet is reported once");
        prop_assert!(reports.is_sorted_by_key(DeliveryReport::at), "reports are in order of time: {:?}", reports);
        prop_assert_eq!(sent_to_all(&drawn.0, &packets, 0), reports);
    }

    #[test]
    fn windows_with_ecmp_and_outages_sum_to_the_whole_window(drawn in choices(), parts in vec(1u64..1000, 1..9)) {
        adds_up(&plain(&drawn), &parts)?;
    }

    #[test]
    fn windows_of_frames_sum_to_the_whole_window(drawn in frames(), parts in vec(1u64..1000, 1..5)) {
        adds_up(&plain(&drawn), &parts)?;
    }

    #[test]
    fn windows_of_ecmp_frames_sum_to_the_whole_window(drawn in mesh(), parts in vec(1u64..1000, 1..5)) {
        adds_up(&plain(&drawn), &parts)?;
    }

    #[test]
    fn windows_of_bonds_sum_to_the_whole_window(drawn in bonds(), parts in vec(1u64..1000, 1..5)) {
        adds_up(&plain(&drawn), &parts)?;
    }

    #[test]
    fn windows_with_address_resolution_sum_to_the_whole_window(drawn in asking(), parts in vec(1u64..1000, 1..5)) {
        adds_up(&plain(&drawn), &parts)?;
    }

    #[test]
    fn windows_of_cells_sum_to_the_whole_window(drawn in network(), parts in vec(1u64..1000, 1..5)) {
        adds_up(&plain(&drawn), &parts)?;
    }

    #[test]
    fn windows_of_circuits_at_routers_sum_to_the_whole_window(drawn in joined(), parts in vec(1u64..1000, 1..5)) {
        adds_up(&plain(&drawn), &parts)?;
    }
}
