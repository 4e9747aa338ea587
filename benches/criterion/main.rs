//! The hot loops. `cargo bench -p engpass-bench --features hot` runs them; `make bench` does, and puts them beside the targets.
//!
//! What a loop handles (a cell or packet over a link, a cell, an event) is its throughput: the figures are ns for one.

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
