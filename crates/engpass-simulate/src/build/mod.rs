//! Builds a network from a testbed. Ports and circuits are here, the inputs of ports in [`inputs`], hosts in [`hosts`], the flow directions of the ledger in [`flow_directions`].

mod flow_directions;
mod hosts;
mod inputs;

use std::collections::{BTreeMap, VecDeque};

use engpass_cells::{CellAdmission, Channel, Fifo, Reassembly, Shaper, StrictPriority, VcId, VcTreatment};
use engpass_frames::{CircuitQueue, DecisionMode, Frames, LookaheadRule, NextChange};
use engpass_model::circuit::Category;
use engpass_model::forward::Headers;
use engpass_model::host::ps;
use engpass_model::random::{Label, Stream};
use engpass_model::schedule::Schedule;
use engpass_model::shape::gcra::VirtualScheduling;
use engpass_model::shape::{AdaptiveRate, PolicingAction};
use engpass_model::source::SourceOutput;
use engpass_model::switch::{AtmSwitch, Switch};
use engpass_model::tcp::Shared;
use engpass_model::time::{Pace, SECOND};
use engpass_model::window::Window;
use engpass_model::wire::Framing;
use engpass_model::wire::aal5::CELL_BITS;
use engpass_testbed::topology::{Line, NodeKind, PathSegment};
use engpass_testbed::{Testbed, Topology, changes_by_event, heads, icmp_heads};

use crate::adaptive_shaper::AdaptiveShaper;
use crate::cell_ports::{CellNetwork, PduBuffer, Port, Queue};
use crate::clock::Clock;
use crate::endpoint::{Endpoint, SegmentCost};
use crate::event_queue::{Event, EventQueue};
use crate::flow_counters::{FlowCounters, VcCounters};
use crate::frames::{begin_events, begin_memberships};
use crate::host::{Cpu, Hosts, Socket, UdpApplication};
use crate::injection::{DeliveryReports, InjectedSenders, PendingCopies, Sender};
use crate::nic::Nic;
use crate::packet_store::PacketStore;
use crate::pull::{Ring, Worklist};
use crate::queueing::IdleDelays;
use crate::ready_packet::{EgressPath, ONWARD};
use crate::shared_state::{NextHop, SharedState, Vc};
use crate::slab::Slab;
use crate::source::Source;
use crate::trees::Trees;
use crate::{Network, SimError};

/// A network under construction.
struct Builder<'a> {
    testbed: &'a Testbed,
    topology: &'a Topology,
    seed: u64,
    window: Window,
    /// True with packet injection: flows of datagrams then have an injected sender instead of a process.
    outside: bool,
    slots: Vec<Pace>,
    ports: Vec<Port>,
    rings: Vec<Ring>,
    vcs: Vec<Vc>,
    channels: Vec<Vec<Channel>>,
    /// By port, the source of each channel: the port before it; `None` for a generator or shaper.
    origins: Vec<Vec<Option<usize>>>,
    next_hops: Vec<Vec<NextHop>>,
    may_coalesce: Vec<bool>,
    frames: Frames,
    sources: Vec<Source>,
    adaptive_shapers: Vec<AdaptiveShaper>,
    /// Distinct sets of TCP parameters, which connections share.
    tcp: Vec<Shared>,
    /// Distinct CPU costs of segments, which endpoints share.
    costs: Vec<SegmentCost>,
}

/// Builds the network at time zero. With `outside`, its datagrams are injected; otherwise processes send them.
pub(crate) fn build(
    testbed: &Testbed,
    topology: &Topology,
    seed: u64,
    window: Window,
    (outside, asking, disabled_rule): (bool, DecisionMode, Option<LookaheadRule>),
) -> Result<Network, SimError> {
    let mut builder = Builder {
        testbed,
        topology,
        seed,
        window,
        outside,
        slots: slots(topology),
        ports: Vec::new(),
        rings: Vec::new(),
        vcs: Vec::new(),
        channels: Vec::new(),
        origins: Vec::new(),
        next_hops: Vec::new(),
        may_coalesce: Vec::new(),
        frames: Frames::new(testbed, topology, seed, window, (asking, disabled_rule))?,
        sources: Vec::new(),
        adaptive_shapers: Vec::new(),
        tcp: Vec::new(),
        costs: Vec::new(),
    };
    builder.add_ports();
    builder.add_vcs();
    builder.add_line_inputs();
    builder.add_switch_inputs();
    builder.find_foreseeable_ports();
    builder.find_rings();
    builder.finish()
}

/// Returns, for each process and then each endpoint, its rank in the order of flows.
fn rank_senders(processes: &[UdpApplication], endpoints: &[Endpoint]) -> Vec<u32> {
    let flows = processes.iter().map(|process| process.flow);
    let flows: Vec<usize> = flows.chain(endpoints.iter().map(|endpoint| endpoint.flow as usize)).collect();
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|sender| flows[*sender]);
    let mut ranks = vec![0; flows.len()];
    order.into_iter().enumerate().for_each(|(rank, sender)| ranks[sender] = rank as u32);
    ranks
}

/// Returns the measurement window of a run.
pub(crate) fn window_of(testbed: &Testbed) -> Window {
    let from = testbed.run.warmup.map(|warmup| warmup.0).filter(|warmup| *warmup > 0);
    Window { from, end: testbed.run.duration.0 }
}

/// Returns the transmission time of a cell for every port's line; unused if the line carries frames.
fn slots(topology: &Topology) -> Vec<Pace> {
    let slot = |line: &Line| match line.framing {
        Framing::Cells { slot } => slot,
        Framing::Ethernet | Framing::Packets => Pace::of_bits(CELL_BITS, line.rate),
    };
    topology.links.iter().flat_map(|link| &link.lines).map(slot).collect()
}

impl Builder<'_> {
    /// Returns true if the port belongs to a switch.
    fn is_switch(&self, port: usize) -> bool {
        matches!(self.topology.kind(self.node_of(port)), NodeKind::Switch(_))
    }

    fn node_of(&self, port: usize) -> usize {
        self.topology.links[port / 2].ends[port % 2]
    }

    fn delay_of(&self, port: usize) -> u64 {
        self.topology.links[port / 2].delay.ps()
    }

    /// Adds the cell ports, if there are any; frame ports are in [`Frames`].
    fn add_ports(&mut self) {
        let links = &self.topology.links;
        let carry_cells = links.iter().any(|link| link.medium.is_atm());
        let count = if carry_cells { links.len() * 2 } else { 0 };
        self.ports.reserve_exact(count);
        for port in 0..count {
            let slot = self.slots[port];
            self.ports.push(Port {
                queue: self.queue(port, slot),
                rules: vec![VcTreatment::default(); self.topology.circuits.len() * 2],
                upstream: Vec::new(),
                ring: None,
                pulled: 0,
                foreseeable: false,
                sole: None,
                periodic_channel: None,
                horizon: None,
                slot,
                slot_at_least: slot.at_least(),
                lookahead: slot.at_least() + self.delay_of(port),
                buffer: (self.node_of(port) < self.topology.hosts).then(PduBuffer::default),
            });
            self.channels.push(Vec::new());
            self.origins.push(Vec::new());
            self.next_hops.push(Vec::new());
            self.may_coalesce.push(true);
        }
    }

    fn queue(&self, port: usize, slot: Pace) -> Queue {
        let Some(switch) = self.node_of(port).checked_sub(self.topology.hosts) else {
            return Queue::Fifo(Fifo::unbounded(slot));
        };
        // Other kinds of nodes have no ATM links.
        let Some((_, Switch::Atm(switch))) = self.testbed.switches.get_index(switch) else {
            return Queue::Fifo(Fifo::unbounded(slot));
        };
        match &switch.schedule {
            Schedule::Fifo(_) => Queue::Fifo(Fifo::new(slot, self.cell_admission(port, switch, 0))),
            Schedule::Priority(_) => {
                let admissions = [0, 1].map(|class| self.cell_admission(port, switch, class));
                Queue::Classes(StrictPriority::new(slot, admissions.into()))
            }
        }
    }

    /// Returns the admission in front of the queue of a service class, at a port of this switch.
    fn cell_admission(&self, port: usize, switch: &AtmSwitch, class: usize) -> CellAdmission {
        let (link, node) = (&self.topology.links[port / 2].name, &self.topology.nodes[self.node_of(port)]);
        CellAdmission::of_port(switch, Stream::new(self.seed, Label::Discard(link, node, class)))
    }

    fn add_vcs(&mut self) {
        for (index, circuit) in self.topology.circuits.iter().enumerate() {
            for forward in [true, false] {
                let mut hops: Vec<usize> =
                    circuit.route.iter().map(|hop| self.topology.port_of(hop)).collect();
                if !forward {
                    // The opposite directions of the links, in reverse order.
                    hops = hops.iter().rev().map(|port| port ^ 1).collect();
                }
                let vc = self.vcs.len() as VcId;
                let class = usize::from(circuit.category == Category::Ubr);
                for &port in &hops {
                    self.ports[port].rules[vc as usize].class = class;
                }
                if let (true, Some((pace, tolerance, action)), Some(&port)) =
                    (forward, circuit.policing, hops.get(1))
                {
                    let rule = &mut self.ports[port].rules[vc as usize];
                    rule.policer = Some(VirtualScheduling::new(pace, tolerance));
                    rule.tags = action == PolicingAction::Tag;
                }
                let slot = self.slots[hops[0]];
                let pace = circuit.shaping.filter(|_| forward).unwrap_or(slot);
                let mut delays: Vec<u64> = hops.iter().map(|port| self.delay_of(*port)).collect();
                let mut transit: Vec<u64> = hops.iter().map(|port| self.ports[*port].lookahead).collect();
                for sums in [&mut delays, &mut transit] {
                    for hop in (1..sums.len()).rev() {
                        sums[hop - 1] += sums[hop];
                    }
                }
                let config = self.testbed.circuits.get_index(index).filter(|_| forward);
                let adaptive = config.and_then(|(_, config)| config.adaptive.as_ref());
                let adaptive_shaper = adaptive.map(|adaptive| {
                    // Feedback returns against the direction of the cells: over the opposite port of each link.
                    let slots = hops.iter().map(|port| self.slots[port ^ 1].after(1));
                    self.adaptive_shapers.push(AdaptiveShaper {
                        vc,
                        nic: hops[0],
                        rate: AdaptiveRate::new(adaptive.clone(), slot),
                        back: delays[0] + slots.sum::<u64>(),
                        waiting: VecDeque::new(),
                    });
                    self.adaptive_shapers.len() - 1
                });
                let to = self.topology.links[hops[hops.len() - 1] / 2].ends[1 - hops[hops.len() - 1] % 2];
                self.vcs.push(Vc {
                    adaptive_shaper,
                    router: match self.topology.kind(to) {
                        NodeKind::Router(_) => to as u32,
                        _ => Vc::NO_ROUTER,
                    },
                    circuit: index,
                    forward,
                    transit,
                    delays,
                    shaper: Shaper::new(vc, pace).with_clp(circuit.clp),
                    pace,
                    entry: 0,
                    reassembly: Reassembly::default(),
                    hops,
                });
            }
        }
    }

    /// Returns true if the shaper of this circuit direction keeps its rate whatever the line does: the shapers of all circuits that begin on the line together
    /// leave a part of it free. An adaptive shaper follows the line.
    fn is_paced(&self, vc: VcId) -> bool {
        let port = self.vcs[vc as usize].hops[0];
        let shaping = |vc: &Vc| {
            let shaping = self.topology.circuits[vc.circuit].shaping;
            shaping.filter(|_| vc.forward && vc.adaptive_shaper.is_none() && vc.hops[0] == port)
        };
        let shaped = self.vcs.iter().filter_map(shaping).map(|pace| pace.units_within(SECOND)).sum::<u64>();
        shaping(&self.vcs[vc as usize]).is_some() && shaped < self.slots[port].units_within(SECOND)
    }

    /// Returns the circuit direction of a flow's data if one circuit leads from host to host.
    fn vc_of(&self, flow: usize) -> Option<VcId> {
        let path = &self.topology.flows[flow];
        path.circuit.map(|circuit| (circuit * 2 + usize::from(!path.forward)) as VcId)
    }

    /// Returns all circuit directions that packets of a flow may use: data, and also acknowledgments (TCP) and ICMP messages.
    fn vcs_of(&self, flow: usize) -> impl Iterator<Item = VcId> {
        let path = &self.topology.flows[flow];
        let tcp = matches!(self.testbed.traffic[flow].sends(), SourceOutput::Writes(_));
        let fans = path.fans.iter().flat_map(|fans| fans.iter().enumerate());
        let chosen = fans.flat_map(|(back, fan)| fan.legs().map(move |leg| (leg, back == 1)));
        let copies = path.branches.iter().flat_map(|branch| branch.legs.iter().map(|leg| (*leg, false)));
        let own = path.legs.iter().flat_map(|leg| [(*leg, false), (leg.back(), true)]).chain(copies);
        let messages = path.icmp.iter().flat_map(|way| match &way.fan {
            Some(fan) => fan.legs().collect(),
            None => way.legs.clone(),
        });
        let messages = messages.map(|leg| (leg, false));
        let taken = own.chain(chosen).chain(messages).filter(move |(_, back)| tcp || !back);
        taken.flat_map(|(leg, _)| self.topology.legs_within(leg)).filter_map(|leg| match leg {
            PathSegment::Circuit { circuit, forward } => Some(2 * circuit as VcId + VcId::from(!forward)),
            PathSegment::Link(_) | PathSegment::Tunnel { .. } => None,
        })
    }

    /// Returns the NIC and path by which packets of a connection or flow leave their host; with `back`, packets of the reverse direction.
    fn way_of(&self, flow: usize, stream: u32, back: bool) -> (usize, EgressPath) {
        let path = &self.topology.flows[flow];
        if let Some(vc) = self.vc_of(flow) {
            let vc = vc ^ VcId::from(back);
            let encapsulation = self.topology.circuits[vc as usize / 2].encapsulation;
            return (self.vcs[vc as usize].hops[0], EgressPath::Circuit { vc, encapsulation });
        }
        let hop = if back { path.route[path.route.len() - 1].back() } else { path.route[0] };
        let route = self.frames.route_of(flow, stream, back);
        if self.frames.begins_with_bond(route) {
            // The port of any member will do: the actual member is chosen per packet.
            return (self.topology.port_of(&hop), EgressPath::Bond { route });
        }
        match self.frames.first_circuit_entry(route) {
            Some(entry) => {
                let way = EgressPath::Circuit { vc: ONWARD + route, encapsulation: entry.encapsulation };
                (self.topology.port_of(&hop), way)
            }
            None => (self.frames.first_port(route), EgressPath::Frames { route }),
        }
    }

    /// Returns the headers of packets, as policies see them, in the order of senders: processes, endpoints, routers' messages.
    fn heads(&self, frames: &Frames, processes: &[UdpApplication], endpoints: &[Endpoint]) -> Vec<Headers> {
        let own = |flow: usize, stream: usize| heads(self.testbed, self.topology, flow, stream);
        let mut all: Vec<Headers> = processes.iter().map(|process| own(process.flow, 0)).collect();
        for connection in endpoints.chunk_by(|one, other| one.flow == other.flow) {
            for place in 0..connection.len() {
                let heads = own(connection[0].flow as usize, place / 2);
                all.push(if place % 2 == 0 { heads } else { heads.reversed() });
            }
        }
        all.extend(self.message_heads(frames));
        all
    }

    /// Returns the headers of routers' ICMP messages.
    fn message_heads(&self, frames: &Frames) -> impl Iterator<Item = Headers> {
        let to = |flow: u32| self.topology.flows[flow as usize].from;
        frames.icmp.ways.iter().map(move |way| icmp_heads(self.topology, way.router, to(way.flow)))
    }

    /// Returns the injected sender of a flow.
    fn sender(&self, flow: usize) -> Sender {
        let path = &self.topology.flows[flow];
        let (nic, way) = self.way_of(flow, 0, false);
        Sender { flow, host: path.from, nic, way, mtu: path.mtu, queued: 0 }
    }

    /// Enables lookahead to hosts: to a host that has one endpoint and nothing else, or that only counts datagrams, if this costs no CPU time.
    fn enable_lookahead_to_hosts(
        &self,
        frames: &mut Frames,
        endpoints: &mut [Endpoint],
        sockets: &[Option<Box<Socket>>],
    ) {
        let mut users = vec![0; self.topology.hosts];
        for (path, traffic) in self.topology.flows.iter().zip(self.testbed.traffic.values()) {
            let streams = traffic.streams();
            let receivers = path.leaves().map(|leaf| path.branches[leaf].to).filter(|host| *host != path.to);
            for host in [path.from, path.to].into_iter().chain(receivers) {
                users[host] += streams;
            }
        }
        let mut free = vec![0; self.topology.hosts];
        for endpoint in endpoints.iter().filter(|endpoint| endpoint.is_zero_cost()) {
            free[self.node_of(endpoint.nic as usize)] += 1;
        }
        let routes: Vec<u32> = endpoints.iter().map(Endpoint::route).collect();
        for (index, endpoint) in endpoints.iter_mut().enumerate() {
            let host = self.node_of(endpoint.nic as usize);
            endpoint.is_host_zero_cost = free[host] == users[host];
            // Packets that an endpoint sends ahead of virtual time must not reach a line or a bond that an event may change.
            let (bond, nic) = (endpoint.egress_path().bond(), endpoint.nic as usize);
            let own = bond.map_or_else(|| vec![nic], |route| frames.member_ports(route));
            let stays = own.into_iter().all(|port| {
                let line = frames.port(port);
                line.is_some_and(|line| frames.rule_holds(LookaheadRule::OwnLine, !line.may_change()))
            });
            // ICMP messages of routers go to the writing endpoint.
            let silent = index % 2 == 1 || self.topology.flows[endpoint.flow as usize].icmp.is_empty();
            let alone = frames.rule_holds(LookaheadRule::OneConnection, users[host] == 1)
                && frames.rule_holds(LookaheadRule::NoMessages, silent);
            let is_asked = frames.arp.hosts().any(|asked| asked == host) || frames.igmp.is_sender(host);
            let asked = frames.rule_holds(LookaheadRule::NoRequests, !is_asked);
            if endpoint.is_host_zero_cost && stays && alone && asked {
                // The packets that arrive here are those of the other endpoint.
                frames.enable_lookahead_to_host(routes[index ^ 1]);
            }
        }
        let mut counts = vec![true; self.topology.hosts];
        for (flow, path) in self.topology.flows.iter().enumerate() {
            let socket = sockets.get(flow).and_then(Option::as_ref);
            counts[path.to] &= socket.is_some_and(|socket| socket.is_zero_cost);
            for leaf in path.leaves() {
                counts[path.branches[leaf].to] = false;
            }
        }
        for endpoint in endpoints {
            counts[self.node_of(endpoint.nic as usize)] = false;
        }
        for (flow, path) in self.topology.flows.iter().enumerate() {
            if counts[path.to] && path.circuit.is_none() {
                frames.enable_lookahead_to_host(frames.route_of(flow, 0, false));
            }
        }
    }

    fn finish(mut self) -> Result<Network, SimError> {
        let mut events = EventQueue::default();
        let mut processes = Vec::new();
        let mut endpoints = Vec::new();
        let mut sockets = Vec::new();
        let mut senders = Vec::new();
        for (flow, traffic) in self.testbed.traffic.values().enumerate() {
            match traffic.sends() {
                SourceOutput::Datagrams { .. } if self.outside => senders.push(self.sender(flow)),
                SourceOutput::Datagrams { .. } => {
                    sockets.resize_with(flow, || None);
                    sockets.push(Some(Box::new(self.socket(flow, self.topology.flows[flow].to))));
                    if let Some(mut process) = self.process(flow, traffic) {
                        let first = process.next_message();
                        events.push(first, flow, Event::ProcessWake(processes.len() as u32));
                        processes.push(process);
                    }
                }
                SourceOutput::Writes(config) => {
                    for stream in 0..config.streams {
                        events.push(ps(config.start), flow, Event::EndpointWake(endpoints.len() as u32));
                        endpoints.push(self.endpoint(flow, stream, Some(config)));
                        endpoints.push(self.endpoint(flow, stream, None));
                    }
                }
                SourceOutput::OnRealHosts(_) => {
                    unreachable!("unsupported traffic is rejected before")
                }
                SourceOutput::Cells(_) => {}
            }
        }
        let mut flows = self.tallies(&mut sockets);
        let mut frames = std::mem::take(&mut self.frames);
        let control_counters = flows.len() as u32;
        if !frames.arp.is_idle() || !frames.igmp.is_idle() || !frames.keepalives.is_idle() {
            flows.push(FlowCounters::default());
        }
        let changes = changes_by_event(self.testbed, self.topology, self.seed);
        let nic = |port: usize| {
            let host = self.testbed.hosts.get_index(self.node_of(port)).map(|(_, host)| host);
            Nic::new(host.map_or(0, |host| host.nic_buffer.bytes()), self.node_of(port) as u32)
        };
        let counter = |next_hop: &NextHop| VcCounters { vc: next_hop.vc, ..VcCounters::default() };
        let counters = self.next_hops.iter().map(|list| list.iter().map(counter).collect()).collect();
        sockets.shrink_to_fit();
        processes.shrink_to_fit();
        endpoints.shrink_to_fit();
        if frames.choices.has_decisions() {
            frames.choices.heads = match self.outside {
                true => (0..self.topology.flows.len())
                    .map(|flow| heads(self.testbed, self.topology, flow, 0))
                    .chain(self.message_heads(&frames))
                    .collect(),
                false => self.heads(&frames, &processes, &endpoints),
            };
        }
        let [.., first_branch] = frames.control_directions(endpoints.len());
        let trees = (!frames.branches.is_empty())
            .then(|| Box::new(Trees::new(self.testbed, self.topology, &frames.branches, first_branch)));
        let ledger = self.build_ledger((&frames, control_counters), &processes, &endpoints, &senders);
        frames.update_posting(|port| ledger.needs_every_transmission(port));
        self.enable_lookahead_to_hosts(&mut frames, &mut endpoints, &sockets);
        let bonded = !self.topology.bonds.is_empty();
        frames.changes = changes.into_iter().map(NextChange::new).collect();
        let nics = (0..self.topology.links.len() * 2).map(nic).collect();
        let queue_of = |entry| CircuitQueue::new(entry, self.topology, self.seed, self.is_paced(entry.vc));
        let queues = frames.entries.iter().map(queue_of).collect();
        let mut network = Network {
            clock: Clock::new(self.window.end, events, !self.vcs.is_empty()),
            shared: SharedState {
                window: self.window,
                channels: self.channels,
                vcs: self.vcs,
                pdus: Slab::default(),
                datagrams: PacketStore::default(),
                losses: Vec::new(),
                next_hops: self.next_hops,
                may_coalesce: self.may_coalesce,
                counters,
                flows,
                control_counters,
                endpoints: endpoints.len(),
                processes: processes.len(),
                messages: BTreeMap::new(),
                first_fragment_ends: BTreeMap::new(),
                outer_snapshots: BTreeMap::new(),
                ledger,
                trace: None,
                reports: self.outside.then(|| Box::new(DeliveryReports::new(senders.len()))),
                copies: PendingCopies::default(),
                trees,
                idle: IdleDelays::default(),
                parts: Vec::new(),
            },
            hosts: Hosts {
                nics,
                cpus: (0..self.topology.hosts).map(|_| Cpu::default()).collect(),
                sender_ranks: if bonded { rank_senders(&processes, &endpoints) } else { Vec::new() },
                processes,
                endpoints,
                warmup_counts: Vec::new(),
                costs: self.costs,
                unprocessed_segments: Vec::new(),
                sockets,
                next_release: 0,
            },
            frames,
            cells: CellNetwork {
                ports: self.ports,
                rings: self.rings,
                worklist: Worklist::default(),
                departures: Vec::new(),
                sources: self.sources,
                shapers: self.adaptive_shapers,
                queues,
            },
            injected: InjectedSenders::new(senders, self.topology.links.len() * 2),
        };
        if !self.outside {
            begin_events(0, &mut network.frames, &network.shared, &mut network.clock);
            begin_memberships(&mut network.frames, &network.shared, &mut network.clock);
        }
        Ok(network)
    }
}
