//! What is told of samples.

use schemars::JsonSchema;
use serde::Serialize;

/// Samples in three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The middle one; of an even number the greater of the two.
    pub median: f64,
    /// The greatest, which is what nothing disturbed if more is better.
    pub best: f64,
}

/// The spread of samples.
///
/// # Panics
/// When there are none.
pub fn spread(samples: &[f64]) -> Spread {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, best) = (sorted[0], sorted[sorted.len() - 1]);
    Spread { least, median: sorted[sorted.len() / 2], best }
}

/// Between which samples the median of what they were drawn from lies, with at least 95 % confidence whatever the distribution (the sign test, by
/// order statistics). Fewer than six samples do not tell so much: then between the least and the greatest.
///
/// # Panics
/// When there are none.
pub(super) fn median_between(samples: &[f64]) -> [f64; 2] {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // How likely it is that no more than `outside` of the samples fall below the median.
    let mut term = 0.5_f64.powi(count as i32);
    let (mut below, mut outside) = (term, 0);
    while below + term * (count - outside) as f64 / (outside + 1) as f64 <= 0.025 {
        term *= (count - outside) as f64 / (outside + 1) as f64;
        below += term;
        outside += 1;
    }
    [sorted[outside], sorted[count - 1 - outside]]
}

/// The sample that so many parts of a thousand are not greater than.
///
/// # Panics
/// When there are none.
pub(super) fn quantile(sorted: &[u64], per_mille: usize) -> u64 {
    sorted[(sorted.len() * per_mille / 1000).min(sorted.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_the_middle() {
        let all = spread(&[3.0, 1.0, 2.0]);
        assert_eq!((all.least, all.median, all.best), (1.0, 2.0, 3.0));
        // Tables of the sign test: of 8 all, of 24 the 7th to the 18th, of 100 the 40th to the 61st.
        for (count, place) in [(1, 1), (5, 1), (8, 1), (9, 2), (24, 7), (100, 40)] {
            let samples: Vec<f64> = (1..=count).map(f64::from).collect();
            assert_eq!(median_between(&samples), [f64::from(place), f64::from(count + 1 - place)]);
        }
        assert_eq!([500, 999, 1000].map(|part| quantile(&[1, 2, 3, 4], part)), [3, 4, 4]);
    }
}
