//! Packets that routers cannot forward unchanged: those that are too long (RFC 791 section 3.2), and those whose TTL expires.

use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::{Frames, Packet, Step};

/// What a router does with a packet that it cannot forward unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It drops the packet, whose TTL has expired.
    Expired,
    /// It drops the packet, which is too long and must not be fragmented.
    TooBig,
    /// It fragments the packet.
    Fragment,
    /// It fragments the outer packet of a tunnel: outer headers carry no DF bit.
    FragmentOuter,
}

impl Packet {
    /// Decrements the TTL at the router in front of `step`. Returns true if the packet continues: it is not too long, and its TTL has not expired.
    #[inline]
    pub fn passes_router(&mut self, step: &Step) -> bool {
        // Hosts may send packets with a TTL of 0.
        self.ttl = self.ttl.saturating_sub(1);
        self.ttl > 0 && self.ip <= step.mtu
    }

    /// Returns the fragment with number `index` of this packet. The first one has the offset `begin`, and the packet has crossed `since` lines.
    pub fn fragment(&self, cut: &Fragments, index: u64, begin: u16, since: u16) -> Self {
        Self {
            ip: (cut.payload(index) + IP_HEADER_BYTES) as u32,
            offset: begin + (index * cut.full / 8) as u16,
            // The router has decremented the TTL of the whole packet, and does so again when the fragment continues.
            ttl: self.ttl + 1,
            since,
            ..*self
        }
    }
}

impl Frames {
    /// Returns what the router in front of `step` does with a packet that it cannot forward unchanged. `has_df_bit` is true if the packet carries the DF bit.
    pub fn stop(&self, packet: &Packet, step: Step, has_df_bit: impl FnOnce() -> bool) -> Stop {
        let in_tunnel = !self.tunnels.at(packet.place).is_empty();
        if packet.ttl == 0 {
            Stop::Expired
        } else if !in_tunnel && has_df_bit() || self.refuses(step) {
            Stop::TooBig
        } else if in_tunnel {
            Stop::FragmentOuter
        } else {
            Stop::Fragment
        }
    }
}
