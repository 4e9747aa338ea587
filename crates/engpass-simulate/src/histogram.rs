//! Histogram of times, for mean and quantiles, in little memory.
//!
//! The buckets are those of HdrHistogram (G. Tene): 32 of equal width within each power of two, so a value is known to 1.6 %. Minimum, mean and maximum are
//! exact, and no quantile lies outside minimum and maximum. Buckets exist only between these two, and only after more than a few values: a flow needs a few hundred bytes.
//! (The crate `hdrhistogram` starts its buckets at zero, which takes thousands of bytes. DDSketch crates take the logarithm of a float for every packet, which
//! differs between C libraries.)

/// Each power of two has 2^BITS buckets.
const BITS: u32 = 5;
/// Number of buckets added at a time.
const BLOCK: usize = 1 << (BITS - 1);

/// Number of values stored without counts; many flows have no more values.
const FEW: usize = 8;

/// Words in front of the counts of [`Histogram::Many`]: minimum and maximum, each with the low word first, and the word above the 64 bits of the sum.
const FRONT: usize = 5;

/// Counts of values by bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Histogram {
    /// Up to `FEW` values: their number, minimum, maximum and sum, and for each other value how many buckets it is above the minimum's.
    Few { count: u8, others: [u8; FEW - 2], least: u64, greatest: u64, sum: u64 },
    /// Many values: the number of the first bucket, and the sum; the words are minimum, maximum, overflows of the sum, and the counts from that bucket on.
    Many { first: u32, sum: u64, words: Box<[u32]> },
}

// Every flow has several histograms; therefore the size counts.
const _: () = assert!(size_of::<Histogram>() == 32);

impl Default for Histogram {
    fn default() -> Self {
        Self::Few { count: 0, others: [0; FEW - 2], least: 0, greatest: 0, sum: 0 }
    }
}

/// Minimum, mean (rounded), the 50th, 90th, 99th and 99.9th percentiles, and maximum, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quantiles {
    pub(super) least: u64,
    pub(super) mean: u64,
    pub(super) half: u64,
    pub(super) p90: u64,
    pub(super) p99: u64,
    pub(super) p999: u64,
    pub(super) greatest: u64,
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        if let Self::Many { first, sum, words } = self {
            let (front, counts) = words.split_first_chunk_mut().expect(FRONTED);
            widen(front, value);
            let (low, carry) = sum.overflowing_add(value);
            (*sum, front[FRONT - 1]) = (low, front[FRONT - 1] + u32::from(carry));
            if let Some(count) = counts.get_mut(bucket(value).wrapping_sub(*first as usize)) {
                // A count of 2^32 - 1 does not grow.
                *count = count.saturating_add(1);
                return;
            }
        }
        self.grow(value);
    }

    /// Counts a value that has no bucket yet, and makes one.
    #[cold]
    fn grow(&mut self, value: u64) {
        let Self::Few { count, others, least, greatest, sum } = self else {
            return self.count(bucket(value));
        };
        if *count == 0 {
            (*count, *least, *greatest, *sum) = (1, value, value, value);
            return;
        }
        let (low, high, total) =
            (value.min(*least), value.max(*greatest), u128::from(*sum) + u128::from(value));
        // Bucket numbers of all values except the minimum and the maximum. The last one is that of the new value or, if this is a new minimum or maximum, that
        // of the old one.
        let (mut between, mut known) = ([0; FEW - 1], 0);
        for above in &others[..usize::from(*count).saturating_sub(2)] {
            between[known] = bucket(*least) + usize::from(*above);
            known += 1;
        }
        if *count > 1 {
            between[known] = bucket(value.clamp(*least, *greatest));
            known += 1;
        }
        let (between, base) = (&between[..known], bucket(low));
        if let Ok(total) = u64::try_from(total)
            && known <= others.len()
            && between.iter().all(|one| one - base <= usize::from(u8::MAX))
        {
            others.iter_mut().zip(between).for_each(|(to, one)| *to = (one - base) as u8);
            (*count, *least, *greatest, *sum) = (*count + 1, low, high, total);
            return;
        }
        *self = Self::many(low, high, total);
        between.iter().chain(&[base, bucket(high)]).for_each(|one| self.count(*one));
    }

    /// Returns empty counts with room for all values between the two bounds, which have this sum.
    fn many(least: u64, greatest: u64, sum: u128) -> Self {
        let [first, last] = [least, greatest].map(|bound| bucket(bound) / BLOCK * BLOCK);
        let mut words = vec![0; FRONT + last + BLOCK - first].into_boxed_slice();
        let front = words.first_chunk_mut().expect(FRONTED);
        pack(front, least, greatest);
        front[FRONT - 1] = (sum >> 64) as u32;
        Self::Many { first: first as u32, sum: sum as u64, words }
    }

    /// Counts a value in `bucket`, and makes room for the bucket if necessary.
    fn count(&mut self, bucket: usize) {
        let Self::Many { first, words, .. } = self else { unreachable!("the histogram has buckets") };
        let (block, before, len) = (bucket / BLOCK * BLOCK, *first as usize, words.len() - FRONT);
        let (start, end) = (block.min(before), (block + BLOCK).max(before + len));
        if end - start > len {
            let mut more = vec![0; FRONT + end - start].into_boxed_slice();
            more[..FRONT].copy_from_slice(&words[..FRONT]);
            more[FRONT + before - start..][..len].copy_from_slice(&words[FRONT..]);
            (*first, *words) = (start as u32, more);
        }
        words[FRONT + bucket - start] += 1;
    }

    /// Returns the counts of the values of both.
    pub(super) fn merged(&self, other: &Self) -> Self {
        let Some((least, greatest)) = self.bounds() else { return other.clone() };
        let Some((low, high)) = other.bounds() else { return self.clone() };
        let mut both = Self::many(least.min(low), greatest.max(high), self.sum() + other.sum());
        let Self::Many { first, words, .. } = &mut both else { unreachable!("the histogram has buckets") };
        for (bucket, count) in self.by_bucket().chain(other.by_bucket()) {
            let sum = &mut words[FRONT + bucket - *first as usize];
            *sum = sum.saturating_add(count as u32);
        }
        both
    }

    /// Returns minimum and maximum; `None` if nothing was counted.
    fn bounds(&self) -> Option<(u64, u64)> {
        match self {
            Self::Few { count: 0, .. } => None,
            Self::Few { least, greatest, .. } => Some((*least, *greatest)),
            Self::Many { words, .. } => Some(unpack(words.first_chunk().expect(FRONTED))),
        }
    }

    fn sum(&self) -> u128 {
        match self {
            Self::Few { sum, .. } => u128::from(*sum),
            Self::Many { sum, words, .. } => u128::from(words[FRONT - 1]) << 64 | u128::from(*sum),
        }
    }

    /// Returns all buckets in order, each with its count.
    fn by_bucket(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut few = [0; FEW];
        let (known, first, many) = match self {
            Self::Few { count, others, least, greatest, .. } => {
                let base = bucket(*least);
                few[0] = base;
                few[1..].iter_mut().zip(others).for_each(|(to, above)| *to = base + usize::from(*above));
                let known = usize::from(*count);
                if known > 1 {
                    few[known - 1] = bucket(*greatest);
                }
                few[..known].sort_unstable();
                (known, 0, &[][..])
            }
            Self::Many { first, words, .. } => (0, *first as usize, &words[FRONT..]),
        };
        let many = (first..).zip(many.iter().map(|count| u64::from(*count)));
        few.into_iter().take(known).map(|bucket| (bucket, 1)).chain(many)
    }

    /// Returns the quantiles; `None` if nothing was counted.
    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        let (least, greatest) = self.bounds()?;
        let total: u64 = self.by_bucket().map(|(_, count)| count).sum();
        let mut buckets = self.by_bucket();
        let (mut last, mut counted) = (0, 0);
        let [half, p90, p99, p999] = [500, 900, 990, 999].map(|per_mille| {
            // Nearest rank: at least this many values do not exceed the quantile.
            let rank = (u128::from(total) * per_mille).div_ceil(1000) as u64;
            while counted < rank {
                let (bucket, count) = buckets.next().expect("a rank is at most the number of values");
                (last, counted) = (bucket, counted + count);
            }
            middle(last).clamp(least, greatest)
        });
        // After 2^32 - 1 values of one bucket the number of values is a lower bound, and so the mean is at most the maximum.
        let mean =
            ((self.sum() + u128::from(total / 2)) / u128::from(total)).min(u128::from(greatest)) as u64;
        Some(Quantiles { least, mean, half, p90, p99, p999, greatest })
    }

    /// Returns the quantiles in seconds; `None` if nothing was counted.
    pub(super) fn in_seconds(&self) -> Option<engpass_outcome::Quantiles> {
        self.quantiles().map(Quantiles::in_seconds)
    }
}

impl Quantiles {
    /// Returns the times with `by` subtracted from each.
    pub(super) fn less(self, by: u64) -> Self {
        let Self { least, mean, half, p90, p99, p999, greatest } = self;
        let [least, mean, half, p90, p99, p999, greatest] =
            [least, mean, half, p90, p99, p999, greatest].map(|time| time - by);
        Self { least, mean, half, p90, p99, p999, greatest }
    }

    /// Returns the times in seconds.
    pub(super) fn in_seconds(self) -> engpass_outcome::Quantiles {
        let Self { least, mean, half, p90, p99, p999, greatest } = self;
        engpass_outcome::Quantiles {
            min: seconds(least),
            mean: Some(seconds(mean)),
            p50: seconds(half),
            p90: seconds(p90),
            p99: seconds(p99),
            p99_9: seconds(p999),
            max: seconds(greatest),
        }
    }
}

const FRONTED: &str =
    "the words before the counts hold the least and the greatest value and the top of the sum";

fn unpack(front: &[u32; FRONT]) -> (u64, u64) {
    let [least, least_high, greatest, greatest_high, _] = front.map(u64::from);
    (least | least_high << 32, greatest | greatest_high << 32)
}

fn pack(front: &mut [u32; FRONT], least: u64, greatest: u64) {
    front[..FRONT - 1].copy_from_slice(&[
        least as u32,
        (least >> 32) as u32,
        greatest as u32,
        (greatest >> 32) as u32,
    ]);
}

#[inline]
fn widen(front: &mut [u32; FRONT], value: u64) {
    let (least, greatest) = unpack(front);
    // One comparison for both bounds.
    if value.wrapping_sub(least) > greatest.wrapping_sub(least) {
        pack(front, least.min(value), greatest.max(value));
    }
}

fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

/// Returns the number of the bucket of a value. Values below 2^BITS have a bucket each.
#[inline]
fn bucket(value: u64) -> usize {
    let octave = (value | 1 << BITS).ilog2() - BITS;
    ((octave as usize) << BITS) + (value >> octave) as usize
}

/// Returns the value in the middle of a bucket.
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
    fn quantiles_are_close_to_the_sorted_values() {
        assert_eq!(Histogram::default().quantiles(), None);
        let mut random = engpass_model::random::Stream::new(1, "sketch");
        let mut values: Vec<u64> =
            (0..20_000).map(|_| 1_000_000 + random.exponential(1_000_000_000)).collect();
        let mut sketch = Histogram::default();
        values.iter().for_each(|value| sketch.add(*value));
        values.sort_unstable();
        let Quantiles { least, mean, half, p90, p99, p999, greatest } =
            sketch.quantiles().expect("values were counted");
        assert_eq!(mean, (values.iter().sum::<u64>() + 10_000) / 20_000);
        for (found, rank) in [(half, 10_000), (p90, 18_000), (p99, 19_800), (p999, 19_980)] {
            let exact = values[rank - 1];
            assert!(found.abs_diff(exact) <= exact >> 6, "{found} for {exact}");
        }
        assert_eq!((least, greatest), (values[0], values[19_999]));
    }

    #[test]
    fn merged_histogram_counts_the_values_of_both() {
        for (few, more) in [(0, 0), (0, 3), (3, 0), (3, 3), (3, 500), (500, 3), (500, 500)] {
            let mut random = engpass_model::random::Stream::new(few, "merge");
            let [mut one, mut other, mut both] = [(); 3].map(|()| Histogram::default());
            for (part, count) in [(&mut one, few), (&mut other, more)] {
                for _ in 0..count {
                    let value = random.exponential(1_000_000_000);
                    part.add(value);
                    both.add(value);
                }
            }
            assert_eq!(one.merged(&other).quantiles(), both.quantiles(), "{few} and {more} values");
        }
    }

    #[test]
    fn equal_values_give_exact_quantiles() {
        // 45 ms lie 1 % above the middle of their bucket.
        let value = 45_000_000_000;
        for count in [1, 2, FEW, FEW + 1, 1000] {
            let mut sketch = Histogram::default();
            (0..count).for_each(|_| sketch.add(value));
            let found = sketch.quantiles().expect("values were counted");
            let Quantiles { least, mean, half, p90, p99, p999, greatest } = found;
            assert_eq!([least, mean, half, p90, p99, p999, greatest], [value; 7], "{count} values");
        }
    }

    #[test]
    fn a_sum_beyond_64_bits_has_its_mean() {
        for count in [2, 3, 100] {
            let mut histogram = Histogram::default();
            (0..count).for_each(|_| histogram.add(u64::MAX - 2));
            histogram.add(u64::MAX - 2 - (count + 1));
            let both = histogram.merged(&histogram).quantiles().expect("values were counted");
            assert_eq!(
                [histogram.quantiles().expect("values were counted").mean, both.mean],
                [u64::MAX - 3; 2]
            );
        }
    }

    #[test]
    fn memory_spans_smallest_to_largest_bucket() {
        let mut sketch = Histogram::default();
        // Ten to thirty milliseconds, downwards.
        (10..=30).rev().for_each(|ms| sketch.add(ms * 1_000_000_000));
        let Histogram::Many { words, .. } = sketch else { panic!("21 values exceed the value list") };
        assert_eq!(words[FRONT..].iter().sum::<u32>(), 21);
        assert!(words.len() <= FRONT + 64, "{}", words.len());
    }

    #[test]
    fn few_value_histogram_equals_bucketed_histogram() {
        for seed in 0..50 {
            let mut random = engpass_model::random::Stream::new(seed, "few");
            // From spreads that fit into a few values to one that does not.
            let offset = [0, 100_000_000][seed as usize % 2];
            let mut values = Vec::new();
            let mut sketch = Histogram::default();
            for _ in 1..3 * FEW {
                let value = offset + random.exponential(1_000_000_000);
                values.push(value);
                sketch.add(value);
                let (least, greatest) = (values.iter().min().copied(), values.iter().max().copied());
                let sum = values.iter().map(|value| u128::from(*value)).sum();
                let mut many = Histogram::many(least.expect("a value"), greatest.expect("a value"), sum);
                values.iter().for_each(|value| many.count(bucket(*value)));
                assert_eq!(sketch.quantiles(), many.quantiles(), "{values:?}");
                let few = values.len() <= FEW && (offset > 0 || matches!(sketch, Histogram::Few { .. }));
                assert_eq!(matches!(sketch, Histogram::Few { .. }), few, "{values:?}");
            }
        }
    }
}
