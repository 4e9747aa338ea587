//! Statistics of samples.

use schemars::JsonSchema;
use serde::Serialize;

/// Least, median and greatest of a set of samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// The least sample.
    pub least: f64,
    /// The median; with an even number of samples the greater of the two in the middle.
    pub median: f64,
    /// The greatest sample. For throughput it is the undisturbed one.
    pub best: f64,
}

/// Returns the spread of the samples.
///
/// # Panics
/// If there are no samples.
pub fn spread(samples: &[f64]) -> Spread {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, best) = (sorted[0], sorted[sorted.len() - 1]);
    Spread { least, median: sorted[sorted.len() / 2], best }
}

/// Returns a confidence interval of at least 95 % for the median of the distribution, whatever its shape (sign test by order statistics). Fewer than six
/// samples cannot reach 95 %; then the interval runs from the least to the greatest sample.
///
/// # Panics
/// If there are no samples.
pub(super) fn median_between(samples: &[f64]) -> [f64; 2] {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // `below`: probability that at most `outside` samples fall below the median.
    let mut term = 0.5_f64.powi(count as i32);
    let (mut below, mut outside) = (term, 0);
    while below + term * (count - outside) as f64 / (outside + 1) as f64 <= 0.025 {
        term *= (count - outside) as f64 / (outside + 1) as f64;
        below += term;
        outside += 1;
    }
    [sorted[outside], sorted[count - 1 - outside]]
}

/// Returns a quantile of sorted samples, given in thousandths.
///
/// # Panics
/// If there are no samples.
pub(super) fn quantile(sorted: &[u64], per_mille: usize) -> u64 {
    sorted[(sorted.len() * per_mille / 1000).min(sorted.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_and_quantile_of_small_samples() {
        let all = spread(&[3.0, 1.0, 2.0]);
        assert_eq!((all.least, all.median, all.best), (1.0, 2.0, 3.0));
        // From tables of the sign test: all of 8 samples, the 7th to the 18th of 24, the 40th to the 61st of 100.
        for (count, place) in [(1, 1), (5, 1), (8, 1), (9, 2), (24, 7), (100, 40)] {
            let samples: Vec<f64> = (1..=count).map(f64::from).collect();
            assert_eq!(median_between(&samples), [f64::from(place), f64::from(count + 1 - place)]);
        }
        assert_eq!([500, 999, 1000].map(|part| quantile(&[1, 2, 3, 4], part)), [3, 4, 4]);
    }
}
