//! Links: full duplex, point to point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::{Complaints, LONGEST};
use crate::queue::Queue;
use crate::unit::{Duration, Rate, Share, Size};
use crate::wire::Medium;

/// A full-duplex link between two nodes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The two nodes it joins: hosts, switches or routers.
    pub ends: [String; 2],
    /// The medium, which gives line rate and framing.
    pub medium: Medium,
    /// Line rate; only for `atm` and `point-to-point`, where it is required.
    pub rate: Option<Rate>,
    /// Propagation delay, one way. It cannot be zero.
    #[serde(default = "default_delay")]
    pub delay: Duration,
    /// Largest IP packet on an Ethernet or point-to-point link; 1500 B if not given. Circuits have their own.
    pub mtu: Option<Size>,
    /// Bytes around every packet on a point-to-point link (HDLC framing, say); none if not given.
    pub overhead: Option<Size>,
    /// Whether frames on an Ethernet link carry a VLAN tag (IEEE 802.1Q), 4 B each.
    #[serde(default)]
    pub vlan: bool,
    /// Most that a packet is late beyond the `delay`, drawn evenly from nothing to this for each. The order is kept: a
    /// packet also waits for the one before it. Not on ATM links.
    pub jitter: Option<Duration>,
    /// Share of the packets that are lost at random on the line, each by itself. Not on ATM links.
    pub loss: Option<Share>,
    /// Packets that arrive later than others sent after them. Not on ATM links.
    pub reorder: Option<Reorder>,
    /// Queue discipline of the transmitters at both ends, as far as they are at Ethernet switches or routers; it comes
    /// before that of the node. Not on ATM links.
    pub queue: Option<Queue>,
}

/// Packets taken out of their order: a share of them, drawn at random, arrives later and is overtaken.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of the packets.
    pub share: Share,
    /// How much later they arrive.
    pub delay: Duration,
}

/// A few hundred metres of cable.
fn default_delay() -> Duration {
    Duration(1_000_000)
}

impl Link {
    /// What is wrong with the values, those apart whose limits depend on the medium.
    pub fn check(&self, complaints: &mut Complaints) {
        complaints.positive(&["delay"], self.delay, LONGEST);
        complaints.at_most(&["jitter"], self.jitter, LONGEST);
        if self.loss.is_some_and(|share| share.0 > Share::WHOLE) {
            complaints.add(&["loss"], "no more than all packets can be lost", "give `0 %` to `100 %`");
        }
        if let Some(reorder) = &self.reorder {
            if reorder.share.0 > Share::WHOLE {
                let cause = "no more than all packets can be late";
                complaints.add(&["reorder", "share"], cause, "give `0 %` to `100 %`");
            }
            complaints.positive(&["reorder", "delay"], reorder.delay, LONGEST);
        }
        if let Some(queue) = &self.queue {
            queue.check_below(complaints);
        }
    }
}
