//! The specification of one end of one flow: the fields of a `prepare` request, checked.

use std::net::{IpAddr, SocketAddr};

use engpass_model::source::agent_limits;
use serde::Deserialize;

use super::pacing::Pacing;
use super::schedule::Schedule;
use crate::handshake::{STAMP, STAMP_WITH_TIME, Token};
use crate::limits::Limits;
use crate::protocol_error::{Code, ProtocolError, Result};
use crate::time::{MILLISECOND, SECOND};

/// Kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    TcpStream,
    UdpStream,
    RequestResponse,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TcpStream => "tcp-stream",
            Self::UdpStream => "udp-stream",
            Self::RequestResponse => "request-response",
        }
    }
}

/// The side that opens the connection, or listens for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Side {
    Listen,
    Connect,
}

/// Direction of the data at this end. In `request-response`, the requester sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    Send,
    Receive,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        if self == Self::Send { "send" } else { "receive" }
    }
}

/// Transport of requests and responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Transport {
    #[default]
    Tcp,
    Udp,
}

/// How a TCP sender passes its data to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    #[default]
    Write,
    Sendfile,
    Zerocopy,
    IoUring,
    IoUringZerocopy,
}

/// Socket options of a request. A missing field keeps the host's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SocketSpec {
    pub(crate) send_buffer_bytes: Option<u64>,
    pub(crate) receive_buffer_bytes: Option<u64>,
    pub(crate) congestion: Option<String>,
    pub(crate) mss_bytes: Option<u32>,
    pub(crate) dscp: Option<u8>,
    pub(crate) ttl: Option<u8>,
    pub(crate) nodelay: Option<bool>,
    pub(crate) dont_fragment: Option<bool>,
    pub(crate) priority: Option<u8>,
}

/// The fields of `prepare`, as in `docs/agent.md`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prepare {
    pub(crate) run: String,
    pub(crate) flow: String,
    pub(crate) kind: Kind,
    pub(crate) side: Side,
    pub(crate) role: Option<Role>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) interface: Option<String>,
    #[serde(default)]
    pub(crate) peers: Vec<IpAddr>,
    #[serde(default)]
    pub(crate) to: Vec<SocketAddr>,
    #[serde(default)]
    pub(crate) transport: Transport,
    pub(crate) message_bytes: u64,
    pub(crate) response_bytes: Option<u64>,
    #[serde(default = "one")]
    pub(crate) streams: u16,
    #[serde(default)]
    pub(crate) warmup_ns: u64,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) schedule: Option<Schedule>,
    #[serde(default)]
    pub(crate) pacing: Pacing,
    #[serde(default = "burst")]
    pub(crate) burst_messages: u32,
    #[serde(default)]
    pub(crate) method: Method,
    #[serde(default)]
    pub(crate) segmentation: bool,
    #[serde(default)]
    pub(crate) truncate: bool,
    pub(crate) gaps: Option<bool>,
    #[serde(default)]
    pub(crate) mptcp: bool,
    pub(crate) group: Option<SocketAddr>,
    #[serde(default = "yes")]
    pub(crate) joined: bool,
    #[serde(default)]
    pub(crate) socket: SocketSpec,
    #[serde(default)]
    pub(crate) cores: Vec<usize>,
    #[serde(default = "interval")]
    pub(crate) interval_ns: u64,
    #[serde(default)]
    pub(crate) limits: Limits,
}

fn one() -> u16 {
    1
}

fn burst() -> u32 {
    64
}

fn yes() -> bool {
    true
}

fn interval() -> u64 {
    SECOND
}

/// Maximum number of streams per end of a flow; each has a thread.
const STREAMS: u16 = agent_limits::MOST_STREAMS as u16;
/// Largest message of a byte stream, in bytes.
const MESSAGE: u64 = agent_limits::MOST_WRITE;
/// The check of testbed files uses `agents::LEAST_DATAGRAM`, so both must agree.
const _: () = assert!(STAMP as u64 == agent_limits::LEAST_DATAGRAM);
/// Largest payload of a UDP datagram over IPv4, in bytes.
const DATAGRAM: u64 = 65_507;
/// Longest time that a flow may run, in ns.
const LONGEST: u64 = agent_limits::LONGEST.0 / 1000;
/// Shortest interval of a time series, in ns.
const INTERVAL: u64 = MILLISECOND;
/// Largest socket buffer that can be requested, in bytes.
const BUFFER: u64 = 1 << 30;

/// The checked specification of one end of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) token: Token,
    pub(crate) role: Role,
    /// True if the data connection is UDP.
    pub(crate) udp: bool,
    /// Size of a response in bytes.
    pub(crate) response: u64,
    /// True if every datagram is time-stamped and gaps are reported.
    pub(crate) gaps: bool,
    /// Length of the traffic in ns, warm-up included. `None`: until the peer ends or `bytes` have been sent.
    pub(crate) ends_after: Option<u64>,
    /// The owner's limits combined with those of the request: the lower value of each.
    pub(crate) limits: Limits,
    pub(crate) asked: Prepare,
}

fn between(name: &str, value: u64, least: u64, most: u64) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ProtocolError::field(
        name,
        format_args!("{value} is out of range"),
        format!("give {least} to {most}"),
    ))
}

fn needed(name: &str, there: bool, help: &str) -> Result<()> {
    if there { Ok(()) } else { Err(ProtocolError::field(name, "is missing", help)) }
}

fn forbid(name: &str, unused: bool, cause: &str) -> Result<()> {
    if unused { Ok(()) } else { Err(ProtocolError::field(name, cause, "leave it out")) }
}

impl Spec {
    /// Checks a request. `owner` holds the limits set by the owner of this host. Fails with the name of the first bad field.
    pub(crate) fn new(asked: Prepare, owner: &Limits) -> Result<Self> {
        let Some(token) = Token::parse(&asked.run) else {
            return Err(ProtocolError::field("run", "is not a token", "give 32 hexadecimal digits"));
        };
        if asked.flow.is_empty() || asked.flow.len() > agent_limits::MOST_NAME {
            return Err(ProtocolError::field(
                "flow",
                "is not a valid name",
                format!("give 1 to {} bytes", agent_limits::MOST_NAME),
            ));
        }
        let listens = asked.side == Side::Listen;
        let role = asked.role.unwrap_or(if listens { Role::Receive } else { Role::Send });
        let udp = match asked.kind {
            Kind::TcpStream => false,
            Kind::UdpStream => true,
            Kind::RequestResponse => asked.transport == Transport::Udp,
        };
        let spec = Self {
            token,
            role,
            udp,
            response: asked.response_bytes.unwrap_or(asked.message_bytes),
            gaps: asked.gaps.unwrap_or(asked.schedule.is_some()) && asked.kind == Kind::UdpStream,
            ends_after: asked.duration_ns.map(|duration| duration.saturating_add(asked.warmup_ns)),
            limits: owner.lower(&asked.limits),
            asked,
        };
        spec.check_ends()?;
        spec.check_sizes()?;
        spec.check_traffic()?;
        spec.check_limits()?;
        Ok(spec)
    }

    fn check_ends(&self) -> Result<()> {
        let asked = &self.asked;
        if asked.side == Side::Listen {
            needed("peers", !asked.peers.is_empty(), "name the addresses that may connect")?;
            forbid("to", asked.to.is_empty(), "the listening side does not connect")?;
        } else {
            needed("to", !asked.to.is_empty(), "give the peer's `address:port`")?;
        }
        if asked.to.len() > 1 && asked.group.is_none() {
            return Err(ProtocolError::field(
                "to",
                "has several peers",
                "only a multicast flow can have several",
            ));
        }
        if asked.kind == Kind::RequestResponse && (asked.side == Side::Listen) != (self.role == Role::Receive)
        {
            return Err(ProtocolError::field(
                "role",
                "the connecting side sends the requests",
                "leave `role` out",
            ));
        }
        if let Some(group) = asked.group {
            if !group.ip().is_multicast() {
                return Err(ProtocolError::field(
                    "group",
                    "is not a multicast address",
                    "give one of 224.0.0.0/4",
                ));
            }
            let right =
                asked.kind == Kind::UdpStream && (asked.side == Side::Connect) == (self.role == Role::Send);
            forbid(
                "group",
                right,
                "a multicast flow is a UDP stream whose sender connects to its receivers",
            )?;
            forbid("streams", asked.streams == 1, "a multicast flow has one stream")?;
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<()> {
        let asked = &self.asked;
        between("streams", asked.streams.into(), 1, STREAMS.into())?;
        let rr = asked.kind == Kind::RequestResponse;
        let (least, most) = match (self.udp, rr) {
            (true, true) => (STAMP_WITH_TIME as u64, DATAGRAM),
            (true, false) => (STAMP as u64, DATAGRAM),
            // Requests on a schedule carry the instant at which they were sent.
            (false, true) if asked.schedule.is_some() => (STAMP_WITH_TIME as u64, MESSAGE),
            (false, _) => (1, MESSAGE),
        };
        between("message_bytes", asked.message_bytes, least, most)?;
        between("response_bytes", self.response, least, most)?;
        let buffers = [
            ("socket.send_buffer_bytes", asked.socket.send_buffer_bytes),
            ("socket.receive_buffer_bytes", asked.socket.receive_buffer_bytes),
        ];
        for (name, value) in buffers {
            between(name, value.unwrap_or(1), 1, BUFFER)?;
        }
        between("socket.dscp", asked.socket.dscp.unwrap_or(0).into(), 0, 63)?;
        between("socket.ttl", asked.socket.ttl.unwrap_or(1).into(), 1, 255)?;
        between("socket.priority", asked.socket.priority.unwrap_or(0).into(), 0, 7)?;
        between(
            "socket.mss_bytes",
            asked.socket.mss_bytes.unwrap_or(536).into(),
            agent_limits::SEGMENT.0,
            agent_limits::SEGMENT.1,
        )?;
        between("burst_messages", asked.burst_messages.into(), 1, 1024)
    }

    fn check_traffic(&self) -> Result<()> {
        let asked = &self.asked;
        let tcp = asked.kind == Kind::TcpStream;
        if let Some(schedule) = &asked.schedule {
            schedule.check()?;
        }
        between("warmup_ns", asked.warmup_ns, 0, LONGEST)?;
        between("duration_ns", asked.duration_ns.unwrap_or(1), 1, LONGEST)?;
        between("bytes", asked.bytes.unwrap_or(1), 1, u64::MAX / 2)?;
        if asked.interval_ns != 0 {
            between("interval_ns", asked.interval_ns, INTERVAL, LONGEST)?;
        }
        let streams = asked.kind != Kind::RequestResponse;
        forbid("bytes", asked.bytes.is_none() || streams, "only a stream can end after a number of bytes")?;
        forbid(
            "method",
            asked.method == Method::Write || tcp,
            "only a TCP stream has a choice of write methods",
        )?;
        forbid(
            "truncate",
            !asked.truncate || tcp,
            "the kernel can discard received data only for a TCP stream",
        )?;
        forbid("mptcp", !asked.mptcp || !self.udp, "UDP has no MPTCP")?;
        let udp_stream = asked.kind == Kind::UdpStream;
        forbid(
            "segmentation",
            !asked.segmentation || udp_stream,
            "segmentation of TCP follows the settings of the host",
        )?;
        if self.role == Role::Send {
            let ends = self.ends_after.is_some() || asked.bytes.is_some();
            needed("duration_ns", ends, "give the time for which the sender sends")?;
        }
        let whole = asked.pacing == Pacing::Burst && !udp_stream;
        forbid("pacing", !whole, "only streams of datagrams can be sent in bursts")?;
        let kernel = asked.pacing == Pacing::Kernel;
        let even = matches!(asked.schedule, Some(Schedule::Cbr { .. }));
        forbid(
            "pacing",
            !kernel || (even && asked.kind != Kind::RequestResponse),
            "the kernel can pace only a stream with a constant rate",
        )
    }

    fn check_limits(&self) -> Result<()> {
        let over = |what: &str, most: u64| {
            let cause = format!("`{what}` exceeds the limit of this host, {most}");
            Err(ProtocolError::new(
                Code::Limit,
                cause,
                "request less, or ask the owner of the host to raise the limit",
            ))
        };
        if let (Some(asked), Some(most)) = (self.ends_after, self.limits.duration_ns)
            && asked > most
        {
            return over("duration_ns", most);
        }
        let streams = u64::from(self.asked.streams);
        if let (Some(schedule), Some(most)) = (&self.asked.schedule, self.limits.rate_bit_per_s)
            && schedule.rate().saturating_mul(streams) > most
        {
            return over("schedule.rate_bit_per_s", most);
        }
        if let (Some(bytes), Some(most)) = (self.asked.bytes, self.limits.bytes)
            && bytes.saturating_mul(streams) > most
        {
            return over("bytes", most);
        }
        Ok(())
    }

    /// Returns whether this end listens.
    pub(crate) fn listens(&self) -> bool {
        self.asked.side == Side::Listen
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn spec(fields: Value) -> Result<Spec> {
        let mut all = json!({
            "run": "0123456789abcdef0123456789abcdef", "flow": "f", "kind": "tcp-stream", "side": "connect",
            "to": ["127.0.0.1:5"], "message_bytes": 1000, "duration_ns": 1000,
        });
        let Value::Object(fields) = fields else { panic!("the fields are a JSON object") };
        all.as_object_mut().expect("the spec is a JSON object").extend(fields);
        let asked = serde_json::from_value(all).map_err(|error| ProtocolError::field("json", error, ""))?;
        Spec::new(asked, &Limits { rate_bit_per_s: Some(1_000_000), ..Limits::default() })
    }

    #[test]
    fn flow_spec_errors_name_the_wrong_field() {
        assert!(spec(json!({})).is_ok());
        let cases = [
            (json!({"run": "12"}), "run"),
            (json!({"flow": ""}), "flow"),
            (json!({"side": "listen"}), "peers"),
            (json!({"to": []}), "to"),
            (json!({"to": ["127.0.0.1:5", "127.0.0.1:6"]}), "to"),
            (json!({"streams": 0}), "streams"),
            (json!({"kind": "udp-stream", "message_bytes": 11}), "message_bytes"),
            (json!({"kind": "udp-stream", "message_bytes": 65508}), "message_bytes"),
            (json!({"kind": "request-response", "transport": "udp", "message_bytes": 19}), "message_bytes"),
            (json!({"kind": "udp-stream", "group": "10.0.0.1:5"}), "group"),
            (json!({"group": "239.0.0.1:5"}), "group"),
            (json!({"duration_ns": null}), "duration_ns"),
            (json!({"kind": "request-response", "bytes": 5}), "bytes"),
            (json!({"socket": {"dscp": 64}}), "socket.dscp"),
            (json!({"pacing": "kernel"}), "pacing"),
            (json!({"segmentation": true}), "segmentation"),
            (json!({"schedule": {"kind": "cbr", "rate_bit_per_s": 0}}), "schedule.rate_bit_per_s"),
            (json!({"schedule": {"kind": "cbr", "rate_bit_per_s": 1_000_001}}), "schedule.rate_bit_per_s"),
            (json!({"mesage_bytes": 5}), "mesage_bytes"),
            (json!({"socket": {"nodealy": true}}), "nodealy"),
        ];
        for (fields, name) in cases {
            let problem = spec(fields.clone()).err().unwrap_or_else(|| panic!("{fields} was accepted"));
            assert!(problem.cause.contains(&format!("`{name}`")), "{fields}: {problem:?}");
        }
    }

    #[test]
    fn flow_role_follows_the_side_unless_set() {
        assert_eq!(spec(json!({})).expect("the spec is valid").role, Role::Send);
        let listens = json!({"side": "listen", "to": [], "peers": ["127.0.0.1"]});
        assert_eq!(spec(listens).expect("the spec is valid").role, Role::Receive);
        let turned = json!({"role": "receive"});
        assert_eq!(spec(turned).expect("the spec is valid").role, Role::Receive);
    }
}
