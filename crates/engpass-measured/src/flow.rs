//! A flow between agents: its ends, its window and its paths.

use engpass_model::source::Traffic;
use engpass_model::wire::Encapsulation;
use engpass_outcome::Transfer;
use engpass_testbed::topology::{FlowPath, Hop, PathSegment};
use engpass_testbed::{Point, Topology};

use crate::answer::{End, Hosts};
use crate::failure::{Failure, refuse_early_end};
use crate::kind::Kind;
use crate::request::Schedule;

/// Lateness from which on messages are not sent once traffic ends (docs/agent.md).
const GIVEN_UP_NS: u64 = 100_000_000;

/// A flow of the testbed that still sends after the warm-up.
pub(crate) struct Flow<'a> {
    pub(crate) name: &'a str,
    pub(crate) traffic: &'a Traffic,
    pub(crate) kind: Box<dyn Kind + 'a>,
    pub(crate) sender: &'a str,
    pub(crate) receivers: Vec<&'a str>,
    /// Time from the start of the run to the start of the traffic, in nanoseconds.
    pub(crate) start_ns: u64,
    /// Warm-up of the flow, in nanoseconds.
    pub(crate) warmup_ns: u64,
    /// Length of the measurement window in nanoseconds, above 0.
    pub(crate) duration_ns: u64,
    /// Times at which messages are due; `None` for as fast as possible.
    pub(crate) schedule: Option<Schedule>,
    /// The path to each receiver.
    pub(crate) ways: Vec<Way>,
}

/// A path from host to host.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) hops: Vec<Hop>,
    /// Smallest MTU in bytes up to each hop, and the encapsulation of packets on the hop.
    formats: Vec<(u64, Encapsulation)>,
}

impl Way {
    fn new(topology: &Topology, path: &FlowPath) -> Self {
        let (mut hops, mut formats, mut mtu) = (Vec::new(), Vec::new(), u64::MAX);
        for leg in &path.legs {
            mtu = mtu.min(topology.mtu(*leg));
            let encapsulation = match leg {
                PathSegment::Circuit { circuit, .. } => topology.circuits[*circuit].encapsulation,
                PathSegment::Link(_) | PathSegment::Tunnel { .. } => Encapsulation::default(),
            };
            for hop in topology.hops(*leg) {
                hops.push(hop);
                formats.push((mtu, encapsulation));
            }
        }
        Self { hops, formats }
    }

    /// Returns the paths of a traffic, one to each receiver.
    pub(crate) fn of(point: &Point, index: usize) -> Vec<Self> {
        let (topology, first) = (&point.topology, &point.topology.flows[index]);
        let Traffic::Multicast(config) = &point.testbed.traffic[index] else {
            return vec![Self::new(topology, first)];
        };
        let ways = topology.between_hosts(&point.testbed);
        let to = |name: &String| {
            let way = ways.iter().find(|way| way.from == first.from && topology.nodes[way.to] == *name);
            Self::new(topology, way.expect("every group member has a path"))
        };
        config.to.iter().map(to).collect()
    }

    /// Returns the smallest MTU up to a hop, in bytes.
    pub(crate) fn mtu(&self, hop: usize) -> u64 {
        self.formats[hop].0
    }

    /// Returns the encapsulation of packets on a hop.
    pub(crate) fn encapsulation(&self, hop: usize) -> Encapsulation {
        self.formats[hop].1
    }
}

impl<'a> Flow<'a> {
    /// Returns the payload after which each connection or socket ends; `None` without a number of messages.
    pub(crate) fn stream_bytes(&self) -> Option<u64> {
        let transfer = self.traffic.transfer()?;
        Some(transfer.bytes / u64::from(self.traffic.streams().max(1)))
    }

    /// Returns the transfer of a number of messages, as the receiver's agent saw it within its time; `None` if a warm-up comes before. Its duration is known if the
    /// sender has sent all messages and, over TCP, all have come in time: a sender is done when the last ones are in its socket buffer.
    pub(crate) fn transfer(&self, sender: &End, receiver: &End) -> Option<Transfer> {
        let whole = self.traffic.transfer().filter(|_| self.warmup_ns == 0)?;
        let received_bytes = receiver.bytes.min(whole.bytes);
        let has_come = self.kind.is_udp() || received_bytes == whole.bytes;
        let is_over = sender.ended.as_deref() == Some("bytes") && has_come;
        let duration_s = (is_over && receiver.elapsed_ns > 0).then_some(receiver.elapsed_ns as f64 / 1e9);
        let goodput_bit_per_s = duration_s.map(|seconds| received_bytes as f64 * 8.0 / seconds);
        Some(Transfer { received_bytes, duration_s, goodput_bit_per_s })
    }

    /// Returns the end of its traffic, in ns from the start of the run.
    pub(crate) fn end_ns(&self) -> u64 {
        self.start_ns + self.warmup_ns + self.duration_ns
    }

    /// Returns the length of its window in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.duration_ns as f64 / 1e9
    }

    /// Returns the scheduled payload rate of all streams together in bit/s; `None` without a schedule.
    fn asked_bit_per_s(&self) -> Option<f64> {
        let streams = self.kind.message().streams.filter(|streams| *streams > 0).unwrap_or(1);
        self.schedule.as_ref().map(|schedule| schedule.mean_of(streams))
    }

    /// Returns the share of the schedule that the sender met; `None` without a schedule. Within one window, bursts and random gaps send more or less than the
    /// mean rate. Therefore a sender that was never so late that it gave up has met its schedule.
    pub(crate) fn kept(&self, sender: &End) -> Option<f64> {
        let asked = self.asked_bit_per_s()?;
        if sender.late.max_ns.is_some_and(|latest| latest < GIVEN_UP_NS) {
            return Some(1.0);
        }
        let sent = sender.bytes + sender.unanswered.unwrap_or(0) * self.kind.message().message_bytes;
        Some((sent as f64 * 8e9 / self.duration_ns as f64 / asked).min(1.0))
    }

    /// Returns how late a sender was that never gave up; 0 for one that did, because a queue may have held it back.
    pub(crate) fn lateness_ns(sender: &End) -> u64 {
        sender.late.max_ns.filter(|latest| *latest < GIVEN_UP_NS).unwrap_or(0)
    }

    /// Returns the result of its sender. Fails if it is missing or the sender failed.
    pub(crate) fn sent<'r>(&self, hosts: &'r Hosts) -> Result<&'r End, Failure> {
        self.end(hosts, self.sender, "send")
    }

    /// Returns the result of its receiver at a host. Fails if it is missing or the receiver failed.
    pub(crate) fn received<'r>(&self, hosts: &'r Hosts, host: &str) -> Result<&'r End, Failure> {
        self.end(hosts, host, "receive")
    }

    fn end<'r>(&self, hosts: &'r Hosts, host: &str, role: &str) -> Result<&'r End, Failure> {
        let Some(end) = hosts.get(host).and_then(|answer| answer.end(self.name, role)) else {
            return Err(Failure::new(
                format!("host `{host}` gave no result for traffic `{}`", self.name),
                "report this as a bug of Engpass",
            ));
        };
        refuse_early_end(self.name, host, end)?;
        Ok(end)
    }
}
