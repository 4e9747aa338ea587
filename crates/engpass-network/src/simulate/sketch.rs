//! Quantiles of a stream of times in little memory.
//!
//! The buckets are HdrHistogram's (G. Tene): of equal width within a power of two, 32 of them, so that a value is known to 1.6 %. They
//! are kept only between the least and the greatest value that came, once more than a few have: a few hundred bytes for a flow. (The crate `hdrhistogram` counts
//! from zero on, which takes thousands; crates of DDSketch take the logarithm of a float for every packet, which differs between
//! C libraries.)

use serde::Serialize;

/// A power of two has 2 to this many buckets.
const BITS: u32 = 5;
/// Buckets are added so many at a time.
const BLOCK: usize = 1 << (BITS - 1);

/// So many values are kept as they come: many flows have no more.
const FEW: usize = 11;

/// Counts of values by bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sketch {
    /// So many values, and their buckets.
    Few { count: u8, buckets: [u16; FEW] },
    /// Number of the first bucket that is kept, and the counts from there on.
    Many { first: u32, counts: Box<[u32]> },
}

// Every flow has two.
const _: () = assert!(size_of::<Sketch>() == 24);

impl Default for Sketch {
    fn default() -> Self {
        Self::Few { count: 0, buckets: [0; FEW] }
    }
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
        if let Self::Many { first, counts } = self
            && let Some(count) = counts.get_mut(bucket.wrapping_sub(*first as usize))
        {
            // Four thousand million alike: who counts them does not miss one.
            *count = count.saturating_add(1);
        } else {
            self.grow(bucket);
        }
    }

    /// Keep one that is none of those of which there are counts.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        match self {
            Self::Few { count, buckets } if usize::from(*count) < FEW => {
                buckets[usize::from(*count)] = bucket as u16;
                *count += 1;
            }
            Self::Few { buckets, .. } => {
                let buckets = *buckets;
                *self = Self::Many { first: 0, counts: Box::default() };
                buckets.into_iter().map(usize::from).chain([bucket]).for_each(|bucket| self.count(bucket));
            }
            Self::Many { .. } => self.count(bucket),
        }
    }

    /// Have counts as far as this bucket, and count it.
    fn count(&mut self, bucket: usize) {
        let Self::Many { first, counts } = self else { unreachable!("there are counts") };
        let (block, before) = (bucket / BLOCK * BLOCK, *first as usize);
        let start = if counts.is_empty() { block } else { block.min(before) };
        let end = (block + BLOCK).max(before + counts.len());
        if end - start > counts.len() {
            let mut more = vec![0; end - start].into_boxed_slice();
            if !counts.is_empty() {
                more[before - start..][..counts.len()].copy_from_slice(counts);
            }
            (*first, *counts) = (start as u32, more);
        }
        counts[bucket - start] += 1;
    }

    /// How often every bucket came, in their order.
    fn by_bucket(&self) -> impl Iterator<Item = (usize, u64)> {
        let (few, first, many) = match self {
            Self::Few { count, buckets } => {
                let mut few = *buckets;
                few[..usize::from(*count)].sort_unstable();
                (few.into_iter().take(usize::from(*count)), 0, &[][..])
            }
            Self::Many { first, counts } => ([0; FEW].into_iter().take(0), *first as usize, &counts[..]),
        };
        let many = (first..).zip(many.iter().map(|count| u64::from(*count)));
        few.map(|bucket| (usize::from(bucket), 1)).chain(many)
    }

    /// The quantiles; `None` when nothing was counted.
    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        let total: u64 = match self {
            Self::Few { count, .. } => (*count).into(),
            Self::Many { counts, .. } => counts.iter().map(|count| u64::from(*count)).sum(),
        };
        if total == 0 {
            return None;
        }
        let mut buckets = self.by_bucket();
        let (mut last, mut counted) = (0, 0);
        let [half, p90, p99, p999] = [500, 900, 990, 999].map(|per_mille| {
            // The nearest rank: that many values are at most this one.
            let rank = (u128::from(total) * per_mille).div_ceil(1000) as u64;
            while counted < rank {
                let (bucket, count) = buckets.next().expect("a rank is at most the number of all");
                (last, counted) = (bucket, counted + count);
            }
            middle(last)
        });
        Some(Quantiles { half, p90, p99, p999 })
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
        let Sketch::Many { counts, .. } = sketch else { panic!("21 are not few") };
        assert_eq!(counts.iter().sum::<u32>(), 21);
        assert!(counts.len() <= 64, "{}", counts.len());
    }

    #[test]
    fn a_few_values_count_as_many_do() {
        let mut random = engpass_model::random::Stream::new(2, "few");
        let (mut sketch, mut many) = (Sketch::default(), Sketch::Many { first: 0, counts: Box::default() });
        for number in 1..3 * FEW {
            let value = random.exponential(1_000_000_000);
            sketch.add(value);
            many.count(bucket(value));
            assert_eq!(matches!(sketch, Sketch::Few { .. }), number <= FEW);
            assert_eq!(sketch.quantiles(), many.quantiles(), "{number} values");
        }
    }
}
