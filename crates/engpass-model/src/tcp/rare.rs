//! Cold state of a connection: conditions that most segments do not meet, and the data that is allocated when one does.

use super::congestion::Window;
use super::stats::Stats;
use crate::time::Time;

/// The state to restore if a retransmission proves spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct UndoState {
    pub(super) window: Window,
    /// Timestamp of the first retransmission, once it is sent.
    pub(super) resent_at: Option<Time>,
}

/// State of the delivery rate estimate (draft-ietf-ccwg-bbr, section 4.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    pub(super) total: u64,
    pub(super) at: Time,
    pub(super) first_sent_at: Time,
    /// Samples up to this delivered count are limited by the application; 0 if none are.
    pub(super) application_limited_to: u64,
}

/// A set of conditions that need the slow path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SlowPathFlags(u8);

impl SlowPathFlags {
    /// A SYN is due.
    pub(super) const SYN_DUE: Self = Self(0x01);
    /// A reset is due.
    pub(super) const RESET_DUE: Self = Self(0x02);
    /// A window probe is due.
    pub(super) const PROBE_DUE: Self = Self(0x04);
    /// A window probe is in the network that lies beyond the peer's window.
    pub(super) const PROBING: Self = Self(0x08);
    /// The persist timer is running, or has expired without progress since.
    pub(super) const PERSISTING: Self = Self(0x10);
    /// A tail loss probe is due.
    pub(super) const TAIL_PROBE_DUE: Self = Self(0x20);
    /// A tail loss probe was sent and is not answered yet.
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

/// A tail loss probe that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    /// TLP.end_seq.
    pub(super) end: u64,
    /// TLP.is_retrans.
    pub(super) is_retransmission: bool,
}

/// State that is allocated at the first rare event.
#[derive(Debug, Default)]
pub(super) struct ConnectionCold {
    /// Counters of rare events; `Counts` has the others.
    pub(super) stats: Stats,
    /// Bytes of payload that were retransmitted, window probes included.
    pub(super) bytes_resent: u64,
    pub(super) saved: Option<UndoState>,
    /// Timestamp of the first of the retransmissions that are outstanding (Linux: `retrans_stamp`).
    pub(super) resent_since: Time,
    /// How often in a row the persist timer has expired.
    pub(super) persist_count: u8,
    /// ECN: no further reduction until everything below this sequence number is acknowledged.
    pub(super) cwr_until: u64,
    /// End and send time of the one segment that is timed, if not every acknowledgment gives a sample.
    pub(super) timed: Option<(u64, Time)>,
    pub(super) tail_probe: Option<TailProbe>,
    /// Negotiated segment size in bytes, once the path carries only shorter segments.
    pub(super) agreed_size: u32,
    /// Used only if the delivery rate is measured.
    pub(super) delivery: Delivery,
}
