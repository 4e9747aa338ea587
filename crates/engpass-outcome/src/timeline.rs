//! A run over time: windows, queues, losses, retransmissions and loads.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A run over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// Length of the run in seconds, the warm-up included.
    pub duration_s: f64,
    /// Flows by the name of their traffic table, in the order of the file. A multicast traffic with several receivers has the payload of the receiver that
    /// has least, and each of its receivers a line of its own, `FLOW to HOST`.
    pub flows: IndexMap<String, FlowLine>,
    /// Queues of switches and routers on the paths of the traffic, by output port: `switch -> host`.
    pub queues: IndexMap<String, QueueLine>,
    /// Nodes whose engines take time, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub nodes: IndexMap<String, NodeLine>,
    /// Outages by link, as pairs of begin and end in seconds. An outage that lasts to the end of the run ends there. At most 10 000 are
    /// listed.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub outages: IndexMap<String, Vec<[f64; 2]>>,
    /// Times in which an end of a tunnel takes it for down because its keepalives do not come back, by `TUNNEL at ROUTER`, as pairs of begin and end in
    /// seconds. At most 10 000 are listed.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub tunnels_down: IndexMap<String, Vec<[f64; 2]>>,
    /// Times of membership of each multicast receiver that joins or leaves, by `FLOW to HOST`, as pairs of begin and end in seconds. At most 10 000
    /// are listed.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub memberships: IndexMap<String, Vec<[f64; 2]>>,
}

/// A flow over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowLine {
    /// Sample times in seconds.
    pub time_s: Vec<f64>,
    /// State of the congestion control of its connections; only for TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpLine>,
    /// Datagrams as the receiver counts them; only for UDP. A receiver that joins and leaves has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramLine>,
    /// Cumulative payload received; for TCP, payload received in order.
    pub delivered_bytes: Vec<u64>,
    /// Whether a list of events is incomplete because it was too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// The receiver of a UDP flow over time, as its sequence numbers show it. Counts are cumulative and include the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatagramLine {
    /// Datagrams received.
    pub received: Vec<u64>,
    /// Datagrams missing: those that the sender began before the newest received one, less those received (RFC 3550 section 6.4.1, cumulative number of
    /// packets lost). A datagram that arrives late is no longer missing.
    pub missing: Vec<u64>,
}

/// The senders of a TCP flow over time, summed over the flow's connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpLine {
    /// Congestion window.
    pub congestion_window_bytes: Vec<u64>,
    /// Last announced receive window.
    pub receive_window_bytes: Vec<u64>,
    /// Bytes in flight as the sender estimates them.
    pub flight_bytes: Vec<u64>,
    /// Times of retransmissions in seconds.
    pub retransmissions: Vec<f64>,
    /// Times of retransmission timeouts in seconds.
    pub timeouts: Vec<f64>,
}

/// A queue over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueLine {
    /// Sample times in seconds.
    pub time_s: Vec<f64>,
    /// Queue length. For cells it includes the one in transmission. For frames it includes the one in transmission only in a FIFO.
    pub length: Vec<u64>,
    /// Unit of `length`: `cells` or `bytes`.
    pub unit: String,
    /// Capacity of the queue, or of the queue of each service category. `None` if the capacity is not in `unit`.
    pub capacity: Option<u64>,
    /// Times of losses in seconds. Consecutive lost cells count as one loss, at the time of the first.
    pub drops: Vec<f64>,
    /// Whether the list of losses is incomplete because it was too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A host or router over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeLine {
    /// Its engines by name, as in the outcome: `cpu` at a host, `forwarding` at a router.
    pub engines: IndexMap<String, EngineLine>,
}

/// An engine over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineLine {
    /// Ends of intervals in seconds. The first interval begins with the run, each other one where the one before it ends.
    pub time_s: Vec<f64>,
    /// Share of each interval in which the engine was busy, 0 to 1.
    pub load: Vec<f64>,
}
