//! From a testbed to a network at rest.

mod foresight;

use std::collections::VecDeque;

use engpass_model::circuit::Category;
use engpass_model::element::{Channel, Classes, Fifo, Generator, Reassembly, Rule, Shaper, VcId};
use engpass_model::host::ps;
use engpass_model::random::Stream;
use engpass_model::schedule::Schedule;
use engpass_model::shape::gcra::VirtualScheduling;
use engpass_model::shape::{AdaptiveRate, PolicingAction};
use engpass_model::source::{TcpStream, Traffic};
use engpass_model::switch::Switch;
use engpass_model::tcp::{Connection, Role, Stats, TcpParameters};
use engpass_model::time::{Pace, SECOND, Time};
use engpass_model::wire::Framing;
use engpass_model::wire::aal5::CELL_BITS;
use engpass_model::wire::ip::{Fragments, UDP_HEADER_BYTES};
use engpass_testbed::topology::{Hop, LinkEnds};
use engpass_testbed::{Testbed, Topology};

use super::adapt::Adapting;
use super::advance::{Port, Queue};
use super::event::{Event, Events};
use super::fabric::{Arena, Counter, Fabric, Onward, Tally, Vc, Window};
use super::frames::Frames;
use super::host::{Cpu, Process, Socket};
use super::ledger::{Ledger, Opening};
use super::nic::{Nic, Way};
use super::tcp::{Application, Endpoint};
use super::{Network, SWEEP, SimError};

/// A generator, kept to count at the end what it has sent.
pub(super) struct Source {
    pub(super) flow: usize,
    pub(super) generator: Generator,
    /// The NIC's line, and the time of a cell on it, where its cells are announced to the switch at once.
    pub(super) passed: Option<(usize, u64)>,
}

/// The network while it is put together.
struct Builder<'a> {
    testbed: &'a Testbed,
    topology: &'a Topology,
    seed: u64,
    window: Window,
    slots: Vec<Pace>,
    ports: Vec<Port>,
    vcs: Vec<Vc>,
    channels: Vec<Vec<Channel>>,
    /// Where each channel comes from: a port, or a generator or shaper.
    origins: Vec<Vec<Option<usize>>>,
    onward: Vec<Vec<Onward>>,
    sources: Vec<Source>,
    adapting: Vec<Adapting>,
}

impl Network {
    /// The network of this testbed at time zero, for one seed.
    pub fn new(testbed: &Testbed, topology: &Topology, seed: u64) -> Result<Self, SimError> {
        let end = testbed.run.duration.0;
        let from = testbed.run.warmup.map(|warmup| warmup.0).filter(|warmup| *warmup > 0);
        let mut builder = Builder {
            testbed,
            topology,
            seed,
            window: Window { from, end },
            slots: slots(topology),
            ports: Vec::new(),
            vcs: Vec::new(),
            channels: Vec::new(),
            origins: Vec::new(),
            onward: Vec::new(),
            sources: Vec::new(),
            adapting: Vec::new(),
        };
        builder.add_ports();
        builder.add_vcs();
        builder.add_line_inputs();
        builder.add_switch_inputs();
        builder.look_ahead();
        builder.finish()
    }
}

/// The time of a cell on every link; on one that carries frames nobody asks for it.
fn slots(topology: &Topology) -> Vec<Pace> {
    let slot = |link: &LinkEnds| match link.framing {
        Framing::Cells { slot } => slot,
        Framing::Ethernet | Framing::Packets => Pace::of_bits(CELL_BITS, link.line_rate),
    };
    topology.links.iter().map(slot).collect()
}

/// What a flow has come to before anything has happened.
fn tally(traffic: &Traffic) -> Tally {
    Tally { varied: matches!(traffic, Traffic::Poisson(_)), ..Tally::default() }
}

impl Builder<'_> {
    fn port_of(&self, hop: &Hop) -> usize {
        hop.link * 2 + usize::from(self.topology.links[hop.link].ends[0] != hop.from)
    }

    fn node_of(&self, port: usize) -> usize {
        self.topology.links[port / 2].ends[port % 2]
    }

    fn delay_of(&self, port: usize) -> u64 {
        self.topology.links[port / 2].delay.ps()
    }

    fn add_ports(&mut self) {
        for port in 0..self.topology.links.len() * 2 {
            let slot = self.slots[port / 2];
            self.ports.push(Port {
                queue: self.queue(self.node_of(port), slot),
                rules: vec![Rule::default(); self.topology.circuits.len() * 2],
                upstream: Vec::new(),
                foreseeable: false,
                sole: None,
                overtaking: None,
                horizon: None,
                slot_at_least: slot.at_least(),
            });
            self.channels.push(Vec::new());
            self.origins.push(Vec::new());
            self.onward.push(Vec::new());
        }
    }

    fn queue(&self, node: usize, slot: Pace) -> Queue {
        let Some(switch) = node.checked_sub(self.topology.hosts) else {
            return Queue::Fifo(Fifo::unbounded(slot));
        };
        // The other kinds join no ATM links.
        let Some((_, Switch::Atm(switch))) = self.testbed.switches.get_index(switch) else {
            return Queue::Fifo(Fifo::unbounded(slot));
        };
        match &switch.schedule {
            Schedule::Fifo(_) => Queue::Fifo(Fifo::new(slot, switch.gate())),
            Schedule::Priority(_) => Queue::Classes(Classes::new(slot, vec![switch.gate(), switch.gate()])),
        }
    }

    fn add_vcs(&mut self) {
        for (index, circuit) in self.topology.circuits.iter().enumerate() {
            for forward in [true, false] {
                let mut hops: Vec<usize> = circuit.route.iter().map(|hop| self.port_of(hop)).collect();
                if !forward {
                    // The other end of every link, the other way round.
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
                let slot = self.slots[hops[0] / 2];
                let pace = circuit.shaping.filter(|_| forward).unwrap_or(slot);
                let mut delays: Vec<u64> = hops.iter().map(|port| self.delay_of(*port)).collect();
                let mut transit: Vec<u64> = hops
                    .iter()
                    .zip(&delays)
                    .map(|(port, delay)| self.ports[*port].slot_at_least + delay)
                    .collect();
                for sums in [&mut delays, &mut transit] {
                    for hop in (1..sums.len()).rev() {
                        sums[hop - 1] += sums[hop];
                    }
                }
                let config = self.testbed.circuits.get_index(index).filter(|_| forward);
                let adapting = config.and_then(|(_, config)| config.adaptive.as_ref()).map(|adaptive| {
                    let slots = hops.iter().map(|port| self.slots[port / 2].after(1));
                    self.adapting.push(Adapting {
                        vc,
                        nic: hops[0],
                        rate: AdaptiveRate::new(adaptive.clone(), slot),
                        back: delays[0] + slots.sum::<u64>(),
                        waiting: VecDeque::new(),
                    });
                    self.adapting.len() - 1
                });
                self.vcs.push(Vc {
                    adapting,
                    circuit: index,
                    forward,
                    transit,
                    delays,
                    shaper: Shaper::new(vc, pace).with_clp(circuit.clp),
                    entry: 0,
                    reassembly: Reassembly::default(),
                    hops,
                });
            }
        }
    }

    /// The circuit direction that a flow takes, if it takes one.
    fn vc_of(&self, flow: usize) -> Option<VcId> {
        let path = &self.topology.flows[flow];
        path.circuit.map(|circuit| (circuit * 2 + usize::from(!path.forward)) as VcId)
    }

    /// How packets of a flow leave their host, or how those the other way leave theirs: the NIC, and the way.
    fn way_of(&self, flow: usize, back: bool) -> (usize, Way) {
        let path = &self.topology.flows[flow];
        if let Some(vc) = self.vc_of(flow) {
            let vc = vc ^ VcId::from(back);
            let encapsulation = self.topology.circuits[vc as usize / 2].encapsulation;
            return (self.vcs[vc as usize].hops[0], Way::Circuit { vc, encapsulation });
        }
        let hop = if back { path.route[path.route.len() - 1].back() } else { path.route[0] };
        (self.port_of(&hop), Way::Frames { route: (flow * 2 + usize::from(back)) as u32 })
    }

    /// The flows whose cells pass a direction of a circuit; a TCP flow has them both ways.
    fn flows_on(&self, vc: VcId) -> impl Iterator<Item = (usize, &Traffic)> {
        self.testbed.traffic.values().enumerate().filter(move |(flow, traffic)| {
            let both = matches!(traffic, Traffic::TcpStream(_));
            self.vc_of(*flow).is_some_and(|own| own == vc || both && own == vc ^ 1)
        })
    }

    /// What reaches the lines of NICs: for each circuit direction the shaper, then the generators.
    fn add_line_inputs(&mut self) {
        for vc in 0..self.vcs.len() as VcId {
            let port = self.vcs[vc as usize].hops[0];
            if self.flows_on(vc).any(|(_, traffic)| traffic.cells().is_none()) {
                self.vcs[vc as usize].entry = self.channels[port].len();
                let pace = self.vcs[vc as usize].shaper.pace();
                self.channels[port].push(Channel::new(pace));
                self.origins[port].push(None);
            }
            let generators: Vec<_> =
                self.flows_on(vc).filter_map(|(flow, traffic)| self.generator(flow, vc, traffic)).collect();
            for source in generators {
                self.channels[port].push(Channel::generated(source.generator.clone()));
                self.origins[port].push(None);
                self.sources.push(source);
            }
        }
    }

    fn generator(&self, flow: usize, vc: VcId, traffic: &Traffic) -> Option<Source> {
        let pace = self.topology.flows[flow].cells?;
        let name = format!("traffic.{}", self.topology.flows[flow].name);
        let mut random = Stream::new(self.seed, &name);
        let last = |stop: Option<u64>| {
            stop.map_or(Some(self.window.end), |stop| Some(stop.checked_sub(1)?.min(self.window.end)))
        };
        let generator = match traffic {
            Traffic::Cbr(config) => {
                let first = ps(config.start) + random.below(pace.after(1));
                Generator::constant((flow, vc), pace, first, last(config.stop.map(|stop| stop.0))?)
            }
            Traffic::OnOff(config) => {
                let lengths = (config.on.0, config.off.0);
                let first = ps(config.start) + random.below(lengths.0 + lengths.1);
                let last = last(config.stop.map(|stop| stop.0))?;
                Generator::bursts((flow, vc), pace, (first, last), lengths, config.lengths, random)
            }
            _ => return None,
        };
        let generator = generator.with_clp(self.topology.circuits[vc as usize / 2].clp);
        Some(Source { flow, generator, passed: None })
    }

    /// What reaches the ports of switches, from the lines before them in the order of the links.
    fn add_switch_inputs(&mut self) {
        for vc in 0..self.vcs.len() as VcId {
            if self.flows_on(vc).next().is_none() {
                continue;
            }
            let hops = self.vcs[vc as usize].hops.clone();
            for (hop, &port) in hops.iter().enumerate() {
                let next = hops.get(hop + 1).copied();
                let counter = self.onward[port].len();
                let delay = self.delay_of(port);
                self.onward[port].push(Onward {
                    vc,
                    delay,
                    channel: next.map(|next| (next, 0)),
                    counter,
                    hop: hop as u16,
                });
                if let Some(next) = next
                    && !self.origins[next].contains(&Some(port))
                {
                    let place = self.origins[next].iter().filter(|origin| **origin < Some(port)).count();
                    self.origins[next].insert(place, Some(port));
                }
            }
        }
        for port in 0..self.ports.len() {
            if self.node_of(port) < self.topology.hosts {
                continue;
            }
            for index in 0..self.origins[port].len() {
                let before = self.origins[port][index].expect("only lines lead to a switch");
                let channel = self.pass_line(before, port).unwrap_or_else(|| {
                    let delay = self.delay_of(before);
                    self.ports[port].upstream.push((before, delay));
                    Channel::new(self.slots[before / 2])
                });
                self.channels[port].push(channel);
            }
        }
        for port in 0..self.ports.len() {
            for index in 0..self.onward[port].len() {
                if let Some((next, _)) = self.onward[port][index].channel {
                    let place = self.origins[next].iter().position(|origin| *origin == Some(port));
                    self.onward[port][index].channel = Some((next, place.expect("every hop has a channel")));
                }
            }
        }
    }

    /// A generator alone on its line, with room between its cells: the line only makes them later, so the switch may
    /// draw from the generator itself.
    fn pass_line(&mut self, line: usize, next: usize) -> Option<Channel> {
        let [channel] = self.channels[line].as_slice() else { return None };
        let slot = self.slots[line / 2].after(1);
        if !channel.is_even() || channel.generated_pace() <= slot || self.node_of(line) >= self.topology.hosts
        {
            return None;
        }
        let delay = self.delay_of(line);
        let vcs = &self.vcs;
        let hops = |source: &Source| &vcs[source.generator.vc() as usize].hops;
        let source = self
            .sources
            .iter_mut()
            .find(|source| hops(source)[0] == line && hops(source).get(1) == Some(&next))?;
        source.passed = Some((line, slot));
        let channel = Channel::generated(source.generator.clone().shifted(slot + delay));
        self.channels[line].clear();
        self.origins[line].clear();
        Some(channel)
    }

    fn finish(self) -> Result<Network, SimError> {
        let mut events = Events::default();
        let mut processes = Vec::new();
        let mut endpoints = Vec::new();
        let mut sockets = Vec::new();
        for (flow, traffic) in self.testbed.traffic.values().enumerate() {
            match traffic {
                Traffic::UdpStream(_) | Traffic::Poisson(_) => {
                    sockets.push(self.socket(flow));
                    if let Some(mut process) = self.process(flow, traffic) {
                        let first = process.next_message();
                        events.push(first, flow, Event::Ready(processes.len() as u32));
                        processes.push(process);
                    }
                }
                Traffic::TcpStream(config) => {
                    sockets.push(Socket::default());
                    for stream in 0..config.streams {
                        events.push(ps(config.start), flow, Event::Wake(endpoints.len() as u32));
                        endpoints.push(self.endpoint(flow, Some((config, stream))));
                        endpoints.push(self.endpoint(flow, None));
                    }
                }
                Traffic::Cbr(_) | Traffic::OnOff(_) => sockets.push(Socket::default()),
            }
        }
        let nic = |port: usize| {
            let host = self.testbed.hosts.get_index(self.node_of(port)).map(|(_, host)| host);
            Nic::new(host.map_or(0, |host| host.nic_buffer.bytes()))
        };
        let counters = self
            .onward
            .iter()
            .map(|list| list.iter().map(|onward| Counter { vc: onward.vc, ..Counter::default() }).collect())
            .collect();
        let frames = Frames::new(self.testbed, self.topology, self.seed)?;
        let ledger = Ledger::open(&Opening {
            testbed: self.testbed,
            topology: self.topology,
            window: self.window,
            vcs: &self.vcs,
            routes: &frames.routes,
            processes: &processes,
            endpoints: &endpoints,
        });
        Ok(Network {
            now: 0,
            end: self.window.end,
            next_sweep: SWEEP,
            events,
            nics: (0..self.ports.len()).map(nic).collect(),
            cpus: (0..self.topology.hosts).map(|_| Cpu::default()).collect(),
            processes,
            endpoints,
            sockets,
            sources: self.sources,
            adapting: self.adapting,
            names: self.topology.flows.iter().map(|flow| flow.name.clone()).collect(),
            ports: self.ports,
            fabric: Fabric {
                window: self.window,
                channels: self.channels,
                vcs: self.vcs,
                frames: Arena::default(),
                datagrams: Arena::default(),
                segments: Vec::new(),
                onward: self.onward,
                counters,
                flows: self.testbed.traffic.values().map(tally).collect(),
                left_nic: Vec::new(),
                ledger,
                trace: None,
            },
            frames,
            handled: 0,
        })
    }

    /// The process that sends the datagrams of a flow, unless it sends none.
    fn process(&self, flow: usize, traffic: &Traffic) -> Option<Process> {
        let (message, rate) = traffic.datagrams()?;
        let (start, stop) = traffic.window();
        let path = &self.topology.flows[flow];
        let (nic, way) = self.way_of(flow, false);
        let host = &self.testbed.hosts[path.from];
        if rate.is_some_and(|rate| rate.0 == 0) {
            return None;
        }
        let name = format!("traffic.{}", path.name);
        let arrivals = match traffic {
            Traffic::Poisson(config) => {
                Some(config.arrivals(Stream::new(self.seed, &format!("{name}.arrivals"))))
            }
            _ => None,
        };
        Some(Process {
            flow,
            host: path.from,
            nic,
            way,
            message,
            mtu: path.mtu,
            fragments: Fragments::of(message + UDP_HEADER_BYTES, path.mtu),
            arrivals,
            due: ps(start),
            pace: rate.map(|rate| Pace::of_bits(8, rate.0)),
            start: ps(start),
            stop: stop.map_or(u64::MAX, |stop| stop.0),
            cost: host.cost.clone(),
            pauses: host.pauses.clone(),
            random: Stream::new(self.seed, &name),
            messages: 0,
            fragment: 0,
            datagram: None,
            pausing: false,
        })
    }

    /// One end of a connection of a flow: the one that writes, with its number, or the one that reads.
    fn endpoint(&self, flow: usize, writes: Option<(&TcpStream, u32)>) -> Endpoint {
        let path = &self.topology.flows[flow];
        let (nic, way) = self.way_of(flow, writes.is_none());
        let (at, role) = if writes.is_some() { (path.from, Role::Active) } else { (path.to, Role::Passive) };
        let host = &self.testbed.hosts[at];
        Endpoint {
            flow,
            host: at,
            nic,
            way,
            connection: Connection::new(&self.tcp_of(at, path.path_mtu), role),
            cost: if writes.is_some() { host.cost.clone() } else { host.receive_cost.clone() },
            timer: u64::MAX,
            segment: None,
            datagram: None,
            busy: false,
            before: Stats::default(),
            application: writes.map(|(config, stream)| Application {
                message: config.message.bytes(),
                start: ps(config.start),
                stop: config.stop.map_or(u64::MAX, |stop| stop.0),
                pauses: host.pauses.clone(),
                random: Stream::new(
                    self.seed,
                    &match stream {
                        0 => format!("traffic.{}", path.name),
                        other => format!("traffic.{}.{other}", path.name),
                    },
                ),
                left: 0,
                copying: 0,
                open: false,
                connected: false,
                resume: None,
            }),
        }
    }

    /// The parameters of a host's TCP. Heartbeats of different hosts are not in step.
    fn tcp_of(&self, host: usize, mtu: u64) -> TcpParameters {
        let name = format!("host.{}.tcp", self.topology.nodes[host]);
        let phase = Stream::new(self.seed, &name).below(SECOND);
        TcpParameters { heartbeat_phase: Time(phase), ..self.testbed.hosts[host].tcp.resolve(mtu) }
    }

    fn socket(&self, flow: usize) -> Socket {
        let to = self.topology.flows[flow].to;
        let host = &self.testbed.hosts[to];
        Socket { host: to, cost: host.receive_cost.clone(), capacity: host.receive_buffer.bytes(), used: 0 }
    }
}
