//! Random queue disciplines, so small that they drop and mark.

use engpass_model::queue::{CoDel, DropTail, Drr, FqCoDel, Priority, Queue, Red, TokenBucket};
use engpass_model::unit::{BufferSize, Duration, QueueLimit, Rate, Share, Size};
use proptest::option::weighted;
use proptest::prelude::*;

fn limit(most: u64) -> impl Strategy<Value = QueueLimit> {
    let (packets, bytes) = (|| prop_oneof![1u64..=4, 4u64..=most], || 100u64..=40_000);
    prop_oneof![
        3 => packets().prop_map(QueueLimit::packets),
        1 => bytes().prop_map(QueueLimit::bytes),
        1 => (packets(), bytes()).prop_map(|(packets, bytes)| QueueLimit { packets, bytes }),
    ]
}

/// CoDel's target, so short that it matters within milliseconds.
pub(super) fn target() -> impl Strategy<Value = u64> {
    1_000_000u64..=2_000_000_000
}

/// Returns a discipline. Quanta and bursts are of `amount` bytes, limits of at most `most` packets. CoDel's target is `target` picoseconds, and its interval a
/// multiple of that.
pub(super) fn queue(
    amount: BoxedStrategy<u64>,
    most: u64,
    target: BoxedStrategy<u64>,
) -> impl Strategy<Value = Queue> {
    let times = || {
        (target.clone(), 2u64..=51).prop_map(|(target, times)| (Duration(target), Duration(target * times)))
    };
    let limit = || limit(most);
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
    let fq_codel = (amount.clone(), times(), any::<bool>(), weighted(0.3, 1u32..=4), limit()).prop_map(
        |(quantum, (target, interval), ecn, queues, limit)| {
            Queue::FqCoDel(FqCoDel { quantum: Size(quantum), target, interval, ecn, queues, limit })
        },
    );
    let priority = limit().prop_map(|limit| Queue::Priority(Priority { limit }));
    let drr = (amount.clone(), limit())
        .prop_map(|(quantum, limit)| Queue::Drr(Drr { quantum: Size(quantum), limit }));
    let burst = prop_oneof![1 => amount, 1 => 64u64..=20_000];
    let bucket = (50_000u64..=20_000_000, burst, limit()).prop_map(|(rate, burst, limit)| {
        Queue::TokenBucket(TokenBucket { rate: Rate(rate), burst: Size(burst), limit })
    });
    prop_oneof![3 => drop_tail, 2 => red, 1 => codel, 1 => fq_codel, 1 => priority, 1 => drr, 2 => bucket]
}
