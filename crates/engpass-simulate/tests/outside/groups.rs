//! Groups: each line carries a packet to several hosts once.

use engpass_simulate::injection::{DeliveryReport, InjectedNetwork};
use proptest::prelude::*;

use super::{TWO, all, outside, packet, way};

const FAST: &str = "ethernet-100";
const SLOW: &str = "ethernet-10";

/// Two switches and a router behind a sender, with a host at each, and one on its own line. `between` is the medium between the switches.
fn tree(between: &str) -> String {
    const NODES: &str = r#"
        name = "a tree"
        [host.s]
        [host.near]
        [host.far]
        [host.farther]
        [host.behind]
        [switch.one]
        kind = "ethernet"
        queue = { drop-tail = { limit = "2 packets" } }
        [switch.two]
        kind = "ethernet"
        queue = { drop-tail = { limit = "2 packets" } }
        [router.r]
        [traffic.other]
        kind = "udp-stream"
        from = "near"
        to = "far"
        message = "1 kB"
        rate = "1 Mbit/s"
    "#;
    NODES.to_owned()
        + &links(&[
            ("s", "one", FAST),
            ("one", "near", FAST),
            ("one", "two", between),
            ("two", "far", FAST),
            ("two", "farther", SLOW),
            ("two", "r", FAST),
            ("r", "behind", FAST),
        ])
}

/// Returns the text of links, each given as its two end nodes and its medium.
fn links(all: &[(&str, &str, &str)]) -> String {
    let link = |(number, (one, other, medium)): (usize, &(&str, &str, &str))| {
        format!("[link.l{number}]\nends = [\"{one}\", \"{other}\"]\nmedium = \"{medium}\"\n")
    };
    all.iter().enumerate().map(link).collect()
}

fn group(network: &mut InjectedNetwork) -> u32 {
    // Hosts are numbered as in the file. The sender itself is not a member.
    network.group(0, &[0, 1, 2, 3, 4])
}

fn delivered(reports: &[DeliveryReport]) -> Vec<(u64, u64)> {
    let one = |report: &DeliveryReport| match *report {
        DeliveryReport::Delivered { at, token, .. } => (token, at),
        _ => panic!("expected deliveries: {reports:?}"),
    };
    let mut found: Vec<_> = reports.iter().map(one).collect();
    found.sort_unstable();
    found
}

#[test]
fn group_packet_crosses_each_line_once_and_arrives_on_time() {
    let mut alone = Vec::new();
    for (token, name) in ["s to near", "s to far", "s to farther", "s to behind"].iter().enumerate() {
        let mut network = outside(&tree(FAST));
        let way = way(&network, name);
        network.inject(1_000, way, packet(1400, token as u64));
        alone.extend(delivered(&all(&mut network, u64::MAX)));
    }
    let mut network = outside(&tree(FAST));
    let group = group(&mut network);
    assert_eq!(network.members(group).len(), 4);
    network.begin_window(0, &mut |_| {});
    network.inject_group(1_000, group, packet(1400, 99), &[0, 1, 2, 3]);
    assert_eq!(network.count_unreported(), 1, "the group packet counts once before it is copied");
    assert_eq!(delivered(&all(&mut network, u64::MAX)), alone);
    assert_eq!(network.count_unreported(), 0);
    let seen: Vec<_> = network.seen().iter().map(|line| (line.link.clone(), line.sent)).collect();
    let carried: Vec<_> = seen.iter().filter(|(_, sent)| *sent > 0).collect();
    assert_eq!((carried.len(), carried.iter().all(|(_, sent)| *sent == 1)), (7, true), "{carried:?}");
    let outcome = network.end_window(1_000_000_000_000, &mut |_| {}).expect("the ledger balances");
    let flows: Vec<_> = (outcome.flows.iter())
        .map(|(name, flow)| (name.as_str(), flow.datagrams.unwrap()))
        .map(|(name, counts)| (name, counts.sent, counts.received))
        .collect();
    assert_eq!(
        flows,
        [("s to near", 1, 1), ("s to far", 1, 1), ("s to farther", 1, 1), ("s to behind", 1, 1)]
    );
}

#[test]
fn routers_switch_group_packets_as_multicast() {
    let slow = "[router.r]\nprocessor = { process = \"1 ms\" }\nprocess_switched = [\"multicast\"]";
    let text = tree(FAST).replace("[router.r]", slow);
    let mut network = outside(&text);
    let way = way(&network, "s to behind");
    network.inject(1_000, way, packet(1400, 3));
    let [(_, alone)] = delivered(&all(&mut network, u64::MAX))[..] else { panic!("one packet arrives") };
    let mut network = outside(&text);
    let group = group(&mut network);
    network.inject_group(1_000, group, packet(1400, 99), &[0, 1, 2, 3]);
    assert_eq!(delivered(&all(&mut network, u64::MAX))[3], (3, alone + 1_000_000_000));
}

#[test]
fn loss_on_a_shared_line_counts_for_all_members_behind_it() {
    // The line between the switches is slow, and its queue holds two packets.
    let mut network = outside(&tree(SLOW));
    let group = group(&mut network);
    network.begin_window(0, &mut |_| {});
    for number in 0..4 {
        let tokens = [0, 1, 2, 3].map(|member| 10 * number + member);
        network.inject_group(5, group, packet(1400, 0), &tokens);
    }
    let reports = all(&mut network, u64::MAX);
    assert_eq!(reports.len(), 16);
    let lost = reports.iter().filter_map(|report| match report {
        DeliveryReport::Lost { token, place, .. } => Some((*token, network.place(*place).0.to_string())),
        _ => None,
    });
    let mut lost: Vec<_> = lost.collect();
    lost.sort();
    let place = || "one -> two".to_owned();
    let wanted = [21, 22, 23, 31, 32, 33].map(|token| (token, place()));
    assert_eq!(lost, wanted);
    let outcome = network.end_window(1_000_000_000_000, &mut |_| {}).expect("the ledger balances");
    for (name, flow) in &outcome.flows {
        let lost = if name == "s to near" { 0 } else { 2 };
        let counts = flow.datagrams.unwrap();
        assert_eq!((counts.sent, counts.lost, counts.in_flight.unwrap()), (4, lost, 0), "{name}");
    }
}

#[test]
fn group_packet_ttl_expires_per_member_path() {
    let mut network = outside(&tree(FAST));
    let group = group(&mut network);
    let short = engpass_simulate::injection::Packet { ttl: 1, ..packet(1400, 0) };
    network.inject_group(0, group, short, &[0, 1, 2, 3]);
    let reports = all(&mut network, u64::MAX);
    let lost: Vec<_> =
        reports.iter().filter(|report| matches!(report, DeliveryReport::Lost { .. })).collect();
    assert_eq!((reports.len(), lost.len()), (4, 1));
    let DeliveryReport::Lost { token: 3, place, .. } = *lost[0] else {
        panic!("only the member behind the router loses it: {lost:?}")
    };
    let (place, cause) = network.place(place);
    assert_eq!((place.to_string().as_str(), cause), ("r", "time to live"));
}

#[test]
fn group_packet_is_copied_to_each_circuit() {
    let text = TWO.to_owned()
        + &links(&[("s", "c", "oc-3c")])
        + "[host.c]\n[circuit.other]\nfrom = \"a\"\nto = \"c\"\n";
    let mut network = outside(&text);
    let group = network.group(0, &[1, 2]);
    network.inject_group(5, group, packet(500, 0), &[7, 8]);
    let reports = all(&mut network, 1_000_000_000_000);
    let tokens: Vec<_> = delivered(&reports).iter().map(|(token, _)| *token).collect();
    assert_eq!(tokens, [7, 8]);
    // 500 bytes, 8 of LLC/SNAP and 8 of trailer: 11 cells for each.
    let seen = network.seen();
    assert_eq!(seen.iter().map(|line| line.sent).filter(|sent| *sent > 0).collect::<Vec<_>>(), [22, 11, 11]);
}

/// The host uses two links in turn; the first one in the file fails after 1 us.
#[test]
fn bond_chooses_one_member_per_group_packet() {
    let bond = "[link.second]\nends = [\"s\", \"one\"]\nmedium = \"ethernet-100\"\n\
                [bond.b]\nnode = \"s\"\nlinks = [\"l0\", \"second\"]\nmode = \"round-robin\"\n";
    let dead = "[event.cut]\ntarget = \"l0\"\nat = \"1 us\"\nchange = \"down\"\n";
    for (events, carried) in [("", [2, 2]), (dead, [0, 4])] {
        let mut network = outside(&(tree(FAST) + bond + events));
        let group = group(&mut network);
        network.begin_events(0);
        network.begin_window(0, &mut |_| {});
        for number in 0..4 {
            let at = (number + 1) * 1_000_000_000;
            network.inject_group(
                at,
                group,
                packet(1400, 0),
                &[0, 1, 2, 3].map(|member| 10 * number + member),
            );
        }
        let reports = all(&mut network, 10_000_000_000_000);
        assert_eq!(delivered(&reports).len(), 16);
        let seen = network.seen();
        let sent =
            |name: &str| seen.iter().filter(|line| line.link == name).map(|line| line.sent).sum::<u64>();
        assert_eq!(["l0", "second"].map(sent), carried);
        assert_eq!(["l1", "l2", "l6"].map(sent), [4; 3]);
        network.end_window(10_000_000_000_000, &mut |_| {}).expect("the ledger balances");
    }
}

/// A group member has two links to its switch, which follows to the second one when the first one fails.
#[test]
fn group_copy_takes_the_active_member_of_a_host() {
    let bond = "[link.second]\nends = [\"one\", \"near\"]\nmedium = \"ethernet-100\"\n\
                [bond.b]\nnode = \"near\"\nlinks = [\"l1\", \"second\"]\nmode = \"active-backup\"\n\
                [event.cut]\ntarget = \"l1\"\nat = \"1 us\"\nchange = \"down\"\n";
    let mut network = outside(&(tree(FAST) + bond));
    let group = group(&mut network);
    network.begin_events(0);
    for number in 0..4 {
        let at = (number + 1) * 1_000_000_000_000;
        network.inject_group(at, group, packet(1400, 0), &[0, 1, 2, 3].map(|member| 10 * number + member));
    }
    let reports = all(&mut network, 10_000_000_000_000);
    assert_eq!(delivered(&reports).len(), 16);
}

/// Switches and routers in a tree, with hosts at any of them, on lines of any rate.
fn random_tree(between: &[(usize, bool)], homes: &[usize], paces: &[usize]) -> String {
    const MEDIA: [&str; 3] = [SLOW, FAST, "ethernet-1g"];
    let mut text = "name = \"random\"\n".to_owned();
    let mut lines = Vec::new();
    for (node, (parent, router)) in between.iter().enumerate() {
        text += &match router {
            true => format!("[router.n{node}]\nper_packet = \"3 us\"\n"),
            false => format!("[switch.n{node}]\nkind = \"ethernet\"\n"),
        };
        if node > 0 {
            lines.push((format!("n{node}"), format!("n{}", parent % node)));
        }
    }
    for (host, home) in homes.iter().enumerate() {
        text += &format!("[host.h{host}]\n");
        lines.push((format!("h{host}"), format!("n{}", home % between.len())));
    }
    let pace = |number: usize| MEDIA[paces[number % paces.len()] % 3];
    let lines = lines.iter().enumerate();
    let lines: Vec<_> = lines.map(|(number, (one, other))| (&one[..], &other[..], pace(number))).collect();
    text + &links(&lines)
        + "[traffic.t]\nkind = \"udp-stream\"\nfrom = \"h0\"\nto = \"h1\"\nmessage = \"1 kB\"\nrate = \"1 Mbit/s\"\n"
}

proptest! {
    #![proptest_config(engpass_cases::cases(48))]

    /// On an idle network each member of a group gets a packet when it would get one sent to it alone, or later by the time that routers take for copies. No
    /// line carries it twice, and the ledger balances.
    #[test]
    fn group_delivery_equals_delivery_to_each_member(
        between in prop::collection::vec((0_usize..8, any::<bool>()), 1..5),
        homes in prop::collection::vec(0_usize..8, 2..7),
        paces in prop::collection::vec(0_usize..3, 1..12),
        bytes in 40_u32..1500,
    ) {
        let text = random_tree(&between, &homes, &paces);
        let members: Vec<usize> = (0..homes.len()).collect();
        let mut network = outside(&text);
        let group = network.group(0, &members);
        let ways = network.members(group).to_vec();
        let tokens: Vec<u64> = (0..ways.len() as u64).collect();
        network.begin_window(0, &mut |_| {});
        network.inject_group(5, group, packet(bytes, 0), &tokens);
        let together = delivered(&all(&mut network, u64::MAX));
        prop_assert!(network.seen().iter().all(|line| line.sent <= 1));
        let outcome = network.end_window(1_000_000_000_000, &mut |_| {}).expect("the ledger balances");
        let counts = || outcome.flows.values().filter_map(|flow| flow.datagrams);
        prop_assert!(counts().all(|counts| (counts.sent, counts.received) == (1, 1)));
        prop_assert_eq!((together.len(), outcome.flows.len()), (ways.len(), ways.len()));
        for (way, (_, at)) in ways.iter().zip(&together) {
            let mut network = outside(&text);
            network.inject(5, *way, packet(bytes, 0));
            let alone = delivered(&all(&mut network, u64::MAX))[0].1;
            // Routers may have made other copies before.
            let late = at - alone;
            let routers = between.iter().filter(|(_, router)| *router).count() as u64;
            prop_assert!(late <= routers * homes.len() as u64 * 4 * 3_000_000 && (routers > 0 || late == 0), "{} late", late);
        }
    }
}

/// A host behind a tunnel, one beside it, and one at a router inside the tunnel's path.
fn tunnelled() -> String {
    const NODES: &str = r#"
        name = "a tunnel"
        [host.s]
        [host.behind]
        [host.beside]
        [host.inside]
        [router.near]
        [router.core]
        [router.far]
        [tunnel.t]
        ends = ["near", "far"]
        fragment = "outer"
        [traffic.other]
        kind = "udp-stream"
        from = "behind"
        to = "beside"
        message = "1 kB"
        rate = "1 Mbit/s"
    "#;
    NODES.to_owned()
        + &links(&[
            ("s", "near", FAST),
            ("near", "core", FAST),
            ("core", "far", FAST),
            ("far", "behind", FAST),
            ("far", "beside", FAST),
            ("core", "inside", FAST),
        ])
}

/// Sends a packet to these members of the group. Returns the deliveries, and packets by link.
fn through_tunnel(members: &[usize]) -> (Vec<(u64, u64, u8)>, Vec<u64>) {
    let mut network = outside(&tunnelled());
    let group = network.group(0, members);
    let tokens: Vec<u64> = members.iter().map(|member| *member as u64).collect();
    network.begin_window(0, &mut |_| {});
    network.inject_group(1_000, group, packet(1500, 0), &tokens);
    let mut come: Vec<_> = (all(&mut network, u64::MAX).iter())
        .map(|report| match *report {
            DeliveryReport::Delivered { at, token, routers, .. } => (token, at, routers),
            _ => panic!("expected deliveries"),
        })
        .collect();
    come.sort_unstable();
    let sent = network.seen().iter().step_by(2).map(|line| line.sent).collect();
    network.end_window(1_000_000_000_000, &mut |_| {}).expect("the ledger balances");
    (come, sent)
}

/// The outer packet is fragmented into two on each line of the tunnel's path.
#[test]
fn copies_behind_a_tunnel_are_made_after_decapsulation() {
    let (alone, _) = through_tunnel(&[1]);
    let (come, sent) = through_tunnel(&[1, 2]);
    assert_eq!(come, [alone[0], (2, alone[0].1, alone[0].2)]);
    assert_eq!(sent, [1, 2, 2, 1, 1, 0]);
}

#[test]
fn paths_of_a_group_branch_at_the_tunnel_entrance() {
    let (alone, _) = through_tunnel(&[3]);
    let (come, sent) = through_tunnel(&[1, 2, 3]);
    assert_eq!(come.iter().map(|(token, ..)| *token).collect::<Vec<_>>(), [1, 2, 3]);
    // It has passed two routers, and waited for the fragments of the others on the shared line.
    assert_eq!((come[2].2, alone[0].2), (alone[0].2, 2));
    assert!(come[2].1 > alone[0].1);
    assert_eq!(sent, [1, 3, 2, 1, 1, 1]);
}
