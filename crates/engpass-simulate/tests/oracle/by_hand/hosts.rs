//! Hosts, NICs, shapers and generators.

use engpass_model::host::{Cost, Host, Pauses};
use engpass_model::random::Stream;
use engpass_model::shape::Adaptive;
use engpass_model::source::on_off::Lengths;
use engpass_model::source::{OnOff, Traffic, Video};
use engpass_model::unit::{Share, Size};
use engpass_model::wire::Medium;
use engpass_testbed::Testbed;

use super::{departed, fates, left, losses, seen};
use crate::bench::{bench, cbr, circuit, hosts, link, q, udp};
use crate::outcome::{Place, Times, TransferSeen};

/// Returns `a` and `b` with one link and one circuit.
fn pair(duration: &str) -> Testbed {
    let mut testbed = bench(duration);
    hosts(&mut testbed, &["a", "b"]);
    link(&mut testbed, ["a", "b"], Medium::Oc3c);
    circuit(&mut testbed, "a", "b");
    testbed
}

#[test]
fn single_datagram_delay_matches_hand_calculation() {
    let mut testbed = pair("1 ms");
    // The second message would be ready after 800 s.
    udp(&mut testbed, "a", "b", 100).rate = Some(q("1 bit/s"));
    // Three cells have left after 3 slots, 8 493 590; the last arrives 1 us later.
    let before = seen(&testbed, 9_493_589);
    assert_eq!(fates(&before.flows[0]), [1, 0, 0, 1]);
    assert_eq!(departed(&before, 0, 0), [left(3, 8_493_590)]);
    let then = seen(&testbed, 9_493_590);
    assert_eq!(fates(&then.flows[0]), [1, 1, 0, 0]);
    assert_eq!(then.flows[0].receptions.last, Some(9_493_590));
    assert_eq!(then.flows[0].receptions.times, 9_493_590);
    assert_eq!(before.delays, [None]);
    assert_eq!(
        then.delays,
        [Some(Times {
            min: 9_493_590,
            mean: 9_493_590,
            quantiles: [9_493_590; 4],
            max: 9_493_590,
            floor: 0
        })]
    );
}

/// Frames of one and a half messages, every millisecond: two messages, then one.
#[test]
fn video_hands_over_the_messages_of_a_frame_together() {
    let mut testbed = pair("2 ms");
    udp(&mut testbed, "a", "b", 100);
    let Some(Traffic::UdpStream(stream)) = testbed.traffic.shift_remove("a>b") else { unreachable!() };
    let video = Video {
        from: stream.from,
        to: stream.to,
        message: stream.message,
        rate: q("1.2 Mbit/s"),
        frame_rate: q("1000 fps"),
        group_of_pictures: 1,
        intra_size: q("100 %"),
        circuit: stream.circuit,
        send_path: None,
        receive_path: None,
        receive_buffer: None,
        live: stream.live,
        priority: 0,
        ttl: 64,
        start: None,
        stop: None,
    };
    testbed.traffic.insert("v".into(), Traffic::Video(video));
    let first = seen(&testbed, 999_999_999);
    assert_eq!(departed(&first, 0, 0), [left(6, 16_987_180)]);
    assert_eq!((fates(&first.flows[0]), first.flows[0].receptions.last), ([2, 2, 0, 0], Some(17_987_180)));
    let all = seen(&testbed, 2_000_000_000);
    assert_eq!((fates(&all.flows[0]), all.flows[0].receptions.last), ([3, 3, 0, 0], Some(1_009_493_590)));
}

/// A sentinel is one cell, a message three. The receiver's clock runs from the first cell to the eighth.
#[test]
fn sentinels_bound_the_time_of_a_transfer() {
    let mut testbed = pair("1 ms");
    let stream = udp(&mut testbed, "a", "b", 100);
    (stream.count, stream.sentinels) = (Some(2), true);
    let before = seen(&testbed, 23_649_572);
    let transfer = |bytes, times| Some(TransferSeen { bytes, times });
    assert_eq!(before.flows[0].transfer, transfer(200, None));
    let then = seen(&testbed, 1_000_000_000);
    assert_eq!(then.flows[0].transfer, transfer(200, Some([3_831_197, 23_649_573])));
    // One sentinel precedes the messages, and five follow.
    assert_eq!(departed(&then, 0, 0)[0].cells, 12);
    assert_eq!(fates(&then.flows[0]), [8, 8, 0, 0]);
}

#[test]
fn nic_serves_circuits_in_turn_in_file_order() {
    let mut testbed = pair("1 ms");
    let second = testbed.circuits["a-b"].clone();
    testbed.circuits.insert("second".into(), second);
    // The traffic of the second circuit is first in the file, but the order of the circuits decides.
    udp(&mut testbed, "a", "b", 100).rate = Some(q("1 bit/s"));
    let first = testbed.traffic.shift_remove("a>b").unwrap();
    udp(&mut testbed, "a", "b", 100).rate = Some(q("1 bit/s"));
    let Traffic::UdpStream(stream) = &mut testbed.traffic[0] else { unreachable!() };
    stream.circuit = Some("second".into());
    testbed.traffic.insert("on the first".into(), first);
    // Both shapers emit at 0 and after 1 and 2 slots: the line sends 1 2 1 2 1 2.
    let seen = seen(&testbed, 1_000_000_000);
    assert_eq!(departed(&seen, 0, 0), [left(3, 14_155_983), left(3, 16_987_180)]);
    assert_eq!(seen.flows[0].receptions.last, Some(17_987_180));
    assert_eq!(seen.flows[1].receptions.last, Some(15_155_983));
}

#[test]
fn shaper_at_16_percent_matches_hand_calculation() {
    let mut testbed = pair("100 us");
    testbed.circuits["a-b"].shaping = Some(q("16 %"));
    // Room for one SDU: the second message is handed over when the first has left.
    testbed.hosts["a"].nic_buffer = Size(128);
    udp(&mut testbed, "a", "b", 100);
    // One emission every slot / 0.16 = 17 694 978.63 ps: at 0, 17 694 979 and 35 389 958. Every cell begins a busy
    // period of its own: the last has left at 35 389 958 + 2 831 197 = 38 221 155.
    let first = seen(&testbed, 39_221_155);
    assert_eq!(departed(&first, 0, 0), [left(3, 38_221_155)]);
    assert_eq!(first.flows[0].receptions.last, Some(39_221_155));
    // The second message is handed over then, but the shaper keeps its spacing: emissions 3, 4 and 5 at 53 084 936,
    // 70 779 915 and 88 474 894; left at 91 306 091.
    let second = seen(&testbed, 100_000_000);
    assert_eq!(departed(&second, 0, 0), [left(6, 91_306_091)]);
    assert_eq!(second.flows[0].receptions.last, Some(92_306_091));
    // Delays count from 0, when the process began with both messages.
    let (min, max) = (39_221_155, 92_306_091);
    let mean = (min + max) / 2;
    assert_eq!(second.delays, [Some(Times { min, mean, quantiles: [min, max, max, max], max, floor: 0 })]);
}

#[test]
fn full_nic_buffer_blocks_the_sender() {
    let mut testbed = pair("1 ms");
    testbed.hosts["a"].nic_buffer = Size(256);
    udp(&mut testbed, "a", "b", 100);
    // Two SDUs of 128 B fit at 0; a third when the first has left after 3 slots, a fourth after 6.
    for (at, sent) in [(0, 2), (8_493_589, 2), (8_493_590, 3), (16_987_179, 3), (16_987_180, 4)] {
        assert_eq!(seen(&testbed, at).flows[0].sent, sent, "at {at}");
    }
    // Events at the end of the warm-up itself are not counted. Datagrams in flight count whenever they were sent.
    testbed.run.warmup = Some(q("8.493590 us"));
    for (at, sent, in_flight) in [(8_493_590, 0, 3), (16_987_180, 1, 3)] {
        let flow = &seen(&testbed, at).flows[0];
        assert_eq!((flow.sent, flow.in_flight), (sent, in_flight), "at {at}");
    }
}

#[test]
fn sender_waiting_for_nic_buffer_is_not_overtaken() {
    let mut testbed = pair("1 ms");
    testbed.hosts["a"].nic_buffer = Size(256);
    let second = testbed.circuits["a-b"].clone();
    testbed.circuits.insert("second".into(), second);
    udp(&mut testbed, "a", "b", 100);
    let large = udp(&mut testbed, "a", "b", 200).clone();
    let Traffic::UdpStream(small) = &mut testbed.traffic["a>b"] else { unreachable!() };
    small.message = Size(100);
    testbed.traffic.insert("large".into(), Traffic::UdpStream(large));
    // At 0 the small stream hands over two frames and waits with its third, the large one (228 B) behind it. After 3
    // slots the third small frame is handed over. After 6 slots 128 B are free: a fourth small frame would fit but is behind the
    // large one, which goes after 9 slots, when nothing is occupied.
    for (at, small, large) in
        [(0, 2, 0), (8_493_590, 3, 0), (16_987_180, 3, 0), (25_480_769, 3, 0), (25_480_770, 3, 1)]
    {
        let seen = seen(&testbed, at);
        assert_eq!((seen.flows[0].sent, seen.flows[1].sent), (small, large), "at {at}");
    }
}

#[test]
fn fragment_costs_match_hand_calculation() {
    let mut testbed = pair("1 ms");
    testbed.circuits["a-b"].mtu = Some(Size(148));
    let (per_datagram, per_fragment, per_byte) = (Some(q("10 us")), Some(q("1 us")), Some(q("1 ns")));
    testbed.hosts["a"].cost = Cost { per_datagram, per_fragment, per_byte, ..Cost::default() };
    udp(&mut testbed, "a", "b", 200).rate = Some(q("1 bit/s"));
    // 208 B of IP payload are fragments of 128 B and 80 B: 120 B and 80 B of the message, 4 and 3 cells. The first
    // is handed over at 10 + 1 + 0.12 us, the second 1 + 0.08 us later, at 12.2 us.
    assert_eq!(seen(&testbed, 12_199_999).flows[0].sent, 0);
    assert_eq!(seen(&testbed, 12_200_000).flows[0].sent, 1);
    // The seven cells follow each other: 11 120 000 + 7 slots + delay.
    let seen = seen(&testbed, 1_000_000_000);
    assert_eq!(seen.flows[0].receptions.last, Some(31_938_377));
    assert_eq!(departed(&seen, 0, 0), [left(7, 30_938_377)]);
}

#[test]
fn datagrams_beyond_the_receive_buffer_are_lost() {
    let mut testbed = pair("260 us");
    let receive_cost = Cost { per_datagram: Some(q("100 us")), ..Cost::default() };
    testbed.hosts["b"] = Host { receive_cost, receive_buffer: Size(150), ..Host::default() };
    udp(&mut testbed, "a", "b", 100).rate = Some(q("20 Mbit/s"));
    // One message every 40 us, the first complete at 9 493 590. It is received 100 us later; the two that come
    // meanwhile do not fit. The fourth, complete at 129 493 590, is the next; the seventh is on the CPU at the end.
    let seen = seen(&testbed, 260_000_000);
    assert_eq!(fates(&seen.flows[0]), [7, 2, 4, 1]);
    assert_eq!(losses(&seen), [(Place::ReceiveBuffer, 0, 0, 4)]);
    assert_eq!(seen.flows[0].receptions.times, 109_493_590 + 229_493_590);
    assert_eq!(seen.flows[0].receptions.weighted, 109_493_590 + 4 * 229_493_590);
    // The same buffer, set for the traffic: it takes precedence over that of the host.
    testbed.hosts["b"].receive_buffer = Size(1 << 20);
    let Traffic::UdpStream(stream) = &mut testbed.traffic[0] else { unreachable!() };
    stream.receive_buffer = Some(Size(150));
    assert_eq!(self::seen(&testbed, 260_000_000).flows[0].receptions, seen.flows[0].receptions);
}

#[test]
fn pauses_delay_every_message_by_a_random_time() {
    let mut testbed = pair("1 ms");
    testbed.hosts["a"].pauses = Some(Pauses { share: Share(Share::WHOLE), mean: q("100 us") });
    udp(&mut testbed, "a", "b", 100);
    // Each message has two draws: whether the process pauses, and for how long. Nothing else takes time.
    let mut random = Stream::new(1, "traffic.a>b");
    let mut at = 0;
    for sent in 1..=5 {
        random.below(Share::WHOLE);
        at += random.exponential(100_000_000);
        assert_eq!(seen(&testbed, at - 1).flows[0].sent, sent - 1);
        assert_eq!(seen(&testbed, at).flows[0].sent, sent);
    }
}

#[test]
fn no_message_is_sent_at_or_after_stop() {
    let mut testbed = pair("1 ms");
    let stream = udp(&mut testbed, "a", "b", 100);
    stream.rate = Some(q("8 Mbit/s"));
    stream.start = Some(q("50 us"));
    stream.stop = Some(q("350 us"));
    // One message every 100 us: at 50, 150 and 250 us; the fourth would be ready at `stop`.
    assert_eq!(seen(&testbed, 1_000_000_000).flows[0].sent, 3);
    let Traffic::UdpStream(stream) = &mut testbed.traffic[0] else { unreachable!() };
    stream.stop = None;
    // Ten messages, at 50 us, 150 us and so on to 950 us.
    assert_eq!(seen(&testbed, 1_000_000_000).flows[0].sent, 10);
}

#[test]
fn cbr_generator_begins_at_its_phase() {
    let mut testbed = pair("1 ms");
    cbr(&mut testbed, "a", "b", q("10000 cells/s"));
    // One cell every 100 us from a phase below that: ten in a millisecond.
    let phase = Stream::new(1, "traffic.a*b").below(100_000_000);
    let seen = seen(&testbed, 1_000_000_000);
    let last = phase + 900_000_000 + 2_831_197;
    assert_eq!(seen.flows[0].sent, 10);
    // The circuit of the source comes after that of the file.
    assert_eq!(seen.departures.keys().next().unwrap().circuit, 1);
    assert_eq!(departed(&seen, 0, 0), [left(10 - u64::from(last > 1_000_000_000), last)]);
}

#[test]
fn on_off_generator_sends_two_cells_per_on_time() {
    let mut testbed = pair("1 ms");
    let source = OnOff {
        from: "a".into(),
        to: "b".into(),
        rate: q("200000 cells/s"),
        counts: None,
        on: q("10 us"),
        off: q("10 us"),
        lengths: Lengths::Fixed,
        circuit: None,
        start: None,
        stop: Some(q("500 us")),
    };
    testbed.traffic.insert("bursts".into(), Traffic::OnOff(source));
    // A cell every 5 us: at 0 and 5 us of an on-time of 10 us, which ends before the third. On-times begin every 20 us
    // from a phase below that; cells before 500 us count.
    let phase = Stream::new(1, "traffic.bursts").below(20_000_000);
    let before_stop =
        |offset: u64| (0..50).filter(|k| phase + k * 20_000_000 + offset < 500_000_000).count() as u64;
    let seen = seen(&testbed, 1_000_000_000);
    assert_eq!(seen.flows[0].sent, before_stop(0) + before_stop(5_000_000));
    assert_eq!(seen.flows[0].received, seen.flows[0].sent);
}

#[test]
fn generator_cells_on_a_circuit_break_its_pdus() {
    let mut testbed = pair("1 ms");
    udp(&mut testbed, "a", "b", 100).rate = Some(q("1 bit/s"));
    cbr(&mut testbed, "a", "b", q("50 %"));
    let Traffic::Cbr(source) = &mut testbed.traffic[1] else { unreachable!() };
    source.circuit = Some("a-b".into());
    source.stop = Some(q("9 us"));
    // The stream's cells reach the line at 0, 1 and 2 slots, the generator's every 2 slots from a phase of less than that:
    // its first cell is between the first and the last of the stream and ends a PDU with the stream's first in it. The stream's last cell
    // ends another; cells of the generator after that are whole PDUs.
    let seen = seen(&testbed, 1_000_000_000);
    assert_eq!(fates(&seen.flows[0]), [1, 0, 1, 0]);
    let place = Place::Reassembly { router: None };
    assert_eq!(losses(&seen)[0], (place, 0, 0, 1));
    assert_eq!(losses(&seen)[1], (place, 1, 0, 1));
    assert_eq!(seen.flows[1].received, seen.flows[1].sent - 1);
}

/// Two fragments of 3 cells each, on a shaper that starts with every fourth slot. The pace of the first is 11 324 786.32 ps: its cells are emitted at 0, 11 324
/// 787 and 22 649 573, and the second PDU starts at 33 974 359.
fn adapting() -> Testbed {
    let mut testbed = pair("2.5 ms");
    let circuit = &mut testbed.circuits["a-b"];
    circuit.mtu = Some(q("128 B"));
    let (start, min) = (None, q("25 %"));
    circuit.adaptive = Some(Adaptive { min, start, increase: q("25 %"), ..Adaptive::default() });
    udp(&mut testbed, "a", "b", 196).rate = Some(q("1 bit/s"));
    testbed
}

#[test]
fn feedback_raises_the_rate_of_the_next_pdu() {
    // The last cell of the first frame is at b at 22 649 573 + 2 831 197 + 1 us = 26 480 770, and the feedback is at a
    // 1 us and a slot later, at 30 311 967. So the second frame takes every other slot: its last cell is emitted at
    // 33 974 359 + 11 324 787.
    let seen = seen(&adapting(), 2_500_000_000);
    assert_eq!(departed(&seen, 0, 0), [left(6, 48_130_343)]);
    assert_eq!(seen.flows[0].receptions.last, Some(49_130_343));
}

#[test]
fn late_feedback_does_not_change_a_pdu_in_progress() {
    let mut testbed = adapting();
    testbed.links["a-b"].delay = q("5 us");
    // The feedback is at a at 38 311 967. The second frame has begun by then, so its cells keep every fourth slot until
    // 33 974 359 + 22 649 573.
    let seen = seen(&testbed, 2_500_000_000);
    assert_eq!(departed(&seen, 0, 0), [left(6, 59_455_129)]);
}

#[test]
fn missing_feedback_halves_the_rate_of_the_next_pdu() {
    let mut testbed = adapting();
    testbed.links["a-b"].delay = q("5 us");
    let adaptive = testbed.circuits["a-b"].adaptive.as_mut().expect("the circuit has an adaptive shaper");
    (adaptive.min, adaptive.start) = (q("5 %"), Some(q("25 %")));
    (adaptive.decrease, adaptive.patience) = (q("50 %"), 1);
    // The first frame is not answered when the second begins: every eighth slot, 22 649 572.65 ps. Its last cell is emitted 45 299 146
    // later, at 79 273 505.
    let seen = seen(&testbed, 2_500_000_000);
    assert_eq!(departed(&seen, 0, 0), [left(6, 82_104_702)]);
}
