//! The factors of all units, for testbed files and for results. Each quantity lists the units that it accepts (`Quantity::UNITS`).

/// A unit as a multiple of its base unit: `mantissa * 10^exponent`.
#[derive(Debug, PartialEq, Eq)]
pub struct Unit {
    /// Name as it is written.
    pub name: &'static str,
    /// Other spellings that files may use.
    pub others: &'static [&'static str],
    /// Name of the base unit; empty for shares.
    pub base: &'static str,
    /// Factor of the base unit, without its power of ten.
    pub mantissa: u64,
    /// Power of ten.
    pub exponent: i32,
    /// True if files may use it; other units occur in results only.
    pub in_files: bool,
}

const fn unit(name: &'static str, base: &'static str, mantissa: u64, exponent: i32) -> Unit {
    Unit { name, others: &[], base, mantissa, exponent, in_files: true }
}

const fn counted(name: &'static str, others: &'static [&'static str]) -> Unit {
    Unit { others, ..unit(name, name, 1, 0) }
}

/// All units, by base unit.
pub const UNITS: &[Unit] = &[
    unit("B", "B", 1, 0),
    unit("kB", "B", 1, 3),
    unit("MB", "B", 1, 6),
    unit("GB", "B", 1, 9),
    unit("KiB", "B", 1 << 10, 0),
    unit("MiB", "B", 1 << 20, 0),
    unit("GiB", "B", 1 << 30, 0),
    unit("bit/s", "bit/s", 1, 0),
    unit("kbit/s", "bit/s", 1, 3),
    unit("Mbit/s", "bit/s", 1, 6),
    unit("Gbit/s", "bit/s", 1, 9),
    Unit { in_files: false, ..unit("Tbit/s", "bit/s", 1, 12) },
    unit("B/s", "B/s", 1, 0),
    unit("kB/s", "B/s", 1, 3),
    unit("MB/s", "B/s", 1, 6),
    unit("GB/s", "B/s", 1, 9),
    unit("ps", "s", 1, -12),
    unit("ns", "s", 1, -9),
    // The two letters are the micro sign and the Greek letter.
    Unit { others: &["µs", "μs"], ..unit("us", "s", 1, -6) },
    unit("ms", "s", 1, -3),
    unit("s", "s", 1, 0),
    unit("min", "s", 60, 0),
    unit("h", "s", 3600, 0),
    unit("d", "s", 86_400, 0),
    unit("%", "", 1, -2),
    counted("cells", &["cell"]),
    counted("packets", &["packet"]),
    Unit { in_files: false, ..counted("datagrams", &["datagram"]) },
    Unit { in_files: false, ..counted("timeouts", &["timeout"]) },
    counted("cells/s", &[]),
    counted("fps", &[]),
];

impl Unit {
    /// Returns the unit with this name or spelling that files may use.
    pub fn in_file(word: &str) -> Option<&'static Self> {
        UNITS.iter().find(|unit| unit.in_files && (unit.name == word || unit.others.contains(&word)))
    }

    /// Returns the decimal places that a value in the base unit may have: times are exact to a picosecond, shares to 10^-9.
    pub fn places(&self) -> u32 {
        match self.base {
            "s" => 12,
            "" => 9,
            "fps" => 6,
            _ => 0,
        }
    }

    /// Returns the unit as a number of smallest steps, such as picoseconds.
    pub fn steps(&self) -> u64 {
        let power = self.places().checked_add_signed(self.exponent);
        self.mantissa * 10u64.pow(power.expect("no unit is smaller than its smallest step"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_whole_steps_and_unique_names() {
        let steps = |word| Unit::in_file(word).map(Unit::steps);
        assert_eq!(["min", "KiB", "%"].map(steps), [Some(60_000_000_000_000), Some(1024), Some(10_000_000)]);
        assert!(UNITS.iter().all(|unit| unit.steps() > 0));
        assert!(Unit::in_file("Tbit/s").is_none() && Unit::in_file("KB").is_none());
        let names: Vec<&str> =
            UNITS.iter().flat_map(|unit| unit.others.iter().copied().chain([unit.name])).collect();
        assert!(names.iter().all(|name| names.iter().filter(|other| *other == name).count() == 1));
    }
}
