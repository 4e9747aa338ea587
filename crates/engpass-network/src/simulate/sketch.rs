//! Quantiles of a stream of times in little memory.
//!
//! The buckets are HdrHistogram's (G. Tene): of equal width within a power of two, 32 of them, so that a value is known to 1.6 %. They
//! are kept only between the least and the greatest value that came: a few hundred bytes for a flow. (The crate `hdrhistogram` counts
//! from zero on, which takes thousands; crates of DDSketch take the logarithm of a float for every packet, which differs between
//! C libraries.)

use serde::Serialize;

/// A power of two has 2 to this many buckets.
const BITS: u32 = 5;
/// Buckets are added so many at a time.
const BLOCK: usize = 1 << (BITS - 1);

/// Counts of values by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sketch {
    /// Number of the first bucket that is kept.
    first: usize,
    counts: Vec<u32>,
}

/// What half, 90 %, 99 % and 99.9 % of the values do not exceed, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quantiles {
    pub(super) half: u64,
    pub(super) p90: u64,
    pub(super) p99: u64,
    pub(super) p999: u64,
}

/// From when a datagram is begun until its receiver has it: see `docs/model.md`. In seconds, within 1.6 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delays {
    /// Half of them are at most this.
    pub delay_p50_s: f64,
    /// 90 % of them are.
    pub delay_p90_s: f64,
    /// 99 % of them are.
    pub delay_p99_s: f64,
    /// 99.9 % of them are.
    pub delay_p999_s: f64,
}

/// Round trips as the sending ends of a TCP flow measured them. In seconds, within 1.6 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoundTrips {
    /// Half of them are at most this.
    pub round_trip_p50_s: f64,
    /// 90 % of them are.
    pub round_trip_p90_s: f64,
    /// 99 % of them are.
    pub round_trip_p99_s: f64,
    /// 99.9 % of them are.
    pub round_trip_p999_s: f64,
}

impl Sketch {
    /// Count a value.
    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            // Four thousand million alike: who counts them does not miss one.
            Some(count) => *count = count.saturating_add(1),
            None => self.grow(bucket),
        }
    }

    /// Keep buckets as far as this one, and count it.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        let from = bucket / BLOCK * BLOCK;
        if self.counts.is_empty() {
            self.first = from;
        }
        if from < self.first {
            let more = self.first - from;
            let counts = std::iter::repeat_n(0, more).chain(self.counts.iter().copied());
            self.counts = counts.collect();
            self.first = from;
        }
        let needed = from + BLOCK - self.first;
        if needed > self.counts.len() {
            self.counts.reserve_exact(needed - self.counts.len());
            self.counts.resize(needed, 0);
        }
        self.counts[bucket - self.first] += 1;
    }

    /// The quantiles; `None` when nothing was counted.
    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        let total: u64 = self.counts.iter().copied().map(u64::from).sum();
        (total > 0).then(|| {
            let [half, p90, p99, p999] = [500, 900, 990, 999].map(|per_mille| {
                // The nearest rank: that many values are at most this one.
                let mut rank = (u128::from(total) * per_mille).div_ceil(1000) as u64;
                let place = self.counts.iter().position(|count| {
                    rank = rank.saturating_sub(u64::from(*count));
                    rank == 0
                });
                middle(self.first + place.expect("a rank is at most the number of all"))
            });
            Quantiles { half, p90, p99, p999 }
        })
    }

    /// As delays.
    pub(super) fn delays(&self) -> Option<Delays> {
        self.quantiles().map(|Quantiles { half, p90, p99, p999 }| Delays {
            delay_p50_s: seconds(half),
            delay_p90_s: seconds(p90),
            delay_p99_s: seconds(p99),
            delay_p999_s: seconds(p999),
        })
    }

    /// As round trips.
    pub(super) fn round_trips(&self) -> Option<RoundTrips> {
        self.quantiles().map(|Quantiles { half, p90, p99, p999 }| RoundTrips {
            round_trip_p50_s: seconds(half),
            round_trip_p90_s: seconds(p90),
            round_trip_p99_s: seconds(p99),
            round_trip_p999_s: seconds(p999),
        })
    }
}

fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

/// Values below 2^BITS have a bucket each.
#[inline]
fn bucket(value: u64) -> usize {
    let octave = (63 - BITS).saturating_sub(value.leading_zeros());
    ((octave as usize) << BITS) + (value >> octave) as usize
}

/// The value in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let octave = (bucket >> BITS).saturating_sub(1);
    let least = ((bucket - (octave << BITS)) as u64) << octave;
    least + ((1 << octave) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_near_the_middle_of_its_bucket() {
        let mut before = 0;
        for power in 0..64 {
            for value in [1 << power, (1_u64 << power) + (1 << power >> 1), u64::MAX >> (63 - power)] {
                let (bucket, middle) = (bucket(value), middle(bucket(value)));
                assert!(middle.abs_diff(value) <= value >> 6, "{value}: {middle}");
                assert!(bucket >= before, "{value}");
                before = bucket;
            }
        }
        assert_eq!([0, 31, 32, 63, 64, 65, 66].map(bucket), [0, 31, 32, 63, 64, 64, 65]);
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        assert_eq!(Sketch::default().quantiles(), None);
        let mut random = engpass_model::random::Stream::new(1, "sketch");
        let mut values: Vec<u64> =
            (0..20_000).map(|_| 1_000_000 + random.exponential(1_000_000_000)).collect();
        let mut sketch = Sketch::default();
        values.iter().for_each(|value| sketch.add(*value));
        values.sort_unstable();
        let Quantiles { half, p90, p99, p999 } = sketch.quantiles().expect("values were counted");
        for (found, rank) in [(half, 10_000), (p90, 18_000), (p99, 19_800), (p999, 19_980)] {
            let exact = values[rank - 1];
            assert!(found.abs_diff(exact) <= exact >> 6, "{found} for {exact}");
        }
    }

    #[test]
    fn what_does_not_come_takes_no_memory() {
        let mut sketch = Sketch::default();
        // Ten to thirty milliseconds, downwards.
        (10..=30).rev().for_each(|ms| sketch.add(ms * 1_000_000_000));
        assert_eq!(sketch.counts.iter().sum::<u32>(), 21);
        assert!(sketch.counts.capacity() <= 64, "{}", sketch.counts.capacity());
    }
}
