//! What transmitters say of what they have sent, for the outcome and for the books.

/// A frame on a line.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulate) struct Transmission {
    /// How long the line was idle before it, in picoseconds.
    pub(in crate::simulate) idle: u64,
    /// For how long of that a discipline held it back.
    pub(in crate::simulate) held: u64,
    /// When it began: whole picoseconds, and ticks.
    pub(in crate::simulate) begin: (u64, u64),
    /// Its bytes, those around the frame included, and how many these are.
    pub(in crate::simulate) bytes: u64,
    pub(in crate::simulate) physical: u64,
    /// When all of them have left, in picoseconds.
    pub(in crate::simulate) end: u64,
}

/// What went through a port in the counted time: what was sent when its last bit had left in it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulate) struct PortTally {
    /// Frames sent.
    pub(in crate::simulate) frames: u64,
    /// Bytes of the line that they took.
    pub(in crate::simulate) bytes: u64,
    /// Frames lost in the queue or on the line.
    pub(in crate::simulate) lost: u64,
}

/// What a line has done, for the books.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulate) struct Told {
    /// Idle time since the beginning in picoseconds, and by how many ticks the ends before were rounded up.
    pub(in crate::simulate) idle: u64,
    pub(in crate::simulate) rounding: u64,
    /// Frames, and their bytes, that were begun and ended in the window.
    pub(in crate::simulate) frames: u64,
    pub(in crate::simulate) bytes: u64,
}
