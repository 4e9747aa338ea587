//! The report of one acknowledgment about the segments in the network.

use crate::time::Time;

/// State of the delivery rate estimate when a segment was sent (draft-ietf-ccwg-bbr, section 4.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateSnapshot {
    /// Bytes delivered until then.
    pub(super) delivered: u64,
    /// When the last of these bytes were delivered.
    pub(super) delivered_at: Time,
    /// When the first segment of the sampling interval was sent.
    pub(super) first_sent_at: Time,
    /// Whether the application, not the network, limited the rate.
    pub(super) application_limited: bool,
}

/// The most recently sent segment that an acknowledgment newly reports as delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewestDelivered {
    pub(super) at: Time,
    pub(super) end: u64,
    pub(super) ambiguous: bool,
    pub(super) rate: RateSnapshot,
}

/// Segments that an acknowledgment covers in order, none of them marked as SACKed, lost or retransmitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckedRun {
    pub(super) una: u64,
    /// Number of segments that are acknowledged completely.
    pub(super) whole: usize,
    /// When the first segment was sent.
    pub(super) first_at: Time,
    pub(super) first_end: u64,
    /// When the last segment was sent. It may be acknowledged only in part.
    pub(super) last_at: Time,
    pub(super) last_end: u64,
}

/// The effect of one acknowledgment on the scoreboard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSample {
    /// Sequence numbers newly acknowledged cumulatively.
    pub(super) acked: u64,
    /// Bytes newly reported as delivered, in order or not.
    pub(super) delivered: u64,
    /// Bytes newly SACKed.
    pub(super) sacked: u64,
    /// Send time of the oldest newly delivered segment that Karn's rule allows to measure.
    pub(super) sample: Option<Time>,
    /// The most recently sent of the newly delivered segments.
    pub(super) newest: Option<NewestDelivered>,
    /// Send time of the segment that was processed last. Within SACKed and within acknowledged segments the order is that of the sequence numbers;
    /// acknowledged ones count as the later.
    pub(super) last_at: Option<Time>,
    /// Highest sequence number delivered. The caller sets it to the value before this acknowledgment.
    pub(super) highest: u64,
    /// A segment that was sent once was delivered below `highest`: packets were reordered (RFC 8985 section 6.2).
    pub(super) reordered: bool,
    /// Tells an acknowledgment of a retransmission from that of the original; `None` accepts every one.
    pub(super) answers: Option<OriginalFilter>,
}

/// RFC 8985 section 6.2 step 2: the acknowledgment of a retransmitted segment may be for the original. It is, if it comes within the minimum round trip, or
/// echoes a timestamp from before the retransmission.
///
/// As in Linux (`tcp_skb_spurious_retrans`), TSecr counts for what is acknowledged in order only: a receiver with a hole echoes the segment before the hole
/// (RFC 7323 section 4.3), also when it reports a tail loss probe behind the hole.
#[derive(Clone, Copy, Debug)]
pub(super) struct OriginalFilter {
    pub(super) now: Time,
    /// TSecr, rounded down to the tick of the timestamp clock.
    pub(super) echo: Option<Time>,
    pub(super) tick: Time,
    pub(super) minimum_rtt: Time,
}

impl OriginalFilter {
    fn original(&self, sent: Time, in_order: bool) -> bool {
        self.now.saturating_sub(sent) < self.minimum_rtt
            || in_order && self.echo.is_some_and(|echo| echo + self.tick <= sent)
    }
}

impl AckSample {
    /// Records that a segment was delivered that was last sent at `at`, and more than once if `ambiguous`. It is acknowledged `in_order`, or SACKed.
    pub(super) fn note(&mut self, at: Time, end: u64, ambiguous: bool, in_order: bool, rate: RateSnapshot) {
        if end > self.highest {
            self.highest = end;
        } else if end < self.highest && !ambiguous {
            self.reordered = true;
        }
        if ambiguous && self.answers.is_some_and(|answers| answers.original(at, in_order)) {
            return;
        }
        self.last_at = Some(at);
        if self.newest.is_none_or(|newest| (at, end) >= (newest.at, newest.end)) {
            self.newest = Some(NewestDelivered { at, end, ambiguous, rate });
        }
    }
}
