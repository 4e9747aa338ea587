//! What a good file becomes.

use engpass_model::circuit::Category;
use engpass_model::source::Traffic;
use engpass_model::unit::Size;
use engpass_testbed::{Campaign, Diagnostics, Source, load};

const KYOTO: &str = include_str!("files/kyoto.toml");

fn source(text: &str) -> Source {
    Source { name: "kyoto.toml".into(), text: text.into() }
}

fn kyoto(set: &[(&str, &str)]) -> Result<Campaign, Diagnostics> {
    let set: Vec<(String, String)> =
        set.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
    load(&source(KYOTO), &set, None)
}

fn codes(result: Result<Campaign, Diagnostics>) -> Vec<&'static str> {
    result.unwrap_err().list().iter().map(|found| found.code).collect()
}

#[test]
fn the_sketch_of_the_design_loads() {
    let campaign = kyoto(&[]).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(campaign.name(), "IP over ATM on a congested OC-3c link");
    assert_eq!(campaign.variants(), ["free", "loaded", "shaped-16"]);
    assert_eq!((campaign.repeats(), campaign.seed()), (5, 1));
    let [axis] = campaign.axes() else { panic!("one axis") };
    assert_eq!(axis.path, "traffic.stream.message");
    assert_eq!(axis.values.len(), 64);
    assert_eq!((axis.values[8].text.as_str(), axis.values[8].number), ("9 kB", Some(9000.0)));
    assert_eq!(axis.values[8].unit.as_deref(), Some("B"));
    assert!(campaign.warnings().is_empty());
}

#[test]
fn a_point_is_its_variant_and_its_sweep_value() {
    let campaign = kyoto(&[]).unwrap();
    let at = [("traffic.stream.message".to_string(), "17 kB".to_string())];
    let point = campaign.point("shaped-16", &at).unwrap();
    let Traffic::UdpStream(stream) = &point.testbed.traffic["stream"] else { panic!("a udp-stream") };
    assert_eq!(stream.message, Size(17_000));
    let circuits = &point.topology.circuits;
    assert_eq!(
        circuits.iter().map(|circuit| circuit.name.as_str()).collect::<Vec<_>>(),
        ["data", "interference"]
    );
    assert_eq!(circuits[0].shaping.unwrap().per_second() as u64, 56_513);
    assert_eq!((circuits[1].category, circuits[1].shaping), (Category::Cbr, None));
    assert_eq!(point.topology.flows[1].cells.unwrap().per_second() as u64, 295_248);
    let hops = |circuit: usize| circuits[circuit].route.iter().map(|hop| hop.link).collect::<Vec<_>>();
    assert_eq!((hops(0), hops(1)), (vec![0, 2], vec![1, 2]));
    // Hosts come first, then switches.
    assert_eq!(point.topology.nodes, ["ss2", "ss20", "generator", "atomis5"]);
    assert_eq!(point.topology.hosts, 3);

    let free = campaign.point("free", &at).unwrap();
    assert_eq!(free.topology.flows[1].cells, None);
    assert_eq!(free.topology.circuits[0].shaping, None);
}

#[test]
fn set_comes_last_and_ends_a_sweep() {
    let campaign =
        kyoto(&[("traffic.stream.message", "9 kB"), ("circuit.data.shaping", "20 %"), ("run.repeats", "2")])
            .unwrap();
    assert!(campaign.axes().is_empty());
    assert_eq!(campaign.repeats(), 2);
    let point = campaign.point("shaped-16", &[]).unwrap();
    assert_eq!(point.topology.circuits[0].shaping.unwrap().per_second() as u64, 70_641);
}

#[test]
fn the_kind_can_be_set() {
    let campaign = kyoto(&[("traffic.stream.kind", "tcp-stream")]).unwrap();
    let point = campaign.point("free", &[]).unwrap();
    assert_eq!(point.testbed.traffic["stream"].kind(), "tcp-stream");
}

#[test]
fn points_are_counted() {
    assert!(load(&source(KYOTO), &[], Some(960)).is_ok());
    assert_eq!(codes(load(&source(KYOTO), &[], Some(959))), ["too-many-points"]);
}
