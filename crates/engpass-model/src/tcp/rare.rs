//! What most segments do not meet, and what a connection keeps once one has.

use super::congestion::Window;
use super::stats::Stats;
use crate::time::Time;

/// What may have to be undone if a retransmission was spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub(super) window: Window,
    /// Timestamp of the first retransmission, once it is sent.
    pub(super) resent_at: Option<Time>,
}

/// Rate estimate of draft-ietf-ccwg-bbr, section 4.1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    pub(super) total: u64,
    pub(super) at: Time,
    pub(super) first_sent_at: Time,
    /// Samples up to this delivered count are application limited; 0 when none are.
    pub(super) application_limited_to: u64,
}

/// What is going on that most segments do not meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Special(u8);

impl Special {
    /// A SYN must go out.
    pub(super) const SYN_DUE: Self = Self(0x01);
    /// A reset must go out.
    pub(super) const RESET_DUE: Self = Self(0x02);
    /// A probe of the window must go out.
    pub(super) const PROBE_DUE: Self = Self(0x04);
    /// What is in the network is a byte beyond the window.
    pub(super) const PROBING: Self = Self(0x08);
    /// The persist timer runs, or has expired without progress.
    pub(super) const PERSISTING: Self = Self(0x10);
    /// A tail loss probe must go out.
    pub(super) const TAIL_PROBE_DUE: Self = Self(0x20);
    /// A tail loss probe is out.
    pub(super) const TAIL_PROBING: Self = Self(0x40);

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn set(&mut self, other: Self, on: bool) {
        self.0 = if on { self.0 | other.0 } else { self.0 & !other.0 };
    }
}

/// A tail loss probe that is not yet answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    /// TLP.end_seq.
    pub(super) end: u64,
    /// TLP.is_retrans.
    pub(super) again: bool,
}

/// What is kept once something rare has happened.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// Counts of rare things; the others are in [`Counts`].
    pub(super) stats: Stats,
    /// Bytes of payload sent again, window probes included.
    pub(super) bytes_again: u64,
    pub(super) saved: Option<Saved>,
    /// Timestamp of the first retransmission since nothing was under way that had been sent again.
    pub(super) resent_since: Time,
    /// How often the persist timer has expired in a row.
    pub(super) persist_count: u8,
    /// ECN: no further reduction until everything below is acknowledged.
    pub(super) cwr_until: u64,
    /// The one segment that is timed, where not every acknowledgment gives a sample: its end, and when it was sent.
    pub(super) timed: Option<(u64, Time)>,
    pub(super) tail_probe: Option<TailProbe>,
    /// Segment size that the handshake agreed on, once the path carries shorter segments only.
    pub(super) agreed_size: u32,
    /// Where the delivery rate is measured.
    pub(super) delivery: Delivery,
}
