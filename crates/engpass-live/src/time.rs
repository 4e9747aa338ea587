//! Lengths of time on the wire of the protocol: nanoseconds.

/// A second in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// A millisecond in nanoseconds.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// A microsecond in nanoseconds.
pub(crate) const MICROSECOND: u64 = 1000;
