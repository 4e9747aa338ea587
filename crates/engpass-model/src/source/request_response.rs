//! Requests and responses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::real_host_options::{Live, Transport};
use super::{Common, SourceConfig, SourceOutput};
use crate::range_errors::{LONGEST, RangeErrors};
use crate::tcp::TcpConfig;
use crate::unit::{Duration, Size};
use crate::wire::ip::MAX_UDP_PAYLOAD;

/// A request, its response, and the next one (netperf's TCP_RR and UDP_RR), to measure how long they take. Only for `measure`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestResponse {
    /// Host that sends the requests.
    pub from: String,
    /// Host that sends the responses.
    pub to: String,
    /// Size of a request.
    pub request: Size,
    /// Size of a response.
    pub response: Size,
    /// Transport protocol; `tcp` if not given.
    #[serde(default)]
    pub transport: Transport,
    /// Time from one request to the next, independent of the responses. If not given, each request follows the previous response.
    pub every: Option<Duration>,
    /// Virtual circuit of the packets, if there are several.
    pub circuit: Option<String>,
    /// Number of parallel conversations.
    #[serde(default = "one")]
    pub streams: u32,
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

/// The largest message of one direction, in bytes.
const MAX_MESSAGE: u64 = 64 << 20;
/// The smallest message in bytes with a header of sequence number, tag and send time. Datagrams, and requests on a schedule, carry it.
const MIN_TIMED_MESSAGE: u64 = 20;

fn one() -> u32 {
    1
}

impl SourceConfig for RequestResponse {
    fn common(&self) -> Common<'_> {
        Common {
            circuit: self.circuit.as_deref(),
            priority: self.priority,
            ttl: Some(self.ttl),
            live: Some(&self.live),
            ..Common::between((&self.from, &self.to), (self.start, self.stop))
        }
    }

    fn sends(&self) -> SourceOutput<'_> {
        SourceOutput::OnRealHosts("the model has no application that answers requests")
    }

    fn streams(&self) -> u32 {
        self.streams
    }

    fn tcp(&self) -> Option<&TcpConfig> {
        (self.transport == Transport::Tcp).then_some(&self.tcp)
    }

    fn check(&self, errors: &mut RangeErrors) {
        let (bounds, cause) = match self.transport {
            Transport::Tcp if self.every.is_none() => ((1, MAX_MESSAGE), "the message size is out of range"),
            Transport::Tcp => {
                ((MIN_TIMED_MESSAGE, MAX_MESSAGE), "the message is too small for its send time, or too large")
            }
            Transport::Udp => (
                (MIN_TIMED_MESSAGE, MAX_UDP_PAYLOAD),
                "a datagram must have room for a sequence number, and UDP limits its size",
            ),
        };
        errors.between(&["request"], self.request.bytes(), bounds, "B", cause);
        errors.between(&["response"], self.response.bytes(), bounds, "B", cause);
        let cause = "the number of conversations is out of range";
        errors.between(&["streams"], u64::from(self.streams), (1, 128), "conversations", cause);
        if let Some(every) = self.every {
            errors.positive(&["every"], every, LONGEST);
        }
        super::check_tcp(&self.tcp, errors);
        self.live.check(self.transport, errors);
        super::check_packets(self.priority, self.ttl, errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(change: serde_json::Value) -> Vec<String> {
        let mut table = serde_json::json!({ "from": "a", "to": "b", "request": "64 B", "response": "1 kB" });
        if let (Some(table), serde_json::Value::Object(change)) = (table.as_object_mut(), change) {
            table.extend(change);
        }
        let config: RequestResponse = serde_json::from_value(table).expect("the test's JSON is valid");
        let mut errors = RangeErrors::default();
        config.check(&mut errors);
        errors.into_iter().map(|complaint| complaint.path.join(".")).collect()
    }

    #[test]
    fn request_response_rejects_invalid_sizes_and_periods() {
        assert!(errors(serde_json::json!({ "request": "1 B", "response": "1 MiB" })).is_empty());
        let udp = serde_json::json!({ "transport": "udp", "request": "1 B", "response": "1 MiB" });
        assert_eq!(errors(udp), ["request", "response"]);
        assert_eq!(errors(serde_json::json!({ "every": "0 s", "streams": 0 })), ["streams", "every"]);
        assert_eq!(errors(serde_json::json!({ "every": "1 ms", "request": "1 B" })), ["request"]);
    }
}
