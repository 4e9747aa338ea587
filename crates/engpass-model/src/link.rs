//! Links: full duplex, point to point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit::{Duration, Rate, Size};
use crate::wire::Medium;

/// A full-duplex link between two nodes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The two nodes it joins: hosts or switches.
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
}

/// A few hundred metres of cable.
fn default_delay() -> Duration {
    Duration(1_000_000)
}
