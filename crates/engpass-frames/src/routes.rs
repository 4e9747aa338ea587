//! Lays out routes as steps: a run of steps where the choice is known in advance, a decision step where it is not.

use std::collections::BTreeMap;
use std::fmt;

use engpass_model::forward::{Headers, PacketView};
use engpass_model::source::{Traffic, poisson::Sizes};
use engpass_model::wire::icmp;
use engpass_model::wire::ip::{IP_HEADER_BYTES, UDP_HEADER_BYTES};
use engpass_testbed::topology::{Fan, NodeId, NodeKind, PathSegment};
use engpass_testbed::{Choice, Testbed, Topology, choice, heads, icmp_heads, macs};

use engpass_model::wire::layers::Change;

use super::choices::{DecisionStep, Group};
use super::icmp::IcmpRoute;
use super::lengths::Lengths;
use super::verdict::tunnel_of;
use super::{DecisionMode, Frames, Route, Step, Verdict};

/// Largest number of steps for the paths between two hosts. Above it, paths part and meet too often to lay out each one.
const MOST_STEPS: usize = 1 << 16;

/// Why routes cannot be laid out: there are too many paths between two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooManyPaths {
    /// Name of the node at which the paths begin.
    pub from: String,
    /// Name of the node at which they end.
    pub to: String,
}

impl fmt::Display for TooManyPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(
            f,
            "there are too many equally short paths from `{from}` to `{to}`: give routers on these paths `ecmp = \"first\"`"
        )
    }
}

/// A line on the routes of a flow direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteLine {
    /// Number of the transmitter: twice that of the link, plus the end.
    pub number: usize,
    /// The circuit direction whose cells the line carries; `None` for frames.
    pub vc: Option<u32>,
    /// Changes of packet lengths on the way to the line.
    pub changes: Vec<Change>,
    /// True if some routes of the flow direction do not use this line.
    pub avoidable: bool,
}

/// Knowledge about the packet lengths of a flow direction when the network is built.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    /// Every datagram is an IP packet of this many bytes before fragmentation.
    Constant(u64),
    /// No packet exceeds the smallest MTU on the path.
    Whole,
    Varied,
}

/// First steps of routes that several senders share; the key is the hosts at both ends and the path
/// segments of the route (none for a route with decision steps).
pub(crate) type Known = BTreeMap<(NodeId, NodeId, Vec<PathSegment>), u32>;

/// A flow direction of one sender, or of a router's ICMP messages, for which a route is built.
pub(crate) struct RouteRequest<'a> {
    pub(crate) testbed: &'a Testbed,
    pub(crate) topology: &'a Topology,
    pub(crate) fan: &'a Fan,
    pub(crate) ends: (NodeId, NodeId),
    pub(crate) heads: Headers,
    pub(crate) length: Length,
    pub(crate) mtu: u64,
}

/// State of the layout at one point of a route.
#[derive(Clone)]
struct LayoutState {
    node: NodeId,
    /// The transmitter at which the present frame began: that of the last host or router.
    framed_at: usize,
    /// True if packets are fragments at this point of the route.
    fragment: bool,
    lengths: Lengths,
    /// Line indices of the lines passed so far.
    trail: Vec<u16>,
    /// Directions of the tunnels that packets are in, each with the value of `fragment` before they entered.
    inside: Vec<(u32, bool)>,
    /// False at the sender, to which a keepalive comes back.
    has_left: bool,
}

/// A route with decision steps during its layout.
#[derive(Default)]
struct Tree {
    /// Index of the route's first step.
    first: usize,
    lines: Vec<RouteLine>,
    /// By line, the number of paths through the route that cross it.
    met: Vec<u32>,
    ends: u32,
}

impl RouteRequest<'_> {
    fn start(&self) -> LayoutState {
        let fragment = matches!(self.length, Length::Constant(bytes) if bytes > self.mtu);
        let lengths = Lengths::new(self.mtu);
        LayoutState {
            node: self.ends.0,
            framed_at: 0,
            fragment,
            lengths,
            trail: Vec::new(),
            inside: Vec::new(),
            has_left: false,
        }
    }

    /// Returns the possible path segments: those of the packets, or of the outer packets while packets are in a tunnel.
    fn fan_at(&self, front: &LayoutState) -> &Fan {
        let Some((direction, _)) = front.inside.last() else { return self.fan };
        let (tunnel, forward) = tunnel_of(*direction);
        &self.topology.tunnels[tunnel].way(forward).fan
    }

    /// Returns the path segments that packets may take from the node of `front`.
    fn legs_at(&self, front: &LayoutState) -> &[PathSegment] {
        self.fan_at(front).legs_at(front.node)
    }

    /// Returns true if packets are at their destination.
    fn is_at_end(&self, front: &LayoutState) -> bool {
        front.has_left && front.inside.is_empty() && front.node == self.ends.1
    }

    /// Returns true if the tunnel that packets entered last ends at the node of `front`.
    fn leaves_tunnel(&self, front: &LayoutState) -> bool {
        front.inside.last().is_some_and(|(direction, _)| {
            let (tunnel, forward) = tunnel_of(*direction);
            self.topology.tunnels[tunnel].from_to(forward)[1] == front.node
        })
    }

    /// Returns the path segment that all packets of the flow direction take from the node of `front`; `None` if that depends on the packet or on an event.
    fn fixed_choice(&self, frames: &mut Frames, front: &LayoutState) -> Option<PathSegment> {
        let legs = self.legs_at(front);
        let routed = matches!(self.topology.kind(front.node), NodeKind::Router(_));
        if legs.len() <= 1 && !(routed && frames.decision_mode == DecisionMode::Routers) {
            return legs.first().copied();
        }
        // Outer packets of a tunnel show the same headers, whether they are fragments or not.
        let shows_length = front.inside.is_empty() && matches!(self.length, Length::Varied);
        if frames.decision_mode != DecisionMode::Unknown && front.inside.is_empty()
            || frames.decision_mode == DecisionMode::Routers
            || shows_length
            || legs.iter().any(|leg| self.topology.sees_events(front.node, *leg))
        {
            return None;
        }
        let group = frames.group(self.testbed, self.topology, front.node, legs);
        let Group { members, policy, .. } = &mut frames.choices.groups[group as usize];
        if policy.is_per_packet() {
            return None;
        }
        let heads = match front.inside.last() {
            Some((direction, _)) => &frames.tunnels.directions[*direction as usize].heads,
            None => &self.heads,
        };
        let view = PacketView { heads, fragment: front.fragment, macs: self.macs(front) };
        Some(legs[policy.decide(&view, members).member])
    }

    /// Returns the last bytes of the MAC addresses of frames at a node that chooses.
    fn macs(&self, front: &LayoutState) -> [u8; 2] {
        let leg = self.legs_at(front)[0];
        macs(self.topology, self.fan_at(front), self.framed_at(front, leg), leg)
    }

    /// Returns the transmitter at which the frame begins that takes a path segment: of this node, or at a switch that of the last host or router.
    fn framed_at(&self, front: &LayoutState, leg: PathSegment) -> usize {
        match self.topology.kind(front.node) {
            NodeKind::Switch(_) => front.framed_at,
            NodeKind::Host(_) | NodeKind::Router(_) => self.topology.port_of(&self.topology.first_hop(leg)),
        }
    }

    /// Returns true if some choice is fixed for this flow direction but may differ for others, so that the route cannot be shared.
    fn is_own(&self, frames: &mut Frames) -> bool {
        // Choices inside tunnels are the same for all flow directions.
        let choices = self.fan.at.iter().filter(|(_, legs)| legs.len() > 1);
        let fronts: Vec<_> = choices.map(|(node, _)| LayoutState { node: *node, ..self.start() }).collect();
        fronts.iter().any(|front| self.fixed_choice(frames, front).is_some())
    }

    /// Advances the layout to the end of a path segment, or into a tunnel.
    fn advance_to_end_of(&self, front: &mut LayoutState, leg: PathSegment) {
        front.has_left = true;
        let routed = matches!(self.topology.kind(front.node), NodeKind::Router(_));
        // A tunnel that refuses long packets fragments none.
        if routed && !self.topology.refuses(leg) {
            front.lengths.fragment(self.topology.mtu(leg));
        }
        let least = front.lengths.least;
        if front.inside.is_empty() {
            front.fragment |= routed && matches!(self.length, Length::Constant(bytes) if bytes > least);
        }
        if let PathSegment::Tunnel { tunnel, forward } = leg {
            let direction = 2 * tunnel as u32 + u32::from(!forward);
            front.inside.push((direction, front.fragment));
            front.lengths.wrap(self.topology.tunnels[tunnel].added);
            front.fragment = false;
        } else {
            front.framed_at = self.framed_at(front, leg);
            front.node = self.topology.last_hop(leg).to;
        }
    }

    /// Returns the first node after a path segment that is no switch.
    fn station(&self, front: &LayoutState, leg: PathSegment) -> NodeId {
        let mut node = self.topology.last_hop(leg).to;
        while matches!(self.topology.kind(node), NodeKind::Switch(_)) {
            node = self.topology.last_hop(self.fan_at(front).legs_at(node)[0]).to;
        }
        node
    }

    /// Advances the layout out of the tunnel that packets entered last.
    fn leave_tunnel(&self, front: &mut LayoutState) {
        let (_, fragment) = front.inside.pop().expect("the packet is in a tunnel");
        front.fragment = fragment;
        front.lengths.unwrap();
    }
}

impl Frames {
    /// Adds the routes of all senders of flows with choices to the step table: first those without decision steps, then those with them.
    pub(crate) fn add_ways(&mut self, testbed: &Testbed, topology: &Topology) -> Result<(), TooManyPaths> {
        let mut known = Known::new();
        for branched in [false, true] {
            if branched {
                self.branched = self.steps.len() as u32;
            }
            for (flow, (path, traffic)) in topology.flows.iter().zip(testbed.traffic.values()).enumerate() {
                let Some(fans) = &path.fans else { continue };
                for stream in 0..traffic.streams() {
                    for (back, fan) in fans.iter().enumerate() {
                        let own = heads(testbed, topology, flow, stream as usize);
                        let request = RouteRequest {
                            testbed,
                            topology,
                            fan,
                            ends: if back == 0 { (path.from, path.to) } else { (path.to, path.from) },
                            heads: if back == 0 { own } else { own.reversed() },
                            length: length_of(traffic, topology, fan),
                            mtu: path.mtu,
                        };
                        let route = self.routes[2 * flow + back];
                        if let Some(route) = self.add_way(&request, route, branched, &mut known)? {
                            self.own_routes.insert((flow, stream, back), route);
                        }
                    }
                }
            }
            self.add_icmp_ways(testbed, topology, branched, &mut known)?;
            self.add_keepalive_ways(testbed, topology, branched)?;
        }
        self.icmp.ways.sort_by_key(|way| (way.flow, way.router));
        if topology.flows.iter().any(|path| path.fans.is_some()) {
            self.usable_for_data = vec![false; self.port_indices.len()];
        }
        for fan in topology.flows.iter().filter_map(|path| path.fans.as_ref()) {
            let legs = fan[0].legs().flat_map(|leg| topology.legs_within(leg));
            for hop in legs.flat_map(|leg| topology.hops(leg)) {
                self.usable_for_data[topology.port_of(&hop)] = true;
            }
        }
        Ok(())
    }

    /// Adds the routes of routers' ICMP messages: those with decision steps if `branched` is true, otherwise those without.
    fn add_icmp_ways(
        &mut self,
        testbed: &Testbed,
        topology: &Topology,
        branched: bool,
        known: &mut Known,
    ) -> Result<(), TooManyPaths> {
        for (flow, path) in topology.flows.iter().enumerate() {
            for way in &path.icmp {
                let fan = way.fan.clone().unwrap_or_else(|| {
                    Fan::along(way.legs.iter().map(|leg| (topology.first_hop(*leg).from, *leg)))
                });
                let whole = fan.legs().all(|leg| topology.mtu(leg) >= icmp::LONGEST);
                let request = RouteRequest {
                    testbed,
                    topology,
                    fan: &fan,
                    ends: (way.router, path.from),
                    heads: icmp_heads(topology, way.router, path.from),
                    length: if whole { Length::Whole } else { Length::Varied },
                    mtu: icmp::LONGEST,
                };
                let route = Route { first: 0, hops: 0, ttl: icmp::TTL, priority: icmp::PRIORITY };
                if let Some(route) = self.add_way(&request, route, branched, known)? {
                    self.icmp.ways.push(IcmpRoute { flow: flow as u32, router: way.router, route });
                }
            }
        }
        Ok(())
    }

    /// Adds the route of one sender if it has decision steps (`branched`) or has none (not `branched`), and returns its index; otherwise just returns `None`.
    pub(crate) fn add_way(
        &mut self,
        request: &RouteRequest<'_>,
        route: Route,
        branched: bool,
        known: &mut Known,
    ) -> Result<Option<u32>, TooManyPaths> {
        // Follows the route as far as the choices are known.
        let (mut legs, mut front) = (Vec::new(), request.start());
        let mut within = Vec::new();
        while !request.is_at_end(&front) {
            if request.leaves_tunnel(&front) {
                request.leave_tunnel(&mut front);
                continue;
            }
            let Some(leg) = request.fixed_choice(self, &front) else { break };
            let list = if front.inside.is_empty() { &mut legs } else { &mut within };
            list.push(leg);
            request.advance_to_end_of(&mut front, leg);
        }
        let ends = request.is_at_end(&front);
        if ends == branched {
            return Ok(None);
        }
        let first = self.steps.len();
        let key = (request.ends.0, request.ends.1, if ends { legs.clone() } else { Vec::new() });
        let is_own = !ends && request.is_own(self);
        let first = match known.get(&key).filter(|_| !is_own) {
            Some(first) => *first,
            None if ends => {
                self.add_run(request.topology, &legs, &within, true);
                known.insert(key, first as u32);
                first as u32
            }
            None => {
                let mut tree = Tree { first, ..Tree::default() };
                self.lay_routes(request, request.start(), &mut tree)?;
                for (line, met) in tree.lines.iter_mut().zip(&tree.met) {
                    line.avoidable = *met < tree.ends;
                }
                self.branched_lines.insert(first as u32, tree.lines);
                if !is_own {
                    known.insert(key, first as u32);
                }
                first as u32
            }
        };
        let place = self.routes.len() as u32;
        let hops = if ends { self.hops_from(first as usize) } else { 0 };
        self.routes.push(Route { first, hops, ..route });
        self.add_member_routes(place);
        Ok(Some(place))
    }

    /// Lays out the steps of all paths from the point of `front` to the end of the route.
    fn lay_routes(
        &mut self,
        request: &RouteRequest<'_>,
        mut front: LayoutState,
        tree: &mut Tree,
    ) -> Result<(), TooManyPaths> {
        loop {
            if request.leaves_tunnel(&front) {
                let step = self.unwrap_step(request.topology, front.inside[front.inside.len() - 1].0);
                self.put(step, &front);
                request.leave_tunnel(&mut front);
                continue;
            }
            if request.is_at_end(&front) {
                self.put(Step::END, &front);
                tree.ends += 1;
                // Usage of one line by differently fragmented packets has several line indices, which count once.
                let number = |line_index: &u16| tree.lines[usize::from(*line_index)].number;
                let mut numbers: Vec<usize> = front.trail.iter().map(number).collect();
                numbers.sort_unstable();
                numbers.dedup();
                for (line, met) in tree.lines.iter().zip(&mut tree.met) {
                    *met += u32::from(numbers.binary_search(&line.number).is_ok());
                }
                return Ok(());
            }
            if let Some(leg) = request.fixed_choice(self, &front) {
                self.lay_segment(request, &mut front, leg, tree);
                continue;
            }
            break;
        }
        let legs = request.legs_at(&front).to_vec();
        let group = self.group(request.testbed, request.topology, front.node, &legs);
        let question = self.steps.len() as u32;
        let decision = self.choices.decisions.len() as u32;
        let first = self.choices.results.len();
        let router = self.step(request.topology, &legs[0]).router;
        self.put(Step { verdict: Verdict::Choose(decision), router, takes_time: true, ..Step::END }, &front);
        let tunnel = front.inside.last().map(|(direction, _)| *direction);
        self.choices.decisions.push(DecisionStep {
            group,
            first: first as u32,
            tunnel,
            macs: request.macs(&front),
        });
        self.choices.results.resize(first + legs.len(), 0);
        if let Some(engine) = self.engines.get_mut(router as usize) {
            engine.never_ahead = true;
        }
        for (place, leg) in legs.into_iter().enumerate() {
            self.put(Step { verdict: Verdict::Result(question), ..Step::END }, &front);
            self.choices.results[first + place] = self.steps.len() as u32;
            let mut front = front.clone();
            self.lay_segment(request, &mut front, leg, tree);
            self.lay_routes(request, front, tree)?;
            if self.steps.len() > tree.first + MOST_STEPS {
                let [from, to] = [request.ends.0, request.ends.1].map(|node| &request.topology.nodes[node]);
                return Err(TooManyPaths { from: from.clone(), to: to.clone() });
            }
        }
        Ok(())
    }

    /// Lays out the steps of one path segment.
    fn lay_segment(
        &mut self,
        request: &RouteRequest<'_>,
        front: &mut LayoutState,
        leg: PathSegment,
        tree: &mut Tree,
    ) {
        let mut step = self.step(request.topology, &leg);
        let before = front.clone();
        let station = || request.station(&before, leg);
        if let Some(hold) = self.hold_before(request.topology, leg, station, &mut step) {
            self.put(hold, &before);
        }
        request.advance_to_end_of(front, leg);
        if matches!(leg, PathSegment::Tunnel { .. }) {
            self.put(step, &before);
            return;
        }
        for (place, (number, vc)) in self.lines_in(step).into_iter().enumerate() {
            let changes = front.lengths.changes.clone();
            let line = RouteLine { number, vc, changes, avoidable: false };
            let line_index = match tree.lines.iter().position(|known| *known == line) {
                Some(line_index) => line_index,
                None => {
                    let same = tree.lines.iter().position(|known| known.number == number);
                    let met = same.map_or(0, |same| tree.met[same]);
                    tree.lines.push(line);
                    tree.met.push(met);
                    tree.lines.len() - 1
                }
            };
            if place == 0 {
                self.put(Step { line_index: line_index as u16, ..step }, &before);
            }
            front.trail.push(line_index as u16);
        }
    }

    /// Adds a step of a route with decision steps, and the trail of packets there.
    fn put(&mut self, step: Step, front: &LayoutState) {
        self.steps.push(step);
        self.trails.push(front.trail.clone().into());
        let inside: Vec<u32> = front.inside.iter().map(|(direction, _)| *direction).collect();
        let stack = self.tunnels.stack(&inside);
        self.tunnels.in_stack(self.steps.len(), stack);
    }

    /// Returns the index of the group of these path segments at a node; creates the group if it is new.
    fn group(&mut self, testbed: &Testbed, topology: &Topology, node: NodeId, legs: &[PathSegment]) -> u32 {
        let groups = &mut self.choices.groups;
        if let Some(known) = groups.iter().position(|group| group.node == node && group.legs == legs) {
            return known as u32;
        }
        let Choice { members, policy, bond } = choice(testbed, topology, node, legs);
        groups.push(Group { node, legs: legs.to_vec(), members, policy, bond });
        groups.len() as u32 - 1
    }

    /// Returns the largest number of lines that a flow direction has.
    pub fn most_lines(&self) -> usize {
        let trees = self.branched_lines.values().map(Vec::len);
        // The step at the end of a run holds the number of its lines.
        let runs = self.steps[..self.branched as usize].iter().filter(|step| step.is_end());
        runs.map(|end| end.line_index.into()).chain(trees).max().unwrap_or(0)
    }

    /// Returns the route of one sender of a flow; with `back`, that of the packets that come back to it.
    pub fn route_of(&self, flow: usize, stream: u32, back: bool) -> u32 {
        let own = self.own_routes.get(&(flow, stream, usize::from(back)));
        own.copied().unwrap_or((2 * flow + usize::from(back)) as u32)
    }

    /// Returns the lines of a route by line index, for packets that their sender has fragmented for `mtu`. For multicast copies, `before` holds the routes of
    /// the branches that the packets took before.
    pub fn lines_of(&self, before: &[u32], route: u32, mtu: u64) -> Vec<RouteLine> {
        let first = self.routes[route as usize].first;
        if let Some(lines) = self.branched_lines.get(&first) {
            return lines.clone();
        }
        let mut lengths = Lengths::new(mtu);
        before.iter().for_each(|route| self.follow(*route, &mut lengths, &mut Vec::new()));
        let mut lines = Vec::new();
        self.follow(route, &mut lengths, &mut lines);
        lines
    }

    /// Collects the lines of a route without decision steps in `lines`, with the changes of packet lengths up to each.
    fn follow(&self, route: u32, lengths: &mut Lengths, lines: &mut Vec<RouteLine>) {
        let first = self.routes[route as usize].first;
        for step in self.steps[first as usize..].iter().take_while(|step| !step.is_end()) {
            if let Verdict::Unwrap(_) = step.verdict {
                lengths.unwrap();
                continue;
            }
            if step.is_routed() && !self.refuses(*step) {
                lengths.fragment(step.mtu.into());
            }
            if let Verdict::Wrap(direction) = step.verdict {
                lengths.wrap(self.tunnels.directions[direction as usize].added.into());
            }
            let here = self.lines_in(*step).into_iter();
            lines.extend(here.map(|(number, vc)| RouteLine {
                number,
                vc,
                changes: lengths.changes.clone(),
                avoidable: false,
            }));
        }
    }

    /// Returns the transmitters of a step, each with the circuit direction if it carries cells: one for a line, several for a circuit, none for other steps.
    pub(crate) fn lines_in(&self, step: Step) -> Vec<(usize, Option<u32>)> {
        match step.verdict {
            Verdict::Out(port) => vec![(self.ports[port as usize].port as usize, None)],
            Verdict::Circuit(entry) => {
                let entry = &self.entries[entry as usize];
                entry.ports.iter().map(|port| (*port, Some(entry.vc))).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns true if the choice of a node is the same for all packets of a sender of this traffic, and is known when the network is built.
pub fn choices_are_known(
    testbed: &Testbed,
    topology: &Topology,
    traffic: &Traffic,
    fan: &Fan,
    node: NodeId,
) -> bool {
    let legs = fan.legs_at(node);
    let per_packet = legs.len() > 1 && choice(testbed, topology, node, legs).policy.is_per_packet();
    let varies = matches!(length_of(traffic, topology, fan), Length::Varied);
    !per_packet && !varies && !legs.iter().any(|leg| topology.sees_events(node, *leg))
}

/// Returns the knowledge about the packet lengths of a traffic in one of its directions.
fn length_of(traffic: &Traffic, topology: &Topology, fan: &Fan) -> Length {
    /// Upper bound of the IP packet of a TCP segment without data, in bytes.
    const LONGEST_ACK: u64 = 120;
    let datagram = |message: u64| Length::Constant(IP_HEADER_BYTES + UDP_HEADER_BYTES + message);
    match traffic {
        Traffic::UdpStream(config) if !config.sentinels => datagram(config.message.bytes()),
        Traffic::UdpOnOff(config) => datagram(config.message.bytes()),
        Traffic::Video(config) => datagram(config.message.bytes()),
        Traffic::Poisson(config) if config.sizes == Sizes::Fixed => datagram(config.message.bytes()),
        // Segments are formed for the smallest MTU of all paths.
        Traffic::TcpStream(_) if fan.legs().all(|leg| topology.mtu(leg) >= LONGEST_ACK) => Length::Whole,
        _ => Length::Varied,
    }
}
