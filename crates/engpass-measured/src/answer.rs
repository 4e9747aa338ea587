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

/// How a network was emulated, and the results of its model.
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
    /// Lateness of the packets: a [`Lateness`], and histograms.
    pub(crate) lateness: Value,
}

/// Lateness of the packets that left an emulated network, in nanoseconds.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Lateness {
    /// True if 99.9 % of the packets were at most `limit_ns` late.
    pub(crate) valid: bool,
    /// Lateness that only 0.1 % of the packets of a valid point may exceed.
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
    /// Results of the ends of flows at this host.
    ends: Vec<End>,
    /// The same results as received.
    told: Vec<Value>,
    /// Time between the two readings of the host's counters, in nanoseconds.
    pub(crate) lasted_ns: u64,
    /// Growth of the host's counters between the two readings.
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
        #[derive(Default, Deserialize)]
        #[serde(default)]
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

    /// Returns the result of one end of a flow as received; an empty object if there is none.
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

/// An address of a host, with its prefix length, and the interface that has it.
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

/// Growth of a host's counters during a run. Counters that did not grow are absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Grown {
    /// Counters by protocol and name, as in `/proc/net/snmp`.
    snmp: BTreeMap<String, BTreeMap<String, i64>>,
    /// Counters of each core, as in `/proc/net/softnet_stat`.
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

/// Growth of a core's packet counters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Softnet {
    /// Packets that the backlog of the core dropped.
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
    /// Returns the packets that the queue discipline of the interface dropped. The counter of a discipline includes its children.
    pub(crate) fn drops(&self) -> u64 {
        self.qdiscs.iter().map(|qdisc| qdisc.drops).max().unwrap_or(0)
    }
}

/// Growth of the counters of a queue discipline.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Qdisc {
    /// Dropped packets.
    drops: u64,
}

/// The result of one end of a flow. Times are in nanoseconds, payload is in bytes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct End {
    /// Name of the traffic.
    pub(crate) flow: String,
    /// `send` or `receive`.
    pub(crate) role: String,
    /// Reason why the end is over, such as `duration`.
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
    /// CPU time of the threads of this end in the window.
    pub(crate) cpu: Option<Cpu>,
    /// Load of the host's cores in the window.
    pub(crate) cores: Vec<Core>,
    /// Counts from the sequence numbers of datagrams.
    pub(crate) sequence: Option<Sequence>,
    /// Gaps between datagrams.
    pub(crate) gaps: Distribution,
    /// Lateness of messages against the sender's schedule.
    pub(crate) late: Distribution,
    /// Times from requests to responses.
    pub(crate) latency: Distribution,
    /// Requests without a response.
    pub(crate) unanswered: Option<u64>,
    /// How a sender kept its schedule.
    pub(crate) pacing: Pacing,
    /// Connections or sockets of this end.
    pub(crate) streams: Vec<Stream>,
}

impl End {
    /// Returns the local address and port of the first stream, as the kernel chose them; empty without a stream.
    pub(crate) fn local(&self) -> &str {
        self.streams.first().map_or("", |stream| &stream.granted.local)
    }

    /// Returns the shares of the window for which the threads of this end used a core, and for which they waited for one, as means over the threads; `None`
    /// without a window.
    pub(crate) fn cpu_shares(&self) -> Option<(f64, f64)> {
        let lived = self.elapsed_ns * self.streams.len().max(1) as u64;
        let cpu = self.cpu.unwrap_or_default();
        (lived > 0).then(|| (cpu.used_ns() as f64 / lived as f64, cpu.waited_ns as f64 / lived as f64))
    }

    /// Returns the number of messages of the whole flow; the number in the window if the agent counted no others.
    pub(crate) fn all_messages(&self) -> u64 {
        self.total_messages.filter(|count| *count > 0).unwrap_or(self.messages)
    }

    /// Returns the number of datagrams that the sockets of this end dropped; if no socket reports it, the number of the whole host.
    pub(crate) fn refused_by_socket(&self, host: &Host) -> u64 {
        let own = self.streams.iter().filter_map(|stream| stream.dropped);
        let of_host = || ["Udp", "Udp6"].iter().map(|udp| host.grown.protocol(udp, "RcvbufErrors")).sum();
        own.reduce(|sum, dropped| sum + dropped).unwrap_or_else(of_host)
    }

    /// Returns the subflows of all streams; none without MPTCP.
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

/// CPU time of threads, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Cpu {
    /// Time in user mode.
    pub(crate) user_ns: u64,
    /// Time in the kernel.
    pub(crate) system_ns: u64,
    /// Time for which the threads were ready, but had no core.
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
    /// Index of the core.
    pub(crate) core: Option<u64>,
    /// Share of the time for which the core was busy, in millionths.
    pub(crate) busy_ppm: u64,
    /// Share of the time that the hypervisor took from the core, in millionths.
    pub(crate) steal_ppm: u64,
}

/// Counts from the sequence numbers of received datagrams.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sequence {
    /// Number of different datagrams.
    pub(crate) received: u64,
    /// Number of repeated datagrams.
    pub(crate) duplicate: Option<u64>,
    /// Number of datagrams that arrived after one that was sent later.
    pub(crate) reordered: Option<u64>,
}

/// A distribution of gaps, lateness or latency, in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Distribution {
    /// Number of samples.
    pub(crate) count: Option<u64>,
    /// Mean of the samples.
    pub(crate) mean_ns: Option<u64>,
    /// Standard deviation of the samples.
    pub(crate) sd_ns: Option<u64>,
    /// Median of the absolute deviations from the median.
    pub(crate) mad_ns: Option<u64>,
    /// Smallest sample.
    pub(crate) min_ns: Option<u64>,
    /// Largest sample.
    pub(crate) max_ns: Option<u64>,
    /// Median of the samples.
    pub(crate) p50_ns: Option<u64>,
    /// 90th percentile of the samples.
    pub(crate) p90_ns: Option<u64>,
    /// 99th percentile of the samples.
    pub(crate) p99_ns: Option<u64>,
    /// 99.9th percentile of the samples.
    pub(crate) p999_ns: Option<u64>,
    /// Largest number of datagrams in a millisecond; only of gaps.
    pub(crate) worst_ms: Option<u64>,
}

/// How a sender kept to its schedule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pacing {
    /// Method by which the sender waited, such as `busy`.
    pub(crate) method: Option<String>,
    /// Scheduling class of the sender's thread.
    #[serde(rename = "class")]
    pub(crate) class_: Option<String>,
    /// True if the host kept its cores out of deep sleep states.
    pub(crate) awake: Option<bool>,
    /// Stalls: datagrams that fell behind the schedule.
    pub(crate) stalls: Option<Stalls>,
}

/// Stalls of a sender: datagrams that fell behind their schedule by more than `least_ns` since the datagram before. Times are in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Stalls {
    /// Shortest stall that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) least_ns: Option<u64>,
    /// Number of stalls.
    pub(crate) count: u64,
    /// Sum of the lengths of the stalls.
    pub(crate) total_ns: u64,
    /// Length of the longest stall.
    pub(crate) longest_ns: u64,
    /// Sum of the squares of the lengths, in square nanoseconds.
    pub(crate) squares_ns2: u64,
    /// Part in which other threads of the host had the core.
    pub(crate) waited: Cause,
    /// Part in which no thread of the host ran: the hypervisor had the core, or a timer was late.
    pub(crate) stolen: Cause,
    /// Part in which the kernel worked on the sender's own time.
    pub(crate) kernel: Cause,
}

/// One cause's part in the stalls of a sender.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Cause {
    /// Sum of the lengths of these parts, in nanoseconds.
    #[serde(default)]
    pub(crate) ns: u64,
    /// Share of the sum of squares, in millionths.
    pub(crate) squares_ppm: u64,
}

/// One TCP connection or UDP socket of an end.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Stream {
    /// Address and options that the kernel granted.
    pub(crate) granted: Granted,
    /// `TCP_INFO` at the edges of the window.
    pub(crate) tcp: Option<TcpEdges>,
    /// Index of the core of the stream's thread.
    pub(crate) core: Option<u64>,
    /// Number of datagrams that the socket dropped.
    pub(crate) dropped: Option<u64>,
    /// Counts from the sequence numbers of received datagrams.
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
    /// Name of the congestion control.
    pub(crate) congestion: Option<String>,
}

/// `TCP_INFO` when the window opened, when it closed, and after the last data.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TcpEdges {
    /// Reading when the window opened.
    pub(crate) open: Option<TcpInfo>,
    /// Reading when the window closed; of the sender of a whole transfer, when its data had been acknowledged.
    pub(crate) close: Option<TcpInfo>,
    /// Reading after the last data.
    pub(crate) end: Option<TcpInfo>,
}

/// A subflow of MPTCP.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Subflow {
    /// Local address and port.
    pub(crate) local: String,
    /// Address and port of the peer.
    pub(crate) remote: String,
    /// `TCP_INFO` of the subflow.
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

/// One join or leave of a multicast receiver. Times are readings of the receiver's clock in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Membership {
    /// Instant of the join; `None` for a leave.
    pub(crate) join_ns: Option<i64>,
    /// Arrival of the first datagram after the join.
    pub(crate) first_ns: Option<i64>,
    /// Instant of the leave.
    pub(crate) leave_ns: i64,
    /// Arrival of the last datagram after the leave; 0 or `None` if none arrived.
    pub(crate) last_ns: Option<i64>,
    /// Means by which the receiver saw datagrams after the leave; `None` without the right to capture them.
    pub(crate) seen_by: Option<String>,
    /// True if datagrams stopped after the leave.
    pub(crate) quiet: bool,
}
