//! Paths with different fair share and bound, and paths limited by a window.

use engpass_limit::{FlowLimit, SetBy, limit};
use engpass_simulate::simulate;
use engpass_testbed::{Point, Source, load};

use crate::{limits, stage};

fn point(text: &str) -> Point {
    let source = Source { name: "test.toml".to_owned(), text: text.to_owned() };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point("base", &[]).unwrap_or_else(|found| panic!("{}", found.render(false)))
}

/// A download over 100 Mbit/s whose acknowledgements share a line of 1 Mbit/s with an upload.
const THIN_RETURN: &str = r#"
    [host.a]
    [host.b]
    [router.home]
    queue = { drop-tail = { limit = "20 packets" } }
    [router.isp]
    [link.lan]
    ends = ["a", "home"]
    medium = "ethernet-1g"
    [link.access]
    ends = ["isp", "home"]
    medium = "point-to-point"
    rate = { forward = "100 Mbit/s", backward = "1 Mbit/s" }
    delay = "5 ms"
    [link.core]
    ends = ["b", "isp"]
    medium = "ethernet-1g"
    [traffic.download]
    kind = "tcp-stream"
    from = "b"
    to = "a"
    message = "64 KiB"
    [traffic.up]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "1000 B"
    rate = "700 kbit/s"
    [run]
    duration = "20 s"
    warmup = "5 s"
"#;

#[test]
fn thin_return_path_lowers_the_fair_share_and_not_the_bound() {
    let Point { testbed, topology, .. } = point(THIN_RETURN);
    let download = &limit(&testbed, &topology).flows["download"];
    // The upload leaves this much of the thin line for one acknowledgement of 52 bytes per two segments of 1448 bytes.
    let left = 1e6 - 700e3 * 1028.0 / 1000.0;
    let fair = left / (8.0 * 52.0) * 2.0 * 8.0 * 1448.0;
    assert!((download.goodput_bit_per_s / fair - 1.0).abs() < 1e-9, "{}", download.goodput_bit_per_s);
    assert_eq!(download.bottleneck.title, "acknowledgements on link `access`");
    assert_eq!(download.bound_bottleneck.title, "link `access`");
    let line = 100e6 * 1448.0 / 1500.0;
    assert!((download.bound_bit_per_s / line - 1.0).abs() < 1e-9, "{}", download.bound_summary);
    let outcome = simulate(&testbed, &topology, 1, &|| false).expect("the simulation succeeds");
    let got = outcome.flows[0].goodput_bit_per_s;
    assert!((0.99 * line..=line).contains(&got), "{got} of {line}");
}

fn long(tcp: &str) -> String {
    format!(
        r#"
        [host.a]
        [host.b]
        [link.wan]
        ends = ["a", "b"]
        medium = "point-to-point"
        rate = "10 Gbit/s"
        delay = "45 ms"
        [traffic.t]
        kind = "tcp-stream"
        from = "a"
        to = "b"
        message = "64 KiB"
        {tcp}
        [run]
        duration = "30 s"
        warmup = "10 s"
        "#
    )
}

/// Returns the limits of the long path, and the goodput by `simulate`, in bit/s.
fn long_path(tcp: &str) -> (FlowLimit, f64) {
    let Point { testbed, topology, .. } = point(&long(tcp));
    let outcome = simulate(&testbed, &topology, 1, &|| false).expect("the simulation succeeds");
    (limit(&testbed, &topology).flows["t"].clone(), outcome.flows[0].goodput_bit_per_s)
}

#[test]
fn long_path_has_one_window_per_round_trip() {
    let (flow, got) = long_path("");
    assert_eq!(
        (flow.bottleneck.title.as_str(), flow.bound_bottleneck.title.as_str()),
        ("socket buffers", "socket buffers")
    );
    let window = flow.window.as_ref().expect("a TCP flow has a window");
    assert_eq!((window.bytes, window.set_by), (3 << 20, SetBy::ReceiveBuffer));
    // The path MTU holds a segment of 1448 bytes; both packets take 10 Gbit/s and 45 ms.
    let round_trip = 0.09 + 8.0 * (1500.0 + 52.0) / 10e9;
    assert!((window.round_trip_s / round_trip - 1.0).abs() < 1e-9, "{}", window.round_trip_s);
    let fair = 8.0 * f64::from(3 << 20) / round_trip;
    assert!((flow.goodput_bit_per_s / fair - 1.0).abs() < 1e-9, "{}", flow.goodput_bit_per_s);
    assert_eq!(stage(&flow, "socket buffers: window per round trip"), flow.goodput_bit_per_s);
    // Segments acknowledged when the window begins release a whole TCP window at once.
    assert!(flow.bound_bit_per_s <= fair * (1.0 + round_trip / 20.0 + 1e-3), "{}", flow.bound_bit_per_s);
    assert!((0.98 * fair..=flow.bound_bit_per_s).contains(&got), "{got} of {fair}");
}

#[test]
fn window_summary_names_the_buffer_that_fills_the_line() {
    let flow = &limits(&long("")).flows["t"];
    let product = "the bandwidth-delay product of link `wan` is 112.50 MB, and socket buffers of 108.60 MB would fill it";
    assert!(flow.summary.contains(product), "{}", flow.summary);
    assert!(flow.bound_summary.contains(product), "{}", flow.bound_summary);
    let filling = flow.window.as_ref().expect("a TCP flow has a window").filling_bytes;
    let buffers =
        |bytes: f64| format!("tcp = {{ send_buffer = \"{bytes:.0} B\", receive_buffer = \"{bytes:.0} B\" }}");
    // Windows are announced in units of the scale: 2 KiB.
    let full = &limits(&long(&buffers(filling + 2048.0))).flows["t"];
    assert_eq!(full.bottleneck.title, "link `wan`", "{}", full.summary);
    let short = &limits(&long(&buffers(0.99 * filling))).flows["t"];
    assert_eq!(short.bottleneck.title, "socket buffers", "{}", short.summary);
}
