//! What a receiver of a multicast group got.

use schemars::JsonSchema;
use serde::Serialize;

use crate::flow::{Datagrams, Delays, Outage};
use crate::limit::FlowLimit;
use crate::place::Bottleneck;
use crate::real::Gaps;

/// A member of a multicast group.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Receiver {
    /// Payload received, in bit/s.
    pub goodput_bit_per_s: f64,
    /// Payload sent, in bit/s.
    pub offered_bit_per_s: f64,
    /// Datagrams, as far as the engine counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// One-way delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Delays>,
    /// What outages of lines did to what it receives; only where the file has events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// What limits what it receives most.
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
    /// Gaps between datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_s: Option<Gaps>,
    /// Most datagrams that were received within a millisecond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_datagrams_per_ms: Option<u64>,
    /// From joining the group to its first datagram (RFC 3918 section 5), in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_delay_s: Option<f64>,
    /// From leaving the group to its last datagram, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave_delay_s: Option<f64>,
    /// Why the join delay is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_unknown: Option<String>,
    /// Why the leave delay is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave_unknown: Option<String>,
}

impl Receiver {
    /// A receiver of which an engine of the model tells these rates, in bit/s.
    pub fn of(goodput_bit_per_s: f64, offered_bit_per_s: f64) -> Self {
        Self {
            goodput_bit_per_s,
            offered_bit_per_s,
            datagrams: None,
            delay_s: None,
            outage: None,
            bottleneck: None,
            next_bottleneck: None,
            summary: None,
            limit: None,
            gap_s: None,
            max_datagrams_per_ms: None,
            join_delay_s: None,
            leave_delay_s: None,
            join_unknown: None,
            leave_unknown: None,
        }
    }
}
