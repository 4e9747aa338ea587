//! Internet checksums (RFC 1071). The driver changes headers, never a payload.

/// Sums 16-bit words without folding. An odd last byte counts as the upper half of a word.
#[inline]
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(2);
    let rest = words.remainder().first().map_or(0, |&byte| u32::from(byte) << 8);
    rest + words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>()
}

/// Folds a sum to 16 bits by adding the carries.
#[inline]
pub(super) fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Replaces a 16-bit word of an IPv4 header and updates the checksum incrementally (RFC 1624, equation 3).
#[inline]
pub(super) fn replace(header: &mut [u8], at: usize, word: u16) {
    const CHECKSUM: usize = 10;
    let read = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (old, checksum) = (read(at), read(CHECKSUM));
    let checksum = !fold(u32::from(!checksum) + u32::from(!old) + u32::from(word));
    header[at..at + 2].copy_from_slice(&word.to_be_bytes());
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
}
