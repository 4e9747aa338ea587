//! Under any loss, delay and lack of buffer space, every byte is delivered once and in order, and the statistics are consistent.

use engpass_model::random::Stream;
use engpass_model::tcp::congestion::Congestion;
use engpass_model::tcp::parameters::{Nagle, RecoveryKind, SendBufferRule};
use engpass_model::tcp::{Profile, State, TcpParameters};
use engpass_model::time::Time;
use proptest::prelude::*;

use crate::bench::{Bench, Loss, Pipe, ms, us};

pub(crate) const RECOVERIES: [RecoveryKind; 5] = [
    RecoveryKind::Plain,
    RecoveryKind::Reno,
    RecoveryKind::NewReno,
    RecoveryKind::Sack,
    RecoveryKind::RackTlp,
];

/// The bench counts bytes without content: the receiver must deliver as many as the sender wrote.
pub(crate) fn assert_delivered(bench: &Bench) {
    let (a, b) = (bench.a.stats(), bench.b.stats());
    assert_eq!(bench.out_b.delivered, bench.total, "every byte arrives once");
    assert_eq!(bench.written, bench.total);
    assert_eq!(b.bytes_received, bench.total);
    assert_eq!(
        a.bytes_sent,
        b.bytes_received + b.bytes_refused + bench.forward.dropped_payload,
        "sent bytes are delivered, refused or lost: {a:?} {b:?}"
    );
}

pub(crate) fn congestion(kind: &str) -> Congestion {
    serde_json::from_value(serde_json::json!(kind)).expect("the family has this kind")
}

fn parameters(profile: Profile, mtu: u64, recovery: RecoveryKind, nagle: Nagle) -> TcpParameters {
    TcpParameters { recovery, nagle, ..profile.parameters(mtu) }
}

const NAGLES: [Nagle; 4] = [Nagle::Off, Nagle::Rfc896, Nagle::Minshall, Nagle::Naglim];
const RULES: [SendBufferRule; 3] =
    [SendBufferRule::Bytes, SendBufferRule::HighWater, SendBufferRule::WholeWrites];

pub(crate) fn any_parameters() -> impl Strategy<Value = TcpParameters> {
    (
        prop::sample::select(&Profile::ALL[..]),
        prop::sample::select(vec![576, 1500, 9180]),
        prop::sample::select(&RECOVERIES[..]),
        prop::sample::select(&NAGLES[..]),
        prop::sample::select(&RULES[..]),
        prop::option::of(1_000u64..60_000),
        prop::option::of(1_000u64..60_000),
        any::<(bool, bool, bool)>(),
        prop::sample::select(Congestion::KINDS),
    )
        .prop_map(
            |(profile, mtu, recovery, nagle, rule, send, receive, (boundaries, ecn, timestamps), control)| {
                let mut p = parameters(profile, mtu, recovery, nagle);
                p.send_buffer_rule = rule;
                p.write_boundaries = boundaries;
                p.ecn = ecn;
                p.timestamps = timestamps;
                p.congestion = congestion(control);
                p.send_buffer = send.unwrap_or(p.send_buffer);
                p.receive_buffer = receive.unwrap_or(p.receive_buffer);
                p
            },
        )
}

proptest! {
    #[test]
    fn tcp_delivers_every_byte_once(
        a in any_parameters(),
        b in any_parameters(),
        total in 0u64..200_000,
        message in 1u64..70_000,
        loss in (0u64..200_000, 0u64..200_000),
        late in (0u64..300_000, 1u64..200),
        delay in 0u64..100_000,
        rate in prop::option::of(64_000u64..100_000_000),
        queue in 20_000u64..200_000,
        reading in prop::option::of((500u64..20_000, 1u64..300)),
        seed in any::<u64>(),
    ) {
        let mut forward = Pipe::new(rate, us(delay));
        forward.queue = queue;
        forward.mark_above = Some(queue / 4);
        forward.loss = Loss::Random { millionths: loss.0, stream: Stream::new(seed, "forward") };
        forward.late = Some((late.0, ms(late.1), Stream::new(seed, "late")));
        let mut back = Pipe::new(rate, us(delay));
        back.loss = Loss::Random { millionths: loss.1, stream: Stream::new(seed, "back") };
        let mut bench = Bench::new(&a, &b, forward, back).transfer(total, message);
        if let Some((bytes, every)) = reading {
            bench = bench.reading(bytes, ms(every));
        }
        // Hours of virtual time: with 20 % loss in both directions the timeout backs off to a minute and more.
        bench.run_to_end(Time::from_secs(100_000));
        bench.run(Time::from_secs(300_000));
        assert_delivered(&bench);
        prop_assert_eq!(bench.a.state(), State::Closed);
        // The last acknowledgment of the close may be lost after the other end is gone.
        prop_assert!(matches!(bench.b.state(), State::Closed | State::LastAck), "{:?}", bench.b.state());
    }
}

proptest! {
    #[test]
    fn segment_burst_equals_segment_by_segment(
        a in any_parameters(),
        b in any_parameters(),
        message in 1u64..70_000,
        loss in 0u64..50_000,
        queue in 20_000u64..200_000,
        seed in any::<u64>(),
    ) {
        let [alone, in_bursts] = [false, true].map(|in_bursts| {
            let mut forward = Pipe::new(Some(20_000_000), ms(5));
            forward.queue = queue;
            forward.mark_above = Some(queue / 4);
            forward.loss = Loss::Random { millionths: loss, stream: Stream::new(seed, "forward") };
            let mut bench = Bench::new(&a, &b, forward, Pipe::new(None, ms(5))).transfer(500_000, message);
            (bench.log, bench.in_bursts) = (Some(Vec::new()), in_bursts);
            bench.run(Time::from_secs(20));
            (bench.log, bench.a.stats(), bench.b.stats(), bench.a.snapshot())
        });
        prop_assert_eq!(alone, in_bursts);
    }

    /// Without negotiated ECN, an endpoint ignores ECN-Echo, but such a segment takes the slow path.
    #[test]
    fn tcp_fast_path_equals_slow_path(
        a in any_parameters(),
        b in any_parameters(),
        recovery in prop::sample::select(vec![RecoveryKind::Sack, RecoveryKind::Sack, RecoveryKind::RackTlp, RecoveryKind::NewReno]),
        loss in (0u64..50_000, 0u64..20_000),
        late in 0u64..20_000,
        queue in 10_000u64..200_000,
        seed in any::<u64>(),
    ) {
        let (a, b) = (TcpParameters { recovery, ecn: false, ..a }, TcpParameters { recovery, ..b });
        let [expected, any] = [false, true].map(|echoes| {
            let mut forward = Pipe::new(Some(20_000_000), ms(5));
            forward.queue = queue;
            forward.loss = Loss::Random { millionths: loss.0, stream: Stream::new(seed, "forward") };
            forward.late = Some((late, ms(20), Stream::new(seed, "late")));
            let mut back = Pipe::new(None, ms(5));
            back.loss = Loss::Random { millionths: loss.1, stream: Stream::new(seed, "back") };
            back.echoes = echoes;
            let mut bench = Bench::new(&a, &b, forward, back).transfer(500_000, 20_000);
            bench.log = Some(Vec::new());
            bench.run(Time::from_secs(20));
            (bench.log, bench.out_a, bench.a.stats(), bench.b.stats(), bench.a.snapshot())
        });
        prop_assert_eq!(expected, any);
    }
}

#[test]
fn loss_free_line_needs_no_retransmission() {
    for profile in Profile::ALL {
        for recovery in RECOVERIES {
            let p = TcpParameters { recovery, ..profile.parameters(1500) };
            let pipe = Pipe::new(Some(10_000_000), ms(5));
            let mut bench = Bench::new(&p, &p, pipe.clone(), pipe).transfer(1_000_000, 10_000);
            bench.run_to_end(Time::from_secs(60));
            bench.run(Time::from_secs(1000));
            assert_delivered(&bench);
            assert_eq!(bench.a.stats().retransmissions, 0, "{} {recovery:?}", profile.name());
            assert_eq!(bench.a.stats().timeouts, 0, "{} {recovery:?}", profile.name());
            assert_eq!((bench.a.state(), bench.b.state()), (State::Closed, State::Closed));
        }
    }
}

#[test]
fn connection_takes_at_most_344_bytes() {
    // The two endpoints and their network state together must stay below 1 KiB.
    let bytes = size_of::<engpass_model::tcp::Connection>();
    assert!(bytes <= 344, "{bytes}");
}
