//! UDP datagrams as fast as the host can, or at a rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::real_host_options::{Live, Transport};
use super::{Common, SourceConfig, SourceOutput};
use crate::host::DataPath;
use crate::range_errors::{FASTEST, RangeErrors};
use crate::unit::{Duration, Rate, Size};
use crate::wire::ip::MAX_UDP_PAYLOAD;

/// Datagrams of one size: one after the other as fast as the sending host can (netperf's UDP_STREAM), or paced.
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
    /// Virtual circuit of the packets, if there are several.
    pub circuit: Option<String>,
    /// Data path at the sending host, if that has a `memory` or an `io_bus`; by default that of the host.
    pub send_path: Option<DataPath>,
    /// Data path at the receiving host, like `send_path`.
    pub receive_path: Option<DataPath>,
    /// Receive buffer of the receiving socket, counted in payload bytes; the host's `receive_buffer` if not given.
    pub receive_buffer: Option<Size>,
    /// Settings for real hosts.
    #[serde(default)]
    pub live: Live,
    /// Priority of the packets, 0 (default) to 7, for queue disciplines with priorities: 7 goes first (IEEE 802.1Q, priority code point).
    #[serde(default)]
    pub priority: u8,
    /// Time to live of the packets, 64 by default: they cross at most one router fewer than this (RFC 1812 section 5.3.1).
    #[serde(default = "super::default_ttl")]
    pub ttl: u8,
    /// When it starts; at the beginning of the run if not given.
    #[serde(default)]
    pub start: Option<Duration>,
    /// When it stops; at the end of the run if not given.
    #[serde(default)]
    pub stop: Option<Duration>,
}

impl SourceConfig for UdpStream {
    fn common(&self) -> Common<'_> {
        Common {
            circuit: self.circuit.as_deref(),
            data_paths: (self.send_path, self.receive_path),
            receive_buffer: self.receive_buffer,
            priority: self.priority,
            ttl: Some(self.ttl),
            live: Some(&self.live),
            ..Common::between((&self.from, &self.to), (self.start, self.stop))
        }
    }

    fn sends(&self) -> SourceOutput<'_> {
        SourceOutput::Datagrams { bytes: self.message.bytes(), rate: self.rate }
    }

    fn check(&self, errors: &mut RangeErrors) {
        let cause = "a UDP datagram cannot have a payload of this size";
        errors.between(&["message"], self.message.bytes(), (1, MAX_UDP_PAYLOAD), "B", cause);
        super::check_receive_buffer(self.receive_buffer, errors);
        self.live.check(Transport::Udp, errors);
        super::check_packets(self.priority, self.ttl, errors);
        if let Some(rate) = self.rate {
            errors.between(&["rate"], rate.0, (1, FASTEST), "bit/s", "the rate is out of range");
        }
    }
}
