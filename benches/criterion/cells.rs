//! Work per cell: the generic cell rate algorithm, and discard policies.

use criterion::{BenchmarkId, Criterion, Throughput};
use engpass_model::discard::{CellView, Discard, QueueView};
use engpass_model::random::Stream;
use engpass_model::shape::gcra::VirtualScheduling;
use engpass_model::time::{Pace, Time};

use crate::processor::ProcessorTime;

/// Cells in one measurement.
const CELLS: usize = 20_000;
/// Capacity of the queue in cells.
const CAPACITY: u64 = 512;

/// Cells that arrive at random, at the contracted rate on average: about half of them do not conform.
pub(crate) fn gcra(criterion: &mut Criterion<ProcessorTime>) {
    // Time of a cell at the payload rate of OC-3c.
    let increment = Pace::of_bits(424, 149_760_000);
    let mut random = Stream::new(1, "gcra");
    let mut now = 0;
    let arrivals: Vec<Time> = (0..CELLS)
        .map(|_| {
            now += random.exponential(increment.after(1));
            Time(now)
        })
        .collect();
    let mut group = criterion.benchmark_group("GCRA");
    group.throughput(Throughput::Elements(CELLS as u64));
    group.bench_function("virtual scheduling", |bencher| {
        bencher.iter(|| {
            let mut policer = VirtualScheduling::new(increment, Time(0));
            arrivals.iter().filter(|at| policer.conforms(**at)).count()
        });
    });
    group.finish();
}

/// Cells of 16 circuits, in PDUs of 32 cells on average, at a nearly full queue.
pub(crate) fn discard(criterion: &mut Criterion<ProcessorTime>) {
    let mut random = Stream::new(1, "discard");
    let met: Vec<(QueueView, CellView)> = (0..CELLS)
        .map(|_| {
            let queued = CAPACITY * 3 / 4 + random.below(CAPACITY / 4 + 1);
            let own = random.below(queued / 8);
            let queue = QueueView { queued, capacity: CAPACITY, limit: CAPACITY, own, active: 16 };
            (queue, CellView { vc: random.below(16) as u32, last: random.below(32) == 0 })
        })
        .collect();
    let mut group = criterion.benchmark_group("discard policy");
    group.throughput(Throughput::Elements(CELLS as u64));
    for kind in Discard::KINDS {
        let mut config = serde_json::Deserializer::from_str("{}");
        let discard =
            Discard::read(kind, &mut config).expect("the kind is known").expect("all settings have defaults");
        group.bench_function(BenchmarkId::from_parameter(kind), |bencher| {
            bencher.iter(|| {
                let mut policy = discard.config().policy(CAPACITY, Stream::new(1, "bench"));
                met.iter().filter(|(queue, cell)| policy.admits(*queue, *cell)).count()
            });
        });
    }
    group.finish();
}
