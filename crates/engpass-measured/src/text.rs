//! Numbers in sentences, and their units.

use engpass_model::unit::wording::grouped;

/// Formats a share as a whole percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
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
    fn counts_agree_with_their_nouns() {
        assert_eq!(
            (count(1, "timeout"), count(2000, "timeout")),
            ("1 timeout".into(), "2,000 timeouts".into())
        );
    }
}
