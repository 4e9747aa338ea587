//! Results of `limit` for a flow, besides its fair share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::place::Bottleneck;
use crate::signal::{rate, time};

/// Bound, window, waterfall and candidates of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowLimit {
    /// Upper bound of the goodput; absent in outcomes of format version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Window of each connection; only for `tcp-stream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowLimit>,
    /// One-way delay of a message, or of a full TCP segment, in an idle network, in seconds; the minimum over all paths. Absent for
    /// generators.
    #[schemars(extend("x-signal" = time("Idle delay").lower().always()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_delay_s: Option<f64>,
    /// Names of events that the fair share ignores. The fair share applies to the time before the first of them, when all links are up. The
    /// bound holds despite them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_events: Vec<String>,
    /// The waterfall: from the line rate of the tightest link to the goodput, with the rate after each step.
    pub stages: Vec<Stage>,
    /// Everything that could limit the flow: links along its path, shaper, policer, token buckets, routers, hosts with their memory and
    /// buses, application, and for TCP the acknowledgements.
    pub candidates: Vec<Candidate>,
}

/// Upper bound of the goodput of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Goodput that neither `limit` nor `simulate` exceeds in the measurement window, except for the backlog at the end of the warm-up.
    #[schemars(extend("x-signal" = rate("Bound").column("bound_bit_per_s").always()))]
    pub bit_per_s: f64,
    /// Candidate with the smallest bound.
    pub bottleneck: Bottleneck,
    /// The bound and its bottleneck, as a sentence.
    pub summary: String,
}

/// The window of a TCP connection, given by its socket buffers, and the window that would fill the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowLimit {
    /// Maximum payload in flight, in bytes.
    pub bytes: u64,
    /// What determines this size.
    pub set_by: SetBy,
    /// Minimum round-trip time of a full segment and its acknowledgement, hosts included, in seconds. If packets take several paths: by the
    /// longest forward path and the shortest return path, for the connection with the largest value.
    pub round_trip_s: f64,
    /// Line rate of the slowest line on the path times the round-trip time, in bytes.
    pub bandwidth_delay_product_bytes: f64,
    /// Payload in flight that fills this line, in bytes: the size that both socket buffers of each connection need.
    pub filling_bytes: f64,
}

/// The setting that determines the size of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SetBy {
    /// The receive buffer.
    ReceiveBuffer,
    /// The window field, because window scaling is not used (RFC 7323 section 2).
    WindowField,
    /// The send buffer, which is smaller than the announced window.
    SendBuffer,
}

/// One step of the waterfall from line rate to goodput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Name of the loss or overhead that this step subtracts.
    pub name: String,
    /// Rate after this step, in bit/s.
    pub rate_bit_per_s: f64,
}

/// A possible bottleneck of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The possible bottleneck.
    pub bottleneck: Bottleneck,
    /// Goodput in bit/s if nothing else limited this flow and the other flows had their fair shares.
    pub goodput_bit_per_s: f64,
    /// Bound in bit/s if nothing else limited this flow; absent if random traffic has no bound. If packets may take one of several parallel
    /// links, it is the joint bound of these links, given what can arrive at each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_bit_per_s: Option<f64>,
}
