//! Joins UDP datagrams of one flow that are due together into a GSO packet, as Linux GRO does.

use super::{Packet, Segmentation, UDP};

/// Length of the UDP header in bytes (RFC 768).
const HEADER: u16 = 8;
/// Length up to which datagrams are joined into a GSO packet, in bytes. The length field of an IP packet has 16 bits.
const LONGEST: u32 = 60_000;

impl Packet {
    /// Returns whether the packet is one unfragmented datagram whose checksum the receiving kernel takes as correct.
    fn is_datagram(&self, bytes: &[u8]) -> bool {
        let head = usize::from(self.head);
        let v4 = bytes[0] >> 4 == 4;
        let (protocol, whole) =
            if v4 { (bytes[9], bytes[6] & 0x3f == 0 && bytes[7] == 0) } else { (bytes[6], true) };
        // The first condition on `checksum`: the packet leaves the UDP checksum, 6 bytes behind `head`, to the receiving kernel.
        self.cut.is_none()
            && self.checksum == Some((self.head, 6))
            && protocol == UDP
            && whole
            && u32::from(u16::from_be_bytes([bytes[head + 4], bytes[head + 5]]))
                == self.length - u32::from(self.head)
            && self.length > u32::from(self.head + HEADER)
    }

    /// Returns whether the datagram `other` can follow `count` datagrams of this length in a GSO packet that starts with this one: it is not longer, and its
    /// headers differ only in fields that are rebuilt.
    pub(crate) fn may_be_followed(&self, bytes: &[u8], count: u32, other: &Self, theirs: &[u8]) -> bool {
        let head = usize::from(self.head);
        if self.head != other.head
            || other.length > self.length
            || self.length * (count + 1) > LONGEST
            || !other.is_datagram(theirs)
            || !self.is_datagram(bytes)
        {
            return false;
        }
        let same = |range: std::ops::Range<usize>| bytes[range.clone()] == theirs[range];
        // The rebuilt fields are length, identification and checksum of IPv4, the length of IPv6, and length and checksum of UDP.
        let ip = if bytes[0] >> 4 == 4 {
            same(0..2) && same(6..10) && same(12..head)
        } else {
            same(0..4) && same(6..head)
        };
        ip && same(head..head + 4)
    }

    /// Returns the GSO packet that starts with this datagram and has `payload` bytes of payload in all. Its headers are those of this datagram.
    pub(crate) fn joined(&self, payload: u32) -> Self {
        let head = self.head + HEADER;
        let cut = Segmentation { start: self.head, size: (self.length - u32::from(head)) as u16, tcp: false };
        Self { head, length: u32::from(head) + payload, cut: Some(cut), ..*self }
    }

    /// Returns the payload of a datagram, without the UDP header.
    pub(crate) fn datagram<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[usize::from(self.head + HEADER)..self.length as usize]
    }
}
