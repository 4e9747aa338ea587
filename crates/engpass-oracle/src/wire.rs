//! Lengths of packets on lines: bytes of frames, and cells (docs/model.md, "Frames"; ITU-T I.363.5 for AAL5).

use engpass_model::wire::Framing;
use engpass_model::wire::ethernet::MIN_FRAME_BYTES;
use engpass_testbed::topology::LinkEnds;

/// Bytes of preamble and start-of-frame delimiter before an Ethernet frame.
pub(crate) const PREAMBLE: u64 = 8;
/// Bytes of the gap after it.
pub(crate) const GAP: u64 = 12;

/// Returns the bytes of header and FCS of an Ethernet frame, with the VLAN tag if the link has one.
pub(crate) fn ethernet_header(link: &LinkEnds) -> u64 {
    18 + if link.vlan { 4 } else { 0 }
}

/// Returns the bytes of padding in the Ethernet frame of an IP packet.
pub(crate) fn ethernet_padding(link: &LinkEnds, ip: u64) -> u64 {
    MIN_FRAME_BYTES.saturating_sub(ethernet_header(link) + ip)
}

/// Returns the bytes that an IP packet occupies on a line that carries frames.
pub(crate) fn line_bytes(link: &LinkEnds, ip: u64) -> u64 {
    // Both directions have the same framing; only the slot of a cell differs.
    match link.lines[0].framing {
        Framing::Ethernet => PREAMBLE + ethernet_header(link) + ip + ethernet_padding(link, ip) + GAP,
        Framing::Packets => link.overhead + ip,
        Framing::Cells { .. } => panic!("`{}` carries cells", link.name),
    }
}

/// Returns the number of cells of an AAL5 PDU: SDU, padding and a trailer of 8 bytes fill whole cells of 48 bytes.
pub(crate) fn cells(sdu: u64) -> u64 {
    (sdu + 8).div_ceil(48)
}
