//! Segment bursts: full segments of new data that are sent one after the other at one instant, on the fast path. The windows are checked once for all
//! of them, and their common header fields are computed once.

use super::connection::{Connection, State};
use super::limited_by::LimitedBy;
use super::segment::{Flags, Segment};
use super::timers::Timer;
use crate::time::Time;

/// A burst of full segments to be sent now, at least one. Valid only until the connection gets another input.
#[derive(Clone, Copy, Debug)]
pub struct SegmentBurst {
    /// Bytes that are written and fit into the peer's receive window.
    sendable: u64,
    /// Bytes that the congestion window allows.
    open: u64,
    /// Header fields that the segments have in common.
    pattern: Segment,
}

impl SegmentBurst {
    /// Returns the header fields that the segments have in common: all except the sequence number and PSH.
    #[inline]
    pub fn pattern(&self) -> &Segment {
        &self.pattern
    }

    /// Returns whether the burst has another segment.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.sendable.min(self.open) >= self.pattern.payload()
    }
}

impl Connection {
    /// Returns the burst of full segments that may be sent now. Otherwise, returns why nothing is sent, or `None` if more than the windows matters.
    /// Then [`next_segment`](Self::next_segment) returns the segment or the reason.
    #[inline(always)]
    pub fn start_burst(&mut self, now: Time) -> Result<SegmentBurst, Option<LimitedBy>> {
        let (begins, no_loss_hint) = (self.board.is_empty(), self.recovery.has_no_loss_hint());
        let applies = self.state == State::Established
            && self.special.is_empty()
            && self.board.waiting() == 0
            && !self.rx.has_early()
            && !self.cwr_due
            && self.tx.sends_only_full()
            && (if begins { no_loss_hint } else { self.timers.is_set(Timer::Retransmission) })
            && self.p.derived().allows_bursts;
        if !applies {
            return Err(None);
        }
        let mss = self.window.mss();
        let sendable = self.tx.unsent().min(self.tx.usable_window(self.board.una()));
        if begins && sendable >= mss {
            self.begin_burst(now);
        }
        let window = if no_loss_hint { self.window.size.max(mss) } else { self.window_slow_path() };
        let open = window.saturating_sub(self.in_flight());
        if sendable.min(open) < mss {
            return Err(self.limited_with(sendable));
        }
        self.sent_at = now;
        let mut pattern = Segment::default();
        self.outgoing(now, (0, mss as u32), Flags::default(), &mut pattern);
        pattern.ect = self.agreed.ecn();
        self.rx.acknowledged(false);
        Ok(SegmentBurst { sendable, open, pattern })
    }

    /// Prepares a burst that begins with nothing in the network. The congestion window then always allows a segment.
    #[inline(never)]
    fn begin_burst(&mut self, now: Time) {
        self.restart_after_idle(now);
        if !self.timers.is_set(Timer::Retransmission) {
            self.start_timer(now);
        }
    }

    /// Slow path: returns the bytes that the congestion window and limited transmit allow while a loss is suspected.
    #[inline(never)]
    fn window_slow_path(&self) -> u64 {
        self.window_size() + self.limited_transmit()
    }

    /// Writes the next segment of a burst into `segment`. The result is that of `send_new`.
    #[inline(always)]
    pub fn next_in_burst(&mut self, burst: &mut SegmentBurst, now: Time, segment: &mut Segment) {
        let (seq, mss) = (self.tx.next, burst.pattern.payload());
        burst.sendable -= mss;
        burst.open -= mss;
        self.recovery.sent(mss);
        let pushes = self.tx.sent_full(mss);
        self.board.push(self.tx.next, now, false, None);
        self.arm_tail_probe(now);
        self.counts.segments_sent += 1;
        segment.copy_header_from(&burst.pattern);
        segment.seq = seq;
        segment.flags = segment.flags.with_if(pushes, Flags::PSH);
    }

    /// Returns why nothing is sent after the last segment of a burst. `None` means that [`next_segment`](Self::next_segment) returns a segment or the
    /// reason.
    #[inline(always)]
    pub fn limited_by_after(&self, burst: &SegmentBurst) -> Option<LimitedBy> {
        self.limited_with(burst.sendable)
    }

    /// Returns the reason if only the congestion window holds back a full segment; `sendable` bytes are written and fit into the receive window.
    #[inline(always)]
    fn limited_with(&self, sendable: u64) -> Option<LimitedBy> {
        let shut = sendable >= self.window.mss() && !self.rx.acks.is_due();
        shut.then(|| self.refine_reason(LimitedBy::CongestionWindow))
    }
}
