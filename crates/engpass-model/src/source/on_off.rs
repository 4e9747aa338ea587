//! Bursts of cells, from a traffic generator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellDemand, Common, SourceConfig, SourceOutput};
use crate::circuit::Category;
use crate::range_errors::{LONGEST, RangeErrors};
use crate::time::{Pace, SECOND};
use crate::unit::{Basis, Duration, FramedRate};

/// Cells at a peak rate during on-times and none during off-times, from an ATM traffic generator.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Sending host; it needs an ATM link.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Rate of the cells during an on-time.
    pub rate: FramedRate,
    /// Basis of `rate` if it does not include one: `line`, `cells` or `payload`.
    pub counts: Option<Basis>,
    /// Mean length of an on-time.
    pub on: Duration,
    /// Mean length of an off-time.
    pub off: Duration,
    /// Distribution of the lengths; `fixed` if not given.
    #[serde(default)]
    pub lengths: Lengths,
    /// Virtual circuit of the cells. If not given, the source has its own in the `ubr` category.
    pub circuit: Option<String>,
    /// When it starts; at the beginning of the run if not given.
    #[serde(default)]
    pub start: Option<Duration>,
    /// When it stops; at the end of the run if not given.
    #[serde(default)]
    pub stop: Option<Duration>,
}

/// Distribution of on-times and off-times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lengths {
    /// Each as long as the mean.
    #[default]
    Fixed,
    /// Exponential.
    Exponential,
}

impl Lengths {
    /// Returns the mean number of cells or messages in an on-time of the mean length `on`, in picoseconds. They are spaced by `pace`: the first one
    /// at the beginning, none at or after the end. Therefore there is at least one, and for long drawn lengths half a one more than `on` divided by
    /// `pace`.
    pub fn units_in(self, on: u64, pace: Pace) -> f64 {
        match self {
            Self::Fixed => (pace.units_within(on.saturating_sub(1)) + 1) as f64,
            // The sum over k of the probability that an on-time is longer than k gaps.
            Self::Exponential => {
                let (num, den) = pace.ratio();
                -1.0 / libm::expm1(-(num as f64 / den as f64) / on.max(1) as f64)
            }
        }
    }
}

impl SourceConfig for OnOff {
    fn common(&self) -> Common<'_> {
        Common {
            circuit: self.circuit.as_deref(),
            ..Common::between((&self.from, &self.to), (self.start, self.stop))
        }
    }

    fn sends(&self) -> SourceOutput<'_> {
        SourceOutput::Cells(CellDemand {
            rate: self.rate,
            counts: self.counts,
            category: Category::Ubr,
            can_be_off: false,
        })
    }

    fn check(&self, errors: &mut RangeErrors) {
        errors.positive(&["on"], self.on, LONGEST);
        errors.positive(&["off"], self.off, LONGEST);
    }
}

impl OnOff {
    /// Returns the mean rate in cells per second, with this pace during on-times.
    pub fn mean(&self, pace: Pace) -> f64 {
        self.lengths.units_in(self.on.0, pace) * SECOND as f64 / (self.on.0 as f64 + self.off.0 as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_time_starts_with_a_unit() {
        let units = |on, lengths: Lengths| lengths.units_in(on, Pace::new(10, 1));
        assert_eq!([1, 10, 11, 20, 21].map(|on| units(on, Lengths::Fixed)), [1.0, 1.0, 2.0, 2.0, 3.0]);
        // Far shorter than a gap: one unit. Far longer: half a unit above 1000.
        assert!((units(1, Lengths::Exponential) - 1.0).abs() < 1e-4);
        assert!((units(10_000, Lengths::Exponential) - 1000.5).abs() < 1e-3);
    }
}
