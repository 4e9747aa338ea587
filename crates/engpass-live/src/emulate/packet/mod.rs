//! Parses IP packets, GSO packets included, as a device gives them, and writes them as a device takes them. Pure.
//!
//! A GSO packet has the headers of its first segment and the payload of all (`docs/driver.md`, super-packets). [`Packet::read`] parses a packet once;
//! [`Packet::write`] builds the headers for any run of its segments. The payload is not copied.

mod checksum;
mod gro;
mod gso;
pub(crate) mod offload;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use engpass_model::wire::icmp::Errors;
use engpass_simulate::injection::Transport;

pub(crate) use gso::{Change, HEAD, forward, set_identification};
use offload::{Kind, Offload};

/// Reason why a packet is discarded as malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The packet or its headers are shorter than they say.
    Length,
    /// The packet is not IP.
    Version,
    /// The virtio header does not match the packet.
    Offload,
}

/// How to segment a GSO packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segmentation {
    /// Offset of the TCP or UDP header in the packet.
    start: u16,
    /// Payload bytes of each segment except the last.
    size: u16,
    tcp: bool,
}

/// Properties of a packet. The caller keeps the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) to: IpAddr,
    /// Length of the IP packet in bytes.
    pub(crate) length: u32,
    /// DSCP (upper six bits) and ECN (lower two bits, RFC 3168 section 5).
    pub(crate) class: u8,
    /// TTL or hop limit.
    pub(crate) ttl: u8,
    /// Protocol and ports; fragments have no ports.
    pub(crate) transport: Transport,
    /// True if routers must not fragment the packet: always for IPv6; for IPv4 with "don't fragment".
    pub(crate) whole: bool,
    /// ICMP errors that routers may send about the packet.
    pub(crate) errors: Errors,
    /// Length of all known headers in bytes: IP, and TCP, UDP or ICMP.
    pub(crate) headers: u16,
    /// Length of the headers that [`Self::write`] rebuilds, in bytes: all headers of a GSO packet, otherwise the IP header.
    head: u16,
    checksum: Option<(u16, u16)>,
    cut: Option<Segmentation>,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// "Don't fragment" flag in the byte that holds the upper bits of the fragment offset (RFC 791 section 3.1).
const DONT_FRAGMENT: u8 = 0x40;

impl Packet {
    /// Parses a packet that starts with its IP header. Bytes after the packet's length are padding.
    ///
    /// # Errors
    /// Fails with [`Malformed`].
    #[inline]
    pub(crate) fn read(offload: Offload, bytes: &[u8]) -> Result<Self, Malformed> {
        let first = *bytes.first().ok_or(Malformed::Length)?;
        let packet = match first >> 4 {
            4 => Self::read_v4(bytes),
            6 => Self::read_v6(bytes),
            _ => Err(Malformed::Version),
        }?;
        packet.inside(&bytes[..packet.length as usize]).with(offload, bytes)
    }

    /// Adds the properties that the transport header shows, as far as it is there.
    fn inside(mut self, bytes: &[u8]) -> Self {
        let v4 = bytes[0] >> 4 == 4;
        let protocol = if v4 { bytes[9] } else { bytes[6] };
        // Fragments count as packets without transport header, even the first one, which has it.
        let is_fragment = v4 && u16::from_be_bytes([bytes[6], bytes[7]]) & 0x3fff != 0;
        let inner = if is_fragment { &[][..] } else { &bytes[usize::from(self.head)..] };
        let header = match protocol {
            TCP => inner.get(12).map_or(0, |byte| u16::from(byte >> 4) * 4),
            UDP | ICMP | ICMPV6 => 8,
            _ => 0,
        };
        self.headers += header.min(inner.len() as u16);
        let ports = match inner.first_chunk() {
            Some([a, b, c, d]) if matches!(protocol, TCP | UDP) => {
                [u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])]
            }
            _ => [0; 2],
        };
        self.transport = Transport { protocol, ports };
        self.errors = Errors::about(bytes);
        self
    }

    fn read_v4(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; 20] = bytes.first_chunk().ok_or(Malformed::Length)?;
        let head = u16::from(header[0] & 0xf) * 4;
        let length = u16::from_be_bytes([header[2], header[3]]);
        if head < 20 || length < head || usize::from(length) > bytes.len() {
            return Err(Malformed::Length);
        }
        let to = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
        Ok(Self {
            to: to.into(),
            length: length.into(),
            class: header[1],
            ttl: header[8],
            transport: Transport::default(),
            whole: header[6] & DONT_FRAGMENT != 0,
            errors: Errors::None,
            headers: head,
            head,
            checksum: None,
            cut: None,
        })
    }

    fn read_v6(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; 40] = bytes.first_chunk().ok_or(Malformed::Length)?;
        let length = u32::from(u16::from_be_bytes([header[4], header[5]])) + 40;
        if length as usize > bytes.len() {
            return Err(Malformed::Length);
        }
        let mut to = [0; 16];
        to.copy_from_slice(&header[24..40]);
        Ok(Self {
            to: Ipv6Addr::from(to).into(),
            length,
            class: header[0] << 4 | header[1] >> 4,
            ttl: header[7],
            transport: Transport::default(),
            whole: true,
            errors: Errors::None,
            headers: 40,
            head: 40,
            checksum: None,
            cut: None,
        })
    }

    fn with(mut self, offload: Offload, bytes: &[u8]) -> Result<Self, Malformed> {
        self.checksum = offload.checksum;
        if let Some((start, offset)) = offload.checksum
            && (start < self.head || u32::from(start) + u32::from(offset) + 2 > self.length)
        {
            return Err(Malformed::Offload);
        }
        if offload.kind == Kind::Whole {
            return Ok(self);
        }
        // A GSO packet always leaves its checksum to the receiver.
        let (start, offset) = offload.checksum.ok_or(Malformed::Offload)?;
        let (tcp, v4) = (offload.kind != Kind::Udp, bytes[0] >> 4 == 4);
        let is_kind = match offload.kind {
            Kind::Tcp4 => v4 && bytes[9] == TCP,
            Kind::Tcp6 => !v4,
            _ => !v4 || bytes[9] == UDP,
        };
        let at = usize::from(start);
        let header =
            if tcp { usize::from(bytes.get(at + 12).ok_or(Malformed::Offload)? >> 4) * 4 } else { 8 };
        let (least, place) = if tcp { (20, 16) } else { (8, 6) };
        let head = at + header;
        if !is_kind
            || header < least
            || offset != place
            || offload.size == 0
            || head >= self.length as usize
            || head > HEAD
        {
            return Err(Malformed::Offload);
        }
        self.head = head as u16;
        self.cut = Some(Segmentation { start, size: offload.size, tcp });
        Ok(self)
    }

    /// Returns the length of the payload in bytes.
    fn payload(&self) -> u32 {
        self.length - u32::from(self.head)
    }

    /// Returns the number of segments, at least one.
    #[inline]
    pub(crate) fn segments(&self) -> u32 {
        self.cut.map_or(1, |cut| self.payload().div_ceil(cut.size.into()))
    }

    /// Returns the IP length of one segment in bytes.
    #[inline]
    pub(crate) fn segment(&self, index: u32) -> u32 {
        self.bytes_of(index..index + 1) as u32
    }

    /// Returns the total IP length of a run of segments in bytes.
    #[inline]
    pub(crate) fn bytes_of(&self, run: Range<u32>) -> u64 {
        u64::from(self.head) * u64::from(run.end - run.start) + self.payload_of(run).len() as u64
    }

    /// Returns the IP length of the largest segment in bytes.
    #[inline]
    pub(crate) fn largest(&self) -> u32 {
        self.segment(0)
    }

    /// Returns the range of a run's payload, counted from the first byte of the IP header.
    #[inline]
    pub(crate) fn payload_of(&self, run: Range<u32>) -> Range<usize> {
        let head = usize::from(self.head);
        let Some(cut) = self.cut else { return head..self.length as usize };
        let size = usize::from(cut.size);
        head + run.start as usize * size..(head + run.end as usize * size).min(self.length as usize)
    }
}
