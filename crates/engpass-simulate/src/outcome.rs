//! The outcome of a simulated run, and its computation at the end.

use engpass_cells::Generator;
use engpass_frames::{Frames, PortTally};
use engpass_ledger::{Accounts, LineUsageStats};
use engpass_model::queue::Backlog;
use engpass_model::source::Traffic;
use engpass_model::wire::Framing;
use engpass_outcome::{Datagrams, Delays, FlowOutcome, Outage, Place as Located, Receiver, Tcp, Transfer};
use engpass_testbed::topology::{LinkEnds, NodeId};
use engpass_testbed::{Testbed, Topology};
use indexmap::IndexMap;

use super::cell_ports::CellNetwork;
use super::engine_load::NodeUse;
pub use super::flow_counters::Receptions;
use super::flow_counters::{ColdCounters, DropLocation, Losses, VcCounters};
use super::host::Hosts;
use super::queueing::Queueing;
use super::shared_state::SharedState;
use super::{Network, SimError};

/// The outcome of one simulated run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimOutcome {
    /// Flows by the name of their traffic table, in the order of the file.
    pub flows: IndexMap<String, FlowOutcome>,
    /// Instants of each flow.
    pub instants: IndexMap<String, FlowInstants>,
    /// Links by name, in the order of the file.
    pub links: Vec<(String, LinkUse)>,
    /// Nodes with engines that take time, in the order of the file.
    pub nodes: Vec<NodeUse>,
    /// All losses, summed up by place, cause and flow.
    pub drops: Vec<Drop>,
    /// Number of events that the engine handled: a measure of its work.
    pub events: u64,
}

/// Exact instants of one flow in picoseconds, which tests compare; the warm-up is included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowInstants {
    /// Receptions of the flow's data; with several receivers, at the one with the fewest datagrams.
    pub receptions: Receptions,
    /// Begin and end of the time that the receiver of a transfer measures, if it has ended.
    pub transfer: Option<[u64; 2]>,
    /// Receptions at each receiver of a multicast traffic, in the order of the file.
    pub receivers: Vec<Receptions>,
}

/// Usage of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkUse {
    /// Use of the bit-times of both directions, by account (docs/ledger.md), in units of `1 / units_per_bit` bit.
    pub ledger: Accounts,
    /// Sum of all accounts: the capacity of both directions in the measurement window.
    pub capacity: u128,
    /// Units of `ledger` and `capacity` per bit, chosen so that a cell is a whole number of them.
    pub units_per_bit: u64,
    /// The two directions, from the first and from the second end.
    pub directions: Vec<Direction>,
}

/// Usage of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Node of the transmitter.
    pub from: String,
    /// Node at the other end.
    pub to: String,
    /// Number of cells that the line could have carried; `None` on a link that carries frames.
    pub capacity_cells: Option<u64>,
    /// Cells or frames that the line carried.
    pub carried: Carried,
    /// Share of the measurement window in which the line was busy.
    pub utilisation: f64,
    /// Use of the line's bit-times by account, in the units of the whole link.
    pub ledger: Accounts,
    /// Sum of the line's accounts.
    pub capacity: u128,
    /// Time in which the line was idle, in picoseconds.
    pub idle: u64,
    /// Usage of the line by flow, in counts.
    pub usages: Vec<LineUsageStats>,
    /// Counts of the line by circuit direction.
    pub vcs: Vec<VcCount>,
    /// The queue in front of the line, at switches and routers; `None` with injected packets.
    pub queue: Option<QueueUse>,
}

/// The queue of an output port in the measurement window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueUse {
    /// The cell queue of an ATM switch.
    Cells {
        /// Longest queue of one service category in cells, the cell being sent included.
        longest: u64,
    },
    /// The queue discipline of a frame port.
    Packets {
        /// Longest queue in bytes, and in packets, as the discipline counts them.
        longest: Backlog,
        /// Packets that the discipline marked CE.
        marked: u64,
    },
}

/// Cells or frames carried by one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Of an ATM link.
    Cells {
        /// Cells sent.
        cells: u64,
        /// Cells sent with CLP = 1.
        clp1_cells: u64,
        /// Cells sent with the EFCI mark.
        efci_cells: u64,
        /// Cells lost in the queue, or dropped by the policer in front of it.
        lost_cells: u64,
    },
    /// Of an Ethernet or point-to-point link.
    Frames {
        /// Frames sent.
        frames: u64,
        /// Bytes that they occupied on the line, framing included.
        bytes: u64,
        /// Frames lost in the queue or on the line.
        lost_frames: u64,
    },
}

impl Carried {
    /// Returns the number of cells or frames sent.
    pub fn sent(&self) -> u64 {
        match self {
            Self::Cells { cells: sent, .. } | Self::Frames { frames: sent, .. } => *sent,
        }
    }

    /// Returns the number of cells or frames lost.
    pub fn lost(&self) -> u64 {
        match self {
            Self::Cells { lost_cells: lost, .. } | Self::Frames { lost_frames: lost, .. } => *lost,
        }
    }
}

/// Usage of one direction of a link by one circuit direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VcCount {
    /// Index of the circuit in the topology.
    pub circuit: usize,
    /// True for the direction from the circuit's `from` to its `to`.
    pub forward: bool,
    /// Cells that left in the measurement window.
    pub sent: u64,
    /// Cells that left with CLP = 1.
    pub clp: u64,
    /// Cells that left with the EFCI mark.
    pub efci: u64,
    /// Instant at which the last cell left, in picoseconds.
    pub last_sent: Option<u64>,
    /// Cells lost in the queue.
    pub lost: u64,
    /// Cells that the policer dropped.
    pub policed: u64,
}

/// Losses of one flow at one place, for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drop {
    /// Place: a transmitter or a node.
    pub place: Located,
    /// Cause of the losses.
    pub cause: &'static str,
    /// Name of the traffic.
    pub flow: String,
    /// Cells or frames lost at this place, also those whose datagram had lost another one before.
    pub cells: u64,
    /// Datagrams (for generators: cells) that had their first loss at this place.
    pub datagrams: u64,
    /// Link and end (0 or 1) of the transmitter, if the place is one.
    pub port: Option<(usize, usize)>,
}

/// Results of all flows: their outcomes and instants by name, and their losses.
type FlowResults = (IndexMap<String, FlowOutcome>, IndexMap<String, FlowInstants>, Vec<Drop>);

/// Returns the results of all flows.
pub(super) fn flows(network: &Network, testbed: &Testbed, topology: &Topology) -> FlowResults {
    let mut flows = IndexMap::with_capacity(testbed.traffic.len());
    let mut instants = IndexMap::with_capacity(testbed.traffic.len());
    let mut drops = Vec::new();
    for (index, name) in testbed.traffic.keys().enumerate() {
        let path = &topology.flows[index];
        let trees = network.shared.trees.as_ref();
        let receivers = trees.map_or(&[][..], |trees| trees.receivers(index));
        let mut tallies = vec![(path.to, index)];
        tallies.extend(path.leaves().map(|leaf| path.branches[leaf].to).zip(receivers.iter().copied()));
        let mut lost: Vec<(Losses, NodeId)> = Vec::new();
        for (host, tally) in &tallies {
            for losses in network.shared.flows[*tally].cold_counters().places {
                // Before the paths part, all receivers lose datagrams at one place.
                match lost.iter_mut().find(|(known, at)| {
                    known.place == losses.place && (*at == *host || !losses.place.is_at_receiver())
                }) {
                    Some((known, _)) => {
                        known.cells += losses.cells;
                        known.datagrams += losses.datagrams;
                    }
                    None => lost.push((losses, *host)),
                }
            }
        }
        lost.sort_by_key(|(losses, _)| losses.place);
        drops.extend(lost.iter().map(|(losses, host)| {
            let (place, cause, port) = place_name(&network.frames, losses.place, topology, *host);
            Drop { place, cause, flow: name.clone(), cells: losses.cells, datagrams: losses.datagrams, port }
        }));
        let (flow, of_flow) = flow_of(network, index, &tallies, testbed, topology);
        flows.insert(name.clone(), flow);
        instants.insert(name.clone(), of_flow);
    }
    (flows, instants, drops)
}

/// Returns the results of a flow and its receivers. `tallies` has the receiving host and the counter index of the flow, then those of each receiver.
fn flow_of(
    network: &Network,
    index: usize,
    tallies: &[(NodeId, usize)],
    testbed: &Testbed,
    topology: &Topology,
) -> (FlowOutcome, FlowInstants) {
    let mut flow = counted_flow(network, index, index, testbed);
    let mut shown = index;
    let receivers: Vec<(usize, FlowOutcome)> = tallies[1..]
        .iter()
        .map(|&(_, tally)| (tally, counted_flow(network, index, tally, testbed)))
        .collect();
    // The flow has the figures of the receiver with the fewest datagrams.
    let received = |flow: &FlowOutcome| flow.datagrams.map(|datagrams| datagrams.received);
    if let Some((tally, least)) = receivers.iter().min_by_key(|(_, flow)| received(flow)) {
        shown = *tally;
        // Marks count on all branches.
        let marked = receivers.iter().filter_map(|(_, flow)| flow.efci_pdus).sum::<u64>();
        let sent = flow.datagrams.map_or(0, |datagrams| datagrams.sent);
        flow = FlowOutcome {
            efci_pdus: flow.efci_pdus.map(|own| own + marked),
            offered_bit_per_s: flow.offered_bit_per_s,
            datagrams: least.datagrams.map(|datagrams| Datagrams { sent, ..datagrams }),
            ..least.clone()
        };
    }
    let is_stream = matches!(testbed.traffic[index], Traffic::TcpStream(_));
    let mut instants = FlowInstants {
        receptions: network.shared.flows[shown].receptions(),
        transfer: network.shared.flows[index].transfer(is_stream).and_then(|(_, times)| times),
        receivers: Vec::new(),
    };
    if let Traffic::Multicast(config) = &testbed.traffic[index] {
        let mut listed = IndexMap::with_capacity(config.to.len());
        for host in &config.to {
            let place = tallies[1..].iter().position(|(node, _)| topology.nodes[*node] == *host);
            let (tally, outcome) =
                place.map_or((index, &flow), |place| (receivers[place].0, &receivers[place].1));
            listed.insert(host.clone(), receiver(network, outcome, place.map(|_| tally)));
            instants.receivers.push(network.shared.flows[tally].receptions());
        }
        flow.receivers = listed;
    }
    flow.paths = topology.paths(testbed, index);
    (flow, instants)
}

/// Returns the results of a receiver from those that it would have as a flow; `tally` is its counter index, if it has counters of its own.
fn receiver(network: &Network, flow: &FlowOutcome, tally: Option<usize>) -> Receiver {
    let window = network.shared.window;
    let from = window.from.unwrap_or(0);
    let seconds = |ps: u64| ps as f64 / 1e12;
    let seen = tally.and_then(|tally| network.shared.trees.as_ref()?.members.seen(tally));
    let delays = seen.map(|(_, delays)| delays).unwrap_or_default();
    Receiver {
        member_share: seen.map(|(membership, _)| {
            let within = membership.within(from, window.end).into_iter().map(|(from, to)| to - from);
            within.sum::<u64>() as f64 / (window.end - from) as f64
        }),
        join_delay_s: delays.join.map(seconds),
        leave_delay_s: delays.leave.map(seconds),
        datagrams: flow.datagrams,
        delay_s: flow.delay_s,
        outage: flow.outage,
        ..Receiver::of(flow.goodput_bit_per_s, flow.offered_bit_per_s)
    }
}

/// Returns the results of the counters `counted` of a flow or one of its receivers, without paths and receivers.
fn counted_flow(network: &Network, index: usize, counted: usize, testbed: &Testbed) -> FlowOutcome {
    let window = network.shared.window;
    let seconds = (window.end - window.from.unwrap_or(0)) as f64 / 1e12;
    let (tally, traffic) = (&network.shared.flows[counted], &testbed.traffic[index]);
    let ColdCounters { lost, marked, lost_ever, received_ever, places, .. } = tally.cold_counters();
    let generated = traffic.cells().is_some();
    let (sent, ever) =
        if generated { network.cells.generated(index, &network.shared) } else { (tally.sent, 0) };
    let bits = |bytes: u64, cells: u64| {
        (if generated { cells * engpass_model::wire::aal5::CELL_PAYLOAD_BYTES } else { bytes }) as f64 * 8.0
    };
    let until = traffic.window().1.map_or(u64::MAX, |stop| stop.0).min(window.end);
    let in_flight = if generated { ever - received_ever - lost_ever } else { tally.in_flight };
    FlowOutcome {
        kind: traffic.kind().to_owned(),
        goodput_bit_per_s: bits(tally.received_bytes, tally.received) / seconds,
        offered_bit_per_s: bits(tally.sent_bytes, sent) / seconds,
        datagrams: Some(Datagrams {
            sent,
            received: tally.received,
            lost,
            in_flight: Some(in_flight),
            duplicate: None,
            reordered: None,
        }),
        efci_pdus: Some(marked),
        delay_s: tally.network_delays().in_seconds().map(|network| Delays {
            network,
            queueing: tally.queueing().and_then(Queueing::in_seconds),
            message: tally.message_delays().in_seconds(),
        }),
        tcp: network.hosts.tcp_of(index).map(|tcp| Tcp { rtt_s: tally.round_trips.in_seconds(), ..tcp }),
        transfer: tally.transfer(matches!(traffic, Traffic::TcpStream(_))).map(transfer),
        outage: tally.longest_gap(until).map(|longest| {
            let lost = places.iter().filter(|losses| matches!(losses.place, DropLocation::Down(_)));
            let lost = lost.map(|losses| losses.datagrams).sum();
            Outage { longest_s: longest as f64 / 1e12, lost }
        }),
        ..FlowOutcome::default()
    }
}

/// Returns the use of all links.
pub(super) fn links(network: &Network, topology: &Topology) -> Result<Vec<(String, LinkUse)>, SimError> {
    let window = network.shared.window;
    let measured = window.end - window.from.unwrap_or(0);
    let mut links = Vec::with_capacity(topology.links.len());
    for (link, LinkEnds { name, ends, lines, .. }) in topology.links.iter().enumerate() {
        let mut directions = Vec::with_capacity(2);
        let (mut ledger, mut capacity, mut parts_per_bit) = (Accounts::default(), 0, 1);
        for end in 0..2 {
            let port = link * 2 + end;
            let capacity_cells = match lines[end].framing {
                Framing::Cells { slot } => Some(slot.units_within(measured)),
                Framing::Ethernet | Framing::Packets => None,
            };
            let (carried, vcs) = carried(network, port);
            let cells = capacity_cells.map(|_| carried.sent());
            let closed = network.shared.ledger.close(topology, port, cells)?;
            ledger += &closed.accounts;
            capacity += closed.capacity;
            parts_per_bit = closed.parts_per_bit;
            directions.push(Direction {
                from: topology.nodes[ends[end]].clone(),
                to: topology.nodes[ends[1 - end]].clone(),
                capacity_cells,
                carried,
                utilisation: (measured - closed.idle) as f64 / measured as f64,
                ledger: closed.accounts,
                capacity: closed.capacity,
                idle: closed.idle,
                usages: closed.usages,
                vcs,
                queue: queue_use(network, topology, port),
            });
        }
        links.push((name.clone(), LinkUse { ledger, capacity, units_per_bit: parts_per_bit, directions }));
    }
    Ok(links)
}

/// Returns what the line of a port carried, in total and by circuit direction.
fn carried(network: &Network, port: usize) -> (Carried, Vec<VcCount>) {
    if let Some(port) = network.frames.port(port) {
        let PortTally { frames, bytes, lost } = port.tally();
        return (Carried::Frames { frames, bytes, lost_frames: lost }, Vec::new());
    }
    let counters = network.shared.counters[port].iter();
    let vcs: Vec<_> =
        counters.map(|counter| network.cells.vc_count(port, counter, &network.shared)).collect();
    let carried = Carried::Cells {
        cells: vcs.iter().map(|vc| vc.sent).sum(),
        clp1_cells: vcs.iter().map(|vc| vc.clp).sum(),
        efci_cells: vcs.iter().map(|vc| vc.efci).sum(),
        lost_cells: vcs.iter().map(|vc| vc.lost + vc.policed).sum(),
    };
    (carried, vcs)
}

/// Returns how long the queue of a port became. Ports of hosts have no such queue, because senders wait for the NIC.
fn queue_use(network: &Network, topology: &Topology, port: usize) -> Option<QueueUse> {
    let at_host = topology.links[port / 2].ends[port % 2] < topology.hosts;
    // With injected packets, a measurement window may begin at an instant that lookahead has already passed.
    if at_host || network.shared.reports.is_some() {
        return None;
    }
    if let Some(longest) = network.cells.longest_queue(port) {
        return Some(QueueUse::Cells { longest });
    }
    let used = match network.frames.port(port) {
        Some(line) => line.longest_queue().map(|longest| (longest, network.frames.marks.of(port))),
        None => network.cells.use_before_circuits(port),
    };
    used.map(|(longest, marked)| QueueUse::Packets { longest, marked })
}

impl Hosts {
    /// Returns the counts of the writing ends of a TCP flow; `None` for another traffic.
    fn tcp_of(&self, flow: usize) -> Option<Tcp> {
        let mut counts: Option<Tcp> = None;
        // Endpoints are in the order of the flows.
        let first = self.endpoints.partition_point(|this| (this.flow as usize) < flow);
        let own = self.endpoints[first..].iter().take_while(|this| this.flow as usize == flow);
        for (place, endpoint) in (first..).zip(own).filter(|(_, this)| this.application.is_some()) {
            let stats = endpoint.connection.stats();
            let before = self.warmup_counts.get(place).copied().unwrap_or_default();
            let counts = counts.get_or_insert_default();
            let add = |sum: &mut Option<u64>, count| *sum.get_or_insert(0) += count;
            add(&mut counts.retransmitted_segments, stats.retransmissions - before.retransmissions);
            add(&mut counts.timeouts, stats.timeouts - before.timeouts);
            add(&mut counts.fast_retransmits, stats.fast_recoveries - before.fast_recoveries);
            let rtt = endpoint.connection.snapshot().and_then(|now| now.smoothed_rtt);
            counts.smoothed_rtt_s = counts.smoothed_rtt_s.or(rtt.map(|rtt| rtt.ps() as f64 / 1e12));
        }
        counts
    }
}

impl CellNetwork {
    /// Returns the number of cells that a generator put on the line of its NIC: in the measurement window, and since the beginning.
    fn generated(&self, flow: usize, shared: &SharedState) -> (u64, u64) {
        let Some(source) = self.sources.iter().find(|source| source.flow == flow) else {
            return (0, 0);
        };
        let window = shared.window;
        // Cells that the queue has drawn need not be drawn again.
        let (port, channel) = source.feeds;
        let all = |generator: &Generator| generator.all_made(window.end).filter(|_| window.from.is_none());
        if let Some(all) = shared.channels[port][channel].generator().and_then(all) {
            return (all, all);
        }
        let mut generator = source.generator.clone();
        let ever = window.with_warmup();
        let mut counts = (0, source.before);
        while let Some(cells) = generator.next_cells().filter(|cells| cells.base <= window.end) {
            counts.0 += cells.count_within(window, 0);
            counts.1 += cells.count_within(ever, 0);
        }
        counts
    }

    /// Returns the counts of a circuit direction on the line of a port.
    fn vc_count(&self, port: usize, counter: &VcCounters, shared: &SharedState) -> VcCount {
        let vc = &shared.vcs[counter.vc as usize];
        let mut count = VcCount {
            circuit: vc.circuit,
            forward: vc.forward,
            sent: counter.sent,
            clp: counter.sent_clp,
            efci: counter.sent_efci,
            last_sent: counter.last_sent,
            lost: counter.lost,
            policed: counter.policed,
        };
        // Cells of a generator whose line is bypassed are counted here.
        let passed = self.sources.iter().find_map(|source| {
            let (line, later) = source.bypassed?;
            (line == port && source.generator.vc() == counter.vc).then_some((source, later))
        });
        if let Some((source, later)) = passed {
            if let Some(line) = shared.line_of(source) {
                (count.sent, count.last_sent) = line.sent();
                count.clp = if source.generator.clp() { count.sent } else { 0 };
                return count;
            }
            let window = shared.window;
            let mut generator = source.generator.clone().shifted(later);
            while let Some(cells) = generator.next_cells() {
                let left = cells.count_within(window, 0);
                count.sent += left;
                count.clp += if cells.clp { left } else { 0 };
                let ever = cells.count_within(window.with_warmup(), 0);
                if ever > 0 {
                    count.last_sent = Some(cells.nth(ever - 1));
                }
            }
        }
        count
    }
}

/// Returns place and cause of a loss, and the transmitter if the place is one. The flow has this receiver.
pub(super) fn place_name(
    frames: &Frames,
    place: DropLocation,
    topology: &Topology,
    receiver: NodeId,
) -> (Located, &'static str, Option<(usize, usize)>) {
    let transmitter = |port: usize, cause| {
        let (link, end) = (port / 2, port % 2);
        let LinkEnds { name, ends, .. } = &topology.links[link];
        let [node, to] = [end, 1 - end].map(|end| topology.nodes[ends[end]].clone());
        (Located { node, link: Some(name.clone()), to: Some(to), card: None }, cause, Some((link, end)))
    };
    let inside = |node: NodeId, cause| {
        (Located { node: topology.nodes[node].clone(), link: None, to: None, card: None }, cause, None)
    };
    let host = |cause| inside(receiver, cause);
    match place {
        DropLocation::Port(port, loss) => transmitter(port, loss.text()),
        DropLocation::Policer(port) => transmitter(port, "policer"),
        DropLocation::Queue(port, cause) => transmitter(port, cause.text()),
        DropLocation::Line(port) => transmitter(port, "damaged on the line"),
        DropLocation::Down(port) => transmitter(port, "line down"),
        DropLocation::Inactive(port) => transmitter(port, "inactive member"),
        DropLocation::Ttl(node) => inside(node, "time to live"),
        DropLocation::TooBig(node) => inside(node, "too big"),
        DropLocation::NoReply(node) => inside(node, "no ARP reply"),
        DropLocation::HoldFull(node) => inside(node, "ARP hold full"),
        DropLocation::InputFull(engine) => {
            let mut place = inside(frames.engines[engine].node, "input queue full");
            place.0.card = frames.switching.card(engine).map(str::to_owned);
            place
        }
        DropLocation::NoMember(node) => inside(node, "no known member"),
        DropLocation::Reassembly(None) => host("reassembly"),
        DropLocation::Reassembly(Some(router)) => inside(router as usize, "reassembly"),
        DropLocation::Timeout(node) => inside(node, "reassembly timeout"),
        DropLocation::Memory(node) => inside(node, "reassembly memory"),
        DropLocation::OutOfSequence(node) => inside(node, "out of sequence"),
        DropLocation::TunnelDown(node) => inside(node, "tunnel down"),
        DropLocation::ReceiveBuffer => host("receive buffer"),
    }
}

/// Returns the results of a transfer: the payload in bytes, and the begin and end of the time in picoseconds.
fn transfer((received_bytes, times): (u64, Option<[u64; 2]>)) -> Transfer {
    let duration_s = times.map(|[begin, end]| (end - begin) as f64 / 1e12).filter(|time| *time > 0.0);
    let goodput_bit_per_s = duration_s.map(|time| received_bytes as f64 * 8.0 / time);
    Transfer { received_bytes, duration_s, goodput_bit_per_s }
}
