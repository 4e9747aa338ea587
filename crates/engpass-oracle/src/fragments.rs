//! Fragments of IP datagrams (RFC 791, section 3.2, "An Example Fragmentation Procedure").

use engpass_model::wire::ip::IP_HEADER_BYTES;

/// Cuts `bytes` of IP payload for packets of at most `mtu` bytes: returns the offset and the bytes of each fragment.
pub(crate) fn fragments(bytes: u64, mtu: u64) -> Vec<(u64, u64)> {
    let room = mtu - IP_HEADER_BYTES;
    if bytes <= room {
        return vec![(0, bytes)];
    }
    // All but the last carry whole units of 8 bytes.
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
