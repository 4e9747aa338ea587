//! Packet scripts, each for a statement of a standard.

use engpass_model::tcp::parameters::{AckCounting, Nagle, RecoveryKind, Role, WindowUpdate};
use engpass_model::tcp::{LimitedBy, Profile, State, TcpParameters};
use engpass_model::time::Time;

use crate::bench::ms;
use crate::script::{Script, plain};

/// An initial window of ten segments.
const TEN: &str = "100 > . 1:1001
100 > . 1001:2001
100 > . 2001:3001
100 > . 3001:4001
100 > . 4001:5001
100 > . 5001:6001
100 > . 6001:7001
100 > . 7001:8001
100 > . 8001:9001
100 > . 9001:10001";

fn with(recovery: RecoveryKind) -> TcpParameters {
    TcpParameters { recovery, ..plain() }
}

/// RFC 9293 section 3.5, figure 6, and section 3.6, figure 12: opening and closing.
#[test]
fn connection_opens_and_closes_as_in_rfc_9293() {
    let mut script = Script::established(&plain(), 65535);
    script.run(
        "100 write 500
         100 > P. 1:501 ack 1
         200 < . 1:1 ack 501
         200 close
         200 > F. 501:501 ack 1
         300 < . 1:1 ack 502
         300 < F. 1:1 ack 502
         300 > . 502:502 ack 2",
    );
    assert_eq!(script.end.state(), State::TimeWait);
    script.run("300 < F. 1:1 ack 502\n300 > . 502:502 ack 2\n60299 quiet");
    assert_eq!(script.end.state(), State::TimeWait, "the connection waits 2 MSL from the last FIN");
    script.run("60300 quiet");
    assert_eq!(script.end.state(), State::Closed);
}

/// RFC 9293 section 3.5, figure 7: simultaneous open.
#[test]
fn simultaneous_open_establishes_the_connection() {
    let mut script = Script::new(&plain(), Role::Active);
    script.run("0 > S 0:0\n50 < S 0:0 mss 1000\n50 > S. 0:0 ack 1\n100 < . 1:1 ack 1 win 5000");
    assert_eq!(script.end.state(), State::Established);
}

/// RFC 6298 (2.1): "the sender SHOULD set RTO <- 1 second", (5.5): "RTO <- RTO * 2", and RFC 5681: after a lost SYN the
/// window is one segment; RFC 6298 (5.7): then the timeout "MUST be re-initialized to 3 seconds".
#[test]
fn lost_syn_is_retransmitted_with_backoff() {
    let p = TcpParameters { syn_linear_timeouts: 0, ..plain() };
    let mut script = Script::new(&p, Role::Active);
    script.run(
        "0 > S 0:0
         1000 > S 0:0
         3000 > S 0:0
         7000 > S 0:0
         7100 < S. 0:0 ack 1 win 65535 mss 1000
         7100 > . 1:1 ack 1
         7100 write 3000
         7100 > . 1:1001
         10100 > . 1:1001",
    );
}

/// Linux (`tcp_syn_linear_timeouts` 4): the timeout of a SYN doubles from the fifth time on, that of a SYN-ACK from the first.
#[test]
fn linux_resends_a_syn_every_second_at_first() {
    let p = Profile::Linux6.parameters(1500);
    let times = [0, 1000, 2000, 3000, 4000, 5000, 7000, 11_000, 19_000].map(|at| format!("{at} > S 0:0"));
    Script::new(&p, Role::Active).run(&times.join("\n"));
    Script::new(&p, Role::Passive).run("0 < S 0:0 win 65535 mss 1000\n0 > S. 0:0 ack 1\n1000 > S. 0:0 ack 1\n3000 > S. 0:0 ack 1\n7000 > S. 0:0 ack 1");
}

/// RFC 6298 (2.2) and (2.3): R = 100 ms gives SRTT 100 ms, RTTVAR 50 ms, RTO 300 ms; (5.5) and (5.6) double it.
#[test]
fn retransmission_timeout_doubles_after_each_expiry() {
    let p = TcpParameters { rto_minimum: ms(200), ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run(
        "100 write 1000
         100 > P. 1:1001
         400 > P. 1:1001
         1000 > P. 1:1001
         2200 > P. 1:1001
         4600 > P. 1:1001",
    );
    assert_eq!(script.end.stats().timeouts, 4);
    assert_eq!(script.end.snapshot().congestion_window, 1000, "RFC 5681: the loss window is one segment");
}

/// RFC 6298 (2.4): "Whenever RTO is computed, if it is less than 1 second, then the RTO SHOULD be rounded up to 1 second".
/// (2.5): "A maximum value MAY be placed on RTO".
#[test]
fn retransmission_timeout_stays_within_its_bounds() {
    let p = TcpParameters { rto_maximum: ms(2500), ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run("100 write 1000\n100 > P. 1:1001\n1100 > P. 1:1001\n3100 > P. 1:1001\n5600 > P. 1:1001");
}

/// RFC 6298 section 3: "RTT samples MUST NOT be made using segments that were retransmitted".
#[test]
fn karn() {
    let p = TcpParameters { rto_minimum: ms(200), ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run("100 write 1000\n100 > P. 1:1001\n400 > P. 1:1001\n900 < . 1:1 ack 1001");
    assert_eq!(script.end.snapshot().smoothed_rtt, Some(ms(100)));
    // The back-off stays until there is an RTT sample.
    script.run("900 write 1000\n900 > P. 1001:2001\n1500 > P. 1001:2001");
}

/// RFC 6928: "initial window […] 10 segments", and RFC 5681 (2): slow start adds a segment for each acknowledgment.
#[test]
fn slow_start() {
    let p = TcpParameters { initial_window: 2, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run(
        "100 write 20000
         100 > . 1:1001
         100 > . 1001:2001
         200 < . 1:1 ack 1001
         200 > . 2001:3001
         200 > . 3001:4001
         200 < . 1:1 ack 2001
         200 > . 4001:5001
         200 > . 5001:6001",
    );
    assert_eq!(script.end.limited_by(ms(200)), LimitedBy::CongestionWindow);
}

/// RFC 5681 section 3.2: "The TCP sender SHOULD use the 'fast retransmit' algorithm to detect and repair loss, based on incoming duplicate
/// ACKs". At the third, cwnd becomes ssthresh + 3 segments, and each further duplicate adds one segment.
#[test]
fn third_duplicate_ack_triggers_fast_retransmit() {
    // Segments sent when recovery ends: RFC 5681 sets cwnd to ssthresh, RFC 6582 to one segment more than FlightSize.
    let reno = "300 > . 11001:12001\n300 > . 12001:13001\n300 > . 13001:14001\n300 > . 14001:15001";
    let new_reno = "300 > . 11001:12001";
    for (recovery, burst) in [(RecoveryKind::Reno, reno), (RecoveryKind::NewReno, new_reno)] {
        let mut script = Script::established(&with(recovery), 65535);
        script.run(&format!(
            "100 write 20000
             {TEN}
             200 < . 1:1 ack 1
             200 < . 1:1 ack 1
             200 < . 1:1 ack 1
             200 > . 1:1001
             200 < . 1:1 ack 1
             200 < . 1:1 ack 1
             200 < . 1:1 ack 1
             # ssthresh 5000 + 6 segments of inflation: the window is 11000.
             200 > . 10001:11001
             300 < . 1:1 ack 10001
             {burst}"
        ));
        let snapshot = script.end.snapshot();
        assert_eq!(snapshot.slow_start_threshold, 5000, "the threshold is half of FlightSize");
        assert_eq!(script.end.stats().timeouts, 0);
    }
}

/// RFC 6582 section 3.2 step 3: a partial acknowledgment means "retransmit the first unacknowledged segment".
#[test]
fn new_reno_retransmits_a_hole_per_partial_ack() {
    let mut script = Script::established(&with(RecoveryKind::NewReno), 65535);
    let mut text = String::from("100 write 10000\n");
    for segment in 0..10 {
        text += &format!("100 > . {}:{}\n", segment * 1000 + 1, segment * 1000 + 1001);
    }
    script.run(&text);
    script.run(
        "200 < . 1:1 ack 1
         200 < . 1:1 ack 1
         200 < . 1:1 ack 1
         200 > . 1:1001
         300 < . 1:1 ack 3001
         300 > . 3001:4001
         400 < . 1:1 ack 10001",
    );
    assert_eq!(script.end.stats().retransmissions, 2);
    assert_eq!(script.end.stats().fast_recoveries, 1);
}

/// RFC 6675 section 5: with SACK two holes are filled in one round trip.
#[test]
fn sack_fills_two_holes_in_one_round_trip() {
    let mut script = Script::established(&with(RecoveryKind::Sack), 65535);
    let mut text = String::from("100 write 10000\n");
    for segment in 0..10 {
        text += &format!("100 > . {}:{}\n", segment * 1000 + 1, segment * 1000 + 1001);
    }
    script.run(&text);
    script.run(
        "200 < . 1:1 ack 1 sack 1001-2001
         200 < . 1:1 ack 1 sack 3001-4001,1001-2001
         200 < . 1:1 ack 1 sack 3001-5001,1001-2001
         200 > . 1:1001
         # the hole at 2001 is lost now that more than two segments above it are SACKed, but pipe is 5 of cwnd 5
         200 < . 1:1 ack 1 sack 3001-6001,1001-2001
         200 quiet
         200 < . 1:1 ack 1 sack 3001-7001,1001-2001
         200 > . 2001:3001
         300 < . 1:1 ack 10001",
    );
    assert_eq!(script.end.stats().retransmissions, 2);
    assert_eq!(script.end.snapshot().congestion_window, 5000);
}

/// RFC 3042: "the TCP sender SHOULD […] transmit new data upon the arrival of the first two consecutive duplicate ACKs".
#[test]
fn limited_transmit() {
    let p = TcpParameters { limited_transmit: true, initial_window: 3, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run(
        "100 write 20000
         100 > . 1:1001
         100 > . 1001:2001
         100 > . 2001:3001
         200 < . 1:1 ack 1
         200 > . 3001:4001
         200 < . 1:1 ack 1
         200 > . 4001:5001
         300 < . 1:1 ack 1
         300 > . 1:1001",
    );
    assert_eq!(
        script.end.snapshot().slow_start_threshold,
        2000,
        "limited transmit does not count in FlightSize"
    );
}

/// Two duplicates are not enough, and no more arrive: only the timer remains, and the endpoint reports that as the reason for waiting.
#[test]
fn too_few_duplicate_acks_wait_for_the_timer() {
    let mut script = Script::established(&plain(), 65535);
    script.run("100 write 3000\n100 > . 1:1001\n100 > . 1001:2001\n100 > P. 2001:3001");
    assert_eq!(script.end.limited_by(ms(100)), LimitedBy::Application);
    script.run("200 < . 1:1 ack 1\n200 < . 1:1 ack 1");
    assert_eq!(script.end.limited_by(ms(200)), LimitedBy::RetransmissionTimer);
    script.run("1100 > . 1:1001");
    assert!(script.out.timed_out, "the retransmission timer has expired");
}

/// RFC 9293 section 3.8.6.3: "an ACK SHOULD be generated for at least every second full-sized segment" and "within 500 ms"; here the timer
/// is 200 ms. RFC 5681 section 4.2: segments that are out of order or fill a gap are acknowledged immediately.
#[test]
fn acks_are_delayed_as_in_rfc_9293_and_rfc_5681() {
    let p = TcpParameters {
        ack_every: 2,
        ack_delay: ms(200),
        ack_counting: AckCounting::FullSegments,
        ..plain()
    };
    let mut script = Script::established(&p, 65535);
    script.run(
        "110 < . 1:1001 ack 1
         120 < . 1001:2001 ack 1
         120 > . 1:1 ack 2001
         130 < . 2001:3001 ack 1
         330 > . 1:1 ack 3001
         # out of order, twice, then the gap
         340 < . 4001:5001 ack 1
         340 > . 1:1 ack 3001
         340 < . 5001:6001 ack 1
         340 > . 1:1 ack 3001
         340 < . 3001:4001 ack 1
         340 > . 1:1 ack 6001
         # two half segments are one segment
         350 < . 6001:6501 ack 1
         350 < . 6501:7001 ack 1
         550 > . 1:1 ack 7001",
    );
    assert_eq!(script.end.stats().delayed_acks, 2);
}

/// Solaris counts bytes in units of the segment size and acknowledges the second short segment immediately. The first two segments start
/// the count.
#[test]
fn solaris_acks_a_second_short_segment_immediately() {
    let p = TcpParameters {
        ack_every: 2,
        ack_delay: ms(50),
        ack_counting: AckCounting::FullSegmentsOrTails,
        ..plain()
    };
    let mut script = Script::established(&p, 65535);
    script.run(
        "110 < . 1:1001 ack 1
         # a tail behind a full segment waits, the next full one makes two
         120 < . 1001:1301 ack 1
         130 < . 1301:2301 ack 1
         130 > . 1:1 ack 2301
         # a tail behind a tail does not wait, whatever stands between
         140 < . 2301:2601 ack 1
         150 < . 2601:2901 ack 1
         150 > . 1:1 ack 2901
         # a lone tail waits
         160 < . 2901:3201 ack 1
         210 > . 1:1 ack 3201",
    );
}

/// Linux acknowledges more than one full segment, and a short one that has been read. A length that comes twice counts as full (`tcp_measure_rcv_mss`).
#[test]
fn linux_acks_short_segments_immediately() {
    let p = TcpParameters {
        ack_every: 2,
        ack_delay: ms(40),
        ack_counting: AckCounting::FullSegmentsOrShort,
        ..plain()
    };
    let mut script = Script::established(&p, 65535);
    script.run(
        "110 < . 1:1001 ack 1
         120 < . 1001:1301 ack 1
         120 > . 1:1 ack 1301
         # below 536 bytes all segments are short
         130 < . 1301:1601 ack 1
         130 > . 1:1 ack 1601
         # the first one of 700 bytes behind a full one is short, the next ones are full
         140 < . 1601:2601 ack 1
         150 < . 2601:3301 ack 1
         150 > . 1:1 ack 3301
         160 < . 3301:4001 ack 1
         170 < . 4001:4701 ack 1
         170 > . 1:1 ack 4701
         # a lone full segment waits for the timer
         180 < . 4701:5701 ack 1
         220 > . 1:1 ack 5701",
    );
}

/// With `ack_every = 1` each segment is acknowledged, whatever its length.
#[test]
fn linux_acks_every_segment_if_told_to() {
    let counting = AckCounting::FullSegmentsOrShort;
    let p = TcpParameters { ack_every: 1, ack_delay: ms(40), ack_counting: counting, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run(
        "110 < . 1:1001 ack 1
         110 > . 1:1 ack 1001
         120 < . 1001:1701 ack 1
         120 > . 1:1 ack 1701
         130 < . 1701:2401 ack 1
         130 > . 1:1 ack 2401",
    );
}

/// BSD's fast timer (TCP/IP Illustrated 2, section 25.4) ticks every 200 ms of the host's clock, not relative to the segment.
#[test]
fn bsd_delayed_acks_follow_the_200_ms_heartbeat() {
    let p = TcpParameters { ack_every: 2, ack_delay: ms(200), ack_heartbeat: true, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run("390 < . 1:1001 ack 1\n400 > . 1:1 ack 1001\n400 < . 1001:2001 ack 1\n600 > . 1:1 ack 2001");
}

/// RFC 896 section "the solution to the small-packet problem".
#[test]
fn nagle() {
    let p = TcpParameters { nagle: Nagle::Rfc896, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run("100 write 1500\n100 > . 1:1001\n100 quiet");
    assert_eq!(script.end.limited_by(ms(100)), LimitedBy::Nagle);
    script.run("200 < . 1:1 ack 1001\n200 > P. 1001:1501");
}

/// Minshall's variant: only an unacknowledged small segment delays the next small one.
#[test]
fn minshall() {
    let p = TcpParameters { nagle: Nagle::Minshall, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run(
        "100 write 1500
         100 > . 1:1001
         100 > P. 1001:1501
         100 write 300
         150 < . 1:1 ack 1001
         150 quiet
         200 < . 1:1 ack 1501
         200 > P. 1501:1801",
    );
}

/// Solaris: the tail of a write is sent immediately after a segment of at least `naglim` bytes; two short tails are not.
#[test]
fn naglim() {
    let p = TcpParameters { nagle: Nagle::Naglim, naglim: 600, write_boundaries: true, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run(
        "100 write 1300
         100 > . 1:1001
         100 > P. 1001:1301
         # 300 was shorter than the limit, and so is this
         100 write 200
         110 quiet
         # 700 bytes are more than the limit together, and go out as one segment
         120 write 500
         120 > P. 1301:2001
         # behind those 700 a short one may leave
         130 write 100
         130 > P. 2001:2101",
    );
}

/// Silly window avoidance is a separate reason: nothing is in flight, but the window has room for less than a segment.
#[test]
fn silly_window_is_reported_apart_from_a_full_window() {
    let mut script = Script::established(&plain(), 2500);
    script.run(
        "100 write 5000
         100 > . 1:1001
         100 > . 1001:2001
         200 < . 1:1 ack 2001 win 500",
    );
    assert_eq!(script.end.limited_by(ms(200)), LimitedBy::SillyWindow);
}

/// RFC 9293 section 3.8.6.2.1: the sender does not use a window of less than a segment, unless it is half of the largest window so far.
/// Section 3.8.6.1: a closed window is probed at doubling intervals.
#[test]
fn zero_window_is_probed_at_doubling_intervals() {
    let mut script = Script::established(&plain(), 2500);
    script.run(
        "100 write 5000
         100 > . 1:1001
         100 > . 1001:2001",
    );
    assert_eq!(
        script.end.limited_by(ms(100)),
        LimitedBy::ReceiveWindow,
        "data in flight fill the receive window"
    );
    script.run("200 < . 1:1 ack 2001 win 0");
    assert_eq!(script.end.limited_by(ms(200)), LimitedBy::ReceiveWindow);
    script.run(
        "1200 > . 2001:2002
         1300 < . 1:1 ack 2001 win 0
         3200 > . 2001:2002
         3300 < . 1:1 ack 2001 win 0
         7200 > . 2001:2002
         7300 < . 1:1 ack 2001 win 2500
         # the refused byte is data again, then what follows it
         7300 > . 2001:2002
         7300 > . 2002:3002
         7300 > . 3002:4002",
    );
    assert_eq!(script.end.stats().timeouts, 0, "a window probe is not a timeout");
}

/// RFC 9293 section 3.8.6.2.2: the receiver keeps the right edge until it can advance by a segment or half of the buffer.
#[test]
fn receiver_offers_no_silly_window() {
    let p = TcpParameters {
        receive_buffer: 3000,
        window_update: WindowUpdate::BelowSegment,
        window_scaling: false,
        ..plain()
    };
    let mut script = Script::new(&p, Role::Passive);
    script.end.read_automatically(false);
    script.run(
        "0 < S 0:0 win 65535 mss 1000
         0 > S. 0:0 ack 1 win 3000
         10 < . 1:1 ack 1
         10 < . 1:1001 ack 1
         10 > . 1:1 ack 1001 win 2000
         10 < . 1001:3001 ack 1
         10 > . 1:1 ack 3001 win 0
         20 read 500
         20 quiet
         30 read 600
         30 > . 1:1 ack 3001 win 1100",
    );
}

/// RFC 2018 section 4: "the first SACK block […] MUST specify the contiguous block of data containing the segment which
/// triggered this ACK"; RFC 2883: a duplicate is reported first.
#[test]
fn sack_blocks() {
    let p = TcpParameters { recovery: RecoveryKind::Sack, dsack: true, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run(
        "200 < . 1001:2001 ack 1
         200 > . 1:1 ack 1 sack 1001-2001
         200 < . 3001:4001 ack 1
         200 > . 1:1 ack 1 sack 3001-4001,1001-2001
         200 < . 2001:3001 ack 1
         200 > . 1:1 ack 1 sack 1001-4001
         200 < . 1:1001 ack 1
         200 > . 1:1 ack 4001
         200 < . 1001:2001 ack 1
         200 > . 1:1 ack 4001 sack 1001-2001",
    );
}

/// RFC 6691: a packet with options does not exceed the segment size; SACK blocks that do not fit are omitted.
#[test]
fn sack_blocks_that_do_not_fit_the_packet_are_omitted() {
    let out_of_order = "200 < . 21:41 ack 1
         200 > . 1:1 ack 1 sack 21-41
         200 < . 61:81 ack 1
         200 > . 1:1 ack 1 sack 61-81,21-41
         200 < . 101:121 ack 1";
    for (mss, blocks) in [(28, "101-121,61-81,21-41"), (27, "101-121,61-81"), (20, "101-121,61-81")] {
        let p = TcpParameters { recovery: RecoveryKind::Sack, mss, ..plain() };
        let answer = format!("{out_of_order}\n200 > . 1:1 ack 1 sack {blocks}");
        Script::established(&p, 65535).run(&answer);
    }
    let p = TcpParameters { recovery: RecoveryKind::Sack, mss: 11, ..plain() };
    let none = "200 < . 21:31 ack 1
         200 > . 1:1 ack 1 nosack";
    Script::established(&p, 65535).run(none);
}

/// RFC 3168 section 6.1.3: the receiver "sets the ECN-Echo flag" in every acknowledgment "until it receives a CWR". Section 6.1.2: the
/// sender halves its window once and sets CWR.
#[test]
fn ecn_echo_lasts_until_cwr_and_reduces_the_window_once() {
    let p = TcpParameters { ecn: true, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run(
        "200 < . 1:1001 ack 1 CE
         200 > . 1:1 ack 1001 ECE
         200 < . 1001:2001 ack 1 ECT
         200 > . 1:1 ack 2001 ECE
         200 < . 2001:3001 ack 1 ECT CWR
         200 > . 1:1 ack 3001 noECE
         300 write 2000
         300 > . 1:1001 ECT
         300 > P. 1001:2001 ECT
         400 < . 3001:3001 ack 1001 ECE
         400 < . 3001:3001 ack 2001 ECE
         400 write 1000
         400 > P. 2001:3001 CWR
         500 < . 3001:3001 ack 3001
         500 write 1000
         500 > P. 3001:4001",
    );
    assert_eq!(script.end.stats().ecn_reductions, 1, "one reduction per window of data");
}

/// RFC 3168 section 6.1.1.1: an end that accepts ECN answers ECE and CWR with ECE; only an end that has offered ECN may use it after such an answer.
#[test]
fn an_end_that_accepts_ecn_uses_it_only_if_its_peer_offers_it() {
    let ect = "0 < S 0:0 win 65535 mss 1000 ECE CWR ECT\n0 > S. 0:0 ack 1";
    for (accepts_ecn, answer, data) in [(true, "ECE", "ECT"), (false, "noECE", "")] {
        let p = TcpParameters { accepts_ecn, ..plain() };
        // Linux (`tcp_ecn_create_request`): a SYN with ECT asks for the exact marks of RFC 8257.
        Script::new(&p, Role::Passive).run(&format!("{ect} noECE"));
        Script::new(&p, Role::Passive).run(&format!(
            "0 < S 0:0 win 65535 mss 1000 ECE CWR
             0 > S. 0:0 ack 1 {answer}
             10 < . 1:1 ack 1
             20 write 1000
             20 > P. 1:1001 {data}"
        ));
        let mut opener = Script::new(&p, Role::Active);
        opener.run("0 > S 0:0 noECE\n100 < S. 0:0 ack 1 win 65535 mss 1000 ECE\n100 > . 1:1 ack 1");
        opener.run("200 < . 1:1001 ack 1 CE\n200 > . 1:1 ack 1001 noECE");
    }
    let exact = TcpParameters { ecn: true, congestion: crate::delivery::congestion("dctcp"), ..plain() };
    Script::new(&exact, Role::Passive).run(&format!("{ect} ECE ECT"));
    Script::new(&exact, Role::Active).run("0 > S 0:0 ECE CWR ECT");
}

/// RFC 8257 section 3.2: when the mark changes, earlier segments are acknowledged immediately, with the old state.
#[test]
fn dctcp_echoes_marks_exactly() {
    let congestion = crate::delivery::congestion("dctcp");
    let p = TcpParameters { ecn: true, ack_every: 2, congestion, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run(
        "200 < . 1:1001 ack 1 ECT
         200 < . 1001:2001 ack 1 CE
         200 > . 1:1 ack 1001 noECE
         200 > . 1:1 ack 2001 ECE
         200 < . 2001:3001 ack 1 CE
         200 < . 3001:4001 ack 1 CE
         200 > . 1:1 ack 4001 ECE
         200 < . 4001:5001 ack 1 ECT
         240 > . 1:1 ack 5001 noECE",
    );
}

/// RFC 8985 section 7.2: "PTO = 2 * SRTT". The probe triggers the SACK that fast recovery needs, so no timeout occurs.
#[test]
fn tail_loss_probe_avoids_a_timeout() {
    let mut script = Script::established(&with(RecoveryKind::RackTlp), 65535);
    script.run(
        "100 write 4000
         100 > . 1:1001
         100 > . 1001:2001
         100 > . 2001:3001
         100 > P. 3001:4001
         200 < . 1:1 ack 2001
         # segments 3 and 4 are lost; two round trips (and Linux' 2 ms) later the last one goes out again
         402 > P. 3001:4001
         502 < . 1:1 ack 2001 sack 3001-4001
         # RACK: segment 3 was sent long before the probe that has arrived
         502 > . 2001:3001
         602 < . 1:1 ack 4001",
    );
    assert_eq!((script.end.stats().timeouts, script.end.stats().tail_probes), (0, 1));
}

/// RFC 8985 section 7: the probe of a tail of several lost segments is answered by a SACK, which carries the TSecr of the segment before the hole (RFC 7323
/// section 4.3). As in Linux, RACK takes the probe as delivered all the same and finds the other losses: no timeout.
#[test]
fn tail_loss_probe_repairs_a_tail_of_several_segments_with_timestamps() {
    let p = TcpParameters { timestamps: true, ..with(RecoveryKind::RackTlp) };
    let mut script = Script::new(&p, Role::Active);
    script.run(
        "0 > S 0:0
         100 < S. 0:0 ack 1 win 65535 mss 1000 sackok ts 0-0
         100 > . 1:1
         100 write 3952
         100 > . 1:989
         100 > . 989:1977
         100 > . 1977:2965
         100 > P. 2965:3953
         200 < . 1:1 ack 989 ts 200-100
         # 2 * SRTT, and Linux' 2 ms
         402 > P. 2965:3953
         502 < . 1:1 ack 989 ts 502-100 sack 2965-3953
         502 > . 989:1977
         602 < . 1:1 ack 1977 ts 602-502 sack 2965-3953
         602 > . 1977:2965
         702 < . 1:1 ack 3953 ts 702-602",
    );
    assert_eq!((script.end.stats().timeouts, script.end.stats().tail_probes), (0, 1));
}

/// Linux (`tcp_try_undo_partial`): an original that fills a hole after its retransmission shows reordering. From then on RACK waits for a quarter of the
/// minimum round trip (RFC 8985 section 6.2 step 4), although many segments are SACKed.
#[test]
fn spurious_retransmission_shows_reordering() {
    let p = TcpParameters { timestamps: true, undo: true, initial_window: 10, ..with(RecoveryKind::RackTlp) };
    let mut script = Script::new(&p, Role::Active);
    let burst = |at: u64, first: u64| -> String {
        (0..6)
            .map(|k| {
                format!(
                    "{at} > {} {}:{}\n",
                    if k == 5 { "P." } else { "." },
                    first + k * 988,
                    first + (k + 1) * 988
                )
            })
            .collect()
    };
    script.run("0 > S 0:0\n100 < S. 0:0 ack 1 win 65535 mss 1000 sackok ts 0-0\n100 > . 1:1");
    script.run(&format!(
        "100 write 5928
         {}
         200 < . 1:1 ack 1 ts 100-0 sack 989-3953
         200 > . 1:989
         203 < . 1:1 ack 3953 ts 203-100
         210 < . 1:1 ack 5929 ts 210-100",
        burst(100, 1)
    ));
    assert_eq!((script.end.stats().spurious, script.end.stats().retransmissions), (1, 1));
    script.run(&format!(
        "300 write 5928
         {}
         400 < . 1:1 ack 5929 ts 400-300 sack 6917-9881
         # a quarter of 100 ms from now on
         420 quiet
         421 < . 1:1 ack 11857 ts 421-300",
        burst(300, 5929)
    ));
    assert_eq!(script.end.stats().retransmissions, 1);
}

/// RFC 8985 section 6.2 step 4: a segment that is out of order counts as lost only after a quarter of the minimum round-trip time.
#[test]
fn rack_waits_for_reordering() {
    let mut script = Script::established(&with(RecoveryKind::RackTlp), 65535);
    script.run(
        "100 write 4000
         100 > . 1:1001
         100 > . 1001:2001
         100 > . 2001:3001
         100 > P. 3001:4001
         200 < . 1:1 ack 1 sack 1001-2001
         210 quiet
         220 < . 1:1 ack 4001",
    );
    assert_eq!(script.end.stats().retransmissions, 0);
    script.run(
        "300 write 4000
         300 > . 4001:5001
         300 > . 5001:6001
         300 > . 6001:7001
         300 > P. 7001:8001
         400 < . 1:1 ack 4001 sack 5001-6001
         # sent at 300, a round trip of 100 ms, a quarter of it to spare, and Linux' 2 ms
         427 > . 4001:5001
         527 < . 1:1 ack 8001",
    );
    assert_eq!(script.end.stats().retransmissions, 1);
}

/// `tcp_rack_advance`: SACK blocks are processed before the cumulative acknowledgment, and RACK.rtt comes from the segment processed last.
/// (RFC 8985 section 6.2 step 2 processes segments in the order of their transmission: B would be lost at 315.)
#[test]
fn rack_rtt_comes_from_the_segment_processed_last() {
    let mut script = Script::established(&with(RecoveryKind::RackTlp), 65535);
    script.run(
        "100 write 1000
         100 > P. 1:1001
         110 write 1000
         110 > P. 1001:2001
         120 write 1000
         120 > P. 2001:3001
         300 < . 1:1 ack 1001 sack 2001-3001
         # 110, 200 ms of the first segment, a quarter of 100 ms, and Linux' 2 ms
         337 > . 1001:2001
         400 < . 1:1 ack 3001",
    );
    assert_eq!(script.end.stats().retransmissions, 1);
}

/// RFC 9937 section 6.2: "sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out" while more than the threshold is in flight, so
/// segments are sent throughout the recovery. Below the threshold, one segment is sent for each that left the network.
#[test]
fn prr_sends_in_proportion_to_delivered_data() {
    let p = TcpParameters { initial_window: 10, ..with(RecoveryKind::RackTlp) };
    let mut script = Script::established(&p, 65535);
    script.run(&format!(
        "100 write 14000
         {TEN}
         # 3000 of 10 000 have arrived: 1500 may go, towards a threshold of 5000
         200 < . 1:1 ack 1 sack 1001-4001
         200 > . 1:1001
         200 < . 1:1 ack 1 sack 1001-5001
         200 > . 10001:11001
         200 < . 1:1 ack 1 sack 1001-6001
         200 < . 1:1 ack 1 sack 1001-7001
         # 4000 are in flight: up to the threshold
         200 < . 1:1 ack 1 sack 1001-8001
         200 > . 11001:12001"
    ));
    assert_eq!(script.end.stats().fast_recoveries, 1);
}

/// RFC 7323 section 2.2: "the window field in a SYN […] segment itself is never scaled"; 2.3: afterwards it is.
#[test]
fn window_is_scaled_except_in_a_syn() {
    let p = TcpParameters { window_scaling: true, receive_buffer: 1 << 20, ..plain() };
    let mut script = Script::new(&p, Role::Active);
    script.run(
        "0 > S 0:0 win 65535 scale 5
         100 < S. 0:0 ack 1 win 65535 mss 1000 scale 7
         100 > . 1:1 ack 1 win 1048576",
    );
    let mut script = Script::new(&p, Role::Active);
    script.run(
        "0 > S 0:0 win 65535
         100 < S. 0:0 ack 1 win 65535 mss 1000
         100 > . 1:1 ack 1 win 65535",
    );
}

/// RFC 5681 section 4.1: after an idle time of more than one timeout, the window is the initial window again.
#[test]
fn idle_connection_restarts_with_the_initial_window() {
    let p = TcpParameters { initial_window: 2, ..plain() };
    let mut script = Script::established(&p, 65535);
    script.run(
        "100 write 2000\n100 > . 1:1001\n100 > P. 1001:2001\n200 < . 1:1 ack 1001\n200 < . 1:1 ack 2001",
    );
    assert_eq!(script.end.snapshot().congestion_window, 4000);
    script.run("3000 write 4000\n3000 > . 2001:3001\n3000 > . 3001:4001\n3000 quiet");
    assert_eq!(script.end.snapshot().congestion_window, 2000);
}

/// A reset ends the connection immediately (RFC 9293 section 3.10.7.4).
#[test]
fn reset_ends_the_connection_immediately() {
    let mut script = Script::established(&plain(), 65535);
    script.run("200 < R 1:1");
    assert!(script.out.reset && script.out.closed);
    assert_eq!(script.end.next_wake(), None::<Time>);
}
