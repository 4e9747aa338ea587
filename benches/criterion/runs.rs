//! Whole runs in `simulate` and in the oracle.

use criterion::{BenchmarkId, Criterion, Throughput};
use engpass_bench::dumbbell::{OC3, SACK, dumbbell};
use engpass_bench::line::{frames, line};
use engpass_bench::measure::{Which, measure};
use engpass_bench::workload::{GENERATOR, KYOTO, PORT, point};
use engpass_testbed::Point;

use crate::processor::ProcessorTime;

/// Seed of every run, so that all do the same.
const SEED: u64 = 1;

fn add(criterion: &mut Criterion<ProcessorTime>, group: &str, name: &str, point: &Point, which: Which) {
    let mut group = criterion.benchmark_group(group);
    group.throughput(Throughput::Elements(measure(point, which, SEED).seen.hops()));
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter(|| measure(point, which, SEED));
    });
    group.finish();
}

/// The contended line, and a shorter run of it in the oracle.
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

/// A point of the Kyoto study, 9 kB, with both schedules of the port.
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

/// Frames: a line of routers, and TCP.
pub(crate) fn packets(criterion: &mut Criterion<ProcessorTime>) {
    let short = [("run.duration", "1 s")];
    let routers = point(&frames(3), "base", &short);
    add(criterion, "frames, 1 s", "UDP over 3 hops of routers", &routers, Which::Simulate);
    let tcp = point(&dumbbell(10, OC3, SACK), "base", &short);
    add(criterion, "frames, 1 s", "TCP dumbbell of 10 flows", &tcp, Which::Simulate);
}

/// Cost of the ledger: runs with and without it.
pub(crate) fn booking(criterion: &mut Criterion<ProcessorTime>) {
    let short = [("run.duration", "1 s")];
    let overrides =
        [("traffic.stream.message", "9 kB"), ("switch.atomis5.schedule", "fifo"), ("run.duration", "1 s")];
    for (workload, point) in [
        ("Kyoto 9 kB, fifo", point(KYOTO, "congested", &overrides)),
        ("TCP dumbbell of 10 flows", point(&dumbbell(10, OC3, SACK), "base", &short)),
    ] {
        for (books, which) in [("with", Which::Simulate), ("without", Which::Unbooked)] {
            add(criterion, &format!("ledger, {workload}"), books, &point, which);
        }
    }
}

/// The merge of two bursty streams in one port, by schedule.
pub(crate) fn ports(criterion: &mut Criterion<ProcessorTime>) {
    for schedule in ["fifo", "priority"] {
        let overrides = [("switch.switch.schedule", schedule), ("run.duration", "1 s")];
        add(criterion, "merge in one port, 1 s", schedule, &point(PORT, "base", &overrides), Which::Simulate);
    }
}

/// A stream on links that no other stream uses.
pub(crate) fn generators(criterion: &mut Criterion<ProcessorTime>) {
    let point = point(GENERATOR, "base", &[]);
    add(criterion, "a generator alone", "5 links, 10 s", &point, Which::Simulate);
}
