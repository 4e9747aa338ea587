//! Numbers in sentences, and their units.

/// Formats a share as a whole percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Formats a whole number with commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with its noun: `1 point`, `2,000 points`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(number))
}

/// Rounds to a number of decimals, halves to the even neighbour of the exact value.
pub(crate) fn rounded(value: f64, decimals: usize) -> f64 {
    format!("{value:.decimals$}").parse().expect("a formatted number is a number")
}

/// Converts nanoseconds to seconds.
pub(crate) fn seconds(nanoseconds: Option<u64>) -> Option<f64> {
    nanoseconds.map(|time| time as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated_by_commas() {
        assert_eq!([1, 999, 1000, 1_234_567].map(grouped), ["1", "999", "1,000", "1,234,567"]);
        assert_eq!(
            (count(1, "timeout"), count(2000, "timeout")),
            ("1 timeout".into(), "2,000 timeouts".into())
        );
    }
}
