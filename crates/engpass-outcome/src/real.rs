//! What real hosts tell of a flow and of a point: engines `measure` and `emulate`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::flow::FlowOutcome;
use crate::place::Bottleneck;

/// Figures of a flow between real hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RealFlow {
    /// CPU seconds of the sending threads for each GB of payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_cpu_s_per_gb: Option<f64>,
    /// CPU seconds of the receiving threads for each GB of payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_cpu_s_per_gb: Option<f64>,
    /// Share of its schedule that the sender kept, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_kept: Option<f64>,
    /// Gaps between datagrams at the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_s: Option<Gaps>,
    /// Most datagrams that were received within a millisecond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_datagrams_per_ms: Option<u64>,
    /// Requests and answers, of `request-response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// Regularity of a paced flow, and the sender's part in its deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<GapDeviation>,
    /// How well the mean is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Everything that was found to hold the flow back, the heaviest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The results of the agents by host, with the kernel's own names.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ends: IndexMap<String, Value>,
}

/// Gaps between datagrams, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Gaps {
    /// Mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// Median absolute deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mad: Option<f64>,
    /// 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9: Option<f64>,
}

/// Requests and their answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Requests {
    /// Answered requests per second.
    pub per_s: f64,
    /// Requests without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<u64>,
    /// Time from a request to its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<Latency>,
}

/// Times from requests to answers, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Latency {
    /// Minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// 90th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<f64>,
    /// 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9: Option<f64>,
    /// Maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// Deviation of the gaps of a paced flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GapDeviation {
    /// How the sender waits for its next instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Scheduling class of the sending thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_class: Option<String>,
    /// Whether the host kept its cores from sleeping deeply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_latency_held: Option<bool>,
    /// Stalls of the sender by cause, as its agent told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Value>,
    /// Share of the variance of the gaps that the stalls explain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained_share: Option<f64>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// How well a mean is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Precision {
    /// Half width of the confidence interval that was asked for, as a share of the mean.
    pub asked: f64,
    /// Whether it was reached.
    pub reached: bool,
    /// Confidence, 0 to 1.
    pub confidence: f64,
    /// Intervals that were counted.
    pub intervals: u64,
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Mean rate in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_bit_per_s: Option<f64>,
    /// Half width of its confidence interval in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width_bit_per_s: Option<f64>,
    /// Half width as a share of the mean; none for a mean of nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Independent samples that the intervals are worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_samples: Option<f64>,
}

/// Something that may hold a flow back, from what its hosts saw.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Finding {
    /// What it is.
    pub bottleneck: Bottleneck,
    /// How near to its bound it was, or for which share of the time it held the sender: 0 to 1.
    pub weight: f64,
    /// What was seen.
    pub evidence: String,
}

/// Circumstances of a point with real hosts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MeasuredPoint {
    /// When it ended, ISO 8601.
    pub at: String,
    /// Seconds that it took.
    pub took_s: f64,
    /// What carried the packets: `hosts`, `veth` or `model`.
    pub carrier: String,
    /// What was done otherwise than the file says, and what could not be seen.
    pub notes: Vec<String>,
    /// Whether all flows reached the precision that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<PointPrecision>,
}

/// The stop rule of a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PointPrecision {
    /// Half width of the confidence interval that was asked for, as a share of the mean.
    pub asked: f64,
    /// Whether all flows reached it.
    pub reached: bool,
}

/// Circumstances of an emulated point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Emulated {
    /// How the driver waits.
    pub clock: String,
    /// Factor by which the network is slower than real time.
    pub slow: u32,
    /// Whether each packet crosses by itself, without offload.
    pub no_offload: bool,
    /// Lateness beyond which a point does not count, as text with its unit.
    pub max_lateness: String,
    /// Whether hosts have Ethernet devices (TAP).
    pub tap: bool,
    /// Lateness of the packets, as the driver told it.
    pub lateness: Value,
    /// What the network counted between each pair of hosts, by "A to B".
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub host_pairs: IndexMap<String, FlowOutcome>,
}
