//! Transmissions of frames, in the form that the ledger posts.

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
