//! What one acknowledgment tells of the segments in the network.

use crate::time::Time;

/// What the rate estimate must remember of the time when a segment was sent (draft-ietf-ccwg-bbr, section 4.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateMark {
    /// Bytes delivered so far.
    pub(super) delivered: u64,
    /// When the last of them was.
    pub(super) delivered_at: Time,
    /// When the first segment of that flight was sent.
    pub(super) first_sent_at: Time,
    /// Whether the application, not the network, set the pace.
    pub(super) application_limited: bool,
}

/// The segment that was sent last of those an acknowledgment reports for the first time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    pub(super) at: Time,
    pub(super) end: u64,
    pub(super) ambiguous: bool,
    pub(super) rate: RateMark,
}

/// Segments that an acknowledgment takes in order, none of them with a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) una: u64,
    /// Records that are acknowledged to their ends.
    pub(super) whole: usize,
    /// When the first was sent.
    pub(super) first_at: Time,
    pub(super) first_end: u64,
    /// When the last was sent, which may be acknowledged in part.
    pub(super) last_at: Time,
    pub(super) last_end: u64,
}

/// What one acknowledgment told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Sequence numbers that are now acknowledged cumulatively.
    pub(super) acked: u64,
    /// Bytes newly known to have arrived, in order or not.
    pub(super) delivered: u64,
    /// Bytes newly SACKed.
    pub(super) sacked: u64,
    /// When the oldest segment was sent that Karn's rule allows to measure.
    pub(super) sample: Option<Time>,
    /// The segment among the newly delivered that was sent last.
    pub(super) newest: Option<Newest>,
    /// When the segment was sent that was taken last: in the order of the sequence, but what is SACKed before what is acknowledged.
    pub(super) last_at: Option<Time>,
    /// Highest sequence number that has arrived; set it to the highest before.
    pub(super) highest: u64,
    /// Something sent once arrived below what had arrived before: packets were reordered (RFC 8985 section 6.2).
    pub(super) reordered: bool,
    /// What tells an answer to a retransmission from one to the original; `None` accepts everything.
    pub(super) answers: Option<Answers>,
}

/// RFC 8985 section 6.2 step 2: an acknowledgment of a segment sent again may be for the original.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answers {
    pub(super) now: Time,
    /// TSecr, cut to the tick of the timestamp clock.
    pub(super) echo: Option<Time>,
    pub(super) tick: Time,
    pub(super) minimum_rtt: Time,
}

impl Answers {
    fn original(&self, sent: Time) -> bool {
        self.echo.is_some_and(|echo| echo + self.tick <= sent)
            || self.now.saturating_sub(sent) < self.minimum_rtt
    }
}

impl Progress {
    /// A segment arrived that was last sent at `at`, and more than once if `ambiguous`.
    pub(super) fn note(&mut self, at: Time, end: u64, ambiguous: bool, rate: RateMark) {
        if end > self.highest {
            self.highest = end;
        } else if end < self.highest && !ambiguous {
            self.reordered = true;
        }
        if ambiguous && self.answers.is_some_and(|answers| answers.original(at)) {
            return;
        }
        self.last_at = Some(at);
        if self.newest.is_none_or(|newest| (at, end) >= (newest.at, newest.end)) {
            self.newest = Some(Newest { at, end, ambiguous, rate });
        }
    }
}
