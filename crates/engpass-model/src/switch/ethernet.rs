//! A store-and-forward Ethernet switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::queue::Queue;
use crate::range_errors::{LONGEST, RangeErrors};
use crate::unit::Duration;

/// A store-and-forward Ethernet switch with a queue at every output port. It joins Ethernet links and never fragments packets.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EthernetSwitch {
    /// Time from the arrival of a frame's last bit until the frame enters the queue of its output port. It delays each frame independently.
    /// Zero if not given, an estimate: the fabric of a switch takes a few microseconds at most.
    #[serde(default = "none")]
    pub latency: Duration,
    /// Queue discipline of every output port. A link's own `queue` takes precedence.
    #[serde(default)]
    pub queue: Queue,
}

fn none() -> Duration {
    Duration(0)
}

impl EthernetSwitch {
    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        errors.at_most(&["latency"], Some(self.latency), LONGEST);
        self.queue.check_below(errors);
    }
}
