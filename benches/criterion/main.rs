//! The hot loops. `cargo bench -p engpass-bench` runs them; `make bench` does, and puts them beside the targets.
//!
//! What a loop handles (cell over a link, event) is its throughput: the figures are ns per cell or per event.

mod events;
mod processor;
mod runs;

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};

use processor::ProcessorTime;

fn config() -> Criterion<ProcessorTime> {
    Criterion::default()
        .with_measurement(ProcessorTime)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = hot;
    config = config();
    targets = runs::lines, runs::kyoto, runs::ports, runs::generators, events::hold
}
criterion_main!(hot);
