//! The outcome of one member of a multicast group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::{Datagrams, Delays, Outage};
use crate::limit::FlowLimit;
use crate::place::Bottleneck;
use crate::real::Gaps;

/// A member of a multicast group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Receiver {
    /// Payload received, in bit/s.
    pub goodput_bit_per_s: f64,
    /// Payload sent, in bit/s; of a receiver that joins and leaves, while it was a member.
    pub offered_bit_per_s: f64,
    /// Counts of datagrams, if the engine counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// One-way delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Delays>,
    /// Effect of link outages on this member; only if the file has events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// The tightest bottleneck on the path to this member.
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
    /// Gaps between datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_s: Option<Gaps>,
    /// Maximum number of datagrams received within a millisecond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_datagrams_per_ms: Option<u64>,
    /// Share of the measurement window in which it was a member; only if it joins or leaves by an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_share: Option<f64>,
    /// Time from joining the group to the first datagram (RFC 3918 section 5), in seconds; the longest of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_delay_s: Option<f64>,
    /// Time from leaving the group to the last datagram, in seconds; the longest of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave_delay_s: Option<f64>,
    /// Reason why the join delay is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_unknown: Option<String>,
    /// Reason why the leave delay is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave_unknown: Option<String>,
}

impl Receiver {
    /// A receiver with these rates in bit/s and no other results.
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
            member_share: None,
            join_delay_s: None,
            leave_delay_s: None,
            join_unknown: None,
            leave_unknown: None,
        }
    }
}
