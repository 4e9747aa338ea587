//! TCP with an application that writes at a given rate.

use crate::common::close;
use crate::{flow, run};

const LINE: &str = r#"
    name = "a schedule"
    [host.a]
    [host.b]
    [router.r]
    [link.first]
    ends = ["a", "r"]
    medium = "ethernet-100"
    [link.second]
    ends = ["r", "b"]
    medium = "point-to-point"
    rate = "50 Mbit/s"
    delay = "2 ms"
    [traffic.stream]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    message = "10 kB"
    rate = "8 Mbit/s"
    [run]
    duration = "4 s"
    warmup = "1 s"
"#;

/// The receiver gets exactly what is written: 100 writes of 10 kB per second from each connection.
#[test]
fn paced_tcp_delivers_the_written_rate() {
    for (streams, rate) in [("1", 8e6), ("3", 24e6)] {
        let outcome = run(LINE, &[("traffic.stream.streams", streams)]);
        let stream = flow(&outcome, "stream");
        // A write in progress at either window edge counts in part.
        let write = 8.0 * 10e3 * streams.parse::<f64>().expect("a number") / 3.0;
        assert!((stream.goodput_bit_per_s - rate).abs() <= write, "{}", stream.goodput_bit_per_s);
    }
}

/// A connection that cannot keep up carries as much as without a rate.
#[test]
fn paced_tcp_above_capacity_equals_unpaced_tcp() {
    let fast = run(LINE, &[("traffic.stream.rate", "\"80 Mbit/s\"")]);
    let free = run(&LINE.replace("rate = \"8 Mbit/s\"", ""), &[]);
    close(flow(&fast, "stream").goodput_bit_per_s, flow(&free, "stream").goodput_bit_per_s, 0.01);
}

/// A write due after `stop` does not happen.
#[test]
fn paced_tcp_writes_end_at_stop() {
    let outcome = run(LINE, &[("traffic.stream.stop", "\"2 s\""), ("run.warmup", "\"0 s\"")]);
    let stream = flow(&outcome, "stream");
    // Writes 0 to 199 are due before 2 s.
    close(stream.goodput_bit_per_s * 4.0, 200.0 * 80e3, 1e-9);
}
