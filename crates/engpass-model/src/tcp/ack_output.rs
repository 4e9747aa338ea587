//! The header fields that every segment of an open connection carries, and pure acknowledgments.

use super::connection::NegotiatedOptions;
use super::parameters::Shared;
use super::receive::Receiver;
use super::segment::{Flags, Segment, Timestamps};
use crate::time::Time;

/// The terms of a connection. Once it is open, only `path` changes.
#[derive(Clone, Copy)]
pub(super) struct EstablishedTerms<'a> {
    pub(super) p: &'a Shared,
    pub(super) agreed: NegotiatedOptions,
    /// Negotiated segment size in bytes, by which the receiving half opens its window.
    pub(super) mss: u64,
    /// Segment size in bytes that the path carries now.
    pub(super) path: u64,
}

impl Receiver {
    /// Fills `segment` with the header fields that every segment of an open connection carries.
    #[inline(always)]
    pub(super) fn outgoing(
        &mut self,
        terms: EstablishedTerms<'_>,
        now: Time,
        (seq, len): (u64, u32),
        flags: Flags,
        segment: &mut Segment,
    ) {
        let EstablishedTerms { p, agreed, mss, .. } = terms;
        // Assigned one by one, so that each field is written once, in place. The SACK blocks stay as they are: the segment has no SACK option.
        segment.seq = seq;
        segment.ack = self.next();
        segment.timestamps = if agreed.timestamps() { Some(self.stamp(p, now)) } else { None };
        segment.len = len;
        segment.window = self.announce(p, mss);
        segment.flags = (Flags::ACK | flags).with_if(self.echoes_mark() && agreed.ecn(), Flags::ECE);
        (segment.ect, segment.ce, segment.sack_permitted) = (false, false, false);
        (segment.mss, segment.window_scale) = (0, None);
    }

    #[inline]
    pub(super) fn stamp(&self, p: &Shared, now: Time) -> Timestamps {
        Timestamps::new(p.timestamp(now), self.recent_timestamp())
    }

    /// Fills `segment` with the acknowledgment that is due.
    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        terms: EstablishedTerms<'_>,
        now: Time,
        seq: u64,
        segment: &mut Segment,
    ) {
        self.outgoing(terms, now, (seq, 0), Flags::default(), segment);
        self.acknowledged(true);
        if self.has_blocks() {
            self.report(terms, segment);
        }
    }

    /// Adds a SACK option with the data above a hole, if SACK was negotiated.
    #[inline(never)]
    fn report(&mut self, terms: EstablishedTerms<'_>, segment: &mut Segment) {
        if terms.agreed.sack() {
            let most = if terms.agreed.timestamps() { 3 } else { 4 };
            // The packet must not be longer than one with data (RFC 6691). The segment size excludes the other options already.
            let room = terms.path.saturating_sub(4) / 8;
            if room > 0 {
                segment.report(self.sack_blocks(terms.p, most.min(room as usize)));
            }
        } else {
            self.forget_duplicate();
        }
    }

    /// Returns the acknowledgment that must go out with the state before the marks changed (RFC 8257 section 3.2).
    pub(super) fn acknowledge_early(&mut self, terms: EstablishedTerms<'_>, now: Time, seq: u64) -> Segment {
        let mut segment = Segment::default();
        self.outgoing(terms, now, (seq, 0), Flags::default(), &mut segment);
        let (ack, echo) = self.take_early().expect("an early acknowledgment is pending");
        segment.window += (segment.ack - ack) as u32;
        segment.ack = ack;
        segment.flags = Flags::ACK.with_if(terms.agreed.ecn() && echo, Flags::ECE);
        segment
    }
}
