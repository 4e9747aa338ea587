//! Builds the headers of one packet from consecutive segments (a run) of a GSO packet, as TCP segmentation offload and GRO of Linux do.

use std::ops::Range;

use super::checksum::{fold, replace, sum};
use super::offload::{self, Kind, Offload};
use super::{Packet, Segmentation, TCP, UDP};

/// Longest headers of a GSO packet in bytes: IPv6 with extensions, and TCP with options.
pub(crate) const HEAD: usize = 256;

/// `ECN` field of IP (RFC 3168 section 5).
const CE: u8 = 0b11;
const FIN: u8 = 0x01;
const PUSH: u8 = 0x08;
const CWR: u8 = 0x80;
/// Offset of the checksum in the UDP header (RFC 768).
const UDP_CHECKSUM: u16 = 6;

/// Changes that the network has made to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// True if the network marked the packet CE.
    pub(crate) ce: bool,
    /// Number of routers that the packet has passed.
    pub(crate) hops: u8,
}

impl Packet {
    /// Writes into `out` the virtio header, then `front` (an outer header), then the headers of the segments `run` as one packet. Returns the length written.
    /// `bytes` is the whole packet; its payload for this run is [`Packet::payload_of`].
    #[inline]
    pub(crate) fn write(
        &self,
        bytes: &[u8],
        run: Range<u32>,
        change: Change,
        front: &[u8],
        out: &mut [u8],
    ) -> usize {
        let head = usize::from(self.head);
        let begin = offload::LENGTH + front.len();
        out[offload::LENGTH..begin].copy_from_slice(front);
        let header = &mut out[begin..begin + head];
        header.copy_from_slice(&bytes[..head]);
        let mut offload = Offload { checksum: self.checksum, ..Offload::default() };
        if let Some(cut) = self.cut {
            let payload = self.payload_of(run.clone());
            offload = self.cut_header(header, cut, run, payload.len());
        }
        forward(header, change);
        if let Some((start, _)) = &mut offload.checksum {
            *start += front.len() as u16;
        }
        if offload.head > 0 {
            offload.head += front.len() as u16;
        }
        out[..offload::LENGTH].copy_from_slice(&offload.write());
        begin + head
    }

    /// Returns one segment as a packet on a wire, with a complete checksum.
    pub(crate) fn alone(&self, bytes: &[u8], segment: u32) -> Vec<u8> {
        let mut head = [0; offload::LENGTH + HEAD];
        let run = segment..segment + 1;
        let length = self.write(bytes, run.clone(), Change::default(), &[], &mut head);
        let mut packet = head[offload::LENGTH..length].to_vec();
        packet.extend_from_slice(&bytes[self.payload_of(run)]);
        let offload = head.first_chunk().and_then(Offload::read);
        if let Some((start, place)) = offload.and_then(|offload| offload.checksum) {
            let udp = place == UDP_CHECKSUM;
            let start = usize::from(start);
            let place = start + usize::from(place);
            // The checksum field holds the sum of the pseudo header (virtio 1.2, section 5.1.6.2).
            let checksum = match !fold(sum(&packet[start..])) {
                // A checksum of zero means "no checksum" in UDP (RFC 768).
                0 if udp => 0xffff,
                checksum => checksum,
            };
            packet[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        packet
    }

    fn cut_header(&self, header: &mut [u8], cut: Segmentation, run: Range<u32>, payload: usize) -> Offload {
        let v4 = header[0] >> 4 == 4;
        let length = header.len() + payload;
        if v4 {
            let identification = u16::from_be_bytes([header[4], header[5]]);
            replace(header, 4, identification.wrapping_add(run.start as u16));
            replace(header, 2, length as u16);
        } else {
            header[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        }
        let at = usize::from(cut.start);
        let inner = length - at;
        // Pseudo header: addresses, protocol, length (RFC 9293 section 3.1, RFC 8200 section 8.1).
        let addresses = if v4 { &header[12..20] } else { &header[8..40] };
        let protocol = u32::from(if cut.tcp { TCP } else { UDP });
        let pseudo = fold(sum(addresses) + protocol + inner as u32);
        let place = if cut.tcp { 16 } else { 6 };
        header[at + place..at + place + 2].copy_from_slice(&pseudo.to_be_bytes());
        let mut ecn = false;
        if cut.tcp {
            let sequence =
                u32::from_be_bytes([header[at + 4], header[at + 5], header[at + 6], header[at + 7]]);
            let sequence = sequence.wrapping_add(run.start * u32::from(cut.size));
            header[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
            if run.end < self.segments() {
                header[at + 13] &= !(FIN | PUSH);
            }
            // RFC 3168 section 6.1.2: a sender sets CWR once, so only the first segment keeps it.
            if run.start > 0 {
                header[at + 13] &= !CWR;
            }
            ecn = header[at + 13] & CWR != 0;
        } else {
            header[at + 4..at + 6].copy_from_slice(&(inner as u16).to_be_bytes());
        }
        let checksum = Some((cut.start, place as u16));
        if run.end - run.start == 1 {
            return Offload { checksum, ..Offload::default() };
        }
        let kind = match (cut.tcp, v4) {
            (true, true) => Kind::Tcp4,
            (true, false) => Kind::Tcp6,
            (false, _) => Kind::Udp,
        };
        Offload { checksum, kind, ecn, head: header.len() as u16, size: cut.size }
    }
}

/// Sets the identification of an IPv4 packet, by which its fragments are reassembled (RFC 791 section 2.3). IPv6 packets have none.
pub(crate) fn set_identification(header: &mut [u8], identification: u16) {
    if header[0] >> 4 == 4 {
        replace(header, 4, identification);
    }
}

/// Sets CE in an IP header and decrements its TTL or hop limit, as `change` says.
#[inline]
pub(crate) fn forward(header: &mut [u8], change: Change) {
    if header[0] >> 4 == 4 {
        if change.ce {
            let word = u16::from_be_bytes([header[0], header[1]]) | u16::from(CE);
            replace(header, 0, word);
        }
        if change.hops > 0 {
            let ttl = header[8].saturating_sub(change.hops);
            let word = u16::from_be_bytes([ttl, header[9]]);
            replace(header, 8, word);
        }
    } else {
        if change.ce {
            header[1] |= CE << 4;
        }
        header[7] = header[7].saturating_sub(change.hops);
    }
}
