//! Bonds: the member by which a host sends a packet, and the looks of their monitors.

use crate::Network;
use crate::event_queue::Event;
use crate::ready_packet::{EgressPath, ReadyPacket};

impl Network {
    /// Lets the monitor of a bond look at the carriers of its members.
    pub(crate) fn on_bond_monitor(&mut self, bond: u32) {
        if let Some(again) = self.frames.check_carriers(bond, self.clock.now) {
            self.clock.events.push(again, 0, Event::BondMonitor(bond));
        }
    }

    /// Returns a ready packet with the route of the bond member that carries it. The choice is kept until the packet is in the NIC.
    #[inline(never)]
    pub(crate) fn choose_bond_member(
        &mut self,
        sender: usize,
        ready_packet: ReadyPacket,
        route: u32,
    ) -> ReadyPacket {
        let fragment = self.shared.datagrams[ready_packet.datagram].fragments > 1;
        let route = self.frames.member_for(sender, route, fragment);
        ReadyPacket { nic: self.frames.first_port(route), way: EgressPath::Frames { route }, ..ready_packet }
    }
}
