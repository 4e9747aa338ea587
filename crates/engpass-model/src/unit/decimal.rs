//! The exact decimal number of a quantity.

/// A decimal number: `digits / 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    scale: u32,
}

/// Why a number has no value in the smallest unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// Beyond 64 bits of the smallest unit.
    TooLarge,
    /// No multiple of the smallest unit.
    TooFine,
}

impl Decimal {
    /// Splits text such as `"0.93 ms"` into number and unit. Returns `None` if it does not begin with a plain decimal number.
    pub(super) fn split(text: &str) -> Option<(Self, &str)> {
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        Some((Self::parse(number)?, unit.trim()))
    }

    fn parse(number: &str) -> Option<Self> {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let digits: String = whole.chars().chain(fraction.chars()).filter(|c| *c != '_').collect();
        if digits.is_empty() || digits.len() > 30 {
            return None;
        }
        let scale = fraction.chars().filter(|c| *c != '_').count() as u32;
        Some(Self { digits: digits.parse().ok()?, scale })
    }

    /// Returns `self * factor` if it is an integer of 64 bits.
    pub(super) fn times(self, factor: u128) -> Result<u64, Unfit> {
        let product = self.digits.checked_mul(factor).ok_or(Unfit::TooLarge)?;
        let divisor = 10u128.pow(self.scale);
        if product % divisor != 0 {
            return Err(Unfit::TooFine);
        }
        u64::try_from(product / divisor).map_err(|_| Unfit::TooLarge)
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let one = 10u128.pow(self.scale);
        write!(f, "{}", self.digits / one)?;
        if self.scale > 0 {
            write!(f, ".{:0width$}", self.digits % one, width = self.scale as usize)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_splits_number_and_unit() {
        let (number, unit) = Decimal::split(" 0.93 ms").unwrap();
        assert_eq!((number.times(1_000_000_000), unit), (Ok(930_000_000), "ms"));
        assert_eq!(Decimal::split("1_000B").unwrap().0.times(1), Ok(1000));
        for bad in ["", "ms", "-1 s", ".5 s", "1. s", "1.2.3 s", "1e3 s"] {
            let read = Decimal::split(bad).map(|(_, unit)| unit);
            assert!(read.is_none() || read == Some("e3 s"), "{bad}");
        }
    }

    #[test]
    fn decimal_rejects_fractions_and_overflow() {
        assert_eq!(Decimal::split("0.5 B").unwrap().0.times(1), Err(Unfit::TooFine));
        assert_eq!(Decimal::split("99999999999999999999 B").unwrap().0.times(1), Err(Unfit::TooLarge));
    }
}
