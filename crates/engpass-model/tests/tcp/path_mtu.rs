//! Path MTU discovery: packet scripts for statements of RFC 1191 and RFC 5927, and random paths whose MTU decreases.

use engpass_model::random::Stream;
use engpass_model::tcp::parameters::{AckCounting, Nagle, PathMtu, RecoveryKind, Role};
use engpass_model::tcp::{LimitedBy, Profile, State, TcpParameters};
use engpass_model::time::Time;
use proptest::prelude::*;

use crate::bench::{Bench, Loss, Mtu, Pipe, ms, us};
use crate::delivery::{RECOVERIES, any_parameters, assert_delivered, congestion};
use crate::script::{Script, plain};

fn discovers(recovery: RecoveryKind) -> TcpParameters {
    TcpParameters { path_mtu: PathMtu::Discovered, recovery, ..plain() }
}

/// Script lines for segments of `size` bytes that the endpoint must send at `at`.
fn sent(at: u64, from: u64, to: u64, size: u64) -> String {
    let starts = (from..to).step_by(size as usize);
    starts.map(|start| format!("{at} > . {start}:{}\n", (start + size).min(to))).collect()
}

/// RFC 1191 section 6.4: a segment that was dropped because it is too big should be retransmitted in smaller segments. "A retransmission
/// caused by a Datagram Too Big message should not change the congestion window." The RFC also allows only one segment until
/// acknowledgments arrive; Linux and FreeBSD do not follow that.
///
/// A window of packets in flight causes many signals. Only the first reduces the MTU; the others must be ignored.
#[test]
fn path_mtu_signal_resends_too_long_segments_once() {
    for recovery in RECOVERIES {
        let mut script = Script::established(&discovers(recovery), 65535);
        script.run(&format!(
            "100 write 3500
             {}150 too-big 1 540
             {}150 too-big 1001 540 ignored
             160 too-big 2001 540 ignored
             160 too-big 2001 1000 ignored
             250 < . 1:1 ack 3501",
            sent(100, 1, 3501, 1000),
            sent(150, 1, 3001, 500),
        ));
        let (snapshot, stats) = (script.end.snapshot(), script.end.stats());
        assert_eq!((stats.path_mtu_signals, snapshot.segment_size), (1, 500), "{recovery:?}");
        assert_eq!((stats.retransmissions, stats.bytes_retransmitted), (6, 3000), "{recovery:?}");
        assert_eq!((stats.timeouts, stats.fast_recoveries), (0, 0), "{recovery:?}");
        // The acknowledgment adds one segment to the window in slow start.
        let windows = (snapshot.congestion_window, snapshot.slow_start_threshold);
        assert_eq!(windows, (10_500, u64::MAX), "{recovery:?}: the window in bytes is unchanged");
        script.run("300 write 1500\n300 > . 3501:4001\n300 > . 4001:4501\n300 > . 4501:5001");
    }
}

/// Linux' `tcp_simple_retransmit`: "units changed and effective cwnd/ssthresh really reduced". The window keeps its number of segments.
#[test]
fn path_mtu_signal_keeps_a_window_counted_in_segments() {
    for kind in ["reno", "cubic", "dctcp"] {
        let p = TcpParameters {
            whole_segments: true,
            congestion: congestion(kind),
            ..discovers(RecoveryKind::NewReno)
        };
        let mut script = Script::established(&p, 65535);
        script.run(&format!(
            "100 write 10000
             {}150 too-big 1 540
             {}250 < . 1:1 ack 1001
             {}",
            sent(100, 1, 10001, 1000),
            sent(150, 1, 5001, 500),
            sent(250, 5001, 6501, 500),
        ));
        let snapshot = script.end.snapshot();
        assert_eq!(snapshot.congestion_window, 5500, "{kind}: ten segments, plus one of slow start");
        assert_eq!(script.end.limited_by(ms(250)), LimitedBy::CongestionWindow);
    }
}

/// `tcp_current_ssthresh`: the threshold rises to three quarters of the window if it was below.
#[test]
fn path_mtu_signal_raises_ssthresh_to_three_quarters_of_window() {
    let p =
        TcpParameters { whole_segments: true, restart_after_idle: false, ..discovers(RecoveryKind::NewReno) };
    let mut script = Script::established(&p, 65535);
    // After a timeout the threshold is two segments, and the window grows to six.
    script.run("100 write 1000\n100 > . 1:1001\n1100 > . 1:1001\n1200 < . 1:1 ack 1001");
    assert_eq!(script.end.snapshot().slow_start_threshold, 2000);
    let mut next = 1001;
    while script.end.snapshot().congestion_window < 6000 {
        let at = 1200 + next / 10;
        script.run(&format!("{at} write 1000\n{at} > . {next}:{}\n{at} < . 1:1 ack {0}", next + 1000));
        next += 1000;
    }
    let at = 1200 + next / 10;
    script.run(&format!(
        "{at} write 1000\n{at} > . {next}:{}\n{at} too-big {next} 540\n{}",
        next + 1000,
        sent(at, next, next + 1000, 500)
    ));
    let snapshot = script.end.snapshot();
    assert_eq!((snapshot.congestion_window, snapshot.slow_start_threshold), (3000, 2000));
}

/// RFC 5927 section 4.1: the sequence number that the signal quotes must lie in SND.UNA =< SEG.SEQ < SND.NXT.
/// RFC 1191 section 3: a host "MUST NOT increase its estimate of the Path MTU in response to" a signal.
#[test]
fn stale_or_larger_path_mtu_signals_are_ignored() {
    let mut script = Script::established(&discovers(RecoveryKind::NewReno), 65535);
    script.run(
        "100 too-big 0 500 ignored
         100 too-big 1 500 ignored
         100 write 2000
         100 > . 1:1001
         100 > . 1001:2001
         200 < . 1:1 ack 1001
         200 too-big 1 500 ignored
         200 too-big 1000 500 ignored
         200 too-big 2001 500 ignored
         200 too-big 5000 500 ignored
         200 too-big 1001 1040 ignored
         200 too-big 1001 1500 ignored
         200 too-big 1001 1039
         200 > . 1001:2000
         200 > . 2000:2001",
    );
    assert_eq!(script.end.stats().path_mtu_signals, 1);

    let mut known = Script::established(&plain(), 65535);
    known.run("100 write 1000\n100 > . 1:1001\n100 too-big 1 500 ignored");

    // A SYN and its SYN-ACK fit into the smallest MTU.
    let mut opens = Script::new(&discovers(RecoveryKind::NewReno), Role::Active);
    opens.run("0 > S 0:0\n10 too-big 0 68 ignored\n100 < S. 0:0 ack 1 win 65535 mss 1000\n100 > . 1:1 ack 1");
    assert_eq!(opens.end.segment_size(), 1000);
}

/// RFC 1191 section 3: "A host MUST never reduce its estimate of the Path MTU below 68 octets."
#[test]
fn path_mtu_never_falls_below_68_bytes() {
    for mtu in [0, 67, 68] {
        let mut script = Script::established(&discovers(RecoveryKind::NewReno), 65535);
        script.run(&format!(
            "100 write 60\n100 > . 1:61\n100 too-big 1 {mtu}\n100 > . 1:29\n100 > . 29:57\n100 > . 57:61"
        ));
    }
}

/// A signal neither restarts nor backs off the timer.
#[test]
fn path_mtu_signal_does_not_change_the_timer() {
    let mut script = Script::established(&discovers(RecoveryKind::NewReno), 65535);
    script.run(
        "100 write 1000
         100 > . 1:1001
         600 too-big 1 540
         600 > . 1:501
         600 > . 501:1001
         1100 > . 1:501
         3100 > . 1:501",
    );
    assert_eq!(script.end.stats().timeouts, 2);
}

/// Duplicate acknowledgments that short or repeated segments cause do not indicate a loss.
#[test]
fn duplicates_after_a_path_mtu_signal_start_no_recovery() {
    for recovery in RECOVERIES {
        let mut script = Script::established(&discovers(recovery), 65535);
        let duplicates = "200 < . 1:1 ack 1\n".repeat(5);
        script.run(&format!(
            "100 write 3000
             {}150 too-big 1001 540
             {}{duplicates}250 < . 1:1 ack 3001
             250 write 1500
             250 > . 3001:3501
             250 > . 3501:4001
             250 > . 4001:4501
             {}",
            sent(100, 1, 3001, 1000),
            sent(150, 1, 3001, 500),
            "260 < . 1:1 ack 3001\n".repeat(5),
        ));
        let stats = script.end.stats();
        assert_eq!((stats.fast_recoveries, stats.timeouts), (0, 0), "{recovery:?}");
        assert_eq!(stats.bytes_retransmitted, 3000, "{recovery:?}");
    }
}

/// Losses among the smaller segments are repaired without another congestion response. RACK detects them; RFC 6675 leaves retransmitted
/// segments to the timer.
#[test]
fn losses_after_a_path_mtu_signal_start_no_recovery() {
    for recovery in [RecoveryKind::Sack, RecoveryKind::RackTlp] {
        let mut script = Script::established(&discovers(recovery), 65535);
        script.run(&format!(
            "100 write 3000
             {}150 too-big 1 540
             {}250 < . 1:1 ack 1 sack 501-1001
             {}250 < . 1:1 ack 1 sack 501-1501
             250 < . 1:1 ack 1 sack 501-2001
             250 < . 1:1 ack 1 sack 501-3001
             350 < . 1:1 ack 3001",
            sent(100, 1, 3001, 1000),
            sent(150, 1, 3001, 500),
            if recovery == RecoveryKind::RackTlp { "250 > . 1:501\n" } else { "" },
        ));
        let (snapshot, stats) = (script.end.snapshot(), script.end.stats());
        assert_eq!((stats.fast_recoveries, stats.timeouts), (0, 0), "{recovery:?}");
        assert!(snapshot.congestion_window >= 10_000, "{recovery:?}: {}", snapshot.congestion_window);
    }
}

/// Most of a window was lost, so proportional rate reduction has sent little. The signal allows no additional segment, and slow start
/// continues up to the threshold.
#[test]
fn path_mtu_signal_does_not_bypass_prr() {
    let mut script = Script::established(&discovers(RecoveryKind::RackTlp), 65535);
    script.run(&format!(
        "100 write 10000
         {}200 < . 1:1 ack 1 sack 7001-8001
         200 < . 1:1 ack 1 sack 7001-9001
         200 < . 1:1 ack 1 sack 7001-10001
         200 > . 1:1001
         210 too-big 1 540
         210 > . 1:501
         210 > . 501:1001
         310 < . 1:1 ack 1001 sack 7001-10001
         310 > . 1001:1501
         310 > . 1501:2001
         310 > . 2001:2501",
        sent(100, 1, 10001, 1000),
    ));
    assert_eq!(script.end.snapshot().slow_start_threshold, 5000);
}

/// Segments that are SACKed or short enough are neither split nor retransmitted.
#[test]
fn path_mtu_signal_leaves_sacked_and_short_segments() {
    for recovery in [RecoveryKind::Sack, RecoveryKind::RackTlp] {
        let mut script = Script::established(&discovers(recovery), 65535);
        script.run(
            "100 write 2000
             100 > . 1:1001
             100 > . 1001:2001
             101 write 300
             101 > . 2001:2301
             101 write 1000
             101 > . 2301:3301
             200 < . 1:1 ack 1 sack 1001-2001
             200 too-big 1 540
             200 > . 1:501
             200 > . 501:1001
             200 > . 2301:2801
             200 > . 2801:3301
             # Edges in the middle of what was one segment.
             250 < . 1:1 ack 1 sack 2301-2801,1001-2001
             251 < . 1:1 ack 501 sack 2301-2801,1001-2001
             252 < . 1:1 ack 2001 sack 2301-2801
             253 < . 1:1 ack 2801
             254 < . 1:1 ack 3301",
        );
        let stats = script.end.stats();
        assert_eq!((stats.fast_recoveries, stats.bytes_retransmitted), (0, 2000), "{recovery:?}");
        assert_eq!(script.end.snapshot().unacknowledged, 0);
    }
}

/// An ongoing fast recovery has reduced the window. The signal neither undoes nor repeats the reduction.
#[test]
fn path_mtu_signal_in_fast_recovery_keeps_its_reduction() {
    for recovery in [RecoveryKind::Reno, RecoveryKind::NewReno, RecoveryKind::Sack, RecoveryKind::RackTlp] {
        let mut script = Script::established(&discovers(recovery), 65535);
        let with_sack = matches!(recovery, RecoveryKind::Sack | RecoveryKind::RackTlp);
        let duplicates: String = (2..5)
            .map(|upto| {
                let sack = if with_sack { format!(" sack 1001-{}001", upto) } else { String::new() };
                format!("200 < . 1:1 ack 1{sack}\n")
            })
            .collect();
        script.run(&format!("100 write 10000\n{}", sent(100, 1, 10001, 1000)));
        // RACK detects the loss at the third SACK; the others detect it at the third duplicate.
        script.run(&format!("{duplicates}200 > . 1:1001"));
        assert_eq!(script.end.stats().fast_recoveries, 1, "{recovery:?}");
        let threshold = script.end.snapshot().slow_start_threshold;
        assert_eq!(script.end.snapshot().congestion_window.min(threshold), threshold);
        let first = if with_sack { 4001 } else { 1001 };
        // The smaller segments are sent as the window of ssthresh allows.
        let window = threshold;
        let again = sent(210, 1, 1001, 500) + &sent(210, first, first + window - 1000, 500);
        script.run(&format!("210 too-big 1 540\n{again}"));
        let snapshot = script.end.snapshot();
        assert_eq!((snapshot.slow_start_threshold, snapshot.in_flight), (threshold, window), "{recovery:?}");
        script.run("310 < . 1:1 ack 10001");
        let stats = script.end.stats();
        assert_eq!((stats.fast_recoveries, stats.timeouts), (1, 0), "{recovery:?}");
    }
}

/// The FIN stays with the last of the smaller segments.
#[test]
fn path_mtu_signal_keeps_the_fin_after_the_data() {
    for recovery in RECOVERIES {
        let mut script = Script::established(&discovers(recovery), 65535);
        script.run(
            "100 write 1500
             100 > . 1:1001
             100 > . 1001:1501
             100 close
             100 > F. 1501:1501
             120 too-big 1001 340
             120 > . 1:301
             120 > . 301:601
             120 > . 601:901
             120 > . 901:1001
             120 > . 1001:1301
             120 > . 1301:1501
             200 < . 1:1 ack 1502",
        );
        assert_eq!(script.end.state(), State::FinWait2, "{recovery:?}");
        let mut script = Script::established(&discovers(recovery), 65535);
        script.run(
            "100 write 800
             100 > . 1:801
             100 write 400
             100 > . 801:1201
             100 close
             100 > F. 1201:1201
             100 < . 1:1 ack 801
             110 too-big 1201 340
             110 > . 801:1101
             110 > . 1101:1201
             200 < F. 1:1 ack 1202
             200 > . 1202:1202 ack 2",
        );
        assert_eq!(script.end.state(), State::TimeWait, "{recovery:?}");
        script.run("210 too-big 801 200 ignored");
    }
    // Data and FIN in one segment. The data fit into the new size; the FIN's sequence number would exceed it.
    let p = TcpParameters { nagle: Nagle::Rfc896, ..discovers(RecoveryKind::NewReno) };
    let mut script = Script::established(&p, 65535);
    script.run(
        "100 write 1000
         100 > . 1:1001
         100 write 700
         100 close
         100 > F. 1001:1701
         110 too-big 1 740
         110 > . 1:701
         110 > . 701:1001
         120 too-big 1001 440
         120 > . 1:401
         120 > . 401:701
         120 > . 1001:1401
         120 > F. 1401:1701",
    );
}

/// After a timeout the window is one segment. RFC 3522 would undo the timeout. After a signal it is not undone, because the split segments
/// would then wait for another acknowledgment.
#[test]
fn timeout_is_not_undone_after_a_path_mtu_signal() {
    for recovery in RECOVERIES {
        for signals in [false, true] {
            let p = TcpParameters { mss: 1012, timestamps: true, undo: true, ..discovers(recovery) };
            let mut script = Script::new(&p, Role::Active);
            script.run(
                "0 > S 0:0
                 100 < S. 0:0 ack 1 win 65535 mss 1012 sackok ts 0-0
                 100 > . 1:1 ack 1
                 100 write 2000
                 100 > . 1:1001
                 100 > . 1001:2001",
            );
            if recovery == RecoveryKind::RackTlp {
                // A tail loss probe, which restarts the timer.
                script.run("302 > . 1001:2001\n1302 > . 1:1001");
            } else {
                script.run("1100 > . 1:1001");
            }
            assert_eq!(script.end.stats().timeouts, 1);
            if signals {
                script.run("1400 too-big 1 552\n1400 > . 1:501\n1400 > . 501:1001");
            }
            // The original has arrived.
            let rest = if signals { "1500 > . 1001:1501\n1500 > . 1501:2001" } else { "1500 quiet" };
            script.run(&format!("1500 < . 1:1 ack 1001 ts 1500-100\n{rest}"));
            assert_eq!(script.end.stats().spurious, u64::from(!signals), "{recovery:?}");
        }
    }
}

/// RFC 2018 section 8: a receiver may discard SACKed data. The retransmissions must respect the path MTU, too.
#[test]
fn reneged_segments_respect_the_path_mtu() {
    for recovery in [RecoveryKind::Sack, RecoveryKind::RackTlp] {
        let mut script = Script::established(&discovers(recovery), 65535);
        script.run(
            "100 write 2000
             100 > . 1:1001
             100 > . 1001:2001
             200 < . 1:1 ack 1 sack 1001-2001
             210 too-big 1 540
             210 > . 1:501
             210 > . 501:1001
             310 < . 1:1 ack 1001
             1310 > . 1001:1501
             1410 < . 1:1 ack 1501
             1410 > . 1501:2001",
        );
        assert_eq!(script.end.stats().timeouts, 1, "{recovery:?}");
    }
}

/// The sender sends no tail loss probe while it retransmits segments that were too long, even if one was due. Linux restarts the timer with the first segment.
#[test]
fn no_tail_loss_probe_follows_a_path_mtu_signal() {
    for at in [150, 500] {
        let mut script = Script::established(&discovers(RecoveryKind::RackTlp), 65535);
        let probe = if at == 500 { "500 > . 1:1001\n" } else { "" };
        script.run(&format!(
            "100 write 1000
             100 > . 1:1001
             {probe}{at} too-big 1 540
             {at} > . 1:501
             {at} > . 501:1001
             {} > . 1:501
             {0} quiet",
            at + 1000,
        ));
        let stats = script.end.stats();
        assert_eq!((stats.tail_probes, stats.timeouts), (u64::from(at == 500), 1));
        // The acknowledgment ends the retransmission without another congestion response.
        script.run("1600 < . 1:1 ack 1001\n1600 write 500\n1600 > . 1001:1501\n1700 < . 1:1 ack 1501");
        assert_eq!(script.end.stats().fast_recoveries, 0);
    }
}

/// A tail loss probe was answered by a signal. Acknowledgments beyond the probe's end do not indicate congestion (RFC 8985 section 7.4.2).
#[test]
fn too_long_tail_loss_probe_indicates_no_congestion() {
    let mut script = Script::established(&discovers(RecoveryKind::RackTlp), 65535);
    script.run(
        "100 write 1000
         100 > . 1:1001
         500 > . 1:1001
         600 too-big 1 540
         600 > . 1:501
         600 > . 501:1001
         600 write 500
         600 > . 1001:1501
         700 < . 1:1 ack 1501",
    );
    let snapshot = script.end.snapshot();
    assert_eq!((snapshot.congestion_window, snapshot.slow_start_threshold), (10_500, u64::MAX));
}

/// A window probe is one byte, so it always fits. The signal changes the size of later segments.
#[test]
fn path_mtu_signal_at_zero_window_shortens_later_segments() {
    for recovery in RECOVERIES {
        let mut script = Script::established(&discovers(recovery), 1000);
        script.run(
            "100 write 3000
             100 > . 1:1001
             200 < . 1:1 ack 1001 win 0
             1200 > . 1001:1002
             1250 too-big 1001 540
             1300 < . 1:1 ack 1001 win 0
             3200 > . 1001:1002
             3300 < . 1:1 ack 1002 win 3000
             3300 > . 1002:1502
             3300 > . 1502:2002
             3300 > . 2002:2502
             3300 > . 2502:3001",
        );
        let stats = script.end.stats();
        assert_eq!((stats.window_probes, stats.retransmissions, stats.timeouts), (2, 0, 0), "{recovery:?}");
    }
}

/// The receiving half keeps the agreed segment size, because the path MTU of one direction does not apply to the other.
#[test]
fn path_mtu_signal_does_not_change_delayed_acks() {
    let p = TcpParameters {
        ack_every: 2,
        ack_counting: AckCounting::FullSegments,
        receive_buffer: 3000,
        receive_minimum_segments: 4,
        ..discovers(RecoveryKind::NewReno)
    };
    let mut script = Script::established(&p, 65535);
    script.run(
        "100 write 1000
         100 > . 1:1001 ack 1 win 4000
         150 too-big 1 340
         150 > . 1:301 ack 1 win 4000
         150 > . 301:601
         150 > . 601:901
         150 > . 901:1001
         200 < . 1:1001 ack 1001
         # Three of its own segments, but one of the other side's.
         200 quiet
         210 < . 1001:2001 ack 1001
         210 > . 1001:1001 ack 2001 win 4000",
    );
}

/// A path whose MTU changes: it may decrease, decrease again, or increase.
fn any_changes() -> impl Strategy<Value = Vec<(Time, u64)>> {
    prop::collection::vec((0u64..2000, prop_oneof![100u64..600, 500u64..1600, 1000u64..9300]), 1..5).prop_map(
        |changes| {
            let mut changes: Vec<_> = changes.into_iter().map(|(at, mtu)| (ms(at), mtu)).collect();
            changes.sort_unstable();
            changes
        },
    )
}

proptest! {
    /// Signals are late, duplicated, for old sequence numbers, or lost. In addition, packets are lost, late and marked. (The bench checks
    /// that no segment is longer than the connection's segment size.)
    #[test]
    fn tcp_delivers_every_byte_over_a_shrinking_path_mtu(
        a in any_parameters(),
        b in any_parameters(),
        total in 0u64..200_000,
        message in 1u64..70_000,
        changes in any_changes(),
        signals in (0u64..400, 1u64..800, 0u64..600, 0u64..300, 0u64..300),
        loss in (0u64..60_000, 0u64..60_000),
        late in (0u64..100_000, 1u64..200),
        delay in 0u64..100_000,
        rate in prop::option::of(64_000u64..100_000_000),
        queue in 20_000u64..200_000,
        reading in prop::option::of((500u64..20_000, 1u64..300)),
        seed in any::<u64>(),
    ) {
        let a = TcpParameters { path_mtu: PathMtu::Discovered, ..a };
        let mut forward = Pipe::new(rate, us(delay));
        let (after, spread, lost, twice, older) = signals;
        let stream = Stream::new(seed, "signals");
        forward.mtu =
            Some(Mtu { late: ms(spread), lost, twice, older, stream, ..Mtu::new(changes, ms(after)) });
        forward.queue = queue;
        forward.mark_above = Some(queue / 4);
        forward.loss = Loss::Random { millionths: loss.0, stream: Stream::new(seed, "forward") };
        forward.late = Some((late.0, ms(late.1), Stream::new(seed, "late")));
        let mut back = Pipe::new(rate, us(delay));
        back.loss = Loss::Random { millionths: loss.1, stream: Stream::new(seed, "back") };
        let mut bench = Bench::new(&a, &b, forward, back).transfer(total, message);
        bench.in_bursts = seed % 2 == 0;
        if let Some((bytes, every)) = reading {
            bench = bench.reading(bytes, ms(every));
        }
        bench.run_to_end(Time::from_secs(100_000));
        bench.run(Time::from_secs(300_000));
        assert_delivered(&bench);
        prop_assert_eq!(bench.a.state(), State::Closed);
        prop_assert!(matches!(bench.b.state(), State::Closed | State::LastAck), "{:?}", bench.b.state());
    }

    /// RFC 1191 section 6.4: signals for one window of packets must not cause more than one retransmission of anything. Only packets that
    /// are too long are lost. Signals are faster than acknowledgments, which would otherwise reveal the loss first. The MTU does not
    /// increase again; otherwise long segments could arrive after their shorter retransmissions, and RACK cannot always tell which of them
    /// is acknowledged (RFC 8985 section 6.2 step 2).
    #[test]
    fn path_mtu_signals_resend_nothing_twice(
        a in any_parameters(),
        b in any_parameters(),
        total in 1u64..300_000,
        message in 1u64..70_000,
        changes in any_changes(),
        signals in (0u64..50, 1u64..50, 0u64..1000),
        delay in 1_000u64..50_000,
        seed in any::<u64>(),
    ) {
        let a = TcpParameters { path_mtu: PathMtu::Discovered, persist_minimum: ms(200), ..a };
        let mut forward = Pipe::new(Some(20_000_000), us(delay));
        // In hundredths of the round-trip time.
        let (after, spread, twice) = (us(2 * delay * signals.0 / 100), us(1 + 2 * delay * signals.1 / 100), signals.2);
        let stream = Stream::new(seed, "signals");
        let falls = changes.len() as u64;
        let mut sizes: Vec<_> = changes.iter().map(|change| change.1).collect();
        sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
        let changes = changes.iter().zip(sizes).map(|(change, size)| (change.0, size)).collect();
        forward.mtu = Some(Mtu { late: spread, twice, stream, ..Mtu::new(changes, after) });
        let mut bench = Bench::new(&a, &b, forward, Pipe::new(None, us(delay))).transfer(total, message);
        bench.run_to_end(Time::from_secs(100_000));
        bench.run(Time::from_secs(300_000));
        assert_delivered(&bench);
        let stats = bench.a.stats();
        prop_assert!(stats.path_mtu_signals <= falls);
        let probes = (stats.tail_probes + stats.window_probes) * 9180;
        prop_assert!(stats.bytes_retransmitted <= bench.may_repeat + probes, "{} {stats:?}", bench.may_repeat);
    }

    /// Without signals, a connection with path MTU discovery behaves like one without.
    #[test]
    fn discovered_path_mtu_without_signals_equals_known_path_mtu(
        a in any_parameters(),
        b in any_parameters(),
        message in 1u64..70_000,
        loss in 0u64..50_000,
        seed in any::<u64>(),
    ) {
        let [known, discovers] = [PathMtu::Known, PathMtu::Discovered].map(|path_mtu| {
            let mut forward = Pipe::new(Some(20_000_000), ms(5));
            forward.loss = Loss::Random { millionths: loss, stream: Stream::new(seed, "forward") };
            let a = TcpParameters { path_mtu, ..a.clone() };
            let mut bench = Bench::new(&a, &b, forward, Pipe::new(None, ms(5))).transfer(300_000, message);
            bench.log = Some(Vec::new());
            bench.run(Time::from_secs(20));
            (bench.log, bench.out_a, bench.a.stats(), bench.b.stats(), bench.a.snapshot())
        });
        prop_assert_eq!(known, discovers);
    }
}

/// A black hole: the router drops packets that are too long without a signal (RFC 2923 section 2.1).
#[test]
fn connection_without_path_mtu_signals_stalls() {
    for profile in Profile::ALL {
        for recovery in RECOVERIES {
            let p = TcpParameters { path_mtu: PathMtu::Discovered, recovery, ..profile.parameters(1500) };
            let mut forward = Pipe::new(Some(10_000_000), ms(5));
            let silent = Mtu { lost: 1000, ..Mtu::new(vec![(Time::ZERO, 1400)], Time::ZERO) };
            forward.mtu = Some(silent);
            let mut bench =
                Bench::new(&p, &p, forward, Pipe::new(Some(10_000_000), ms(5))).transfer(100_000, 50_000);
            bench.run(Time::from_secs(3600));
            let (stats, snapshot) = (bench.a.stats(), bench.a.snapshot());
            assert_eq!((bench.out_b.delivered, stats.path_mtu_signals), (0, 0), "{profile:?} {recovery:?}");
            // The timeout has doubled up to its maximum.
            assert_eq!(snapshot.timeout, p.rto_maximum, "{profile:?} {recovery:?}");
            assert!((30..70).contains(&stats.timeouts), "{profile:?} {recovery:?}: {}", stats.timeouts);
            assert_eq!(
                bench.a.limited_by(bench.now),
                LimitedBy::CongestionWindow,
                "{profile:?} {recovery:?}"
            );
        }
    }
}

/// After the signal, the transfer continues immediately with its old window.
#[test]
fn path_mtu_signal_causes_no_timeout_and_little_delay() {
    for recovery in RECOVERIES {
        for kind in ["reno", "cubic", "dctcp", "bbr"] {
            let p = TcpParameters {
                path_mtu: PathMtu::Discovered,
                receive_buffer: 40_000,
                recovery,
                congestion: congestion(kind),
                ..Profile::Linux6.parameters(1500)
            };
            let mut forward = Pipe::new(Some(10_000_000), ms(5));
            forward.mtu = Some(Mtu::new(vec![(ms(500), 1400), (ms(1000), 576)], ms(4)));
            let mut bench =
                Bench::new(&p, &p, forward, Pipe::new(Some(10_000_000), ms(5))).transfer(2_000_000, 50_000);
            let end = bench.run_to_end(Time::from_secs(60));
            let stats = bench.a.stats();
            assert_eq!((stats.path_mtu_signals, stats.timeouts), (2, 0), "{kind} {recovery:?}");
            assert_eq!(bench.a.segment_size(), 576 - 52);
            // 2 MB take 1.65 s in packets of 1500 and 1.75 s in packets of 576.
            assert!(end < ms(2100), "{kind} {recovery:?}: {end:?} {stats:?}");
        }
    }
}
