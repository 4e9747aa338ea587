//! What `limit` knows of a flow besides its fair share.

use schemars::JsonSchema;
use serde::Serialize;

use crate::place::Bottleneck;

/// Bound, window, waterfall and candidates of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowLimit {
    /// The bound; none in outcomes of the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The window of each connection; only of a `tcp-stream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowLimit>,
    /// One-way delay of a message, or of a full segment of TCP, that meets nothing else on its way, in seconds; the least of all ways. None for
    /// generators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_delay_s: Option<f64>,
    /// Names of the events that the fair share does not look at: it is that of the time before the first of them, in which all links are up. The
    /// bound holds in spite of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_events: Vec<String>,
    /// From the line rate of the link that limits most to the goodput: the rate left after each step.
    pub stages: Vec<Stage>,
    /// Everything that could limit the flow: links along its route, shaper, policer, token buckets, routers, hosts with their memories and buses,
    /// application, and for TCP the acknowledgements.
    pub candidates: Vec<Candidate>,
}

/// The most goodput that a flow can reach.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Bound {
    /// No engine of the model exceeds it over the counted time, apart from the backlog at the end of the warm-up.
    pub bit_per_s: f64,
    /// Candidate with the smallest bound.
    pub bottleneck: Bottleneck,
    /// The bound and its bottleneck in a sentence.
    pub summary: String,
}

/// The window that socket buffers give a TCP connection, and the window that would fill the line.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WindowLimit {
    /// Most payload in flight, in bytes.
    pub bytes: u64,
    /// The reason for this size.
    pub set_by: SetBy,
    /// The shortest round trip of a full segment and its acknowledgement, hosts included, in seconds. Where packets take several ways: by the
    /// longest way there and the shortest way back, of the connection for which that takes longest.
    pub round_trip_s: f64,
    /// Line rate of the narrowest line on the path, times the round trip.
    pub bandwidth_delay_product_bytes: f64,
    /// Payload in flight that fills this line: the size that both socket buffers of each connection need.
    pub filling_bytes: f64,
}

/// The reason for the size of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SetBy {
    /// The receive buffer is the window.
    ReceiveBuffer,
    /// The window field has no scale (RFC 7323 section 2).
    WindowField,
    /// The send buffer is smaller than the announced window.
    SendBuffer,
}

/// One step of the waterfall from the line rate to the goodput.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Stage {
    /// What takes its part in this step.
    pub name: String,
    /// Rate left after it.
    pub rate_bit_per_s: f64,
}

/// Something that could limit a flow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Candidate {
    /// What it is.
    pub bottleneck: Bottleneck,
    /// Goodput if nothing else limited this flow and the others had their fair shares.
    pub goodput_bit_per_s: f64,
    /// The bound if nothing else limited this flow; none where a random source has no bound. Where packets may take one of several links side by
    /// side, it is the bound of all of these together, with what can come to each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_bit_per_s: Option<f64>,
}
