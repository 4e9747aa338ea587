//! TCP compared with closed forms, each within its range of validity.

use engpass_model::random::Stream;
use engpass_model::tcp::parameters::{AckCounting, Nagle, RecoveryKind};
use engpass_model::tcp::{LimitedBy, Profile, TcpParameters};
use engpass_model::time::Time;

use crate::bench::{Bench, Loss, Pipe, ms};
use crate::delivery::congestion;
use crate::script::plain;

/// Parameters of a bulk sender: windows are no limit, acknowledgments are not delayed, and the minimum timeout does not matter.
fn bulk(kind: &str) -> TcpParameters {
    TcpParameters {
        window_scaling: true,
        send_buffer: 1 << 26,
        receive_buffer: 1 << 26,
        recovery: RecoveryKind::Sack,
        congestion: congestion(kind),
        dsack: false,
        ..plain()
    }
}

/// A sender over a line without a rate limit, so that only loss limits it. Returns the payload rate in bit/s over `seconds` seconds, after the first `skip`
/// seconds, and the bench.
fn lossy(p: &TcpParameters, loss: Loss, rtt: Time, skip: u64, seconds: u64) -> (f64, Bench) {
    let mut forward = Pipe::new(None, Time(rtt.ps() / 2));
    forward.loss = loss;
    let back = Pipe::new(None, Time(rtt.ps() / 2));
    let mut bench = Bench::new(p, p, forward, back).transfer(u64::MAX / 4, 1 << 20);
    let goodput = bench.goodput(Time::from_secs(skip), Time::from_secs(skip + seconds));
    (goodput, bench)
}

fn random(p: f64, seed: u64) -> Loss {
    Loss::Random { millionths: (p * 1e6) as u64, stream: Stream::new(seed, "loss") }
}

fn assert_near(got: f64, expected: f64, tolerance: f64, what: &str) {
    let ratio = got / expected;
    assert!((ratio - 1.0).abs() <= tolerance, "{what}: {got:.4e}, expected {expected:.4e}, ratio {ratio:.3}");
}

/// Mathis et al. 1997: MSS/RTT * C/sqrt(p). C = 1.22 for periodic loss and one acknowledgment per segment; C = 0.87 with one for every
/// second segment, if the window grows per acknowledgment.
#[test]
fn reno_goodput_matches_mathis_with_periodic_loss() {
    for (every, counting, constant) in [(1, 1, 1.22), (2, 0, 0.87)] {
        for n in [1000, 5000] {
            let p = TcpParameters {
                ack_every: every,
                ack_counting: AckCounting::FullSegments,
                byte_counting: counting,
                ..bulk("reno")
            };
            let (goodput, bench) = lossy(&p, Loss::Every(n), ms(100), 100, 600);
            let expected = 1000.0 * 8.0 / 0.1 * constant * (n as f64).sqrt();
            assert_near(goodput, expected, 0.08, &format!("C = {constant}, p = 1/{n}"));
            assert!(bench.a.stats().timeouts <= 1, "{:?}", bench.a.stats());
        }
    }
}

/// Mathis et al. 1997: C = 1.31 for random loss (0.93 with delayed acknowledgments).
#[test]
fn reno_goodput_matches_mathis_with_random_loss() {
    for (every, counting, constant) in [(1, 1, 1.31), (2, 0, 0.93)] {
        for p in [0.0005, 0.001] {
            let parameters = TcpParameters {
                ack_every: every,
                ack_counting: AckCounting::FullSegments,
                byte_counting: counting,
                ..bulk("reno")
            };
            let (goodput, _) = lossy(&parameters, random(p, 1), ms(50), 50, 800);
            let expected = 1000.0 * 8.0 / 0.05 * constant / p.sqrt();
            assert_near(goodput, expected, 0.12, &format!("C = {constant}, p = {p}"));
        }
    }
}

/// PFTK (Padhye et al. 1998), the full model with timeouts. The model itself is considered accurate to about 25 %.
#[test]
fn reno_goodput_matches_pftk_with_timeouts() {
    let (rtt, b) = (0.1, 2.0);
    for loss in [0.01, 0.03, 0.06] {
        let p = TcpParameters {
            ack_every: 2,
            ack_counting: AckCounting::FullSegments,
            byte_counting: 0,
            recovery: RecoveryKind::Reno,
            ..bulk("reno")
        };
        let (goodput, bench) = lossy(&p, random(loss, 3), ms(100), 20, 4000);
        let t0: f64 = 1.0;
        let per_second = 1.0
            / (rtt * (2.0 * b * loss / 3.0f64).sqrt()
                + t0 * 1.0f64.min(3.0 * (3.0 * b * loss / 8.0f64).sqrt())
                    * loss
                    * (1.0 + 32.0 * loss * loss));
        assert_near(goodput, per_second * 8000.0, 0.3, &format!("p = {loss}"));
        assert!(bench.a.stats().timeouts > 50);
    }
}

/// Reno with one deterministic loss in `n` segments: the window oscillates between W/2 and W with 3/8 W^2 = n.
#[test]
fn reno_window_oscillates_between_half_and_full_peak() {
    let n = 2400;
    let p = bulk("reno");
    let (_, mut bench) = lossy(&p, Loss::Every(n), ms(100), 100, 1);
    let (mut least, mut most) = (u64::MAX, 0);
    for tenth in 0..3000 {
        bench.run(Time::from_secs(101) + ms(100 * tenth));
        let window = bench.a.snapshot().congestion_window;
        (least, most) = (least.min(window), most.max(window));
    }
    let peak = (8.0 * n as f64 / 3.0).sqrt() * 1000.0;
    assert_near(most as f64, peak, 0.04, "peak");
    assert_near(least as f64, peak / 2.0, 0.06, "trough");
}

/// RFC 9438 figure 1: W(t) = C (t - K)^3 + W_max between losses, with C = 0.4 and beta = 0.7.
#[test]
fn cubic_window_follows_the_rfc_9438_curve() {
    let p = bulk("cubic");
    let mut forward = Pipe::new(None, ms(100));
    forward.loss = Loss::Listed(vec![2_000]);
    let mut bench = Bench::new(&p, &p, forward, Pipe::new(None, ms(100))).transfer(u64::MAX / 4, 1 << 20);
    while bench.a.stats().fast_recoveries == 0 {
        assert!(bench.step(Time::from_secs(1000)));
    }
    let reduced = bench.a.snapshot().congestion_window as f64 / 1000.0;
    // The reduction starts from FlightSize, which equals the window after slow start.
    let maximum = reduced / 0.7;
    while bench.a.snapshot().in_flight + 1000 < bench.a.snapshot().congestion_window
        || bench.a.snapshot().unacknowledged > bench.a.snapshot().in_flight + 1000
    {
        assert!(bench.step(Time::from_secs(1000)));
    }
    let start = bench.now;
    let k = ((maximum - reduced) / 0.4).cbrt();
    for second in [5, 10, 15, 20, 25, 30] {
        bench.run(start + Time::from_secs(second));
        let t = second as f64;
        // The window aims at the value of the curve one round trip later (section 4.4).
        let expected = 0.4 * (t - k).powi(3) + maximum;
        let window = bench.a.snapshot().congestion_window as f64 / 1000.0;
        assert_near(window, expected, 0.03, &format!("{second} s, K = {k:.1} s, W_max = {maximum:.0}"));
    }
}

/// RFC 9438 section 5.1: AVG_W = (C (3 + beta) / (4 (1 - beta)))^(1/4) * RTT^(3/4) / p^(3/4) under deterministic loss, provided that it
/// exceeds Reno's window.
#[test]
fn cubic_average_window_matches_rfc_9438() {
    // The formula does not model fast convergence.
    let table = serde_json::json!({ "cubic": { "fast_convergence": false } });
    let congestion = serde_json::from_value(table).expect("the CUBIC config is valid");
    let p = TcpParameters { congestion, ..bulk("cubic") };
    for (n, rtt) in [(10_000, ms(100)), (10_000, ms(200)), (5_000, ms(200))] {
        let seconds = rtt.as_secs_f64();
        let window = 1.054 * (seconds * n as f64).sqrt() * (seconds * n as f64).sqrt().sqrt();
        // Near the plateau, almost any W_max is close to equilibrium. Start at that of the formula, W_max = AVG_W / 0.925, through a loss
        // in slow start that is detected when the window has this size.
        let half = (window / 0.925 / 2.0) as u64;
        let p = TcpParameters { initial_window: half, ..p.clone() };
        let (goodput, _) = lossy(&p, Loss::EveryFrom { n, first: half }, rtt, 60, 240);
        assert_near(goodput, window * 8000.0 / seconds, 0.06, &format!("p = 1/{n}, {rtt:?}"));
    }
}

/// RFC 9438 section 4.3: if CUBIC's curve is below Reno's, the window is about Reno's.
#[test]
fn cubic_goodput_is_about_renos_on_a_short_path() {
    let n = 500;
    let (cubic, _) = lossy(&bulk("cubic"), Loss::Every(n), ms(20), 100, 600);
    let (reno, _) = lossy(&bulk("reno"), Loss::Every(n), ms(20), 100, 600);
    assert_near(cubic, reno, 0.15, "CUBIC against Reno");
}

/// RFC 6349 section 3.3.1: the bandwidth-delay products of its table. A window of that size fills the line; half of it fills half of the
/// line.
#[test]
fn rfc_6349_goodput_is_window_per_rtt_up_to_the_line_rate() {
    for (rate, rtt_us, product) in [
        (1_536_000u64, 20_000u64, 3_840u64),
        (1_536_000, 100_000, 19_200),
        (44_210_000, 10_000, 55_263),
        (44_210_000, 25_000, 138_156),
        (100_000_000, 1_000, 12_500),
        (100_000_000, 5_000, 62_500),
        (1_000_000_000, 100, 12_500),
        (1_000_000_000, 1_000, 125_000),
        (10_000_000_000, 300, 375_000),
    ] {
        assert_near((rate * rtt_us) as f64 / 8e6, product as f64, 0.0005, "product");
        // A window of n segments sends n segments per round trip and serialization time, as long as that is below the line rate.
        for window in [product / 2 / 1000 * 1000, product / 4 / 500 * 500] {
            let mss = if window >= 4000 { 1000 } else { 100 };
            let window = window / mss * mss;
            let p = TcpParameters { receive_buffer: window, mss, ..bulk("reno") };
            let half = Time(rtt_us * 500_000);
            let mut bench = Bench::new(&p, &p, Pipe::new(Some(rate), half), Pipe::new(None, half))
                .transfer(1 << 40, 1 << 20);
            let goodput = bench.goodput(Time(rtt_us * 1_000_000 * 100), Time(rtt_us * 1_000_000 * 600));
            let round_trip = rtt_us as f64 / 1e6 + (mss + 40) as f64 * 8.0 / rate as f64;
            assert_near(
                goodput,
                window as f64 * 8.0 / round_trip,
                0.01,
                &format!("{rate} bit/s, {rtt_us} us"),
            );
            assert_eq!(bench.a.limited_by(bench.now), LimitedBy::ReceiveWindow);
        }
        let p = TcpParameters { receive_buffer: 4 * product, ..bulk("reno") };
        let half = Time(rtt_us * 500_000);
        let mut bench =
            Bench::new(&p, &p, Pipe::new(Some(rate), half), Pipe::new(None, half)).transfer(1 << 40, 1 << 20);
        let goodput = bench.goodput(Time(rtt_us * 1_000_000 * 100), Time(rtt_us * 1_000_000 * 600));
        assert_near(goodput, rate as f64 * 1000.0 / 1040.0, 0.01, "a window of four products fills the line");
    }
}

/// A message larger than Winsock's buffer takes one round of acknowledgments. With an odd number of segments, the last acknowledgment waits
/// for the 200 ms timer: 65 536 bytes in 45 segments of 1460 give 65 536 * 8 / (0.2 s + the transfer itself).
#[test]
fn odd_segment_count_waits_for_the_delayed_ack_timer() {
    let p = Profile::Windows95.parameters(1500);
    let mut results = Vec::new();
    for message in [65_536, 64_240] {
        // 45 and 44 segments. The receiver has room for all of them, so only the delayed acknowledgments matter.
        let p = TcpParameters {
            receive_buffer: 65_535,
            window_update: engpass_model::tcp::parameters::WindowUpdate::BelowSegment,
            ..p.clone()
        };
        let pipe = Pipe::new(Some(27_300_000), Time(0));
        let mut bench = Bench::new(&p, &p, pipe, Pipe::new(None, ms(1))).transfer(u64::MAX / 4, message);
        results.push(bench.goodput(Time::from_secs(5), Time::from_secs(25)));
    }
    assert_near(results[0], 65_536.0 * 8.0 / (0.2 + 0.0199 + 0.001), 0.03, "odd");
    assert!(results[1] > 8.0 * results[0], "even segment count is not faster: {results:?}");
}

/// Nagle and delayed acknowledgments: writes of one and a half segments wait for the timer each time (write, write, read).
#[test]
fn nagle_waits_for_the_delayed_ack_of_the_receiver() {
    let p = TcpParameters { ack_every: 2, ack_delay: ms(200), nagle: Nagle::Rfc896, ..plain() };
    let mut rates = Vec::new();
    for nagle in [Nagle::Rfc896, Nagle::Minshall, Nagle::Off] {
        let p = TcpParameters { nagle, ..p.clone() };
        let mut bench =
            Bench::new(&p, &p, Pipe::new(None, ms(1)), Pipe::new(None, ms(1))).transfer(1500, 1500);
        bench.close_at_end = false;
        rates.push(bench.run_to_end(Time::from_secs(10)));
    }
    // Handshake 2 ms, one-way delay 1 ms. Without Nagle and with Minshall, all data are sent immediately. Otherwise the rest waits for the
    // delayed acknowledgment of the first segment (200 ms after its arrival), plus two one-way delays.
    assert_eq!(rates[1], ms(3));
    assert_eq!(rates[2], ms(3));
    assert_eq!(rates[0], ms(3 + 200 + 2));
}

/// Solaris' variant sends the tail of a write immediately after a full segment: a write takes ceil(write / MSS) segments, which gives the
/// sawtooth over the message size.
#[test]
fn solaris_segments_each_write_separately() {
    for (message, segments) in
        [(9_000u64, 1u64), (9_140, 1), (10_000, 2), (18_280, 2), (19_000, 3), (28_000, 4)]
    {
        let p = Profile::Solaris25.parameters(9180);
        // The line is faster than the window needs, so every write is segmented separately.
        let mut bench = Bench::new(&p, &p, Pipe::new(None, Time(1)), Pipe::new(None, Time(1)))
            .transfer(message * 100, message);
        bench.run_to_end(Time::from_secs(1000));
        let with_data = bench.forward.seen_data;
        assert!(with_data.abs_diff(segments * 100) <= 4, "{message}: {with_data}");
    }
}

/// A window of four segments that loses two causes fewer than three duplicate acknowledgments. It waits for the timer, at least 200 ms with
/// Solaris' minimum, and the endpoint reports this waiting time.
#[test]
fn loss_in_a_small_window_waits_for_the_timer() {
    let p = Profile::Solaris25.parameters(9180);
    assert_eq!(p.receive_minimum_segments * p.mss, 36_560);
    let line = || Pipe::new(Some(149_760_000), Time(ms(1).ps() / 5));
    let mut forward = line();
    forward.loss = Loss::Listed(vec![50, 51]);
    let mut bench = Bench::new(&p, &p, forward, line()).transfer(2_000_000, 9_140);
    let mut since = Time::ZERO;
    while bench.a.stats().timeouts == 0 {
        since = bench.now;
        assert!(bench.step(Time::from_secs(10)));
    }
    assert_eq!(bench.a.stats().fast_recoveries, 0);
    assert!(bench.out_a.timed_out);
    let waited = bench.now - since;
    assert!(waited >= ms(190) && waited <= ms(500), "{waited:?}");
    bench.run_to_end(Time::from_secs(10));
    assert_eq!(bench.out_b.delivered, 2_000_000);
}

/// RFC 8257: DCTCP keeps the queue near the marking threshold and the line fully used.
#[test]
fn dctcp_fills_the_line_with_a_short_queue() {
    let p = TcpParameters { ecn: true, ..bulk("dctcp") };
    let mut forward = Pipe::new(Some(100_000_000), ms(1));
    // RFC 8257 requires K > RTT * C / 7; this is a third of the product.
    forward.mark_above = Some(10_000);
    forward.queue = 500_000;
    let mut bench = Bench::new(&p, &p, forward, Pipe::new(None, ms(1))).transfer(u64::MAX / 4, 1 << 20);
    let goodput = bench.goodput(Time::from_secs(2), Time::from_secs(6));
    assert_near(goodput, 100e6 * 1000.0 / 1040.0, 0.02, "the line is full");
    let rtt = bench.a.snapshot().smoothed_rtt.expect("the round-trip time is measured").as_secs_f64();
    assert!(rtt < 0.002 + 3.0 * 10_000.0 * 8.0 / 100e6, "{rtt}");
    assert_eq!(bench.a.stats().retransmissions, 0);
}

/// BBR version 1: the model finds the line rate and the round-trip time of the path, keeps the queue short between its probes, and does not
/// mistake random loss for a full line.
#[test]
fn bbr_fills_the_line_with_a_short_queue_despite_loss() {
    for loss in [0.0, 0.01] {
        let p = TcpParameters { recovery: RecoveryKind::RackTlp, dsack: true, ..bulk("bbr") };
        let mut forward = Pipe::new(Some(10_000_000), ms(20));
        forward.queue = 500_000;
        forward.loss = random(loss, 9);
        let mut bench = Bench::new(&p, &p, forward, Pipe::new(None, ms(20))).transfer(u64::MAX / 4, 1 << 20);
        let goodput = bench.goodput(Time::from_secs(5), Time::from_secs(55));
        // Every ten seconds, 200 ms are spent on measuring the round-trip time. The lost share is subtracted as well.
        assert_near(goodput, 1e7 * 1000.0 / 1040.0 * (1.0 - loss), 0.06, &format!("loss {loss}"));
        let snapshot = bench.a.snapshot();
        let rtt = snapshot.smoothed_rtt.expect("the round-trip time is measured").as_secs_f64();
        assert!(rtt < 0.075, "the queue exceeds a bandwidth-delay product: {rtt}");
        // Twice the product of 10 Mbit/s and 40.9 ms, plus three segments; the gain is 1 while it probes.
        assert!(snapshot.congestion_window <= 110_000, "{snapshot:?}");
    }
}

/// Section 4.2.1 of the BBR draft: the pacing rate begins at 2.885 initial windows per round trip. The first window of 10 segments leaves at once after a round
/// trip for the handshake, and the last one of the second window 9 gaps of 1/28.85 of a round trip after its first acknowledgment.
#[test]
fn bbr_paces_its_second_window_at_the_rate_of_the_first() {
    let p = TcpParameters {
        recovery: RecoveryKind::RackTlp,
        congestion: congestion("bbr"),
        ..Profile::Linux6.parameters(1500)
    };
    let mut bench =
        Bench::new(&p, &p, Pipe::new(None, ms(50)), Pipe::new(None, ms(50))).transfer(20 * 1448, 20 * 1448);
    let arrived = bench.run_to_end(Time::from_secs(10)).as_secs_f64();
    // Pacing counts the TCP header with timestamps.
    let gap = 1480.0 / 1448.0 / 28.85;
    assert_near(arrived, 0.1 * (2.5 + 9.0 * gap), 0.0001, "the second window");
}

/// Under the same loss, goodput grows with the information that the kind of recovery uses.
#[test]
fn goodput_under_loss_grows_with_better_recovery() {
    let mut goodputs = Vec::new();
    for recovery in crate::delivery::RECOVERIES {
        let p = TcpParameters { recovery, limited_transmit: false, ..bulk("reno") };
        goodputs.push(lossy(&p, random(0.02, 5), ms(50), 10, 1000).0);
    }
    assert!(goodputs.windows(2).all(|pair| pair[0] < pair[1] * 1.05), "{goodputs:?}");
    assert!(goodputs[0] * 1.5 < goodputs[3], "{goodputs:?}");
}

/// A lost retransmission is detected by later arrivals. The timer restarts with the first retransmitted segment, as in Linux
/// (`tcp_xmit_retransmit_queue`), not only when the acknowledgment advances. Here none of 1605 retransmissions waits for the timer; without
/// the restart there are 34 timeouts.
#[test]
fn lost_retransmissions_seldom_wait_for_the_timer() {
    let p = TcpParameters { receive_buffer: 1 << 26, ..Profile::Linux6.parameters(1500) };
    let (_, bench) = lossy(&p, random(0.03, 1), ms(160), 5, 1000);
    let stats = bench.a.stats();
    assert!(stats.retransmissions > 700, "{stats:?}");
    assert!(stats.timeouts * 100 < stats.retransmissions, "{stats:?}");
}

/// On a path without reordering no segment is late, so no retransmission is spurious. This also holds if a recovery begins while
/// retransmissions of the previous one are in flight.
#[test]
fn path_without_reordering_has_no_spurious_retransmission() {
    for recovery in [RecoveryKind::NewReno, RecoveryKind::Sack, RecoveryKind::RackTlp] {
        for (kind, millionths) in
            [("reno", 50_000), ("cubic", 10_000), ("cubic", 50_000), ("bbr", 50_000), ("bbr", 100_000)]
        {
            let p =
                TcpParameters { recovery, congestion: congestion(kind), ..Profile::Linux6.parameters(1500) };
            let mut forward = Pipe::new(Some(10_000_000), ms(20));
            forward.queue = 200_000;
            forward.loss = Loss::Random { millionths, stream: Stream::new(1, "late") };
            let mut bench =
                Bench::new(&p, &p, forward, Pipe::new(Some(10_000_000), ms(20))).transfer(1 << 40, 16_384);
            bench.run(Time::from_secs(30));
            let stats = bench.a.stats();
            assert!(stats.retransmissions > 30, "{kind}, {recovery:?}: {stats:?}");
            assert_eq!(stats.spurious, 0, "{kind}, {recovery:?}, {millionths} of a million");
        }
    }
}
