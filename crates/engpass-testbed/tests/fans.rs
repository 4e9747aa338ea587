//! Tests of the paths that policies choose among, on small hand-made networks.

use engpass_testbed::topology::{Fan, FlowPath, PathSegment, Topology};
use engpass_testbed::{Point, Source, load};

/// Two routers with three links between them. `ecmp` gives the policies of `r1` and `r2`, which choose among these links.
fn three_links(ecmp: [&str; 2], more: &str) -> Point {
    let [there, back] = ecmp;
    let text = format!(
        r#"
        [host.a]
        [host.b]
        [router.r1]
        ecmp = {there}
        [router.r2]
        ecmp = {back}
        [link.a]
        ends = ["a", "r1"]
        medium = "ethernet-100"
        [link.upper]
        ends = ["r1", "r2"]
        medium = "ethernet-100"
        [link.middle]
        ends = ["r2", "r1"]
        medium = "ethernet-100"
        mtu = "576 B"
        [link.lower]
        ends = ["r1", "r2"]
        medium = "point-to-point"
        rate = "10 Mbit/s"
        mtu = "1000 B"
        [link.b]
        ends = ["r2", "b"]
        medium = "ethernet-100"
        {more}
        "#
    );
    let source = Source { name: "x.toml".into(), text };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{found}"));
    campaign.point("base", &[]).expect("a checked file has a base point")
}

const TRAFFIC: &str = r#"
    [traffic.t]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    message = "64 kB"
"#;

fn names(topology: &Topology, legs: &[PathSegment]) -> Vec<String> {
    let name = |leg: &PathSegment| topology.links[topology.first_hop(*leg).link].name.clone();
    legs.iter().map(name).collect()
}

/// A node and the names of the links there.
type At = (String, Vec<String>);

/// Returns the names of the links of a fan at every node.
fn links(topology: &Topology, fan: &Fan) -> Vec<At> {
    fan.at.iter().map(|(node, legs)| (topology.nodes[*node].clone(), names(topology, legs))).collect()
}

fn fans(topology: &Topology, path: &FlowPath) -> Option<[Vec<At>; 2]> {
    path.fans.as_deref().map(|fans| fans.each_ref().map(|fan| links(topology, fan)))
}

fn at(node: &str, links: &[&str]) -> At {
    (node.into(), links.iter().map(|link| (*link).into()).collect())
}

#[test]
fn path_without_ecmp_choice_has_no_fan() {
    let point = three_links(["\"first\"", "{ first = {} }"], TRAFFIC);
    let path = &point.topology.flows[0];
    assert_eq!(path.fans, None);
    assert_eq!(names(&point.topology, &path.legs), ["a", "upper", "b"]);
    assert_eq!(path.path_mtu, 1500);
}

#[test]
fn each_flow_direction_has_its_own_ecmp_choices() {
    let point = three_links(["\"hash\"", "\"first\""], TRAFFIC);
    let path = &point.topology.flows[0];
    let there = vec![at("a", &["a"]), at("r1", &["upper", "middle", "lower"]), at("r2", &["b"])];
    let back = vec![at("b", &["b"]), at("r1", &["a"]), at("r2", &["upper"])];
    assert_eq!(fans(&point.topology, path), Some([there, back.clone()]));
    assert_eq!(names(&point.topology, &path.legs), ["a", "upper", "b"]);
    // The choices of the reverse direction do not change the path MTU of this one.
    assert_eq!(path.path_mtu, 576);
    let point = three_links(["\"first\"", "\"round-robin\""], TRAFFIC);
    let path = &point.topology.flows[0];
    assert_eq!(path.path_mtu, 1500);
    let [there, back] = fans(&point.topology, path).expect("the return path has a choice");
    assert_eq!(there, [at("a", &["a"]), at("r1", &["upper"]), at("r2", &["b"])]);
    assert_eq!(back, [at("b", &["b"]), at("r1", &["a"]), at("r2", &["upper", "middle", "lower"])]);
    let fan = &path.fans.as_deref().expect("the return path has a choice")[1];
    assert_eq!(names(&point.topology, fan.legs_at(3)), ["upper", "middle", "lower"]);
    assert_eq!(fan.legs_at(0), []);
    assert_eq!(fan.legs().count(), 5);
}

#[test]
fn flow_over_a_named_circuit_has_no_ecmp_choice() {
    let circuits = |traffic: &str| {
        format!(
            r#"
            [link.a-atm]
            ends = ["a", "r1"]
            medium = "oc-3c"
            [link.b-atm]
            ends = ["r2", "b"]
            medium = "oc-3c"
            [circuit.near]
            from = "a"
            to = "r1"
            [circuit.far]
            from = "r2"
            to = "b"
            {TRAFFIC}
            {traffic}
            "#
        )
    };
    // The first of the two path segments of each host is a link with frames.
    let point = three_links(["\"hash\"", "\"hash\""], &circuits(""));
    assert_eq!(names(&point.topology, &point.topology.flows[0].legs), ["a", "upper", "b"]);
    let [there, back] = fans(&point.topology, &point.topology.flows[0]).expect("both routers choose a path");
    assert_eq!(there[1..], [at("r1", &["upper", "middle", "lower"]), at("r2", &["b", "b-atm"])]);
    assert_eq!(back[1..], [at("r1", &["a", "a-atm"]), at("r2", &["upper", "middle", "lower"])]);
    let point = three_links(["\"hash\"", "\"hash\""], &circuits("circuit = \"near\""));
    let path = &point.topology.flows[0];
    assert_eq!(path.fans, None);
    assert_eq!(names(&point.topology, &path.legs), ["a-atm", "upper", "b"]);
}

#[test]
fn hosts_without_traffic_have_the_same_ecmp_choices() {
    let idle = three_links(["\"hash\"", "\"first\""], "");
    let busy = three_links(["\"hash\"", "\"first\""], TRAFFIC);
    for point in [&idle, &busy] {
        let ways = point.topology.between_hosts(&point.testbed);
        let all: Vec<_> = ways.iter().map(|way| (way.name.as_str(), way.path_mtu)).collect();
        assert_eq!(all, [("a to b", 576), ("b to a", 1500)]);
        let flow = busy.topology.flows[0].fans.as_deref().expect("`r1` chooses a path");
        let [there, back] = [&ways[0], &ways[1]].map(|way| way.fans.as_deref().expect("`r1` chooses a path"));
        assert_eq!((there, [&back[1], &back[0]]), (flow, [&flow[0], &flow[1]]));
        assert_eq!(names(&point.topology, &ways[1].legs), ["b", "upper", "a"]);
    }
}
