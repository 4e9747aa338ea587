//! Frames and encapsulations as bytes: headers and padding of an IP packet on a link or a circuit.

use etherparse::{EtherType, Ethernet2Header, SingleVlanHeader, VlanId, VlanPcp, ether_type};

use super::Encapsulation;
use super::ethernet::{self, FCS_BYTES, TAG_BYTES};

/// EtherType for local experiments (IEEE 802 section 9.2.4), for frames whose content has no EtherType.
pub const EXPERIMENTAL: u16 = 0x88b5;

/// The MAC addresses of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Macs {
    /// MAC address of the sender.
    pub source: [u8; 6],
    /// MAC address of the receiver.
    pub destination: [u8; 6],
}

/// The VLAN tag of a frame (IEEE 802.1Q section 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// VLAN identifier, below 4095.
    pub vlan: u16,
}

/// EtherType of PPPoE session frames (RFC 2516 section 4).
const PPPOE_SESSION: EtherType = EtherType(0x8864);
/// PPPoE session ID (RFC 2516 section 4). It is fixed, because PPPoE discovery is not modelled.
const SESSION: u16 = 1;
/// LAN emulation client identifier of the sender (af-lane-0021 section 4.1.1): none.
const LECID: u16 = 0;
/// PPP protocol numbers of IPv4 and IPv6 (RFC 1332 section 3.1, RFC 5072 section 3).
const PPP_IP: [u8; 2] = [0x00, 0x21];
const PPP_IPV6: [u8; 2] = [0x00, 0x57];
/// LLC/SNAP header of bridged Ethernet without FCS, and two bytes of padding (RFC 2684 section 5.2).
const BRIDGED: [u8; 10] = [0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0x00, 0x07, 0x00, 0x00];

/// Appends an Ethernet frame with an IP packet, without preamble and FCS, padded to the shortest frame.
///
/// # Panics
/// If a tag has a priority above 7 or a VLAN above 4095.
pub fn write_ethernet(macs: Macs, tag: Option<Tag>, ip: &[u8], out: &mut Vec<u8>) {
    write_payload(macs, tag, (type_of(ip), ip), out);
}

/// As [`write_ethernet`], with a payload of the EtherType `inner`.
pub(super) fn write_payload(
    macs: Macs,
    tag: Option<Tag>,
    (inner, payload): (EtherType, &[u8]),
    out: &mut Vec<u8>,
) {
    let tagged = tag.is_some();
    let ether_type = if tagged { ether_type::VLAN_TAGGED_FRAME } else { inner };
    out.extend(header(macs, ether_type).to_bytes());
    if let Some(tag) = tag {
        let tag = SingleVlanHeader {
            pcp: VlanPcp::try_new(tag.priority).expect("a priority code point has 3 bits"),
            drop_eligible_indicator: false,
            vlan_id: VlanId::try_new(tag.vlan).expect("a VLAN identifier has 12 bits"),
            ether_type: inner,
        };
        let bytes = tag.to_bytes();
        debug_assert_eq!(bytes.len() as u64, TAG_BYTES);
        out.extend(bytes);
    }
    out.extend_from_slice(payload);
    let padding = ethernet::padding(payload.len() as u64, tagged);
    out.resize(out.len() + padding as usize, 0);
}

/// EtherType of an IP packet, from the version in its first four bits.
fn type_of(ip: &[u8]) -> EtherType {
    if ip.first().is_some_and(|first| first >> 4 == 6) { ether_type::IPV6 } else { ether_type::IPV4 }
}

fn header(macs: Macs, ether_type: EtherType) -> Ethernet2Header {
    Ethernet2Header { source: macs.source, destination: macs.destination, ether_type }
}

impl Encapsulation {
    /// Appends the AAL5 SDU that carries an IP packet. `macs` is used by bridged encapsulations only.
    pub fn write_sdu(self, macs: Macs, ip: &[u8], out: &mut Vec<u8>) {
        let begin = out.len();
        self.write_front(macs, type_of(ip), ip.len(), out);
        out.extend_from_slice(ip);
        // Bridged frames are padded to the minimum Ethernet length.
        out.resize(begin + self.sdu(ip.len() as u64) as usize, 0);
    }

    /// Appends an SDU of `bytes` bytes without defined content. Bridged encapsulations begin with the header of a frame of type
    /// [`EXPERIMENTAL`]. For encapsulations that carry only IP packets, appends nothing and returns `false`.
    pub fn write_opaque_sdu(self, macs: Macs, bytes: usize, out: &mut Vec<u8>) -> bool {
        let bridged = match self {
            Self::BridgedLlc | Self::PppoeLlc => Self::BridgedLlc,
            Self::BridgedVcMux | Self::PppoeVcMux => Self::BridgedVcMux,
            Self::Lane => Self::Lane,
            Self::LlcSnap | Self::VcMux | Self::PppoaVcMux | Self::PppoaLlc => return false,
        };
        let begin = out.len();
        bridged.write_front(macs, EtherType(EXPERIMENTAL), 0, out);
        out.resize(begin + bytes, 0);
        true
    }

    /// Appends the headers in front of an IP packet of `ip_bytes` bytes, or in front of the content of a bridged frame of another type.
    fn write_front(self, macs: Macs, inner: EtherType, ip_bytes: usize, out: &mut Vec<u8>) {
        let ppp = if inner == ether_type::IPV6 { PPP_IPV6 } else { PPP_IP };
        match self {
            // RFC 2684 section 5.1: LLC AA-AA-03, OUI 00-00-00, EtherType.
            Self::LlcSnap => {
                out.extend([0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00]);
                out.extend(inner.0.to_be_bytes());
            }
            Self::VcMux => {}
            Self::BridgedLlc | Self::PppoeLlc => out.extend(BRIDGED),
            // RFC 2684 section 6.2: two bytes of padding.
            Self::BridgedVcMux | Self::PppoeVcMux => out.extend([0, 0]),
            Self::PppoaVcMux => out.extend(ppp),
            // RFC 2364 section 5: LLC FE-FE-03, NLPID CF.
            Self::PppoaLlc => {
                out.extend([0xfe, 0xfe, 0x03, 0xcf]);
                out.extend(ppp);
            }
            Self::Lane => out.extend(LECID.to_be_bytes()),
        }
        match self {
            Self::BridgedLlc | Self::BridgedVcMux | Self::Lane => out.extend(header(macs, inner).to_bytes()),
            Self::PppoeLlc | Self::PppoeVcMux => {
                out.extend(header(macs, PPPOE_SESSION).to_bytes());
                // RFC 2516 section 4: version 1, type 1, code 0; the length counts the PPP protocol field.
                out.extend([0x11, 0x00]);
                out.extend(SESSION.to_be_bytes());
                out.extend((ip_bytes as u16 + 2).to_be_bytes());
                out.extend(ppp);
            }
            _ => {}
        }
    }
}

/// Length in bytes of the frame that [`write_ethernet`] appends for an IP packet of `ip_bytes` bytes.
pub const fn captured_bytes(ip_bytes: u64, tagged: bool) -> u64 {
    ethernet::header(tagged) - FCS_BYTES + ip_bytes + ethernet::padding(ip_bytes, tagged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MACS: Macs = Macs { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2] };

    #[test]
    fn llc_snap_header_matches_rfc_2684() {
        let mut sdu = Vec::new();
        Encapsulation::LlcSnap.write_sdu(MACS, &[0x45], &mut sdu);
        assert_eq!(sdu, [0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45]);
    }

    #[test]
    fn vlan_tag_precedes_the_ethertype() {
        let mut frame = Vec::new();
        write_ethernet(MACS, Some(Tag { priority: 5, vlan: 1 }), &[0x45; 20], &mut frame);
        assert_eq!(frame[12..18], [0x81, 0x00, 0xa0, 0x01, 0x08, 0x00]);
        assert_eq!(frame.len(), 60);
        assert!(frame[38..].iter().all(|byte| *byte == 0));
    }

    proptest! {
        /// Written frames and SDUs have the lengths that the length functions return.
        #[test]
        fn written_frame_length_equals_computed_length(ip in 20usize..2000, tagged: bool) {
            let packet = vec![0x45; ip];
            let tag = tagged.then_some(Tag { priority: 0, vlan: 1 });
            let mut frame = Vec::new();
            write_ethernet(MACS, tag, &packet, &mut frame);
            let around = ethernet::PREAMBLE_BYTES + FCS_BYTES + ethernet::GAP_BYTES;
            prop_assert_eq!(frame.len() as u64 + around, ethernet::line_bytes(ip as u64, tagged));
            prop_assert_eq!(frame.len() as u64, captured_bytes(ip as u64, tagged));
            for encapsulation in ALL {
                let mut sdu = Vec::new();
                encapsulation.write_sdu(MACS, &packet, &mut sdu);
                prop_assert_eq!(sdu.len() as u64, encapsulation.sdu(ip as u64), "{:?}", encapsulation);
            }
        }
    }

    const ALL: [Encapsulation; 9] = [
        Encapsulation::LlcSnap,
        Encapsulation::VcMux,
        Encapsulation::BridgedLlc,
        Encapsulation::BridgedVcMux,
        Encapsulation::PppoaVcMux,
        Encapsulation::PppoaLlc,
        Encapsulation::PppoeLlc,
        Encapsulation::PppoeVcMux,
        Encapsulation::Lane,
    ];
}
