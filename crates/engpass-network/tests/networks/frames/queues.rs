//! Random queue disciplines, so small that they lose and mark.

use engpass_model::queue::{CoDel, DropTail, Drr, FqCoDel, Priority, Queue, Red, TokenBucket};
use engpass_model::unit::{BufferSize, Duration, QueueLimit, Rate, Share, Size};
use proptest::option::weighted;
use proptest::prelude::*;

fn limit() -> impl Strategy<Value = QueueLimit> {
    let (packets, bytes) = (|| prop_oneof![1u64..=4, 4u64..=60], || 100u64..=40_000);
    prop_oneof![
        3 => packets().prop_map(QueueLimit::packets),
        1 => bytes().prop_map(QueueLimit::bytes),
        1 => (packets(), bytes()).prop_map(|(packets, bytes)| QueueLimit { packets, bytes }),
    ]
}

/// Two times of CoDel, so short that they matter within milliseconds.
fn times() -> impl Strategy<Value = (Duration, Duration)> {
    (1_000_000u64..=2_000_000_000, 1u64..=50)
        .prop_map(|(target, times)| (Duration(target), Duration(target * (times + 1))))
}

pub(super) fn queue() -> impl Strategy<Value = Queue> {
    let drop_tail = (limit(), weighted(0.3, 0u64..=59)).prop_map(|(limit, threshold)| {
        let threshold = threshold.filter(|_| limit.packets != u64::MAX).map(|at| at % limit.packets);
        Queue::DropTail(DropTail { limit, ecn_threshold: threshold.map(BufferSize::Packets) })
    });
    let red = ((0u64..=5, 1u64..=10, any::<bool>()), 1u64..=1000, 0u8..=5, any::<[bool; 2]>(), limit())
        .prop_map(|((min, more, bytes), probability, weight_log2, [gentle, ecn], limit)| {
            let of = |packets: u64| match bytes {
                true => BufferSize::Bytes(packets * 500),
                false => BufferSize::Packets(packets),
            };
            let max_probability = Share(probability * (Share::WHOLE / 1000));
            let (min, max) = (of(min), of(min + more));
            let mean_packet = Size(500);
            Queue::Red(Red { min, max, max_probability, weight_log2, gentle, ecn, mean_packet, limit })
        });
    let codel = (times(), any::<bool>(), limit())
        .prop_map(|((target, interval), ecn, limit)| Queue::CoDel(CoDel { target, interval, ecn, limit }));
    let fq_codel = (64u64..=3000, times(), any::<bool>(), weighted(0.3, 1u32..=4), limit()).prop_map(
        |(quantum, (target, interval), ecn, queues, limit)| {
            Queue::FqCoDel(FqCoDel { quantum: Size(quantum), target, interval, ecn, queues, limit })
        },
    );
    let priority = limit().prop_map(|limit| Queue::Priority(Priority { limit }));
    let drr = (64u64..=3000, limit())
        .prop_map(|(quantum, limit)| Queue::Drr(Drr { quantum: Size(quantum), limit }));
    let burst = prop_oneof![64u64..=1000, 1000u64..=20_000];
    let bucket = (50_000u64..=20_000_000, burst, limit()).prop_map(|(rate, burst, limit)| {
        Queue::TokenBucket(TokenBucket { rate: Rate(rate), burst: Size(burst), limit })
    });
    prop_oneof![3 => drop_tail, 2 => red, 1 => codel, 1 => fq_codel, 1 => priority, 1 => drr, 1 => bucket]
}
