//! What every segment of an open connection carries, and segments that carry nothing else.

use super::connection::Agreed;
use super::parameters::Shared;
use super::receive::Receiver;
use super::segment::{Flags, Segment, Timestamps};
use crate::time::Time;

/// What an end and its connection are about: nothing of it but `path` changes once that is open.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) p: &'a Shared,
    pub(super) agreed: Agreed,
    /// Segment size by which the receiving half opens its window: the one that the handshake agreed on.
    pub(super) mss: u64,
    /// Segment size that the path carries now.
    pub(super) path: u64,
}

impl Receiver {
    /// Make `segment` one with what every segment of an open connection carries.
    #[inline(always)]
    pub(super) fn outgoing(
        &mut self,
        terms: Terms<'_>,
        now: Time,
        (seq, len): (u64, u32),
        flags: Flags,
        segment: &mut Segment,
    ) {
        let Terms { p, agreed, mss, .. } = terms;
        // One by one: so each is written once, where it is to stand. The blocks of a SACK option stay as they are: it has none.
        segment.seq = seq;
        segment.ack = self.next();
        segment.timestamps = if agreed.timestamps() { Some(self.stamp(p, now)) } else { None };
        segment.len = len;
        segment.window = self.announce(p, mss);
        segment.flags = (Flags::ACK | flags).and_if(self.echoes_mark() && agreed.ecn(), Flags::ECE);
        (segment.ect, segment.ce, segment.sack_permitted) = (false, false, false);
        (segment.mss, segment.window_scale) = (0, None);
    }

    #[inline]
    pub(super) fn stamp(&self, p: &Shared, now: Time) -> Timestamps {
        Timestamps::new(p.timestamp(now), self.recent_timestamp())
    }

    /// The acknowledgment that is due.
    #[inline]
    pub(super) fn acknowledge(&mut self, terms: Terms<'_>, now: Time, seq: u64, segment: &mut Segment) {
        self.outgoing(terms, now, (seq, 0), Flags::default(), segment);
        self.acknowledged(true);
        if self.has_blocks() {
            self.report(terms, segment);
        }
    }

    /// Report what has come beside what is in order, if the other side wants to know.
    #[inline(never)]
    fn report(&mut self, terms: Terms<'_>, segment: &mut Segment) {
        if terms.agreed.sack() {
            let most = if terms.agreed.timestamps() { 3 } else { 4 };
            // The packet is no longer than one with data (RFC 6691), whose options are off the segment size already.
            let room = terms.path.saturating_sub(4) / 8;
            if room > 0 {
                segment.report(self.sack_blocks(terms.p, most.min(room as usize)));
            }
        } else {
            self.forget_duplicate();
        }
    }

    /// The one that must go out as it was (RFC 8257 section 3.2).
    pub(super) fn acknowledge_early(&mut self, terms: Terms<'_>, now: Time, seq: u64) -> Segment {
        let mut segment = Segment::default();
        self.outgoing(terms, now, (seq, 0), Flags::default(), &mut segment);
        let (ack, echo) = self.take_early().expect("an early acknowledgment was decided on");
        segment.window += (segment.ack - ack) as u32;
        segment.ack = ack;
        segment.flags = Flags::ACK.and_if(terms.agreed.ecn() && echo, Flags::ECE);
        segment
    }
}
