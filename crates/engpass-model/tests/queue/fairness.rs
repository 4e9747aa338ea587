//! Fairness of deficit round robin and FlowQueue-CoDel.

use engpass_model::queue::{Discipline, Ecn, Packet, Queue, Scheduler};
use engpass_model::random::Stream;
use engpass_model::time::Time;
use proptest::prelude::*;
use serde_json::json;

use crate::port::{on_the_line, queue, run};

fn scheduler(queue: &Queue) -> Box<dyn Scheduler> {
    match queue.build(Stream::new(1, "queue"), 1_000_000_000) {
        Discipline::Service(scheduler) => scheduler,
        Discipline::Arrival(_) => panic!("the queue kind is a scheduler"),
    }
}

fn packet(id: u32, flow: u32, bytes: u32) -> Packet {
    Packet { id, bytes, flow, priority: 0, ecn: Ecn::NotCapable }
}

/// Cumulative bytes sent per flow after each dequeue, while all flows have packets waiting.
fn shares(queue: &Queue, flows: &[Vec<u32>]) -> Vec<Vec<u64>> {
    let mut scheduler = scheduler(queue);
    let mut lost = Vec::new();
    for (flow, packets) in flows.iter().enumerate() {
        for bytes in packets {
            scheduler.enqueue(Time::ZERO, packet(0, flow as u32, *bytes), &mut lost);
        }
    }
    let mut waiting: Vec<usize> = flows.iter().map(Vec::len).collect();
    let mut sent = vec![vec![0; flows.len()]];
    while waiting.iter().all(|waiting| *waiting > 0) {
        let packet = scheduler.dequeue(Time::ZERO, &mut lost).expect("every flow has packets");
        waiting[packet.flow as usize] -= 1;
        let mut next = sent.last().expect("the list has at least one entry").clone();
        next[packet.flow as usize] += u64::from(packet.bytes);
        sent.push(next);
    }
    assert!(lost.is_empty());
    sent
}

const MAX: u64 = 1518;

proptest! {
    #![proptest_config(engpass_cases::cases(64))]

    /// Shreedhar and Varghese, lemma 2 and theorem 2. Flows that always have packets differ, from the start, by at most a quantum and a
    /// largest packet. Over any interval they differ by at most a quantum and two largest packets.
    #[test]
    fn drr_is_fair_within_a_quantum_and_two_packets(
        flows in prop::collection::vec(prop::collection::vec(64u32..=1518, 20..60), 2..6), quantum in 100u64..4000,
    ) {
        let queue = queue(json!({ "drr": { "quantum": format!("{quantum} B") } }));
        let sent = shares(&queue, &flows);
        for (i, before) in sent.iter().enumerate() {
            for after in &sent[i..] {
                let gained: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
                let apart = gained.iter().max().unwrap() - gained.iter().min().unwrap();
                let bound = quantum + if i == 0 { MAX } else { 2 * MAX };
                prop_assert!(apart <= bound, "{} apart, quantum {}", apart, quantum);
            }
        }
    }

    /// The bound over any interval also holds for FQ-CoDel, whose credits may become negative (RFC 8290 section 4.2).
    #[test]
    fn fq_codel_is_fair_within_a_quantum_and_two_packets(
        flows in prop::collection::vec(prop::collection::vec(64u32..=1518, 20..60), 2..6), quantum in 100u64..4000,
    ) {
        let queue = queue(json!({ "fq-codel": { "quantum": format!("{quantum} B") } }));
        let sent = shares(&queue, &flows);
        for (i, before) in sent.iter().enumerate() {
            for after in &sent[i..] {
                let gained: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
                let apart = gained.iter().max().unwrap() - gained.iter().min().unwrap();
                prop_assert!(apart <= quantum + 2 * MAX, "{} apart, quantum {}", apart, quantum);
            }
        }
    }
}

/// Eight flows fill a line of 100 Mbit/s; a ninth sends 100 B every 5 ms. Under FQ-CoDel its packet waits only for the one in transmission
/// (RFC 8290: a sparse flow); under drop tail it waits for the whole queue.
#[test]
fn fq_codel_sparse_flow_waits_for_at_most_one_packet() {
    const LINE: u64 = 100_000_000;
    const US: u64 = 1_000_000;
    let mut arrivals: Vec<(Time, Packet)> = Vec::new();
    for i in 0..20_000u32 {
        // 1500 B every 100 us are 120 Mbit/s.
        arrivals.push((Time(u64::from(i) * 100 * US), packet(0, i % 8, 1500)));
        if i % 50 == 25 {
            arrivals.push((Time(u64::from(i) * 100 * US + 50 * US), packet(0, 8, 100)));
        }
    }
    for (id, (_, packet)) in arrivals.iter_mut().enumerate() {
        packet.id = id as u32;
    }
    let waits = |queue: &Queue| {
        let record = run(queue, LINE, &arrivals);
        let sparse = record.sent.iter().filter(|(_, packet)| packet.flow == 8);
        let waits: Vec<u64> =
            sparse.map(|(start, packet)| start.0 - arrivals[packet.id as usize].0.0).collect();
        (waits.len(), waits.into_iter().max().expect("packets of the sparse flow were sent"))
    };
    let one = on_the_line(LINE, &packet(0, 0, 1500)).0;
    let (sent, longest) = waits(&queue(json!({ "fq-codel": {} })));
    assert_eq!(sent, 400, "no packet is lost");
    assert!(longest <= one, "waited {longest} ps, a packet takes {one} ps");
    let (_, longest) = waits(&queue(json!({ "drop-tail": { "limit": "500 packets" } })));
    assert!(longest > 400 * one);
}

/// Over 500 drops, the intervals between CoDel's drops are `interval / sqrt(count)`, to within the spacing of the dequeues.
#[test]
fn codel_drop_intervals_fall_with_the_square_root_of_count() {
    const US: u64 = 1_000_000;
    let mut scheduler = scheduler(&queue(json!({ "codel": { "limit": "1000000 packets" } })));
    let mut lost = Vec::new();
    // 100 packets are queued from the start, so each waits at least 100 x 100 us. Then one arrives for each that leaves.
    for id in 0..100 {
        scheduler.enqueue(Time::ZERO, packet(id, 0, 1000), &mut lost);
    }
    let mut drops = Vec::new();
    let mut now = 0;
    while drops.len() < 500 {
        now += 100 * US;
        scheduler.dequeue(Time(now), &mut lost).expect("the queue holds many packets");
        let gone = lost.len() + 1;
        drops.extend(lost.drain(..).map(|_| now));
        (0..gone).for_each(|_| scheduler.enqueue(Time(now), packet(0, 0, 1000), &mut lost));
    }
    let mut due = drops[0] as f64;
    for (count, drop) in (1..).zip(&drops[1..]) {
        due += 1e11 / f64::from(count).sqrt();
        let late = *drop as f64 - due;
        assert!((-1000.0..=100e6 + 1000.0).contains(&late), "drop {count} is {late} ps late");
    }
}
