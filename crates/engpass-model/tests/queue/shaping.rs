//! The token bucket compared with its definition, computed differently in exact arithmetic.

use engpass_model::queue::{Ecn, Packet};
use engpass_model::time::{SECOND, Time};
use proptest::prelude::*;
use serde_json::json;

use crate::port::{on_the_line, queue, run};

/// Faster than every bucket in the tests.
const LINE: u64 = 1_000_000_000_000;

/// Earliest departure time of each packet. Tokens are counted in 1/(8 * 10^12) of a byte, so `rate` of them arrive per picosecond.
fn by_definition(rate: u64, burst: u64, arrivals: &[(Time, Packet)]) -> Vec<Time> {
    let unit = 8 * u128::from(SECOND);
    let full = u128::from(burst) * unit;
    let (mut tokens, mut at, mut free) = (full, 0u64, Time::ZERO);
    let mut starts = Vec::new();
    for (came, packet) in arrivals {
        let head = free.max(*came).0;
        tokens = full.min(tokens + u128::from(rate) * u128::from(head - at));
        at = head;
        let need = u128::from(packet.bytes) * unit;
        let wait = need.saturating_sub(tokens).div_ceil(u128::from(rate)) as u64;
        tokens = full.min(tokens + u128::from(rate) * u128::from(wait)) - need;
        at += wait;
        starts.push(Time(at));
        free = Time(at) + on_the_line(LINE, packet);
    }
    starts
}

proptest! {
    #![proptest_config(engpass_cases::cases(200))]

    #[test]
    fn token_bucket_departures_equal_the_definition(
        rate in 1_000u64..10_000_000_000, burst in 1518u64..20_000,
        packets in prop::collection::vec((0u64..4000, 1u32..=1518), 1..200),
    ) {
        let mut now = 0;
        let arrivals: Vec<(Time, Packet)> = (0..).zip(&packets).map(|(id, (gap, bytes))| {
            // Gaps of the order of a packet's time at the token rate, so that the bucket is sometimes full and sometimes empty.
            now += (u128::from(*gap) * u128::from(SECOND) / u128::from(rate)) as u64;
            (Time(now), Packet { id, bytes: *bytes, flow: 0, priority: 0, ecn: Ecn::NotCapable })
        }).collect();
        let text = json!({ "token-bucket": { "rate": format!("{rate} bit/s"), "burst": format!("{burst} B") } });
        let record = run(&queue(text), LINE, &arrivals);
        let starts: Vec<Time> = record.sent.iter().map(|(start, _)| *start).collect();
        prop_assert_eq!(starts, by_definition(rate, burst, &arrivals));

        // In every interval, at most the burst plus the tokens of the interval are sent.
        for (i, (from, _)) in record.sent.iter().enumerate() {
            let mut sent = 0u128;
            for (to, packet) in &record.sent[i..] {
                sent += u128::from(packet.bytes);
                let allowed = u128::from(burst) * 8 * u128::from(SECOND) + u128::from(rate) * u128::from(to.0 - from.0);
                prop_assert!(sent * 8 * u128::from(SECOND) <= allowed);
            }
        }
    }
}
