//! IPv4 routers (RFC 1812).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::{Complaints, LONGEST};
use crate::forward::Ecmp;
use crate::queue::Queue;
use crate::unit::Duration;

/// A router: it joins links of any medium and ends of circuits, lowers the TTL of every packet by one (RFC 1812
/// section 5.3.1) and cuts a packet that is larger than the MTU of the way out (RFC 791 section 3.2).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Time of its forwarding engine for every packet that comes in; packets are forwarded one after the other, first come
    /// first served. None if not given: it forwards as fast as its links.
    #[serde(default = "none")]
    pub per_packet: Duration,
    /// What every output port keeps, loses and sends next. A link's own `queue` comes before it.
    #[serde(default)]
    pub queue: Queue,
    /// Which of several equally short ways a packet takes. By default a hash of addresses, protocol and ports chooses, so that flows share the
    /// ways and each keeps its own.
    #[serde(default)]
    pub ecmp: Ecmp,
}

fn none() -> Duration {
    Duration(0)
}

impl Router {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        complaints.at_most(&["per_packet"], Some(self.per_packet), LONGEST);
        self.queue.check_below(complaints);
        self.ecmp.check_below(complaints);
    }
}
