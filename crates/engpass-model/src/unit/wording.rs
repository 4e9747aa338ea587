//! Numbers and times in sentences: rounded, not for testbed files.

/// Formats a whole number with commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let comma = |(place, digit): (usize, char)| {
        let begins = place > 0 && (digits.len() - place).is_multiple_of(3);
        begins.then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(comma).collect()
}

/// Formats a time in picoseconds in the unit that suits it, with at most three digits.
pub fn duration(ps: f64) -> String {
    const UNITS: [(f64, &str); 5] = [(1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns"), (1.0, "ps")];
    let digits = |value: f64| format!("{value:.2e}").parse::<f64>().expect("a formatted number is parseable");
    // The rounded time decides: 999.9 us is 1 ms.
    let rounded = digits(ps);
    let unit = UNITS.into_iter().find(|(factor, _)| rounded >= *factor);
    let (factor, unit) = unit.unwrap_or(if rounded > 0.0 { (1.0, "ps") } else { (1.0, "s") });
    format!("{} {unit}", digits(rounded / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated_by_commas() {
        assert_eq!([1, 999, 1000, 1_234_567].map(grouped), ["1", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn times_have_at_most_three_digits() {
        let times = [0.0, 0.5, 999.0, 999e3, 999.9e6, 12_345_678e3, 2.5e9, 1e12, 1.9999e12, 61.04e12];
        assert_eq!(
            times.map(duration),
            ["0 s", "0.5 ps", "999 ps", "999 ns", "1 ms", "12.3 ms", "2.5 ms", "1 s", "2 s", "61 s"]
        );
    }
}
