//! Classifies the arriving datagrams of a stream: new, duplicate, reordered, or so late that this cannot be told.

use serde_json::{Value, json};

/// Distance behind the highest sequence number up to which a duplicate can be recognised.
const WINDOW: u64 = 1 << 16;

/// Counts the sequence numbers of one stream. Only measured datagrams enter the counters.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    /// One above the highest number seen (`NextExp` of RFC 4737 section 3.3).
    next: u64,
    seen: Box<[u64]>,
    received: u64,
    duplicate: u64,
    reordered: u64,
    late: u64,
    range: Option<(u64, u64)>,
}

impl Sequence {
    pub(crate) fn new() -> Self {
        Self {
            next: 0,
            seen: vec![0; (WINDOW / 64) as usize].into_boxed_slice(),
            received: 0,
            duplicate: 0,
            reordered: 0,
            late: 0,
            range: None,
        }
    }

    #[inline]
    fn bit(number: u64) -> (usize, u64) {
        ((number % WINDOW / 64) as usize, 1 << (number % 64))
    }

    /// Records the arrival of a sequence number. Returns whether it is new.
    #[inline]
    pub(crate) fn take(&mut self, number: u64, measured: bool) -> bool {
        let counted = u64::from(measured);
        let (word, bit) = Self::bit(number);
        if number == self.next {
            // The most frequent case: the number follows the highest one. The bit may still be set from one window ago.
            self.seen[word] |= bit;
            self.next += 1;
        } else if number > self.next {
            self.skip_to(number);
            self.seen[word] |= bit;
            self.next = number + 1;
        } else if self.next - number > WINDOW {
            self.late += counted;
            return false;
        } else if self.seen[word] & bit != 0 {
            self.duplicate += counted;
            return false;
        } else {
            self.seen[word] |= bit;
            self.reordered += counted;
        }
        if measured {
            self.received += 1;
            let (first, last) = self.range.unwrap_or((number, number));
            self.range = Some((first.min(number), last.max(number)));
        }
        true
    }

    /// Clears the bits of the numbers before `number`, which were set one window ago.
    #[cold]
    fn skip_to(&mut self, number: u64) {
        if number - self.next >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for missing in self.next..number {
            let (word, bit) = Self::bit(missing);
            self.seen[word] &= !bit;
        }
    }

    /// Returns the number of distinct measured datagrams that arrived.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of measured datagrams missing between the first and the last that arrived.
    pub(crate) fn missing(&self) -> u64 {
        self.range.map_or(0, |(first, last)| (last - first + 1).saturating_sub(self.received + self.late))
    }

    /// Returns the counters as in results.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "received": self.received,
            "duplicate": self.duplicate,
            "reordered": self.reordered,
            "late": self.late,
            "missing": self.missing(),
            "first": self.range.map(|(first, _)| first),
            "highest": self.range.map(|(_, last)| last),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn counts(sequence: &Sequence) -> [u64; 5] {
        [sequence.received, sequence.duplicate, sequence.reordered, sequence.late, sequence.missing()]
    }

    #[test]
    fn sequence_counts_match_hand_calculation() {
        let mut sequence = Sequence::new();
        for number in [0, 1, 3, 2, 2, 6] {
            sequence.take(number, true);
        }
        // 0, 1, 3, 2, 6 arrive; 2 arrives twice and after 3; 4 and 5 are missing.
        assert_eq!(counts(&sequence), [5, 1, 1, 0, 2]);
        sequence.take(6 + WINDOW, true);
        assert!(!sequence.take(5, true));
        assert_eq!(counts(&sequence)[..4], [6, 1, 1, 1]);
    }

    #[test]
    fn sequence_ring_forgets_numbers_of_a_window_ago() {
        let mut sequence = Sequence::new();
        (0..WINDOW).for_each(|number| assert!(sequence.take(number, true)));
        assert!(sequence.take(WINDOW + 5, true));
        assert!(sequence.take(WINDOW + 2, true), "a slot of the previous window is free again");
        assert!(!sequence.take(WINDOW + 2, true));
        assert_eq!(counts(&sequence), [WINDOW + 2, 1, 1, 0, 4]);
    }

    proptest! {
        /// Compares the ring with a set that remembers all numbers, for numbers within one window.
        #[test]
        fn sequence_ring_equals_a_set(steps in prop::collection::vec((-40_i64..60, any::<bool>()), 1..400)) {
            let mut sequence = Sequence::new();
            let (mut seen, mut highest) = (BTreeSet::new(), None::<u64>);
            let [mut received, mut duplicate, mut reordered] = [0; 3];
            let mut at = 1000_u64;
            for (step, measured) in steps {
                at = at.saturating_add_signed(step);
                let fresh = seen.insert(at);
                prop_assert_eq!(sequence.take(at, measured), fresh);
                if measured {
                    if !fresh { duplicate += 1 } else {
                        received += 1;
                        reordered += u64::from(highest.is_some_and(|highest| at < highest));
                    }
                }
                highest = highest.max(Some(at));
            }
            prop_assert_eq!(&counts(&sequence)[..4], &[received, duplicate, reordered, 0]);
        }
    }
}
