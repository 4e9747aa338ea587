//! Profiles: the parameters of real stacks, each value with its source. Estimates are marked *estimate*.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::{Congestion, Cubic, Reno};
use super::parameters::{
    AckCounting, Nagle, PathMtu, RecoveryKind, RtoFloor, SendBufferRule, TcpParameters, WindowUpdate,
};
use crate::time::{SECOND, Time};

/// A TCP implementation whose parameters are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Profile {
    /// Solaris 2.5 (1995).
    #[serde(rename = "solaris-2.5")]
    Solaris25,
    /// 4.3BSD-Reno and its descendants until about 1995: 4.4BSD, Net/3.
    #[serde(rename = "bsd-reno")]
    BsdReno,
    /// Windows 95 with Winsock 1.1.
    #[serde(rename = "windows-95")]
    Windows95,
    /// Linux 6 with its defaults.
    #[default]
    #[serde(rename = "linux-6")]
    Linux6,
}

const fn ms(milliseconds: u64) -> Time {
    Time(milliseconds * (SECOND / 1000))
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 4] = [Self::Solaris25, Self::BsdReno, Self::Windows95, Self::Linux6];

    /// Returns its name in a testbed file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Solaris25 => "solaris-2.5",
            Self::BsdReno => "bsd-reno",
            Self::Windows95 => "windows-95",
            Self::Linux6 => "linux-6",
        }
    }

    /// Returns its parameters over IP with this MTU, in bytes.
    ///
    /// The segment size is the MTU less 40 bytes (RFC 6691) in all four.
    pub fn parameters(self, mtu: u64) -> TcpParameters {
        let mss = mtu.saturating_sub(40).max(1);
        match self {
            Self::Solaris25 => solaris_25(mss),
            Self::BsdReno => bsd_reno(mss),
            Self::Windows95 => windows_95(mss),
            Self::Linux6 => linux_6(mss),
        }
    }
}

/// Solaris 2.5. Sources: the illumos TCP that descends from it (logic and names of parameters), the SLAC page on bulk
/// throughput with `ndd` values, the Solaris FAQ.
fn solaris_25(mss: u64) -> TcpParameters {
    TcpParameters {
        mss,
        path_mtu: PathMtu::Known,
        // `tcp_xmit_hiwat` 8192 (SLAC page, still so in Solaris 7).
        send_buffer: 8192,
        // `tcp_xmit_lowat` 2048: estimate.
        send_low_water: 2048,
        // illumos compares TCP_UNSENT_BYTES with the high-water mark; that 2.5 did the same is an estimate.
        send_buffer_rule: SendBufferRule::HighWater,
        // The put procedure of each write sends what the window allows before the next write arrives: estimate.
        write_boundaries: true,
        // `tcp_recv_hiwat` 8192 (SLAC page).
        receive_buffer: 8192,
        // `tcp_recv_hiwat_minmss` 4 (illumos); that 2.5 had it is an estimate.
        receive_minimum_segments: 4,
        // illumos `tcp_rwnd_reopen`.
        window_update: WindowUpdate::BelowSegment,
        // Neither by default: estimate.
        window_scaling: false,
        timestamps: false,
        timestamp_tick: ms(10),
        // illumos `tcp_wput_data`; the limit is `tcp_naglim_def` 4095: estimate for 2.5.
        nagle: Nagle::Naglim,
        naglim: 4095,
        // `tcp_deferred_acks_max` 8, "in units of maximum segment size MSS", "dynamically calculated for each connection" (Sun's Tunable Parameters
        // manual, Solaris 8). illumos takes half of the window: two of the four segments that a LAN has. illumos also acknowledges a second short
        // segment at once. Estimates for 2.5.
        ack_every: 2,
        ack_counting: AckCounting::FullSegmentsOrTails,
        // `tcp_deferred_ack_interval` 50 ms for hosts on the same net (Sun's manual, Solaris 9): estimate.
        ack_delay: ms(50),
        ack_heartbeat: false,
        // illumos starts with an acknowledgment of every segment; each acknowledgment raises the limit by one, up to its maximum. Estimate.
        quick_acks: 2,
        // `tcp_rexmit_interval_initial` 500 ms and `_min` 200 ms in 2.5: estimate; that it was too eager was Sun's bug
        // 1233827 (Solaris FAQ).
        rto_initial: ms(500),
        syn_linear_timeouts: 0,
        rto_minimum: ms(200),
        rto_floor: RtoFloor::Timeout,
        // `tcp_rexmit_interval_max` 60 s (Oracle manual, later releases): estimate for 2.5.
        rto_maximum: ms(60_000),
        // One clock tick: estimate.
        rto_tick: ms(10),
        rto_heartbeat: false,
        heartbeat_phase: Time::ZERO,
        // One segment is timed in each window: estimate.
        rtt_every_ack: false,
        // The retransmission interval bounds the probes too (illumos): estimate.
        persist_minimum: ms(200),
        persist_maximum: ms(60_000),
        // `tcp_close_wait_interval` 240 s (Oracle manual).
        time_wait: ms(240_000),
        // `tcp_slow_start_initial` 1 (the default until Solaris 8).
        initial_window: 1,
        // One segment for each acknowledgment, as before RFC 3465.
        byte_counting: 0,
        // illumos: `MAX(npkt, 2) * mss`. Estimate for 2.5.
        whole_segments: true,
        window_validation: false,
        // illumos `tcp_slow_start_after_idle`; estimate for 2.5.
        restart_after_idle: true,
        // Fast retransmit and recovery, no SACK: estimate.
        recovery: RecoveryKind::Reno,
        // `tcp_dupack_fast_retransmit` 3 (illumos).
        duplicate_threshold: 3,
        limited_transmit: false,
        dsack: false,
        undo: false,
        ecn: false,
        accepts_ecn: false,
        congestion: Congestion::Reno(Reno::default()),
    }
}

/// 4.3BSD-Reno and Net/3. Source: Wright and Stevens, TCP/IP Illustrated volume 2 (chapters 24 to 30).
fn bsd_reno(mss: u64) -> TcpParameters {
    TcpParameters {
        mss,
        path_mtu: PathMtu::Known,
        // `tcp_sendspace`, `tcp_recvspace` 8192 (section 24.4).
        send_buffer: 8192,
        send_low_water: 0,
        send_buffer_rule: SendBufferRule::Bytes,
        write_boundaries: false,
        receive_buffer: 8192,
        receive_minimum_segments: 0,
        // `tcp_output`: two segments or half of the buffer (section 26.3).
        window_update: WindowUpdate::TwoSegments,
        // Net/3 has RFC 1323, 4.3BSD-Reno does not. Most systems derived from either left it off: estimate.
        window_scaling: false,
        timestamps: false,
        timestamp_tick: ms(500),
        // `TF_NODELAY` off (section 26.3).
        nagle: Nagle::Rfc896,
        naglim: u64::MAX,
        // `TF_DELACK`: every second segment of any length (section 27.9 and 28.3).
        ack_every: 2,
        ack_counting: AckCounting::Segments,
        // `tcp_fasttimo` every 200 ms (section 25.4).
        ack_delay: ms(200),
        ack_heartbeat: true,
        quick_acks: 0,
        // `TCPTV_SRTTDFLT`: 12 ticks, 6 s, before the first sample (section 25.7).
        rto_initial: ms(6_000),
        syn_linear_timeouts: 0,
        // `TCPTV_MIN` 2 ticks, `TCPTV_REXMTMAX` 64 s (section 25.1).
        rto_minimum: ms(1_000),
        rto_floor: RtoFloor::Timeout,
        rto_maximum: ms(64_000),
        // `tcp_slowtimo` every 500 ms (section 25.5).
        rto_tick: ms(500),
        rto_heartbeat: true,
        heartbeat_phase: Time::ZERO,
        // `t_rtt` times one segment at a time (section 25.10).
        rtt_every_ack: false,
        // `TCPTV_PERSMIN` 5 s, `TCPTV_PERSMAX` 60 s (section 25.1).
        persist_minimum: ms(5_000),
        persist_maximum: ms(60_000),
        // `2 * TCPTV_MSL`, 30 s each (section 25.1).
        time_wait: ms(60_000),
        initial_window: 1,
        // `tcp_input` counts acknowledgments (section 29.3).
        byte_counting: 0,
        // `tcp_input`: the window is halved in units of `t_maxseg` (section 29.4).
        whole_segments: true,
        window_validation: false,
        // `tcp_output`: idle for a timeout (section 26.3).
        restart_after_idle: true,
        recovery: RecoveryKind::Reno,
        // `tcprexmtthresh` 3 (section 29.4).
        duplicate_threshold: 3,
        limited_transmit: false,
        dsack: false,
        undo: false,
        ecn: false,
        accepts_ecn: false,
        congestion: Congestion::Reno(Reno::default()),
    }
}

/// Windows 95. Sources: Microsoft's Q158474 (registry values of its TCP/IP) and Q214397 (when a send is done);
/// everything else is an estimate.
fn windows_95(mss: u64) -> TcpParameters {
    TcpParameters {
        mss,
        path_mtu: PathMtu::Known,
        // Winsock's buffer for sends 8192 (Q214397).
        send_buffer: 8192,
        send_low_water: 0,
        // A send that is larger than the buffer completes when it is acknowledged: estimate after Q214397.
        send_buffer_rule: SendBufferRule::WholeWrites,
        write_boundaries: false,
        // `DefaultRcvWindow` 8192 (Q158474).
        receive_buffer: 8192,
        receive_minimum_segments: 0,
        window_update: WindowUpdate::TwoSegments,
        // RFC 1323 came with Windows 98.
        window_scaling: false,
        timestamps: false,
        timestamp_tick: ms(100),
        nagle: Nagle::Rfc896,
        naglim: u64::MAX,
        ack_every: 2,
        ack_counting: AckCounting::Segments,
        // 200 ms, with a timer for each connection: estimate.
        ack_delay: ms(200),
        ack_heartbeat: false,
        quick_acks: 0,
        // 3 s: estimate, as in Windows NT 4 (Q120642).
        rto_initial: ms(3_000),
        syn_linear_timeouts: 0,
        rto_minimum: ms(300),
        rto_floor: RtoFloor::Timeout,
        rto_maximum: ms(120_000),
        rto_tick: ms(100),
        rto_heartbeat: false,
        heartbeat_phase: Time::ZERO,
        rtt_every_ack: false,
        persist_minimum: ms(300),
        persist_maximum: ms(60_000),
        time_wait: ms(240_000),
        initial_window: 1,
        byte_counting: 0,
        // As in BSD: estimate.
        whole_segments: true,
        window_validation: false,
        restart_after_idle: true,
        // It is not known if it had fast recovery; Reno is the estimate.
        recovery: RecoveryKind::Reno,
        duplicate_threshold: 3,
        limited_transmit: false,
        dsack: false,
        undo: false,
        ecn: false,
        accepts_ecn: false,
        congestion: Congestion::Reno(Reno::default()),
    }
}

/// Linux 6. Sources: `Documentation/networking/ip-sysctl.rst`, `include/net/tcp.h`, `net/ipv4/tcp_*.c`.
fn linux_6(mss: u64) -> TcpParameters {
    TcpParameters {
        mss,
        path_mtu: PathMtu::Known,
        // `tcp_wmem` maximum 4 MiB and `tcp_rmem` maximum 6 MiB: the buffers are as large as automatic tuning may make
        // them; tuning itself is not modelled. Half of the memory for receiving is for bookkeeping
        // (`tcp_adv_win_scale` 1).
        send_buffer: 4 << 20,
        send_low_water: 0,
        send_buffer_rule: SendBufferRule::Bytes,
        write_boundaries: false,
        receive_buffer: 3 << 20,
        receive_minimum_segments: 0,
        // `tcp_cleanup_rbuf`.
        window_update: WindowUpdate::Doubled,
        // `tcp_window_scaling`, `tcp_timestamps`, `tcp_sack`, `tcp_dsack`: all 1.
        window_scaling: true,
        timestamps: true,
        timestamp_tick: ms(1),
        // `tcp_minshall_check`.
        nagle: Nagle::Minshall,
        naglim: u64::MAX,
        // `__tcp_ack_snd_check`: more than one segment's worth of bytes. `tcp_cleanup_rbuf`: a short segment that has been read.
        ack_every: 2,
        ack_counting: AckCounting::FullSegmentsOrShort,
        // `TCP_DELACK_MIN` 40 ms; the adaptive timeout up to 200 ms is not modelled.
        ack_delay: ms(40),
        ack_heartbeat: false,
        // `TCP_MAX_QUICKACKS` 16 at the start of a connection.
        quick_acks: 16,
        // `TCP_TIMEOUT_INIT` 1 s, `TCP_RTO_MIN` 200 ms (a floor of the variance), `TCP_RTO_MAX` 120 s.
        rto_initial: ms(1_000),
        // `tcp_syn_linear_timeouts`, since Linux 6.5.
        syn_linear_timeouts: 4,
        rto_minimum: ms(200),
        rto_floor: RtoFloor::Variance,
        rto_maximum: ms(120_000),
        // The timer wheel at HZ = 1000; round trips are measured in microseconds.
        rto_tick: ms(1),
        rto_heartbeat: false,
        heartbeat_phase: Time::ZERO,
        rtt_every_ack: true,
        // Probes use the retransmission timeout's bounds (`tcp_probe0_when`).
        persist_minimum: ms(200),
        persist_maximum: ms(120_000),
        // `TCP_TIMEWAIT_LEN` 60 s.
        time_wait: ms(60_000),
        // `TCP_INIT_CWND` 10 (RFC 6928).
        initial_window: 10,
        // `tcp_slow_start` counts every acknowledged segment, without a limit.
        byte_counting: 1 << 20,
        // `tcp_reno_ssthresh`, `cubictcp_recalc_ssthresh`: windows are whole segments.
        whole_segments: true,
        // `tcp_is_cwnd_limited`.
        window_validation: true,
        // `tcp_slow_start_after_idle` 1.
        restart_after_idle: true,
        // `tcp_recovery` 1: RACK, with tail loss probes (`tcp_early_retrans` 3).
        recovery: RecoveryKind::RackTlp,
        // `tcp_reordering` 3.
        duplicate_threshold: 3,
        limited_transmit: true,
        dsack: true,
        // `tcp_try_undo_recovery` and related functions.
        undo: true,
        // `tcp_ecn` 2: Linux accepts ECN but does not request it.
        ecn: false,
        accepts_ecn: true,
        congestion: Congestion::Cubic(Cubic::default()),
    }
}
