//! UDP datagrams of one flow that are due together, joined to a super-packet as GRO of Linux would.

use super::{Cut, Packet, UDP};

/// Bytes of its header (RFC 768).
const HEADER: u16 = 8;
/// The longest super-packet that datagrams are joined to, in bytes: the length of an IP packet has 16 bits.
const LONGEST: u32 = 60_000;

impl Packet {
    /// Whether this is a single datagram whose checksum the receiver's kernel takes for right, and which nobody has cut.
    fn is_datagram(&self, bytes: &[u8]) -> bool {
        let head = usize::from(self.head);
        let v4 = bytes[0] >> 4 == 4;
        let (protocol, whole) =
            if v4 { (bytes[9], bytes[6] & 0x3f == 0 && bytes[7] == 0) } else { (bytes[6], true) };
        // What `checksum` points to lies in the packet.
        self.cut.is_none()
            && self.checksum == Some((self.head, 6))
            && protocol == UDP
            && whole
            && u32::from(u16::from_be_bytes([bytes[head + 4], bytes[head + 5]]))
                == self.length - u32::from(self.head)
            && self.length > u32::from(self.head + HEADER)
    }

    /// Whether `other` may follow `count` datagrams as long as this one in a super-packet that this one begins: the same headers but for what each has of
    /// its own, and not longer.
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
        // Lengths, identification and checksum of IPv4, and the length of IPv6, are made anew; so are length and checksum of UDP.
        let ip = if bytes[0] >> 4 == 4 {
            same(0..2) && same(6..10) && same(12..head)
        } else {
            same(0..4) && same(6..head)
        };
        ip && same(head..head + 4)
    }

    /// The super-packet that this datagram and others behind it make, of so many bytes of payload in all. Its headers are made of this one's.
    pub(crate) fn joined(&self, payload: u32) -> Self {
        let head = self.head + HEADER;
        let cut = Cut { start: self.head, size: (self.length - u32::from(head)) as u16, tcp: false };
        Self { head, length: u32::from(head) + payload, cut: Some(cut), ..*self }
    }

    /// The payload of a datagram, without the header of UDP.
    pub(crate) fn datagram<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[usize::from(self.head + HEADER)..self.length as usize]
    }
}
