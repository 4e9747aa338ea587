//! Where packets lie while the network has them: each once, in a buffer that is used again.

use std::ops::Range;

use super::packet::Packet;

/// Sizes of buffers, in bytes: a packet, a few, and the longest that a device gives, with all headers before it.
const SIZES: [usize; 3] = [2 << 10, 16 << 10, 66 << 10];

/// Name of one packet of a kept super-packet. The network hands it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) slot: u32,
    pub(super) segment: u32,
}

impl Token {
    /// With `generation`, so that tokens of a slot that is used again differ.
    fn number(self, generation: u32) -> u64 {
        u64::from(generation) << 40 | u64::from(self.slot) << 16 | u64::from(self.segment)
    }
}

/// A packet that is kept.
struct Kept {
    packet: Packet,
    bytes: Box<[u8]>,
    /// Where it begins in them.
    begin: usize,
    /// Packets of it that are still on their way.
    left: u32,
    generation: u32,
}

/// All of them.
pub(super) struct PacketPool {
    kept: Vec<Kept>,
    free: Vec<u32>,
    /// Buffers of each size that nobody uses.
    buffers: [Vec<Box<[u8]>>; 3],
    /// Where the next packet is read into.
    reading: Box<[u8]>,
}

/// The kind of buffer that holds so many bytes.
fn size_of_buffer(bytes: usize) -> usize {
    SIZES.iter().position(|&size| bytes <= size).expect("no device gives more than the largest buffer")
}

impl PacketPool {
    pub(super) fn new() -> Self {
        let reading = vec![0; SIZES[2]].into_boxed_slice();
        Self { kept: Vec::new(), free: Vec::new(), buffers: Default::default(), reading }
    }

    /// Room for the next packet.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.reading
    }

    /// What was read.
    #[inline]
    pub(super) fn read(&self) -> &[u8] {
        &self.reading
    }

    fn buffer(&mut self, kind: usize) -> Box<[u8]> {
        self.buffers[kind].pop().unwrap_or_else(|| vec![0; SIZES[kind]].into_boxed_slice())
    }

    /// Keep the packet that lies at `range` of the room until each of its segments has come to so many ends. Its slot.
    #[inline]
    pub(super) fn keep(&mut self, packet: Packet, range: Range<usize>, ends: u32) -> u32 {
        let kind = size_of_buffer(range.len());
        let mut bytes = self.buffer(kind);
        if kind == 2 {
            // It stays where it is, and the next one is read into the other buffer.
            std::mem::swap(&mut bytes, &mut self.reading);
        } else {
            bytes[..range.len()].copy_from_slice(&self.reading[range.clone()]);
        }
        let begin = if kind == 2 { range.start } else { 0 };
        let left = packet.segments() * ends;
        let Some(slot) = self.free.pop() else {
            let slot = u32::try_from(self.kept.len()).ok().filter(|slot| *slot < 1 << 24);
            self.kept.push(Kept { packet, bytes, begin, left, generation: 0 });
            return slot.expect("memory ends before there are 16 million packets of 2 KiB");
        };
        let kept = &mut self.kept[slot as usize];
        *kept = Kept { packet, bytes, begin, left, generation: (kept.generation + 1) & 0xff_ffff };
        slot
    }

    /// The number by which the network knows a packet.
    #[inline]
    pub(super) fn number(&self, token: Token) -> u64 {
        token.number(self.kept[token.slot as usize].generation)
    }

    /// The packet that a number stands for.
    #[inline]
    pub(super) fn token(&self, number: u64) -> Token {
        let token = Token { slot: (number >> 16) as u32 & 0xff_ffff, segment: number as u32 & 0xffff };
        let kept = &self.kept[token.slot as usize];
        assert!(
            kept.left > 0 && token.number(kept.generation) == number,
            "the network hands every token back once"
        );
        token
    }

    /// A kept packet, and its bytes from the IP header on.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> (&Packet, &[u8]) {
        let kept = &self.kept[slot as usize];
        (&kept.packet, &kept.bytes[kept.begin..kept.begin + kept.packet.length as usize])
    }

    /// So many packets of a slot have reached an end.
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

    /// Super-packets that are kept.
    pub(super) fn kept(&self) -> usize {
        self.kept.len() - self.free.len()
    }
}
