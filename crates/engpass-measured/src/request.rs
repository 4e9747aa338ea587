//! Requests to agents (docs/agent.md).

use engpass_model::source::on_off::Lengths;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the requests are for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// What lies between the hosts.
    pub engine: Engine,
    /// Seed of the repeat.
    pub seed: u64,
    /// Factor of time dilation of an emulated network, at least 1; 1 for real time.
    pub slow: u32,
    /// True if a run lasts for `duration`, whatever its `precision`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    /// Congestion controls of the machine that emulates.
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
    /// The default one.
    pub own: String,
    /// Those that a socket may request.
    pub known: Vec<String>,
}

/// The requests of a point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Flows that still send after the warm-up.
    pub flows: Vec<FlowRequests>,
    /// Deviations from the file, as sentences.
    pub notes: Vec<String>,
    /// When the run may end before its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRule>,
}

/// The requests of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowRequests {
    /// Name of the traffic.
    pub name: String,
    /// Kind of traffic.
    pub kind: String,
    /// Sending host.
    pub sender: String,
    /// Receiving hosts.
    pub receivers: Vec<String>,
    /// Start of the traffic after that of the run.
    pub start_ns: u64,
    /// Warm-up of the flow.
    pub warmup_ns: u64,
    /// Length of the measurement window.
    pub duration_ns: u64,
    /// Request to the sender.
    pub send: Prepare,
    /// Request to each receiver.
    pub receive: Prepare,
    /// Address of a multicast group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// When a run may end before its time: when the mean of every series is precise enough.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRule {
    /// Wanted half width of the confidence interval, as a share of the mean.
    pub asked: f64,
    /// The series to watch.
    pub series: Vec<Series>,
}

/// A series of samples, one for each interval that an agent reports.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Name of the traffic.
    pub flow: String,
    /// Host that reports.
    pub host: String,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Warm-up, whose intervals do not count.
    pub warmup_ns: u64,
    /// What a sample counts: `bytes` or `messages`.
    pub of: String,
    /// Bits of payload for each byte or message.
    pub bits: u64,
}

/// A request to prepare one end of a flow. The controller adds run, peers and addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// Kind of traffic of the agent: `tcp-stream`, `udp-stream` or `request-response`.
    pub kind: String,
    /// Payload of a message.
    pub message_bytes: u64,
    /// Warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_ns: Option<u64>,
    /// Length of the measurement window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Length of the intervals of the time series; 0 for none.
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
    /// Payload of a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<u64>,
    /// Payload of a transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// True for MPTCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<bool>,
    /// True if the kernel segments large writes into datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segmentation: Option<bool>,
    /// When messages are due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// True if the receiver takes time stamps and reports gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<bool>,
    /// How the sender waits for the next send time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<String>,
    /// Messages sent at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_messages: Option<u64>,
    /// System call or interface that hands messages to the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// True if the receiver discards payload in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncate: Option<bool>,
    /// Cores of the threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Vec<u32>>,
    /// Socket options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Socket>,
    /// Token of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Name of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// `listen` or `connect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<String>,
    /// Addresses that may connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<String>>,
    /// Addresses and ports to connect to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
    /// Address and port of a multicast group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Interface at which a receiver joins the group.
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
    /// Longest time that the flow may take.
    pub duration_ns: u64,
}

/// The schedule by which a sender sends messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// `cbr`, `poisson`, `on-off` or `video`.
    pub kind: String,
    /// Payload rate of each stream; of `on-off`, while it is on.
    pub rate_bit_per_s: u64,
    /// Seed of random gaps or times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Mean length of a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_ns: Option<u64>,
    /// Mean length of a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_ns: Option<u64>,
    /// Distribution of the lengths of bursts and pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengths: Option<Lengths>,
    /// Frame rate, in millionths of a frame per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_frames_per_s: Option<u64>,
    /// Frames in a group of pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_of_pictures: Option<u32>,
    /// Size of an intra frame in 10^-9 of any other frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intra_size_ppb: Option<u64>,
}

impl Schedule {
    /// Returns a schedule with even gaps.
    pub(crate) fn even(rate_bit_per_s: u64) -> Self {
        Self { kind: "cbr".to_owned(), rate_bit_per_s, ..Self::default() }
    }

    /// Returns the mean payload rate of this number of streams together, in bit/s.
    pub(crate) fn mean_of(&self, streams: u64) -> f64 {
        let rate = self.rate_bit_per_s as f64 * streams as f64;
        match self.on_ns {
            Some(on) => rate * on as f64 / (on + self.off_ns.unwrap_or(0)) as f64,
            None => rate,
        }
    }

    /// Stretches the schedule by the factor of time dilation.
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

/// Socket options; the host's defaults apply to those that are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// Differentiated services code point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// True if routers must not fragment packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dont_fragment: Option<bool>,
    /// Time to live of the packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u8>,
    /// Priority class of the packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Maximum segment size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u64>,
    /// Send buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// Receive buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// True if Nagle's algorithm is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<bool>,
    /// Congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}
