//! The header of an ATM cell at the user-network interface (ITU-T I.361 section 2.2, I.432.1 section 4.3.2).

use crc::{CRC_8_I_432_1, Crc};

use super::aal5::CELL_HEADER_BYTES;

/// Header error control: the CRC with x^8 + x^2 + x + 1 over the first four bytes, XORed with 01010101 (I.432.1 section 4.3.2.2).
const HEC: Crc<u8> = Crc::<u8>::new(&CRC_8_I_432_1);

/// VCIs below this are reserved (I.361 section 2.2.3, ATM Forum UNI 3.1 section 3.1): signalling, management, idle cells.
pub const FIRST_VCI: u16 = 32;

/// The header of a cell with user data. Generic flow control is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellHeader {
    /// Virtual path identifier.
    pub vpi: u8,
    /// Virtual channel identifier.
    pub vci: u16,
    /// Explicit forward congestion indication: the second bit of the payload type (I.361 section 2.2.4).
    pub efci: bool,
    /// The user's bit of the payload type: the cell ends an AAL5 PDU (I.363.5 section 6.2.1).
    pub end: bool,
    /// Cell loss priority: true for low priority.
    pub clp: bool,
}

impl CellHeader {
    /// The five bytes of the header. The last one is the header error control.
    pub fn bytes(&self) -> [u8; CELL_HEADER_BYTES as usize] {
        let word = u32::from(self.vpi) << 20
            | u32::from(self.vci) << 4
            | u32::from(self.efci) << 2
            | u32::from(self.end) << 1
            | u32::from(self.clp);
        let [a, b, c, d] = word.to_be_bytes();
        [a, b, c, d, hec([a, b, c, d])]
    }
}

/// Returns the header error control for the first four bytes of a header.
pub fn hec(bytes: [u8; 4]) -> u8 {
    HEC.checksum(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hec_matches_i_432_1_and_i_361() {
        // The idle cell of I.432.1 section 4.3.4 and the unassigned cell of I.361 section 2.2.
        assert_eq!(hec([0, 0, 0, 1]), 0x52);
        assert_eq!(hec([0, 0, 0, 0]), 0x55);
        // The check value of CRC-8/I-432-1.
        assert_eq!(HEC.checksum(b"123456789"), 0xa1);
    }

    #[test]
    fn cell_header_fields_match_i_361() {
        let header = CellHeader { vpi: 0xab, vci: 0x1234, efci: true, end: false, clp: true };
        assert_eq!(header.bytes()[..4], [0x0a, 0xb1, 0x23, 0x45]);
        let header = CellHeader { vci: 32, end: true, ..CellHeader::default() };
        assert_eq!(header.bytes()[..4], [0x00, 0x00, 0x02, 0x02]);
    }
}
