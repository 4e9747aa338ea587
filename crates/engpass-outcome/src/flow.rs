//! What became of one flow, over the run without its warm-up.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use crate::limit::FlowLimit;
use crate::place::{Bottleneck, Path};
use crate::real::RealFlow;
use crate::receiver::Receiver;

/// The outcome of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowOutcome {
    /// Kind of traffic, as in the file.
    pub kind: String,
    /// Paths of its packets; for a multicast group one to each member. Where routers choose among equally short ways there may be several: the
    /// greatest share comes first, and at most 64 are listed, which may have less than all packets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Path>,
    /// Payload received, in bit/s; from `limit` its max-min fair share.
    pub goodput_bit_per_s: f64,
    /// Payload sent, in bit/s; from `limit` the same as its goodput.
    pub offered_bit_per_s: f64,
    /// Datagrams, TCP segments or cells of a generator, as far as the engine counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// PDUs (of a generator: cells) that arrived whole with the EFCI mark in their last cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efci_pdus: Option<u64>,
    /// One-way delays; none for a generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Delays>,
    /// Counts of TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Tcp>,
    /// What outages of lines did to it; only where the file has events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// Members of a multicast group by host, in the order of the file. The flow has the figures of the member that got least.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub receivers: IndexMap<String, Receiver>,
    /// What limits the flow most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// What limits it once the bottleneck is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_bottleneck: Option<Bottleneck>,
    /// The bottleneck, its reason and the next one in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What `limit` knows besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<FlowLimit>>,
    /// What real hosts tell besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<Box<RealFlow>>,
}

/// Counts of datagrams, TCP segments or cells of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Datagrams {
    /// Sent.
    pub sent: u64,
    /// Received whole.
    pub received: u64,
    /// Lost, in whole or in part.
    pub lost: u64,
    /// Sent and neither received nor lost at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// Received more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<u64>,
    /// Received behind one that was sent later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
}

/// Delays by the way that they are measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Delays {
    /// One way from the sending to the receiving application, of datagrams or TCP segments that arrive; each transmission of a segment counts by itself.
    pub network: Quantiles,
}

/// Minimum, quantiles and maximum of times, in seconds. The quantiles are within 1.6 %, the minimum and the maximum are exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Quantiles {
    /// Minimum.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Maximum.
    pub max: f64,
}

/// What outages of lines did to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Outage {
    /// The longest time in which nothing of it was received, in seconds: from its first reception to the end of the run or of its traffic.
    pub longest_s: f64,
    /// Datagrams lost on lines that were down, or in front of them.
    pub lost: u64,
}

/// Counts and times of the sending ends of a TCP flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Tcp {
    /// Retransmitted segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// Expiries of the retransmission timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Entries into fast recovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_retransmits: Option<u64>,
    /// Smoothed round-trip time of the first connection at the end, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt_s: Option<f64>,
    /// Least round-trip time of the first connection, by its kernel, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_s: Option<f64>,
    /// Round trips as the sending ends measured them, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_s: Option<Quantiles>,
    /// Share of the busy time that the sender waited for its retransmission timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_share: Option<f64>,
    /// Share of the busy time that the receive window held the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window_limited_share: Option<f64>,
    /// Share of the busy time that the send buffer held the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_limited_share: Option<f64>,
}
