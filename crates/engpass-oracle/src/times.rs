//! How long something took, in picoseconds: exact figures of all values, sorted.

/// Times of a flow: delays of its datagrams, or round trips that its connections measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The least one.
    pub min: u64,
    /// By nearest rank, what 50, 90, 99 and 99.9 % of them do not exceed.
    pub quantiles: [u64; 4],
    /// The greatest one.
    pub max: u64,
}

impl Times {
    /// The figures of some values; `None` without any.
    pub(crate) fn of(values: &[u64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let at = |per_mille: usize| sorted[(sorted.len() * per_mille).div_ceil(1000) - 1];
        Some(Self { min, quantiles: [500, 900, 990, 999].map(at), max })
    }

    /// Whether `fast`, which counts in buckets, is right: the bounds to the picosecond, the quantiles within 1.6 % and within the bounds.
    pub(crate) fn admits(&self, fast: &Self) -> bool {
        let near = |(fast, exact): (&u64, &u64)| {
            fast.abs_diff(*exact) <= exact >> 6 && (self.min..=self.max).contains(fast)
        };
        (fast.min, fast.max) == (self.min, self.max) && fast.quantiles.iter().zip(&self.quantiles).all(near)
    }
}
