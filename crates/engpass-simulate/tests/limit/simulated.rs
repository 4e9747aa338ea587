//! `limit` against `simulate`, for frame networks with nothing but the bottleneck in the way.

use engpass_limit::limit;
use engpass_outcome::Results;
use engpass_simulate::simulate;
use engpass_testbed::{Source, load};

use crate::NO_OPTIONS;
use crate::frames::{chain, stream};

/// Returns the goodput of the flow `t` by `limit` and by `simulate`, in bit/s.
fn both(text: &str) -> (f64, f64) {
    let [most, got] = outcomes(text);
    (most.flows["t"].goodput_bit_per_s, got.flows["t"].goodput_bit_per_s)
}

/// Returns the outcomes of `limit` and of `simulate`.
fn outcomes(text: &str) -> [Results; 2] {
    let text = text.to_owned() + "[run]\nduration = \"1200 ms\"\nwarmup = \"200 ms\"\n";
    let source = Source { name: "test.toml".to_owned(), text };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{found}"));
    let point = campaign.point("base", &[]).unwrap_or_else(|found| panic!("{found}"));
    let most = limit(&point.testbed, &point.topology);
    let outcome = simulate(&point.testbed, &point.topology, 1, &|| false).expect("the simulation succeeds");
    [most.stored(), outcome.stored()]
}

/// A sender that its own cost limits loads its CPU fully, and the other engines in proportion to their costs.
#[test]
fn simulate_has_the_loads_of_limit() {
    let fast = "medium = \"ethernet-1g\"";
    let nodes = ["router\nper_packet = \"40 us\"", "router"];
    let text = chain(&[fast, fast, fast], &nodes, &stream("t", "udp-stream", 1000));
    let text = text.replacen(NO_OPTIONS, "cost = { per_datagram = \"160 us\" }", 1);
    for (cost, receiver) in [("per_datagram = \"20 us\"", 0.125), ("per_byte = \"80 ns\"", 0.5)] {
        let text = text.replacen("[host.b]", &format!("[host.b]\nreceive_cost = {{ {cost} }}"), 1);
        for results in outcomes(&text) {
            let loads = results.nodes.values().flat_map(|node| &node.engines);
            let loads: Vec<_> = loads.map(|(name, engine)| (name.as_str(), engine.load)).collect();
            let expected = [("cpu", 1.0), ("cpu", receiver), ("forwarding", 0.25)];
            for ((name, load), (engine, exact)) in loads.iter().zip(expected) {
                assert_eq!(*name, engine);
                assert!((load - exact).abs() < 1e-3, "{loads:?}");
            }
            assert_eq!(loads.len(), expected.len(), "the second router takes no time");
        }
    }
}

/// If each message is one packet, a loss harms no other packet: the bottleneck is full whatever is lost before it.
#[test]
fn datagrams_of_one_packet_fill_the_bottleneck() {
    let (fast, faster) = ("medium = \"ethernet-100\"", "medium = \"ethernet-1g\"");
    let tagged = format!("{fast}\nvlan = true");
    let serial = "medium = \"point-to-point\"\nrate = \"20 Mbit/s\"\noverhead = \"7 B\"";
    let bucket =
        format!("{faster}\nqueue = {{ token-bucket = {{ rate = \"30 Mbit/s\", burst = \"4 kB\" }} }}");
    for (links, nodes, message) in [
        (vec![fast, fast], vec!["switch"], 1472),
        (vec![faster, &tagged], vec!["switch"], 1472),
        (vec![fast, &tagged], vec!["router"], 1),
        (vec![faster, fast, serial], vec!["switch", "router"], 900),
        (vec![faster, faster], vec!["router\nper_packet = \"20 us\""], 18),
        (
            vec![faster, faster, faster],
            vec!["router\nper_packet = \"9 us\"", "router\nper_packet = \"13 us\""],
            200,
        ),
        (vec![faster, &bucket], vec!["switch"], 1000),
    ] {
        let text = chain(&links, &nodes, &stream("t", "udp-stream", message));
        let (most, got) = both(&text);
        assert!((got / most - 1.0).abs() < 2e-3, "{links:?} {nodes:?} {message}: {got} of {most}");
    }
}

/// Fragments made by a router: the bottleneck is the sender's cost, or the line behind the router.
#[test]
fn simulate_reaches_the_limit_with_router_fragments() {
    let jumbo = "medium = \"ethernet-1g\"\nmtu = \"9000 B\"";
    let narrow = "medium = \"ethernet-100\"\nmtu = \"1496 B\"";
    let text = chain(&[jumbo, narrow], &["router"], &stream("t", "udp-stream", 8972));
    let text = text.replacen(NO_OPTIONS, "cost = { per_datagram = \"760 us\" }", 1);
    let (most, got) = both(&text);
    assert!((most / (8972.0 * 8.0 / 760e-6) - 1.0).abs() < 1e-9, "{most}");
    assert!((got / most - 1.0).abs() < 2e-3, "{got} of {most}");
    // Slightly more than that line can carry is lost in part, but the goodput never exceeds the limit.
    let (most, got) = both(&text.replace("760 us", "740 us"));
    assert!(got <= most * (1.0 + 1e-3), "{got} of {most}");
}

/// One TCP connection that no window limits: goodput is close to the closed form, and never above. The difference is loss and recovery where the line behind a
/// switch is slower.
#[test]
fn tcp_goodput_is_close_to_limit_and_never_above() {
    let (fast, faster) = ("medium = \"ethernet-100\"", "medium = \"ethernet-1g\"");
    let jumbo = format!("{faster}\nmtu = \"9000 B\"");
    let tagged = format!("{fast}\nvlan = true");
    for (links, nodes) in [
        (vec![fast, fast], vec!["switch"]),
        (vec![faster, &tagged], vec!["switch"]),
        (vec![&jumbo, fast], vec!["router"]),
        (vec![faster, faster], vec!["router\nper_packet = \"40 us\""]),
    ] {
        let text = chain(&links, &nodes, &stream("t", "tcp-stream", 65_536));
        for tcp in [NO_OPTIONS, ""] {
            let (most, got) = both(&text.replace(NO_OPTIONS, tcp));
            assert!(got <= most * 1.0005, "{links:?} {nodes:?} {tcp}: {got} of {most}");
            assert!(got >= most * 0.96, "{links:?} {nodes:?} {tcp}: {got} of {most}");
        }
    }
}
