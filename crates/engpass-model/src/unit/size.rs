//! Sizes in bytes.

use std::fmt;

use super::{Quantity, in_units, quantity_serde, scaled};

/// A size in bytes; `kB` is 1000 B and `KiB` is 1024 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

impl Size {
    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl Quantity for Size {
    const WHAT: &'static str = "a size";
    const UNITS: &'static [&'static str] = &["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"];
    const EXAMPLE: &'static str = "9 kB";

    fn parse(text: &str) -> Result<Self, String> {
        scaled::<Self>(text, "B").map(Self)
    }
}

quantity_serde!(Size);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&in_units(self.0, "B"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_in_kb_and_kib_differ() {
        assert_eq!(Size::parse("9 kB"), Ok(Size(9000)));
        assert_eq!(Size::parse("9 KiB"), Ok(Size(9216)));
        assert_eq!(Size::parse("1.5kB"), Ok(Size(1500)));
    }

    #[test]
    fn size_without_unit_error_shows_an_example() {
        assert_eq!(Size::parse("9180").unwrap_err(), "`9180` has no unit: a size is written like `9 kB`");
        assert!(Size::parse("9 KB").unwrap_err().contains("`9 kB`"));
    }
}
