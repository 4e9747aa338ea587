//! Results of real hosts for a flow and for a point (engines `measure` and `emulate`).

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::flow::FlowOutcome;
use crate::place::Bottleneck;
use crate::signal::{count, number, share, time};

/// Results of a flow between real hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RealFlow {
    /// CPU seconds of the sending threads per GB of payload.
    #[schemars(extend("x-signal" = number("Sender CPU", "s/GB").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_cpu_s_per_gb: Option<f64>,
    /// CPU seconds of the receiving threads per GB of payload.
    #[schemars(extend("x-signal" = number("Receiver CPU", "s/GB").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_cpu_s_per_gb: Option<f64>,
    /// Fraction of its schedule that the sender kept, 0 to 1.
    #[schemars(extend("x-signal" = share("Schedule kept").higher()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_kept: Option<f64>,
    /// Gaps between datagrams at the receiver.
    #[schemars(extend("x-signal" = time("Gap {}").column("gap_{}_s")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_s: Option<Gaps>,
    /// Maximum number of datagrams received within a millisecond.
    #[schemars(extend("x-signal" = number("Burst", "datagrams/ms").maximum().lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_datagrams_per_ms: Option<u64>,
    /// Requests and responses; only for `request-response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// Regularity of a paced flow, and how much of its deviation the sender caused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<GapDeviation>,
    /// Precision of the mean rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// All observed limits of the flow, in order of falling weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Reports of the agents by host. Kernel counters keep the kernel's names.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ends: IndexMap<String, Value>,
}

/// Gaps between datagrams, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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

/// Requests and their responses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Answered requests per second.
    #[schemars(extend("x-signal" = number("Transactions", "1/s").column("transactions_per_s").higher()))]
    pub per_s: f64,
    /// Number of requests without a response.
    #[schemars(extend("x-signal" = count("Unanswered", "requests").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<u64>,
    /// Time from a request to its response.
    #[schemars(extend("x-signal" = time("Latency {}").column("latency_{}_s").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<Latency>,
}

/// Times from requests to responses, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GapDeviation {
    /// How the sender waits for the next send time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Scheduling class of the sending thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_class: Option<String>,
    /// Whether the host kept its cores out of deep sleep states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_latency_held: Option<bool>,
    /// Stalls of the sender by cause, as its agent reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Value>,
    /// Fraction of the variance of the gaps that the stalls explain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained_share: Option<f64>,
    /// The explained share, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Precision of a mean rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Precision {
    /// Requested half width of the confidence interval, as a fraction of the mean.
    pub asked: f64,
    /// Whether the requested precision was reached.
    pub reached: bool,
    /// Confidence, 0 to 1.
    pub confidence: f64,
    /// Number of intervals.
    pub intervals: u64,
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Mean rate in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_bit_per_s: Option<f64>,
    /// Half width of the confidence interval of the mean in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width_bit_per_s: Option<f64>,
    /// Half width as a fraction of the mean; absent if the mean is zero.
    #[schemars(extend("x-signal" = share("Precision").column("precision_share").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Number of independent samples that are equivalent to the intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_samples: Option<f64>,
}

/// A possible limit of a flow, as observed by its hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The possible bottleneck.
    pub bottleneck: Bottleneck,
    /// How close it was to its limit, or the fraction of time in which it limited the sender: 0 to 1.
    pub weight: f64,
    /// The observation.
    pub evidence: String,
}

/// Details of a point with real hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredPoint {
    /// End of the point, ISO 8601.
    pub at: String,
    /// Duration of the point in seconds.
    pub took_s: f64,
    /// Network that carried the packets: `hosts`, `veth` or `model`.
    pub carrier: String,
    /// Deviations from the file, and values that could not be observed.
    pub notes: Vec<String>,
    /// Whether all flows reached the requested precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<PointPrecision>,
}

/// Result of the stopping rule of a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PointPrecision {
    /// Requested half width of the confidence interval, as a fraction of the mean.
    pub asked: f64,
    /// Whether all flows reached it.
    pub reached: bool,
}

/// Details of an emulated point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Emulated {
    /// How the driver waits for the next event.
    pub clock: String,
    /// Time dilation: the factor by which the network runs slower than real time.
    pub slow: u32,
    /// Whether every packet crosses separately, without segmentation offload.
    pub no_offload: bool,
    /// Lateness above which a point is invalid, as text with unit.
    pub max_lateness: String,
    /// Whether hosts have Ethernet devices (TAP).
    pub tap: bool,
    /// Lateness of the packets, as the driver reported it.
    pub lateness: Value,
    /// Counts of the network for each pair of hosts, by "A to B".
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub host_pairs: IndexMap<String, FlowOutcome>,
}
