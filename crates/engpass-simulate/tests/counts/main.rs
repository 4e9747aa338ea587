//! The work of a run, counted and not timed: events, heap allocations, heap bytes.
//!
//! The counts are exact and repeatable, and `table.txt` holds all of them. They may fall, never rise: `UPDATE=1 cargo test -p engpass-simulate --test counts`
//! records lower counts. It does not record higher ones; with a good reason for a rise, edit the row by hand and explain it in the commit.

mod estimate;
mod long;
mod table;
mod workloads;

// Workloads and counters of the benchmarks, included as files because their crate depends on this one.
#[path = "../../../../benches/src/dumbbell.rs"]
#[allow(dead_code, unreachable_pub, reason = "the benchmarks use all of it")]
mod dumbbell;
#[path = "../../../../benches/src/heap.rs"]
#[allow(dead_code, unreachable_pub, reason = "the benchmarks use all of it")]
mod heap;
#[path = "../../../../benches/src/line.rs"]
#[allow(dead_code, unreachable_pub, reason = "the benchmarks use all of it")]
mod line;
#[path = "../../../../benches/src/phones.rs"]
#[allow(dead_code, unreachable_pub, reason = "the benchmarks use all of it")]
mod phones;

use engpass_simulate::{Network, SimOutcome};
use engpass_testbed::{Point, Source, load};

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

fn point(text: &str, variant: &str, overrides: &[(&str, &str)]) -> Point {
    let source = Source { name: "workload.toml".into(), text: text.into() };
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let campaign = load(&source, &overrides, None).expect("the workload is valid");
    campaign.point(variant, &[]).expect("the workload has a base point")
}

/// Runs a point. Returns its outcome and the number of heap allocations during the run; building the network and
/// computing the outcome do not count.
fn run(point: &Point) -> (SimOutcome, u64) {
    let mut network =
        Network::new(&point.testbed, &point.topology, 1).expect("the model supports the workload");
    let before = heap::asked();
    network.run(&|| false).expect("no interrupt is requested");
    let asked = heap::asked() - before;
    let outcome = network.outcome(&point.testbed, &point.topology).expect("the ledger balances");
    (outcome, asked)
}

/// The counts of all workloads equal those of `table.txt`.
#[test]
#[cfg_attr(feature = "event-log", ignore = "the log takes memory")]
fn workload_counts_equal_the_stored_table() {
    table::check("counts", &workloads::counts());
}

/// Heap bytes per flow do not exceed those of `table.txt`.
#[test]
#[cfg_attr(feature = "event-log", ignore = "the log takes memory")]
fn heap_bytes_per_flow_do_not_exceed_the_stored_table() {
    table::check("memory", &workloads::memory());
}
