//! Builds ports and routes of frame links from a topology.

use engpass_model::random::{Label, Stream};
use engpass_model::switch::Switch;
use engpass_model::window::Window;
use engpass_testbed::topology::{LinkEnds, NodeKind, PathSegment};
use engpass_testbed::{Testbed, Topology};

use super::arp::Resolution;
use super::bonds::Bonds;
use super::circuits::Entry;
use super::port::Draws;
use super::tunnels::Tunnels;
use super::{
    DecisionMode, FramePort, Frames, Lookahead, LookaheadRule, NONE, Route, Step, TooManyPaths, Verdict,
};

impl Frames {
    /// Builds ports, routers and routes of a testbed at time zero.
    ///
    /// # Errors
    /// [`TooManyPaths`]: a route with decision steps would have too many steps.
    pub fn new(
        testbed: &Testbed,
        topology: &Topology,
        seed: u64,
        window: Window,
        (decision_mode, disabled_rule): (DecisionMode, Option<LookaheadRule>),
    ) -> Result<Self, TooManyPaths> {
        let tunnels = Tunnels::new(topology);
        let bonds = Bonds::new(topology);
        let arp = Resolution::new(testbed, topology);
        let mut frames = Self { decision_mode, disabled_rule, tunnels, bonds, arp, ..Self::default() };
        let carries = |link: &&LinkEnds| !link.medium.is_atm();
        frames.ports.reserve_exact(2 * topology.links.iter().filter(carries).count());
        frames.port_indices.reserve_exact(2 * topology.links.len());
        frames.routes.reserve_exact(2 * topology.flows.len());
        if !topology.events.is_empty() {
            frames.link_ends = topology.links.iter().map(|link| link.ends).collect();
        }
        for link in &topology.links {
            for end in [0, 1] {
                if !carries(&link) {
                    frames.port_indices.push(NONE);
                    continue;
                }
                let (from, to) = (link.ends[end], link.ends[1 - end]);
                let number = frames.port_indices.len() as u32;
                let latency = match topology.kind(to) {
                    NodeKind::Switch(switch) => match &testbed.switches[switch] {
                        Switch::Ethernet(switch) => switch.latency.0,
                        Switch::Atm(_) => 0,
                    },
                    _ => 0,
                };
                // Parallel links between two nodes draw from different streams.
                let (name, node) = (link.name.clone(), topology.nodes[from].clone());
                let draws = Draws {
                    line: Stream::new(seed, Label::Line(&name, &node)),
                    queue: Box::new(move |outages| Stream::new(seed, Label::Queue(&name, &node, outages))),
                };
                let index = number as usize / 2;
                let changes = topology.events.iter().any(|event| event.link == index)
                    || topology.hears_active(to, index);
                let mut port = FramePort::new(link, (number, end), latency, changes, draws);
                if let Some(from) = window.from {
                    port.begin_window_after(from);
                }
                frames.port_indices.push(frames.ports.len() as u32);
                frames.ports.push(port);
            }
        }
        frames.add_engines(testbed, topology);
        for (flow, traffic) in topology.flows.iter().zip(testbed.traffic.values()) {
            let back: Vec<PathSegment> = flow.legs.iter().rev().map(|leg| leg.back()).collect();
            for legs in [&flow.legs, &back] {
                let first = frames.steps.len();
                let own = if flow.circuit.is_none() { legs.as_slice() } else { &[] };
                frames.add_run(topology, own, &first_within(topology, own), flow.group.is_none());
                let hops = frames.hops_from(first);
                let first = frames.share_steps(first);
                frames.routes.push(Route {
                    first: first as u32,
                    hops,
                    priority: traffic.priority(),
                    ttl: traffic.ttl().unwrap_or(u8::MAX),
                });
            }
        }
        frames.add_branches(topology);
        if topology.flows.iter().any(|flow| flow.discovers_mtu) {
            frames.icmp.keeps_whole = topology.flows.iter().map(|flow| flow.discovers_mtu).collect();
        }
        frames.add_arp_lines(testbed, topology);
        frames.add_igmp_ways(testbed, topology);
        frames.add_ways(testbed, topology)?;
        frames.sort_neighbours();
        frames.steps.shrink_to_fit();
        frames.enable_lookahead_to_ports();
        Ok(frames)
    }

    /// Returns the number of lines of a route without decision steps; 0 if it has circuits, tunnels or holds.
    pub(crate) fn hops_from(&self, first: usize) -> u16 {
        let own = self.steps[first..].iter().take_while(|step| !step.is_end());
        let hops = if own.clone().all(Step::is_line) { own.count() } else { 0 };
        u16::try_from(hops).expect("a route has fewer than 65 536 lines")
    }

    /// Consecutive flows often take the same path: drops the steps from `first` on if one of the last routes has the same. Returns where the steps are.
    fn share_steps(&mut self, first: usize) -> usize {
        let own = &self.steps[first..];
        let mut recent = self.routes.iter().rev().take(4).map(|route| route.first as usize);
        let same = recent.find(|from| self.steps[*from..first].starts_with(own));
        if same.is_some() {
            self.steps.truncate(first);
            self.tunnels.forget_steps(first);
        }
        same.unwrap_or(first)
    }

    /// Finds the lines that are the only feeder of the next port, and meet the other rules of lookahead: they hand packets ahead.
    fn enable_lookahead_to_ports(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Before {
            Nothing,
            One(u32),
            Several,
        }
        let mut before = vec![Before::Nothing; self.ports.len()];
        for pair in self.steps.windows(2) {
            let [from, Verdict::Out(port)] = [pair[0].verdict, pair[1].verdict] else { continue };
            let this = &mut before[port as usize];
            *this = match (from, *this) {
                (Verdict::Up, same) => same,
                (Verdict::Out(from), Before::Nothing) => Before::One(from),
                (Verdict::Out(from), Before::One(port)) if port == from => Before::One(port),
                _ => Before::Several,
            };
        }
        for way in self.icmp.ways.iter().filter(|_| self.disabled_rule != Some(LookaheadRule::NoMessages)) {
            // Packets that the router makes.
            let first = self.steps[self.routes[way.route as usize].first as usize];
            if let Verdict::Out(port) = first.verdict {
                before[port as usize] = Before::Several;
            }
        }
        for port in self.arp.ports().filter(|_| self.disabled_rule != Some(LookaheadRule::NoRequests)) {
            before[self.port_indices[port] as usize] = Before::Several;
        }
        for route in &self.branches {
            // Packets from the node that makes copies.
            let first = self.steps[self.routes[*route as usize].first as usize];
            if let Verdict::Out(port) = first.verdict {
                before[port as usize] = Before::Several;
            }
        }
        for place in 1..self.steps.len() {
            let (from, this) = (self.steps[place - 1], self.steps[place]);
            let [Verdict::Out(fed_by), Verdict::Out(index)] = [from.verdict, this.verdict] else { continue };
            let (line, port) = (&self.ports[fed_by as usize], &self.ports[index as usize]);
            let changes = line.may_change() || port.may_change();
            // A line that may go down checks every packet on arrival, and its port is served.
            let exempt = changes && self.disabled_rule == Some(LookaheadRule::NoChange);
            let tells = self
                .rule_holds(LookaheadRule::OneFeeder, before[index as usize] == Before::One(fed_by))
                && self.rule_holds(LookaheadRule::NoChange, !changes)
                && (exempt || self.rule_holds(LookaheadRule::Order, line.is_in_order()))
                && (exempt || self.rule_holds(LookaheadRule::DecidesOnArrival, port.decides_on_arrival()))
                && self.rule_holds(LookaheadRule::NoTime, !this.takes_time);
            if tells {
                self.steps[place - 1].lookahead = Lookahead::NextPort;
            }
        }
    }

    /// Enables lookahead to the host at the end of a route. The caller has checked that the host has one endpoint, or only counts, and nothing else happens
    /// there.
    pub fn enable_lookahead_to_host(&mut self, route: u32) {
        let Route { first, hops, .. } = self.routes[route as usize];
        let last = first as usize + usize::from(hops);
        // A route with decision steps has `hops` 0.
        if hops > 0 && self.ports[self.steps[last - 1].port() as usize].is_in_order() {
            self.steps[last - 1].lookahead = Lookahead::Host;
        }
    }

    /// Returns the step of a path segment.
    pub(crate) fn step(&mut self, topology: &Topology, leg: &PathSegment) -> Step {
        let from = topology.first_hop(*leg).from;
        let router = match topology.kind(from) {
            NodeKind::Router(router) => router as u32,
            _ => NONE,
        };
        let mtu = u32::try_from(topology.mtu(*leg)).unwrap_or(u32::MAX);
        let takes_time = self.engines.get(router as usize).is_some_and(|engine| !engine.takes_no_time());
        match leg {
            PathSegment::Link(hop) => {
                let verdict = Verdict::Out(self.port_indices[topology.port_of(hop)]);
                Step { verdict, router, mtu, line_index: 0, lookahead: Lookahead::None, takes_time }
            }
            PathSegment::Circuit { circuit, forward } => {
                let verdict = Verdict::Circuit(self.entry_of(topology, *circuit, *forward));
                Step { verdict, router, mtu, line_index: 0, lookahead: Lookahead::None, takes_time: true }
            }
            PathSegment::Tunnel { tunnel, forward } => {
                let verdict = Verdict::Wrap(2 * *tunnel as u32 + u32::from(!forward));
                // Packets never continue ahead of virtual time here.
                self.engines[router as usize].never_ahead = true;
                Step { verdict, router, mtu, line_index: 0, lookahead: Lookahead::None, takes_time: true }
            }
        }
    }

    /// Returns the index of the entry of a circuit direction, and creates it if necessary.
    fn entry_of(&mut self, topology: &Topology, circuit: usize, forward: bool) -> u32 {
        let vc = 2 * circuit as u32 + u32::from(!forward);
        if let Some(known) = self.entries.iter().position(|entry| entry.vc == vc) {
            return known as u32;
        }
        let hops = topology.hops(PathSegment::Circuit { circuit, forward });
        let ports = hops.iter().map(|hop| topology.port_of(hop)).collect();
        let encapsulation = topology.circuits[circuit].encapsulation;
        self.entries.push(Entry { vc, encapsulation, ports });
        self.entries.len() as u32 - 1
    }
}

/// Returns the segments of the first path inside each tunnel of these path segments, in the order in which packets take them.
pub(crate) fn first_within(topology: &Topology, legs: &[PathSegment]) -> Vec<PathSegment> {
    let mut within = Vec::new();
    for leg in legs {
        let PathSegment::Tunnel { tunnel, forward } = *leg else { continue };
        let path = &topology.tunnels[tunnel];
        let [mut node, end] = path.from_to(forward);
        while node != end {
            let leg = path.way(forward).fan.legs_at(node)[0];
            within.push(leg);
            within.extend(first_within(topology, &[leg]));
            node = topology.last_hop(leg).to;
        }
    }
    within
}
