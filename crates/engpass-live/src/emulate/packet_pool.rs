//! Stores packets while they are in the network, each once, in a buffer that is used again.

use std::ops::Range;

use super::packet::Packet;

/// Buffer sizes in bytes: for one packet, for a few, and for the longest that a device gives, headers included.
const SIZES: [usize; 3] = [2 << 10, 16 << 10, 66 << 10];

/// One segment of a stored packet. Its number goes through the network as the packet's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) slot: u32,
    pub(super) segment: u32,
}

impl Token {
    /// Encodes the token with `generation`, so that tokens of a reused slot differ.
    fn number(self, generation: u32) -> u64 {
        u64::from(generation) << 40 | u64::from(self.slot) << 16 | u64::from(self.segment)
    }
}

/// A stored packet.
struct Kept {
    packet: Packet,
    bytes: Box<[u8]>,
    /// Offset of the packet in `bytes`.
    begin: usize,
    /// Number of delivery reports still to come, for all segments of the packet.
    left: u32,
    generation: u32,
}

/// All stored packets.
pub(super) struct PacketPool {
    kept: Vec<Kept>,
    free: Vec<u32>,
    /// Free buffers of each size.
    buffers: [Vec<Box<[u8]>>; 3],
    /// Buffer into which the next packet is read.
    reading: Box<[u8]>,
}

/// Returns the index of the smallest buffer size that holds `bytes` bytes.
fn size_of_buffer(bytes: usize) -> usize {
    SIZES.iter().position(|&size| bytes <= size).expect("a packet fits in the largest buffer")
}

impl PacketPool {
    pub(super) fn new() -> Self {
        let reading = vec![0; SIZES[2]].into_boxed_slice();
        Self { kept: Vec::new(), free: Vec::new(), buffers: Default::default(), reading }
    }

    /// Returns the buffer for the next packet.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.reading
    }

    /// Returns the buffer into which the packet was read.
    #[inline]
    pub(super) fn read(&self) -> &[u8] {
        &self.reading
    }

    fn buffer(&mut self, kind: usize) -> Box<[u8]> {
        self.buffers[kind].pop().unwrap_or_else(|| vec![0; SIZES[kind]].into_boxed_slice())
    }

    /// Stores the packet at `range` of the read buffer until each of its segments has had `ends` delivery reports. Returns the slot.
    #[inline]
    pub(super) fn keep(&mut self, packet: Packet, range: Range<usize>, ends: u32) -> u32 {
        let kind = size_of_buffer(range.len());
        let mut bytes = self.buffer(kind);
        if kind == 2 {
            // A large packet stays in its buffer, and the next one is read into another buffer.
            std::mem::swap(&mut bytes, &mut self.reading);
        } else {
            bytes[..range.len()].copy_from_slice(&self.reading[range.clone()]);
        }
        let begin = if kind == 2 { range.start } else { 0 };
        let left = packet.segments() * ends;
        let Some(slot) = self.free.pop() else {
            let slot = u32::try_from(self.kept.len()).ok().filter(|slot| *slot < 1 << 24);
            self.kept.push(Kept { packet, bytes, begin, left, generation: 0 });
            return slot.expect("the pool holds fewer than 2^24 packets");
        };
        let kept = &mut self.kept[slot as usize];
        *kept = Kept { packet, bytes, begin, left, generation: (kept.generation + 1) & 0xff_ffff };
        slot
    }

    /// Returns the number by which the network identifies a segment.
    #[inline]
    pub(super) fn number(&self, token: Token) -> u64 {
        token.number(self.kept[token.slot as usize].generation)
    }

    /// Returns the token that a number encodes: a stored packet and one of its segments.
    #[inline]
    pub(super) fn token(&self, number: u64) -> Token {
        let token = Token { slot: (number >> 16) as u32 & 0xff_ffff, segment: number as u32 & 0xffff };
        let kept = &self.kept[token.slot as usize];
        assert!(
            kept.left > 0 && token.number(kept.generation) == number,
            "the network returns each token once"
        );
        token
    }

    /// Returns a stored packet and its bytes from the IP header on.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> (&Packet, &[u8]) {
        let kept = &self.kept[slot as usize];
        (&kept.packet, &kept.bytes[kept.begin..kept.begin + kept.packet.length as usize])
    }

    /// Counts `packets` reports for a slot and frees it after the last one.
    #[inline]
    pub(super) fn release(&mut self, slot: u32, packets: u32) {
        let kept = &mut self.kept[slot as usize];
        kept.left -= packets;
        if kept.left == 0 {
            let bytes = std::mem::take(&mut kept.bytes);
            self.buffers[size_of_buffer(bytes.len())].push(bytes);
            self.free.push(slot);
        }
    }

    /// Returns the number of stored packets; a GSO packet counts once.
    pub(super) fn kept(&self) -> usize {
        self.kept.len() - self.free.len()
    }
}
