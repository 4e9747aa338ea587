//! What datagrams carry.

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cargo {
    /// A message of a `udp-stream`.
    Datagram,
    /// A TCP segment with data, or a UDP datagram of any length.
    Segment,
    /// A TCP segment without.
    Control,
}

/// What a datagram carries: bytes of the transport's header, and behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// What it is.
    pub cargo: Cargo,
    /// Bytes of the transport's header.
    pub header: u32,
    /// Bytes behind it.
    pub bytes: u32,
}
