//! Ethernet frame lengths (IEEE 802.3, IEEE 802.1Q).

/// Bytes of preamble and start delimiter before a frame (IEEE 802.3 section 3.1.1).
pub const PREAMBLE_BYTES: u64 = 8;
/// Bytes of the gap after a frame (IEEE 802.3 section 4.4.2).
pub const GAP_BYTES: u64 = 12;
/// Bytes of the frame check sequence (IEEE 802.3 section 3.2.9).
pub const FCS_BYTES: u64 = 4;
/// Bytes of addresses, type and FCS of a frame (IEEE 802.3 section 3.1.1).
pub const HEADER_BYTES: u64 = 14 + FCS_BYTES;
/// Bytes of a VLAN tag (IEEE 802.1Q section 9.6).
pub const TAG_BYTES: u64 = 4;
/// The shortest frame, header and FCS included (IEEE 802.3 section 4.2.3.3). The tag counts towards these bytes, as in a station that tags
/// its own frames. A bridge may instead turn a 64-byte frame into a tagged one of 68 bytes (IEEE 802.1Q annex G); this is not modelled.
pub const MIN_FRAME_BYTES: u64 = 64;
/// The largest MTU. In frames longer than 11 450 bytes (91 607 bits before the FCS), CRC-32 no longer detects all 3-bit errors (Koopman,
/// 32-Bit Cyclic Redundancy Codes for Internet Applications, 2002). The standard allows 1500; jumbo frames usually mean 9000.
pub const MAX_MTU: u64 = 91_607 / 8 - 14 - TAG_BYTES;

/// Length of header, tag and FCS of a frame in bytes.
pub const fn header(tagged: bool) -> u64 {
    HEADER_BYTES + if tagged { TAG_BYTES } else { 0 }
}

/// Bytes of padding of a frame with `payload` bytes.
pub const fn padding(payload: u64, tagged: bool) -> u64 {
    MIN_FRAME_BYTES.saturating_sub(header(tagged) + payload)
}

/// Bytes on the line of a frame with `payload` bytes: preamble, frame and gap.
pub const fn line_bytes(payload: u64, tagged: bool) -> u64 {
    PREAMBLE_BYTES + header(tagged) + payload + padding(payload, tagged) + GAP_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_line_bytes_match_hand_calculation() {
        assert_eq!((line_bytes(1500, false), line_bytes(1500, true)), (1538, 1542));
        assert_eq!(line_bytes(9000, false), 9038);
        // The shortest frame carries 46 bytes, or 42 with a tag, and takes 84 bytes of the line in both cases.
        assert_eq!((line_bytes(46, false), line_bytes(42, true), line_bytes(0, true)), (84, 84, 84));
        assert_eq!((padding(46, false), padding(42, true), padding(40, true)), (0, 0, 2));
        assert_eq!(line_bytes(43, true), 85);
        assert_eq!(MAX_MTU, 11_432);
    }
}
