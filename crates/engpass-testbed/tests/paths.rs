//! Paths of flows with equally short alternatives, against values computed by hand.

use engpass_outcome::{MOST_PATHS, Path};
use engpass_testbed::{Point, Source, lanes, load};

/// Two routers with two links between them.
fn network(near: &str, traffic: &str, more: &str) -> String {
    let link = |name: &str, ends: [&str; 2]| {
        format!("[link.{name}]\nends = [\"{}\", \"{}\"]\nmedium = \"ethernet-100\"\n", ends[0], ends[1])
    };
    let links = [
        link("in", ["a", "near"]),
        link("upper", ["near", "far"]),
        link("lower", ["near", "far"]),
        link("out", ["far", "b"]),
    ];
    format!(
        "[host.a]\n[host.b]\n[router.near]\necmp = {near}\n[router.far]\necmp = \"first\"\n{}\
         [traffic.t]\nfrom = \"a\"\nto = \"b\"\nmessage = \"1000 B\"\n{traffic}\n{more}",
        links.concat()
    )
}

fn point(text: &str) -> Point {
    let source = Source { name: "x.toml".into(), text: text.into() };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{text}\n{found}"));
    campaign.point("base", &[]).unwrap_or_else(|found| panic!("{text}\n{found}"))
}

/// Returns the shares of the paths of the first flow, each with the names of its links.
fn paths(text: &str) -> Vec<(f64, Vec<String>)> {
    let point = point(text);
    let paths = point.topology.paths(&point.testbed, 0);
    let named = |path: Path| (path.share, path.steps.into_iter().map(|step| step.link).collect::<Vec<_>>());
    paths.into_iter().map(named).collect()
}

fn by(line: &str) -> Vec<String> {
    ["in", line, "out"].map(str::to_owned).to_vec()
}

const UDP: &str = "kind = \"udp-stream\"";

#[test]
fn flow_without_ecmp_choice_has_one_path() {
    assert_eq!(paths(&network("\"first\"", UDP, "")), [(1.0, by("upper"))]);
}

/// With seed 25, 9 of the 16 connections from port 49152 on have a hash below 2^31 and take the upper link (computed by a Python program).
#[test]
fn ecmp_hash_spreads_whole_connections() {
    let tcp = "kind = \"tcp-stream\"\nstreams = 16";
    let hash = "{ hash = { seed = 25 } }";
    assert_eq!(paths(&network(hash, tcp, "")), [(0.5625, by("upper")), (0.4375, by("lower"))]);
    let point = point(&network(hash, tcp, ""));
    let found = lanes(&point.testbed, &point.topology, 0);
    assert_eq!(found.iter().map(|lane| lane.connections).collect::<Vec<_>>(), [9, 7]);
    assert!(found.iter().all(|lane| lane.there.only_way().is_some() && lane.back.only_way().is_some()));
}

#[test]
fn router_without_ecmp_policy_hashes_with_seed_0() {
    let tcp = "kind = \"tcp-stream\"\nstreams = 16";
    let given = network("\"hash\"", tcp, "");
    let default = given.replace("ecmp = \"hash\"\n", "");
    assert_ne!(default, given);
    assert_eq!(paths(&default), paths(&given));
    assert_eq!(paths(&default).len(), 2);
}

/// With this seed the datagrams from port 49152 take the lower link; hashed without ports they take the upper one (computed by a Python program).
const LOWER: &str = "{ hash = { seed = 4 } }";

#[test]
fn fragments_are_hashed_without_ports() {
    let whole = network(LOWER, UDP, "");
    assert_eq!(paths(&whole), [(1.0, by("lower"))]);
    let cut_by_sender = whole.replace("1000 B", "2000 B");
    assert_eq!(paths(&cut_by_sender), [(1.0, by("upper"))]);
    // The router chooses before it fragments.
    let wide = |name: &str| (format!("[link.{name}]"), format!("[link.{name}]\nmtu = \"9000 B\""));
    let (link, jumbo) = wide("in");
    let cut_there = cut_by_sender.replace(&link, &jumbo);
    assert_eq!(paths(&cut_there), [(1.0, by("lower"))]);
    // An earlier router fragments.
    let before = "[router.before]\n[link.first]\nends = [\"a\", \"before\"]\nmedium = \"ethernet-100\"\nmtu = \"9000 B\"\n";
    let cut_before = cut_by_sender.replace("[\"a\", \"near\"]", "[\"before\", \"near\"]") + before;
    let way = ["first", "in", "upper", "out"].map(str::to_owned).to_vec();
    assert_eq!(paths(&cut_before), [(1.0, way)]);
    // If lengths vary, half of the packets count as fragments. A layer 3 hash never sees ports.
    let random = "kind = \"poisson\"\nrate = \"1 Mbit/s\"\nsizes = \"exponential\"";
    assert_eq!(paths(&network(LOWER, random, "")), [(0.5, by("upper")), (0.5, by("lower"))]);
    let layer_3 = "{ hash = { fields = \"layer-3\", seed = 4 } }";
    assert_eq!(paths(&network(layer_3, random, "")), [(1.0, by("upper"))]);
}

#[test]
fn round_robin_paths_have_shares_by_weight() {
    let found = paths(&network("{ round-robin = { weights = { lower = 3 } } }", UDP, ""));
    assert_eq!(found, [(0.75, by("lower")), (0.25, by("upper"))]);
    assert_eq!(paths(&network("\"round-robin\"", UDP, "")), [(0.5, by("upper")), (0.5, by("lower"))]);
}

/// An event opens paths that packets do not take before it.
#[test]
fn events_add_paths_with_a_share_of_zero() {
    let ways = |near: &str, target: &str| {
        let event = format!("[event.e]\ntarget = \"{target}\"\nat = \"1 s\"\nchange = \"down\"");
        let text = network(near, UDP, &event);
        assert_eq!(paths(&text), paths(&network(near, UDP, "")));
        let point = point(&text);
        let there = lanes(&point.testbed, &point.topology, 0).remove(0).there;
        let shares: Vec<f64> = there.stops[1].onward.iter().map(|onward| onward.share).collect();
        (shares, there.stops[1].in_turns)
    };
    assert_eq!(ways(LOWER, "lower"), (vec![0.0, 1.0], false));
    assert_eq!(ways(LOWER, "near/upper"), (vec![0.0, 1.0], false));
    // The router that chooses does not see the event.
    assert_eq!(ways(LOWER, "far/lower"), (vec![1.0], false));
    assert_eq!(ways("\"round-robin\"", "out"), (vec![0.5, 0.5], true));
    assert_eq!(ways("\"round-robin\"", "lower"), (vec![0.5, 0.5], false));
}

/// Seven routers in a row, each with two links to the next one: 128 paths.
#[test]
fn only_paths_with_the_greatest_shares_are_listed() {
    let mut text = "[host.a]\n[host.b]\n".to_owned();
    let mut link = |name: String, ends: [String; 2]| {
        text += &format!("[link.{name}]\nends = {ends:?}\nmedium = \"ethernet-100\"\n");
    };
    link("in".into(), ["a".into(), "r0".into()]);
    for stage in 0..7 {
        for line in ["u", "l"] {
            link(format!("{line}{stage}"), [format!("r{stage}"), format!("r{}", stage + 1)]);
        }
    }
    link("out".into(), ["r7".into(), "b".into()]);
    for router in 0..8 {
        let policy = match router {
            6 => "ecmp = { round-robin = { weights = { u6 = 2 } } }\n",
            7 => "",
            _ => "ecmp = \"round-robin\"\n",
        };
        text += &format!("[router.r{router}]\n{policy}");
    }
    text += "[traffic.t]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1 kB\"\n";
    let found = paths(&text);
    assert_eq!(found.len(), MOST_PATHS);
    // Half of all paths end with the link that gets two of three packets. Only those are listed.
    assert!(found.iter().all(|(share, way)| (share * 96.0 - 1.0).abs() < 1e-9 && way[7] == "u6"));
    let uppers = (0..7).map(|stage| format!("u{stage}"));
    let first: Vec<String> = ["in".to_owned()].into_iter().chain(uppers).chain(["out".to_owned()]).collect();
    assert_eq!(found[0].1, first);
}
