//! Spellings of quantities that other tools accept, and what to write instead.

use super::Decimal;
use super::duration::Duration;
use super::rate::Rate;
use super::size::Size;

/// Returns the cure for a quantity with an unknown unit, if the unit is a usual spelling of one that the quantity has: ``write `100 Mbit/s` ``.
/// `units` are the units of the quantity.
pub(super) fn cure(number: Decimal, unit: &str, units: &[&str]) -> Option<String> {
    if units.contains(&"cells/s") {
        let basis = |cure| {
            format!("{cure} and what it counts: `line`, `cells` or `payload`, as in `130 Mbit/s line`")
        };
        rate(number, unit).map(basis)
    } else if units.contains(&"bit/s") {
        rate(number, unit)
    } else if units.contains(&"KiB") {
        size(number, unit)
    } else if units.contains(&"ms") {
        duration(number, unit)
    } else {
        None
    }
}

/// Returns what to write for a number with a decimal comma or with separators of thousands; `rest` begins behind the digits before the first comma.
pub(super) fn comma(text: &str, rest: &str) -> Option<String> {
    if !rest.strip_prefix(',')?.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number = text.trim().split(|c: char| !(c.is_ascii_digit() || c == ',' || c == '.')).next()?;
    let grouped = number.split('.').next()?.split(',').skip(1).all(|group| group.len() == 3);
    let plain = text.replacen(number, &number.replace(',', ""), 1);
    let point = text.replacen(',', ".", 1);
    let (plain, point) = (plain.trim(), point.trim());
    Some(match grouped {
        // It could be either.
        true if number.matches([',', '.']).count() == 1 => {
            format!(
                "`{text}` has a comma: write `{plain}` if it separates thousands, or `{point}` if it begins decimals"
            )
        }
        true => format!("`{text}` has commas: write thousands without a separator, `{plain}`"),
        false => format!("`{text}` has a decimal comma: write a point, `{point}`"),
    })
}

/// Splits a prefix such as `M` off a unit. Returns its factor and the rest.
fn prefixed(unit: &str) -> (u128, &str) {
    for (power, prefix) in [(1, ["Ki", "ki"]), (2, ["Mi", "mi"]), (3, ["Gi", "gi"]), (4, ["Ti", "ti"])] {
        if let Some(rest) = prefix.iter().find_map(|prefix| unit.strip_prefix(prefix)) {
            return (1u128 << (10 * power), rest);
        }
    }
    match unit.chars().next() {
        Some('k' | 'K') => (1_000, &unit[1..]),
        Some('M' | 'm') => (1_000_000, &unit[1..]),
        Some('G' | 'g') => (1_000_000_000, &unit[1..]),
        Some('T' | 't') => (1_000_000_000_000, &unit[1..]),
        _ => (1, unit),
    }
}

fn rate(number: Decimal, unit: &str) -> Option<String> {
    let (factor, rest) = prefixed(unit);
    let bits = match rest {
        "bps" | "b/s" | "bit/s" | "Bit/s" | "bits/s" | "bit/sec" | "bits/sec" | "bit" | "bits" | "b" => 1,
        "B/s" | "Bps" | "byte/s" | "bytes/s" | "Byte/s" | "B/sec" => 8,
        _ => return None,
    };
    let rate = Rate(number.times(factor * bits).ok()?);
    Some(match bits {
        8 => format!("it counts bytes, and a rate is in bits per second: write `{rate}`"),
        _ => format!("write `{rate}`"),
    })
}

fn size(number: Decimal, unit: &str) -> Option<String> {
    let (factor, rest) = prefixed(unit);
    match rest {
        "" | "B" | "b" | "byte" | "bytes" | "Byte" | "Bytes" => {}
        "bit" | "bits" | "Bit" => {
            let bits = number.times(factor).ok().filter(|bits| bits.is_multiple_of(8))?;
            return Some(format!("a size is in bytes: write `{}`", Size(bits / 8)));
        }
        _ => return None,
    }
    let bytes = Size(number.times(factor).ok()?);
    if !factor.is_power_of_two() && factor <= 1_000_000_000 {
        let power = (factor.ilog10() / 3) as usize;
        let (decimal, binary) = (["kB", "MB", "GB"][power - 1], ["KiB", "MiB", "GiB"][power - 1]);
        return Some(format!(
            "write `{number} {decimal}` for units of {factor} B, or `{number} {binary}` for units of {} B",
            1u64 << (10 * power)
        ));
    }
    Some(format!("write `{bytes}`"))
}

fn duration(number: Decimal, unit: &str) -> Option<String> {
    let ps: u128 = match unit.to_ascii_lowercase().as_str() {
        "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => 1_000,
        "usec" | "usecs" | "microsecond" | "microseconds" => 1_000_000,
        "msec" | "msecs" | "millisecond" | "milliseconds" => 1_000_000_000,
        "sec" | "secs" | "second" | "seconds" => 1_000_000_000_000,
        "m" | "mins" | "minute" | "minutes" => 60_000_000_000_000,
        "hr" | "hrs" | "hour" | "hours" => 3_600_000_000_000_000,
        "day" | "days" => 86_400_000_000_000_000,
        _ => return None,
    };
    Some(format!("write `{}`", Duration(number.times(ps).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::super::{Duration, FramedRate, Quantity, Rate, Size};

    fn error<Q: Quantity>(text: &str) -> String {
        Q::parse(text).err().expect("the text is not valid")
    }

    #[test]
    fn error_for_a_foreign_unit_shows_the_right_unit() {
        let rates = [
            ("100 Mbps", "`Mbps` is not a unit of a rate: write `100 Mbit/s`"),
            ("1.5 Kb/s", "`Kb/s` is not a unit of a rate: write `1.5 kbit/s`"),
            ("2 Tbit/s", "`Tbit/s` is not a unit of a rate: write `2000 Gbit/s`"),
            (
                "10 MB/s",
                "`MB/s` is not a unit of a rate: it counts bytes, and a rate is in bits per second: write `80 Mbit/s`",
            ),
        ];
        for (text, message) in rates {
            assert_eq!(error::<Rate>(text), message);
        }
        let sizes = [
            (
                "64 KB",
                "`KB` is not a unit of a size: write `64 kB` for units of 1000 B, or `64 KiB` for units of 1024 B",
            ),
            ("1500 bytes", "`bytes` is not a unit of a size: write `1500 B`"),
            ("8 kbit", "`kbit` is not a unit of a size: a size is in bytes: write `1 kB`"),
            (
                "9 bits",
                "`bits` is not a unit of a size: use one of `B`, `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`",
            ),
            ("1 kib", "`kib` is not a unit of a size: write `1 KiB`"),
        ];
        for (text, message) in sizes {
            assert_eq!(error::<Size>(text), message);
        }
        assert_eq!(
            error::<FramedRate>("130 Mbps"),
            "`Mbps` is not a unit of a rate on a framed medium: write `130 Mbit/s` and what it counts: `line`, `cells` or `payload`, as in `130 Mbit/s line`"
        );
        assert_eq!(error::<Duration>("2 hours"), "`hours` is not a unit of a duration: write `2 h`");
        assert_eq!(error::<Duration>("90 mins"), "`mins` is not a unit of a duration: write `90 min`");
        assert_eq!(error::<Duration>("5 msec"), "`msec` is not a unit of a duration: write `5 ms`");
        assert_eq!(error::<Duration>("5 days"), "`days` is not a unit of a duration: write `5 d`");
        assert_eq!(
            error::<Duration>("2 weeks"),
            "`weeks` is not a unit of a duration: use one of `ps`, `ns`, `us`, `µs`, `ms`, `s`, `min`, `h`, `d`"
        );
    }

    #[test]
    fn error_for_a_comma_shows_how_to_write_the_number() {
        assert_eq!(
            error::<Rate>("1,5 Mbit/s"),
            "`1,5 Mbit/s` has a decimal comma: write a point, `1.5 Mbit/s`"
        );
        assert_eq!(
            error::<Size>("65,536 B"),
            "`65,536 B` has a comma: write `65536 B` if it separates thousands, or `65.536 B` if it begins decimals"
        );
        assert_eq!(
            error::<Size>("1,048,576 B"),
            "`1,048,576 B` has commas: write thousands without a separator, `1048576 B`"
        );
        assert_eq!(
            error::<Size>("9, B"),
            "`, B` is not a unit of a size: use one of `B`, `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`"
        );
    }
}
