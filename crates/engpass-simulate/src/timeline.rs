//! Timelines: TCP windows, queues, losses, retransmissions and loads of engines, sampled during a run.

use engpass_frames::Frames;
use engpass_model::queue::{Backlog, Queue as Discipline};
use engpass_model::source::multicast::receiver_name;
use engpass_model::source::{SourceOutput, Traffic};
use engpass_model::switch::Switch;
use engpass_outcome::{DatagramLine, FlowLine, QueueLine, TcpLine, Timeline};
use engpass_testbed::topology::{NodeId, NodeKind};
use engpass_testbed::{Testbed, Topology};
use indexmap::IndexMap;

use super::engine_load::{busy_times, node_lines};
use super::host::Hosts;
use super::shared_state::SharedState;
use super::trace::{MOST_EVENTS, Trace, seconds};
use super::{Network, RunControl, SimError, SimOutcome};

/// Simulates one run and samples it at `samples` instants, evenly spaced from start to end. The run is the same as that of [`simulate`](super::simulate).
///
/// # Errors
/// Those of [`simulate`](super::simulate).
pub fn timeline(
    testbed: &Testbed,
    topology: &Topology,
    seed: u64,
    samples: usize,
    watch: &dyn RunControl,
) -> Result<Timeline, SimError> {
    watched(testbed, topology, seed, samples, watch).map(|(timeline, _)| timeline)
}

/// Like [`timeline`], and also returns the outcome of the run.
#[doc(hidden)]
pub fn watched(
    testbed: &Testbed,
    topology: &Topology,
    seed: u64,
    samples: usize,
    watch: &dyn RunControl,
) -> Result<(Timeline, SimOutcome), SimError> {
    watched_network(Network::new(testbed, topology, seed)?, testbed, topology, samples, watch)
}

/// Ports of the sampled queues, numbers of the sampled flows, and the timeline that is being filled.
type Watched = (Vec<usize>, Vec<usize>, Timeline);

/// Runs the network to its end and samples it at `samples` instants. Returns the timeline and the outcome.
#[doc(hidden)]
pub fn watched_network(
    mut network: Network,
    testbed: &Testbed,
    topology: &Topology,
    samples: usize,
    watch: &dyn RunControl,
) -> Result<(Timeline, SimOutcome), SimError> {
    let steps = samples.max(2) as u64 - 1;
    let end = u128::from(network.clock.end);
    let instants = (0..=steps).map(|step| (end * u128::from(step) / u128::from(steps)) as u64);
    let instants: Vec<u64> = instants.collect();
    let mut timeline = begin(&network, testbed, topology);
    let ports = network.hosts.nics.len();
    let trace = Trace::new(ports, testbed.traffic.len(), network.shared.flows.len(), &instants);
    network.shared.trace = Some(Box::new(trace));
    let mut busy = Vec::with_capacity(instants.len());
    for at in instants {
        network.run_to(at, watch)?;
        let Network { cells, shared, .. } = &mut network;
        let ports = timeline.0.iter();
        let queues: Vec<_> = ports.map(|port| cells.backlog_before_circuits(*port, at, shared)).collect();
        sample(&mut timeline, (at, &queues), &network.hosts, &network.frames, &mut network.shared);
        busy.push((at, busy_times(&network, testbed, at)));
    }
    network.finish();
    write_events(&mut timeline, &mut network.shared);
    let trace = network.shared.trace.as_ref().expect("a timeline records changes");
    let link = |link: usize| topology.links[link].name.clone();
    timeline.2.outages = times_down(&trace.changes, network.clock.end, link);
    let tunnel = |end| network.frames.keepalives.name_of_end(end, topology);
    timeline.2.tunnels_down = times_down(&trace.tunnel_changes, network.clock.end, tunnel);
    timeline.2.memberships = memberships(&network.shared, topology);
    timeline.2.nodes = node_lines(&network, testbed, &busy);
    let outcome = network.outcome(testbed, topology)?;
    Ok((timeline.2, outcome))
}

/// Returns the empty timeline of a network.
fn begin(network: &Network, testbed: &Testbed, topology: &Topology) -> Watched {
    let ports = network.hosts.nics.len();
    let trees = network.shared.trees.as_ref();
    let line = |traffic: &Traffic| match traffic.sends() {
        SourceOutput::Writes(_) => Some(FlowLine { tcp: Some(TcpLine::default()), ..FlowLine::default() }),
        SourceOutput::Cells(_) => None,
        _ => Some(FlowLine { datagrams: Some(DatagramLine::default()), ..FlowLine::default() }),
    };
    let flows = testbed.traffic.iter().enumerate();
    let flows = flows.filter_map(|(flow, (name, traffic))| Some((flow, (name.clone(), line(traffic)?))));
    let flows = flows.flat_map(|(flow, line)| {
        let name = |host: NodeId| receiver_name(&line.0, &topology.nodes[host]);
        let receivers: Vec<_> = receivers(&network.shared, topology, flow)
            .map(|(host, tally)| {
                let mut own = line.1.clone();
                if trees.is_some_and(|trees| trees.members.seen(tally).is_some()) {
                    own.datagrams = None;
                }
                (tally, (name(host), own))
            })
            .collect();
        std::iter::once((flow, line)).chain(receivers)
    });
    let (numbers, flows): (_, IndexMap<_, _>) = flows.unzip();
    let watched = |port: &usize| {
        let node = topology.links[port / 2].ends[port % 2];
        node >= topology.hosts && network.shared.ledger.carries(*port)
    };
    let ports: Vec<usize> = (0..ports).filter(watched).collect();
    let name = |port: usize| {
        let link = &topology.links[port / 2];
        let [from, to] = [port % 2, 1 - port % 2].map(|end| &topology.nodes[link.ends[end]]);
        (format!("{from} -> {to}"), &link.name)
    };
    let queues = ports.iter().map(|&port| {
        let (plain, link) = name(port);
        let parallel = ports.iter().filter(|&&other| name(other).0 == plain).count() > 1;
        let name = if parallel { format!("{plain} ({link})") } else { plain };
        let (unit, capacity) = capacity(testbed, topology, port);
        let line = QueueLine {
            time_s: Vec::new(),
            length: Vec::new(),
            unit: unit.to_owned(),
            capacity,
            drops: Vec::new(),
            truncated: false,
        };
        (name, line)
    });
    let queues = queues.collect();
    (
        ports,
        numbers,
        Timeline {
            duration_s: seconds(network.clock.end),
            flows,
            queues,
            nodes: IndexMap::new(),
            outages: IndexMap::new(),
            tunnels_down: IndexMap::new(),
            memberships: IndexMap::new(),
        },
    )
}

/// Takes the samples of the instant `at`. Everything at `at` must have happened. `before_circuits` has the queues in front of circuits, by sampled port.
fn sample(
    (ports, flows, timeline): &mut Watched,
    (at, before_circuits): (u64, &[Option<Backlog>]),
    hosts: &Hosts,
    frames: &Frames,
    shared: &mut SharedState,
) {
    for ((&port, packets), queue) in ports.iter().zip(before_circuits).zip(timeline.queues.values_mut()) {
        queue.time_s.push(seconds(at));
        if let (Some(packets), Some(trace)) = (packets, &mut shared.trace) {
            trace.set_queue_sample(port, queue.time_s.len() - 1, packets.bytes);
            continue;
        }
        // Cell ports take samples when they are advanced to the instant.
        if let (Some(line), Some(trace)) = (frames.port(port), &mut shared.trace) {
            trace.sample_queue_before(port, at + 1, line);
        }
    }
    for (&flow, line) in flows.iter().zip(timeline.flows.values_mut()) {
        line.time_s.push(seconds(at));
        let mut delivered = 0;
        if let Some(tcp) = &mut line.tcp {
            let (mut congestion, mut receive, mut flight) = (0, 0, 0);
            for endpoint in hosts.endpoints.iter().filter(|endpoint| endpoint.flow as usize == flow) {
                if endpoint.application.is_some() {
                    let now =
                        endpoint.connection.snapshot().expect("a writing endpoint has a full connection");
                    congestion += now.congestion_window;
                    receive += now.send_window;
                    flight += now.in_flight;
                } else {
                    delivered += endpoint.connection.stats().bytes_received;
                }
            }
            tcp.congestion_window_bytes.push(congestion);
            tcp.receive_window_bytes.push(receive);
            tcp.flight_bytes.push(flight);
        } else {
            let trees = shared.trees.as_ref();
            let receivers = trees.map_or(&[][..], |trees| trees.receivers(flow));
            let counters = if receivers.is_empty() { &[flow][..] } else { receivers };
            let least = counters.iter().map(|at| shared.flows[*at].ever_bytes()).min();
            delivered = least.expect("a flow has counters");
            if let (Some(line), Some(trace)) = (&mut line.datagrams, &shared.trace) {
                // Of a group, the receiver that misses most.
                let counts = counters.iter().map(|at| trace.receptions[*at]);
                let (received, newest) =
                    counts.max_by_key(|(received, newest)| newest - received).expect("a flow has counters");
                line.received.push(received);
                line.missing.push(newest - received);
            }
        }
        line.delivered_bytes.push(delivered);
    }
}

/// Writes the losses, queue lengths and events of connections that the trace has recorded.
fn write_events((ports, flows, timeline): &mut Watched, shared: &mut SharedState) {
    let Some(trace) = &mut shared.trace else { return };
    for (&port, queue) in ports.iter().zip(timeline.queues.values_mut()) {
        (queue.drops, queue.truncated) = (trace.drops[port].seconds(), trace.drops[port].truncated);
        queue.length = std::mem::take(&mut trace.lengths[port]);
    }
    for (&flow, line) in flows.iter().zip(timeline.flows.values_mut()) {
        let FlowLine { tcp: Some(tcp), truncated, .. } = line else { continue };
        let (again, timeouts) = (&mut trace.retransmissions[flow], &mut trace.timeouts[flow]);
        *truncated = again.truncated || timeouts.truncated;
        (tcp.retransmissions, tcp.timeouts) = (again.seconds(), timeouts.seconds());
    }
}

/// Returns the receivers of a multicast traffic, each as host and counter index; none for other traffic.
fn receivers<'t>(
    shared: &'t SharedState,
    topology: &'t Topology,
    flow: usize,
) -> impl Iterator<Item = (NodeId, usize)> + 't {
    let path = &topology.flows[flow];
    let tallies = shared.trees.as_ref().map_or(&[][..], |trees| trees.receivers(flow));
    path.leaves().map(|leaf| path.branches[leaf].to).zip(tallies.iter().copied())
}

/// Returns the intervals of membership, in seconds, of receivers that join or leave.
fn memberships(shared: &SharedState, topology: &Topology) -> IndexMap<String, Vec<[f64; 2]>> {
    let mut all = IndexMap::new();
    let Some(trees) = &shared.trees else { return all };
    for (flow, path) in topology.flows.iter().enumerate() {
        for (host, tally) in receivers(shared, topology, flow) {
            let Some((membership, _)) = trees.members.seen(tally) else { continue };
            let within = membership.within(0, shared.window.end).into_iter().take(MOST_EVENTS);
            let within = within.map(|(from, to)| [seconds(from), seconds(to)]).collect();
            all.insert(receiver_name(&path.name, &topology.nodes[host]), within);
        }
    }
    all
}

/// Returns the times in which links or tunnels were down, as begin and end in seconds, in the order in which they first went down. The run
/// ends at `end`.
fn times_down(
    changes: &[(u64, usize, bool)],
    end: u64,
    name: impl Fn(usize) -> String,
) -> IndexMap<String, Vec<[f64; 2]>> {
    let mut times: IndexMap<usize, (bool, Vec<[f64; 2]>)> = IndexMap::new();
    for &(at, index, down) in changes {
        let (is_down, all) = times.entry(index).or_default();
        if std::mem::replace(is_down, down) == down {
            continue;
        }
        if down {
            all.push([seconds(at), seconds(end)]);
        } else if let Some(last) = all.last_mut() {
            last[1] = seconds(at);
        }
    }
    times.retain(|_, (_, all)| !all.is_empty());
    times.values_mut().for_each(|(_, all)| all.truncate(MOST_EVENTS));
    times.into_iter().map(|(index, (_, all))| (name(index), all)).collect()
}

/// Returns the unit of a port's queue, and its capacity if that is bounded in this unit.
fn capacity(testbed: &Testbed, topology: &Topology, port: usize) -> (&'static str, Option<u64>) {
    let link = &topology.links[port / 2];
    if let NodeKind::Switch(switch) = topology.kind(link.ends[port % 2])
        && let Switch::Atm(switch) = &testbed.switches[switch]
    {
        return ("cells", Some(switch.output_buffer.0));
    }
    let bytes = match &link.queues[port % 2] {
        Some(Discipline::DropTail(queue)) => Some(queue.limit.bytes).filter(|bytes| *bytes < u64::MAX),
        _ => None,
    };
    ("bytes", bytes)
}
