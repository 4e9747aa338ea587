use super::*;
use proptest::prelude::*;

const NONE: [u64; 0] = [];
/// A millisecond.
const MS: u64 = 1_000_000_000;

fn build(config: CoDel) -> Controlled {
    Controlled {
        law: Law::new(config.target, config.interval, config.ecn),
        limit: config.limit,
        queue: Fifo::default(),
        control: Control::default(),
        longest: 0,
    }
}

fn packet(id: u32, ecn: Ecn) -> Packet {
    Packet { id, bytes: 1000, flow: 0, priority: 0, ecn }
}

/// Serves one packet per millisecond from `from` until `end` ms; each packet has waited `wait` ms. Returns the milliseconds of drops and of
/// marks.
fn serve(queue: &mut Controlled, ecn: Ecn, wait: u64, from: u64, end: u64) -> (Vec<u64>, Vec<u64>) {
    let (mut drops, mut marks, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    queue.longest = 1000;
    for ms in from..end {
        queue.queue = Fifo::default();
        (0..5).for_each(|id| queue.queue.push(Time((ms - wait) * MS), packet(id, ecn)));
        let sent = queue.dequeue(Time(ms * MS), &mut lost).expect("the queue holds a packet");
        if sent.ecn == Ecn::Marked {
            marks.push(ms);
        }
        drops.extend(lost.drain(..).map(|_| ms));
    }
    (drops, marks)
}

proptest! {
    #[test]
    fn codel_control_law_is_exact_to_a_picosecond(interval in 1u64..86_400_000_000_000_000, count in 1u64..1 << 40) {
        let law = Law { target: 1, interval, ecn: false };
        let step = u128::from(law.next(Time::ZERO, count).0);
        let square = u128::from(interval) * u128::from(interval);
        // step <= interval / sqrt(count) < step + 1, squared to avoid division.
        prop_assert!(step * step * u128::from(count) <= square);
        prop_assert!((step + 1).pow(2).checked_mul(u128::from(count)).is_none_or(|above| above > square));
    }
}

#[test]
fn by_hand() {
    // Every packet has waited 20 ms. The first is above the target at 100 ms, so drops may start at 200 ms. The next are due 100 ms /
    // sqrt(count) apart: 300, 370.71, 428.45, 478.45, 523.17, 563.99, 601.79, 637.14 … Each happens at the next dequeue.
    let mut queue = build(CoDel::default());
    let (drops, marks) = serve(&mut queue, Ecn::Capable, 20, 100, 640);
    assert_eq!(drops, [200, 300, 371, 429, 479, 524, 564, 602, 638]);
    assert_eq!(marks, NONE);
}

#[test]
fn codel_marks_ecn_packets_when_drops_are_due() {
    let mut queue = build(CoDel { ecn: true, ..CoDel::default() });
    let (drops, marks) = serve(&mut queue, Ecn::Capable, 20, 100, 640);
    assert_eq!(drops, NONE);
    assert_eq!(marks, [200, 300, 371, 429, 479, 524, 564, 602, 638]);
    let mut queue = build(CoDel { ecn: true, ..CoDel::default() });
    assert_eq!(serve(&mut queue, Ecn::NotCapable, 20, 100, 310).0, [200, 300]);
}

#[test]
fn codel_drops_at_the_target_delay_and_not_below() {
    assert_eq!(serve(&mut build(CoDel::default()), Ecn::NotCapable, 5, 100, 310).0, [200, 300]);
    assert_eq!(serve(&mut build(CoDel::default()), Ecn::NotCapable, 4, 100, 2000).0, NONE);
}

#[test]
fn codel_stops_dropping_after_one_delay_below_target() {
    let mut queue = build(CoDel::default());
    assert_eq!(serve(&mut queue, Ecn::NotCapable, 20, 100, 250).0, [200]);
    // One packet waited less than the target, so the interval starts again.
    assert_eq!(serve(&mut queue, Ecn::NotCapable, 4, 250, 251).0, NONE);
    assert_eq!(serve(&mut queue, Ecn::NotCapable, 20, 251, 380).0, [351]);
}

#[test]
fn codel_resumes_its_drop_rate_after_a_short_pause() {
    let mut queue = build(CoDel::default());
    // After 9 drops, `count` is 9 and `last_count` is 1.
    serve(&mut queue, Ecn::NotCapable, 20, 100, 640);
    assert_eq!((queue.control.count, queue.control.last_count), (9, 1));
    let pause = |queue: &mut Controlled, from| serve(queue, Ecn::NotCapable, 1, from, from + 1);
    pause(&mut queue, 640);
    // Above the target from 641 ms, so the first drop is at 741 ms with count = 9 - 1 = 8. The next are 35.36 ms (count 8) and 33.33 ms
    // (count 9) later.
    assert_eq!(serve(&mut queue, Ecn::NotCapable, 20, 641, 812).0, [741, 777, 810]);
    // More than 16 intervals after `drop_next`, the old count is no longer used.
    pause(&mut queue, 812);
    assert_eq!(serve(&mut queue, Ecn::NotCapable, 20, 2500, 2702).0, [2600, 2700]);
}

#[test]
fn codel_never_drops_the_last_packet() {
    let mut queue = build(CoDel::default());
    let mut lost = Vec::new();
    for ms in 0..1000 {
        // Two packets wait long, but behind the head only 1000 B are left, which is not more than MAXPACKET.
        for id in 0..2 {
            queue.enqueue(Time(ms * 500 * MS), packet(id, Ecn::NotCapable), &mut lost);
        }
        assert!(queue.dequeue(Time((ms * 500 + 300) * MS), &mut lost).is_some());
        assert!(queue.dequeue(Time((ms * 500 + 400) * MS), &mut lost).is_some());
        assert_eq!(queue.dequeue(Time((ms * 500 + 400) * MS), &mut lost), None);
    }
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn codel_makes_all_drops_that_are_due_at_one_dequeue() {
    // The queue is served only once in 400 ms, so one dequeue makes all the drops that are due.
    let mut queue = build(CoDel::default());
    let mut lost = Vec::new();
    for id in 0..20 {
        queue.enqueue(Time::ZERO, packet(id, Ecn::NotCapable), &mut lost);
    }
    let mut at = |ms: u64| {
        let sent = queue.dequeue(Time(ms * MS), &mut lost).expect("the queue holds a packet").id;
        (sent, lost.drain(..).map(|(packet, _)| packet.id).collect::<Vec<_>>())
    };
    assert_eq!(at(100), (0, vec![]));
    assert_eq!(at(200), (2, vec![1]));
    // Drops are due at 300, 370.7, 428.5, 478.5, 523.2, 564.0 and 601.8 ms.
    assert_eq!(at(600), (9, vec![3, 4, 5, 6, 7, 8]));
    assert_eq!(at(601), (10, vec![]));
    assert_eq!(at(602), (12, vec![11]));
}
