//! How a circuit wraps an IP packet in an AAL5 SDU (RFC 2684, RFC 2364, RFC 2516, af-lane-0021).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The encapsulation of IP on a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Encapsulation {
    /// Routed IP behind LLC/SNAP, 8 bytes (RFC 2684 section 5.1, RFC 2225).
    #[default]
    LlcSnap,
    /// Routed IP alone on its circuit, 0 bytes (RFC 2684 section 6.1).
    VcMux,
    /// Bridged Ethernet without FCS behind LLC/SNAP: 10 + 14 bytes, frame padded to 60 (RFC 2684 section 5.2).
    BridgedLlc,
    /// Bridged Ethernet without FCS, VC-multiplexed: 2 + 14 bytes, frame padded to 60 (RFC 2684 section 6.2).
    BridgedVcMux,
    /// PPP over AAL5, VC-multiplexed: 2 bytes of protocol field (RFC 2364 section 4).
    PppoaVcMux,
    /// PPP over AAL5 behind LLC/NLPID: 4 + 2 bytes (RFC 2364 section 5).
    PppoaLlc,
    /// PPPoE over bridged Ethernet, LLC: 10 + 14 + 6 + 2 bytes (RFC 2516, RFC 2684 section 5.2).
    PppoeLlc,
    /// PPPoE over bridged Ethernet, VC-multiplexed: 2 + 14 + 6 + 2 bytes (RFC 2516, RFC 2684 section 6.2).
    PppoeVcMux,
    /// LAN emulation 1.0 data frame: 2 bytes LECID + 14 bytes Ethernet, at least 62 (af-lane-0021).
    Lane,
}

/// An Ethernet frame without FCS is at least this long.
const MIN_FRAME: u64 = 60;
/// Bytes of an Ethernet header: two addresses and a type.
const ETHERNET_HEADER: u64 = 14;

impl Encapsulation {
    /// Bytes in front of the bridged frame, bytes of the frame's own headers, and whether it is padded.
    const fn parts(self) -> (u64, u64, bool) {
        match self {
            Self::LlcSnap => (8, 0, false),
            Self::VcMux => (0, 0, false),
            Self::BridgedLlc => (10, ETHERNET_HEADER, true),
            Self::BridgedVcMux => (2, ETHERNET_HEADER, true),
            Self::PppoaVcMux => (2, 0, false),
            Self::PppoaLlc => (6, 0, false),
            Self::PppoeLlc => (10, ETHERNET_HEADER + 8, true),
            Self::PppoeVcMux => (2, ETHERNET_HEADER + 8, true),
            Self::Lane => (2, ETHERNET_HEADER, true),
        }
    }

    /// Bytes of the AAL5 SDU that carries an IP packet of `ip_bytes`.
    pub const fn sdu(self, ip_bytes: u64) -> u64 {
        let (front, inner, padded) = self.parts();
        let frame = inner + ip_bytes;
        front + if padded && frame < MIN_FRAME { MIN_FRAME } else { frame }
    }

    /// The largest IP packet that the encapsulation is specified for, in bytes. It is the MTU of circuits without an `mtu`.
    pub const fn default_mtu(self) -> u64 {
        match self {
            // RFC 2225 section 7: 9180, the same as SMDS.
            Self::LlcSnap | Self::VcMux => 9180,
            Self::PppoaVcMux | Self::PppoaLlc | Self::BridgedLlc | Self::BridgedVcMux | Self::Lane => 1500,
            // RFC 2516 section 7: 1500 less 6 bytes PPPoE and 2 bytes PPP.
            Self::PppoeLlc | Self::PppoeVcMux => 1492,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::aal5::cells;

    #[test]
    fn dsl_cell_counts_match_hand_calculation() {
        // 1500-byte IP over PPPoA VC-mux and 1492-byte IP over PPPoE LLC both need 32 cells.
        assert_eq!(cells(Encapsulation::PppoaVcMux.sdu(1500)), 32);
        assert_eq!(cells(Encapsulation::PppoeLlc.sdu(1492)), 32);
        // A 40-byte acknowledgement: 1 cell alone, 2 behind PPP.
        assert_eq!(cells(Encapsulation::VcMux.sdu(40)), 1);
        assert_eq!(cells(Encapsulation::PppoaVcMux.sdu(40)), 2);
        assert_eq!(cells(Encapsulation::PppoeLlc.sdu(40)), 2);
    }

    #[test]
    fn lane_carries_an_ethernet_frame_of_72_bytes_in_two_cells() {
        // 72 bytes with FCS are 54 bytes of IP behind 14 bytes of header.
        assert_eq!(Encapsulation::Lane.sdu(54), 70);
        assert_eq!(cells(Encapsulation::Lane.sdu(54)), 2);
        // The shortest frame: 62 bytes with LECID.
        assert_eq!(Encapsulation::Lane.sdu(20), 62);
    }
}
