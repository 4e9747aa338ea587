//! Resolves a valid testbed to its topology; the oracle's independent reading of the configuration.

use std::collections::VecDeque;

use engpass_model::circuit::Category;
use engpass_model::event::Event;
use engpass_model::link::LineRate;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::time::{Pace, Time};
use engpass_model::unit::{Basis, FramedRate, Share};
use engpass_model::wire::{Encapsulation, Framing};
use engpass_testbed::topology::{
    BondPath, CircuitPath, EventPath, Fan, FlowPath, Hop, Line, LinkEnds, Member, NodeId, NodeKind,
    PathSegment, TunnelPath,
};
use engpass_testbed::{Testbed, Topology};

use crate::arp::interfaces;
use crate::bond::bonds;
use crate::group::tree;
use crate::membership::has_members;
use crate::outer_ways::tunnels;
use crate::rate;
use crate::routing::Network;

/// Resolves names, routes and rates.
///
/// # Panics
/// If the testbed is not valid.
pub fn resolve(testbed: &Testbed) -> Topology {
    let nodes = testbed.hosts.keys().chain(testbed.switches.keys()).chain(testbed.routers.keys());
    let nodes: Vec<String> = nodes.cloned().collect();
    let node = |name: &str| nodes.iter().position(|known| known == name).expect("the testbed has this node");
    let links = testbed.links.iter().map(|(name, link)| {
        let rates = match (link.medium.line_rate(), link.rate) {
            (Some(rate), _) => [rate, rate],
            (None, Some(LineRate::Both(rate))) => [rate.0, rate.0],
            (None, Some(LineRate::Each(rates))) => [rates.forward.0, rates.backward.0],
            (None, None) => panic!("link `{name}` has no rate"),
        };
        LinkEnds {
            name: name.clone(),
            ends: [node(&link.ends[0]), node(&link.ends[1])],
            medium: link.medium,
            lines: rates.map(|rate| Line { rate, framing: link.medium.framing(rate) }),
            delay: link.delay.time(),
            mtu: link.mtu.map_or(1500, |mtu| mtu.bytes()),
            overhead: link.overhead.map_or(0, |overhead| overhead.bytes()),
            vlan: link.vlan,
            jitter: link.jitter.map_or(Time(0), |jitter| jitter.time()),
            loss: link.loss.unwrap_or(Share(0)),
            reorder: link.reorder.as_ref().map(|reorder| (reorder.share, reorder.delay.time())),
            queues: [0, 1].map(|end| {
                let of_node =
                    match (testbed.switches.get(&link.ends[end]), testbed.routers.get(&link.ends[end])) {
                        (Some(Switch::Ethernet(config)), _) => &config.queue,
                        (_, Some(router)) => &router.queue,
                        _ => return None,
                    };
                Some(link.queue.as_ref().unwrap_or(of_node).clone())
            }),
        }
    });
    let links: Vec<LinkEnds> = links.collect();
    let hosts = testbed.hosts.len();
    let is_switch = |node: NodeId| (hosts..hosts + testbed.switches.len()).contains(&node);
    let path = |from: &str, to: &str| route(&links, is_switch, node(from), node(to));
    let mut circuits: Vec<CircuitPath> = Vec::new();
    for (name, circuit) in &testbed.circuits {
        let route = path(&circuit.from, &circuit.to);
        let first = line_of(&links, route[0]);
        let shaping = circuit.shaping.map(|rate| pace(rate, circuit.counts, first));
        let policing = circuit.policing.as_ref();
        circuits.push(CircuitPath {
            name: name.clone(),
            category: circuit.category,
            clp: circuit.clp > 0,
            encapsulation: circuit.encapsulation,
            mtu: circuit.mtu.map_or(circuit.encapsulation.default_mtu(), |mtu| mtu.bytes()),
            shaping: shaping
                .or(circuit
                    .adaptive
                    .as_ref()
                    .map(|adaptive| pace(FramedRate::Share(adaptive.max), None, first)))
                .flatten()
                .map(|pace| if pace.is_at_least(slot(first)) { pace } else { slot(first) }),
            policing: policing.map(|policing| {
                let increment = pace(policing.rate, policing.counts.or(circuit.counts), first)
                    .expect("a policer has a rate");
                (increment, policing.tolerance.time(), policing.action)
            }),
            route,
        });
    }
    let bonds = bonds(testbed, &links, node);
    let tunnels = tunnels(testbed, &links, &circuits, &bonds, node);
    let mut flows = Vec::new();
    for (name, traffic) in &testbed.traffic {
        let (from, to) = traffic.ends();
        let joins = |circuit: &engpass_model::circuit::Circuit| {
            let ends = (circuit.from.as_str(), circuit.to.as_str());
            ends == (from, to) || ends == (to, from)
        };
        let (named, rate) = match traffic {
            Traffic::UdpStream(config) => (config.circuit.as_ref(), None),
            Traffic::TcpStream(config) => (config.circuit.as_ref(), None),
            Traffic::Poisson(config) => (config.circuit.as_ref(), None),
            Traffic::UdpOnOff(config) => (config.circuit.as_ref(), None),
            Traffic::Video(config) => (config.circuit.as_ref(), None),
            Traffic::Multicast(_) => (None, None),
            Traffic::RequestResponse(_) => panic!("no model engine supports request-response traffic"),
            Traffic::Cbr(config) => {
                (config.circuit.as_ref(), Some((config.rate, config.counts, Category::Cbr)))
            }
            Traffic::OnOff(config) => {
                (config.circuit.as_ref(), Some((config.rate, config.counts, Category::Ubr)))
            }
        };
        let index =
            |named: &String| testbed.circuits.get_index_of(named).expect("the testbed has this circuit");
        let circuit = match (named, rate) {
            (Some(named), None) if !joins(&testbed.circuits[named]) => {
                let network = network(testbed, &links, &circuits, &tunnels, &bonds);
                let legs = network.path_over(index(named), node(from), node(to));
                flows.push(over_legs(&network, name, legs, None));
                continue;
            }
            (Some(named), _) => index(named),
            (None, None) => match testbed.circuits.values().position(joins) {
                Some(circuit) => circuit,
                None => {
                    let network = network(testbed, &links, &circuits, &tunnels, &bonds);
                    let ends = (node(from), node(to));
                    let fans = network.fans(ends.0, ends.1);
                    let legs = network.path(ends.0, ends.1);
                    flows.push(over_legs(&network, name, legs, fans));
                    continue;
                }
            },
            (None, Some((_, _, category))) => {
                circuits.push(CircuitPath {
                    name: name.clone(),
                    route: path(from, to),
                    category,
                    encapsulation: Encapsulation::default(),
                    mtu: Encapsulation::default().default_mtu(),
                    shaping: None,
                    clp: false,
                    policing: None,
                });
                circuits.len() - 1
            }
        };
        let forward = circuits[circuit].route[0].from == node(from);
        let mut route = circuits[circuit].route.clone();
        if !forward {
            route.reverse();
            route = route.iter().map(|hop| Hop { link: hop.link, from: hop.to, to: hop.from }).collect();
        }
        let first = line_of(&links, route[0]);
        let cells = rate.and_then(|(rate, counts, _)| pace(rate, counts, first));
        let (from, to) = (node(from), node(to));
        let mtu = circuits[circuit].mtu;
        flows.push(FlowPath {
            name: name.clone(),
            from,
            to,
            circuit: Some(circuit),
            forward,
            route,
            legs: vec![PathSegment::Circuit { circuit, forward }],
            mtu,
            path_mtu: mtu,
            fans: None,
            discovers_mtu: false,
            icmp: Box::default(),
            first_source: 0,
            cells,
            branches: Box::default(),
            members: Box::default(),
            group: None,
        });
    }
    let network = network(testbed, &links, &circuits, &tunnels, &bonds);
    for (flow, traffic) in flows.iter_mut().zip(testbed.traffic.values()) {
        if network.discovers(traffic, flow.from) {
            flow.discovers_mtu = true;
            flow.icmp = network.icmp_ways(flow);
        }
    }
    for (flow, traffic) in flows.iter_mut().zip(testbed.traffic.values()) {
        let Traffic::Multicast(config) = traffic else { continue };
        // Multicast packets take the first of equally short paths.
        flow.fans = None;
        flow.group = Some(config.group.0);
        let prunes = has_members(testbed, &flow.name);
        if config.to.len() > 1 || prunes {
            let way = |to: &String| {
                let ends = [config.from.as_str(), to.as_str()];
                let of_circuit = |(_, circuit): &(usize, &engpass_model::circuit::Circuit)| {
                    let joined = [circuit.from.as_str(), circuit.to.as_str()];
                    joined == ends || joined == [ends[1], ends[0]]
                };
                match testbed.circuits.values().enumerate().find(of_circuit) {
                    Some((circuit, config)) => {
                        vec![PathSegment::Circuit { circuit, forward: config.from == ends[0] }]
                    }
                    None => network.path(node(ends[0]), node(to)),
                }
            };
            let ways: Vec<Vec<PathSegment>> = config.to.iter().map(way).collect();
            flow.branches = tree(&ways, prunes, |leg| {
                let hops = network.hops(leg);
                hops[hops.len() - 1].to
            });
            let member = |(host, legs): (&String, &Vec<PathSegment>)| {
                let is_own =
                    |event: &Event| event.traffic.as_ref() == Some(&flow.name) && event.target == *host;
                let events: Vec<usize> =
                    (0..testbed.events.len()).filter(|event| is_own(&testbed.events[*event])).collect();
                let hops: Vec<Hop> = legs.iter().flat_map(|leg| network.hops(*leg)).collect();
                // The last router behind the sender, or else the last node.
                let router = |hop: &Hop| hop.from >= hosts + testbed.switches.len();
                let from = hops[1..].iter().rposition(router).map_or(hops.len() - 1, |place| place + 1);
                let turned =
                    hops[from..].iter().rev().map(|hop| Hop { link: hop.link, from: hop.to, to: hop.from });
                (!events.is_empty()).then(|| Member { host: node(host), events, reports: turned.collect() })
            };
            flow.members = config.to.iter().zip(&ways).filter_map(member).collect();
        }
    }
    let mut first_source = 0;
    for (flow, traffic) in flows.iter_mut().zip(testbed.traffic.values()) {
        flow.first_source = first_source;
        first_source += match traffic {
            Traffic::TcpStream(config) => u64::from(config.streams),
            _ => 1,
        };
    }
    let links_change = testbed.events.iter().filter(|(_, config)| config.traffic.is_none());
    let events = links_change.map(|(name, config)| event(&links, &nodes, name, &config.target));
    let events = events.collect();
    let topology = Topology {
        hosts,
        switches: testbed.switches.len(),
        nodes,
        links,
        circuits,
        tunnels,
        bonds,
        flows,
        events,
        arp: Vec::new(),
    };
    let arp = interfaces(testbed, &topology);
    Topology { arp, ..topology }
}

/// Resolves an event: the target is a link, which both ends see, or `NODE/LINK`, an interface.
fn event(links: &[LinkEnds], nodes: &[String], name: &str, target: &str) -> EventPath {
    let link_of = |name: &str| links.iter().position(|link| link.name == name);
    if let Some(link) = link_of(target) {
        return EventPath { name: name.into(), link, seen_by: [true; 2] };
    }
    let interface = target.match_indices('/').find_map(|(slash, _)| {
        let node = nodes.iter().position(|node| *node == target[..slash])?;
        Some((node, link_of(&target[slash + 1..])?))
    });
    let (node, link) = interface.expect("an event has a link or an interface as its target");
    EventPath { name: name.into(), link, seen_by: links[link].ends.map(|end| end == node) }
}

/// Returns the kind of a node: hosts come first, then switches, then routers.
pub(crate) fn kind(topology: &Topology, node: NodeId) -> NodeKind {
    let switches = topology.hosts..topology.hosts + topology.switches;
    if node < switches.start {
        NodeKind::Host(node)
    } else if node < switches.end {
        NodeKind::Switch(node - switches.start)
    } else {
        NodeKind::Router(node - switches.end)
    }
}

/// Returns the network that packets may use: all links, the circuits of the file, and the tunnels that are up.
fn network<'a>(
    testbed: &'a Testbed,
    links: &'a [LinkEnds],
    circuits: &'a [CircuitPath],
    tunnels: &'a [TunnelPath],
    bonds: &'a [BondPath],
) -> Network<'a> {
    let tunnels = tunnels.iter().enumerate().filter(|(_, path)| path.is_up).collect();
    Network { testbed, links, circuits: &circuits[..testbed.circuits.len()], tunnels, bonds }
}

/// Returns the path of a flow over these path segments, or over `fans` if policies choose. If policies choose only for outer packets of tunnels, each
/// fan holds a single path.
fn over_legs(
    network: &Network<'_>,
    name: &str,
    legs: Vec<PathSegment>,
    fans: Option<Box<[Fan; 2]>>,
) -> FlowPath {
    let within = || legs.iter().any(|leg| network.chooses_within(*leg));
    let fans = fans.or_else(|| within().then(|| Box::new(network.there_and_back(&legs))));
    let route: Vec<Hop> = legs.iter().flat_map(|leg| network.hops(*leg)).collect();
    let chosen = fans.iter().flat_map(|fans| &fans[0].at).flat_map(|(_, legs)| legs);
    let path_mtu = legs.iter().chain(chosen).map(|leg| network.mtu(*leg)).min();
    FlowPath {
        name: name.into(),
        from: route[0].from,
        to: route[route.len() - 1].to,
        circuit: None,
        forward: true,
        mtu: network.mtu(legs[0]),
        path_mtu: path_mtu.expect("a route has links"),
        legs,
        fans,
        discovers_mtu: false,
        icmp: Box::default(),
        first_source: 0,
        cells: None,
        branches: Box::default(),
        members: Box::default(),
        group: None,
        route,
    }
}

fn line_of(links: &[LinkEnds], hop: Hop) -> Line {
    let link = &links[hop.link];
    if link.ends[0] == hop.from { link.lines[0] } else { link.lines[1] }
}

fn slot(line: Line) -> Pace {
    match line.framing {
        Framing::Cells { slot } => slot,
        _ => panic!("the line carries no cells"),
    }
}

/// Returns the pace of cells for a rate on a line.
fn pace(rate: FramedRate, counts: Option<Basis>, line: Line) -> Option<Pace> {
    rate::pace(rate, counts, line.rate, slot(line))
}

/// Returns the route with the fewest links, over ATM links and through switches. Among equals it is the one whose links come first in the file.
fn route(links: &[LinkEnds], is_switch: impl Fn(NodeId) -> bool, from: NodeId, to: NodeId) -> Vec<Hop> {
    // Breadth-first search with links in order finds, for each node, the first of the shortest routes.
    let mut routes = VecDeque::from([(from, Vec::new())]);
    let mut reached = vec![from];
    while let Some((node, route)) = routes.pop_front() {
        if node == to {
            return route;
        }
        if !is_switch(node) && node != from {
            continue;
        }
        for (link, ends) in links.iter().enumerate().filter(|(_, link)| link.medium.is_atm()) {
            for (here, there) in [(ends.ends[0], ends.ends[1]), (ends.ends[1], ends.ends[0])] {
                if here == node && !reached.contains(&there) {
                    reached.push(there);
                    let mut longer = route.clone();
                    longer.push(Hop { link, from: here, to: there });
                    routes.push_back((there, longer));
                }
            }
        }
    }
    panic!("no route from node {from} to node {to}")
}
