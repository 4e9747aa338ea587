//! The parameters of one TCP endpoint, with a value for each.

use std::ops::Deref;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::Congestion;
use crate::time::Time;

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the first SYN.
    Active,
    /// Waits for the peer's SYN.
    Passive,
}

/// When a segment that is not full is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// Never (`TCP_NODELAY`).
    Off,
    /// While any data is unacknowledged (RFC 896).
    Rfc896,
    /// While a segment that was not full is unacknowledged (Minshall's modification, as in Linux).
    Minshall,
    /// While any data is unacknowledged, if the segment and the one sent before it are both shorter than `naglim`
    /// (Solaris).
    Naglim,
}

/// How lost segments are detected and retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryKind {
    /// By the retransmission timer alone.
    Plain,
    /// Fast retransmit and fast recovery of one segment (RFC 5681 section 3.2).
    Reno,
    /// Fast recovery of all losses in a window, one in each round trip (RFC 6582).
    NewReno,
    /// With selective acknowledgments (RFC 6675); as `new-reno` if the peer does not support them.
    Sack,
    /// Loss detection by time, and tail loss probes (RFC 8985); as `new-reno` if the peer does not support SACK.
    RackTlp,
}

/// How much the application may write before it blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SendBufferRule {
    /// The buffer holds all data that is not acknowledged, and takes any part of a write that fits (BSD, Linux).
    Bytes,
    /// Only unsent bytes count. While they are below the high-water mark, each write is taken whole; after that, none is taken until they fall to the
    /// low-water mark (STREAMS, Solaris).
    HighWater,
    /// A write is taken whole if it fits, or if everything before it is acknowledged. Therefore a write larger than the buffer blocks the next one
    /// until its last byte is acknowledged (Winsock).
    WholeWrites,
}

/// How a connection learns the largest packet that the path carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathMtu {
    /// Segments fit the smallest MTU of the path from the start.
    #[default]
    Known,
    /// Path MTU discovery (RFC 1191): segments fit the first link, routers may not fragment them (DF), and the connection adopts the smaller MTU that
    /// a router signals.
    Discovered,
}

/// How received data counts towards the next acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckCounting {
    /// Segments of any length (BSD).
    Segments,
    /// Bytes, in units of the maximum segment size (RFC 5681 section 4.2: `2*RMSS` bytes).
    FullSegments,
    /// Bytes as in `full-segments`. In addition, a shorter segment is acknowledged at once if the unacknowledged bytes before it are no multiple of
    /// the maximum segment size: the second tail of two writes (Solaris).
    FullSegmentsOrTails,
    /// More bytes than `ack_every` - 1 full segments. In addition, a shorter segment is acknowledged at once, because the application has read everything
    /// (Linux `__tcp_ack_snd_check`, `tcp_cleanup_rbuf`). A segment is full if it has 536 bytes and the one before it is not longer (`tcp_measure_rcv_mss`).
    FullSegmentsOrShort,
}

/// When a read makes the receiver announce a larger window at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowUpdate {
    /// When the window can grow by two segments or half of the buffer (BSD `tcp_output`).
    TwoSegments,
    /// When less than a segment was announced, and the window can grow by a segment or half of the buffer (Solaris `tcp_rwnd_reopen`).
    BelowSegment,
    /// When the window was at most half of the buffer and can at least double (Linux `tcp_cleanup_rbuf`).
    Doubled,
}

/// The value that the minimum retransmission timeout limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoFloor {
    /// The timeout (RFC 6298 section 2.4).
    Timeout,
    /// The part of the timeout that stands for the variance. The timeout is then at least `srtt` plus the minimum (Linux).
    Variance,
}

/// The parameters of one endpoint. Times are model times, sizes are bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpParameters {
    /// Maximum segment size that it announces and sends: the MTU less 40 bytes of headers without options.
    pub mss: u64,
    /// How the endpoint learns the path MTU.
    pub path_mtu: PathMtu,
    /// Send buffer, or high-water mark.
    pub send_buffer: u64,
    /// Low-water mark, for [`SendBufferRule::HighWater`].
    pub send_low_water: u64,
    /// How much the application may write before it blocks.
    pub send_buffer_rule: SendBufferRule,
    /// Whether segments end where writes end, unless Nagle's rule would hold back the last part of the write.
    pub write_boundaries: bool,
    /// Receive buffer.
    pub receive_buffer: u64,
    /// Minimum size of the receive buffer, in segments of the negotiated size; 0 for none.
    pub receive_minimum_segments: u64,
    /// When a read announces a larger window at once.
    pub window_update: WindowUpdate,
    /// Whether it offers window scaling (RFC 7323 section 2).
    pub window_scaling: bool,
    /// Whether it offers timestamps (RFC 7323 section 3).
    pub timestamps: bool,
    /// Tick of the timestamp clock.
    pub timestamp_tick: Time,
    /// Nagle's rule.
    pub nagle: Nagle,
    /// The limit of [`Nagle::Naglim`]; the smaller of it and the segment size applies.
    pub naglim: u64,
    /// Number of segments that makes an acknowledgment due; 1 acknowledges every segment.
    pub ack_every: u32,
    /// Segments that count towards `ack_every`.
    pub ack_counting: AckCounting,
    /// Time after which an acknowledgment is due.
    pub ack_delay: Time,
    /// Whether the acknowledgment timer is a heartbeat that ticks every `ack_delay` (BSD's fast timer), instead of a timer that a segment starts.
    pub ack_heartbeat: bool,
    /// Number of data segments at the start that are acknowledged at once.
    pub quick_acks: u32,
    /// Retransmission timeout before a round trip is measured.
    pub rto_initial: Time,
    /// Number of times that a SYN is sent again before its timeout begins to double.
    pub syn_linear_timeouts: u64,
    /// Smallest retransmission timeout.
    pub rto_minimum: Time,
    /// The value that `rto_minimum` limits.
    pub rto_floor: RtoFloor,
    /// Largest retransmission timeout.
    pub rto_maximum: Time,
    /// Granularity of the retransmission clock: G of RFC 6298.
    pub rto_tick: Time,
    /// Whether the retransmission timer expires only at ticks of a heartbeat with the period `rto_tick`, and round trips are measured in its ticks
    /// (BSD's slow timer).
    pub rto_heartbeat: bool,
    /// An instant at which the host's heartbeats tick. They also tick whole periods before and after it.
    pub heartbeat_phase: Time,
    /// Whether every acknowledgment gives a sample of the round trip; otherwise one segment at a time is timed.
    pub rtt_every_ack: bool,
    /// Smallest interval between probes of a closed window.
    pub persist_minimum: Time,
    /// Largest interval between probes of a closed window.
    pub persist_maximum: Time,
    /// Time that the side that closes first spends in TIME-WAIT (twice the maximum segment lifetime).
    pub time_wait: Time,
    /// Congestion window at the start, in segments (RFC 6928: 10; before 1998: 1).
    pub initial_window: u64,
    /// 0: every acknowledgment counts as one segment (before RFC 3465). `n`: acknowledged bytes count, in slow start at most `n` segments for one
    /// acknowledgment.
    pub byte_counting: u64,
    /// Whether congestion control counts whole segments: a loss reduces the threshold to a whole number of them, and CUBIC grows as in Linux.
    pub whole_segments: bool,
    /// Whether the window grows only while it limits the sender (RFC 7661, RFC 9438 section 5.8).
    pub window_validation: bool,
    /// Whether the window falls back to the initial one after an idle time longer than the timeout (RFC 5681 section 4.1).
    pub restart_after_idle: bool,
    /// Loss detection and recovery.
    pub recovery: RecoveryKind,
    /// Number of duplicate acknowledgments that indicates a loss.
    pub duplicate_threshold: u32,
    /// Whether the first duplicate acknowledgments each allow a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Whether duplicates are reported with SACK (RFC 2883).
    pub dsack: bool,
    /// Whether a spurious retransmission found with timestamps (RFC 3522) restores the congestion window.
    pub undo: bool,
    /// Whether it offers ECN (RFC 3168).
    pub ecn: bool,
    /// Whether it agrees to ECN that its peer offers. An end that offers ECN always does.
    pub accepts_ecn: bool,
    /// Congestion control.
    pub congestion: Congestion,
}

impl TcpParameters {
    /// Returns the first tick of a heartbeat with this period at or after `at`.
    pub(super) fn next_tick(&self, at: Time, period: Time) -> Time {
        let phase = self.heartbeat_phase.ps() % period.ps();
        Time((at.ps() + period.ps() - phase).next_multiple_of(period.ps()) + phase - period.ps())
    }

    /// Returns how many ticks of a heartbeat with this period occur up to and including `at`, plus a constant. Use only differences.
    pub(super) fn ticks(&self, at: Time, period: Time) -> u64 {
        (at.ps() + period.ps() - self.heartbeat_phase.ps() % period.ps()) / period.ps()
    }
}

/// Parameters that connections share, with values derived from them.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Prepared>);

#[derive(Debug)]
struct Prepared {
    parameters: TcpParameters,
    derived: Derived,
}

/// Values derived from the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Derived {
    /// Tick of the timestamp clock in picoseconds, and the number of whole ticks in 2^64 - 1 ps.
    tick: u64,
    inverse: u64,
    /// The recovery uses SACK.
    pub(super) sack: bool,
    /// The recovery is RACK-TLP.
    pub(super) rack: bool,
    /// The congestion control needs samples of the delivery rate.
    pub(super) rates: bool,
    /// The congestion control needs an exact echo of every mark.
    pub(super) exact_marks: bool,
    /// The congestion control also sets the window during recovery.
    pub(super) rules_recovery: bool,
    /// Losses are detected by RFC 6675's rules, and the congestion control needs neither rates nor exact marks.
    pub(super) allows_sack_fast_path: bool,
    /// New segments are neither timed one by one nor paced, so that segment bursts are possible.
    pub(super) allows_bursts: bool,
}

impl Shared {
    #[inline]
    pub(super) fn derived(&self) -> &Derived {
        &self.0.derived
    }

    /// Rounds `now` down to a tick of the timestamp clock, without a division.
    #[inline]
    pub(super) fn timestamp(&self, now: Time) -> Time {
        let Derived { tick, inverse, .. } = self.0.derived;
        // The quotient is at most one too small: the inverse is rounded down, and `now` is below 2^64.
        let quotient = ((u128::from(now.ps()) * u128::from(inverse)) >> 64) as u64;
        let rest = now.ps() - quotient * tick;
        Time(now.ps() - if rest >= tick { rest - tick } else { rest })
    }
}

impl Deref for Shared {
    type Target = TcpParameters;

    #[inline]
    fn deref(&self) -> &TcpParameters {
        &self.0.parameters
    }
}

impl From<TcpParameters> for Shared {
    fn from(parameters: TcpParameters) -> Self {
        let tick = parameters.timestamp_tick.ps().max(1);
        let congestion = parameters.congestion.config();
        let derived = Derived {
            tick,
            inverse: u64::MAX / tick,
            sack: matches!(parameters.recovery, RecoveryKind::Sack | RecoveryKind::RackTlp),
            rack: parameters.recovery == RecoveryKind::RackTlp,
            rates: congestion.wants_rates(),
            exact_marks: congestion.wants_exact_marks(),
            rules_recovery: congestion.rules_recovery(),
            allows_sack_fast_path: parameters.recovery == RecoveryKind::Sack
                && !congestion.wants_rates()
                && !congestion.wants_exact_marks(),
            allows_bursts: parameters.rtt_every_ack && !congestion.wants_rates(),
        };
        Self(Arc::new(Prepared { parameters, derived }))
    }
}

impl From<&TcpParameters> for Shared {
    fn from(parameters: &TcpParameters) -> Self {
        parameters.clone().into()
    }
}

impl From<&Shared> for Shared {
    fn from(shared: &Shared) -> Self {
        shared.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    #[test]
    fn timestamp_clock_equals_division() {
        for tick in [1, 2, 3, 1000, 999_999_937, 1_000_000_000, 10_000_000_000, u64::MAX / 2] {
            let p = TcpParameters { timestamp_tick: Time(tick), ..Profile::Linux6.parameters(1500) };
            let shared = Shared::from(p);
            let near = |at: u64| [at.saturating_sub(1), at, at.saturating_add(1)];
            let times = [0, tick, tick.saturating_mul(7), 1 << 40, u64::MAX / tick * tick, u64::MAX - 1];
            for now in times.into_iter().flat_map(near) {
                assert_eq!(shared.timestamp(Time(now)), Time(now / tick * tick), "{now} by {tick}");
            }
        }
    }
}
