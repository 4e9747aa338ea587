//! Cells in bursts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::{Complaints, LONGEST};
use crate::unit::{Basis, Duration, FramedRate};

/// Cells at a peak rate during on-times, none during off-times; from an ATM traffic generator.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Sending host; it needs an ATM link.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Rate of the cells while it is on.
    pub rate: FramedRate,
    /// What a rate without its own word counts: `line`, `cells` or `payload`.
    pub counts: Option<Basis>,
    /// Mean length of an on-time.
    pub on: Duration,
    /// Mean length of an off-time.
    pub off: Duration,
    /// How the lengths are distributed.
    #[serde(default)]
    pub lengths: Lengths,
    /// The circuit to take. If not given, the source has one of its own in the `ubr` category.
    pub circuit: Option<String>,
    /// When it starts.
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
    /// Every one as long as the mean.
    #[default]
    Fixed,
    /// Exponential.
    Exponential,
}

impl OnOff {
    /// What is wrong with the values; the rate is checked against the link.
    pub fn check(&self, complaints: &mut Complaints) {
        complaints.positive(&["on"], self.on, LONGEST);
        complaints.positive(&["off"], self.off, LONGEST);
    }
}
