//! The parts of agents' answers that an outcome needs (docs/agent.md). A value that an agent could not read is absent or `null`; other fields are ignored.

use std::collections::BTreeMap;

use engpass_outcome::{Precision, Results};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Failure, unknown_answer};

/// All that the controller knows after a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answers {
    /// Greetings of the agents, by host.
    pub hellos: IndexMap<String, Value>,
    /// Answers to `collect`, by host.
    pub results: IndexMap<String, Value>,
    /// End of the point, ISO 8601.
    pub at: String,
    /// Duration of the point in seconds.
    pub took_s: f64,
    /// What carried the packets: `hosts`, `veth` or `model`.
    pub carrier: String,
    /// Deviations of this network from the file, as sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Trials in which the receivers of a multicast group join and leave, by traffic.
    #[serde(default)]
    pub memberships: IndexMap<String, GroupTrial>,
    /// Precision of the mean rate by traffic, if the run has a stop rule.
    pub precision: Option<IndexMap<String, Precision>>,
    /// The emulated network.
    pub emulation: Option<Emulation>,
}

/// A trial in which receivers join a multicast group and leave it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupTrial {
    /// Seconds for which they were members.
    pub member_s: f64,
    /// Seconds for which they listened after they had left.
    pub left_s: f64,
    /// Joins and leaves by receiver, as the agents report them.
    pub receivers: IndexMap<String, Value>,
    /// Why the trial failed.
    pub error: Option<String>,
}

/// How a network was emulated, and its own results.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Emulation {
    /// How the driver waits for the next event.
    pub clock: String,
    /// Whether every packet crosses separately, without segmentation offload.
    pub no_offload: bool,
    /// Lateness above which a point is invalid, as text with unit.
    pub max_lateness: String,
    /// Whether hosts have Ethernet devices.
    pub tap: bool,
    /// The driver's answer at the end of the window.
    pub closed: Value,
}

/// The driver's answer at the end of a window.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Closed {
    /// Results of the model.
    pub(crate) outcome: Results,
    /// How late packets were.
    pub(crate) lateness: Value,
}

/// How late packets left an emulated network.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Lateness {
    pub(crate) valid: bool,
    #[serde(default)]
    pub(crate) limit_ns: u64,
    pub(crate) p99_ns: Option<u64>,
    pub(crate) p999_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
}

/// Removes keys whose value is `null`, at every depth.
pub(crate) fn without_nulls(told: Value) -> Value {
    match told {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// The answers of the agents, by host.
pub(crate) type Hosts = IndexMap<String, Host>;

/// The answers of one agent.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// Addresses of the host, each with its interface.
    addresses: Vec<Address>,
    ends: Vec<End>,
    /// The ends as received.
    told: Vec<Value>,
    /// Time between the two readings of the host's counters, in ns.
    pub(crate) lasted_ns: u64,
    /// Growth of the host's counters between them.
    pub(crate) grown: Grown,
}

impl Host {
    /// Parses the greeting and the answer to `collect` of a host. `grown` is the growth of its counters.
    pub(crate) fn read(
        host: &str,
        hello: Option<&Value>,
        told: &Value,
        grown: &Value,
    ) -> Result<Self, Failure> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Hello {
            host: Own,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Own {
            addresses: Vec<Address>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Reading {
            at_ns: u64,
        }
        #[derive(Deserialize)]
        #[serde(default)]
        #[derive(Default)]
        struct Collected {
            flows: Vec<End>,
            before: Reading,
            after: Reading,
        }
        fn parsed<T: for<'d> Deserialize<'d> + Default>(host: &str, told: &Value) -> Result<T, Failure> {
            match without_nulls(told.clone()) {
                Value::Null => Ok(T::default()),
                told => serde_json::from_value(told).map_err(|error| unknown_answer(host, &error)),
            }
        }
        let hello: Hello = hello.map_or(Ok(Hello::default()), |hello| parsed(host, hello))?;
        let Collected { flows, before, after } = parsed(host, told)?;
        Ok(Self {
            addresses: hello.host.addresses,
            ends: flows,
            told: told["flows"].as_array().cloned().unwrap_or_default(),
            lasted_ns: after.at_ns.saturating_sub(before.at_ns),
            grown: parsed(host, grown)?,
        })
    }

    /// Returns the result of one end of a flow: `role` is `send` or `receive`.
    pub(crate) fn end(&self, flow: &str, role: &str) -> Option<&End> {
        self.ends.iter().find(|end| end.flow == flow && end.role == role)
    }

    /// Returns the result of one end as received.
    pub(crate) fn told(&self, flow: &str, role: &str) -> Value {
        let found = self.told.iter().find(|end| end["flow"] == flow && end["role"] == role);
        found.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }

    /// Returns the name of the interface with this address and port; else the name of the link, which namespaces use for it.
    pub(crate) fn interface_at(&self, local: &str, link: &str) -> String {
        let address = local.rsplit_once(':').map_or("", |(address, _)| address);
        let address = address.trim_matches(['[', ']']);
        let found = self.addresses.iter().find(|entry| entry.bare() == address);
        found.map_or(link, |entry| &entry.interface).to_owned()
    }
}

/// An address of a host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Address {
    interface: String,
    address: String,
}

impl Address {
    /// Returns the address without its prefix length.
    fn bare(&self) -> &str {
        self.address.split('/').next().unwrap_or_default()
    }
}

/// Growth of a host's counters during a run; counters that did not grow are absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Grown {
    snmp: BTreeMap<String, BTreeMap<String, i64>>,
    softnet: Vec<Softnet>,
    interfaces: BTreeMap<String, Interface>,
}

impl Grown {
    /// Returns the growth of a counter of a protocol.
    pub(crate) fn protocol(&self, name: &str, counter: &str) -> u64 {
        let found = self.snmp.get(name).and_then(|counters| counters.get(counter));
        found.map_or(0, |count| u64::try_from(*count).unwrap_or(0))
    }

    /// Returns the packets that the backlogs of the cores dropped.
    pub(crate) fn backlog_drops(&self) -> u64 {
        self.softnet.iter().map(|core| core.dropped).sum()
    }

    /// Returns the counters of an interface.
    pub(crate) fn interface(&self, name: &str) -> Interface {
        self.interfaces.get(name).cloned().unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Softnet {
    dropped: u64,
}

/// Growth of an interface's counters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Interface {
    pub(crate) tx_bytes: i64,
    pub(crate) rx_bytes: i64,
    qdiscs: Vec<Qdisc>,
}

impl Interface {
    /// Returns the packets that its queue discipline dropped: a discipline counts those of its children.
    pub(crate) fn drops(&self) -> u64 {
        self.qdiscs.iter().map(|qdisc| qdisc.drops).max().unwrap_or(0)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Qdisc {
    drops: u64,
}

/// One end of a flow, with the counts of its agent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct End {
    /// Name of the traffic.
    pub(crate) flow: String,
    /// `send` or `receive`.
    pub(crate) role: String,
    /// Why the end is over.
    pub(crate) ended: Option<String>,
    /// The error of an end that failed.
    pub(crate) error: Option<Problem>,
    /// Payload in the window.
    pub(crate) bytes: u64,
    /// Messages in the window.
    pub(crate) messages: u64,
    /// Length of the window.
    pub(crate) elapsed_ns: u64,
    /// Payload of the whole flow.
    pub(crate) total_bytes: Option<u64>,
    /// Messages of the whole flow.
    pub(crate) total_messages: Option<u64>,
    /// CPU time of its threads in the window.
    pub(crate) cpu: Option<Cpu>,
    /// Load of the host's cores in the window.
    pub(crate) cores: Vec<Core>,
    /// Counts from the sequence numbers of datagrams.
    pub(crate) sequence: Option<Sequence>,
    /// Gaps between datagrams.
    pub(crate) gaps: Distribution,
    /// Lateness of a sender.
    pub(crate) late: Distribution,
    /// Times from requests to responses.
    pub(crate) latency: Distribution,
    /// Requests without a response.
    pub(crate) unanswered: Option<u64>,
    /// How a sender kept its schedule.
    pub(crate) pacing: Pacing,
    /// Its connections or sockets.
    pub(crate) streams: Vec<Stream>,
}

impl End {
    /// Returns the local address and port of its first stream, as the kernel chose them.
    pub(crate) fn local(&self) -> &str {
        self.streams.first().map_or("", |stream| &stream.granted.local)
    }

    /// Returns the share of their lifetimes for which its threads used a core, and for which they waited for one; `None` without a window.
    pub(crate) fn cpu_shares(&self) -> Option<(f64, f64)> {
        let lived = self.elapsed_ns * self.streams.len().max(1) as u64;
        let cpu = self.cpu.unwrap_or_default();
        (lived > 0).then(|| (cpu.used_ns() as f64 / lived as f64, cpu.waited_ns as f64 / lived as f64))
    }

    /// Returns the messages of the whole run; those of the window if there are no others.
    pub(crate) fn all_messages(&self) -> u64 {
        self.total_messages.filter(|count| *count > 0).unwrap_or(self.messages)
    }

    /// Returns the datagrams that its sockets dropped; if no socket reports it, those of the whole host.
    pub(crate) fn refused_by_socket(&self, host: &Host) -> u64 {
        let own = self.streams.iter().filter_map(|stream| stream.dropped);
        let of_host = || ["Udp", "Udp6"].iter().map(|udp| host.grown.protocol(udp, "RcvbufErrors")).sum();
        own.reduce(|sum, dropped| sum + dropped).unwrap_or_else(of_host)
    }

    /// Returns the subflows of all its streams; none without MPTCP.
    pub(crate) fn subflows(&self) -> Vec<&Subflow> {
        self.streams.iter().flat_map(|stream| &stream.subflows).collect()
    }
}

/// An error of an agent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    /// The cause.
    pub(crate) cause: Option<String>,
    /// The cure.
    pub(crate) help: Option<String>,
}

/// CPU time of threads.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Cpu {
    /// Time in user mode.
    pub(crate) user_ns: u64,
    /// Time in the kernel.
    pub(crate) system_ns: u64,
    /// Time for which they were ready, but had no core.
    pub(crate) waited_ns: u64,
}

impl Cpu {
    /// Returns the time in ns for which the threads ran.
    pub(crate) fn used_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// The load of one core, by all programs of the host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Core {
    /// Number of the core.
    pub(crate) core: Option<u64>,
    /// Time for which the core was busy.
    pub(crate) busy_ppm: u64,
    /// Time that the hypervisor took.
    pub(crate) steal_ppm: u64,
}

/// Counts from the sequence numbers of received datagrams.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sequence {
    /// Different datagrams.
    pub(crate) received: u64,
    /// Datagrams that arrived before.
    pub(crate) duplicate: Option<u64>,
    /// Datagrams that arrived after one that was sent later.
    pub(crate) reordered: Option<u64>,
}

/// A distribution of gaps, lateness or latency.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Distribution {
    /// Number of samples.
    pub(crate) count: Option<u64>,
    /// Mean.
    pub(crate) mean_ns: Option<u64>,
    /// Standard deviation.
    pub(crate) sd_ns: Option<u64>,
    /// Median absolute deviation.
    pub(crate) mad_ns: Option<u64>,
    /// Minimum.
    pub(crate) min_ns: Option<u64>,
    /// Maximum.
    pub(crate) max_ns: Option<u64>,
    /// Median.
    pub(crate) p50_ns: Option<u64>,
    /// 90th percentile.
    pub(crate) p90_ns: Option<u64>,
    /// 99th percentile.
    pub(crate) p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub(crate) p999_ns: Option<u64>,
    /// Maximum number of datagrams in any millisecond.
    pub(crate) worst_ms: Option<u64>,
}

/// How a sender kept to its schedule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pacing {
    /// How it waited.
    pub(crate) method: Option<String>,
    /// Scheduling class of its thread.
    #[serde(rename = "class")]
    pub(crate) class_: Option<String>,
    /// Whether the host kept its cores out of deep sleep states.
    pub(crate) awake: Option<bool>,
    /// Datagrams that fell behind.
    pub(crate) stalls: Option<Stalls>,
}

/// Datagrams that fell behind their schedule by more than `least_ns` since the one before.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Stalls {
    /// Shortest time that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) least_ns: Option<u64>,
    /// Their number.
    pub(crate) count: u64,
    /// Sum of the times.
    pub(crate) total_ns: u64,
    /// Longest time.
    pub(crate) longest_ns: u64,
    /// Sum of the squares of the times.
    pub(crate) squares_ns2: u64,
    /// The part of threads that used the core.
    pub(crate) waited: Cause,
    /// The part of the hypervisor.
    pub(crate) stolen: Cause,
    /// The part of the kernel.
    pub(crate) kernel: Cause,
}

/// One cause's part in the stalls of a sender.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Cause {
    /// Its time.
    #[serde(default)]
    pub(crate) ns: u64,
    /// Its part of the sum of squares.
    pub(crate) squares_ppm: u64,
}

/// One TCP connection or UDP socket of an end.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Stream {
    /// What the kernel granted.
    pub(crate) granted: Granted,
    /// `TCP_INFO` at the edges of the window.
    pub(crate) tcp: Option<TcpEdges>,
    /// Core of its thread.
    pub(crate) core: Option<u64>,
    /// Datagrams that the socket dropped.
    pub(crate) dropped: Option<u64>,
    /// Counts from sequence numbers.
    pub(crate) sequence: Option<Sequence>,
    /// Subflows of MPTCP.
    pub(crate) subflows: Vec<Subflow>,
}

/// Addresses and socket options that the kernel granted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Granted {
    /// Local address and port.
    pub(crate) local: String,
    /// Congestion control.
    pub(crate) congestion: Option<String>,
}

/// `TCP_INFO` when the window opened, when it closed, and after the last data.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TcpEdges {
    /// When the window opened.
    pub(crate) open: Option<TcpInfo>,
    /// When the window closed.
    pub(crate) close: Option<TcpInfo>,
    /// After the last data.
    pub(crate) end: Option<TcpInfo>,
}

/// A subflow of MPTCP.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Subflow {
    /// Local address and port.
    pub(crate) local: String,
    /// Address and port of the peer.
    pub(crate) remote: String,
    /// Its `TCP_INFO`.
    #[serde(default)]
    pub(crate) tcp: TcpEdges,
}

/// The kernel's `TCP_INFO` of a connection (`linux/tcp.h`). A counter that the kernel lacks is absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TcpInfo {
    pub(crate) options: Option<u64>,
    pub(crate) snd_mss: Option<u64>,
    pub(crate) rcv_mss: Option<u64>,
    pub(crate) rtt_us: Option<u64>,
    pub(crate) min_rtt_us: Option<u64>,
    pub(crate) busy_us: Option<u64>,
    pub(crate) bytes_received: Option<u64>,
    pub(crate) bytes_retrans: Option<u64>,
    pub(crate) bytes_sent: Option<u64>,
    pub(crate) data_segs_in: Option<u64>,
    pub(crate) data_segs_out: Option<u64>,
    pub(crate) dsack_dups: Option<u64>,
    pub(crate) rwnd_limited_us: Option<u64>,
    pub(crate) segs_in: Option<u64>,
    pub(crate) segs_out: Option<u64>,
    pub(crate) sndbuf_limited_us: Option<u64>,
    pub(crate) total_retrans: Option<u64>,
    pub(crate) total_rto: Option<u64>,
    pub(crate) total_rto_time_ms: Option<u64>,
}

/// One join or leave of a multicast receiver.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Membership {
    /// When it joined.
    pub(crate) join_ns: Option<i64>,
    /// When the first datagram arrived.
    pub(crate) first_ns: Option<i64>,
    /// When it left.
    pub(crate) leave_ns: i64,
    /// When the last datagram arrived.
    pub(crate) last_ns: Option<i64>,
    /// What saw datagrams after it left.
    pub(crate) seen_by: Option<String>,
    /// Whether datagrams stopped.
    pub(crate) quiet: bool,
}
