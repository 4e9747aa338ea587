//! Tests of the paths between all hosts of a testbed.

use engpass_testbed::topology::{FlowPath, PathSegment};
use engpass_testbed::{Point, Source, load};

const TEXT: &str = r#"
    name = "cells, frames, and a host that nothing leads to"
    [host.a]
    [host.b]
    [host.c]
    [host.d]
    [host.alone]
    [switch.s]
    kind = "atm"
    output_buffer = "100 cells"
    [link.as]
    ends = ["a", "s"]
    medium = "oc-3c"
    [link.bs]
    ends = ["b", "s"]
    medium = "oc-3c"
    [link.cs]
    ends = ["c", "s"]
    medium = "oc-3c"
    [link.dc]
    ends = ["d", "c"]
    medium = "ethernet-100"
    [link.last]
    ends = ["alone", "s"]
    medium = "oc-3c"
    [circuit.first]
    from = "a"
    to = "b"
    [circuit.second]
    from = "b"
    to = "a"
    mtu = "1500 B"
    [circuit.third]
    from = "a"
    to = "c"
    [circuit.fourth]
    from = "c"
    to = "a"
    [traffic.noise]
    kind = "cbr"
    from = "b"
    to = "c"
    rate = "10 Mbit/s line"
    [traffic.stream]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    circuit = "second"
    message = "9 kB"
    [traffic.later]
    kind = "udp-stream"
    from = "b"
    to = "a"
    circuit = "first"
    message = "9 kB"
"#;

fn point() -> Point {
    let campaign = load(&Source { name: "between.toml".into(), text: TEXT.into() }, &[], None);
    let campaign = campaign.unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point("base", &[]).unwrap_or_else(|found| panic!("{}", found.render(false)))
}

#[test]
fn every_connected_pair_of_hosts_has_a_path() {
    let point = point();
    let ways = point.topology.between_hosts(&point.testbed);
    let names: Vec<_> = ways.iter().map(|way| way.name.as_str()).collect();
    // The circuit of the generator between `b` and `c` carries only its cells.
    assert_eq!(names, ["a to b", "a to c", "b to a", "c to a", "c to d", "d to c"]);
    let legs = |name: &str| {
        let way: &FlowPath = ways.iter().find(|way| way.name == name).expect("the path exists");
        (way.legs.clone(), way.circuit, way.forward, way.mtu)
    };
    let circuit = |circuit, forward, mtu| {
        (vec![PathSegment::Circuit { circuit, forward }], Some(circuit), forward, mtu)
    };
    // In each direction there is traffic that names a circuit.
    assert_eq!(legs("a to b"), circuit(1, false, 1500));
    assert_eq!(legs("b to a"), circuit(0, false, 9180));
    // Without traffic the first of several circuits is taken.
    assert_eq!(legs("a to c"), circuit(2, true, 9180));
    assert_eq!(legs("c to a"), circuit(2, false, 9180));
    assert!(matches!(legs("d to c").0[..], [PathSegment::Link(_)]));
}
