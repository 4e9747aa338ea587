//! What the owner of a host, or a run, allows.

use engpass_model::unit::{Quantity, Rate, Size};
use serde::{Deserialize, Serialize};

use crate::time::nanoseconds;

/// Bounds of what a run may do; nothing where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Payload of one flow in one direction, in bit/s.
    pub rate_bit_per_s: Option<u64>,
    /// Payload of one flow, in bytes.
    pub bytes: Option<u64>,
    /// Length of a flow's traffic, in ns.
    pub duration_ns: Option<u64>,
}

impl Limits {
    /// From texts with units, as on a command line; the error says cause and cure.
    ///
    /// # Errors
    /// When a text is no such quantity.
    pub fn parse(rate: Option<&str>, bytes: Option<&str>, duration: Option<&str>) -> Result<Self, String> {
        Ok(Self {
            rate_bit_per_s: rate.map(Rate::parse).transpose()?.map(|rate| rate.0),
            bytes: bytes.map(Size::parse).transpose()?.map(|size| size.bytes()),
            duration_ns: duration.map(nanoseconds).transpose()?,
        })
    }

    /// The lower of each bound.
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
