//! Shares in per cent.

use std::fmt;

use super::{Quantity, quantity_serde, scaled};

/// A share of a whole, in parts per 10^9, written in per cent: `"16.41 %"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(pub u64);

impl Share {
    /// Number of parts in the whole.
    pub const WHOLE: u64 = 1_000_000_000;

    /// The share as a fraction, for reports and closed forms.
    pub fn fraction(self) -> f64 {
        self.0 as f64 / Self::WHOLE as f64
    }
}

impl Quantity for Share {
    const WHAT: &'static str = "a share";
    const UNITS: &'static [&'static str] = &["%"];
    const EXAMPLE: &'static str = "16 %";

    fn parse(text: &str) -> Result<Self, String> {
        scaled::<Self>(text, "").map(Self)
    }
}

quantity_serde!(Share);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_cent = Self::WHOLE / 100;
        let fraction = format!("{:07}", self.0 % per_cent);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{} %", self.0 / per_cent),
            fraction => write!(f, "{}.{fraction} %", self.0 / per_cent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_in_per_cent_is_exact() {
        assert_eq!(Share::parse("16.41 %"), Ok(Share(164_100_000)));
        assert_eq!(Share::parse("100%"), Ok(Share(Share::WHOLE)));
        assert!(Share::parse("0.16").unwrap_err().contains("no unit"));
    }
}
