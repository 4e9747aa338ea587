//! UDP datagrams as fast as the host can, or at a rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::real_host_options::{Live, Transport};
use super::transfer::{Datagrams, SENTINEL_BYTES, Transfer};
use super::{Arrivals, Common, SourceConfig, SourceOutput};
use crate::host::DataPath;
use crate::random::Stream;
use crate::range_errors::{FASTEST, RangeErrors};
use crate::time::Pace;
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
    /// Number of messages; it then sends no more. If not given, it sends until it stops. The outcome then has the time of the transfer, as its receiver
    /// measures it.
    pub count: Option<u64>,
    /// Whether datagrams of 4 B mark the transfer as those of ttcp do: one before the first message, and five behind the last. The receiver measures from the
    /// first that it gets to the next one.
    #[serde(default)]
    pub sentinels: bool,
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

    fn arrivals(&self, _random: Stream) -> Option<Arrivals> {
        let (count, bytes) = (self.count?, self.message.bytes());
        let pace = self.rate.map(|rate| Pace::of_bits(8 * bytes.max(1), rate.0.max(1)));
        Some(Box::new(Datagrams { bytes, pace, count, sentinels: self.sentinels, sent: 0, last: 0 }))
    }

    fn transfer(&self) -> Option<Transfer> {
        let bytes = self.message.bytes().saturating_mul(self.count?);
        Some(Transfer { bytes, sentinels: self.sentinels })
    }

    fn check(&self, errors: &mut RangeErrors) {
        super::check_count(self.count, errors);
        if self.sentinels && self.count.is_none() {
            let cause = "a stream without a number of messages has no end to mark";
            errors.add(&["sentinels"], cause, "add `count = 2048`, or remove it");
        }
        if self.sentinels && self.message.bytes() <= SENTINEL_BYTES {
            let cause = "a receiver takes datagrams of up to 4 B for sentinels";
            errors.add(&["message"], cause, "give 5 B or more, or remove `sentinels`");
        }
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
