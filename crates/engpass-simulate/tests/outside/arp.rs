//! Address resolution with packet injection.

use engpass_simulate::injection::DeliveryReport;

use super::{all, outside, packet, way};

/// A router that resolves addresses, in front of a receiver 1 ms away.
const ASKING: &str = r#"
    name = "asking"
    [host.a]
    [host.b]
    [router.r]
    arp = {}
    [link.in]
    ends = ["a", "r"]
    medium = "ethernet-100"
    delay = "1 us"
    [link.out]
    ends = ["r", "b"]
    medium = "ethernet-100"
    delay = "1 ms"
    [traffic.any]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "1 kB"
    rate = "1 Mbit/s"
    [run]
    duration = "1 s"
"#;

const MS: u64 = 1_000_000_000;

/// Time of a packet of 1000 B on a line of 100 Mbit/s (1026 bytes up to its last bit), and of an ARP exchange.
const LINE: u64 = 1026 * 80_000;
const ANSWER: u64 = 2 * (72 * 80_000 + MS);

#[test]
fn arp_entries_are_cleared_when_events_begin() {
    let mut network = outside(ASKING);
    let way = way(&network, "a to b");
    let direct = 2 * LINE + 1_000_000 + MS;
    for (at, token) in [(0, 1), (100 * MS, 2), (200 * MS, 3), (300 * MS, 4)] {
        if token == 3 {
            assert_eq!(network.begin_events(150 * MS), 150 * MS);
        }
        network.inject(at, way, packet(1000, token));
    }
    let took = |output: DeliveryReport| match output {
        DeliveryReport::Delivered { at, token, .. } => at - (token - 1) * 100 * MS,
        other => panic!("expected a delivery: {other:?}"),
    };
    let took: Vec<u64> = all(&mut network, u64::MAX).into_iter().map(took).collect();
    assert_eq!(took, [direct + ANSWER, direct, direct + ANSWER, direct]);
}
