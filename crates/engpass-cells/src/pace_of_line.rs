//! Cells that arrive at the pace of the line, exactly one slot apart.

use engpass_model::time::{Pace, Stepper};

/// Returns true if some cell of a train at the pace of the line arrives before the cell ahead of it has left, because instants are rounded up to a picosecond.
///
/// The train has `count` cells; the first one arrives `arrives.1` slots after the instant `arrives.0`. Until then `left.1` cells of the busy period that began
/// at `left.0` have left, and from then on one cell leaves for each that arrives.
pub(super) fn meets_cell_ahead(slot: Pace, arrives: (u64, u64), left: (u64, u64), count: u64) -> bool {
    let (arrival, later) = slot.rounded_after(arrives.1);
    let (end, earlier) = slot.rounded_after(left.1);
    // Arrivals and departures are both whole slots apart, but rounded differently, by at most a picosecond. Their order can change only if an arrival coincides
    // with a departure and was rounded up by more.
    if arrives.0 + arrival != left.0 + end || later <= earlier {
        return false;
    }
    let den = slot.ratio().1;
    let mut slots = Stepper::new(slot);
    slots.seek(0);
    // The sequence of roundings repeats after as many slots as a picosecond has parts.
    (1..count.min(den)).any(|_| {
        slots.step();
        let rounding = slots.rounding();
        earlier + rounding < den && later + rounding >= den
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn meeting_is_found_as_cell_by_cell(
            slot in (50u128..400, 1u128..9),
            n in 0u64..30,
            left in 0u64..30,
            more in 0u64..3,
            count in 1u64..40,
        ) {
            let slot = Pace::new(slot.0, slot.1);
            // The first cell arrives `more` picoseconds after the cell ahead of it has left.
            let base = 10_000 + slot.after(left) + more - slot.after(n);
            let meets = (1..count).any(|k| base + slot.after(n + k) < 10_000 + slot.after(left + k));
            prop_assert_eq!(meets_cell_ahead(slot, (base, n), (10_000, left), count), meets);
        }
    }
}
