//! Fragments of IP datagrams (RFC 791, section 3.2, "An Example Fragmentation Procedure").

use engpass_model::wire::ip::IP_HEADER_BYTES;

/// Fragments `bytes` of IP payload into packets of at most `mtu` bytes. Returns the offset and the length of each fragment in bytes.
pub(crate) fn fragments(bytes: u64, mtu: u64) -> Vec<(u64, u64)> {
    let room = mtu - IP_HEADER_BYTES;
    if bytes <= room {
        return vec![(0, bytes)];
    }
    // All fragments but the last carry a multiple of 8 bytes.
    let full = room / 8 * 8;
    let mut cut = Vec::new();
    let mut offset = 0;
    while bytes - offset > room {
        cut.push((offset, full));
        offset += full;
    }
    cut.push((offset, bytes - offset));
    cut
}
