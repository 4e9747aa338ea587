//! The idle delay, against hand calculations and against `simulate` with a single flow.

use engpass_limit::limit;
use engpass_simulate::simulate;
use engpass_testbed::{Source, load};

use crate::frames::{chain, stream};
use crate::{INTERFERENCE, kyoto, limits};

/// Returns the idle delay of the flow `t` by `limit`, and the minimum and maximum delay by `simulate`, in picoseconds. Its datagrams must not wait for each other.
/// The warm-up excludes the first segment of a connection, which waits for the end of the handshake.
fn delays(text: &str) -> [u64; 3] {
    let text = text.to_owned() + "[run]\nduration = \"20 s\"\nwarmup = \"1 s\"\n";
    let source = Source { name: "test.toml".to_owned(), text: text.clone() };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{found}"));
    let point = campaign.point("base", &[]).unwrap_or_else(|found| panic!("{found}"));
    let idle =
        limit(&point.testbed, &point.topology).flows["t"].idle_delay_s.expect("the flow sends datagrams");
    let outcome = simulate(&point.testbed, &point.topology, 1, &|| false).expect("the simulation succeeds");
    let flow = &outcome.flows[0];
    let delays = flow.delay_s.expect("datagrams arrive");
    let simulated = delays.network;
    let queueing = delays.queueing.expect("all datagrams take one path");
    assert_eq!([queueing.min, queueing.max], [0.0; 2], "{text}");
    assert_eq!(delays.message, Some(delays.network), "{text}");
    [idle, simulated.min, simulated.max].map(|seconds| (seconds * 1e12).round() as u64)
}

#[test]
fn idle_delay_of_frames_matches_hand_calculation() {
    let link = "medium = \"ethernet-100\"\ndelay = \"10 ms\"";
    let text = chain(&[link, link], &["router\nper_packet = \"7 us\""], &stream("t", "udp-stream", 1000));
    let idle = limits(&text).flows["t"].idle_delay_s.expect("the flow sends datagrams");
    // 1000 + 28 + 18 + 8 bytes to the last bit, twice; the gap behind them delays only what follows.
    let expected = 2.0 * (1054.0 * 8.0 / 100e6 + 10e-3) + 7e-6;
    assert!((idle - expected).abs() < 2e-12, "{idle} is not {expected}");
}

#[test]
fn idle_delay_of_cells_matches_hand_calculation() {
    let idle = |text: &str| limits(text).flows["stream"].idle_delay_s.expect("the flow sends datagrams");
    let stream = "[traffic.stream]\nkind = \"udp-stream\"\nfrom = \"ss2\"\nto = \"ss20\"\nmessage = \"9 kB\"";
    // 9000 + 28 + 8 + 8 bytes are 189 cells; 0.93 ms and 135 ns a byte at the sender; three links' delays of 1 us by default or less.
    let slot = 424.0 * 27.0 / 26.0 / 155.52e6;
    let host = 0.93e-3 + 9000.0 * 135e-9;
    let text = kyoto("", stream);
    let alone = idle(&text);
    assert!((alone - host - 190.0 * slot).abs() < 15e-6, "{alone}");
    // Another flow has no effect, a shaper at half of the line has.
    assert_eq!(idle(&kyoto("", &(stream.to_owned() + INTERFERENCE))), alone);
    let shaped = idle(&kyoto("shaping = \"50 %\"", stream));
    assert!((shaped - alone - 188.0 * slot).abs() < 1e-9, "{shaped}");
}

#[test]
fn generators_have_no_idle_delay() {
    assert_eq!(limits(&kyoto("", INTERFERENCE)).flows["interference"].idle_delay_s, None);
}

#[test]
fn lone_frame_flow_delay_equals_idle_delay() {
    let (fast, faster) = ("medium = \"ethernet-100\"", "medium = \"ethernet-1g\"\ndelay = \"3 ms\"");
    let jumbo = "medium = \"ethernet-1g\"\nmtu = \"9000 B\"";
    let serial = "medium = \"point-to-point\"\nrate = \"2 Mbit/s\"\noverhead = \"7 B\"";
    let costs = "cost = { per_datagram = \"20 us\", per_fragment = \"3 us\", per_byte = \"7 ns\", per_segment = \"11 us\" }\n\
                 receive_cost = { per_datagram = \"31 us\", per_fragment = \"2 us\", per_byte = \"5 ns\", per_segment = \"13 us\" }\n\
                 memory = { bandwidth = \"400 MB/s\" }\nio_bus = { bandwidth = \"133 MB/s\" }";
    for (links, nodes, message) in [
        (vec![fast], vec![], 1472),
        (vec![fast, faster], vec!["switch\nlatency = \"13 us\""], 64),
        (vec![faster, fast, serial], vec!["switch", "router\nper_packet = \"20 us\""], 60_000),
        (vec![jumbo, fast, serial], vec!["router\nper_packet = \"90 us\"", "router"], 30_000),
        (vec![serial, faster], vec!["router"], 1),
    ] {
        for kind in ["udp-stream", "tcp-stream"] {
            for host in ["", costs] {
                // A message every two seconds, one segment with TCP: packets of the flow never meet each other.
                let message = if kind == "udp-stream" { message } else { message.min(500) };
                let rate = format!("rate = \"{} bit/s\"\n", message * 4);
                let text = chain(&links, &nodes, &(stream("t", kind, message) + &rate));
                let text = text.replacen("[host.b]", &format!("{host}\n[host.b]\n{host}"), 1);
                let [idle, least, greatest] = delays(&text);
                assert_eq!([least, greatest], [idle; 2], "{kind}: {text}");
            }
        }
    }
}

#[test]
fn lone_cell_flow_delay_equals_idle_delay() {
    for (circuit, message) in
        [("", 9000), ("", 40_000), ("shaping = \"16 %\"", 20_000), ("shaping = \"155.52 Mbit/s line\"", 100)]
    {
        for kind in ["udp-stream", "tcp-stream"] {
            let message = if kind == "udp-stream" { message } else { 4000 };
            let flow = format!(
                "[traffic.t]\nkind = \"{kind}\"\nfrom = \"ss2\"\nto = \"ss20\"\nmessage = \"{message} B\"\nrate = \"{} bit/s\"\n",
                message * 4
            );
            let [idle, least, greatest] = delays(&kyoto(circuit, &flow));
            assert_eq!([least, greatest], [idle; 2], "{kind}: {circuit} {message} B");
        }
    }
}
