//! Whole runs in `simulate` and in the oracle.

use criterion::{BenchmarkId, Criterion, Throughput};
use engpass_bench::measure::{Which, measure};
use engpass_bench::workload::{GENERATOR, KYOTO, PORT, line, point};
use engpass_testbed::Point;

use crate::processor::ProcessorTime;

/// Seed of every run: each does the same.
const SEED: u64 = 1;

fn add(criterion: &mut Criterion<ProcessorTime>, group: &str, name: &str, point: &Point, which: Which) {
    let mut group = criterion.benchmark_group(group);
    group.throughput(Throughput::Elements(measure(point, which, SEED).seen.cell_hops()));
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter(|| measure(point, which, SEED));
    });
    group.finish();
}

/// The contended line, and a piece of it in the oracle.
pub(crate) fn lines(criterion: &mut Criterion<ProcessorTime>) {
    let text = line(3);
    add(
        criterion,
        "line of 3 hops",
        "simulate, 1 s",
        &point(&text, "base", &[("run.duration", "1 s")]),
        Which::Simulate,
    );
    add(
        criterion,
        "line of 3 hops",
        "oracle, 10 ms",
        &point(&text, "base", &[("run.duration", "10 ms")]),
        Which::Oracle,
    );
}

/// A point of the Kyoto study, 9 kB, in both disciplines of the port.
pub(crate) fn kyoto(criterion: &mut Criterion<ProcessorTime>) {
    for (name, variant, schedule) in [
        ("free", "free", "priority"),
        ("congested, priority", "congested", "priority"),
        ("congested, fifo", "congested", "fifo"),
        ("shaped to 16 %, priority", "shaped-16", "priority"),
    ] {
        let overrides = [
            ("traffic.stream.message", "9 kB"),
            ("switch.atomis5.schedule", schedule),
            ("run.duration", "1 s"),
        ];
        add(criterion, "Kyoto 9 kB, 1 s", name, &point(KYOTO, variant, &overrides), Which::Simulate);
    }
}

/// One port that two bursty streams share, by discipline.
pub(crate) fn ports(criterion: &mut Criterion<ProcessorTime>) {
    for schedule in ["fifo", "priority"] {
        let overrides = [("switch.switch.schedule", schedule), ("run.duration", "1 s")];
        add(criterion, "one port, 1 s", schedule, &point(PORT, "base", &overrides), Which::Simulate);
    }
}

/// A stream that nobody shares a link with.
pub(crate) fn generators(criterion: &mut Criterion<ProcessorTime>) {
    let point = point(GENERATOR, "base", &[]);
    add(criterion, "a generator alone", "5 links, 10 s", &point, Which::Simulate);
}
