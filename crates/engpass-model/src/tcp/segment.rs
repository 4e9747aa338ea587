//! A segment: what one TCP tells the other, without the bytes.

use crate::time::Time;

/// TCP's control bits that the model uses (RFC 9293 section 3.1, RFC 3168 section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Synchronize sequence numbers.
    pub syn: bool,
    /// No more data from the sender.
    pub fin: bool,
    /// The acknowledgment number counts.
    pub ack: bool,
    /// Push: the data ends a write, or empties the send buffer.
    pub psh: bool,
    /// Reset the connection.
    pub rst: bool,
    /// ECN-Echo.
    pub ece: bool,
    /// Congestion window reduced.
    pub cwr: bool,
}

/// The timestamps option (RFC 7323 section 3).
///
/// Both values are model times cut to the sender's timestamp clock; the 32-bit wrap is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: Time,
    /// TSecr: the other side's clock, echoed; `None` where the ACK bit is not set.
    pub echo: Option<Time>,
}

/// The blocks of a SACK option (RFC 2018): at most four, three beside timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u64, u64); 4],
    count: u8,
}

impl SackBlocks {
    /// Add `[start, end)` behind the others.
    ///
    /// # Panics
    /// When there are four already: the option has no room.
    pub fn push(&mut self, start: u64, end: u64) {
        assert!(self.count < 4, "a SACK option has room for four blocks");
        self.blocks[usize::from(self.count)] = (start, end);
        self.count += 1;
    }

    /// The blocks, in the order of the option.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// The duplicate that the first block reports, if it does (RFC 2883 section 4): it lies below `ack`, or within the
    /// second block.
    pub fn duplicate(&self, ack: u64) -> Option<(u64, u64)> {
        let (first, second) = (self.as_slice().first()?, self.as_slice().get(1));
        let within = second.is_some_and(|second| second.0 <= first.0 && first.1 <= second.1);
        (first.1 <= ack || within).then_some(*first)
    }

    /// Put the blocks in the order of their sequence numbers.
    pub(super) fn sort(&mut self) {
        self.blocks[..usize::from(self.count)].sort_unstable();
    }

    /// Whether there is none: the segment has no SACK option.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A TCP segment as it crosses the network.
///
/// Sequence numbers are absolute: the SYN is 0, the first byte of data is 1, and they never wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN.
    pub seq: u64,
    /// Bytes of payload.
    pub len: u64,
    /// Next sequence number expected from the other side, where `flags.ack`.
    pub ack: u64,
    /// Receive window in bytes, with the scale already applied.
    pub window: u64,
    /// Control bits.
    pub flags: Flags,
    /// Maximum segment size option, in bytes; on a SYN.
    pub mss: Option<u64>,
    /// Window scale option; on a SYN.
    pub window_scale: Option<u8>,
    /// SACK-permitted option; on a SYN.
    pub sack_permitted: bool,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// SACK option.
    pub sack: SackBlocks,
    /// The IP header says that the transport understands ECN (ECT(0)).
    pub ect: bool,
    /// The network has marked the packet: congestion experienced. Set it only where `ect`.
    pub ce: bool,
}

impl Segment {
    /// Sequence numbers that the segment takes: payload, SYN and FIN.
    pub fn sequence_len(&self) -> u64 {
        self.len + u64::from(self.flags.syn) + u64::from(self.flags.fin)
    }

    /// Whether it carries nothing but an acknowledgment.
    pub fn is_pure_ack(&self) -> bool {
        self.flags.ack && self.sequence_len() == 0 && !self.flags.rst
    }

    /// Length of the TCP header in bytes, options and their padding included.
    ///
    /// Options are laid out as stacks do: on a SYN packed and padded to four bytes, on other segments each aligned by
    /// two NOPs (RFC 7323 appendix A).
    pub fn header_len(&self) -> u64 {
        let options = if self.flags.syn {
            let mss = if self.mss.is_some() { 4 } else { 0 };
            let sack = if self.sack_permitted { 2 } else { 0 };
            let timestamps = if self.timestamps.is_some() { 10 } else { 0 };
            let scale = if self.window_scale.is_some() { 3 } else { 0 };
            mss + sack + timestamps + scale
        } else {
            let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
            let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * u64::from(self.sack.count) };
            timestamps + sack
        };
        20 + u64::next_multiple_of(options, 4)
    }

    /// Header and payload, in bytes: what IP carries.
    pub fn wire_len(&self) -> u64 {
        self.header_len() + self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_length_of_their_options() {
        let mut syn = Segment { flags: Flags { syn: true, ..Flags::default() }, ..Segment::default() };
        assert_eq!(syn.header_len(), 20);
        syn.mss = Some(1460);
        assert_eq!(syn.header_len(), 24);
        syn.window_scale = Some(7);
        syn.sack_permitted = true;
        syn.timestamps = Some(Timestamps { value: Time::ZERO, echo: None });
        assert_eq!(
            syn.header_len(),
            40,
            "MSS, SACK-permitted, timestamps and scale fill the 40 bytes of Linux's SYN"
        );
        let mut ack = Segment { timestamps: syn.timestamps, ..Segment::default() };
        assert_eq!(ack.header_len(), 32);
        for block in 0..3 {
            ack.sack.push(block * 10, block * 10 + 5);
        }
        assert_eq!(ack.header_len(), 60, "three blocks and timestamps fill the largest header");
    }
}
