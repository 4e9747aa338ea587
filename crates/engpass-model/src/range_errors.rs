//! Range errors: invalid values that a component finds in its own table, beyond wrong types.

use std::borrow::Cow;

use crate::unit::{CellCount, Duration, FillLevel, Rate, Size};

/// An error of one value of the testbed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeError {
    /// Keys from the component's table down to the value: `["pauses", "share"]`.
    pub path: Vec<Cow<'static, str>>,
    /// Why the value is invalid. The text completes "`key` is 5 kB: …".
    pub cause: String,
    /// A valid alternative.
    pub help: String,
}

/// The range errors of one component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeErrors {
    list: Vec<RangeError>,
}

/// Maximum of any duration in a testbed: 24 hours.
pub const LONGEST: Duration = Duration(86_400_000_000_000_000);
/// Maximum line rate in bit/s. At this rate a bit takes one picosecond.
pub const FASTEST: u64 = 1_000_000_000_000;

impl RangeErrors {
    /// Adds an error for the value at `path`.
    pub fn add(&mut self, path: &[&'static str], cause: impl Into<String>, help: impl Into<String>) {
        let path = path.iter().map(|key| Cow::Borrowed(*key)).collect();
        self.list.push(RangeError { path, cause: cause.into(), help: help.into() });
    }

    /// Adds an error for a value in the table `place` whose key is a `name` from the testbed file.
    pub fn add_named(&mut self, place: &[&'static str], name: &str, cause: &str, help: String) {
        let keys = place.iter().map(|key| Cow::Borrowed(*key));
        let path = keys.chain([Cow::Owned(name.to_string())]).collect();
        self.list.push(RangeError { path, cause: cause.into(), help });
    }

    /// Adds the errors of an `inner` component whose table is at `place` in the table of this one.
    pub fn under(&mut self, place: &[&'static str], inner: RangeErrors) {
        self.list.extend(inner.into_iter().map(|complaint| RangeError {
            path: place.iter().map(|key| Cow::Borrowed(*key)).chain(complaint.path).collect(),
            ..complaint
        }));
    }

    /// Adds the errors of an `inner` component whose table is at `below` in a table with a `name` from the testbed file.
    pub fn under_named(
        &mut self,
        place: &[&'static str],
        name: &str,
        below: &[&'static str],
        inner: RangeErrors,
    ) {
        let fixed = |keys: &[&'static str]| keys.iter().map(|key| Cow::Borrowed(*key)).collect::<Vec<_>>();
        self.list.extend(inner.into_iter().map(|complaint| RangeError {
            path: [fixed(place), vec![Cow::Owned(name.to_owned())], fixed(below), complaint.path].concat(),
            ..complaint
        }));
    }

    /// Adds an error unless `least <= value <= most`, both in `unit`s.
    pub fn between(
        &mut self,
        path: &[&'static str],
        value: u64,
        (least, most): (u64, u64),
        unit: &str,
        cause: &str,
    ) {
        if value < least || value > most {
            let range = match unit {
                "B" => format!("{} to {}", Size(least), Size(most)),
                "bit/s" => format!("{} to {}", Rate(least), Rate(most)),
                _ => format!("{least} to {most} {unit}"),
            };
            self.add(path, cause, format!("give {range}"));
        }
    }

    /// Adds an error for a threshold that a queue of `capacity` cells never exceeds.
    pub fn below_capacity(&mut self, path: &[&'static str], level: FillLevel, capacity: u64) {
        if capacity > 0 && level.of(capacity) >= capacity {
            let cause = format!(
                "the queue of a port holds at most {}, so it never exceeds this threshold",
                CellCount(capacity)
            );
            self.add(path, cause, "give less than the whole `output_buffer`, such as `90 %`");
        }
    }

    /// Adds an error for a time of more than `most`.
    pub fn at_most(&mut self, path: &[&'static str], value: Option<Duration>, most: Duration) {
        if value.is_some_and(|value| value > most) {
            self.add(path, "that is too long", format!("give at most {most}"));
        }
    }

    /// Adds an error for a time of zero or of more than `most`.
    pub fn positive(&mut self, path: &[&'static str], value: Duration, most: Duration) {
        if value.0 == 0 {
            self.add(path, "it cannot be zero", format!("give more than zero, at most {most}"));
        }
        self.at_most(path, Some(value), most);
    }
}

impl IntoIterator for RangeErrors {
    type Item = RangeError;
    type IntoIter = std::vec::IntoIter<RangeError>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
