//! A distribution of times: exact sums, and a histogram with three significant digits.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Longest time that is recorded exactly, in ns: 100 s. Longer times are recorded as this.
const LONGEST: u64 = 100_000_000_000;

/// A distribution of values in ns.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    count: u64,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
    histogram: Histogram<u64>,
}

impl Distribution {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3).expect("the histogram bounds are valid");
        Self { count: 0, sum: 0, squares: 0, min: u64::MAX, max: 0, histogram }
    }

    /// Records one value.
    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Records a value `times` times.
    #[inline]
    pub(crate) fn record_n(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let value = value.min(LONGEST);
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.squares += u128::from(value) * u128::from(value) * u128::from(times);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.histogram.saturating_record_n(value, times);
    }

    /// Adds the values of another distribution.
    pub(crate) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.histogram.add(&other.histogram).expect("all histograms have the same bounds");
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns mean and standard deviation in ns; zeros if there are no values.
    pub(crate) fn moments(&self) -> (u64, u64) {
        let Some(count) = Some(u128::from(self.count)).filter(|count| *count > 0) else { return (0, 0) };
        // n * sum(x^2) - (sum x)^2 can overflow. Dividing first loses less than 1 ns^2.
        let variance = self.squares.saturating_sub(self.sum * self.sum / count) / count;
        ((self.sum / count) as u64, variance.isqrt() as u64)
    }

    /// Returns the quantile at the fraction `millionths`, in ns.
    pub(crate) fn quantile(&self, millionths: u32) -> u64 {
        self.histogram.value_at_quantile(f64::from(millionths) / 1e6).min(self.max)
    }

    /// Returns the median absolute deviation from the median, in ns, precise to the width of a bucket. Unlike the standard deviation, it ignores a few stalls.
    pub(crate) fn median_deviation(&self) -> u64 {
        let median = self.quantile(500_000);
        let mut distances: Vec<(u64, u64)> = self
            .histogram
            .iter_recorded()
            .map(|bucket| {
                (bucket.value_iterated_to().min(self.max).abs_diff(median), bucket.count_at_value())
            })
            .collect();
        distances.sort_unstable();
        let half = self.count.div_ceil(2);
        let mut below = 0;
        let found = distances.into_iter().find(|(_, count)| {
            below += count;
            below >= half
        });
        found.map_or(0, |(distance, _)| distance)
    }

    /// Returns the distribution in the form of results; `null` if it has no values.
    pub(crate) fn to_json(&self) -> Value {
        if self.count == 0 {
            return Value::Null;
        }
        let (mean, deviation) = self.moments();
        let buckets: Vec<Value> = self
            .histogram
            .iter_recorded()
            .map(|bucket| json!([bucket.value_iterated_to().min(self.max), bucket.count_at_value()]))
            .collect();
        json!({
            "count": self.count,
            "mean_ns": mean,
            "sd_ns": deviation,
            "mad_ns": self.median_deviation(),
            "min_ns": self.min,
            "max_ns": self.max,
            "p1_ns": self.quantile(10_000),
            "p50_ns": self.quantile(500_000),
            "p90_ns": self.quantile(900_000),
            "p99_ns": self.quantile(990_000),
            "p999_ns": self.quantile(999_000),
            "histogram": buckets,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_moments_are_exact() {
        let mut all = Distribution::new();
        for value in [2, 4, 4, 4, 5, 5, 7, 9] {
            all.record(value * 1_000_000);
        }
        assert_eq!(all.moments(), (5_000_000, 2_000_000));
        assert_eq!((all.min, all.max, all.count()), (2_000_000, 9_000_000, 8));
        let mut twice = all.clone();
        twice.add(&all);
        assert_eq!(twice.moments(), (5_000_000, 2_000_000));
        // Distances from 4 ms: 0 0 0 1 1 2 3 5.
        let distance = all.median_deviation();
        assert!((990_000..1_010_000).contains(&distance), "{distance}");
        let mut stalled = Distribution::new();
        stalled.record_n(100_000, 999);
        stalled.record(50_000_000);
        assert!(stalled.median_deviation() < 100 && stalled.moments().1 > 1_000_000);
        let median = all.quantile(500_000);
        assert!((4_000_000..4_010_000).contains(&median), "{median}");
        assert_eq!(all.to_json()["histogram"].as_array().map(Vec::len), Some(5));
    }

    #[test]
    fn empty_distribution_is_null_and_zero_is_recorded() {
        let mut none = Distribution::new();
        assert_eq!(none.to_json(), Value::Null);
        assert_eq!(none.moments(), (0, 0));
        none.record_n(0, 3);
        none.record(u64::MAX);
        assert_eq!((none.min, none.max, none.count()), (0, LONGEST, 4));
        assert_eq!(none.quantile(500_000), 0);
    }
}
