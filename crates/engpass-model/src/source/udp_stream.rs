//! UDP datagrams as fast as the host can, or at a rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::{Complaints, FASTEST};
use crate::unit::{Duration, Rate, Size};
use crate::wire::ip::MAX_UDP_PAYLOAD;

/// Datagrams of one size, one after the other as fast as the sending host can (netperf's UDP_STREAM), or paced.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpStream {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Payload of a datagram, 1 B to 65 507 B.
    pub message: Size,
    /// Offered rate of payload, evenly spaced. As fast as the host can if not given.
    pub rate: Option<Rate>,
    /// The circuit to take, where there are several.
    pub circuit: Option<String>,
    /// When it starts.
    #[serde(default)]
    pub start: Option<Duration>,
    /// When it stops; at the end of the run if not given.
    #[serde(default)]
    pub stop: Option<Duration>,
}

impl UdpStream {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        let cause = "one UDP datagram cannot hold that";
        complaints.between(&["message"], self.message.bytes(), (1, MAX_UDP_PAYLOAD), "B", cause);
        if let Some(rate) = self.rate {
            complaints.between(&["rate"], rate.0, (1, FASTEST), "bit/s", "no application offers that");
        }
    }
}
