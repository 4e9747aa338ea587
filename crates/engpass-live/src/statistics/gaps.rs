//! Measures how evenly datagrams leave or arrive: gaps, bursts, and the fullest millisecond.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::Distribution;
use crate::time::MILLISECOND;

/// Largest number of groups of datagrams that are remembered to find the fullest millisecond.
const REMEMBERED: usize = 1 << 17;

/// Gaps between datagrams, bursts, and the fullest millisecond.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    gaps: Distribution,
    last: Option<u64>,
    /// A gap shorter than this (ns) belongs to a burst; 0 disables the detection of bursts.
    close: u64,
    burst: u64,
    longest_burst: u64,
    recent: VecDeque<(u64, u64)>,
    in_recent: u64,
    worst: u64,
}

impl Gaps {
    /// Creates empty statistics. Datagrams less than a quarter of `ideal` ns apart count as a burst.
    pub(crate) fn new(ideal: Option<u64>) -> Self {
        Self {
            gaps: Distribution::new(),
            last: None,
            close: ideal.map_or(0, |gap| gap / 4),
            burst: 0,
            longest_burst: 0,
            recent: VecDeque::new(),
            in_recent: 0,
            worst: 0,
        }
    }

    /// Records `count` datagrams at one instant. If the clock went back, gaps and bursts are counted anew from here.
    #[inline]
    pub(crate) fn record(&mut self, stamp: u64, count: u64) {
        match self.last.and_then(|last| stamp.checked_sub(last)) {
            Some(gap) => {
                self.gaps.record(gap);
                self.burst = if gap < self.close { self.burst + count } else { count };
            }
            None => {
                self.burst = count;
                self.recent.clear();
                self.in_recent = 0;
            }
        }
        self.gaps.record_n(0, count - 1);
        self.last = Some(stamp);
        self.longest_burst = self.longest_burst.max(self.burst);
        self.recent.push_back((stamp, count));
        self.in_recent += count;
        while let Some(&(first, group)) = self.recent.front() {
            if stamp - first < MILLISECOND && self.recent.len() <= REMEMBERED {
                break;
            }
            self.recent.pop_front();
            self.in_recent -= group;
        }
        self.worst = self.worst.max(self.in_recent);
    }

    /// Returns the statistics in the form of results; `null` if there are no gaps.
    pub(crate) fn to_json(&self) -> Value {
        let mut value = self.gaps.to_json();
        if let Value::Object(fields) = &mut value {
            fields.insert("worst_ms".to_owned(), json!(self.worst));
            if self.close > 0 {
                fields.insert("longest_burst".to_owned(), json!(self.longest_burst));
            }
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_datagrams_have_equal_gaps_and_no_burst() {
        let mut gaps = Gaps::new(Some(100_000));
        (0..1000).for_each(|index| gaps.record(5 + index * 100_000, 1));
        let value = gaps.to_json();
        assert_eq!(
            (&value["count"], &value["mean_ns"], &value["sd_ns"]),
            (&json!(999), &json!(100_000), &json!(0))
        );
        // Ten datagrams fit into a millisecond, at 0, 100, ... 900 us; the eleventh belongs to the next one.
        assert_eq!((&value["worst_ms"], &value["longest_burst"]), (&json!(10), &json!(1)));
    }

    #[test]
    fn packet_trains_count_as_bursts() {
        let mut gaps = Gaps::new(Some(100_000));
        for train in 0..10_u64 {
            (0..8).for_each(|index| gaps.record(train * 800_000 + index * 5000, 1));
        }
        let value = gaps.to_json();
        assert_eq!((&value["worst_ms"], &value["longest_burst"]), (&json!(16), &json!(8)));
        // Datagrams that GRO has joined have one time stamp.
        let mut joined = Gaps::new(Some(100_000));
        (0..10).for_each(|train| joined.record(train * 800_000, 8));
        assert_eq!(joined.to_json()["longest_burst"], 8);
        assert_eq!(joined.to_json()["count"], 79);
    }

    #[test]
    fn clock_that_is_set_back_makes_no_gap() {
        let mut gaps = Gaps::new(None);
        [10, 20, 5, 15].into_iter().for_each(|stamp| gaps.record(stamp, 1));
        assert_eq!(gaps.to_json()["count"], 2);
        assert_eq!(gaps.to_json().get("longest_burst"), None);
    }
}
