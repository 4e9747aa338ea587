//! A store-and-forward Ethernet switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::{LONGEST, RangeErrors};
use crate::queue::Queue;
use crate::unit::Duration;

/// An Ethernet switch: store and forward, with a queue at every output port. It joins Ethernet links and never fragments.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EthernetSwitch {
    /// Time from a frame's last bit in to its place in the queue of its output port; frames do not wait for one another
    /// there. None if not given, which is an estimate: the fabric of a switch takes some microseconds at most.
    #[serde(default = "none")]
    pub latency: Duration,
    /// What every output port keeps, loses and sends next. A link's own `queue` comes before it.
    #[serde(default)]
    pub queue: Queue,
}

fn none() -> Duration {
    Duration(0)
}

impl EthernetSwitch {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut RangeErrors) {
        complaints.at_most(&["latency"], Some(self.latency), LONGEST);
        self.queue.check_below(complaints);
    }
}
