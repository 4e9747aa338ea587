//! Packets that nodes make for themselves: ARP packets, IGMP messages and keepalives. They belong to no flow. (ICMP messages of routers belong to one: `icmp.rs`.)
//!
//! Each kind has flow directions, two for each sender, of which the second is unused. They follow those of endpoints and ICMP messages.

use super::Frames;

/// The kinds of these packets, in the order of their numbers in queue disciplines and of their flow directions.
#[derive(Clone, Copy, Debug)]
pub enum ControlKind {
    /// ARP packets.
    Arp,
    /// IGMP messages.
    Igmp,
    /// Keepalives of tunnels.
    Keepalive,
}

impl Frames {
    /// Returns the number of the first flow direction of a kind in a network with `endpoints` endpoints.
    pub fn first_control_direction(&self, kind: ControlKind, endpoints: usize) -> usize {
        let arp = endpoints + 2 * self.icmp.ways.len();
        match kind {
            ControlKind::Arp => arp,
            ControlKind::Igmp => arp + self.arp.count_directions(),
            ControlKind::Keepalive => arp + self.arp.count_directions() + self.igmp.count_directions(),
        }
    }

    /// Returns the number of the first flow direction of ARP packets, of IGMP messages and of keepalives, and the first one behind them.
    pub fn control_directions(&self, endpoints: usize) -> [usize; 4] {
        use ControlKind::{Arp, Igmp, Keepalive};
        let [arp, igmp, keepalives] =
            [Arp, Igmp, Keepalive].map(|kind| self.first_control_direction(kind, endpoints));
        [arp, igmp, keepalives, keepalives + self.keepalives.count_directions()]
    }
}
