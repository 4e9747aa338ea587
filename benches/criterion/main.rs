//! The hot loops. `cargo bench -p engpass-bench --features hot` runs them; `make bench` also compares them with the targets.
//!
//! The throughput of a loop counts its items (a cell or packet over a link, a cell, an event); the figures are ns per item.

mod cells;
mod processor;
mod runs;
mod segments;

use criterion::{criterion_group, criterion_main};

criterion_group! {
    name = hot;
    config = processor::config();
    targets = runs::lines, runs::kyoto, runs::ports, runs::generators, runs::packets, runs::booking, cells::gcra, cells::discard,
        segments::endpoints
}
criterion_main!(hot);
