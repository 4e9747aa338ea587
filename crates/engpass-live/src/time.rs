//! Durations on the wire of the protocol: nanoseconds.

use engpass_model::unit::{Duration, Quantity};

/// A second in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// A millisecond in nanoseconds.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// A microsecond in nanoseconds.
pub(crate) const MICROSECOND: u64 = 1000;

/// Parses a text such as `60 s` to nanoseconds.
///
/// # Errors
/// Fails when the text is not a duration; the error gives cause and help.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    Duration::parse(text).map(|duration| duration.time().ps() / 1000)
}
