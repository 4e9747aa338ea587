//! ICMP messages of routers about injected packets: they cross lines, wait in queues and are lost like any other packet.

use std::ops::ControlFlow;

use engpass_model::time::SECOND;
use engpass_simulate::injection::{DeliveryReport, Error, Errors, InjectedNetwork, MessageContent, Packet};
use engpass_simulate::{CaptureRecord, CaptureSink, Content, Unit};

use super::{ROUTERS, all, outside, packet, way};

/// Two hosts, two routers, and a narrow, slow line between the routers.
const NARROW: &str = r#"
    name = "a narrow line"
    [host.a]
    [host.b]
    [router.near]
    queue = { drop-tail = { limit = "3 packets" } }
    [router.far]
    per_packet = "5 us"
    queue = { drop-tail = { limit = "3 packets" } }
    [link.in]
    ends = ["a", "near"]
    medium = "ethernet-100"
    delay = "1 us"
    [link.middle]
    ends = ["near", "far"]
    medium = "point-to-point"
    rate = "10 Mbit/s"
    delay = "1 ms"
    mtu = "1000 B"
    [link.out]
    ends = ["far", "b"]
    medium = "ethernet-100"
    delay = "1 us"
    [traffic.any]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "1 kB"
    rate = "1 Mbit/s"
    [run]
    duration = "1 s"
"#;

/// Picoseconds of a byte at 100 and at 10 Mbit/s.
const FAST: u64 = 80_000;
const SLOW: u64 = 800_000;
/// Framing of an IP packet on Ethernet up to its last bit: preamble, header and FCS, in bytes.
const AROUND: u64 = 26;
const US: u64 = 1_000_000;

/// Returns a packet that must not be fragmented and about which routers send messages.
fn whole(bytes: u32, token: u64) -> Packet {
    Packet { whole: true, errors: Errors::V4, ..packet(bytes, token) }
}

fn reports(network: &mut InjectedNetwork) -> Vec<DeliveryReport> {
    all(network, u64::MAX)
}

/// The first router sends its message at once, since it takes no time for a packet.
#[test]
fn too_big_message_delay_matches_hand_calculation() {
    let mut network = outside(NARROW);
    let to = way(&network, "a to b");
    assert_eq!((network.ways()[to as usize].mtu, network.ways()[to as usize].first_mtu), (1000, 1500));
    network.inject(0, to, whole(1500, 7));
    let lost_at = (1500 + AROUND) * FAST + US;
    let at = lost_at + (576 + AROUND) * FAST + US;
    let [DeliveryReport::Lost { at: told_at, message: true, token: 7, .. }, message] =
        reports(&mut network)[..]
    else {
        panic!("expected a loss with an ICMP message")
    };
    assert_eq!(told_at, lost_at);
    let error = Error::TooBig { mtu: 1000 };
    let said = MessageContent { router: 0, error, passed: 0, bytes: 1500, more: false, marked: false };
    assert_eq!(message, DeliveryReport::Message { at, way: to, token: 7, said, routers: 0 });
    assert_eq!(network.count_unreported(), 0);
    // A short packet is quoted completely, and ICMPv6 quotes more of a long one.
    for (errors, bytes, length) in
        [(Errors::V4, 1001, 576), (Errors::V6, 1500, 1280), (Errors::V6, 1100, 1148)]
    {
        let begin = network.next_wake().map_or(SECOND, |at| at + SECOND);
        let at = network.inject(begin, to, Packet { errors, ..whole(bytes, 8) });
        let arrives = at + (u64::from(bytes) + AROUND) * FAST + US + (length + AROUND) * FAST + US;
        let found = reports(&mut network);
        assert!(matches!(found[1], DeliveryReport::Message { at, .. } if at == arrives), "{found:?}");
    }
}

/// The second router takes 5 us for the packet, and as long for its message, which crosses the line between the routers and passes the first one.
#[test]
fn time_exceeded_message_delay_matches_hand_calculation() {
    let mut network = outside(NARROW);
    let to = way(&network, "a to b");
    network.inject(0, to, Packet { ttl: 2, ..whole(100, 1) });
    let engine = 5 * US;
    let there = (100 + AROUND) * FAST + US + 100 * SLOW + 1000 * US + engine;
    let length = 128;
    let at = there + engine + length * SLOW + 1000 * US + (length + AROUND) * FAST + US;
    let found = reports(&mut network);
    let error = Error::TimeExceeded;
    let said = MessageContent { router: 1, error, passed: 1, bytes: 100, more: false, marked: false };
    assert!(matches!(found[0], DeliveryReport::Lost { at, message: true, .. } if at == there), "{found:?}");
    assert_eq!(found[1], DeliveryReport::Message { at, way: to, token: 1, said, routers: 1 });
}

#[test]
fn routers_send_no_icmp_if_disabled_or_unwanted() {
    let silent = NARROW.replace("[router.near]", "[router.near]\nicmp = false");
    for (text, packet) in [
        (&silent, whole(1500, 3)),
        (&silent, Packet { ttl: 1, ..whole(100, 3) }),
        (&NARROW.to_owned(), Packet { errors: Errors::None, ..whole(1500, 3) }),
        (&NARROW.to_owned(), Packet { ttl: 1, errors: Errors::None, ..whole(100, 3) }),
    ] {
        let mut network = outside(text);
        let to = way(&network, "a to b");
        network.inject(0, to, packet);
        let found = reports(&mut network);
        assert!(matches!(found[..], [DeliveryReport::Lost { message: false, .. }]), "{found:?}");
    }
    // A packet that may be fragmented is, without a message.
    let mut network = outside(NARROW);
    let to = way(&network, "a to b");
    network.inject(0, to, Packet { whole: false, ..whole(1500, 3) });
    assert!(matches!(reports(&mut network)[..], [DeliveryReport::Delivered { token: 3, .. }]));
}

/// Packets of the other host take the same path: the message waits behind them, and finds no room behind four.
#[test]
fn icmp_message_waits_in_queues_and_is_lost_if_full() {
    let narrow = NARROW.replace("mtu = \"1000 B\"", "");
    for (before, arrives) in [(0_u64, true), (2, true), (4, false)] {
        let mut network = outside(&narrow);
        let [to, back] = ["a to b", "b to a"].map(|name| way(&network, name));
        network.begin_window(0, &mut |_| {});
        // The packets reach the router one after the other, just before the message enters the queue.
        let there = (100 + AROUND) * FAST + US + 100 * SLOW + 1000 * US + 5 * US;
        for number in 0..before {
            network.inject(there - 1000 * US + number, back, packet(1500, 100 + number));
        }
        network.inject(0, to, Packet { ttl: 2, ..whole(100, 1) });
        let found = reports(&mut network);
        let message =
            found.iter().find(|report| report.token() == 1 && !matches!(report, DeliveryReport::Lost { .. }));
        let idle = there + 5 * US + 128 * SLOW + 1000 * US + (128 + AROUND) * FAST + US;
        match message.expect("the ICMP message is reported") {
            DeliveryReport::Message { at, .. } => {
                assert!(arrives);
                assert!(if before == 0 { *at == idle } else { *at > idle + 1500 * SLOW }, "{at} {idle}");
            }
            lost => assert!(matches!(lost, DeliveryReport::MessageLost { .. }) && !arrives, "{lost:?}"),
        }
        let outcome = network.end_window(SECOND, &mut |_| {}).expect("the ledger balances");
        let middle = outcome
            .links
            .iter()
            .find(|(link, _)| link.as_str() == "middle")
            .expect("the outcome has this link");
        let control = middle.1.directions[1].ledger.get("ACK and control");
        assert_eq!(control, if arrives { 128 * 8 } else { 0 });
        let own = outcome.drops.iter().filter(|drop| drop.flow == "a to b");
        let lost: Vec<_> = own.map(|drop| drop.cause).collect();
        assert_eq!(lost, if arrives { vec!["time to live"] } else { vec!["buffer full", "time to live"] });
        assert_eq!(network.count_unreported(), 0);
    }
}

/// The circuit between two routers carries the message in cells; a message whose cells find no room is lost.
#[test]
fn icmp_messages_cross_circuits() {
    let mut network = outside(ROUTERS);
    let to = way(&network, "a to b");
    network.begin_window(0, &mut |_| {});
    network.inject(0, to, Packet { ttl: 2, ..whole(1500, 5) });
    let found = reports(&mut network);
    let DeliveryReport::Message { at, said: MessageContent { router: 1, passed: 1, .. }, routers: 1, .. } =
        found[1]
    else {
        panic!("{found:?}")
    };
    // 1500 bytes in 32 cells there, 576 in 13 back.
    let cell = (424.0 / 149.76e6 * 1e12) as u64;
    let paper = (1500 + AROUND) * FAST + 32 * cell + 13 * cell + (576 + AROUND) * FAST;
    assert!(at.abs_diff(paper) < 11 * US, "{at} {paper}");
    let outcome = network.end_window(SECOND, &mut |_| {}).expect("the ledger balances");
    let middle =
        outcome.links.iter().find(|(link, _)| link.as_str() == "middle").expect("the outcome has this link");
    let back = &middle.1.directions[1];
    assert_eq!(back.carried.sent(), 13);
    // All of their payload is control traffic.
    let of_packets = [back.ledger.get("ACK and control"), back.ledger.get("cell headers")];
    assert!(of_packets[0] * 5 == of_packets[1] * 48 && of_packets[0] > 0, "{of_packets:?}");
}

/// A host fragments packets that are too long for its line: there is a message about the first fragment, and none about the others.
#[test]
fn fragmented_packet_causes_one_icmp_message() {
    let mut network = outside(NARROW);
    let to = way(&network, "a to b");
    network.inject(0, to, Packet { ttl: 1, whole: false, ..whole(9000, 2) });
    let found = reports(&mut network);
    assert_eq!(
        found.iter().filter(|report| matches!(report, DeliveryReport::Message { .. })).count(),
        1,
        "{found:?}"
    );
    assert_eq!(found.len(), 2);
    // A router fragments the packet. The TTL expires at the next router, whose ICMP message quotes the first fragment.
    network.inject(SECOND, to, Packet { ttl: 2, whole: false, ..whole(1500, 3) });
    let found = reports(&mut network);
    let said = |report: &DeliveryReport| match *report {
        DeliveryReport::Message { said, .. } => Some((said.bytes, said.more, said.passed)),
        _ => None,
    };
    // 20 bytes of header and 976 behind it: a multiple of eight.
    assert_eq!(found.iter().filter_map(said).collect::<Vec<_>>(), [(996, true, 1)]);
}

/// The TTL of the outer packet expires, and the host inside gets no message.
#[test]
fn ttl_expiry_inside_a_tunnel_sends_no_icmp() {
    let tunnelled =
        NARROW.replace("mtu = \"1000 B\"", "") + "[tunnel.gre]\nends = [\"near\", \"far\"]\nttl = 1\n";
    for (packet, speaks) in
        [(whole(1400, 1), false), (whole(1500, 1), true), (Packet { ttl: 1, ..whole(100, 1) }, true)]
    {
        let middle = tunnelled.replace("[router.far]", "[router.between]\n[router.far]").replace(
            "[link.out]",
            "[link.more]\nends = [\"between\", \"far\"]\nmedium = \"point-to-point\"\nrate = \"10 Mbit/s\"\n[link.out]",
        );
        let middle = middle
            .replace("ends = [\"near\", \"far\"]\n    medium", "ends = [\"near\", \"between\"]\n    medium");
        let mut network = outside(&middle);
        let to = way(&network, "a to b");
        network.inject(0, to, packet);
        let found = reports(&mut network);
        let DeliveryReport::Lost { message, place, .. } = found[0] else { panic!("{found:?}") };
        assert_eq!(message, speaks, "{packet:?}: {}", network.place(place).0);
        assert_eq!(found.len(), 1 + usize::from(speaks));
    }
}

/// Tokens of captured packets, with the content of messages.
#[derive(Default)]
struct Seen(Vec<(u64, Option<MessageContent>, u32, u8)>);

impl CaptureSink for Seen {
    fn passed(&mut self, passing: &CaptureRecord) -> ControlFlow<()> {
        let Unit::Packet(packet) = &passing.unit else { panic!("expected a packet, not a cell") };
        let Content::Outside { token, said } = packet.content else {
            panic!("every packet is an injected packet")
        };
        self.0.push((token, said, packet.head.bytes, packet.head.ttl));
        ControlFlow::Continue(())
    }

    fn wants_more(&self) -> bool {
        true
    }
}

#[test]
fn captures_record_icmp_messages() {
    let mut network = outside(NARROW);
    // Packets from `near` to `a`.
    network.capture(&[1]);
    let to = way(&network, "a to b");
    network.inject(0, to, whole(1500, 9));
    network.inject(SECOND, to, Packet { ttl: 2, ..whole(100, 10) });
    reports(&mut network);
    network.run_until(2 * SECOND, &mut |_| {});
    let mut seen = Seen::default();
    network.end_capture(&mut seen).expect("nothing stops the capture");
    let said = |router, error, passed, bytes| {
        Some(MessageContent { router, error, passed, bytes, more: false, marked: false })
    };
    let big = (9, said(0, Error::TooBig { mtu: 1000 }, 0, 1500), 576, 64);
    assert_eq!(seen.0, [big, (10, said(1, Error::TimeExceeded, 1, 100), 128, 63)]);
}
