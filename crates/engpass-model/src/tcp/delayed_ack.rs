//! When to acknowledge: at once, at every n-th segment, or when the timer expires (RFC 9293 section 3.8.6.3).

use super::parameters::{AckCounting, TcpParameters};
use crate::time::Time;

/// What is owed to the sender.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayedAck {
    /// An acknowledgment is due.
    due: bool,
    /// Duplicate acknowledgments due: each is a segment of its own (RFC 5681 section 4.2).
    duplicates: u32,
    /// Segments since the last acknowledgment.
    segments: u32,
    /// Bytes since then.
    bytes: u64,
    /// When the timer releases the acknowledgment.
    deadline: Option<Time>,
    /// Segments of data acknowledged at once so far.
    quick: u32,
}

impl DelayedAck {
    /// A segment came in order.
    pub(super) fn in_order(&mut self, p: &TcpParameters, mss: u64, len: u64, now: Time) {
        let before = self.bytes;
        self.segments += 1;
        self.bytes += len;
        let enough = match p.ack_counting {
            AckCounting::Segments => self.segments >= p.ack_every,
            // "an ACK SHOULD be generated for at least every second full-sized segment" (RFC 9293, SHLD-19).
            AckCounting::FullSegments => self.bytes >= u64::from(p.ack_every) * mss,
            AckCounting::FullSegmentsOrTails => {
                self.bytes >= u64::from(p.ack_every) * mss || (len < mss && !before.is_multiple_of(mss))
            }
        };
        if enough || self.quick < p.quick_acks {
            self.quick = self.quick.saturating_add(1);
            self.due = true;
        } else if self.deadline.is_none() {
            let delay = p.ack_delay.ps();
            self.deadline = Some(if p.ack_heartbeat && delay > 0 {
                p.next_tick(Time(now.ps() + 1), p.ack_delay)
            } else {
                now + p.ack_delay
            });
        }
    }

    /// Acknowledge now.
    pub(super) fn at_once(&mut self) {
        self.due = true;
    }

    /// A segment came out of order: a duplicate acknowledgment of its own.
    pub(super) fn duplicate(&mut self) {
        self.duplicates += 1;
    }

    /// Let the timer expire. True when it did.
    pub(super) fn on_timer(&mut self, now: Time) -> bool {
        let expired = self.deadline.is_some_and(|at| at <= now);
        if expired {
            self.deadline = None;
            self.due = true;
        }
        expired
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    pub(super) fn is_due(&self) -> bool {
        self.due || self.duplicates > 0
    }

    /// Whether data has come that is not acknowledged yet.
    pub(super) fn is_pending(&self) -> bool {
        self.segments > 0 || self.is_due()
    }

    /// A segment with an acknowledgment went out; `pure` when it carried nothing else.
    pub(super) fn sent(&mut self, pure: bool) {
        self.due = false;
        self.segments = 0;
        self.bytes = 0;
        self.deadline = None;
        if pure {
            self.duplicates = self.duplicates.saturating_sub(1);
        }
    }
}
