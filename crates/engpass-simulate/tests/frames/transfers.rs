//! Transfers of a given number of messages, as ttcp makes them, against arithmetic.

use super::common::close;
use super::{flow, run};

/// The default of ttcp: 2048 buffers of 8192 bytes.
const TTCP: &str = r#"
    name = "ttcp"
    [host.a]
    [host.b]
    [link.lan]
    ends = ["a", "b"]
    medium = "ethernet-100"
    [traffic.udp]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "8192 B"
    count = 2048
    sentinels = true
    [run]
    duration = "3 s"
"#;
const BYTES: f64 = 2048.0 * 8192.0;

/// 8200 bytes of IP payload are five packets of 1500 bytes and one of 820, each with 38 bytes of Ethernet; a sentinel is a shortest frame of 84 bytes. The
/// clock runs from the end of the first sentinel to that of the next, behind all messages.
#[test]
fn ttcp_over_udp_measures_between_its_sentinels() {
    let outcome = run(TTCP, &[]);
    let transfer = flow(&outcome, "udp").transfer.expect("the flow is a transfer");
    let [begin, end] = outcome.instants["udp"].transfer.expect("the transfer has ended");
    let line = (2048 * (5 * 1538 + 858) + 84) * 8 * 10_000;
    assert_eq!((transfer.received_bytes as f64, end - begin), (BYTES, line));
    assert_eq!(flow(&outcome, "udp").datagrams.unwrap().sent, 2048 + 6);
    close(
        transfer.goodput_bit_per_s.expect("the transfer has ended"),
        BYTES * 8.0 / (line as f64 / 1e12),
        1e-12,
    );
}

/// A transfer that the run cuts off has no time.
#[test]
fn transfer_without_its_end_has_no_time() {
    for kind in ["udp-stream", "tcp-stream"] {
        let text = TTCP.replace("udp-stream", kind).replace("sentinels = true\n", "");
        let text = if kind == "udp-stream" { TTCP } else { &text };
        let outcome = run(text, &[("run.duration", "\"1 s\"")]);
        let transfer = flow(&outcome, "udp").transfer.expect("the flow is a transfer");
        assert!(transfer.duration_s.is_none(), "{kind}: {transfer:?}");
        let bytes = transfer.received_bytes;
        assert!((bytes as f64) < BYTES && bytes > 11_000_000, "{kind}: {bytes}");
    }
}

/// Segments of 1448 bytes, which take 1538 on the line, from the first to the last byte; the warm-up counts as well.
#[test]
fn tcp_transfer_measures_from_first_to_last_byte() {
    let text = TTCP.replace("udp-stream", "tcp-stream").replace("sentinels = true\n", "");
    for warmup in ["\"0 s\"", "\"1 s\""] {
        let outcome = run(&text, &[("run.warmup", warmup)]);
        let transfer = flow(&outcome, "udp").transfer.expect("the flow is a transfer");
        assert_eq!(transfer.received_bytes as f64, BYTES);
        let goodput = transfer.goodput_bit_per_s.expect("the transfer has ended");
        close(goodput, 1448.0 / 1538.0 * 1e8, 0.01);
    }
}
