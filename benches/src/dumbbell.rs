//! TCP flows through one bottleneck: a common workload for comparisons of packet simulators, `ns3/dumbbell.cc` in ns-3.

use std::fmt::Write;

/// Reno with NewReno's recovery; everything else is as in Linux (minimum RTO: smoothed round trip plus 200 ms).
pub const NEW_RENO: &str = "{ congestion = \"reno\", recovery = \"new-reno\", whole_segments = false }";

/// The parameters of `ns3/dumbbell.cc`: Reno with SACK recovery (RFC 6675), acknowledgments for every second segment or after 200 ms (RFC 5681), the
/// timeout of RFC 6298 with its minimum of 1 s, buffers of 4 MiB.
pub const SACK: &str = "{ congestion = \"reno\", recovery = \"sack\", whole_segments = false, byte_counting = 0, quick_acks = 0, ack_every = 2, ack_delay = \"200 ms\", rto_initial = \"1 s\", rto_minimum = \"1 s\", rto_floor = \"timeout\", send_buffer = \"4 MiB\", receive_buffer = \"4 MiB\" }";

/// Bottleneck of the workload for comparisons with other simulators, in Mbit/s.
pub const OC3: u64 = 155;

/// `flows` connections, each with two hosts of its own, over access links of 1 Gbit/s and 1 ms and a bottleneck of `mbit` Mbit/s and 3 ms; the round
/// trip is 10 ms. The queue holds 200 packets per 155 Mbit/s. The flows start within 10 ms, evenly spaced.
///
/// Segments have 1448 bytes; packets of 1500 bytes have 2 bytes of framing (PPP).
pub fn dumbbell(flows: usize, mbit: u64, tcp: &str) -> String {
    let queue = 200 * mbit / OC3;
    let mut text = format!(
        r#"# Written by `engpass_bench::dumbbell::dumbbell`.

name = "{flows} TCP flows through one bottleneck"

[router.left]
queue = {{ drop-tail = {{ limit = "{queue} packets" }} }}
[router.right]
queue = {{ drop-tail = {{ limit = "10000 packets" }} }}

[link.bottleneck]
ends = ["left", "right"]
medium = "point-to-point"
rate = "{mbit} Mbit/s"
delay = "3 ms"
overhead = "2 B"

[run]
duration = "10 s"
"#
    );
    for flow in 0..flows {
        let start = 10_000_000 * flow / flows;
        write!(
            text,
            r#"
[host.s{flow}]
tcp = {tcp}
[host.r{flow}]
tcp = {tcp}

[link.a{flow}]
ends = ["s{flow}", "left"]
medium = "point-to-point"
rate = "1 Gbit/s"
delay = "1 ms"
overhead = "2 B"

[link.b{flow}]
ends = ["right", "r{flow}"]
medium = "point-to-point"
rate = "1 Gbit/s"
delay = "1 ms"
overhead = "2 B"

[traffic.f{flow}]
kind = "tcp-stream"
from = "s{flow}"
to = "r{flow}"
message = "64 KiB"
start = "{start} ns"
"#
        )
        .expect("writing to a string cannot fail");
    }
    text
}

/// `flows` connections from one host to another over a line of 1 Gbit/s. They send until `stop` and are idle after that.
pub fn idle(flows: usize, stop: &str) -> String {
    let mut text = String::from(
        r#"# Written by `engpass_bench::dumbbell::idle`.

name = "TCP flows that are idle after their transfers"

[host.s]
[host.r]

[link.line]
ends = ["s", "r"]
medium = "point-to-point"
rate = "1 Gbit/s"
delay = "1 ms"

[run]
duration = "2 s"
"#,
    );
    for flow in 0..flows {
        write!(
            text,
            r#"
[traffic.f{flow}]
kind = "tcp-stream"
from = "s"
to = "r"
message = "8 KiB"
stop = "{stop}"
"#
        )
        .expect("writing to a string cannot fail");
    }
    text
}
