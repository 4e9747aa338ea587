//! Lines as the ledger sees them: their state at an instant, and transmissions of frames.

use crate::time::Pace;

/// One frame sent on a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transmission {
    /// Idle time of the line before the frame, in picoseconds.
    pub idle: u64,
    /// Part of `idle` during which the queue discipline withheld a queued frame, in picoseconds.
    pub held: u64,
    /// Begin of the transmission: whole picoseconds, rounded down, and the rest in ticks (fractions of a picosecond).
    pub begin: (u64, u64),
    /// Bytes on the line, physical overhead included.
    pub bytes: u64,
    /// Bytes of physical overhead: preamble, gap and the like.
    pub physical: u64,
    /// End of the transmission in picoseconds.
    pub end: u64,
}

/// Totals of one line for the ledger.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineTotals {
    /// Idle time since the beginning of the run, in picoseconds.
    pub idle: u64,
    /// Sum of the ticks by which the ends of earlier transmissions were rounded up.
    pub rounding: u64,
    /// Number of frames that began and ended in the measurement window.
    pub frames: u64,
    /// Bytes on the line of these frames.
    pub bytes: u64,
}

/// State of a line at an instant, up to which everything on it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineStatus {
    /// Picoseconds since the end of the last transmission, if none is in progress.
    pub idle: u64,
    /// Parts of a picosecond by which the end of the last transmission was rounded up.
    pub rounding: u64,
    /// Time since the transmission in progress began, in parts of a picosecond. The line's pace says how many parts a picosecond has.
    pub begun: u128,
}

impl LineStatus {
    /// Returns the status at the instant `at` of a line whose busy period began at `base` and whose last accepted cell leaves at `last_end`.
    pub fn of(slot: Pace, base: u64, last_end: u64, rounding: u64, at: u64) -> Self {
        match at.checked_sub(last_end) {
            Some(idle) => Self { idle, rounding, begun: 0 },
            None => {
                let (num, den) = slot.ratio();
                let ended = slot.units_within(at - base);
                let begun = u128::from(at - base) * u128::from(den) - u128::from(ended) * u128::from(num);
                Self { idle: 0, rounding: 0, begun }
            }
        }
    }
}

/// A line that carries frames.
pub trait FrameLine {
    /// Returns the index of the line's output port.
    fn number(&self) -> usize;
    /// Returns the line's totals so far.
    fn totals(&self) -> LineTotals;
    /// Returns what the line does at the instant `at`, after everything that began before. A transmission in progress at a window edge is reported separately.
    fn line_status(&self, at: u64) -> LineStatus;
    /// Returns the bytes that a packet with `ip` bytes takes on the line, framing included.
    fn line_bytes(&self, ip: u32) -> u64;
}
