//! Estimate of the memory that a run needs.
//!
//! A run needs memory for the parts of its testbed and for the packets in flight. The maximum number of packets follows from rates, delays, TCP windows and
//! queues. The constants come from heap measurements of networks of thousands of equal parts (`benches/parts/need.py` and `tests/counts/estimate.rs` compare
//! estimates with runs).

mod spread;

use std::collections::{BTreeMap, BTreeSet};

use engpass_cells::VcTreatment;
use engpass_model::host::{Host, Reach, Side};
use engpass_model::source::{Traffic, Transport};
use engpass_model::switch::Switch;
use engpass_model::wire::aal5::CELL_BITS;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES, TCP_HEADER_BYTES, UDP_HEADER_BYTES};
use engpass_testbed::topology::{Hop, NodeId, NodeKind};
use engpass_testbed::{Testbed, Topology};

use crate::unsupported::Engine;
use spread::{Choosers, Part, Ways};

/// Estimated memory of one run, by use, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The point of the testbed, as parsed for this run.
    pub point: u64,
    /// Peak of the network and its outcome together.
    pub run: u64,
    /// The outcome as JSON text.
    pub outcome: u64,
    /// Payload of the packets in flight; only needed for real packets.
    pub payload: u64,
    /// Agents on this machine, which make the traffic of real hosts (engine `measure`).
    pub agents: u64,
    /// Capture of one link, in addition to all others.
    pub capture: u64,
    /// Timeline of a thousand samples, as Python objects.
    pub timeline: u64,
}

impl Memory {
    /// Returns the larger value of each field.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            point: self.point.max(other.point),
            run: self.run.max(other.run),
            outcome: self.outcome.max(other.outcome),
            payload: self.payload.max(other.payload),
            agents: self.agents.max(other.agents),
            capture: self.capture.max(other.capture),
            timeline: self.timeline.max(other.timeline),
        }
    }
}

/// Bytes of the parts of an idle network: events, ports, accounts.
mod network {
    /// Includes the cache of idle delays, for datagrams that differ in length or path.
    pub(super) const BASE: u64 = 30_000 + 100_000;
    pub(super) const HOST: u64 = 450;
    pub(super) const NODE: u64 = 1_000;
    pub(super) const LINK: u64 = 1_200;
    pub(super) const CIRCUIT: u64 = 2_000;
    /// Both ends of a connection, and the ledger records of the sender.
    pub(super) const CONNECTION: u64 = 1_400 + 1_800;
    /// Records of a line for the first packets of connections, for both directions.
    pub(super) const CONNECTED: f64 = 1_400.0;
    pub(super) const DATAGRAMS: u64 = 1_100 + 1_300;
    /// A step of a route with decision steps, with its trail and the first ledger record of the step's line.
    pub(super) const STEP: f64 = 136.0;
    /// A route of its own for a connection in one direction, and a further ledger record.
    pub(super) const OWN: f64 = 200.0;
    pub(super) const USAGE: f64 = 200.0;
    /// A generator of cell bursts, for each port that it fills: trains of some milliseconds.
    pub(super) const BURSTS: u64 = 60_000;
}

/// Bytes of a packet in flight: its record, its entries in the rings of ports, and for TCP the records of sender and receiver and the acknowledgments. Rings
/// and pools double when they grow.
mod packet {
    pub(super) const DATAGRAM: f64 = 230.0;
    pub(super) const SEGMENT: f64 = 450.0;
    /// Additional bytes of a packet on paths that part: it has an event after each decision, and keeps its record until it arrives.
    pub(super) const PARTED: f64 = 430.0;
    /// A PDU, and a cell in a full queue where trains meet.
    pub(super) const PDU: f64 = 600.0;
    pub(super) const CELL: f64 = 50.0;
    pub(super) const CAPTURED: f64 = 600.0;
    /// An unacknowledged segment of BBR, which records each segment to measure the delivery rate.
    pub(super) const RATED: f64 = 100.0;
}

/// Bytes of the parts of a parsed point.
mod point {
    pub(super) const BASE: u64 = 7_000;
    pub(super) const HOST: u64 = 1_000;
    pub(super) const LINK: u64 = 1_200;
    pub(super) const FLOW: u64 = 1_400;
}

/// Bytes of the parts of an outcome, in three forms: as the engine returns it, as it is stored, and as text.
mod outcome {
    pub(super) const FLOW: [u64; 3] = [400, 1_000, 320];
    pub(super) const LINK: [u64; 3] = [2_200, 1_600, 550];
    /// A link of a flow's path.
    pub(super) const STEP: [u64; 3] = [110, 135, 75];
}

/// Bytes of the series of a timeline, in three forms: as numbers, as text, and as Python lists.
mod timeline {
    pub(super) const CONNECTIONS: u64 = 210_000;
    pub(super) const DATAGRAMS: u64 = 90_000;
    pub(super) const QUEUE: u64 = 55_000;
}

/// Bytes of an agent, and of the buffers of its receiving threads.
mod agent {
    pub(super) const PROGRAM: u64 = 14_000_000;
    pub(super) const TCP_RECEIVER: u64 = 128 << 10;
    pub(super) const UDP_RECEIVER: u64 = 1 << 20;
}

/// Estimates the memory of one run of `engine`, which must support this testbed. Above some megabytes the estimate is within a factor of two.
pub fn memory(testbed: &Testbed, topology: &Topology, engine: Engine) -> Memory {
    let (flows, links) = (topology.flows.len() as u64, topology.links.len() as u64);
    let hosts = topology.hosts as u64;
    let steps = topology.flows.iter().map(|flow| flow.route.len() as u64).sum::<u64>();
    let parts = |[flow, link]: [[u64; 3]; 2]| {
        [0, 1, 2].map(|form| flows * flow[form] + links * link[form] + steps * outcome::STEP[form])
    };
    let [given, stored, text] = match engine {
        Engine::Simulate => parts([outcome::FLOW, outcome::LINK]),
        // The limit has a table for each flow, and none for links.
        Engine::Limit => parts([[2_700, 3_900, 2_500], [100, 0, 0]]),
    };
    let (under_way, network) = match engine {
        Engine::Simulate => (UnderWay::of(testbed, topology), standing(testbed, topology)),
        Engine::Limit => (UnderWay::default(), network::BASE + flows * 1_000 + links * 500),
    };
    // The network is freed before its outcome becomes text. The text exists twice while it is passed to Python.
    let run = (network + under_way.records + given).max(given + stored).max(stored + 2 * text);
    Memory {
        point: point::BASE + hosts * point::HOST + links * point::LINK + flows * point::FLOW,
        run,
        outcome: text,
        payload: under_way.bytes,
        capture: under_way.capture,
        timeline: timeline(testbed, topology),
        agents: agents(testbed),
    }
}

/// Returns the memory of a timeline: a series for each flow, and one for each queue of a switch or router.
fn timeline(testbed: &Testbed, topology: &Topology) -> u64 {
    let flows = testbed.traffic.values().map(|traffic| match traffic {
        Traffic::TcpStream(_) => timeline::CONNECTIONS,
        _ => timeline::DATAGRAMS,
    });
    let ends = topology.links.iter().flat_map(|link| link.ends);
    let queues = ends.filter(|end| *end >= topology.hosts).count() as u64;
    flows.sum::<u64>() + queues * timeline::QUEUE
}

/// Returns the memory of an idle network.
fn standing(testbed: &Testbed, topology: &Topology) -> u64 {
    let (links, circuits) = (topology.links.len() as u64, topology.circuits.len() as u64);
    let nodes = (topology.nodes.len() - topology.hosts) as u64;
    let cells = topology.links.iter().any(|link| link.medium.is_atm());
    // Each port has a rule for each circuit direction.
    let rules = if cells { 2 * links * 2 * circuits * size_of::<VcTreatment>() as u64 } else { 0 };
    let flows = testbed.traffic.values().zip(&topology.flows).map(|(traffic, path)| match traffic {
        Traffic::TcpStream(config) => u64::from(config.streams) * network::CONNECTION,
        Traffic::OnOff(_) => path.route.len() as u64 * network::BURSTS,
        _ => network::DATAGRAMS,
    });
    let ways = testbed.traffic.values().zip(&topology.flows).map(|(traffic, path)| {
        let Ways { steps, own, usages } = spread::ways(testbed, topology, path, traffic);
        (steps * network::STEP + own * network::OWN + usages * network::USAGE) as u64
    });
    network::BASE
        + ways.sum::<u64>()
        + topology.hosts as u64 * network::HOST
        + nodes * network::NODE
        + links * network::LINK
        + circuits * network::CIRCUIT
        + rules
        + flows.sum::<u64>()
}

/// Returns the memory of the agents on this machine, with their buffers.
fn agents(testbed: &Testbed) -> u64 {
    let ends = testbed.traffic.values().filter(|traffic| traffic.live().is_some());
    let hosts: BTreeSet<&str> = ends.flat_map(|traffic| <[&str; 2]>::from(traffic.ends())).collect();
    let here = hosts.into_iter().filter(|host| !matches!(testbed.hosts[*host].reach, Some(Reach::Ssh(_))));
    let buffers = testbed.traffic.values().map(|traffic| buffers(testbed, traffic));
    here.count() as u64 * agent::PROGRAM + buffers.sum::<u64>()
}

/// Returns the bytes of the buffers that agents on this machine allocate for a traffic.
fn buffers(testbed: &Testbed, traffic: &Traffic) -> u64 {
    let (from, to) = traffic.ends();
    let here = |host: &str| match testbed.hosts[host].reach {
        Some(Reach::Ssh(_)) => 0,
        _ => 1,
    };
    let (sends, receives) = match traffic {
        Traffic::TcpStream(config) => (config.message.bytes(), agent::TCP_RECEIVER),
        Traffic::RequestResponse(config) => {
            let buffer = match config.transport {
                Transport::Tcp => agent::TCP_RECEIVER,
                Transport::Udp => agent::UDP_RECEIVER,
            };
            (config.request.bytes() + buffer, config.response.bytes() + buffer)
        }
        Traffic::Multicast(config) => {
            return config.to.iter().map(|host| here(host) * agent::UDP_RECEIVER).sum();
        }
        _ if traffic.cells().is_some() => (0, 0),
        _ => (0, agent::UDP_RECEIVER),
    };
    u64::from(traffic.streams()) * (here(from) * sends + here(to) * receives)
}

/// Peak memory of the packets in flight, in bytes.
#[derive(Default)]
struct UnderWay {
    /// Records of the packets.
    records: u64,
    /// Payload of the packets.
    bytes: u64,
    /// Records of a captured link's packets.
    capture: u64,
}

/// The expected load of a transmitter.
#[derive(Clone, Copy, Default)]
struct Load {
    /// Rate of datagrams and segments, in bit/s.
    datagrams: f64,
    /// Rate of generators' cells, in bit/s.
    cells: f64,
    connections: f64,
    flows: f64,
    /// Length of the longest packets, in bits; of a cell if there are no packets.
    bits: f64,
    /// Number of packets in TCP windows beyond those on the lines.
    surplus: f64,
    /// Part of `datagrams` (bit/s) and of `surplus` (packets) that belongs to flows with several paths.
    parted: f64,
    parted_surplus: f64,
}

/// A transmitter that a flow's data may use. `share` and `most` are the average and the largest share of the data there, `depth` is the number of path segments
/// before it.
struct Passed {
    port: usize,
    share: f64,
    most: f64,
    depth: usize,
}

impl Load {
    /// Returns the rate of datagrams and cells together, in bit/s.
    fn all(self) -> f64 {
        self.datagrams + self.cells
    }
}

/// Number of packets in flight, by kind.
#[derive(Clone, Copy, Default)]
struct Packets {
    datagrams: f64,
    segments: f64,
    pdus: f64,
    cells: f64,
    /// Number of unacknowledged segments of BBR.
    rated: f64,
    /// Number of datagrams and segments of flows with several paths.
    parted: f64,
}

impl UnderWay {
    fn of(testbed: &Testbed, topology: &Topology) -> Self {
        let mut estimate = Estimate {
            testbed,
            topology,
            loads: vec![Load::default(); topology.links.len() * 2],
            packets: Packets::default(),
            surplus: 0.0,
            choosers: spread::choosers(testbed, topology),
        };
        let packets = estimate.packets();
        let connected = estimate.loads.iter().filter(|load| load.connections > 0.0).count() as f64;
        let longest = topology.flows.iter().map(|flow| flow.path_mtu).max().unwrap_or(0);
        let records = packets.datagrams * packet::DATAGRAM
            + packets.segments * packet::SEGMENT
            + packets.pdus * packet::PDU
            + packets.cells * packet::CELL
            + packets.rated * packet::RATED
            + packets.parted * packet::PARTED
            + connected * network::CONNECTED;
        let bytes = (packets.datagrams + packets.segments + packets.pdus) * longest as f64;
        // Captured packets of both directions are kept for 10 ms.
        let captured = |port: usize| 0.01 * estimate.rate(port) / estimate.loads[port].bits;
        let loaded = (0..estimate.loads.len()).filter(|port| estimate.loads[*port].bits > 0.0);
        let capture = loaded.map(captured).fold(0.0, f64::max) * packet::CAPTURED;
        // A float that is too large becomes the largest integer.
        Self { records: records as u64, bytes: bytes as u64, capture: capture as u64 }
    }
}

struct Estimate<'a> {
    testbed: &'a Testbed,
    topology: &'a Topology,
    /// By transmitter: `2 * link + end`.
    loads: Vec<Load>,
    packets: Packets,
    /// Number of segments in the windows of all connections beyond those on the lines.
    surplus: f64,
    choosers: Choosers,
}

impl Estimate<'_> {
    fn packets(&mut self) -> Packets {
        let flows = 0..self.topology.flows.len();
        for flow in flows.clone() {
            self.load(flow);
        }
        for flow in flows {
            self.segments(flow);
        }
        for port in 0..self.loads.len() {
            let load = self.loads[port];
            if load.bits == 0.0 {
                continue;
            }
            let queue = self.queue(port);
            let excess = (load.all() - self.rate(port)).max(0.0);
            let waiting = queue.min(excess * seconds(self.testbed.run.duration.0) / load.bits);
            // With several paths, any of several queues may hold the segments.
            let of_tcp = load.surplus.min(queue).min(self.surplus);
            self.surplus -= of_tcp;
            self.add(port, waiting * load.datagrams / load.all().max(1.0), of_tcp);
            let parted = of_tcp * load.parted_surplus / load.surplus.max(1.0);
            self.packets.parted += parted + waiting * load.parted / load.all().max(1.0);
            let node = self.topology.links[port / 2].ends[port % 2];
            // Cell trains stay whole if a single flow waits and no cell is lost.
            let meets = load.flows > 1.0 || waiting + of_tcp >= queue;
            if meets && self.is_atm(port) && node >= self.topology.hosts {
                self.packets.cells += (waiting + of_tcp) * load.bits / CELL_BITS as f64;
            }
        }
        self.packets
    }

    /// Counts packets in flight at a transmitter.
    fn add(&mut self, port: usize, datagrams: f64, segments: f64) {
        if self.is_atm(port) {
            self.packets.pdus += datagrams + segments;
        } else {
            self.packets.datagrams += datagrams;
            self.packets.segments += segments;
        }
    }

    fn port(&self, hop: Hop) -> usize {
        hop.link * 2 + usize::from(self.topology.links[hop.link].ends[0] != hop.from)
    }

    fn rate(&self, port: usize) -> f64 {
        self.topology.links[port / 2].lines[port % 2].rate as f64
    }

    fn delay(&self, port: usize) -> f64 {
        let link = &self.topology.links[port / 2];
        seconds(link.delay.ps() + link.jitter.ps())
    }

    /// Returns the largest number of packets that the queue of a transmitter holds.
    fn queue(&self, port: usize) -> f64 {
        let bytes = (self.loads[port].bits / 8.0).max(1.0);
        let link = &self.topology.links[port / 2];
        if let Some(queue) = &link.queues[port % 2] {
            let limit = queue.limit();
            return (limit.packets as f64).min(limit.bytes as f64 / bytes);
        }
        match self.topology.kind(link.ends[port % 2]) {
            NodeKind::Host(host) => self.host(host).nic_buffer.bytes() as f64 / bytes,
            NodeKind::Switch(switch) => match &self.testbed.switches[switch] {
                Switch::Atm(switch) => switch.output_buffer.0 as f64 * 53.0 / bytes,
                Switch::Ethernet(_) => 0.0,
            },
            NodeKind::Router(_) => 0.0,
        }
    }

    fn host(&self, host: usize) -> &Host {
        &self.testbed.hosts[host]
    }

    fn is_atm(&self, port: usize) -> bool {
        self.topology.links[port / 2].medium.is_atm()
    }

    /// Adds the load of a flow to its lines, and counts the datagrams that are on them.
    fn load(&mut self, flow: usize) {
        let topology = self.topology;
        let path = &topology.flows[flow];
        let traffic = &self.testbed.traffic[flow];
        let passed = self.passed(flow);
        passed.iter().for_each(|passed| self.loads[passed.port].flows += 1.0);
        if let Traffic::TcpStream(config) = traffic {
            for Passed { port, share, .. } in passed {
                self.loads[port].connections += f64::from(config.streams) * share;
            }
            return;
        }
        if let Some(pace) = path.cells {
            for Passed { port, .. } in passed {
                self.loads[port].cells += pace.per_second() * CELL_BITS as f64;
                self.loads[port].bits = self.loads[port].bits.max(CELL_BITS as f64);
            }
            return;
        }
        let Some((payload, offered)) = traffic.datagrams() else { return };
        let per_second = offered.map_or(f64::INFINITY, |rate| rate.0 as f64 / (payload.max(1) * 8) as f64);
        let receiver = self.host(path.to);
        let cost = receiver.occupation(Side::Receive, traffic.data_path(Side::Receive));
        let held = if cost.datagram(1, 1) == 0 {
            0.0
        } else {
            // If the receiver is too slow, its socket buffer is full.
            let buffer = traffic.receive_buffer().unwrap_or(receiver.receive_buffer);
            buffer.bytes() as f64 / payload.max(1) as f64
        };
        let mut coming: BTreeMap<NodeId, (f64, u64)> = BTreeMap::from([(path.from, (per_second, path.mtu))]);
        for Part { leg, from, to, most, .. } in spread::parts(self.testbed, topology, path, &self.choosers) {
            let (mut per_second, mtu) = coming.get(&from).copied().unwrap_or((0.0, path.mtu));
            per_second *= most;
            // Routers fragment packets that are too long for the next path segment, and only the receiver reassembles them.
            let mtu = mtu.min(topology.mtu(leg));
            let fragments = Fragments::cut(&[UDP_HEADER_BYTES + payload], mtu);
            let whole: u64 = fragments.iter().map(|fragment| (IP_HEADER_BYTES + fragment) * 8).sum();
            let (whole, bits) = (whole as f64, whole as f64 / fragments.len() as f64);
            for hop in topology.hops(leg) {
                let port = self.port(hop);
                let line = self.rate(port);
                let load = &mut self.loads[port];
                load.bits = load.bits.max(bits);
                // A source without a rate saturates its first line.
                let bit_per_s = if per_second.is_finite() { per_second * whole } else { 1.01 * line };
                load.datagrams += bit_per_s;
                load.parted += if path.fans.is_some() { bit_per_s } else { 0.0 };
                per_second = per_second.min(line / whole);
                // Cells are released every 10 ms.
                let settled = if self.is_atm(port) { 0.01 } else { 0.0 };
                let on_line = per_second * fragments.len() as f64 * (self.delay(port) + settled);
                self.add(port, on_line, 0.0);
                self.packets.parted += if path.fans.is_some() { on_line } else { 0.0 };
            }
            let behind = coming.entry(to).or_insert((0.0, mtu));
            *behind = (behind.0 + per_second, behind.1.min(mtu));
        }
        let received = coming.get(&path.to).map_or(0.0, |(per_second, _)| *per_second);
        self.packets.datagrams += held.min(received * seconds(self.testbed.run.duration.0));
    }

    /// Returns the transmitters that a flow's data may use.
    fn passed(&self, flow: usize) -> Vec<Passed> {
        let (path, topology) = (&self.topology.flows[flow], self.topology);
        let mut coming: BTreeMap<NodeId, (f64, f64)> = BTreeMap::from([(path.from, (1.0, 1.0))]);
        let mut all = Vec::new();
        for Part { leg, from, to, depth, share, most } in
            spread::parts(self.testbed, topology, path, &self.choosers)
        {
            let before = coming.get(&from).copied().unwrap_or_default();
            let (share, most) = (before.0 * share, before.1 * most);
            let hops = topology.hops(leg).into_iter();
            all.extend(hops.map(|hop| Passed { port: self.port(hop), share, most, depth }));
            let behind = coming.entry(to).or_default();
            *behind = (behind.0 + share, (behind.1 + most).min(1.0));
        }
        all
    }

    /// Counts the segments that a flow has on its lines. The rest of its window waits at the slowest line.
    fn segments(&mut self, flow: usize) {
        let Traffic::TcpStream(config) = &self.testbed.traffic[flow] else { return };
        let path = &self.topology.flows[flow];
        let of = |host: usize| config.tcp.over(&self.host(host).tcp).resolve(path.path_mtu);
        let (from, to) = (of(path.from), of(path.to));
        let streams = f64::from(config.streams);
        let segment = from.mss.min(to.mss).max(1);
        let bits = ((segment + IP_HEADER_BYTES + TCP_HEADER_BYTES) * 8) as f64;
        let passed = self.passed(flow);
        let share = |port: usize| {
            let left = (self.rate(port) - self.loads[port].all()).max(self.rate(port) / 100.0);
            left * streams / self.loads[port].connections
        };
        let slowest = passed.iter().min_by(|one, other| share(one.port).total_cmp(&share(other.port)));
        let Some(&Passed { port: slowest, depth, .. }) = slowest else { return };
        let asked = config.rate.map_or(f64::INFINITY, |rate| rate.0 as f64 * streams);
        let rate = share(slowest).min(asked);
        let delay: f64 = passed.iter().map(|passed| passed.share * self.delay(passed.port)).sum();
        let back = |passed: &Passed| passed.share * self.delay(passed.port ^ 1);
        let round_trip = delay + passed.iter().map(back).sum::<f64>();
        // Slow start doubles a window in every round trip (RFC 5681 section 3.1).
        let doublings = (seconds(self.testbed.run.duration.0) / round_trip).min(64.0);
        let grown = from.initial_window as f64 * doublings.exp2();
        let buffers = from.send_buffer.min(to.receive_buffer) as f64 / segment as f64;
        let window = streams * buffers.min(grown);
        let on_lines = window.min(rate * delay / bits);
        self.add(slowest, 0.0, on_lines);
        if from.congestion.config().wants_rates() {
            self.packets.rated += window.min(8.0 * (on_lines + self.queue(slowest)));
        }
        if asked.is_infinite() {
            self.surplus += window - on_lines;
        }
        // Traffic that avoids the slowest line uses other lines at the same depth.
        for Passed { port, most, .. } in passed.iter().filter(|passed| passed.depth == depth) {
            let load = &mut self.loads[*port];
            load.bits = load.bits.max(bits);
            if asked.is_infinite() && (*port == slowest || *most < 1.0) {
                load.surplus += most * (window - on_lines);
                load.parted_surplus += if path.fans.is_some() { most * (window - on_lines) } else { 0.0 };
            }
        }
    }
}

fn seconds(picoseconds: u64) -> f64 {
    picoseconds as f64 / 1e12
}
