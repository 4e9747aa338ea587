//! A counting allocator on top of the system's heap, with counters per thread.
//!
//! Install it with `#[global_allocator] static HEAP: heap::Counting = heap::Counting;`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Allocates from the system and counts.
pub struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

/// Number of allocations of this thread so far.
pub fn asked() -> u64 {
    ASKED.get()
}

/// Bytes allocated less bytes freed by this thread. Only differences of two values are meaningful, because blocks that move between threads may make
/// it negative.
pub fn live() -> i64 {
    LIVE.get()
}

/// Largest value of [`live`] since [`begin`].
pub fn most() -> i64 {
    MOST.get()
}

/// Starts the measurement of [`most`].
pub fn begin() {
    MOST.set(LIVE.get());
}

fn count(asked: u64, bytes: i64) {
    // A terminating thread may allocate after its counters are gone. Nothing reads them then.
    let _ = ASKED.try_with(|count| count.set(count.get() + asked));
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        MOST.try_with(|most| most.set(most.get().max(live.get())))
    });
}

fn bytes(size: usize) -> i64 {
    i64::try_from(size).expect("a block size fits in 63 bits")
}

#[allow(unsafe_code, reason = "a global allocator cannot be had otherwise; it only counts and hands on")]
// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, bytes(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, -bytes(layout.size()));
        // SAFETY: `block` came from `System` with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, bytes(size) - bytes(layout.size()));
        // SAFETY: `block` came from `System` with this layout; the caller keeps the contract of `realloc`.
        unsafe { System.realloc(block, layout, size) }
    }
}
