//! TCP settings of a testbed file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::Congestion;
use super::parameters::{
    AckCounting, Nagle, PathMtu, RecoveryKind, RtoFloor, SendBufferRule, TcpParameters, WindowUpdate,
};
use super::profile::Profile;
use crate::range_errors::{LONGEST, RangeErrors};
use crate::unit::{Duration, Size};

/// TCP settings of a host or of a traffic: the profile of a real stack, and the values that differ from it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpConfig {
    /// The stack that gives the values of all keys not given; `linux-6` by default.
    pub profile: Option<Profile>,
    /// Maximum segment size, TCP options included. The maximum and the default are the MTU less 40 bytes (RFC 9293 section 3.7.1).
    pub mss: Option<Size>,
    /// How the connection learns the largest packet that the path carries; `known` by default.
    pub path_mtu: Option<PathMtu>,
    /// Size of the send buffer, or its high-water mark.
    pub send_buffer: Option<Size>,
    /// Low-water mark of the send buffer, only for the rule `high-water`.
    pub send_low_water: Option<Size>,
    /// How much the application may write before it blocks.
    pub send_buffer_rule: Option<SendBufferRule>,
    /// Whether segments end where writes end, unless Nagle's rule would hold back the last part of the write.
    pub write_boundaries: Option<bool>,
    /// Size of the receive buffer.
    pub receive_buffer: Option<Size>,
    /// Minimum size of the receive buffer, in segments.
    pub receive_minimum_segments: Option<u64>,
    /// When a read announces a larger window at once.
    pub window_update: Option<WindowUpdate>,
    /// Offer window scaling (RFC 7323).
    pub window_scaling: Option<bool>,
    /// Offer timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Nagle's rule.
    pub nagle: Option<Nagle>,
    /// Limit of Nagle's rule in its Solaris form, `naglim`: only segments shorter than this are held back.
    pub naglim: Option<Size>,
    /// Number of segments that makes an acknowledgment due; `ack_counting` says how they count.
    pub ack_every: Option<u32>,
    /// How received data counts towards `ack_every`: `segments` of any length; their bytes, in `full-segments`; these, or a short segment behind another one
    /// (`full-segments-or-tails`, Solaris); or more bytes than all but one of them have, or one segment that is shorter than 536 bytes or than the one before it
    /// (`full-segments-or-short`, Linux).
    pub ack_counting: Option<AckCounting>,
    /// Time after which an acknowledgment is due.
    pub ack_delay: Option<Duration>,
    /// Whether acknowledgments wait for a heartbeat with the period `ack_delay`, instead of for a timer that a segment starts.
    pub ack_heartbeat: Option<bool>,
    /// Number of data segments at the start that are acknowledged at once.
    pub quick_acks: Option<u32>,
    /// Retransmission timeout before a round trip is measured.
    pub rto_initial: Option<Duration>,
    /// Smallest retransmission timeout.
    pub rto_minimum: Option<Duration>,
    /// The value that `rto_minimum` limits.
    pub rto_floor: Option<RtoFloor>,
    /// Largest retransmission timeout.
    pub rto_maximum: Option<Duration>,
    /// Granularity of the retransmission clock.
    pub rto_tick: Option<Duration>,
    /// Whether the retransmission timer expires only at multiples of `rto_tick`.
    pub rto_heartbeat: Option<bool>,
    /// Congestion window at the start, in segments.
    pub initial_window: Option<u64>,
    /// 0: every acknowledgment counts as one segment. `n`: acknowledged bytes count, in slow start at most `n` segments for one acknowledgment (RFC
    /// 3465).
    pub byte_counting: Option<u64>,
    /// Whether congestion control counts whole segments, as stacks do; the RFCs count bytes. If true, a loss reduces the threshold to a whole number
    /// of segments, and CUBIC grows as in Linux.
    pub whole_segments: Option<bool>,
    /// Whether the congestion window falls back to the initial one after an idle time longer than the retransmission timeout.
    pub restart_after_idle: Option<bool>,
    /// How lost segments are detected and retransmitted.
    pub recovery: Option<RecoveryKind>,
    /// Number of duplicate acknowledgments that indicates a loss.
    pub duplicate_threshold: Option<u32>,
    /// Whether the first duplicate acknowledgments each allow a new segment (RFC 3042).
    pub limited_transmit: Option<bool>,
    /// Offer ECN (RFC 3168), and accept it. By default no profile offers it, `linux-6` accepts it, and with `dctcp` the value is `true`.
    pub ecn: Option<bool>,
    /// Congestion control.
    pub congestion: Option<Congestion>,
}

/// Creates a config with each key of the first one, or else of the second.
macro_rules! either {
    ($one:ident, $other:ident: $($key:ident),+) => {
        TcpConfig { $($key: $one.$key.clone().or_else(|| $other.$key.clone())),+ }
    };
}

/// Copies the given keys over the profile's values.
macro_rules! overlay {
    ($config:ident, $p:ident: $($key:ident),+ ; sizes $($size:ident),+ ; times $($time:ident),+) => {
        $(if let Some(value) = &$config.$key { $p.$key = value.clone(); })+
        $(if let Some(value) = $config.$size { $p.$size = value.bytes(); })+
        $(if let Some(value) = $config.$time { $p.$time = value.time(); })+
    };
}

impl TcpConfig {
    /// Returns the config of an unchanged profile.
    pub fn profile(profile: Profile) -> Self {
        Self { profile: Some(profile), ..Self::default() }
    }

    /// Returns this config, completed with the keys of `base` that it does not give.
    pub fn over(&self, base: &Self) -> Self {
        either!(self, base:
            profile, mss, path_mtu, send_buffer, send_low_water, send_buffer_rule, write_boundaries, receive_buffer,
            receive_minimum_segments, window_update, window_scaling, timestamps, nagle, naglim, ack_every, ack_counting,
            ack_delay, ack_heartbeat, quick_acks, rto_initial, rto_minimum, rto_floor, rto_maximum, rto_tick,
            rto_heartbeat, initial_window, byte_counting, whole_segments, restart_after_idle, recovery, duplicate_threshold,
            limited_transmit, ecn, congestion
        )
    }

    /// Returns whether the connection discovers the path MTU: segments fit the first link only and may not be fragmented, and the connection needs
    /// the signals of smaller MTUs ([`Connection::on_too_big`](super::Connection::on_too_big)).
    pub fn discovers_path_mtu(&self) -> bool {
        self.path_mtu == Some(PathMtu::Discovered)
    }

    /// Returns every parameter, for an MTU in bytes: that of the path, or of the first link if the path MTU is
    /// [discovered](Self::discovers_path_mtu).
    pub fn resolve(&self, mtu: u64) -> TcpParameters {
        let mut p = self.profile.unwrap_or_default().parameters(mtu);
        overlay!(self, p:
            path_mtu, send_buffer_rule, write_boundaries, receive_minimum_segments, window_update, window_scaling, timestamps,
            nagle, ack_every, ack_counting, ack_heartbeat, quick_acks, rto_floor, rto_heartbeat, initial_window,
            byte_counting, whole_segments, restart_after_idle, recovery, duplicate_threshold, limited_transmit, ecn, congestion;
            sizes mss, send_buffer, send_low_water, receive_buffer, naglim;
            times ack_delay, rto_initial, rto_minimum, rto_maximum, rto_tick
        );
        p.mss = p.mss.min(mtu.saturating_sub(40).max(1));
        // A congestion control that counts marks needs ECN.
        p.ecn |= self.ecn.is_none() && p.congestion.config().wants_exact_marks();
        p.accepts_ecn = self.ecn.unwrap_or(p.accepts_ecn || p.ecn);
        p
    }

    /// Adds an error for each value that is out of range.
    pub fn check(&self, errors: &mut RangeErrors) {
        const MAX_BUFFER: u64 = 1 << 30;
        for (key, size) in [("send_buffer", self.send_buffer), ("receive_buffer", self.receive_buffer)] {
            if let Some(size) = size {
                let cause = "a socket buffer cannot have this size";
                errors.between(&[key], size.bytes(), (1, MAX_BUFFER), "B", cause);
            }
        }
        if let Some(mss) = self.mss {
            let cause = "the segment size is out of range";
            errors.between(&["mss"], mss.bytes(), (40, 65_495), "B", cause);
        }
        for (key, count, most) in [
            ("ack_every", self.ack_every.map(u64::from), 1000),
            ("duplicate_threshold", self.duplicate_threshold.map(u64::from), 1000),
            ("initial_window", self.initial_window, 10_000),
        ] {
            if let Some(count) = count {
                errors.between(
                    &[key],
                    count,
                    (1, most),
                    "segments",
                    "the number of segments is out of range",
                );
            }
        }
        if let Some(count) = self.quick_acks {
            let cause = "the number of segments is out of range";
            errors.between(&["quick_acks"], count.into(), (0, 65_535), "segments", cause);
        }
        if let Some(count) = self.receive_minimum_segments {
            let cause = "the number of segments is out of range";
            errors.between(&["receive_minimum_segments"], count, (0, 10_000), "segments", cause);
        }
        errors.at_most(&["ack_delay"], self.ack_delay, LONGEST);
        for (key, time) in [
            ("rto_initial", self.rto_initial),
            ("rto_minimum", self.rto_minimum),
            ("rto_maximum", self.rto_maximum),
            ("rto_tick", self.rto_tick),
        ] {
            if let Some(time) = time {
                errors.positive(&[key], time, LONGEST);
            }
        }
        let (least, most) = self.timeout_bounds();
        if least > most {
            let cause = "it exceeds `rto_maximum`";
            errors.add(&["rto_minimum"], cause, "lower `rto_minimum`, or raise `rto_maximum`");
        }
    }

    fn timeout_bounds(&self) -> (u64, u64) {
        let p = self.resolve(1500);
        (p.rto_minimum.ps(), p.rto_maximum.ps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: serde_json::Value) -> Result<TcpConfig, serde_json::Error> {
        serde_json::from_value(json)
    }

    #[test]
    fn tcp_keys_that_are_not_set_come_from_the_profile() {
        let config = read(serde_json::json!({
            "profile": "solaris-2.5",
            "receive_buffer": "64 KiB",
            "rto_minimum": "300 ms",
            "congestion": { "cubic": { "fast_convergence": false } },
        }));
        let config = config.expect("the config is valid");
        let p = config.resolve(9180);
        let mut expected = Profile::Solaris25.parameters(9180);
        expected.receive_buffer = 65536;
        expected.rto_minimum = crate::time::Time(300_000_000_000);
        expected.congestion = config.congestion.clone().expect("the config sets congestion control");
        assert_eq!(p, expected);
        assert_eq!(p.mss, 9140);
        let written = serde_json::to_value(&config).expect("the value serializes to JSON");
        assert_eq!(read(written).expect("the written config is readable"), config);
    }

    #[test]
    fn tcp_settings_of_a_flow_override_its_hosts() {
        let flow =
            read(serde_json::json!({ "mss": "500 B", "congestion": "reno" })).expect("the config is valid");
        let host = read(serde_json::json!({ "mss": "1000 B", "ack_every": 3 })).expect("the config is valid");
        let both = flow.over(&host);
        let expected = read(serde_json::json!({ "mss": "500 B", "congestion": "reno", "ack_every": 3 }));
        assert_eq!(both, expected.expect("the config is valid"));
        assert_eq!(TcpConfig::default().over(&host), host);
    }

    #[test]
    fn mss_is_limited_by_the_path_mtu() {
        let config = read(serde_json::json!({ "mss": "9000 B" })).expect("the config is valid");
        assert_eq!([1500, 9040, 9180].map(|mtu| config.resolve(mtu).mss), [1460, 9000, 9000]);
    }

    #[test]
    fn path_mtu_is_known_unless_discovery_is_set() {
        for profile in Profile::ALL {
            let config = TcpConfig::profile(profile);
            assert_eq!((config.resolve(1500).path_mtu, config.discovers_path_mtu()), (PathMtu::Known, false));
        }
        let [known, discovered] = ["known", "discovered"]
            .map(|path_mtu| read(serde_json::json!({ "path_mtu": path_mtu })).expect("the config is valid"));
        // The value of a flow takes precedence over that of its host.
        assert!(
            discovered.over(&known).discovers_path_mtu() && !known.over(&discovered).discovers_path_mtu()
        );
        let host = TcpConfig::default().over(&discovered);
        assert_eq!((host.resolve(9180).path_mtu, host.resolve(9180).mss), (PathMtu::Discovered, 9140));
        assert!(read(serde_json::json!({ "path_mtu": "probed" })).is_err());
    }

    #[test]
    fn an_explicit_setting_also_says_whether_ecn_is_accepted() {
        for (profile, accepts) in [(Profile::Linux6, true), (Profile::BsdReno, false)] {
            let of = |ecn| TcpConfig { ecn, ..TcpConfig::profile(profile) }.resolve(1500);
            let ends = [None, Some(false), Some(true)].map(|ecn| (of(ecn).ecn, of(ecn).accepts_ecn));
            assert_eq!(ends, [(false, accepts), (false, false), (true, true)], "{profile:?}");
        }
    }

    #[test]
    fn dctcp_enables_ecn_unless_it_is_set() {
        assert!(
            read(serde_json::json!({ "congestion": "dctcp" }))
                .expect("the config is valid")
                .resolve(1500)
                .ecn
        );
        let refused = read(serde_json::json!({ "congestion": "dctcp", "ecn": false }));
        assert!(
            !refused.expect("the config is valid").resolve(1500).ecn,
            "an explicit setting overrides the default"
        );
    }

    #[test]
    fn tcp_config_rejects_invalid_values() {
        assert!(read(serde_json::json!({ "receive_bufer": "64 KiB" })).is_err());
        let wrong = read(serde_json::json!({
            "send_buffer": "0 B", "ack_every": 0, "rto_tick": "0 s", "rto_minimum": "3 min", "mss": "10 B",
        }));
        let mut errors = RangeErrors::default();
        wrong.expect("the values have the right types").check(&mut errors);
        let mut keys: Vec<_> = errors.into_iter().map(|complaint| complaint.path[0].clone()).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["ack_every", "mss", "rto_minimum", "rto_tick", "send_buffer"]);
    }
}
