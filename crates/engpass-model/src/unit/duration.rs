//! Durations.

use std::fmt;

use super::{Quantity, in_units, quantity_serde, scaled};
use crate::time::Time;

/// A duration in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

impl Duration {
    /// The duration as model time.
    pub const fn time(self) -> Time {
        Time(self.0)
    }
}

impl Quantity for Duration {
    const WHAT: &'static str = "a duration";
    const UNITS: &'static [&'static str] = &["ps", "ns", "us", "µs", "ms", "s", "min", "h", "d"];
    const EXAMPLE: &'static str = "10 s";

    fn parse(text: &str) -> Result<Self, String> {
        scaled::<Self>(text, "s").map(Self)
    }
}

quantity_serde!(Duration);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&in_units(self.0, "s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_parsed_to_the_picosecond() {
        assert_eq!(Duration::parse("0.93 ms"), Ok(Duration(930_000_000)));
        assert_eq!(Duration::parse("135 ns"), Ok(Duration(135_000)));
        assert_eq!(Duration::parse("5 µs"), Duration::parse("5 us"));
        assert!(Duration::parse("0.1 ps").is_err());
    }

    #[test]
    fn duration_is_shown_in_the_largest_unit_that_divides_it() {
        for (written, shown) in
            [("1440 min", "1 d"), ("240 min", "4 h"), ("90 min", "90 min"), ("0.5 d", "12 h")]
        {
            assert_eq!(Duration::parse(written).unwrap().to_string(), shown);
            assert_eq!(Duration::parse(shown), Duration::parse(written));
        }
    }
}
