use super::*;
use crate::queue::Ecn;
use proptest::prelude::*;

const NONE: [u64; 0] = [];
const DROP: Verdict = Verdict::Drop(Cause::Early);
const ACCEPT: Verdict = Verdict::Accept { mark: false };

fn gateway(config: Red) -> Gateway {
    // A packet of 1000 B takes 1 us.
    Gateway::new(config, Stream::new(1, "queue"), 8_000_000_000)
}

fn holding(packets: u64) -> PortView {
    PortView { backlog: Backlog { bytes: packets * 1000, packets }, idle_since: None }
}

fn packet(ecn: Ecn) -> Packet {
    Packet { id: 0, bytes: 1000, flow: 0, priority: 0, ecn }
}

/// A gateway whose average equals the current queue length, because its weight is 1.
fn standing(config: Red) -> Gateway {
    gateway(Red { weight_log2: 0, ..config })
}

/// Gaps between drops, in packets, of `n` arrivals that find `packets` in the queue.
fn gaps(gateway: &mut Gateway, packets: u64, n: u64) -> Vec<u64> {
    let mut gaps = Vec::new();
    let mut since = 0;
    for _ in 0..n {
        since += 1;
        if gateway.admit(Time::ZERO, holding(packets), &packet(Ecn::NotCapable)) == DROP {
            gaps.push(since);
            since = 0;
        }
    }
    gaps
}

#[test]
fn red_average_matches_hand_calculation() {
    let mut gateway = gateway(Red { weight_log2: 2, ..Red::default() });
    let average = |gateway: &Gateway| gateway.average as f64 / (1u64 << 32) as f64;
    gateway.update(Time::ZERO, holding(8));
    assert_eq!(average(&gateway), 2.0, "the average is a quarter of 8 packets");
    gateway.update(Time::ZERO, holding(8));
    assert_eq!(average(&gateway), 3.5);
    gateway.update(Time::ZERO, holding(1));
    assert_eq!(average(&gateway), 2.875);
    // Idle for 2.5 us: two typical packets, so a decay by (3/4)^2.
    let idle = PortView { backlog: Backlog::default(), idle_since: Some(Time(1_000_000)) };
    gateway.update(Time(3_500_000), idle);
    assert!((average(&gateway) - 2.875 * 0.5625).abs() < 1e-9, "{}", average(&gateway));
    // No typical packet has ended since, so the average does not decay.
    gateway.update(Time(1_999_999), idle);
    assert!((average(&gateway) - 2.875 * 0.5625).abs() < 1e-9);
}

#[test]
fn red_average_is_zero_after_a_long_idle_time() {
    let mut gateway = gateway(Red::default());
    gateway.average = 10 << PLACES;
    let idle = PortView { backlog: Backlog::default(), idle_since: Some(Time::ZERO) };
    gateway.update(Time::from_secs(1), idle);
    assert_eq!(gateway.average, 0);
}

proptest! {
    #[test]
    fn red_idle_decay_equals_floating_point_power(average in 0u64..1 << 62, weight in 1u32..=24, packets in 0u64..1_000_000) {
        let logarithm = libm::log1p(-(0.5f64.powi(weight as i32)));
        let exact = average as f64 * libm::exp(packets as f64 * logarithm);
        let got = decayed(average, weight, packets) as f64;
        prop_assert!(got <= exact * (1.0 + 1e-9) + 1.0 && got >= exact * (1.0 - 1e-9) - 64.0, "{got} {exact}");
    }

    #[test]
    fn red_average_never_exceeds_the_longest_queue(
        weight in 0u8..=24, queues in prop::collection::vec(0u64..2000, 1..200),
    ) {
        let mut gateway = gateway(Red { weight_log2: weight, ..Red::default() });
        for queue in &queues {
            gateway.update(Time::ZERO, holding(*queue));
            prop_assert!(gateway.average <= queues.iter().max().expect("at least one queue length is generated") << PLACES);
        }
    }
}

#[test]
fn red_average_converges_to_a_constant_queue_length() {
    let mut gateway = gateway(Red { weight_log2: 12, ..Red::default() });
    for _ in 0..200_000 {
        gateway.update(Time::ZERO, holding(7));
    }
    let average = gateway.average as f64 / (1u64 << 32) as f64;
    assert!((average - 7.0).abs() < 1e-5, "{average}");
}

#[test]
fn zones() {
    let zone = |packets: u64, gentle| {
        let mut gateway = standing(Red { gentle, ..Red::default() });
        gateway.update(Time::ZERO, holding(packets));
        gateway.zone()
    };
    let share = |numerator: u64, denominator: u64| Zone::Between((numerator << 32) / denominator);
    assert_eq!(zone(4, true), Zone::Below);
    assert_eq!(zone(5, true), Zone::Between(0));
    assert_eq!(zone(10, true), share(1, 20));
    assert_eq!(zone(15, true), share(1, 10));
    assert_eq!(zone(20, true), share(4, 10), "the probability is a third of the way from 10 % to 100 %");
    assert_eq!(zone(30, true), Zone::Above);
    assert_eq!(zone(14, false), share(9, 100));
    assert_eq!(zone(15, false), Zone::Above);
}

#[test]
fn red_gaps_between_drops_are_uniform() {
    // p_b = 1/20. Figure 2 increments `count` before it draws: after a drop the gap X has P[X = n] = 1/19 for n = 1 to 19, where p_a
    // reaches 1. (Method 2 in section 7 of the paper increments after drawing, and X ranges from 1 to 20.)
    let mut gateway = standing(Red::default());
    let gaps = gaps(&mut gateway, 10, 1_000_000);
    let mut seen = [0u64; 21];
    for gap in &gaps[1..] {
        seen[*gap as usize] += 1;
    }
    assert_eq!((seen[0], seen[20]), (0, 0));
    let expected = (gaps.len() - 1) as f64 / 19.0;
    let chi_square: f64 = seen[1..20].iter().map(|n| (*n as f64 - expected).powi(2) / expected).sum();
    // 18 degrees of freedom: one seed in a thousand exceeds 42.3.
    assert!(chi_square < 42.3, "{chi_square}: {seen:?}");
    // The mean gap is 10, so one packet in ten is dropped: twice p_b.
    let rate = gaps.len() as f64 / 1e6;
    assert!((rate - 0.1).abs() < 0.001, "{rate}");
}

#[test]
fn red_drop_rate_matches_the_formula() {
    for packets in [6, 8, 11, 14, 17, 22, 28] {
        let mut gateway = standing(Red::default());
        let rate = gaps(&mut gateway, packets, 400_000).len() as f64 / 4e5;
        let Zone::Between(probability) = gateway.zone() else {
            panic!("the average is between the thresholds")
        };
        // E[X] = sum of P[X > n], with p_a = p_b / (1 - count p_b) and count = n for the n-th packet after a drop.
        let p = probability as f64 / (1u64 << 32) as f64;
        let (mut survives, mut mean) = (1.0, 0.0);
        for n in 1.. {
            mean += survives;
            let left = 1.0 - f64::from(n) * p;
            if left <= p {
                break;
            }
            survives *= 1.0 - p / left;
        }
        assert!((rate * mean - 1.0).abs() < 0.02, "{packets}: expected one drop in {mean}, got rate {rate}");
    }
}

#[test]
fn red_first_packet_is_dropped_with_probability_p_b() {
    // With `count = -1` the first packet is dropped with p_b itself: X is uniform on 1 to 20.
    let mean = (0..20_000u64)
        .map(|seed| {
            let config = Red { weight_log2: 0, ..Red::default() };
            let mut gateway = Gateway::new(config, Stream::new(seed, "queue"), 8_000_000_000);
            (1..)
                .find(|_| gateway.admit(Time::ZERO, holding(10), &packet(Ecn::NotCapable)) == DROP)
                .expect("a packet is dropped")
        })
        .sum::<u64>() as f64
        / 2e4;
    assert!((mean - 10.5).abs() < 0.15, "{mean}");
}

#[test]
fn red_count_restarts_below_min() {
    // p_b = 1/2 at 10 packets: the packet after a drop would be dropped with certainty, p_a = p_b / (1 - p_b).
    let mut gateway = standing(Red { max_probability: Share(Share::WHOLE), ..Red::default() });
    let chosen = |gateway: &mut Gateway, packets| {
        gateway.admit(Time::ZERO, holding(packets), &packet(Ecn::NotCapable)) == DROP
    };
    let drops = (0..1000).filter(|_| !chosen(&mut gateway, 4) && chosen(&mut gateway, 10)).count();
    assert!((400..600).contains(&drops), "{drops}");
    let drops = gaps(&mut gateway, 10, 1000).len();
    assert!(drops >= 999, "{drops}");
}

#[test]
fn red_drops_none_below_min_and_all_above_the_drop_zone() {
    assert_eq!(gaps(&mut standing(Red::default()), 4, 1000), NONE);
    assert_eq!(gaps(&mut standing(Red::default()), 30, 100), [1; 100]);
    assert_eq!(gaps(&mut standing(Red { gentle: false, ..Red::default() }), 15, 100), [1; 100]);
}

#[test]
fn red_marks_replace_random_drops_but_not_forced_drops() {
    let config = Red { ecn: true, ..Red::default() };
    let mut gateway = standing(config.clone());
    let verdicts: Vec<_> =
        (0..1000).map(|_| gateway.admit(Time::ZERO, holding(10), &packet(Ecn::Capable))).collect();
    let marks = verdicts.iter().filter(|verdict| **verdict == Verdict::Accept { mark: true }).count();
    assert!((80..120).contains(&marks), "{marks}");
    assert_eq!(marks + verdicts.iter().filter(|verdict| **verdict == ACCEPT).count(), 1000);
    assert_eq!(gateway.admit(Time::ZERO, holding(30), &packet(Ecn::Capable)), DROP);
    let mut gateway = standing(config);
    let dropped = gaps(&mut gateway, 10, 1000).len();
    assert!((80..120).contains(&dropped), "packets without ECN are dropped: {dropped}");
}

#[test]
fn red_counts_bytes_if_the_thresholds_are_bytes() {
    let config = Red { min: BufferSize::Bytes(5000), max: BufferSize::Bytes(15_000), ..Red::default() };
    let mut gateway = standing(config);
    gateway.update(Time::ZERO, holding(10));
    assert_eq!(gateway.zone(), Zone::Between((1 << 32) / 20));
}

#[test]
fn red_drops_if_the_queue_is_full() {
    let config = Red { limit: QueueLimit::packets(3), ..Red::default() };
    let mut gateway = gateway(config);
    assert_eq!(gateway.admit(Time::ZERO, holding(2), &packet(Ecn::Capable)), ACCEPT);
    assert_eq!(gateway.admit(Time::ZERO, holding(3), &packet(Ecn::Capable)), Verdict::Drop(Cause::Full));
}
