//! The data that a receiver holds above a hole.

use std::collections::VecDeque;

/// A range of bytes received above a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Order of arrival: the range with the largest stamp is the most recent.
    pub(super) stamp: u64,
}

/// Ranges in sequence order, each with a hole before it.
///
/// They are in two halves, split where a hole was last filled. Segments that fill holes usually arrive near that point, so that adding one costs the
/// same with tens of thousands of ranges.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    low: VecDeque<Range>,
    high: VecDeque<Range>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.low.is_empty() && self.high.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.low.len() + self.high.len()
    }

    pub(super) fn last(&self) -> Option<&Range> {
        if self.high.is_empty() { self.low.back() } else { self.high.back() }
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Range> {
        if self.high.is_empty() { self.low.back_mut() } else { self.high.back_mut() }
    }

    /// Returns the first range that ends after `seq`.
    pub(super) fn behind(&self, seq: u64) -> Option<&Range> {
        let half = if self.low.back().is_some_and(|last| last.end > seq) { &self.low } else { &self.high };
        half.get(half.partition_point(|range| range.end <= seq))
    }

    /// Removes and returns the first range, if it begins at `next` or before.
    pub(super) fn take_reached(&mut self, next: u64) -> Option<Range> {
        let half = if self.low.is_empty() { &mut self.high } else { &mut self.low };
        if half.front().is_some_and(|first| first.start <= next) { half.pop_front() } else { None }
    }

    /// Adds a range and merges it with the ranges that it touches. Returns how many of its bytes are new.
    pub(super) fn add(&mut self, range: Range) -> u64 {
        if self.last_mut().is_none_or(|last| last.end < range.start) {
            self.high.push_back(range);
            return range.end - range.start;
        }
        while let Some(last) = self.low.back().copied().filter(|last| last.end >= range.start) {
            self.low.pop_back();
            self.high.push_front(last);
        }
        while let Some(first) = self.high.front().copied().filter(|first| first.end < range.start) {
            self.high.pop_front();
            self.low.push_back(first);
        }
        let (mut whole, mut held) = (range, 0);
        while let Some(met) = self.high.front().copied().filter(|first| first.start <= range.end) {
            self.high.pop_front();
            held += met.end.min(range.end).saturating_sub(met.start.max(range.start));
            (whole.start, whole.end) = (whole.start.min(met.start), whole.end.max(met.end));
        }
        self.low.push_back(whole);
        range.end - range.start - held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn out_of_order_ranges_hold_exactly_the_received_bytes(pieces in prop::collection::vec((0u64..60, 1u64..6, any::<bool>()), 1..60)) {
            let (mut ranges, mut bytes, mut next) = (Ranges::default(), [false; 80], 0);
            for (stamp, (start, length, reaches)) in (1..).zip(pieces) {
                if reaches {
                    // Fill the hole before the first range.
                    next = (next..80).find(|seq| bytes[*seq as usize]).unwrap_or(next);
                    while let Some(range) = ranges.take_reached(next) {
                        prop_assert!(range.start == next && (next..range.end).all(|seq| bytes[seq as usize]));
                        bytes[range.start as usize..range.end as usize].fill(false);
                        next = range.end;
                    }
                }
                let start = (next + 1 + start).min(74);
                if start <= next {
                    break;
                }
                let end = start + length;
                let fresh = (start..end).filter(|seq| !bytes[*seq as usize]).count();
                bytes[start as usize..end as usize].fill(true);
                prop_assert_eq!(ranges.add(Range { start, end, stamp }), fresh as u64);
                let all: Vec<_> = ranges.low.iter().chain(&ranges.high).copied().collect();
                prop_assert_eq!(all.len(), ranges.len());
                prop_assert!(all.windows(2).all(|two| two[0].end < two[1].start));
                let held: Vec<_> = all.iter().flat_map(|range| range.start..range.end).collect();
                let wanted: Vec<_> = (0..80).filter(|seq| bytes[*seq as usize]).collect();
                prop_assert_eq!(held, wanted);
                for seq in 0..80 {
                    prop_assert_eq!(ranges.behind(seq), all.iter().find(|range| range.end > seq));
                }
                prop_assert_eq!(ranges.behind(start).map(|range| range.stamp), Some(stamp));
            }
        }
    }
}
