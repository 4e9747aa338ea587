//! The virtio header before every packet of a device (`struct virtio_net_hdr_v1`, virtio 1.2 section 5.1.6; of this host's byte order on TUN).

/// Its length in bytes.
pub(crate) const LENGTH: usize = 12;

const NEEDS_CHECKSUM: u8 = 1;
const ECN: u8 = 0x80;

/// What a super-packet is cut into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is no super-packet.
    #[default]
    Whole,
    /// TCP segments over IPv4.
    Tcp4,
    /// TCP segments over IPv6.
    Tcp6,
    /// UDP datagrams.
    Udp,
}

/// The header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    /// The checksum is still to be made: from `start` on, to be put at `start + offset`.
    pub(crate) checksum: Option<(u16, u16)>,
    pub(crate) kind: Kind,
    /// The TCP header says CWR, which only the first segment has.
    pub(crate) ecn: bool,
    /// Length of all headers; a hint.
    pub(crate) head: u16,
    /// Payload of each segment but the last.
    pub(crate) size: u16,
}

impl Offload {
    /// From the first bytes of what a device gave; `None` for kinds that nobody asked for.
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

    /// As a device takes it.
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
