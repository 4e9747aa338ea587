//! ICMP messages to a sender that discovers the path MTU.
//!
//! A byte takes 80 ns on Ethernet at 100 Mbit/s and 1 us on the middle line; all delays are 1 us. A frame has 8 B of preamble, 18 B of headers and FCS and 12 B
//! of gap around its packet, which is padded to 46 B. A SYN of BSD is a packet of 44 B. It leaves `h0` after 5.76 us, `r0` after 50.76 us and `r1` after 57.52
//! us: it is at `h1` after 58.52 us, and the answer at `h0` after 117.04 us. Then `h0` acknowledges, 84 B on the line until 123.76 us. A segment of 1000 B is a
//! packet of 1040 B, whose last bit leaves 1066 B later, after 209.04 us: at 210.04 us it is at `r0`.

use super::run_for;
use crate::outcome::{Booking, Losing, Observed, Place, Times};
use crate::queue::Cause;

/// Two routers, with a line with an MTU of 600 B between them.
const NARROW: &str = r#"
name = "narrow"
[host.h0.tcp]
profile = "bsd-reno"
path_mtu = "discovered"
nagle = "off"
initial_window = 4
[host.h1.tcp]
profile = "bsd-reno"
[router.r0]
R0
[router.r1]
[link.in]
ends = ["h0", "r0"]
medium = "ethernet-100"
delay = "1 us"
[link.thin]
ends = ["r0", "r1"]
medium = "point-to-point"
rate = "8 Mbit/s"
delay = "1 us"
mtu = "600 B"
[link.out]
ends = ["r1", "h1"]
medium = "ethernet-100"
delay = "1 us"
OUT
[traffic.t]
kind = "tcp-stream"
from = "h0"
to = "h1"
message = "1000 B"
rate = "1 bit/s"
"#;
const IN: usize = 0;
const THIN: usize = 1;
/// Node of the first router.
const R0: usize = 2;
const TOO_BIG: Place = Place::TooBig { node: R0 };
/// Instant at which the segment is lost.
const LOST: u64 = 210_040_000;

fn narrow(r0: &str, out: &str) -> String {
    NARROW.replace("R0", r0).replace("OUT", out)
}

fn run(text: &str, at: u64) -> Observed {
    run_for("path-mtu.toml", text, at)
}

/// Returns losses: place, flow, packets, datagrams.
fn losses(seen: &Observed) -> Vec<(Place, usize, u64, u64)> {
    let all = seen.losses.iter();
    all.map(|(Losing { place, flow }, lost)| (*place, *flow, lost.cells, lost.datagrams)).collect()
}

/// Returns the frames that have left an end of a link, and their bytes on the line.
fn frames(seen: &Observed, link: usize, end: usize) -> (u64, u64) {
    seen.frames.get(&(link, end)).map_or((0, 0), |seen| (seen.frames, seen.bytes))
}

#[test]
fn too_long_segment_is_dropped_at_the_fragmenting_router() {
    let text = narrow("", "");
    assert_eq!(losses(&run(&text, LOST - 1)), []);
    assert_eq!(losses(&run(&text, LOST)), [(TOO_BIG, 0, 1, 1)]);
}

/// A message of 28 + 548 B takes 614 B of the line, the last 12 of them as gap: it leaves 602 B after the loss, at 258.2 us, and is at `h0` 1 us later. At once
/// `h0` sends 560 B, in a packet of 600 that leaves 626 B later, and the other 440, in 506 B after the gap.
#[test]
fn icmp_too_big_has_576_bytes_and_returns_at_once() {
    let (text, leaves) = (narrow("", ""), LOST + 602 * 80_000);
    assert_eq!(frames(&run(&text, leaves - 1), IN, 1), (1, 84));
    let seen = run(&text, leaves);
    assert_eq!(frames(&seen, IN, 1), (2, 84 + 614));
    let back = leaves + 1_000_000;
    let (first, second) = (back + 626 * 80_000, back + (638 + 506) * 80_000);
    let sent = |at: u64| frames(&run(&text, at), IN, 0);
    assert_eq!(sent(first - 1), (3, 84 + 84 + 1078));
    assert_eq!(sent(first), (4, 84 + 84 + 1078 + 638));
    assert_eq!(sent(second - 1).0, 4);
    assert_eq!(sent(second), (5, 84 + 84 + 1078 + 638 + 518));
    // Both arrive, and 60 + 594 B of the line back are control: the answer to the SYN, and the message.
    let seen = run(&text, 3_000_000_000);
    assert_eq!((seen.flows[0].received_bytes, seen.flows[0].lost), (1000, 1));
    let booked = seen.books[&Booking { link: IN, end: 1, flow: 0, back: true }];
    assert!(booked.control >= 64 + 594, "{booked:?}");
    assert_eq!(booked.dead, 0);
}

/// `h0` forms the segment when it gets the answer to its SYN, at 117.04 us, and two shorter ones when it gets the ICMP message, at 259.2 us. The first short
/// segment finds an idle path: 50.08 us, 600 us and again 50.08 us on the lines and 3 us of delays. The second one takes 40.48 us, 480 us and 40.48 us on the
/// lines. Its last bit is at `r0` at 351.72 us, but the first one is at `r1` only at 911.28 us. Then the second one takes 480, 1, 40.48 and 1 us, so it
/// arrives at 1432.76 us. Both are one application message, whose delay begins with the first transmission, at 117.04 us.
#[test]
fn message_delay_of_a_split_segment_begins_with_its_first_transmission() {
    let seen = run(&narrow("", ""), 3_000_000_000);
    let times = |[first, second]: [u64; 2], floor| {
        let mean = (first + second) / 2;
        Some(Times { min: first, mean, quantiles: [first, second, second, second], max: second, floor })
    };
    let (first, second) = (703_160_000, 1_173_560_000);
    assert_eq!(seen.delays, [times([first, second], 0)]);
    assert_eq!(seen.queueing, [times([0, second - 563_960_000], first / 16)]);
    let message = 1_432_760_000 - 117_040_000;
    assert_eq!(seen.message_delays, [times([message; 2], 0)]);
}

/// A message quotes a shorter packet completely: here one of 400 B, so the message has 428 B.
#[test]
fn icmp_too_big_quotes_a_short_packet_completely() {
    let text = narrow("", "").replace("600 B", "200 B").replace("1000 B", "360 B");
    // A packet of 400 B, 426 B of line.
    let lost = 123_760_000 + 426 * 80_000 + 1_000_000;
    let seen = run(&text, lost + (428 + 26) * 80_000);
    assert_eq!(losses(&seen), [(TOO_BIG, 0, 1, 1)]);
    assert_eq!(frames(&seen, IN, 1), (2, 84 + 428 + 38));
}

/// The receiver's own line has an MTU of 576 B, which its SYN announces, so no segment is too long.
#[test]
fn announced_mss_avoids_too_long_segments() {
    let text = narrow("", "mtu = \"576 B\"");
    let seen = run(&text, 3_000_000_000);
    assert_eq!((losses(&seen), seen.flows[0].received_bytes), (vec![], 1000));
}

/// The router finishes the segment 10 us after its arrival, like the two packets before, and the message 10 us later.
#[test]
fn icmp_message_leaves_after_one_processing_time() {
    let text = narrow("per_packet = \"10 us\"", "");
    // The SYN and its answer were delayed by 10 us each.
    let lost = LOST + 30_000_000;
    assert_eq!(losses(&run(&text, lost - 1)), []);
    assert_eq!(losses(&run(&text, lost)), [(TOO_BIG, 0, 1, 1)]);
    let leaves = lost + 10_000_000 + 602 * 80_000;
    assert_eq!(frames(&run(&text, leaves - 1), IN, 1).0, 1);
    assert_eq!(frames(&run(&text, leaves), IN, 1).0, 2);
}

#[test]
fn router_without_icmp_drops_silently() {
    let seen = run(&narrow("icmp = false", ""), 10_000_000_000_000);
    let lost = seen.flows[0].lost;
    assert!(lost > 1, "the segment is retransmitted after a timeout");
    assert_eq!((losses(&seen), frames(&seen, IN, 1).0), (vec![(TOO_BIG, 0, lost, lost)], 1));
    assert_eq!(seen.flows[0].received, 0);
}

/// A datagram of 40 B, 68 us on the thin line, reaches the router from there at the instant of the loss. The queue towards `h0` has one place, which the
/// datagram gets before the message, although its line is the later one in the file. A picosecond later the message gets it.
#[test]
fn icmp_message_queues_behind_simultaneous_arrivals() {
    let text = |start: u64| {
        let datagram = format!(
            "[traffic.u]\nkind = \"udp-stream\"\nfrom = \"h1\"\nto = \"h0\"\nmessage = \"40 B\"\nrate = \"1 bit/s\"\nstart = \"{start} ps\"\n"
        );
        narrow("queue = { drop-tail = { limit = \"1 packets\" } }", "") + &datagram
    };
    // 94 B of Ethernet, 1 us, 68 us, 1 us.
    let start = LOST - 68_000_000 - 2_000_000 - 94 * 80_000;
    let full = Place::Queue { link: IN, end: 1, cause: Cause::Full };
    let seen = run(&text(start), LOST + 1_000_000);
    assert_eq!(losses(&seen), [(full, 0, 1, 1), (TOO_BIG, 0, 1, 1)]);
    // The message does not count as a datagram of the flow.
    assert_eq!((seen.flows[0].sent, seen.flows[0].lost), (1, 1));
    let seen = run(&text(start + 1), LOST + 1_000_000);
    assert_eq!(losses(&seen), [(full, 1, 1, 1), (TOO_BIG, 0, 1, 1)]);
}

/// Two lines lead from the router to another one at `h0`, and packets take them in turn: the answer to the SYN the first one, the message the second one.
#[test]
fn icmp_message_takes_a_round_robin_turn() {
    let two = "[link.beside]\nends = [\"r\", \"r0\"]\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n";
    let text = narrow("ecmp = \"round-robin\"", "")
        .replace("[router.r1]", "[router.r1]\n[router.r]")
        .replace(
            "[link.in]\nends = [\"h0\", \"r0\"]",
            "[link.in]\nends = [\"h0\", \"r\"]\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n[link.one]\nends = [\"r\", \"r0\"]",
        )
        .replace("[traffic.t]", &(two.to_owned() + "[traffic.t]"));
    // One more Ethernet line in each direction: 72 B each for the handshake, 1066 B for the segment.
    let lost = LOST + 2 * (72 * 80_000 + 1_000_000) + 1066 * 80_000 + 1_000_000;
    let seen = run(&text, lost + 602 * 80_000);
    assert_eq!(losses(&seen), [(Place::TooBig { node: R0 }, 0, 1, 1)]);
    assert_eq!((frames(&seen, 1, 1), frames(&seen, 4, 1)), ((1, 84), (1, 614)));
}

/// Three routers: a line with an MTU of 500 B, followed by one of 400 B.
fn narrower(message: &str) -> String {
    narrow("", "")
        .replace("600 B", "500 B")
        .replace("[router.r1]", "[router.r1]\n[router.r2]")
        .replace("ends = [\"r1\", \"h1\"]", "ends = [\"r2\", \"h1\"]")
        .replace("1000 B", message)
        .replace(
            "[link.out]",
            "[link.thinner]\nends = [\"r1\", \"r2\"]\nmedium = \"point-to-point\"\nrate = \"8 Mbit/s\"\ndelay = \"1 us\"\nmtu = \"400 B\"\n[link.out]",
        )
}

/// The second line takes 45 us more in each direction: a packet of 500 B leaves `h0` after 255.84 us, `r0` after 756.84 us, and is lost 1 us later. The message
/// of `r1` has 28 + 500 B and is fragmented into 20 + 480 and 20 + 28 B, which leave after 1257.84 and 1305.84 us. The second fragment takes 74 B of Ethernet:
/// it is at `h0` after 1313.76 us and completes the message.
#[test]
fn fragmented_icmp_message_counts_when_reassembled() {
    let text = narrower("460 B");
    let seen = run(&text, 757_840_000);
    assert_eq!(losses(&seen), [(Place::TooBig { node: R0 + 1 }, 0, 1, 1)]);
    assert_eq!(frames(&run(&text, 1_257_840_000), THIN, 1), (2, 44 + 500));
    assert_eq!(frames(&run(&text, 1_305_840_000 - 1), THIN, 1).0, 2);
    assert_eq!(frames(&run(&text, 1_305_840_000), THIN, 1), (3, 44 + 548));
    // A packet of 400 B has 426 B before the gap.
    let again = 1_313_760_000 + 426 * 80_000;
    assert_eq!(frames(&run(&text, again - 1), IN, 0).0, 3);
    assert_eq!(frames(&run(&text, again), IN, 0).0, 4);
}

/// 1000 B are too long for the first line. The two packets of 500 B that follow, with 460 B of payload each, are too long for the second line; the rest of 80 B
/// is not.
#[test]
fn path_mtu_discovery_shrinks_segments_twice() {
    let seen = run(&narrower("1000 B"), 10_000_000_000);
    assert_eq!(losses(&seen), [(TOO_BIG, 0, 1, 1), (Place::TooBig { node: R0 + 1 }, 0, 2, 2)]);
    assert_eq!(seen.flows[0].received_bytes, 1000);
}

/// Two datagrams of 40 B from a third host follow each other: a frame of 106 B each, 94 of them before the gap. The line towards `h0` ends the first one when
/// the second one arrives, at the instant of the loss. The queue chooses when the message is there, and takes it first because its priority is 6.
#[test]
fn icmp_message_joins_before_the_port_chooses() {
    let text = narrow("queue = \"priority\"", "")
        .replace("ends = [\"h0\", \"r0\"]", "ends = [\"r0\", \"h0\"]")
        .replace("[router.r0]", "[host.h2]\n[router.r0]")
        + "[link.third]\nends = [\"h2\", \"r0\"]\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n";
    let start = LOST - (106 + 94) * 80_000 - 1_000_000;
    let datagram = |name: &str| {
        format!(
            "[traffic.{name}]\nkind = \"udp-stream\"\nfrom = \"h2\"\nto = \"h0\"\nmessage = \"40 B\"\nrate = \"1 bit/s\"\nstart = \"{start} ps\"\n"
        )
    };
    let text = text + &datagram("u") + &datagram("v");
    let sent = |at: u64| frames(&run(&text, at), IN, 0);
    assert_eq!(sent(LOST), (2, 84 + 106));
    assert_eq!(sent(LOST + 602 * 80_000 - 1), (2, 84 + 106));
    assert_eq!(sent(LOST + 602 * 80_000), (3, 84 + 106 + 614));
    assert_eq!(sent(LOST + (614 + 94) * 80_000), (4, 84 + 106 + 614 + 106));
}
