//! Purpose of packet discard and of adaptive shapers: a stream beside CBR on a congested ATM port.

mod common;

use engpass_outcome::FlowOutcome;
use engpass_simulate::simulate;

/// A host sends messages of 9152 B, one packet of 192 cells each, beside CBR through a port of 384 cells. Beside 130 Mbit/s, 57 959 cells/s or 22.10 Mbit/s of
/// payload are left.
fn bench(kind: &str, switch: &str, circuit: &str, cbr: &str) -> FlowOutcome {
    let text = format!(
        r#"
        [host.sender]
        cost = {{ per_fragment = "0.919 ms", per_byte = "137 ns" }}
        [host.receiver]
        [host.generator]
        [switch.atm]
        kind = "atm"
        output_buffer = "384 cells"
        {switch}
        [link.sender]
        ends = ["sender", "atm"]
        medium = "oc-3c"
        [link.generator]
        ends = ["generator", "atm"]
        medium = "oc-3c"
        [link.receiver]
        ends = ["atm", "receiver"]
        medium = "oc-3c"
        [circuit.data]
        from = "sender"
        to = "receiver"
        {circuit}
        [traffic.stream]
        kind = "{kind}"
        from = "sender"
        to = "receiver"
        message = "9152 B"
        {cbr}
        [run]
        duration = "3 s"
        warmup = "200 ms"
        "#
    );
    let point = common::point(&text, "base", &[]);
    let outcome = simulate(&point.testbed, &point.topology, 1, &|| false).expect("no interrupt is requested");
    outcome.flows["stream"].clone()
}

fn generator(name: &str, rate: &str, times: &str) -> String {
    format!(
        "[traffic.{name}]\nkind = \"cbr\"\nfrom = \"generator\"\nto = \"receiver\"\nrate = \"{rate} line\"\n{times}\n"
    )
}

/// Romanow and Floyd 1995: a port that drops cells at random carries cells of dead PDUs. PPD frees the line from most of them, EPD from nearly all. UDP does
/// not slow down: without EPD it loses everything here.
#[test]
fn early_discard_gives_more_goodput_than_ppd_and_tail_drop() {
    let cbr = generator("cbr", "130 Mbit/s", "");
    let epd = |kind| format!("discard = {{ {kind} = {{ threshold = \"50 %\" }} }}");
    let goodput = |kind, discard: &str| bench(kind, discard, "", &cbr).goodput_bit_per_s / 1e6;
    let (tail, ppd) = ("discard = \"tail\"", "discard = \"ppd\"");
    let [plain, partial, early, both] =
        [tail, ppd, &epd("epd"), &epd("epd-ppd")].map(|discard| goodput("tcp-stream", discard));
    assert!(4.0 * plain < partial && partial < early && early < 22.1, "{plain} {partial} {early}");
    assert!((early - both).abs() < 0.05 * early, "{early} {both}");
    let [plain, partial, early] = [tail, ppd, &epd("epd")].map(|discard| goodput("udp-stream", discard));
    assert!(plain < 1.0 && partial < 1.0 && early > 0.99 * 22.1 && early < 22.2, "{plain} {partial} {early}");
    // The space above 90 % of 384 cells cannot hold a PDU of 192 cells: it overflows even with early discard.
    assert!(goodput("udp-stream", "discard = \"epd-ppd\"") < 1.0);
}

/// The CBR changes from 130 to 110 and to 145 Mbit/s: a fixed shaper leaves free capacity unused, and loses everything if it is too fast.
#[test]
fn adaptive_shaper_follows_the_free_capacity() {
    let cbr = [
        generator("all-the-time", "110 Mbit/s", ""),
        generator("at-first", "20 Mbit/s", "stop = \"1 s\""),
        generator("at-last", "35 Mbit/s", "start = \"2 s\""),
    ]
    .concat();
    for kind in ["udp-stream", "tcp-stream"] {
        let run = |circuit: &str| bench(kind, "efci_threshold = \"10 %\"", circuit, &cbr);
        let (fixed, slow, adaptive) =
            (run("shaping = \"16 %\""), run("shaping = \"6 %\""), run("adaptive = { start = \"10 %\" }"));
        assert!(adaptive.goodput_bit_per_s > 1.2 * fixed.goodput_bit_per_s, "{kind} {adaptive:?} {fixed:?}");
        assert!(adaptive.goodput_bit_per_s > 2.0 * slow.goodput_bit_per_s, "{kind} {adaptive:?} {slow:?}");
        let counts = adaptive.datagrams.unwrap();
        assert!(adaptive.efci_pdus > Some(0) && 20 * counts.lost < counts.sent, "{adaptive:?}");
    }
}
