//! How much work a run is, counted and not timed: events, and blocks asked of the heap.
//!
//! The counts are exact and repeatable. They may fall, never rise: whoever lowers one writes the new number here.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use engpass_network::simulate::{Network, SimOutcome};
use engpass_testbed::{Point, Source, load};

const KYOTO: &str = include_str!("../../../benches/testbeds/kyoto.toml");
const THREE_HOPS: &str = include_str!("../../../benches/testbeds/three-hops.toml");

/// The system's heap, which counts what this thread asks of it.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends asks once more when its own counter is gone; nobody reads it then.
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
}

#[allow(unsafe_code, reason = "a global allocator cannot be had otherwise; it only counts and hands on")]
// SAFETY: every call is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System` with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: `block` came from `System` with this layout; the caller keeps the contract of `realloc`.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

fn point(text: &str, variant: &str, overrides: &[(&str, &str)]) -> Point {
    let source = Source { name: "workload.toml".into(), text: text.into() };
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let campaign = load(&source, &overrides, None).expect("the workload is right");
    campaign.point(variant, &[]).expect("the workload is one point")
}

/// Run it; the blocks that the heap was asked for while it ran, without those of building it and of its outcome.
fn run(point: &Point) -> (SimOutcome, u64) {
    let mut network = Network::new(&point.testbed, &point.topology, 1).expect("the workload is carried");
    let before = ASKED.get();
    network.run(&|| false).expect("nobody interrupts it");
    let asked = ASKED.get() - before;
    let outcome = network.outcome(&point.testbed, &point.topology).expect("the books balance");
    (outcome, asked)
}

/// What a run does between two instants. Late in a run that is its steady state.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    /// What the first flow of the file sent: datagrams of a stream, cells of a generator.
    sent: u64,
    /// Events handled.
    events: u64,
    /// Times that the heap was asked for a block.
    asked: u64,
}

fn counts(text: &str, variant: &str, overrides: &[(&str, &str)], [from, to]: [&str; 2]) -> Counts {
    let until = |duration| {
        let overrides = [overrides, &[("run.duration", duration)]].concat();
        let (outcome, asked) = run(&point(text, variant, &overrides));
        Counts { sent: outcome.flows[0].1.sent_datagrams, events: outcome.events, asked }
    };
    let (first, whole) = (until(from), until(to));
    Counts {
        sent: whole.sent - first.sent,
        events: whole.events - first.events,
        asked: whole.asked - first.asked,
    }
}

/// For a datagram of one frame four events: the message, the item on the CPU, the handing to the NIC, the arrival of
/// the frame; whatever becomes of its 190 cells. Every further frame takes three, and one that waits for room one more.
#[test]
fn a_frame_takes_four_events_and_no_heap() {
    for (variant, schedule, message, sent, events, asked) in [
        ("free", "priority", "9 kB", 932, 4 * 932, 0),
        ("congested", "priority", "9 kB", 932, 4 * 932, 0),
        ("congested", "fifo", "9 kB", 932, 4 * 932, 0),
        ("shaped-16", "priority", "9 kB", 598, 5 * 598, 0),
        // One queue was never as long before.
        ("congested", "priority", "64 kB", 132, (4 + 6 * 3) * 132, 1),
    ] {
        let overrides = [("traffic.stream.message", message), ("switch.atomis5.schedule", schedule)];
        let counted = counts(KYOTO, variant, &overrides, ["2 s", "4 s"]);
        assert_eq!(counted, Counts { sent, events, asked }, "{variant}, {schedule}, {message}");
    }
}

/// Generators have no events at all, however many cells of theirs contend for a port.
#[test]
fn three_contended_hops_take_no_event_and_hardly_a_block() {
    let counted = counts(THREE_HOPS, "base", &[], ["1 s", "2 s"]);
    // Some queues were never as long before, and some lists of pieces.
    assert_eq!(counted, Counts { sent: 233_839, events: 0, asked: 10 });
}

/// Until everything has grown as far as it will: as much as the queues hold, however long the run.
#[test]
fn the_heap_is_asked_for_what_the_queues_hold() {
    for (text, overrides, asked) in [
        (KYOTO, &[("traffic.stream.message", "9 kB"), ("run.duration", "2 s")][..], 28),
        (THREE_HOPS, &[("run.duration", "1 s")][..], 223),
    ] {
        let variant = if text == KYOTO { "congested" } else { "base" };
        assert_eq!(run(&point(text, variant, overrides)).1, asked, "{variant}");
    }
}
