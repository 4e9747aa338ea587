//! Shares in per cent.

use super::{Quantity, quantity_serde, scaled};

/// A share of a whole, in parts per 10^9, written in per cent: `"16.41 %"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(pub u64);

impl Share {
    /// Parts of a share that make the whole.
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
        scaled::<Self>(text, |unit| (unit == "%").then_some(u128::from(Self::WHOLE / 100))).map(Self)
    }
}

quantity_serde!(Share);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_cent_is_exact() {
        assert_eq!(Share::parse("16.41 %"), Ok(Share(164_100_000)));
        assert_eq!(Share::parse("100%"), Ok(Share(Share::WHOLE)));
        assert!(Share::parse("0.16").unwrap_err().contains("no unit"));
    }
}
