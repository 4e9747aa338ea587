//! Compares event queues: the engine's calendar queue, a binary and a 4-ary heap, and a radix heap. All of them order by time, then by position. This
//! is checked before the measurements; for the calendar queue, which does not return positions, by times and payloads.
//!
//! The workload comes from networks: their enqueued and dequeued events are logged, and each queue replays the log. In addition there is the hold
//! model, in which the earliest event is taken and inserted again at a later time.

mod processor;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use dary_heap::QuaternaryHeap;
use engpass_bench::dumbbell::{OC3, SACK, dumbbell};
use engpass_bench::line::frames;
use engpass_bench::phones::phones;
use engpass_bench::workload::point;
use engpass_model::random::Stream;
use engpass_simulate::Network;
use radix_heap::RadixHeapMap;

// The queue is not part of the public interface, so this includes its file. The log is disabled here.
#[path = "../../crates/engpass-simulate/src/event_queue.rs"]
#[allow(dead_code, unused_imports, unexpected_cfgs, reason = "the engine and its tests use all of it")]
mod event;

use event::{Event, EventQueue};
use processor::ProcessorTime;

/// Marks a dequeued event in a log.
const TAKEN: u128 = u128::MAX;
/// Number of take-and-insert steps in one measurement.
const HOLDS: usize = 20_000;
/// Mean time until an event is due again, in picoseconds.
const MEAN: u64 = 1_000_000_000;

/// The bits of a key with the position in the testbed. The engine's queue does not return them, so the check ignores them there.
const POSITION: u128 = 0x1fff_ffff << 32;

/// A queue of keys: the upper half is the time in picoseconds, the lower half orders events of one instant.
trait Queue: Default {
    /// The returned form of a key.
    type Taken;
    const NAME: &'static str;
    /// The bits of a key that it returns.
    const SEEN: u128 = u128::MAX;
    fn enter(&mut self, key: u128);
    /// Removes and returns the earliest event.
    fn take(&mut self) -> Option<Self::Taken>;
    /// Returns the key of a taken event.
    fn key(taken: Self::Taken) -> u128;
}

impl Queue for EventQueue {
    type Taken = (u64, Event);
    const NAME: &'static str = "calendar (the engine's)";
    const SEEN: u128 = !POSITION;

    fn enter(&mut self, key: u128) {
        Self::enter(self, key);
    }

    fn take(&mut self) -> Option<(u64, Event)> {
        self.pop_until(u64::MAX)
    }

    fn key((at, event): (u64, Event)) -> u128 {
        Self::key(at, 0, event)
    }
}

/// Implements `Queue` for a heap that returns whole keys.
macro_rules! heap {
    ($heap:ident, $name:literal) => {
        impl Queue for $heap<Reverse<u128>> {
            type Taken = u128;
            const NAME: &'static str = $name;

            fn enter(&mut self, key: u128) {
                self.push(Reverse(key));
            }

            fn take(&mut self) -> Option<u128> {
                Some(self.pop()?.0)
            }

            fn key(taken: u128) -> u128 {
                taken
            }
        }
    };
}

heap!(BinaryHeap, "binary heap");
heap!(QuaternaryHeap, "4-ary heap");

/// A radix heap, which is monotone and does not order equal keys. It therefore holds times only. Events before its next time are in a binary heap,
/// which orders the events of one instant.
#[derive(Default)]
struct Radix {
    later: RadixHeapMap<Reverse<u64>, u64>,
    soon: BinaryHeap<Reverse<u128>>,
}

impl Radix {
    /// Returns the next time of `later`; nothing earlier can be inserted there.
    fn next(&self) -> Option<u64> {
        self.later.top().map(|Reverse(at)| at)
    }
}

impl Queue for Radix {
    type Taken = u128;
    const NAME: &'static str = "radix heap";

    fn enter(&mut self, key: u128) {
        let (at, low) = ((key >> 64) as u64, key as u64);
        if self.next().is_some_and(|next| at < next) {
            self.soon.push(Reverse(key));
        } else {
            self.later.push(Reverse(at), low);
        }
    }

    fn take(&mut self) -> Option<u128> {
        while !self.later.is_empty()
            && self.soon.peek().is_none_or(|Reverse(key)| self.next() <= Some((key >> 64) as u64))
        {
            let (Reverse(at), low) = self.later.pop()?;
            self.soon.push(Reverse(u128::from(at) << 64 | u128::from(low)));
            self.later.constrain();
        }
        Some(self.soon.pop()?.0)
    }

    fn key(taken: u128) -> u128 {
        taken
    }
}

/// Returns the log of a network's event queue.
fn log(text: &str, duration: &str) -> Vec<u128> {
    let point = point(text, "base", &[("run.duration", duration)]);
    let mut network =
        Network::new(&point.testbed, &point.topology, 1).expect("the model supports the workload");
    network.run(&|| false).expect("no interrupt is requested");
    network.event_log().to_vec()
}

/// Replays a log with another queue.
fn replay<Q: Queue>(log: &[u128], mut taken: impl FnMut(Q::Taken)) {
    let mut queue = Q::default();
    for key in log {
        if *key == TAKEN {
            taken(queue.take().expect("the queue holds an event for every take"));
        } else {
            queue.enter(*key);
        }
    }
}

/// Returns the taken keys in order, masked by `seen`.
fn order<Q: Queue>(log: &[u128], seen: u128) -> Vec<u128> {
    let mut order = Vec::new();
    replay::<Q>(log, |taken| order.push(Q::key(taken) & seen));
    order
}

/// Checks that a queue returns keys in the order of a heap of whole keys.
fn check<Q: Queue>(log: &[u128]) {
    assert!(
        order::<Q>(log, Q::SEEN) == order::<BinaryHeap<_>>(log, Q::SEEN),
        "the {} returns events in another order",
        Q::NAME
    );
}

fn compare<Q: Queue>(group: &mut BenchmarkGroup<'_, ProcessorTime>, log: &[u128]) {
    check::<Q>(log);
    group
        .bench_function(Q::NAME, |bencher| bencher.iter(|| replay::<Q>(log, |taken| drop(black_box(taken)))));
}

/// Events at few instants, whose order of positions differs from that of their payloads.
fn ties() -> Vec<u128> {
    let mut random = Stream::new(1, "ties");
    let mut log = Vec::new();
    for instant in 0..1000_u128 {
        for _ in 0..20 {
            let low = u128::from(random.below(1 << 29)) << 32 | u128::from(random.below(1 << 29));
            log.push((instant / 2 + 1) << 80 | low);
        }
        log.extend([TAKEN; 15]);
    }
    log
}

fn hold<Q: Queue>(group: &mut BenchmarkGroup<'_, ProcessorTime>, pending: usize) {
    let mut random = Stream::new(1, "hold");
    let mut queue = Q::default();
    let key = |at: u64, low: usize| u128::from(at) << 64 | low as u128;
    (0..pending).for_each(|low| queue.enter(key(random.exponential(MEAN), low)));
    let waits: Vec<u64> = (0..HOLDS).map(|_| random.exponential(MEAN)).collect();
    let mut last = 0;
    group.bench_function(Q::NAME, |bencher| {
        bencher.iter(|| {
            for wait in &waits {
                let taken = Q::key(queue.take().expect("the queue holds a constant number of events"));
                assert!(taken >= last, "the {} returns events in another order", Q::NAME);
                last = taken;
                queue.enter(taken + (u128::from(*wait) << 64));
            }
        });
    });
}

fn all(criterion: &mut Criterion<ProcessorTime>) {
    let ties = ties();
    check::<EventQueue>(&ties);
    check::<QuaternaryHeap<Reverse<u128>>>(&ties);
    check::<Radix>(&ties);
    let logs = [
        ("TCP dumbbell of 10 flows, 10 s", log(&dumbbell(10, OC3, SACK), "10 s")),
        ("TCP dumbbell of 100 flows, 10 s", log(&dumbbell(100, OC3, SACK), "10 s")),
        ("TCP dumbbell of 10,000 flows at 10 Gbit/s, 0.1 s", log(&dumbbell(10_000, 10_000, SACK), "100 ms")),
        ("UDP over 3 hops of routers, 1 s", log(&frames(3), "1 s")),
        ("500 phones in step, 1 s", log(&phones(500), "1 s")),
    ];
    for (name, log) in &logs {
        let mut group = criterion.benchmark_group(format!("event queue, {name}"));
        group.throughput(Throughput::Elements(log.iter().filter(|key| **key == TAKEN).count() as u64));
        compare::<EventQueue>(&mut group, log);
        compare::<BinaryHeap<Reverse<u128>>>(&mut group, log);
        compare::<QuaternaryHeap<Reverse<u128>>>(&mut group, log);
        compare::<Radix>(&mut group, log);
    }
    for pending in [8, 1_000, 100_000] {
        let mut group = criterion.benchmark_group(format!("event queue, hold model with {pending} pending"));
        group.throughput(Throughput::Elements(HOLDS as u64));
        hold::<EventQueue>(&mut group, pending);
        hold::<BinaryHeap<Reverse<u128>>>(&mut group, pending);
        hold::<QuaternaryHeap<Reverse<u128>>>(&mut group, pending);
        hold::<Radix>(&mut group, pending);
    }
}

criterion_group! {
    name = queues;
    config = processor::config();
    targets = all
}
criterion_main!(queues);
