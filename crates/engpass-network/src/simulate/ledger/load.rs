//! What datagrams carry.

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulate) enum Cargo {
    /// A message of a `udp-stream`.
    Datagram,
    /// A TCP segment with data, or a UDP datagram of any length.
    Segment,
    /// A TCP segment without.
    Control,
}

/// What a datagram carries: bytes of the transport's header, and behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulate) struct Load {
    pub(in crate::simulate) cargo: Cargo,
    pub(in crate::simulate) header: u32,
    pub(in crate::simulate) bytes: u32,
}
