//! The queue of events in a hold model: the earliest is taken, and put back later.

use criterion::{BenchmarkId, Criterion, Throughput};
use engpass_model::random::Stream;

// The queue is no part of the public interface; this is its very file.
#[path = "../../crates/engpass-network/src/simulate/event.rs"]
#[allow(dead_code, unused_imports, reason = "the engine and its tests use all of it")]
mod event;

use crate::processor::ProcessorTime;
use event::{Event, Events};

/// Times that an event is taken and put back, in one measurement.
const HOLDS: u64 = 20_000;
/// Mean time until an event happens again, in picoseconds.
const MEAN: u64 = 1_000_000_000;

pub(crate) fn hold(criterion: &mut Criterion<ProcessorTime>) {
    let mut group = criterion.benchmark_group("event queue");
    group.throughput(Throughput::Elements(HOLDS));
    for pending in [8_u32, 1_000, 100_000] {
        let mut random = Stream::new(1, "hold");
        let mut events = Events::default();
        for flow in 0..pending {
            events.push(random.exponential(MEAN), flow as usize, Event::Ready(flow));
        }
        group.bench_function(BenchmarkId::from_parameter(pending), |bencher| {
            bencher.iter(|| {
                for _ in 0..HOLDS {
                    let (at, event) = events.pop_until(u64::MAX).expect("as many as before");
                    let Event::Ready(flow) = event else { unreachable!("nothing else was put there") };
                    events.push(at + random.exponential(MEAN), flow as usize, event);
                }
            });
        });
    }
    group.finish();
}
