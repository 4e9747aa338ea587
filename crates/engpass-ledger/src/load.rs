//! Class and size of datagrams.

/// The class of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cargo {
    /// A message of a `udp-stream`.
    Datagram,
    /// A TCP segment with data, or a UDP datagram of any length.
    Segment,
    /// A TCP segment without data, or another packet that counts as ACK and control.
    Control,
}

/// Class and size of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The class.
    pub cargo: Cargo,
    /// Bytes of the transport's header.
    pub header: u32,
    /// Bytes behind the transport header.
    pub bytes: u32,
}
