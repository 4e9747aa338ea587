//! A bulk TCP transfer, or writes at a rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::real_host_options::{Live, Transport};
use super::{Common, SourceConfig, SourceOutput, Transfer};
use crate::host::DataPath;
use crate::range_errors::{FASTEST, RangeErrors};
use crate::tcp::TcpConfig;
use crate::unit::{Duration, Rate, Size};

/// Writes of one size into a TCP connection, one after the other (netperf's TCP_STREAM) or paced.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpStream {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Size of one write.
    pub message: Size,
    /// Rate of payload at which each connection is written to, evenly spaced; late writes follow at once. If not given, writes follow as fast as the
    /// connection accepts them.
    pub rate: Option<Rate>,
    /// Number of writes on each connection; it then writes no more. If not given, it writes until it stops. The outcome then has the time of the transfer, as
    /// its receiver measures it.
    pub count: Option<u64>,
    /// Virtual circuit of the packets, if there are several.
    pub circuit: Option<String>,
    /// Number of parallel connections, each with its own writes. The goodput is their sum.
    #[serde(default = "one")]
    pub streams: u32,
    /// Data path at the sending host, if that has a `memory` or an `io_bus`; by default that of the host.
    pub send_path: Option<DataPath>,
    /// Data path at the receiving host, like `send_path`.
    pub receive_path: Option<DataPath>,
    /// TCP settings of this traffic that differ from those of its hosts.
    #[serde(default)]
    pub tcp: TcpConfig,
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

/// The largest write, in bytes.
const MAX_WRITE: u64 = 1 << 30;
/// The largest number of connections of one table.
const MAX_STREAMS: u64 = 10_000;

fn one() -> u32 {
    1
}

impl SourceConfig for TcpStream {
    fn common(&self) -> Common<'_> {
        Common {
            circuit: self.circuit.as_deref(),
            data_paths: (self.send_path, self.receive_path),
            priority: self.priority,
            ttl: Some(self.ttl),
            live: Some(&self.live),
            ..Common::between((&self.from, &self.to), (self.start, self.stop))
        }
    }

    fn sends(&self) -> SourceOutput<'_> {
        SourceOutput::Writes(self)
    }

    fn streams(&self) -> u32 {
        self.streams
    }

    fn transfer(&self) -> Option<Transfer> {
        let writes = self.count?.saturating_mul(self.streams.into());
        Some(Transfer { bytes: self.message.bytes().saturating_mul(writes), sentinels: false })
    }

    fn tcp(&self) -> Option<&TcpConfig> {
        Some(&self.tcp)
    }

    fn check(&self, errors: &mut RangeErrors) {
        super::check_count(self.count, errors);
        let cause = "the message size is out of range";
        errors.between(&["message"], self.message.bytes(), (1, MAX_WRITE), "B", cause);
        let cause = "the number of connections is out of range";
        errors.between(&["streams"], u64::from(self.streams), (1, MAX_STREAMS), "connections", cause);
        if let Some(rate) = self.rate {
            errors.between(&["rate"], rate.0, (1, FASTEST), "bit/s", "the rate is out of range");
        }
        super::check_tcp(&self.tcp, errors);
        self.live.check(Transport::Tcp, errors);
        super::check_packets(self.priority, self.ttl, errors);
    }
}
