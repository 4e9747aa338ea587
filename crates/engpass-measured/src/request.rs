//! Requests to agents (docs/agent.md).

use engpass_model::source::on_off::Lengths;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The run for which requests are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Engine of the run.
    pub engine: Engine,
    /// Seed of the repeat.
    pub seed: u64,
    /// Factor of time dilation of an emulated network, at least 1; 1 for real time.
    pub slow: u32,
    /// True if a run lasts for `duration`, whatever its `precision`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    /// Congestion controls of the machine that emulates the network; absent in `measure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Congestion>,
}

/// An engine with real hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// A real network lies between the hosts.
    Measure,
    /// The simulated network carries the packets of the hosts.
    Emulate,
}

/// Congestion controls of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Congestion {
    /// Default congestion control.
    pub own: String,
    /// Congestion controls that a socket may request.
    pub known: Vec<String>,
}

/// The requests of a point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Flows that still send after the warm-up.
    pub flows: Vec<FlowRequests>,
    /// Deviations of real hosts from the file, as sentences.
    pub notes: Vec<String>,
    /// Rule by which the run may end before its time; absent without `precision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRule>,
}

/// The requests of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowRequests {
    /// Name of the traffic.
    pub name: String,
    /// Kind of traffic, as in the file.
    pub kind: String,
    /// Name of the sending host.
    pub sender: String,
    /// Names of the receiving hosts: one, or the members of a multicast group.
    pub receivers: Vec<String>,
    /// Time from the start of the run to the start of the traffic, in nanoseconds.
    pub start_ns: u64,
    /// Warm-up of the flow, in nanoseconds.
    pub warmup_ns: u64,
    /// Length of the measurement window, in nanoseconds.
    pub duration_ns: u64,
    /// Request to the sender.
    pub send: Prepare,
    /// Request to each receiver.
    pub receive: Prepare,
    /// IP address of the multicast group; absent without multicast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// Rule by which a run may end before its time: the mean of every series is precise enough.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRule {
    /// Largest half width of the confidence interval, as a share of the mean.
    pub asked: f64,
    /// Series whose means must be precise enough.
    pub series: Vec<Series>,
}

/// A series of samples, one for each interval that an agent reports.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Name of the traffic.
    pub flow: String,
    /// Name of the host that reports.
    pub host: String,
    /// Length of an interval, in nanoseconds.
    pub interval_ns: u64,
    /// Warm-up in nanoseconds; its intervals are no samples.
    pub warmup_ns: u64,
    /// Unit of a sample: `bytes` or `messages`.
    pub of: String,
    /// Bits of payload for each byte or message.
    pub bits: u64,
}

/// A request to prepare one end of a flow. Absent fields have the agent's defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// Kind of traffic of the agent: `tcp-stream`, `udp-stream` or `request-response`.
    pub kind: String,
    /// Payload of a message, in bytes.
    pub message_bytes: u64,
    /// Warm-up, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_ns: Option<u64>,
    /// Length of the measurement window, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Length of the intervals of the time series, in nanoseconds; 0 for no series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// Limits that the agent enforces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Number of connections or sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u64>,
    /// Transport of requests: `tcp` or `udp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Payload of a response, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<u64>,
    /// Payload after which each connection or socket ends, in bytes; absent if only time ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// True if connections use MPTCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<bool>,
    /// True if the kernel segments large writes into datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segmentation: Option<bool>,
    /// Times at which messages are due; absent for as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// True if the receiver takes timestamps and reports the gaps between datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<bool>,
    /// Method by which the sender waits for the next send time, such as `sleep`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<String>,
    /// Number of messages that the sender sends at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_messages: Option<u64>,
    /// System call or interface that hands messages to the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// True if the receiver discards payload in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncate: Option<bool>,
    /// Indices of the cores to which the threads are bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Vec<u32>>,
    /// Socket options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Socket>,
    // The controller sets the following fields.
    /// Token of the run, which both ends must know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Name of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Side of this end at the set-up of connections: `listen` or `connect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<String>,
    /// IP addresses that may connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<String>>,
    /// IP addresses and ports to which this end connects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
    /// IP address and port of the multicast group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Name of the interface at which a receiver joins the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// False if the receiver joins only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<bool>,
}

/// Limits on a flow that an agent enforces.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Longest time that the flow may take, in nanoseconds.
    pub duration_ns: u64,
}

/// The schedule by which a sender sends messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// `cbr`, `poisson`, `on-off` or `video`.
    pub kind: String,
    /// Payload rate of each stream in bit/s; for `on-off`, the rate within a burst.
    pub rate_bit_per_s: u64,
    /// Seed of the random gaps, bursts and pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Mean length of a burst, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_ns: Option<u64>,
    /// Mean length of a pause, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_ns: Option<u64>,
    /// Distribution of the lengths of bursts and pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengths: Option<Lengths>,
    /// Frame rate, in millionths of a frame per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_frames_per_s: Option<u64>,
    /// Number of frames in a group of pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_of_pictures: Option<u32>,
    /// Size of an intra frame as a share of another frame, in billionths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intra_size_ppb: Option<u64>,
}

impl Schedule {
    /// Returns a schedule with even gaps.
    pub(crate) fn even(rate_bit_per_s: u64) -> Self {
        Self { kind: "cbr".to_owned(), rate_bit_per_s, ..Self::default() }
    }

    /// Returns the mean payload rate of this number of streams together, in bit/s, over bursts and pauses.
    pub(crate) fn mean_of(&self, streams: u64) -> f64 {
        let rate = self.rate_bit_per_s as f64 * streams as f64;
        match self.on_ns {
            Some(on) => rate * on as f64 / (on + self.off_ns.unwrap_or(0)) as f64,
            None => rate,
        }
    }

    /// Returns the schedule in wall-clock time, for this factor of time dilation. A rate above 0 stays above 0.
    pub(crate) fn slowed(self, slow: u64) -> Self {
        if slow == 1 {
            return self;
        }
        Self {
            rate_bit_per_s: (self.rate_bit_per_s / slow).max(self.rate_bit_per_s.min(1)),
            on_ns: self.on_ns.map(|time| time * slow),
            off_ns: self.off_ns.map(|time| time * slow),
            micro_frames_per_s: self.micro_frames_per_s.map(|rate| rate / slow),
            ..self
        }
    }
}

/// Socket options. An absent option keeps the host's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// Differentiated services code point of the packets (RFC 2474).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// True if routers must not fragment packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dont_fragment: Option<bool>,
    /// Time to live of the packets, in hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u8>,
    /// Priority class of the packets (`SO_PRIORITY`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Maximum segment size of TCP, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u64>,
    /// Size of the send buffer, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// Size of the receive buffer, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// True if Nagle's algorithm is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<bool>,
    /// Name of TCP's congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}
