//! Lengths of IPv4, UDP and TCP headers, and IP fragmentation (RFC 791, RFC 768, RFC 9293).

/// Bytes of an IPv4 header without options.
pub const IP_HEADER_BYTES: u64 = 20;
/// Bytes of a UDP header.
pub const UDP_HEADER_BYTES: u64 = 8;
/// Bytes of a TCP header without options.
pub const TCP_HEADER_BYTES: u64 = 20;
/// The largest UDP payload in an IPv4 packet: 65 535 - 20 - 8.
pub const MAX_UDP_PAYLOAD: u64 = 65_507;
/// The longest IP packet: its length field has 16 bits (RFC 791 section 3.1).
pub const MAX_PACKET_BYTES: u64 = 65_535;
/// The smallest MTU an IPv4 link may have (RFC 791 section 3.2).
pub const MIN_MTU: u64 = 68;

/// The fragments of one IP datagram: `count` packets. Each but the last has `full` bytes of IP payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragments {
    /// Number of IP packets, at least 1.
    pub count: u64,
    /// IP payload of every fragment but the last, a multiple of 8 (RFC 791 section 2.3).
    pub full: u64,
    /// IP payload of the last fragment. It need not be a multiple of 8, so it may be up to 7 bytes longer than `full`.
    pub last: u64,
}

impl Fragments {
    /// Fragments an IP payload (UDP header included) for an MTU.
    ///
    /// # Panics
    /// If the MTU is below [`MIN_MTU`]; the testbed check rejects such MTUs.
    pub fn of(ip_payload: u64, mtu: u64) -> Self {
        assert!(mtu >= MIN_MTU, "an IPv4 MTU is at least {MIN_MTU} bytes");
        if ip_payload + IP_HEADER_BYTES <= mtu {
            return Self { count: 1, full: ip_payload, last: ip_payload };
        }
        let full = (mtu - IP_HEADER_BYTES) / 8 * 8;
        // The last fragment takes the rest as soon as the rest fits (RFC 791 section 3.2).
        let count = 1 + (ip_payload - (mtu - IP_HEADER_BYTES)).div_ceil(full);
        Self { count, full, last: ip_payload - (count - 1) * full }
    }

    /// IP payload of fragment `index`, from 0.
    pub fn payload(&self, index: u64) -> u64 {
        if index + 1 == self.count { self.last } else { self.full }
    }

    /// Fragments `packets`, IP payloads in bytes, for an MTU and returns the resulting payloads. Fragments are reassembled only at the
    /// receiver, and may be fragmented again (RFC 791 section 3.2).
    ///
    /// # Panics
    /// As [`of`](Self::of).
    pub fn cut(packets: &[u64], mtu: u64) -> Vec<u64> {
        let fragments = packets.iter().flat_map(|packet| {
            let cut = Self::of(*packet, mtu);
            (0..cut.count).map(move |index| cut.payload(index))
        });
        fragments.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn message_of_9153_bytes_needs_two_fragments_for_mtu_9180() {
        assert_eq!(Fragments::of(9152 + 8, 9180).count, 1);
        assert_eq!(Fragments::of(9153 + 8, 9180), Fragments { count: 2, full: 9160, last: 1 });
    }

    #[test]
    fn last_fragment_is_filled_up_to_the_mtu() {
        // 8980 bytes of IP payload fit into an MTU of 9000, but fragments other than the last carry only 8976.
        assert_eq!(Fragments::of(8976 + 8980, 9000), Fragments { count: 2, full: 8976, last: 8980 });
        assert_eq!(Fragments::of(8976 + 8981, 9000), Fragments { count: 3, full: 8976, last: 5 });
    }

    proptest! {
        #[test]
        fn fragments_cover_the_payload(payload in 1u64..65_516, mtu in 68u64..10_000) {
            let cut = Fragments::of(payload, mtu);
            prop_assert_eq!(Fragments::cut(&[payload], mtu).iter().sum::<u64>(), payload);
            for index in 0..cut.count {
                let length = cut.payload(index);
                prop_assert!(length > 0 && length + IP_HEADER_BYTES <= mtu);
                prop_assert!(index + 1 == cut.count || length.is_multiple_of(8));
            }
        }
    }
}
