//! A TCP segment: its header fields and the length of its payload, without the bytes.

use std::fmt;
use std::num::NonZero;
use std::ops::{BitOr, BitOrAssign};

use crate::time::Time;

/// TCP's control bits that the model uses (RFC 9293 section 3.1, RFC 3168 section 6.1).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push: the data ends a write, or empties the send buffer.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(0x10);
    /// The segment has a SACK option. The model has no urgent data, so that the bit of URG is free for this.
    const SACK: Self = Self(0x20);
    /// ECN-Echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Returns whether all of `others` are set.
    #[inline]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns these flags, and also `others` if `set`.
    #[inline]
    #[must_use]
    pub const fn with_if(self, set: bool, others: Self) -> Self {
        if set { Self(self.0 | others.0) } else { self }
    }

    /// Returns whether no flag but ACK and possibly PSH is set, as in nearly all segments.
    #[inline]
    pub(super) const fn is_ack_only(self) -> bool {
        self.0 & !Self::PSH.0 == Self::ACK.0
    }

    /// Like [`is_ack_only`](Self::is_ack_only), but also allows a SACK option.
    #[inline]
    pub(super) const fn is_ack_or_sack(self) -> bool {
        self.0 & !(Self::PSH.0 | Self::SACK.0) == Self::ACK.0
    }

    /// Like [`is_ack_only`](Self::is_ack_only), but also allows CWR, as in data segments of an open connection.
    #[inline]
    pub(super) const fn is_data_or_ack(self) -> bool {
        self.0 & !(Self::PSH.0 | Self::CWR.0) == Self::ACK.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, others: Self) {
        self.0 |= others.0;
    }
}

impl fmt::Debug for Flags {
    /// Writes the flags as tcpdump does, with `E` for ECE and `W` for CWR.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [
            (Self::SYN, "S"),
            (Self::FIN, "F"),
            (Self::PSH, "P"),
            (Self::RST, "R"),
            (Self::ECE, "E"),
            (Self::CWR, "W"),
            (Self::ACK, "."),
        ];
        letters.iter().filter(|(flag, _)| self.has(*flag)).try_for_each(|(_, letter)| f.write_str(letter))
    }
}

/// The timestamps option (RFC 7323 section 3).
///
/// Both values are model times, rounded down to ticks of the timestamp clock; the 32-bit wrap is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// Time in picoseconds plus 1, so that 0 can stand for "none".
    value: NonZero<u64>,
    echo: Option<NonZero<u64>>,
}

impl Timestamps {
    /// Creates the option from the sender's clock (TSval) and the echoed clock of the peer (TSecr), which is `None` without the ACK bit.
    #[inline]
    pub fn new(value: Time, echo: Option<Time>) -> Self {
        let shifted = |time: Time| NonZero::new(time.ps() + 1).expect("a time is below 2^64 - 1 ps");
        Self { value: shifted(value), echo: echo.map(shifted) }
    }

    /// Returns TSval: the sender's clock.
    #[inline]
    pub fn value(&self) -> Time {
        Time(self.value.get() - 1)
    }

    /// Returns TSecr: the peer's clock, echoed.
    #[inline]
    pub fn echo(&self) -> Option<Time> {
        self.echo.map(|echo| Time(echo.get() - 1))
    }
}

/// The blocks of a SACK option (RFC 2018): at most four, or three beside timestamps.
///
/// As on the wire, each edge has 32 bits. The upper bits come from the acknowledgment number; therefore edges must be within 2 GiB of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [Block; 4],
}

/// The low 32 bits of a block's start and, above them, of its end. Equal edges mean that there is no block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Block(u64);

impl Block {
    #[inline]
    fn new(start: u64, end: u64) -> Self {
        Self(u64::from(start as u32) | end << 32)
    }

    #[inline]
    fn start(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    fn end(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    fn is_none(self) -> bool {
        self.start() == self.end()
    }
}

/// A block that reports new data, with 64-bit sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NewBlock {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The part of the block below this sequence number was reported before.
    pub(super) from: u64,
}

/// The blocks of one segment that report new data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewBlocks {
    blocks: [NewBlock; 4],
    count: usize,
}

impl NewBlocks {
    #[inline]
    pub(super) fn as_slice(&self) -> &[NewBlock] {
        &self.blocks[..self.count]
    }
}

/// Returns the sequence number nearest to `ack` that has these low 32 bits.
#[inline]
fn whole(low: u32, ack: u64) -> u64 {
    ack.wrapping_add_signed(i64::from(low.wrapping_sub(ack as u32) as i32))
}

impl SackBlocks {
    const NONE: Self = Self { blocks: [Block(0); 4] };

    /// Appends the block `[start, end)`.
    ///
    /// # Panics
    /// If there are four already: the option has no room.
    pub fn push(&mut self, start: u64, end: u64) {
        debug_assert!(start < end, "a SACK block is not empty");
        let count = self.count();
        assert!(count < 4, "a SACK option has room for four blocks");
        self.put(count, start, end);
    }

    /// Sets block `count` to `[start, end)`. For callers that count the blocks.
    #[inline]
    pub(super) fn put(&mut self, count: usize, start: u64, end: u64) {
        self.blocks[count] = Block::new(start, end);
    }

    fn count(&self) -> usize {
        self.blocks.iter().take_while(|block| !block.is_none()).count()
    }

    /// Returns the blocks of a segment that acknowledges `ack`, in the order of the option.
    pub fn iter(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let blocks = self.blocks.iter().take_while(|block| !block.is_none());
        blocks.map(move |block| (whole(block.start(), ack), whole(block.end(), ack)))
    }

    /// Returns what these blocks report beyond `known`, if the only change is that the first block has grown, as in most options.
    #[inline(always)]
    pub(super) fn grown(&self, known: &Self, ack: u64) -> Option<NewBlock> {
        let ([first, others @ ..], [before, known_others @ ..]) = (&self.blocks, &known.blocks);
        let (end, from) = (whole(first.end(), ack), whole(before.end(), ack));
        let grown = first.start() == before.start() && others == known_others && from < end;
        grown.then(|| NewBlock { start: whole(first.start(), ack), end, from })
    }

    /// Returns the blocks that report more than `known`, in sequence order. A block that has grown counts as known up to its previous end.
    #[inline]
    pub(super) fn beyond(&self, known: &Self, ack: u64) -> NewBlocks {
        let mut blocks = NewBlocks::default();
        for (start, end) in self.iter(ack) {
            let grown = known.iter(ack).find(|(s, e)| *s <= start && start <= *e && *e <= end);
            let from = grown.map_or(start, |block| block.1);
            if from < end {
                blocks.blocks[blocks.count] = NewBlock { start, end, from };
                blocks.count += 1;
            }
        }
        // There is nearly always just one.
        if blocks.count > 1 {
            blocks.blocks[..blocks.count].sort_unstable();
        }
        blocks
    }

    /// Returns the duplicate that the first block reports, if it does (RFC 2883 section 4): it lies below `ack`, or within the second block.
    pub fn duplicate(&self, ack: u64) -> Option<(u64, u64)> {
        let mut blocks = self.iter(ack);
        let (first, second) = (blocks.next()?, blocks.next());
        let within = second.is_some_and(|second| second.0 <= first.0 && first.1 <= second.1);
        (first.1 <= ack || within).then_some(first)
    }

    /// Returns whether there are no blocks.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.blocks[0].is_none()
    }
}

/// A TCP segment as it crosses the network.
///
/// Sequence numbers are absolute: the SYN is 0, the first byte of data is 1, and they never wrap.
///
/// The fields that every segment uses come first. The blocks of a SACK option are neither written nor read if there is no such option.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN.
    pub seq: u64,
    /// Next sequence number expected from the peer; valid with [`Flags::ACK`].
    pub ack: u64,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// Bytes of payload.
    pub len: u32,
    /// Receive window in bytes, with the scale already applied.
    pub window: u32,
    /// Control bits.
    pub flags: Flags,
    /// The IP header carries ECT(0): the transport understands ECN.
    pub ect: bool,
    /// The network has marked the packet: congestion experienced. Set it only if `ect` is set.
    pub ce: bool,
    /// SACK-permitted option; on a SYN.
    pub sack_permitted: bool,
    /// Maximum segment size option of a SYN, in bytes; 0 if there is none.
    pub mss: u16,
    /// Window scale option; on a SYN.
    pub window_scale: Option<u8>,
    /// Blocks of the SACK option, meaningless without it. Use [`sack`](Self::sack) and [`report`](Self::report).
    pub blocks: SackBlocks,
}

impl PartialEq for Segment {
    fn eq(&self, other: &Self) -> bool {
        let said = |of: &Self| {
            let place = (of.seq, of.ack, of.timestamps, of.len, of.window);
            (place, of.flags, of.ect, of.ce, of.sack_permitted, of.mss, of.window_scale, *of.sack())
        };
        said(self) == said(other)
    }
}

impl Eq for Segment {}

impl Segment {
    /// Returns the blocks of the SACK option; empty if there is none.
    #[inline]
    pub fn sack(&self) -> &SackBlocks {
        if self.has_sack() { &self.blocks } else { &SackBlocks::NONE }
    }

    /// Returns whether the segment has a SACK option.
    #[inline]
    pub fn has_sack(&self) -> bool {
        self.flags.has(Flags::SACK)
    }

    /// Adds a SACK option with these blocks, if there are any.
    pub fn report(&mut self, blocks: SackBlocks) {
        if !blocks.is_empty() {
            self.flags |= Flags::SACK;
            self.blocks = blocks;
        }
    }

    /// Copies every field of `other` except the SACK blocks. `other` must not have a SACK option.
    #[inline(always)]
    pub(super) fn copy_header_from(&mut self, other: &Self) {
        debug_assert!(!other.has_sack(), "the copied header has no SACK option");
        *self = Self { blocks: self.blocks, ..*other };
    }

    /// Returns the payload in bytes, as 64 bits.
    #[inline]
    pub fn payload(&self) -> u64 {
        u64::from(self.len)
    }

    /// Returns one past the last byte of payload.
    #[inline]
    pub fn end(&self) -> u64 {
        self.seq + self.payload()
    }

    /// Returns how many sequence numbers the segment takes: payload, SYN and FIN.
    pub fn sequence_len(&self) -> u64 {
        self.payload() + u64::from(self.flags.has(Flags::SYN)) + u64::from(self.flags.has(Flags::FIN))
    }

    /// Returns whether the segment is a pure acknowledgment: no payload, SYN, FIN or RST.
    pub fn is_pure_ack(&self) -> bool {
        const OTHERS: u8 = Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0;
        self.len == 0 && self.flags.0 & (Flags::ACK.0 | OTHERS) == Flags::ACK.0
    }

    /// Returns the length of the TCP header in bytes, options and their padding included.
    ///
    /// Options are laid out as stacks do: on a SYN packed and padded to four bytes, on other segments each aligned by two NOPs (RFC 7323 appendix A).
    pub fn header_len(&self) -> u64 {
        let options = if self.flags.has(Flags::SYN) {
            let mss = if self.mss > 0 { 4 } else { 0 };
            let sack = if self.sack_permitted { 2 } else { 0 };
            let timestamps = if self.timestamps.is_some() { 10 } else { 0 };
            let scale = if self.window_scale.is_some() { 3 } else { 0 };
            mss + sack + timestamps + scale
        } else {
            let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
            let sack = if self.has_sack() { 4 + 8 * self.blocks.count() as u64 } else { 0 };
            timestamps + sack
        };
        20 + ((options + 3) & !3)
    }

    /// Returns the length of header and payload in bytes: the payload of the IP packet.
    pub fn wire_len(&self) -> u64 {
        self.header_len() + self.payload()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_header_length_includes_its_options() {
        let mut syn = Segment { flags: Flags::SYN, ..Segment::default() };
        assert_eq!(syn.header_len(), 20);
        syn.mss = 1460;
        assert_eq!(syn.header_len(), 24);
        syn.window_scale = Some(7);
        syn.sack_permitted = true;
        syn.timestamps = Some(Timestamps::new(Time::ZERO, None));
        assert_eq!(
            syn.header_len(),
            40,
            "a SYN of Linux has 20 bytes of options: MSS, SACK-permitted, timestamps and window scale"
        );
        let mut ack = Segment { timestamps: syn.timestamps, ..Segment::default() };
        assert_eq!(ack.header_len(), 32);
        let mut blocks = SackBlocks::default();
        for block in 0..3 {
            blocks.push(block * 10, block * 10 + 5);
        }
        ack.report(blocks);
        assert_eq!(ack.header_len(), 60, "three blocks and timestamps fill the largest header");
    }
    #[test]
    fn sack_edges_beyond_32_bits_are_restored() {
        let ack = (7 << 32) + 5;
        let mut sack = SackBlocks::default();
        sack.push(ack - 1000, ack - 500);
        sack.push(ack + 10, ack + (1 << 30));
        let blocks: Vec<_> = sack.iter(ack).collect();
        assert_eq!(blocks, [(ack - 1000, ack - 500), (ack + 10, ack + (1 << 30))]);
        assert_eq!(sack.duplicate(ack), Some((ack - 1000, ack - 500)));
    }

    #[test]
    fn segment_takes_at_most_80_bytes() {
        assert!(size_of::<Segment>() <= 80, "{}", size_of::<Segment>());
    }
}
