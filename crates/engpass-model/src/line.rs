//! What transmitters of frames say of what they have sent.

/// A frame on a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transmission {
    /// How long the line was idle before it, in picoseconds.
    pub idle: u64,
    /// For how long of that a discipline held it back.
    pub held: u64,
    /// When it began: whole picoseconds, and ticks.
    pub begin: (u64, u64),
    /// Its bytes, those around the frame included.
    pub bytes: u64,
    /// Those around the frame: preamble, gap and the like.
    pub physical: u64,
    /// When all of them have left, in picoseconds.
    pub end: u64,
}

/// What a line has done, for the books.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Idle time since the beginning, in picoseconds.
    pub idle: u64,
    /// By how many ticks the ends before were rounded up.
    pub rounding: u64,
    /// Frames that were begun and ended in the window.
    pub frames: u64,
    /// Their bytes on the line.
    pub bytes: u64,
}
