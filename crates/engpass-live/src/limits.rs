//! Limits set by the owner of a host, or by a run.

use engpass_model::unit::{Quantity, Rate, Size};
use serde::{Deserialize, Serialize};

use crate::time::nanoseconds;

/// Upper bounds on what a flow may do. `None` means no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Payload rate of one flow in one direction, in bit/s.
    pub rate_bit_per_s: Option<u64>,
    /// Payload of one flow, in bytes.
    pub bytes: Option<u64>,
    /// Duration of a flow's traffic, in ns.
    pub duration_ns: Option<u64>,
}

impl Limits {
    /// Parses limits from texts with units, as on a command line. The error gives cause and help.
    ///
    /// # Errors
    /// Fails when a text is not a quantity of its kind.
    pub fn parse(rate: Option<&str>, bytes: Option<&str>, duration: Option<&str>) -> Result<Self, String> {
        Ok(Self {
            rate_bit_per_s: rate.map(Rate::parse).transpose()?.map(|rate| rate.0),
            bytes: bytes.map(Size::parse).transpose()?.map(|size| size.bytes()),
            duration_ns: duration.map(nanoseconds).transpose()?,
        })
    }

    /// Returns, for each limit, the lower of the two.
    #[must_use]
    pub fn lower(&self, other: &Self) -> Self {
        let lower = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Self {
            rate_bit_per_s: lower(self.rate_bit_per_s, other.rate_bit_per_s),
            bytes: lower(self.bytes, other.bytes),
            duration_ns: lower(self.duration_ns, other.duration_ns),
        }
    }
}
