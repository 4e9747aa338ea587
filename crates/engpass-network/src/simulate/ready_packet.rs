//! Packets that are ready at their host.

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
    /// Offset of its payload in the datagram, in units of 8 bytes.
    pub(super) offset: u16,
}

/// Added to the number of a route that begins with a circuit, to store it in place of a circuit direction.
pub(super) const ONWARD: u32 = 1 << 31;
/// Added to the number of a route that begins with a bond's decision step, where an endpoint stores it.
pub(super) const BONDED: u32 = 1 << 30;

/// How packets leave a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EgressPath {
    /// As cells on a circuit direction; from [`ONWARD`] on, on the circuit with which this route begins.
    Circuit { vc: u32, encapsulation: Encapsulation },
    /// As frames on this route.
    Frames { route: u32 },
    /// As frames, on a bond member chosen for each packet: the route begins with the decision step.
    Bond { route: u32 },
}

impl ReadyPacket {
    /// Returns the bytes that it takes in the NIC buffer: those of its AAL5 SDU, or of the packet.
    pub(super) fn memory(&self) -> u64 {
        match self.way {
            EgressPath::Circuit { encapsulation, .. } => encapsulation.sdu(self.ip),
            EgressPath::Frames { .. } | EgressPath::Bond { .. } => self.ip,
        }
    }
}
