//! Counters and visible state of a connection.

use super::receive::Receiver;
use crate::time::Time;

/// Counters of one endpoint since its start. No behaviour depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments sent, all kinds.
    pub segments_sent: u64,
    /// Pure acknowledgments sent.
    pub acks_sent: u64,
    /// Bytes of payload sent, retransmissions included.
    pub bytes_sent: u64,
    /// Segments with data or a FIN that were retransmitted.
    pub retransmissions: u64,
    /// Bytes of payload retransmitted.
    pub bytes_retransmitted: u64,
    /// Bytes of payload that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Segments received, all kinds.
    pub segments_received: u64,
    /// Bytes of payload received in order.
    pub bytes_received: u64,
    /// Bytes of payload received and discarded: duplicates, or bytes beyond the window.
    pub bytes_refused: u64,
    /// Duplicate acknowledgments received.
    pub duplicate_acks: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_recoveries: u64,
    /// Recoveries and timeouts that proved spurious (RFC 3522).
    pub spurious: u64,
    /// Tail loss probes (RFC 8985 section 7).
    pub tail_probes: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Acknowledgments that the acknowledgment timer released.
    pub delayed_acks: u64,
    /// Reductions of the congestion window for ECN.
    pub ecn_reductions: u64,
    /// Segments received with the CE mark.
    pub ce_received: u64,
    /// Accepted signals of a smaller path MTU (RFC 1191).
    pub path_mtu_signals: u64,
}

impl Stats {
    /// Returns the counters of an endpoint that has sent no data. `rare` are the counters of rare events.
    pub(super) fn of(counts: &Counts, rx: &Receiver, rare: Option<Self>) -> Self {
        Self {
            segments_sent: counts.segments_sent,
            acks_sent: counts.acks_sent,
            segments_received: counts.segments_received,
            bytes_received: rx.bytes_received(),
            delayed_acks: rx.delayed_acks(),
            ..rare.unwrap_or_default()
        }
    }
}

/// The counters of frequent events. The others in [`Stats`] follow from sequence numbers, or are allocated at the first rare event.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Counts {
    pub(super) acks_sent: u64,
    pub(super) segments_sent: u64,
    pub(super) segments_received: u64,
}

/// The state of a connection's control loops at one instant, for time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Congestion window in bytes, inflation by duplicate acknowledgments included.
    pub congestion_window: u64,
    /// Slow start threshold in bytes; `u64::MAX` before the first loss.
    pub slow_start_threshold: u64,
    /// Segment size in bytes, options subtracted.
    pub segment_size: u64,
    /// Bytes that the sender counts as in the network.
    pub in_flight: u64,
    /// Bytes sent and not acknowledged.
    pub unacknowledged: u64,
    /// Receive window that the peer last announced, in bytes.
    pub send_window: u64,
    /// Smoothed round-trip time, once measured.
    pub smoothed_rtt: Option<Time>,
    /// Smallest round-trip time seen.
    pub minimum_rtt: Option<Time>,
    /// Retransmission timeout as it would be set now, back-off included.
    pub timeout: Time,
}
