//! Packets that their host has ready.

use engpass_model::wire::Encapsulation;

/// A packet that is ready for its NIC.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadyPacket {
    pub(super) flow: usize,
    pub(super) nic: usize,
    pub(super) way: EgressPath,
    /// Bytes of the packet, IP header included.
    pub(super) ip: u64,
    pub(super) datagram: u32,
    /// Where its payload begins in that of the datagram, in units of 8 bytes.
    pub(super) offset: u16,
}

/// Added to the number of a route that begins with a circuit, where a direction of a circuit is asked for.
pub(super) const ONWARD: u32 = 1 << 31;
/// Added to the number of a route that begins with a question of a bond, where an endpoint keeps it.
pub(super) const BONDED: u32 = 1 << 30;

/// How packets leave a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EgressPath {
    /// As cells on one direction of a circuit; or, from [`ONWARD`] on, on the circuit with which this route begins.
    Circuit { vc: u32, encapsulation: Encapsulation },
    /// As frames on this route.
    Frames { route: u32 },
    /// The same, on the member of a bond that is chosen for each packet: the route begins with the question.
    Bond { route: u32 },
}

impl ReadyPacket {
    /// Bytes that it takes of the NIC's memory: its AAL5 SDU, or the packet.
    pub(super) fn memory(&self) -> u64 {
        match self.way {
            EgressPath::Circuit { encapsulation, .. } => encapsulation.sdu(self.ip),
            EgressPath::Frames { .. } | EgressPath::Bond { .. } => self.ip,
        }
    }
}
