//! Rates in bit/s, and the bits that they count on a framed medium.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Decimal, Quantity, Share, quantity_serde, scaled};

const UNITS: &[&str] = &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];

/// A rate in bit/s with decimal prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

impl Quantity for Rate {
    const WHAT: &'static str = "a rate";
    const UNITS: &'static [&'static str] = UNITS;
    const EXAMPLE: &'static str = "155.52 Mbit/s";

    fn parse(text: &str) -> Result<Self, String> {
        scaled::<Self>(text, "bit/s").map(Self)
    }
}

quantity_serde!(Rate);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, places) = match self.0 {
            0..1_000 => return write!(f, "{} bit/s", self.0),
            1_000..1_000_000 => ("kbit/s", 3),
            1_000_000..1_000_000_000 => ("Mbit/s", 6),
            _ => ("Gbit/s", 9),
        };
        let one = 10u64.pow(places);
        let fraction = format!("{:0width$}", self.0 % one, width = places as usize);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{} {unit}", self.0 / one),
            fraction => write!(f, "{}.{fraction} {unit}", self.0 / one),
        }
    }
}

/// The bits that a rate counts on a framed medium.
///
/// "130 Mbit/s" alone is ambiguous: on an OC-3c it is 295 248 cells/s if it counts bits of the line, but 306 604 cells/s if it counts bits
/// of whole cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Bits of the line, physical framing included: a fraction of the medium's line rate.
    Line,
    /// Bits of whole cells (53 bytes), or of whole frames without preamble and gap.
    Cells,
    /// Bits of the payload: 48 of the 53 bytes of a cell, or the message of a datagram.
    Payload,
}

/// A rate on a framed medium: a share of the line, cells per second, or bit/s with a basis.
///
/// `"16 %"` is a share of the line, and `"57959 cells/s"` counts cells. `"130 Mbit/s line"` includes its basis; without it, the `counts`
/// key of the table must give the basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FramedRate {
    /// Share of the line rate.
    Share(Share),
    /// Whole cells per second.
    CellsPerSecond(u64),
    /// Bits per second, counted by the given basis or else by the table's `counts`.
    Bits(Rate, Option<Basis>),
}

impl FramedRate {
    /// Whether the rate is zero.
    pub const fn is_zero(self) -> bool {
        matches!(self, Self::Share(Share(0)) | Self::CellsPerSecond(0) | Self::Bits(Rate(0), _))
    }
}

impl Quantity for FramedRate {
    const WHAT: &'static str = "a rate on a framed medium";
    const UNITS: &'static [&'static str] = &[
        "%",
        "cells/s",
        "bit/s",
        "kbit/s",
        "Mbit/s",
        "Gbit/s",
        "Mbit/s line",
        "Mbit/s cells",
        "Mbit/s payload",
    ];
    const EXAMPLE: &'static str = "130 Mbit/s line";

    fn parse(text: &str) -> Result<Self, String> {
        let unit = Decimal::split(text).map_or("", |(_, unit)| unit);
        if unit == "%" {
            return Share::parse(text).map(Self::Share);
        }
        if unit == "cells/s" {
            return scaled::<Self>(text, "cells/s").map(Self::CellsPerSecond);
        }
        let (bare, basis) = match unit.rsplit_once(' ').map(|(_, last)| last) {
            Some("line") => (text.trim_end().trim_end_matches("line"), Some(Basis::Line)),
            Some("cells") => (text.trim_end().trim_end_matches("cells"), Some(Basis::Cells)),
            Some("payload") => (text.trim_end().trim_end_matches("payload"), Some(Basis::Payload)),
            _ => (text, None),
        };
        scaled::<Self>(bare, "bit/s").map(|value| Self::Bits(Rate(value), basis))
    }
}

quantity_serde!(FramedRate);

impl fmt::Display for FramedRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => share.fmt(f),
            Self::CellsPerSecond(cells) => write!(f, "{cells} cells/s"),
            Self::Bits(rate, None) => rate.fmt(f),
            Self::Bits(rate, Some(Basis::Line)) => write!(f, "{rate} line"),
            Self::Bits(rate, Some(Basis::Cells)) => write!(f, "{rate} cells"),
            Self::Bits(rate, Some(Basis::Payload)) => write!(f, "{rate} payload"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framed_rate_keeps_its_basis() {
        assert_eq!(FramedRate::parse("16 %"), Ok(FramedRate::Share(Share(160_000_000))));
        assert_eq!(FramedRate::parse("57959 cells/s"), Ok(FramedRate::CellsPerSecond(57_959)));
        assert_eq!(
            FramedRate::parse("130 Mbit/s line"),
            Ok(FramedRate::Bits(Rate(130_000_000), Some(Basis::Line)))
        );
        assert_eq!(FramedRate::parse("130 Mbit/s"), Ok(FramedRate::Bits(Rate(130_000_000), None)));
        assert!(FramedRate::parse("130 Mbps").unwrap_err().contains("`130 Mbit/s`"));
        assert!(FramedRate::parse("0 bit/s").unwrap().is_zero());
    }
}
