//! Bonds: the member by which a host sends a packet.

use engpass_frames::Frames;

use crate::packet_store::PacketStore;
use crate::ready_packet::{EgressPath, ReadyPacket};

/// Returns a ready packet with the bond member that it leaves by, chosen when it became ready; unchanged if there is no bond.
#[inline(always)]
pub(crate) fn with_bond_member(
    sender: usize,
    ready_packet: ReadyPacket,
    frames: &mut Frames,
    datagrams: &PacketStore,
) -> ReadyPacket {
    match ready_packet.way {
        EgressPath::Bond { route } => choose_bond_member(sender, ready_packet, route, frames, datagrams),
        _ => ready_packet,
    }
}

/// Returns a ready packet with the route of the bond member that carries it. The choice is kept until the packet is in the NIC.
#[inline(never)]
fn choose_bond_member(
    sender: usize,
    ready_packet: ReadyPacket,
    route: u32,
    frames: &mut Frames,
    datagrams: &PacketStore,
) -> ReadyPacket {
    let fragment = datagrams[ready_packet.datagram].fragments > 1;
    let route = frames.member_for(sender, route, fragment);
    ReadyPacket { nic: frames.first_port(route), way: EgressPath::Frames { route }, ..ready_packet }
}
