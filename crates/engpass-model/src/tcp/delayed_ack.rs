//! When to acknowledge: at once, at every n-th segment, or when the timer expires (RFC 9293 section 3.8.6.3).

use super::parameters::{AckCounting, TcpParameters};
use crate::time::Time;

/// The acknowledgments that are owed to the sender.
#[derive(Clone, Debug)]
pub(super) struct DelayedAck {
    /// When the timer releases the acknowledgment; [`Time::MAX`] while it is stopped.
    deadline: Time,
    /// Duplicate acknowledgments due: each is a segment of its own (RFC 5681 section 4.2).
    duplicates: u32,
    /// Bytes received in order since the last acknowledgment.
    bytes: u32,
    /// Data segments that were acknowledged at once because the connection was young.
    quick: u16,
    /// Segments received in order since the last acknowledgment.
    segments: u16,
    /// Length of the last segment received in order.
    last: u16,
    /// An acknowledgment is due.
    due: bool,
}

impl Default for DelayedAck {
    fn default() -> Self {
        Self { deadline: Time::MAX, duplicates: 0, bytes: 0, quick: 0, segments: 0, last: 0, due: false }
    }
}

/// Segments below this length count as short, whatever other ones are like (Linux `TCP_MSS_DEFAULT`).
const LEAST_FULL: u64 = 536;

/// Returns the next tick of the heartbeat that all connections share.
#[inline(never)]
fn next_tick(p: &TcpParameters, now: Time) -> Time {
    if p.ack_delay.ps() > 0 { p.next_tick(Time(now.ps() + 1), p.ack_delay) } else { now }
}

impl DelayedAck {
    /// Counts a segment that arrived in order. Makes an acknowledgment due, or starts the timer.
    #[inline(always)]
    pub(super) fn in_order(&mut self, p: &TcpParameters, mss: u64, len: u32, now: Time) {
        let before = self.bytes;
        // Saturated counts exceed every parameter.
        self.segments = self.segments.saturating_add(1);
        self.bytes = self.bytes.saturating_add(len);
        let enough = match p.ack_counting {
            AckCounting::Segments => u32::from(self.segments) >= p.ack_every,
            // "an ACK SHOULD be generated for at least every second full-sized segment" (RFC 9293, SHLD-19).
            AckCounting::FullSegments => u64::from(self.bytes) >= u64::from(p.ack_every) * mss,
            AckCounting::FullSegmentsOrTails => {
                u64::from(self.bytes) >= u64::from(p.ack_every) * mss
                    || (u64::from(len) < mss && !u64::from(before).is_multiple_of(mss))
            }
            AckCounting::FullSegmentsOrShort => {
                let full = u64::from(len.max(self.last.into())).max(mss.min(LEAST_FULL));
                u64::from(self.bytes) > u64::from(p.ack_every - 1) * full || u64::from(len) < full
            }
        };
        self.last = len.try_into().unwrap_or(u16::MAX);
        if u32::from(self.quick) < p.quick_acks {
            self.quick += 1;
            self.due = true;
        } else if enough {
            self.due = true;
        } else if self.deadline == Time::MAX {
            self.deadline = if p.ack_heartbeat { next_tick(p, now) } else { now + p.ack_delay };
        }
    }

    /// Makes an acknowledgment due now.
    pub(super) fn at_once(&mut self) {
        self.due = true;
    }

    /// Makes a duplicate acknowledgment due, for a segment that arrived out of order.
    pub(super) fn owe_duplicate(&mut self) {
        self.duplicates += 1;
    }

    /// Makes an acknowledgment due if the timer has expired, and returns whether it has.
    pub(super) fn on_timer(&mut self, now: Time) -> bool {
        let expired = self.deadline <= now;
        if expired {
            self.deadline = Time::MAX;
            self.due = true;
        }
        expired
    }

    /// Returns when the timer expires; [`Time::MAX`] while it is stopped.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.due || self.duplicates > 0
    }

    /// Returns whether received data is not acknowledged yet.
    pub(super) fn is_pending(&self) -> bool {
        self.segments > 0 || self.is_due()
    }

    /// Records that a segment with an acknowledgment was sent; `pure` if it carried nothing else.
    #[inline]
    pub(super) fn sent(&mut self, pure: bool) {
        self.due = false;
        self.segments = 0;
        self.bytes = 0;
        self.deadline = Time::MAX;
        if pure {
            self.duplicates = self.duplicates.saturating_sub(1);
        }
    }
}
