//! The outcome of one flow over the measurement window.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limit::FlowLimit;
use crate::place::{Bottleneck, Path};
use crate::real::RealFlow;
use crate::receiver::Receiver;
use crate::signal::{count, number, rate, ratio, share, time};

/// The outcome of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowOutcome {
    /// Kind of traffic, as in the file.
    pub kind: String,
    /// Paths of its packets; for a multicast group, one per member. If routers choose among equal-cost paths there may be several. They are
    /// ordered by falling share; at most 64 are listed, so their shares may add up to less than 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Path>,
    /// Payload received, in bit/s. With `limit`: the max-min fair share.
    #[schemars(extend("x-signal" = rate("Goodput").higher().always().summary(&[])))]
    pub goodput_bit_per_s: f64,
    /// Payload sent, in bit/s. With `limit`: equal to the goodput.
    #[schemars(extend("x-signal" = rate("Offered").always().summary(&[])))]
    pub offered_bit_per_s: f64,
    /// Counts of datagrams, TCP segments or generator cells, if the engine counts them.
    #[schemars(extend("x-signal" = ratio("Loss", "lost", "sent").column("loss").lower().always().summary(&[])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// PDUs (for a generator: cells) that arrived complete, with the EFCI mark in the last cell.
    #[schemars(extend("x-signal" = count("EFCI PDUs", "PDUs")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efci_pdus: Option<u64>,
    /// One-way delays; absent for a generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Delays>,
    /// TCP counters and times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Tcp>,
    /// The transfer of a flow with a `count`, as its receiver measures it; of a whole run, the warm-up included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
    /// Effect of link outages on the flow; only if the file has events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// Members of a multicast group by host, in the order of the file. The flow's own figures are those of the member with the lowest
    /// goodput.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub receivers: IndexMap<String, Receiver>,
    /// The tightest bottleneck of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// The bottleneck after the first one is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_bottleneck: Option<Bottleneck>,
    /// The bottleneck, its reason and the next one, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Further results of `limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<FlowLimit>>,
    /// Further results of real hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<Box<RealFlow>>,
}

/// Counts of datagrams, TCP segments or generator cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    /// Number sent.
    #[schemars(extend("x-signal" = count("Sent", "datagrams").column("sent_datagrams").always()))]
    pub sent: u64,
    /// Number received complete.
    #[schemars(extend("x-signal" = count("Received", "datagrams").column("received_datagrams").always()))]
    pub received: u64,
    /// Number lost, completely or in part.
    #[schemars(extend("x-signal" = count("Lost", "datagrams").column("lost_datagrams").always()))]
    pub lost: u64,
    /// Number sent, but neither received nor lost at the end of the run.
    #[schemars(extend("x-signal" = count("In flight", "datagrams").column("in_flight_datagrams").always()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// Number received more than once.
    #[schemars(extend("x-signal" = count("Duplicates", "datagrams").column("duplicate_datagrams")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<u64>,
    /// Number received after one that was sent later.
    #[schemars(extend("x-signal" = count("Reordered", "datagrams").column("reordered_datagrams")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
}

/// One-way delays from application to application, by what they include.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    /// One-way delay from the sending to the receiving application, of datagrams or TCP segments that arrive. Every transmission of a
    /// segment counts separately.
    #[schemars(extend("x-signal" = time("Delay {}").column("delay_{}_s").lower().always().summary(&["p50", "p99"])))]
    pub network: Quantiles,
    /// Part of the delay that an idle network would not cause: waits for CPUs, NICs, queues and lines. Absent if packets of one datagram took
    /// different paths. Minimum, mean and maximum are exact. The percentiles are within 1.6 % plus 0.1 % of the idle delay of the first counted datagram.
    #[schemars(extend("x-signal" = time("Queueing delay {}").column("queueing_delay_{}_s").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queueing: Option<Quantiles>,
    /// Time from the first transmission of a datagram or TCP segment until its receiving application can read all of it. It includes the waits for
    /// retransmissions and, with TCP, for earlier data. Every segment counts once.
    #[schemars(extend("x-signal" = time("Message delay {}").column("message_delay_{}_s").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Quantiles>,
}

/// Minimum, mean, quantiles and maximum of times, in seconds. Minimum, mean and maximum are exact; the quantiles are within 1.6 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quantiles {
    /// Minimum.
    pub min: f64,
    /// Mean. Absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
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

/// A transfer of a given number of messages, by the clock of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Payload of messages received.
    #[schemars(extend("x-signal" = number("Transferred", "B").column("transferred_bytes")))]
    pub received_bytes: u64,
    /// Time from the first to the last byte of payload; with sentinels, from the first of them that arrives to the next one. Absent if the transfer did not
    /// end in the run, or took no time.
    #[schemars(extend("x-signal" = time("Transfer time").column("transfer_s").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Payload received, per second of this time.
    #[schemars(extend("x-signal" = rate("Transfer goodput").column("transfer_bit_per_s").higher()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_bit_per_s: Option<f64>,
}

/// Effect of link outages on a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Longest time without a received datagram, in seconds, between the first one and the end of the run, of the flow's traffic, or of a transfer that has arrived whole.
    #[schemars(extend("x-signal" = time("Longest gap").column("outage_longest_s").maximum().lower().summary(&[])))]
    pub longest_s: f64,
    /// Datagrams lost on links that were down, or in queues in front of them.
    #[schemars(extend("x-signal" = count("Lost to line down", "datagrams").column("outage_lost_datagrams").lower()))]
    pub lost: u64,
}

/// Counters and times of the senders of a TCP flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// Retransmitted segments.
    #[schemars(extend("x-signal" = count("Retransmissions", "segments").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// Number of expiries of the retransmission timer.
    #[schemars(extend("x-signal" = count("Timeouts", "timeouts").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Number of entries into fast recovery.
    #[schemars(extend("x-signal" = count("Fast recoveries", "recoveries")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_retransmits: Option<u64>,
    /// Smoothed round-trip time of the first connection at the end, in seconds.
    #[schemars(extend("x-signal" = time("Smoothed round trip").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt_s: Option<f64>,
    /// Minimum round-trip time of the first connection, as its kernel measured it, in seconds.
    #[schemars(extend("x-signal" = time("Minimum round trip").column("minimum_rtt_s").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_s: Option<f64>,
    /// Round-trip times as the senders measured them, in seconds.
    #[schemars(extend("x-signal" = time("Round trip {}").column("round_trip_{}_s").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_s: Option<Quantiles>,
    /// Fraction of the busy time in which the sender waited for its retransmission timer.
    #[schemars(extend("x-signal" = share("Waits for timeouts").lower()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_share: Option<f64>,
    /// Fraction of the busy time in which the receive window limited the sender.
    #[schemars(extend("x-signal" = share("Limited by receive window")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window_limited_share: Option<f64>,
    /// Fraction of the busy time in which the send buffer limited the sender.
    #[schemars(extend("x-signal" = share("Limited by send buffer")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_limited_share: Option<f64>,
}
