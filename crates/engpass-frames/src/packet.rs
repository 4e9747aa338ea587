//! IP packets on frame links.

use engpass_model::queue::{self, Ecn};

use super::NONE;

/// An IP packet in the network.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The datagram of which it carries all or a part.
    pub datagram: u32,
    /// Length in bytes, IP header included.
    pub ip: u32,
    /// Index of the sender. Queue disciplines use it as the flow.
    pub sender: u32,
    /// Index of the packet's next step in the step table; the steps before it on its route are done.
    pub place: u32,
    /// Number of lines that carried the original before this fragment or copy was created; zero for an original.
    pub since: u16,
    /// Offset of the payload in the datagram, in units of 8 bytes (RFC 791 section 3.1).
    pub offset: u16,
    /// Time to live (RFC 791).
    pub ttl: u8,
    /// Priority, for queue disciplines.
    pub priority: u8,
    /// Its congestion mark.
    pub ecn: Ecn,
}

impl Packet {
    /// Stands for "no packet".
    pub const NONE: Self = Self {
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

    /// Returns the packet as a queue discipline sees it: its number is `id`, and it takes `bytes` bytes of the queue.
    #[inline(always)]
    pub fn queued(&self, id: u32, bytes: u32) -> queue::Packet {
        queue::Packet { id, bytes, flow: self.sender, priority: self.priority, ecn: self.ecn }
    }

    /// Returns true if it stands for "no packet".
    #[inline(always)]
    pub fn is_none(&self) -> bool {
        self.datagram == NONE
    }
}

impl Default for Packet {
    fn default() -> Self {
        Self::NONE
    }
}
