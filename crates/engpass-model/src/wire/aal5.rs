//! ATM cells and the AAL5 common part (ITU-T I.361 section 2, I.363.5 section 6).

use crc::{CRC_32_BZIP2, Crc};

/// Bytes of a cell on the line.
pub const CELL_BYTES: u64 = 53;
/// Bytes of a cell's header.
pub const CELL_HEADER_BYTES: u64 = 5;
/// Payload bytes of a cell.
pub const CELL_PAYLOAD_BYTES: u64 = 48;
/// Bits of a cell on the line.
pub const CELL_BITS: u64 = CELL_BYTES * 8;
/// Bytes of the AAL5 trailer: UU, CPI, length, CRC-32.
pub const TRAILER_BYTES: u64 = 8;
/// The largest AAL5 SDU: its length field has 16 bits.
pub const MAX_SDU_BYTES: u64 = 65_535;

/// Number of cells of the PDU that carries an SDU of `sdu_bytes` (encapsulation included).
pub const fn cells(sdu_bytes: u64) -> u64 {
    (sdu_bytes + TRAILER_BYTES).div_ceil(CELL_PAYLOAD_BYTES)
}

/// Bytes of padding in the PDU that carries an SDU of `sdu_bytes`: 0 to 47.
pub const fn padding(sdu_bytes: u64) -> u64 {
    cells(sdu_bytes) * CELL_PAYLOAD_BYTES - sdu_bytes - TRAILER_BYTES
}

/// The CRC-32 of the trailer (I.363.5 section 6.2.1.2). It is bzip2's CRC-32, most significant bit first.
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_BZIP2);

/// Appends the PDU that carries an SDU: the SDU, zero padding, and the trailer with UU = 0, CPI = 0, length and CRC-32.
///
/// # Panics
/// If the SDU is larger than [`MAX_SDU_BYTES`].
pub fn write_pdu(sdu: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(sdu.len()).expect("an AAL5 SDU has at most 65 535 bytes");
    let begin = out.len();
    out.extend_from_slice(sdu);
    out.resize(out.len() + padding(sdu.len() as u64) as usize, 0);
    out.extend([0, 0]);
    out.extend(length.to_be_bytes());
    let crc = CRC.checksum(&out[begin..]);
    out.extend(crc.to_be_bytes());
}

/// Returns the SDU in a PDU as a receiver extracts it (I.363.5 section 6.2.3), or `None` if the length or the CRC is wrong.
pub fn read_pdu(pdu: &[u8]) -> Option<&[u8]> {
    let (content, crc) = pdu.split_last_chunk::<4>()?;
    let (content, length) = content.split_last_chunk::<2>()?;
    let sdu = content.get(..usize::from(u16::from_be_bytes(*length)))?;
    let whole = cells(sdu.len() as u64) * CELL_PAYLOAD_BYTES == pdu.len() as u64;
    let good = CRC.checksum(&pdu[..pdu.len() - 4]) == u32::from_be_bytes(*crc);
    (whole && good).then_some(sdu)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn default_ip_mtu_fills_192_cells() {
        // 9180 IP + 8 LLC/SNAP + 8 trailer = 9196, padded to 9216 = 192 * 48.
        assert_eq!((cells(9188), padding(9188)), (192, 20));
        // A 40-byte acknowledgement: one cell without LLC/SNAP, two with it.
        assert_eq!((cells(40), cells(48)), (1, 2));
    }

    /// The three examples of I.363.5, appendix on the CRC: 40 bytes of zeros, of ones, and 1 to 40.
    #[test]
    fn aal5_crcs_match_i_363_5() {
        let counting: Vec<u8> = (1..=40).collect();
        for (sdu, crc) in
            [(vec![0; 40], 0x864d_7f99_u32), (vec![0xff; 40], 0xc55e_457a), (counting, 0xbf67_1ed0)]
        {
            let mut pdu = Vec::new();
            write_pdu(&sdu, &mut pdu);
            assert_eq!(pdu.len(), 48);
            assert_eq!(pdu[40..44], [0, 0, 0, 40]);
            assert_eq!(u32::from_be_bytes(pdu[44..].try_into().unwrap()), crc, "{crc:x}");
        }
        assert_eq!(CRC.checksum(b"123456789"), 0xfc89_1918);
    }

    proptest! {
        #[test]
        fn aal5_pdu_round_trips_and_detects_errors(
            sdu in proptest::collection::vec(any::<u8>(), 1..2000),
            bit in any::<proptest::sample::Index>(),
        ) {
            let mut pdu = Vec::new();
            write_pdu(&sdu, &mut pdu);
            prop_assert_eq!(pdu.len() as u64, cells(sdu.len() as u64) * CELL_PAYLOAD_BYTES);
            let cut: Vec<&[u8]> = pdu.chunks(CELL_PAYLOAD_BYTES as usize).collect();
            let (whole, less) = (cut.concat(), cut[1..].concat());
            prop_assert_eq!(read_pdu(&whole), Some(&sdu[..]));
            // A missing cell or a flipped bit is detected.
            prop_assert_eq!(read_pdu(&less), None);
            let bit = bit.index(pdu.len() * 8);
            pdu[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(read_pdu(&pdu), None);
        }
    }
}
