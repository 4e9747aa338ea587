//! Quantities in a testbed file: a decimal number, a space and a unit.
//!
//! Units are mandatory: `"9180 B"` is a size, `9180` is an error. Values are exact: text with a fraction of the smallest unit (a tenth of a
//! byte, less than a picosecond) is rejected, never rounded.

mod buffer;
mod byte_rate;
mod decimal;
mod duration;
mod frame_rate;
mod rate;
mod share;
mod size;
mod spelling;
mod table;
pub mod wording;

pub use buffer::{BufferSize, CellCount, FillLevel, QueueLimit};
pub use byte_rate::ByteRate;
pub use duration::Duration;
pub use frame_rate::FrameRate;
pub use rate::{Basis, FramedRate, Rate};
pub use share::Share;
pub use size::Size;
pub use table::{UNITS, Unit};

use decimal::{Decimal, Unfit};

/// A quantity that can be parsed from text and described in a schema.
pub trait Quantity: Sized {
    /// Name in messages, such as "a size".
    const WHAT: &'static str;
    /// Accepted units, as listed in messages.
    const UNITS: &'static [&'static str];
    /// A valid text, for messages and the schema.
    const EXAMPLE: &'static str;
    /// Parses `text`. The error message names cause and remedy.
    fn parse(text: &str) -> Result<Self, String>;
}

/// Splits `text` into number and unit, and returns the quantity in smallest steps. `base` is its base unit.
fn scaled<Q: Quantity>(text: &str, base: &str) -> Result<u64, String> {
    let (number, unit) = Decimal::split(text).ok_or_else(|| not_a::<Q>(text))?;
    let exponent = unit
        .strip_prefix(['e', 'E'])
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
    if exponent {
        return Err(format!(
            "`{text}` has an exponent: write {} in plain digits, like `{}`",
            Q::WHAT,
            Q::EXAMPLE
        ));
    }
    if unit.is_empty() {
        return Err(format!("`{text}` has no unit: {} is written like `{}`", Q::WHAT, Q::EXAMPLE));
    }
    if let Some(error) = spelling::comma(text, unit) {
        return Err(error);
    }
    let found = Unit::in_file(unit).filter(|unit| unit.base == base).ok_or_else(|| {
        let cure = spelling::cure(number, unit, Q::UNITS);
        let cure = cure.unwrap_or_else(|| format!("use one of {}", quoted(Q::UNITS)));
        format!("`{unit}` is not a unit of {}: {cure}", Q::WHAT)
    })?;
    number.times(found.steps().into()).map_err(|unfit| match unfit {
        Unfit::TooLarge => format!("`{text}` is too large: use at most {} {unit}", u64::MAX / found.steps()),
        Unfit::TooFine => format!("`{text}` has too many decimals for this quantity: use fewer decimals"),
    })
}

fn not_a<Q: Quantity>(text: &str) -> String {
    // `-5 GB/s` is well-formed, but a negative quantity is not allowed.
    if text.trim().strip_prefix('-').is_some_and(|rest| Decimal::split(rest).is_some()) {
        return format!("`{text}` is negative: write {} like `{}`", Q::WHAT, Q::EXAMPLE);
    }
    format!("`{text}` is not {}: write it like `{}`", Q::WHAT, Q::EXAMPLE)
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Formats a number of smallest steps in the largest unit with this base unit of which it is a multiple.
fn in_units(steps: u64, base: &str) -> String {
    let units = UNITS.iter().filter(|unit| unit.in_files && unit.base == base);
    let exact = units.filter(|unit| steps.is_multiple_of(unit.steps()) && steps >= unit.steps());
    let largest = exact.max_by_key(|unit| unit.steps());
    largest.map_or_else(|| format!("0 {base}"), |unit| format!("{} {}", steps / unit.steps(), unit.name))
}

/// Implements `Deserialize` from a string with a unit, `Serialize` to a string (through `Display`) and `JsonSchema` as a string, for a
/// [`Quantity`].
macro_rules! quantity_serde {
    ($name:ident) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        use $crate::unit::Quantity;
                        write!(f, "{} in quotes, like \"{}\"", $name::WHAT, $name::EXAMPLE)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        <$name as $crate::unit::Quantity>::parse(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                use $crate::unit::Quantity;
                schemars::json_schema!({
                    "type": "string",
                    "title": $name::WHAT,
                    "description": format!("{} with a unit: {}", $name::WHAT, $name::UNITS.join(", ")),
                    "examples": [$name::EXAMPLE],
                })
            }
        }
    };
}
use quantity_serde;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_are_written_in_their_shortest_form() {
        let texts = [
            "9 kB",
            "512 KiB",
            "9180 B",
            "0 B",
            "10 s",
            "1 us",
            "0 s",
            "1 min",
            "16.41 %",
            "100 %",
            "155.52 Mbit/s",
        ];
        for text in texts {
            let written = Size::parse(text).map(|size| size.to_string());
            let written = written.or_else(|_| Duration::parse(text).map(|time| time.to_string()));
            let written = written.or_else(|_| Share::parse(text).map(|share| share.to_string()));
            let written = written.or_else(|_| Rate::parse(text).map(|rate| rate.to_string()));
            assert_eq!(written.as_deref(), Ok(text));
        }
        for text in ["130 Mbit/s line", "130 Mbit/s", "57959 cells/s", "16 %"] {
            assert_eq!(FramedRate::parse(text).unwrap().to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn quantity_text_round_trips(value in 0u64..u64::MAX) {
            prop_assert_eq!(Size::parse(&Size(value).to_string()), Ok(Size(value)));
            prop_assert_eq!(Duration::parse(&Duration(value).to_string()), Ok(Duration(value)));
            prop_assert_eq!(Share::parse(&Share(value).to_string()), Ok(Share(value)));
            prop_assert_eq!(Rate::parse(&Rate(value).to_string()), Ok(Rate(value)));
            prop_assert_eq!(FrameRate::parse(&FrameRate(value).to_string()), Ok(FrameRate(value)));
            prop_assert_eq!(ByteRate::parse(&ByteRate(value).to_string()), Ok(ByteRate(value)));
            prop_assert_eq!(CellCount::parse(&CellCount(value).to_string()), Ok(CellCount(value)));
            prop_assert_eq!(FillLevel::parse(&FillLevel::Cells(value).to_string()), Ok(FillLevel::Cells(value)));
            prop_assert_eq!(BufferSize::parse(&BufferSize::Bytes(value).to_string()), Ok(BufferSize::Bytes(value)));
            prop_assert_eq!(BufferSize::parse(&BufferSize::Packets(value).to_string()), Ok(BufferSize::Packets(value)));
            for limit in [QueueLimit::packets(value), QueueLimit::bytes(value), QueueLimit { packets: value, bytes: value / 3 }] {
                prop_assert_eq!(QueueLimit::parse(&limit.to_string()), Ok(limit));
            }
        }
    }
}
