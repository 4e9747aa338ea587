//! ATM cells and the AAL5 common part (ITU-T I.361 section 2, I.363.5 section 6).

/// Bytes of a cell on the line.
pub const CELL_BYTES: u64 = 53;
/// Bytes of a cell's header.
pub const CELL_HEADER_BYTES: u64 = 5;
/// Bytes that a cell carries.
pub const CELL_PAYLOAD_BYTES: u64 = 48;
/// Bits of a cell on the line.
pub const CELL_BITS: u64 = CELL_BYTES * 8;
/// Bytes of the AAL5 trailer: UU, CPI, length, CRC-32.
pub const TRAILER_BYTES: u64 = 8;
/// The largest AAL5 SDU: its length field has 16 bits.
pub const MAX_SDU_BYTES: u64 = 65_535;

/// Cells of the PDU that carries an SDU of `sdu_bytes` (encapsulation included).
pub const fn cells(sdu_bytes: u64) -> u64 {
    (sdu_bytes + TRAILER_BYTES).div_ceil(CELL_PAYLOAD_BYTES)
}

/// Bytes of padding in that PDU, 0 to 47.
pub const fn padding(sdu_bytes: u64) -> u64 {
    cells(sdu_bytes) * CELL_PAYLOAD_BYTES - sdu_bytes - TRAILER_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_ip_mtu_fills_192_cells() {
        // 9180 IP + 8 LLC/SNAP + 8 trailer = 9196, padded to 9216 = 192 * 48.
        assert_eq!((cells(9188), padding(9188)), (192, 20));
        // A 40-byte acknowledgement: one cell without LLC/SNAP, two with it.
        assert_eq!((cells(40), cells(48)), (1, 2));
    }
}
