use super::*;
use crate::queue::Ecn;

fn build(config: FqCoDel) -> Box<dyn Scheduler> {
    match config.build(Stream::new(1, "queue"), 1) {
        Discipline::Service(queue) => queue,
        Discipline::Arrival(_) => unreachable!("the queue kind is a scheduler"),
    }
}

/// Enqueues packets given as (flow, bytes) at `now`; their ids are their positions. Returns the ids of dropped packets.
fn fill(queue: &mut dyn Scheduler, now: u64, packets: &[(u32, u32)]) -> Vec<u32> {
    let mut lost = Vec::new();
    for (id, (flow, bytes)) in packets.iter().enumerate() {
        let packet = Packet { id: id as u32, bytes: *bytes, flow: *flow, priority: 0, ecn: Ecn::NotCapable };
        queue.enqueue(Time(now), packet, &mut lost);
    }
    lost.into_iter().map(|(packet, _)| packet.id).collect()
}

fn flows(queue: &mut dyn Scheduler, now: u64, packets: usize) -> Vec<u32> {
    let mut lost = Vec::new();
    std::iter::from_fn(|| queue.dequeue(Time(now), &mut lost))
        .take(packets)
        .map(|packet| packet.flow)
        .collect()
}

#[test]
fn fq_codel_round_robin_matches_hand_calculation() {
    // Quantum 1514: after 1500 B a queue has 14 credits left and may send once more; then it has -1486.
    let mut queue = build(FqCoDel::default());
    let packets: Vec<_> = (0..10).map(|i| (i % 2, 1500)).collect();
    fill(&mut *queue, 0, &packets);
    // First turns as new queues: 0 0 1 1. Both are then old and have 28 credits: 0 1 0 1 (28 - 1500 + 1514 = 42, 56 …).
    assert_eq!(flows(&mut *queue, 0, 10), [0, 0, 1, 1, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn fq_codel_serves_a_sparse_flow_first() {
    let mut queue = build(FqCoDel::default());
    let busy: Vec<_> = (0..20).map(|i| (i % 2, 1500)).collect();
    fill(&mut *queue, 0, &busy);
    assert_eq!(flows(&mut *queue, 0, 6), [0, 0, 1, 1, 0, 1]);
    fill(&mut *queue, 0, &[(2, 100)]);
    assert_eq!(flows(&mut *queue, 0, 1), [2]);
    // In its first turn, queue 2 is found empty and moves to the end of the old queues, behind 1 and 0. Queue 1 has no credits left and
    // moves behind queue 2.
    assert_eq!(flows(&mut *queue, 0, 1), [0]);
    // A second packet of flow 2 therefore goes before flow 1 because of its turn, not because its queue is new.
    fill(&mut *queue, 0, &[(0, 1500), (2, 100)]);
    assert_eq!(flows(&mut *queue, 0, 3), [2, 1, 0]);
    // An old queue that is found empty becomes inactive. Its next packet makes it a new queue.
    assert_eq!(flows(&mut *queue, 0, 1), [1]);
    fill(&mut *queue, 0, &[(2, 100)]);
    assert_eq!(flows(&mut *queue, 0, 2), [2, 0]);
}

#[test]
fn fq_codel_overflow_drops_from_head_of_the_longest_queue() {
    let mut queue = build(FqCoDel { limit: QueueLimit::packets(9), ..FqCoDel::default() });
    let mut packets = vec![(0, 100); 4];
    packets.extend([(1, 1500); 3]);
    packets.extend([(0, 100); 3]);
    // At the tenth packet, queue 0 has 7 packets of 100 B, and queue 1 has 3 of 1500 B and drops its two oldest.
    assert_eq!(fill(&mut *queue, 0, &packets), [4, 5]);
    assert_eq!(queue.backlog(), Backlog { bytes: 7 * 100 + 1500, packets: 8 });
    let mut queue = build(FqCoDel { limit: QueueLimit::packets(200), ..FqCoDel::default() });
    assert_eq!(fill(&mut *queue, 0, &vec![(0, 100); 201]), (0..64).collect::<Vec<_>>());
    // With a limit in bytes, drops repeat until the limit holds.
    let mut queue = build(FqCoDel { limit: QueueLimit::bytes(1000), ..FqCoDel::default() });
    assert_eq!(fill(&mut *queue, 0, &[(0, 500), (1, 300), (2, 1200)]), [2]);
}

#[test]
fn fq_codel_runs_codel_on_each_queue_separately() {
    const MS: u64 = 1_000_000_000;
    let mut queue = build(FqCoDel::default());
    fill(&mut *queue, 0, &[(0, 1000); 400]);
    let mut lost = Vec::new();
    let mut sent = Vec::new();
    for ms in 10..200 {
        // Flow 1 sends one packet every 10 ms and finds its queue empty.
        if ms % 10 == 0 {
            fill(&mut *queue, ms * MS, &[(1, 1000)]);
        }
        sent.extend(queue.dequeue(Time(ms * MS), &mut lost).map(|packet| (ms, packet.flow)));
    }
    assert!(lost.iter().all(|(packet, cause)| (packet.flow, *cause) == (0, Cause::CoDel)));
    // Flow 0 is above the target from 10 ms, so it may drop from 110 ms on; the dequeue at 110 ms serves flow 1.
    assert_eq!(lost.len(), 1, "the next drop is due at 211 ms");
    let waits = sent.iter().filter(|(_, flow)| *flow == 1).map(|(ms, _)| ms % 10);
    // Quantum 1514: flow 0 may send one more packet first.
    assert!(waits.clone().count() == 19 && waits.max() <= Some(2), "{sent:?}");
}

#[test]
fn fq_codel_flows_share_queues_by_a_seeded_hash() {
    let mut queue = build(FqCoDel { queues: Some(1), ..FqCoDel::default() });
    fill(&mut *queue, 0, &[(0, 100), (1, 100), (0, 100), (7, 100)]);
    assert_eq!(flows(&mut *queue, 0, 10), [0, 1, 0, 7]);
    let hash = Hash { queues: 64, perturbation: Stream::new(3, "queue").bits() };
    let mut used = [0; 64];
    (0..6400).for_each(|flow| used[hash.queue(flow)] += 1);
    assert!(used.iter().all(|flows| (50..160).contains(flows)), "{used:?}");
    let other = Hash { queues: 64, perturbation: Stream::new(4, "queue").bits() };
    assert!(
        (0..100).any(|flow| hash.queue(flow) != other.queue(flow)),
        "another seed maps flows to other queues"
    );
}
