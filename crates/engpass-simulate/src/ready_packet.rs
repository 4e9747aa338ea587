//! Packets that are ready for the NIC of their host.

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
    /// Offset of the payload in the datagram, in units of 8 bytes.
    pub(super) offset: u16,
}

/// Flag in a field that otherwise holds a circuit direction: the other bits are the number of a route that begins with a circuit.
pub(super) const ONWARD: u32 = 1 << 31;
/// Flag in an endpoint's route number: the route begins with a bond's decision step.
pub(super) const BONDED: u32 = 1 << 30;

/// How packets leave a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EgressPath {
    /// As cells on a circuit direction. If `vc` has the flag [`ONWARD`], it is the route that begins with the circuit.
    Circuit { vc: u32, encapsulation: Encapsulation },
    /// As frames on this route.
    Frames { route: u32 },
    /// As frames, on a bond member that is chosen for each packet: the route begins with a decision step.
    Bond { route: u32 },
}

impl EgressPath {
    /// Returns the route that begins with the decision step of a bond, if a bond member is chosen for each packet.
    pub(super) fn bond(self) -> Option<u32> {
        match self {
            Self::Bond { route } => Some(route),
            Self::Circuit { .. } | Self::Frames { .. } => None,
        }
    }
}

impl ReadyPacket {
    /// Returns the bytes that the packet takes in the NIC buffer: those of its AAL5 SDU on a circuit, else those of the packet.
    pub(super) fn memory(&self) -> u64 {
        match self.way {
            EgressPath::Circuit { encapsulation, .. } => encapsulation.sdu(self.ip),
            EgressPath::Frames { .. } | EgressPath::Bond { .. } => self.ip,
        }
    }
}
