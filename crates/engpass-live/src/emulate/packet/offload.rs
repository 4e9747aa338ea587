//! The virtio header before every packet of a device (`struct virtio_net_hdr_v1`, virtio 1.2 section 5.1.6; TUN uses native byte order).

/// Length of the header in bytes.
pub(crate) const LENGTH: usize = 12;

const NEEDS_CHECKSUM: u8 = 1;
const ECN: u8 = 0x80;

/// Kind of GSO packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not a GSO packet.
    #[default]
    Whole,
    /// TCP segments over IPv4.
    Tcp4,
    /// TCP segments over IPv6.
    Tcp6,
    /// UDP datagrams.
    Udp,
}

/// The header of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    /// `(start, offset)` if the checksum is missing: it must cover the bytes from `start` on, and belongs at `start + offset`.
    pub(crate) checksum: Option<(u16, u16)>,
    pub(crate) kind: Kind,
    /// True if the TCP header has CWR set, which only the first segment keeps.
    pub(crate) ecn: bool,
    /// Length of all headers in bytes; only a hint.
    pub(crate) head: u16,
    /// Payload bytes of each segment except the last.
    pub(crate) size: u16,
}

impl Offload {
    /// Parses the header. Returns `None` for GSO kinds that were not enabled.
    #[inline]
    pub(crate) fn read(bytes: &[u8; LENGTH]) -> Option<Self> {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let kind = match bytes[1] & !ECN {
            0 => Kind::Whole,
            1 => Kind::Tcp4,
            4 => Kind::Tcp6,
            5 => Kind::Udp,
            _ => return None,
        };
        let checksum = (bytes[0] & NEEDS_CHECKSUM != 0).then(|| (number(6), number(8)));
        Some(Self { checksum, kind, ecn: bytes[1] & ECN != 0, head: number(2), size: number(4) })
    }

    /// Encodes the header for a device.
    #[inline]
    pub(crate) fn write(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut put = |at: usize, number: u16| bytes[at..at + 2].copy_from_slice(&number.to_ne_bytes());
        put(2, self.head);
        put(4, self.size);
        if let Some((start, offset)) = self.checksum {
            put(6, start);
            put(8, offset);
        }
        bytes[0] = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        let kind = match self.kind {
            Kind::Whole => 0,
            Kind::Tcp4 => 1,
            Kind::Tcp6 => 4,
            Kind::Udp => 5,
        };
        bytes[1] = kind | if self.ecn { ECN } else { 0 };
        bytes
    }
}
