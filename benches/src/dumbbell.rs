//! Many TCP flows through one bottleneck: the workload that packet simulators are compared with.

use std::fmt::Write;

/// `flows` connections, each with hosts of its own, over access links of 1 Gbit/s and 1 ms and a bottleneck of `rate` and 3 ms with a
/// queue of 200 packets: 10 ms there and back. Plain Reno with NewReno's recovery unless `tcp` says otherwise; segments of
/// 1448 bytes, acknowledged one for two, 2 bytes of framing (PPP) around packets of 1500.
pub fn dumbbell(flows: usize, rate: &str, tcp: &str) -> String {
    let mut text = format!(
        r#"# Written by `engpass_bench::dumbbell::dumbbell`.

name = "{flows} TCP flows through one bottleneck"

[router.left]
queue = {{ drop-tail = {{ limit = "200 packets" }} }}
[router.right]
queue = {{ drop-tail = {{ limit = "10000 packets" }} }}

[link.bottleneck]
ends = ["left", "right"]
medium = "point-to-point"
rate = "{rate}"
delay = "3 ms"
overhead = "2 B"

[run]
duration = "10 s"
"#
    );
    for flow in 0..flows {
        write!(
            text,
            r#"
[host.s{flow}]
tcp = {tcp}
[host.r{flow}]

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
"#
        )
        .expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Which, measure};
    use crate::workload::point;

    #[test]
    fn the_bottleneck_is_full() {
        let text = dumbbell(4, "155 Mbit/s", "{ congestion = \"reno\", recovery = \"new-reno\" }");
        let measured = measure(&point(&text, "base", &[("run.duration", "\"2 s\"")]), Which::Simulate, 1);
        let received: u64 = measured.seen.flows.iter().map(|flow| flow[1]).sum();
        assert!(received as f64 * 1502.0 * 8.0 > 0.85 * 2.0 * 155e6, "{received} segments");
    }
}
