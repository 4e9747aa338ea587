//! A run over time: windows, queues, losses and retransmissions.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

/// A run over time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Timeline {
    /// Length of the run in seconds, the warm-up included.
    pub duration_s: f64,
    /// Streams by the name of their traffic table, in the order of the file.
    pub flows: IndexMap<String, FlowLine>,
    /// Queues in switches and routers that traffic crosses, by transmitter: `switch -> host`.
    pub queues: IndexMap<String, QueueLine>,
    /// Links that were down, by name, each with the outages in seconds: when it went down, and when it came up or the run ended; the first 10 000.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub outages: IndexMap<String, Vec<[f64; 2]>>,
}

/// A stream over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowLine {
    /// When the samples were taken, in seconds.
    pub time_s: Vec<f64>,
    /// What its connections' control loops say, for TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpLine>,
    /// Payload received from the beginning on; of TCP in order.
    pub delivered_bytes: Vec<u64>,
    /// A list of events was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// The sending ends of a TCP flow over time, summed over its connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TcpLine {
    /// Congestion window.
    pub congestion_window_bytes: Vec<u64>,
    /// Window that the receiver announced last.
    pub receive_window_bytes: Vec<u64>,
    /// Bytes that the sender holds to be in the network.
    pub flight_bytes: Vec<u64>,
    /// When a segment was sent again, in seconds.
    pub retransmissions: Vec<f64>,
    /// When the retransmission timer expired, in seconds.
    pub timeouts: Vec<f64>,
}

/// A queue over time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct QueueLine {
    /// When the samples were taken, in seconds.
    pub time_s: Vec<f64>,
    /// What was in the queue, the cell that is being sent included; of frames what waits, and in a first in, first out queue the one being sent.
    pub length: Vec<u64>,
    /// What `length` counts: `cells` or `bytes`.
    pub unit: String,
    /// What fits into it (for each service category, where they have queues of their own); `None` where it does not count in `unit`.
    pub capacity: Option<u64>,
    /// When it lost something, in seconds. Cells that were lost one after the other are one loss, at the first of them.
    pub drops: Vec<f64>,
    /// The list of losses was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}
