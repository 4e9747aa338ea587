//! Exact arithmetic on quantities with units, for the values of a sweep.

use engpass_model::unit::Unit;

/// A quantity with its unit, held exactly: as a whole number of the smallest steps of its dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    /// Number of smallest steps: bytes, bit/s, picoseconds, or 10^-7 %.
    pub(crate) steps: i128,
    /// The unit; `None` for a number without one.
    unit: Option<&'static Unit>,
    /// The unit as it was written.
    word: String,
    /// The word after the unit of a rate: `line`, `cells` or `payload`.
    counts: Option<String>,
}

const LARGEST: i128 = 1 << 100;

impl Amount {
    /// Parses `"1.5 kB"`, `"130 Mbit/s line"`, `"16 %"` or `"5"`. Returns `None` if the text is not a quantity, is finer than the smallest step, or
    /// is too large.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let rest = rest.trim();
        let (word, counts) = match rest.rsplit_once(' ') {
            Some((word, counts @ ("line" | "cells" | "payload"))) => (word.trim(), Some(counts.to_string())),
            _ => (rest, None),
        };
        let unit = if word.is_empty() { None } else { Some(Unit::in_file(word)?) };
        if counts.is_some() && unit.is_none_or(|unit| unit.base != "bit/s") {
            return None;
        }
        let (digits, scale) = decimal(number)?;
        let scaled = digits.checked_mul(unit.map_or(1, |unit| unit.steps().into()))?;
        let steps = shifted(scaled, -scale)?;
        (steps <= LARGEST).then(|| Self { steps, unit, word: word.to_string(), counts })
    }

    /// Returns the base unit, and for a rate the word that says what it counts. Only amounts of equal dimension can be added.
    pub(crate) fn dimension(&self) -> String {
        let base = self.base_unit().map_or("", |unit| unit.name);
        match &self.counts {
            Some(counts) => format!("{base} {counts}"),
            None => base.to_string(),
        }
    }

    /// Returns `steps` as text in the unit of this amount if that is exact, otherwise in the base unit.
    pub(crate) fn with(&self, steps: i128) -> String {
        let counts = self.counts.as_deref().map(|word| format!(" {word}")).unwrap_or_default();
        let base = self.base_unit();
        for (name, unit) in [(self.word.as_str(), self.unit), (base.map_or("", |unit| unit.name), base)] {
            if let Some(number) = written(steps, unit) {
                let name = if name.is_empty() { String::new() } else { format!(" {name}") };
                return format!("{number}{name}{counts}");
            }
        }
        unreachable!("every amount is exact in its base unit")
    }

    /// Returns the base unit; per cent for a share.
    fn base_unit(&self) -> Option<&'static Unit> {
        self.unit.map(|unit| Unit::in_file(unit.base).unwrap_or(unit))
    }

    /// Returns the value in base units (bytes, bit/s, seconds), per cent as a fraction; for reports.
    pub(crate) fn number(&self) -> f64 {
        self.steps as f64 / 10f64.powi(self.unit.map_or(0, |unit| unit.places() as i32))
    }

    /// Returns the base unit for reports; empty for shares.
    pub(crate) fn base(&self) -> &'static str {
        self.unit.map_or("", |unit| unit.base)
    }
}

/// Returns `steps` as a decimal number in `unit`; `None` if that needs too many decimal places.
fn written(steps: i128, unit: Option<&Unit>) -> Option<String> {
    // The number is steps / 10^places / (mantissa * 10^exponent). A binary unit can need up to `EXTRA` more decimal places.
    const EXTRA: u32 = 12;
    let scaled = steps.checked_mul(10i128.pow(EXTRA))?;
    let (mantissa, exponent) = unit.map_or((1, 0), |unit| (i128::from(unit.mantissa), unit.exponent));
    if scaled % mantissa != 0 {
        return None;
    }
    let places = unit.map_or(0, |unit| unit.places() as i32) + exponent + EXTRA as i32;
    let mut digits = (scaled / mantissa).to_string();
    if places <= 0 {
        digits.push_str(&"0".repeat(places.unsigned_abs() as usize));
        return Some(digits);
    }
    let places = places as usize;
    if digits.len() <= places {
        digits.insert_str(0, &"0".repeat(places + 1 - digits.len()));
    }
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let fraction = fraction.trim_end_matches('0');
    Some(if fraction.is_empty() { whole.into() } else { format!("{whole}.{fraction}") })
}

/// Returns the digits and the count of decimal places of a decimal number without sign or exponent.
pub(crate) fn decimal(number: &str) -> Option<(i128, i32)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let digits: String = whole.chars().chain(fraction.chars()).filter(|c| *c != '_').collect();
    let scale = fraction.chars().filter(|c| *c != '_').count();
    if digits.is_empty() || digits.len() > 30 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, scale as i32))
}

/// Returns `value * 10^shift`, or `None` if that is not a whole number or overflows.
fn shifted(value: i128, shift: i32) -> Option<i128> {
    let factor = 10i128.checked_pow(shift.unsigned_abs())?;
    if shift >= 0 { value.checked_mul(factor) } else { (value % factor == 0).then(|| value / factor) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amount_parses_numbers_with_units() {
        let read = |text: &str| {
            let amount = Amount::parse(text).unwrap();
            (amount.number(), amount.base(), amount.with(amount.steps))
        };
        assert_eq!(read("9 kB"), (9000.0, "B", "9 kB".into()));
        assert_eq!(read("16.41 %"), (0.1641, "", "16.41 %".into()));
        assert_eq!(read("0.93 ms"), (0.00093, "s", "0.93 ms".into()));
        assert_eq!(read("130 Mbit/s line"), (130e6, "bit/s", "130 Mbit/s line".into()));
        assert_eq!(read("384 cells"), (384.0, "cells", "384 cells".into()));
        assert_eq!(read("133 MB/s"), (133e6, "B/s", "133 MB/s".into()));
        assert_eq!(read("7"), (7.0, "", "7".into()));
        assert_eq!(read("1.5 KiB"), (1536.0, "B", "1.5 KiB".into()));
        for no in ["", "kB", "1e3 B", "-1 B", "0.5 B", "1 kB line", "tail", "oc-3c", "1.2.3 s", "1 . B"] {
            assert_eq!(Amount::parse(no), None, "{no}");
        }
    }

    #[test]
    fn amount_falls_back_to_the_base_unit() {
        let minute = Amount::parse("1 min").unwrap();
        let second = Amount::parse("1 s").unwrap();
        assert_eq!(minute.with(minute.steps + second.steps), "61 s");
        assert_eq!(minute.with(minute.steps * 3 / 2), "1.5 min");
        let kibi = Amount::parse("1 KiB").unwrap();
        assert_eq!(kibi.with(1025), "1.0009765625 KiB");
    }

    proptest! {
        #[test]
        fn amount_text_round_trips(steps in 0i128..1_000_000_000_000_000_000, unit in 0usize..12) {
            let units = ["B", "kB", "GiB", "bit/s", "Gbit/s", "ps", "us", "s", "min", "%", "cells", "Mbit/s cells"];
            let like = Amount::parse(&format!("1 {}", units[unit])).unwrap();
            let text = like.with(steps);
            prop_assert_eq!(Amount::parse(&text).map(|amount| (amount.steps, amount.dimension())), Some((steps, like.dimension())));
        }
    }
}
