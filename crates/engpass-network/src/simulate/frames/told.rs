//! What ports say of what they have sent, for the outcome.

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
