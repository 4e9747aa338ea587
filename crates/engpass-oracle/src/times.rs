//! Statistics of durations in picoseconds: exact, from all sorted values.

/// Statistics of a flow: delays of its datagrams, or round trips that its connections measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Smallest value.
    pub min: u64,
    /// Mean, rounded.
    pub mean: u64,
    /// Percentiles 50, 90, 99 and 99.9 by nearest rank.
    pub quantiles: [u64; 4],
    /// Largest value.
    pub max: u64,
    /// Offset in picoseconds that `simulate` adds to each value before it chooses a bucket: percentiles are then within 1.6 % of value plus offset.
    pub floor: u64,
}

impl Times {
    /// Computes the statistics of values; `None` if there are none.
    pub(crate) fn of(values: &[u64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let at = |per_mille: usize| sorted[(sorted.len() * per_mille).div_ceil(1000) - 1];
        let sum: u128 = sorted.iter().map(|value| u128::from(*value)).sum();
        let count = sorted.len() as u128;
        Some(Self {
            min,
            mean: ((sum + count / 2) / count) as u64,
            quantiles: [500, 900, 990, 999].map(at),
            max,
            floor: 0,
        })
    }

    /// Computes the statistics of queueing delays, given with the idle delay of each datagram.
    pub(crate) fn of_queueing(values: &[(u64, u64)]) -> Option<Self> {
        let (_, idle) = values.first()?;
        let delays: Vec<u64> = values.iter().map(|(delay, _)| *delay).collect();
        Self::of(&delays).map(|times| Self { floor: idle / 16, ..times })
    }

    /// Checks the statistics of the fast engine, which uses buckets: minimum, mean and maximum must be equal; percentiles must be within 1.6 % of the exact
    /// ones, with the floor, and not beyond the extremes.
    pub(crate) fn admits(&self, fast: &Self) -> bool {
        let near = |(fast, exact): (&u64, &u64)| {
            fast.abs_diff(*exact) <= (exact + self.floor) >> 6 && (self.min..=self.max).contains(fast)
        };
        (fast.min, fast.mean, fast.max) == (self.min, self.mean, self.max)
            && fast.quantiles.iter().zip(&self.quantiles).all(near)
    }
}
