//! Random TCP: streams, stacks, and CPU costs of segments.

use engpass_model::source::{Live, TcpStream};
use engpass_model::tcp::congestion::Congestion;
use engpass_model::tcp::parameters::RecoveryKind;
use engpass_model::tcp::{Profile, TcpConfig};
use engpass_model::time::SECOND;
use engpass_model::unit::{Duration, Rate, Size};
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use super::{TcpDraw, times};

pub(super) fn stream() -> impl Strategy<Value = TcpDraw> {
    let message = prop_oneof![1u64..=100, 100u64..=2_000, 2_000u64..=20_000, 20_000u64..=200_000];
    let streams = prop_oneof![3 => Just(1u32), 1 => 2u32..=3];
    // Interval between writes, in picoseconds; sometimes too fast for any line here.
    let gap = weighted(0.3, 1_000_000u64..=3_000_000_000);
    let most = 1_000_000_000_000;
    let written = (message, gap)
        .prop_map(move |(message, gap)| (message, gap.map(|gap| (message * 8 * SECOND / gap).min(most))));
    ((0usize..5, prop::bool::weighted(0.7)), written, streams, (super::count(), times())).prop_map(
        |(circuit, (message, rate), streams, (count, times))| {
            let count = count.map(|(count, _)| count);
            TcpDraw { circuit, message, rate, count, streams, times }
        },
    )
}

/// Returns a stream: ends; size and rate of writes, connections and circuit; priority and TTL; start and stop.
pub(super) fn table(
    (from, to): (String, String),
    (message, rate, streams, circuit): (Size, Option<Rate>, u32, Option<String>),
    (priority, ttl): (u8, u8),
    (start, stop): (Option<Duration>, Option<Duration>),
) -> TcpStream {
    TcpStream {
        from,
        to,
        message,
        rate,
        count: None,
        circuit,
        streams,
        send_path: None,
        receive_path: None,
        tcp: TcpConfig::default(),
        live: Live::default(),
        priority,
        ttl,
        start,
        stop,
    }
}

/// Returns a TCP configuration with short timers, so that they matter in runs of some milliseconds.
pub(super) fn config() -> impl Strategy<Value = TcpConfig> {
    use RecoveryKind::{NewReno, Plain, RackTlp, Reno, Sack};
    // A window of fewer than four segments never causes three duplicates: such buffers are rare.
    let buffer = || prop_oneof![1 => 1u64..=2_000, 5 => 8_000u64..=70_000, 1 => 2_000u64..=8_000];
    let ps = |from: u64, to: u64| (from..=to).prop_map(Duration);
    (
        select(Profile::ALL.to_vec()),
        (weighted(0.3, buffer().prop_map(Size)), weighted(0.3, buffer().prop_map(Size))),
        weighted(0.8, ps(100_000_000, 10_000_000_000)),
        // With the stack's default timer, duplicates arrive first.
        weighted(0.5, (ps(500_000_000, 20_000_000_000), ps(100_000_000, 5_000_000_000))),
        weighted(0.5, ps(10_000_000, 2_000_000_000)),
        weighted(0.3, select(vec![Plain, Reno, NewReno, Sack, RackTlp])),
        weighted(0.3, congestion()),
        (weighted(0.3, 1u64..=20), weighted(0.2, 1u32..=3), weighted(0.1, (40u64..=60_000).prop_map(Size))),
    )
        .prop_map(
            |(profile, (send, receive), delay, rto, tick, recovery, congestion, (initial, every, mss))| {
                let (rto_initial, rto_minimum) = rto.unzip();
                TcpConfig {
                    mss,
                    send_buffer: send,
                    receive_buffer: receive,
                    ack_delay: delay,
                    rto_initial,
                    rto_minimum,
                    rto_tick: tick,
                    recovery,
                    congestion,
                    initial_window: initial,
                    ack_every: every,
                    ..TcpConfig::profile(profile)
                }
            },
        )
}

fn congestion() -> impl Strategy<Value = Congestion> {
    let kinds = Congestion::KINDS.to_vec();
    select(kinds).prop_map(|kind| {
        serde_json::from_value(serde_json::json!(kind)).expect("a congestion control kind needs no keys")
    })
}

/// Returns picoseconds per write, segment and acknowledgment, for sending and receiving. Zero costs take effect at once; fast hosts fill queues.
pub(super) fn costs() -> impl Strategy<Value = [[Option<u64>; 3]; 2]> {
    let one = || {
        let cost = || {
            weighted(
                0.6,
                prop_oneof![1 => Just(0u64), 3 => 1u64..=5_000_000, 3 => 5_000_000u64..=200_000_000],
            )
        };
        prop_oneof![1 => Just([None; 3]), 3 => [cost(), cost(), cost()]]
    };
    [one(), one()]
}
