//! Frame counts of ports, for the outcome.

/// Traffic of a port in the measurement window. A frame counts as sent if its last bit leaves in the window.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulate) struct PortTally {
    /// Frames sent.
    pub(in crate::simulate) frames: u64,
    /// Bytes that they occupied on the line, framing included.
    pub(in crate::simulate) bytes: u64,
    /// Frames lost in the queue or on the line.
    pub(in crate::simulate) lost: u64,
}
