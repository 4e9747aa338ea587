//! Rates of memory and buses in bytes per second.

use std::fmt;

use super::{Quantity, in_units, quantity_serde, scaled};

/// A rate in bytes per second with decimal prefixes, as used for memory and buses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRate(pub u64);

impl Quantity for ByteRate {
    const WHAT: &'static str = "a rate in bytes";
    const UNITS: &'static [&'static str] = &["B/s", "kB/s", "MB/s", "GB/s"];
    const EXAMPLE: &'static str = "133 MB/s";

    fn parse(text: &str) -> Result<Self, String> {
        scaled::<Self>(text, "B/s").map(Self)
    }
}

quantity_serde!(ByteRate);

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&in_units(self.0, "B/s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_rate_rejects_bits() {
        assert_eq!(ByteRate::parse("133 MB/s"), Ok(ByteRate(133_000_000)));
        assert_eq!(ByteRate::parse("15.75 GB/s"), Ok(ByteRate(15_750_000_000)));
        assert_eq!(ByteRate(133_300_000).to_string(), "133300 kB/s");
        assert!(ByteRate::parse("133 Mbit/s").unwrap_err().contains("`MB/s`"));
        assert!(ByteRate::parse("0.5 B/s").is_err());
    }
}
