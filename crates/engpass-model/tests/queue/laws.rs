//! Properties of every queue discipline, checked with random arrivals.

use std::collections::BTreeMap;

use engpass_model::queue::{Cause, Ecn, Packet, Queue};
use engpass_model::random::Stream;
use engpass_model::time::Time;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::port::{on_the_line, queue, run, run_with};

/// 1000 ps per byte.
const LINE: u64 = 8_000_000_000;

/// Small queues, at least one of every kind, with the maximum number of packets and bytes that each can hold.
fn queues() -> Vec<(Value, (u64, u64))> {
    const ANY: u64 = u64::MAX;
    let chosen = vec![
        (json!({ "drop-tail": { "limit": "10 packets" } }), (10, ANY)),
        (json!({ "drop-tail": { "limit": "9 packets, 6 kB", "ecn_threshold": "2 kB" } }), (9, 6000)),
        (red(json!("2 packets"), json!("6 packets"), true, false), (12, ANY)),
        (red(json!("2 packets"), json!("6 packets"), false, true), (12, ANY)),
        (red(json!("1 kB"), json!("5 kB"), true, true), (12, ANY)),
        (codel("codel", json!({ "limit": "20 packets" }), false), (20, ANY)),
        (codel("codel", json!({ "limit": "12 kB" }), true), (ANY, 12_000)),
        (codel("fq-codel", json!({ "limit": "20 packets" }), false), (20, ANY)),
        (codel("fq-codel", json!({ "limit": "12 kB", "quantum": "300 B" }), true), (ANY, 12_000)),
        (codel("fq-codel", json!({ "limit": "20 packets", "queues": 3 }), false), (20, ANY)),
        (json!({ "priority": { "limit": "3 packets" } }), (24, ANY)),
        (json!({ "drr": { "limit": "20 packets" } }), (20, ANY)),
        (json!({ "drr": { "limit": "8 kB", "quantum": "100 B" } }), (ANY, 8000)),
        (
            json!({ "token-bucket": { "rate": "3 Gbit/s", "burst": "1500 B", "limit": "20 packets" } }),
            (20, ANY),
        ),
    ];
    let is_chosen = |kind: &str| chosen.iter().any(|(queue, _)| queue.get(kind).is_some());
    let others = Queue::KINDS.iter().filter(|kind| !is_chosen(kind));
    let others: Vec<_> =
        others.map(|kind| (json!({ *kind: { "limit": "10 packets" } }), (10, ANY))).collect();
    chosen.into_iter().chain(others).collect()
}

fn red(min: Value, max: Value, gentle: bool, ecn: bool) -> Value {
    let weight_log2 = 3;
    json!({ "red": { "min": min, "max": max, "gentle": gentle, "ecn": ecn, "weight_log2": weight_log2, "limit": "12 packets" } })
}

fn codel(kind: &str, mut keys: Value, ecn: bool) -> Value {
    keys["target"] = json!("1 us");
    keys["interval"] = json!("4 us");
    keys["ecn"] = json!(ecn);
    json!({ kind: keys })
}

prop_compose! {
    /// Packets whose mean rate is about the line rate.
    fn arrivals()(
        packets in prop::collection::vec((0u64..1_600_000, 64u32..1518, 0u32..6, 0u8..8, 0u8..3), 1..100),
        together in 1u64..20,
    ) -> Vec<(Time, Packet)> {
        let mut now = 0;
        packets.into_iter().enumerate().map(|(id, (gap, bytes, flow, priority, ecn))| {
            // Bursts: the gaps of `together` packets are merged into one.
            now += if (id as u64).is_multiple_of(together) { gap * together } else { 0 };
            let ecn = [Ecn::NotCapable, Ecn::Capable, Ecn::Marked][usize::from(ecn)];
            (Time(now), Packet { id: id as u32, bytes, flow, priority, ecn })
        }).collect()
    }
}

/// Drop causes that a queue discipline may report.
fn causes(queue: &Queue) -> &'static [Cause] {
    match queue {
        Queue::Red(_) => &[Cause::Full, Cause::Early],
        Queue::CoDel(_) | Queue::FqCoDel(_) => &[Cause::Full, Cause::CoDel],
        Queue::TokenBucket(_) => &[Cause::Full, Cause::LongerThanBurst],
        _ => &[Cause::Full],
    }
}

proptest! {
    #![proptest_config(engpass_cases::cases(100))]

    /// Every packet is sent or dropped exactly once; flows keep their order; limits hold; only ECN-capable packets are marked; the same
    /// arrivals give the same result. (`port` checks the backlog and the contract of the trait at every step.)
    #[test]
    fn queue_sends_or_drops_each_packet_once_within_its_limits(arrivals in arrivals()) {
        for (text, (packets, bytes)) in queues() {
            let queue = queue(text);
            let record = run(&queue, LINE, &arrivals);
            prop_assert_eq!(&record, &run(&queue, LINE, &arrivals));

            let mut fate: Vec<u32> = record.sent.iter().map(|(_, packet)| packet.id).collect();
            fate.extend(record.lost.iter().map(|(_, packet, _)| packet.id));
            fate.sort_unstable();
            prop_assert_eq!(fate, (0..arrivals.len() as u32).collect::<Vec<_>>());

            for (_, sent) in &record.sent {
                let came = arrivals[sent.id as usize].1;
                prop_assert_eq!(*sent, Packet { ecn: sent.ecn, ..came });
                prop_assert!(sent.ecn == came.ecn || (came.takes_marks() && sent.ecn == Ecn::Marked));
            }
            for (_, _, cause) in &record.lost {
                prop_assert!(causes(&queue).contains(cause));
            }

            let by_priority = matches!(queue, Queue::Priority(_));
            let mut last: BTreeMap<(u32, u8), u32> = BTreeMap::new();
            for (_, sent) in &record.sent {
                let key = (sent.flow, if by_priority { sent.priority } else { 0 });
                prop_assert!(last.insert(key, sent.id).is_none_or(|before| before < sent.id), "packets of a flow stay in order");
            }

            // The port holds the packets that have arrived and have not been sent or dropped. In a scheduler, a packet counts as sent from
            // the begin of its transmission.
            let holds_the_sent = matches!(queue, Queue::DropTail(_) | Queue::Red(_));
            for (now, _) in &arrivals {
                let gone = |packet: &Packet| {
                    let sent = record.sent.iter().any(|(start, sent)| {
                        let end = if holds_the_sent { *start + on_the_line(LINE, sent) } else { *start };
                        sent.id == packet.id && end <= *now
                    });
                    sent || record.lost.iter().any(|(at, lost, _)| lost.id == packet.id && at <= now)
                };
                let held = arrivals.iter().filter(|(at, packet)| at <= now && !gone(packet));
                let (count, sum) = held.fold((0, 0), |(count, sum), (_, packet)| {
                    (count + 1, sum + u64::from(packet.bytes))
                });
                prop_assert!(count <= packets && sum <= bytes, "{:?} holds {} packets, {} B", &queue, count, sum);
            }
        }
    }

    /// The line is never idle while a packet waits, except with a token bucket.
    #[test]
    fn queue_without_shaping_never_idles_while_a_packet_waits(arrivals in arrivals()) {
        for (text, _) in queues() {
            let queue = queue(text);
            if matches!(queue, Queue::TokenBucket(_)) {
                continue;
            }
            let mut free = Time::ZERO;
            for (start, packet) in run(&queue, LINE, &arrivals).sent {
                // The transmission starts when the line becomes free, or at an arrival at an empty port.
                prop_assert!(start == free || (start > free && arrivals.iter().any(|(at, _)| *at == start)));
                prop_assert!(start >= arrivals[packet.id as usize].0);
                if start > free {
                    prop_assert!(start == arrivals[packet.id as usize].0, "a packet at an idle port leaves at once");
                }
                free = start + on_the_line(LINE, &packet);
            }
        }
    }

    /// No packet is sent while one of a higher priority waits.
    #[test]
    fn priority_queue_never_sends_before_a_higher_class(arrivals in arrivals()) {
        let record = run(&queue(json!({ "priority": { "limit": "1000 packets" } })), LINE, &arrivals);
        for (start, sent) in &record.sent {
            for (came, other) in arrivals.iter().filter(|(_, other)| other.priority > sent.priority) {
                // If the line becomes free at the time of an arrival, it takes the next packet before the arrival.
                prop_assert!(came >= start || record.start(other.id).is_some_and(|other| other < *start));
            }
        }
    }
}

/// Only disciplines that draw depend on the seed.
#[test]
fn only_queues_that_draw_depend_on_the_seed() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut differ: BTreeMap<String, bool> = BTreeMap::new();
    for _ in 0..100 {
        let arrivals = arrivals().new_tree(&mut runner).expect("the strategy generates arrivals").current();
        for (text, _) in queues() {
            let queue = queue(text.clone());
            let [one, other] =
                [1, 2].map(|seed| run_with(&queue, Stream::new(seed, "queue"), LINE, &arrivals));
            *differ.entry(text.to_string()).or_default() |= one != other;
        }
    }
    for (text, _) in queues() {
        assert_eq!(differ[&text.to_string()], queue(text.clone()).config().draws(), "{text}");
    }
}

/// The random arrivals above cause full queues, random drops, CoDel drops and marks.
#[test]
fn random_arrivals_cause_marks_and_every_drop_cause() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<(String, Cause), usize> = BTreeMap::new();
    let mut marked: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..100 {
        let arrivals = arrivals().new_tree(&mut runner).expect("the strategy generates arrivals").current();
        for (text, _) in queues() {
            let record = run(&queue(text.clone()), LINE, &arrivals);
            for (_, _, cause) in record.lost {
                *seen.entry((text.to_string(), cause)).or_default() += 1;
            }
            let marks = record.sent.iter().filter(|(_, sent)| sent.ecn != arrivals[sent.id as usize].1.ecn);
            *marked.entry(text.to_string()).or_default() += marks.count();
        }
    }
    for (text, _) in queues() {
        let queue = queue(text.clone());
        for cause in causes(&queue) {
            let often = seen.get(&(text.to_string(), *cause)).copied().unwrap_or(0);
            assert!(often >= 10, "{text}: {cause:?} only {often} times");
        }
        let marks = queue.config().marks();
        assert_eq!(marked[&text.to_string()] >= 20, marks, "{text}: {} marks", marked[&text.to_string()]);
    }
}
