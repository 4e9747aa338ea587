//! Class and size of datagrams.

/// The class of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramClass {
    /// A message of a `udp-stream`.
    FixedLength,
    /// A TCP segment with data, or a UDP datagram of any length.
    AnyLength,
    /// A TCP segment without data, or another packet that counts as ACK and control.
    Control,
}

/// Class and size of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The class.
    pub class: DatagramClass,
    /// Bytes of the transport's header.
    pub header: u32,
    /// Bytes behind the transport header.
    pub bytes: u32,
}
