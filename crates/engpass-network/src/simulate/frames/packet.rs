//! IP packets on frame links.

use engpass_model::queue::Ecn;

use super::NONE;

/// An IP packet in the network.
#[derive(Clone, Copy, Debug)]
pub(in crate::simulate) struct Packet {
    pub(in crate::simulate) datagram: u32,
    /// Length in bytes, IP header included.
    pub(super) ip: u32,
    /// Index of the sender. Queue disciplines use it as the flow.
    pub(super) sender: u32,
    /// Index of the packet's next step in the step table; the steps before it on its route are done.
    pub(in crate::simulate) place: u32,
    /// Number of lines that carried the original before this fragment or copy was created; zero for an original.
    pub(super) since: u16,
    /// Offset of the payload in the datagram, in units of 8 bytes (RFC 791 section 3.1).
    pub(super) offset: u16,
    pub(super) ttl: u8,
    pub(super) priority: u8,
    pub(super) ecn: Ecn,
}

impl Packet {
    /// Stands for "no packet".
    pub(in crate::simulate) const NONE: Self = Self {
        datagram: NONE,
        ip: 0,
        sender: 0,
        place: 0,
        since: 0,
        offset: 0,
        ttl: 0,
        priority: 0,
        ecn: Ecn::NotCapable,
    };

    #[inline(always)]
    pub(in crate::simulate) fn is_none(&self) -> bool {
        self.datagram == NONE
    }

    /// Returns the time to live.
    pub(in crate::simulate) fn ttl(&self) -> u8 {
        self.ttl
    }
}

impl Default for Packet {
    fn default() -> Self {
        Self::NONE
    }
}
