//! Turns names into indices: links, circuits with their routes, and the path of every flow.

use engpass_model::circuit::{Category, Circuit};
use engpass_model::event::Event;
use engpass_model::source::{CellDemand, Traffic};
use engpass_model::switch::Switch;
use engpass_model::wire::{Encapsulation, Framing};

use crate::branches::branches;
use crate::check::Checker;
use crate::diagnostic::Diagnostic;
use crate::findings::Findings;
use crate::links::{self, node_id};
use crate::rates::{self, Wanted};
use crate::read::Draft;
use crate::reported::ReportedValues;
use crate::route::{Graph, Passage, RoutingGraph, ShortestPaths, narrowest};
use crate::spare::{PathUsage, is_answered};
use crate::topology::{
    BondPath, CircuitPath, EventPath, Fan, FlowPath, Hop, Line, LinkEnds, NodeId, NodeKind, PathSegment,
    Topology, TunnelPath, reversed,
};
use crate::tree::Node;

/// Resolves the valid parts of the draft and reports errors. Returns the topology if everything could be resolved.
///
/// `faulty` holds the values about which errors were reported before. Parts that depend on them are skipped.
pub(crate) fn resolve(
    draft: &Draft,
    tree: &Node,
    found: &mut Findings,
    faulty: &ReportedValues,
) -> Option<Topology> {
    let names = draft.hosts.keys().chain(draft.switches.keys()).chain(draft.routers.keys());
    let nodes: Vec<String> = names.cloned().collect();
    let sound = found.errors() == 0;
    let mut checker = Checker::new(tree, found);
    let links = links::links(draft, &mut checker, faulty);
    let whole = links.len() == draft.links.len() && !draft.elsewhere.contains_key("link");
    let mut resolver = Resolver {
        draft,
        faulty,
        graph: Graph::new(nodes.len(), &links),
        ways: RoutingGraph::new(Vec::new(), &[], &[], []),
        nodes: &nodes,
        links: &links,
        whole,
        checker,
        circuits: Vec::new(),
        tunnels: Vec::new(),
        bonds: Vec::new(),
        shown: PathUsage::default(),
    };
    let declared: Vec<Option<CircuitPath>> =
        draft.circuits.iter().map(|(name, circuit)| resolver.circuit(name, circuit.as_ref()?)).collect();
    let complete = declared.iter().all(Option::is_some);
    // A circuit or tunnel with an error keeps its index, so that the others keep theirs.
    resolver.circuits = declared;
    resolver.resolve_bonds();
    let complete = complete && resolver.bonds.iter().all(Option::is_some);
    resolver.resolve_tunnels();
    let complete = complete && resolver.tunnels.iter().all(Option::is_some);
    let passages = (0..nodes.len()).map(|node| resolver.passage(node)).collect();
    let bonds: Vec<BondPath> = resolver.bonds.iter().flatten().cloned().collect();
    let tunnels = resolver.tunnels.iter().enumerate();
    let tunnels = tunnels.filter_map(|(index, path)| Some((index, path.as_ref().filter(|path| path.is_up)?)));
    resolver.ways = RoutingGraph::new(passages, &links, &resolver.circuits, tunnels).with_bonds(&bonds);
    let mut sources = 0;
    let flow = |(name, traffic): (&String, &Option<Traffic>)| {
        let traffic = traffic.as_ref()?;
        let first_source = sources;
        sources += u64::from(traffic.streams());
        resolver.flow(name, traffic, first_source)
    };
    let flows: Vec<Option<FlowPath>> = draft.traffic.iter().map(flow).collect();
    let changes_link = |event: &Option<Event>| event.as_ref().is_none_or(|event| !event.is_of_member());
    let links_change = draft.events.iter().filter(|(_, event)| changes_link(event));
    let events: Vec<Option<EventPath>> =
        links_change.map(|(name, event)| resolver.event(name, event.as_ref()?)).collect();
    let arp = resolver.arp_interfaces();
    if !whole || !complete || resolver.checker.errors > 0 {
        return None;
    }
    let flows: Vec<FlowPath> = flows.into_iter().collect::<Option<_>>()?;
    let events: Vec<EventPath> = events.into_iter().collect::<Option<_>>()?;
    if sound {
        resolver.warn_of_unused(&events, &arp);
        resolver.warn_of_packets_that_do_not_fit(&flows);
    }
    let tunnels = std::mem::take(&mut resolver.tunnels).into_iter().collect::<Option<_>>()?;
    let circuits = std::mem::take(&mut resolver.circuits).into_iter().collect::<Option<_>>()?;
    Some(Topology {
        hosts: draft.hosts.len(),
        switches: draft.switches.len(),
        nodes,
        links,
        circuits,
        tunnels,
        bonds,
        flows,
        events,
        arp,
    })
}

pub(crate) struct Resolver<'a> {
    pub(crate) draft: &'a Draft,
    pub(crate) faulty: &'a ReportedValues,
    pub(crate) nodes: &'a [String],
    pub(crate) links: &'a [LinkEnds],
    pub(crate) graph: Graph<'a>,
    ways: RoutingGraph,
    /// True if every link of the file was resolved. Otherwise a missing path may be due to a faulty link, and is not reported.
    pub(crate) whole: bool,
    pub(crate) checker: Checker<'a>,
    pub(crate) circuits: Vec<Option<CircuitPath>>,
    pub(crate) tunnels: Vec<Option<TunnelPath>>,
    pub(crate) bonds: Vec<Option<BondPath>>,
    pub(crate) shown: PathUsage,
}

/// Returns the first link of a route and its line in the direction of the route.
fn first_line<'l>(links: &'l [LinkEnds], route: &[Hop]) -> (&'l LinkEnds, Line) {
    let link = &links[route[0].link];
    (link, link.line_from(route[0].from))
}

/// Path of the packets of a traffic or of the outer packets of a tunnel.
pub(crate) struct Way {
    pub(crate) legs: Vec<PathSegment>,
    /// The shortest paths to the receiver; and the shortest paths back, if they are not the reversed ones. `None` if a circuit decides the path.
    pub(crate) reach: Option<(ShortestPaths, Option<ShortestPaths>)>,
}

impl Way {
    /// Returns the path that consists of a single path segment from host to host.
    fn over(leg: PathSegment) -> Self {
        Self { legs: vec![leg], reach: None }
    }

    /// Returns the path segments that policies choose among, in both directions; `None` if nothing chooses.
    pub(crate) fn fans(&self) -> Option<Box<[Fan; 2]>> {
        let (there, Some(back)) = self.reach.as_ref()? else { return None };
        Some(Box::new([there.fan(), back.fan()]))
    }
}

impl Resolver<'_> {
    pub(crate) fn node(&self, name: &str) -> NodeId {
        node_id(self.draft, name).expect("the node reference was checked before")
    }

    pub(crate) fn kind(&self, node: NodeId) -> NodeKind {
        links::kind(self.draft, node)
    }

    fn relays(&self, node: NodeId) -> bool {
        matches!(links::switch(self.draft, node), Some(Switch::Atm(_)))
            // A switch with errors may be an ATM switch, so it counts as one.
            || matches!(self.kind(node), NodeKind::Switch(index) if self.draft.switches[index].is_none())
    }

    /// Returns what a node does with packets for other nodes.
    pub(crate) fn passage(&self, node: NodeId) -> Passage {
        match self.kind(node) {
            NodeKind::Host(_) => Passage::None,
            NodeKind::Switch(index) => match self.draft.switches[index] {
                Some(Switch::Atm(_)) => Passage::None,
                Some(Switch::Ethernet(_)) | None => Passage::First,
            },
            NodeKind::Router(index) => Passage::of(self.draft.routers[index].as_ref()),
        }
    }

    /// Returns the shortest path over ATM links and through ATM switches.
    pub(crate) fn atm_path(&self, from: NodeId, to: NodeId) -> Option<Vec<Hop>> {
        self.graph.path(from, to, |link| link.medium.is_atm(), |node| self.relays(node))
    }

    fn circuit(&mut self, name: &str, circuit: &Circuit) -> Option<CircuitPath> {
        let base = ["circuit", name];
        let mut route = None;
        if !self.draft.has_invalid_reference("circuit", name) {
            let (from, to) = (self.node(&circuit.from), self.node(&circuit.to));
            route = self.atm_path(from, to);
            if route.is_none() {
                self.no_atm_path(&base, &format!("circuit `{name}`"), from, to);
            }
        }
        let first = route.as_ref().map(|route| first_line(self.links, route));
        let uncounted = self.faulty.has(&[base[0], base[1], "counts"]);
        let shaping = circuit.shaping.filter(|_| !uncounted).map_or(Some(None), |rate| {
            let wanted = Wanted { rate, counts: circuit.counts, zero: false, bounded: true };
            rates::pace(&mut self.checker, wanted, &[base[0], base[1], "shaping"], first)
        });
        let fastest =
            circuit.adaptive.as_ref().zip(first).and_then(|(adaptive, (_, line))| match line.framing {
                Framing::Cells { slot } => adaptive.fastest(slot),
                Framing::Ethernet | Framing::Packets => None,
            });
        let policing = match &circuit.policing {
            None => Some(None),
            Some(_) if uncounted || self.faulty.has(&[base[0], base[1], "policing", "counts"]) => Some(None),
            Some(policing) => {
                let wanted = Wanted {
                    rate: policing.rate,
                    counts: policing.counts.or(circuit.counts),
                    zero: false,
                    bounded: false,
                };
                let path = [base[0], base[1], "policing", "rate"];
                rates::pace(&mut self.checker, wanted, &path, first)
                    .map(|pace| pace.map(|pace| (pace, policing.tolerance.time(), policing.action)))
            }
        };
        let route = route?;
        if circuit.policing.is_some() && route.len() == 1 {
            let message = format!("circuit `{name}` crosses no switch that could police it");
            let help = "remove `policing`, or put a switch between its ends";
            self.checker.report_key(
                &["circuit", name, "policing"],
                Diagnostic::warning("no-effect", message).help(help),
            );
        }
        Some(CircuitPath {
            name: name.to_string(),
            route,
            category: circuit.category,
            encapsulation: circuit.encapsulation,
            mtu: circuit.mtu.map_or(circuit.encapsulation.default_mtu(), |mtu| mtu.bytes()),
            clp: circuit.clp == 1,
            shaping: shaping?.or(fastest),
            policing: policing?,
        })
    }

    fn flow(&mut self, name: &str, traffic: &Traffic, first_source: u64) -> Option<FlowPath> {
        let uncounted = ["rate", "counts"].iter().any(|key| self.faulty.has(&["traffic", name, key]));
        let demand = traffic.cells().filter(|_| !uncounted);
        let wanted = demand.map(|CellDemand { rate, counts, can_be_off: zero, .. }| Wanted {
            rate,
            counts,
            zero,
            bounded: true,
        });
        if self.draft.has_invalid_reference("traffic", name) || self.faulty.has(&["traffic", name, "circuit"])
        {
            // Without a path the rate cannot be converted, but some rates are invalid on any path.
            if let Some(wanted) = wanted {
                rates::pace(&mut self.checker, wanted, &["traffic", name, "rate"], None);
            }
            return None;
        }
        let (from, to) = traffic.ends();
        let (from, to) = (self.node(from), self.node(to));
        let receivers: Vec<NodeId> = traffic.receivers().into_iter().map(|to| self.node(to)).collect();
        // The path to the first receiver is used by the checks below. The other receivers must at least have a path.
        let others: Vec<Option<Way>> =
            receivers.iter().skip(1).map(|to| self.packets(name, traffic, from, *to)).collect();
        for way in others.iter().flatten() {
            let fans = self.fans(way);
            self.shown.note(&way.legs, fans.flatten().as_deref(), false);
        }
        let way = match traffic.cells() {
            None => self.packets(name, traffic, from, to),
            Some(demand) => {
                let circuit = match traffic.circuit() {
                    Some(circuit) => self.draft.circuits.get_index_of(circuit)?,
                    None => self.implicit_circuit(name, demand.category, from, to)?,
                };
                Some(Way::over(PathSegment::Circuit { circuit, forward: self.is_forward(circuit, from) }))
            }
        };
        let route = way.as_ref().and_then(|way| self.route(&way.legs));
        let cells = match wanted {
            None => None,
            Some(wanted) => {
                let first = route.as_ref().map(|route| first_line(self.links, route));
                rates::pace(&mut self.checker, wanted, &["traffic", name, "rate"], first)?
            }
        };
        let (way, route) = (way?, route?);
        let ways = [&way].into_iter().chain(others.iter().flatten());
        self.check_ttl(name, traffic, ways);
        let fans = self.fans(&way)?;
        let answered = is_answered(traffic);
        self.shown.note(&way.legs, fans.as_deref(), answered);
        if let Some((there, back)) = &way.reach {
            self.shown.note_spare(there);
            back.iter().filter(|_| answered).for_each(|back| self.shown.note_spare(back));
        }
        let others: Option<Vec<Way>> = others.into_iter().collect();
        let ways = [way.legs.clone()].into_iter().chain(others?.into_iter().map(|way| way.legs));
        let ways: Vec<(NodeId, Vec<PathSegment>)> = receivers.into_iter().zip(ways).collect();
        let members = match traffic {
            Traffic::Multicast(config) => self.members(name, config, &ways),
            _ => Box::default(),
        };
        let tree = match &ways[..] {
            [_] if members.is_empty() => Vec::new(),
            several => branches(several, !members.is_empty(), |leg| {
                self.route(&[leg]).and_then(|hops| Some(hops.last()?.to)).expect("the segment has a route")
            }),
        };
        let legs = way.legs;
        let discovers_mtu = self.discovers_mtu(traffic, from);
        let icmp = if discovers_mtu {
            self.icmp_ways((name, traffic), &legs, fans.as_deref(), from)?
        } else {
            Box::default()
        };
        let (circuit, forward) = match legs[..] {
            [PathSegment::Circuit { circuit, forward }] => (Some(circuit), forward),
            _ => (None, true),
        };
        Some(FlowPath {
            name: name.into(),
            from,
            to,
            circuit,
            forward,
            route,
            mtu: self.mtu(*legs.first()?)?,
            path_mtu: narrowest(&legs, fans.as_deref(), |leg| self.mtu(leg))?,
            legs,
            // Multicast packets always take the first of equally short paths.
            fans: fans.filter(|_| !matches!(traffic, Traffic::Multicast(_))),
            discovers_mtu,
            icmp,
            first_source,
            cells,
            branches: tree.into(),
            members,
            group: match traffic {
                Traffic::Multicast(config) => Some(config.group.0),
                _ => None,
            },
        })
    }

    /// Returns the path segments in both directions if policies choose among them, or among those of a tunnel's outer packets. The inner `None` means that
    /// nothing chooses; the outer `None`, that a circuit or tunnel has an error.
    fn fans(&self, way: &Way) -> Option<Option<Box<[Fan; 2]>>> {
        let fans = way.fans();
        if fans.is_some() || !self.chooses_in_tunnels(&way.legs) {
            return Some(fans);
        }
        Some(Some(Box::new(self.all_fans(way)?)))
    }

    /// Returns true if a path that begins at `from` takes the circuit from its `from` to its `to`.
    fn is_forward(&self, circuit: usize, from: NodeId) -> bool {
        self.circuits[circuit].as_ref().is_none_or(|circuit| circuit.route[0].from == from)
    }

    /// Returns the links of a path; `None` if a circuit or tunnel of it has an error.
    pub(crate) fn route(&self, legs: &[PathSegment]) -> Option<Vec<Hop>> {
        let mut route = Vec::new();
        for leg in legs {
            match *leg {
                PathSegment::Link(hop) => route.push(hop),
                PathSegment::Circuit { circuit, forward: true } => {
                    route.extend(&self.circuits[circuit].as_ref()?.route)
                }
                PathSegment::Circuit { circuit, forward: false } => {
                    route.extend(reversed(&self.circuits[circuit].as_ref()?.route))
                }
                PathSegment::Tunnel { tunnel, forward } => {
                    route.extend(&self.tunnels[tunnel].as_ref()?.way(forward).route)
                }
            }
        }
        Some(route)
    }

    pub(crate) fn mtu(&self, leg: PathSegment) -> Option<u64> {
        match leg {
            PathSegment::Link(hop) => Some(self.links[hop.link].mtu),
            PathSegment::Circuit { circuit, .. } => Some(self.circuits[circuit].as_ref()?.mtu),
            PathSegment::Tunnel { tunnel, .. } => Some(self.tunnels[tunnel].as_ref()?.mtu),
        }
    }

    /// Warns if the TTL is too small for the path: every router decrements it and drops a packet whose TTL becomes zero (RFC 1812 section 5.3.1).
    fn check_ttl<'w>(&mut self, name: &str, traffic: &Traffic, ways: impl Iterator<Item = &'w Way>) {
        let Some(ttl) = traffic.ttl().filter(|ttl| *ttl > 0) else { return };
        let is_router = |node: NodeId| matches!(self.kind(node), NodeKind::Router(_));
        let ways = ways.map(|way| {
            let legs =
                way.reach.as_ref().map_or_else(|| way.legs.clone(), |(there, _)| there.longest(is_router));
            let ends = legs.iter().filter_map(|leg| Some(self.route(&[*leg])?.last()?.to));
            let routers: Vec<NodeId> = ends.filter(|node| is_router(*node)).collect();
            (routers, legs == way.legs)
        });
        // Of several receivers, the path with the most routers counts, the first one among equals.
        let longest = ways.reduce(|one, other| if other.0.len() > one.0.len() { other } else { one });
        let Some((routers, is_only_way)) = longest else { return };
        let Some(last) = routers.get(usize::from(ttl) - 1) else { return };
        let (count, last) = (routers.len(), &self.nodes[*last]);
        let who = if is_only_way && traffic.receivers().len() < 2 { "packets" } else { "some packets" };
        let message =
            format!("{who} of traffic `{name}` have a TTL of {ttl} and are dropped at router `{last}`");
        let routers =
            if count == 1 { "there is 1 router".into() } else { format!("there are {count} routers") };
        let help = format!("{routers} on the path: give at least `ttl = {}`", count + 1);
        self.checker
            .report(&["traffic", name, "ttl"], Diagnostic::warning("ttl-exceeded", message).help(help));
    }

    /// Adds a circuit for a generator that names none. Returns its index; `None` after it has reported an error.
    fn implicit_circuit(
        &mut self,
        name: &str,
        category: Category,
        from: NodeId,
        to: NodeId,
    ) -> Option<usize> {
        let Some(route) = self.atm_path(from, to) else {
            self.no_atm_path(&["traffic", name], &format!("traffic `{name}`"), from, to);
            return None;
        };
        let encapsulation = Encapsulation::default();
        self.circuits.push(Some(CircuitPath {
            name: name.to_string(),
            route,
            category,
            encapsulation,
            mtu: encapsulation.default_mtu(),
            shaping: None,
            clp: false,
            policing: None,
        }));
        Some(self.circuits.len() - 1)
    }

    /// Returns the path of the packets between two hosts; `None` after it has reported an error.
    ///
    /// A circuit between the two hosts has precedence over all other paths.
    fn packets(&mut self, name: &str, traffic: &Traffic, from: NodeId, to: NodeId) -> Option<Way> {
        let draft = self.draft;
        let between = self.circuits_between(from, to);
        let path = ["traffic", name];
        if let Some(named) = traffic.circuit() {
            let circuit = draft.circuits.get_index_of(named)?;
            if between.contains(&circuit) {
                return Some(Way::over(PathSegment::Circuit {
                    circuit,
                    forward: self.is_forward(circuit, from),
                }));
            }
            self.circuits[circuit].as_ref()?;
            let legs = self.ways.path_over(circuit, from, to);
            if legs.is_none() && self.whole && !self.unknown_circuits() {
                let (a, b) = (&self.nodes[from], &self.nodes[to]);
                let message = format!("no path from `{a}` to `{b}` uses circuit `{named}`");
                let help = format!(
                    "remove `circuit` to use the shortest path, or connect the ends of `{named}` to that path"
                );
                self.checker.report(
                    &["traffic", name, "circuit"],
                    Diagnostic::error("wrong-circuit", message).help(help),
                );
            }
            return legs.map(|legs| Way { legs, reach: None });
        }
        match between[..] {
            [circuit] => {
                Some(Way::over(PathSegment::Circuit { circuit, forward: self.is_forward(circuit, from) }))
            }
            [first, ..] => {
                let name_of = |circuit: usize| draft.circuits.get_index(circuit).map_or("", |(name, _)| name);
                let names = between.iter().map(|circuit| format!("`{}`", name_of(*circuit)));
                let names = names.collect::<Vec<_>>().join(", ");
                let (a, b) = (&self.nodes[from], &self.nodes[to]);
                let message = format!("several circuits join `{a}` and `{b}`: {names}");
                let help =
                    format!("say which one traffic `{name}` takes: `circuit = \"{}\"`", name_of(first));
                self.checker.report(&path, Diagnostic::error("ambiguous-circuit", message).help(help));
                None
            }
            [] => {
                let Some(there) = self.ways.reach(from, to) else {
                    // If a circuit is missing, its error may already have been reported.
                    if !self.unknown_circuits() {
                        self.report_no_route(&path, from, to);
                    }
                    return None;
                };
                let back = self.ways.reach_back(&there);
                Some(Way { legs: there.path(), reach: Some((there, back)) })
            }
        }
    }

    /// Returns the shortest paths for packets between two nodes; `None` if there is no path.
    pub(crate) fn reach(&self, from: NodeId, to: NodeId) -> Option<ShortestPaths> {
        self.ways.reach(from, to)
    }

    /// Returns the circuits of the file between two nodes, in either direction.
    pub(crate) fn circuits_between(&self, from: NodeId, to: NodeId) -> Vec<usize> {
        let (a, b) = (self.nodes[from].as_str(), self.nodes[to].as_str());
        let between = |circuit: &Circuit| {
            let ends = (circuit.from.as_str(), circuit.to.as_str());
            ends == (a, b) || ends == (b, a)
        };
        let good = self.draft.circuits.iter().enumerate().filter(|(_, (name, circuit))| {
            !self.draft.has_invalid_reference("circuit", name) && circuit.as_ref().is_some_and(between)
        });
        good.map(|(index, _)| index).collect()
    }

    /// Returns true if some circuits could not be read or resolved.
    pub(crate) fn unknown_circuits(&self) -> bool {
        self.draft.elsewhere.contains_key("circuit")
            || self
                .draft
                .circuits
                .iter()
                .any(|(name, read)| read.is_none() || self.draft.has_invalid_reference("circuit", name))
            || self.circuits.iter().any(Option::is_none)
    }
}
