//! What is told of samples.

use serde::Serialize;

/// Samples in three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
        assert_eq!([500, 999, 1000].map(|part| quantile(&[1, 2, 3, 4], part)), [3, 4, 4]);
    }
}
