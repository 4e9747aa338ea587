//! A point for drawings and listings: nodes, links, circuits, tunnels, bonds and flows by name.

use engpass_outcome::Step;
use schemars::JsonSchema;
use serde::Serialize;

use crate::campaign::Point;
use crate::topology::{Hop, NodeKind};

/// Nodes, links, circuits, tunnels, bonds and flows of a point. Runs keep it in the store. Readers ignore unknown keys.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Drawing {
    /// Hosts, switches and routers.
    #[serde(default)]
    pub nodes: Vec<DrawnNode>,
    /// Links, in the order of the file.
    #[serde(default)]
    pub links: Vec<DrawnLink>,
    /// Circuits, in the order of the file.
    #[serde(default)]
    pub circuits: Vec<DrawnCircuit>,
    /// Tunnels, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnels: Vec<DrawnTunnel>,
    /// Bonds that are up, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bonds: Vec<DrawnBond>,
    /// Traffic, in the order of the file.
    #[serde(default)]
    pub flows: Vec<DrawnFlow>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DrawnNode {
    /// Name of the node.
    pub name: String,
    /// Kind of the node: `host`, `router`, `atm switch` or `ethernet switch`.
    pub kind: String,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DrawnLink {
    /// Name of the link.
    pub name: String,
    /// The two nodes that the link connects.
    pub ends: [String; 2],
    /// Medium of the link, as in the file.
    pub medium: String,
    /// Line rate at each end in bit/s; empty in runs of old versions.
    #[serde(default)]
    pub rates_bit_per_s: Vec<u64>,
}

/// A circuit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DrawnCircuit {
    /// Name of the circuit.
    pub name: String,
    /// Node at which the circuit begins.
    pub from: String,
    /// Node at which the circuit ends.
    pub to: String,
    /// The nodes that the circuit crosses.
    #[serde(default)]
    pub route: Vec<String>,
}

/// A tunnel.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DrawnTunnel {
    /// Name of the tunnel.
    pub name: String,
    /// Kind of the outer header, and the tunnel that carries this one, if any.
    pub header: String,
    /// The routers at the ends of the tunnel.
    pub ends: [String; 2],
    /// MTU of the tunnel in bytes, without the outer headers.
    pub mtu_bytes: u64,
    /// The nodes that the outer packets cross.
    #[serde(default)]
    pub route: Vec<String>,
}

/// A bond.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DrawnBond {
    /// Name of the bond.
    pub name: String,
    /// The host or switch that has the bond as an interface.
    pub node: String,
    /// The node to which the bond's links lead.
    pub to: String,
    /// The bond's links, in the order in which the mode counts them.
    pub links: Vec<String>,
    /// Kind of the bond's mode.
    pub mode: String,
}

/// A traffic table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DrawnFlow {
    /// Name of the flow.
    pub name: String,
    /// Kind of traffic.
    #[serde(default)]
    pub kind: String,
    /// Sending host.
    pub from: String,
    /// Receiving host; for a multicast group the first one.
    pub to: String,
    /// Receiving hosts of a multicast group, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receivers: Vec<String>,
    /// The nodes that the flow crosses; for a multicast group those to the first receiver.
    #[serde(default)]
    pub route: Vec<String>,
    /// If routers or bonds choose among several paths, or there are several receivers: the links that its packets cross, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<DrawnStep>,
}

/// A link that packets of a flow cross, in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DrawnStep {
    /// Name of the link.
    pub link: String,
    /// Node that sends on the link.
    pub from: String,
    /// Node that receives from the link.
    pub to: String,
}

/// Returns the drawing of a point.
pub fn drawing(point: &Point) -> Drawing {
    let (testbed, topology) = (&point.testbed, &point.topology);
    let node = |(index, name): (usize, &String)| {
        let kind = match topology.kind(index) {
            NodeKind::Host(_) => "host".to_owned(),
            NodeKind::Switch(switch) => format!("{} switch", testbed.switches[switch].kind()),
            NodeKind::Router(_) => "router".to_owned(),
        };
        DrawnNode { name: name.clone(), kind }
    };
    let links = topology.links.iter().zip(testbed.links.values()).map(|(link, config)| DrawnLink {
        name: link.name.clone(),
        ends: link.ends.map(|end| topology.nodes[end].clone()),
        medium: crate::plan::word(config.medium),
        rates_bit_per_s: link.lines.map(|line| line.rate).to_vec(),
    });
    let nodes_of = |route: &[Hop]| -> Vec<String> {
        let from = route.first().map(|hop| hop.from);
        let nodes = from.into_iter().chain(route.iter().map(|hop| hop.to));
        nodes.map(|node| topology.nodes[node].clone()).collect()
    };
    let circuits =
        testbed.circuits.iter().zip(&topology.circuits).map(|((name, circuit), path)| DrawnCircuit {
            name: name.clone(),
            from: circuit.from.clone(),
            to: circuit.to.clone(),
            route: nodes_of(&path.route),
        });
    let tunnels = topology.tunnels.iter().map(|path| DrawnTunnel {
        name: path.name.clone(),
        header: match &path.config.over {
            Some(over) => format!("{} over {over}", path.config.header.kind()),
            None => path.config.header.kind().to_owned(),
        },
        ends: path.ends.map(|end| topology.nodes[end].clone()),
        mtu_bytes: path.mtu,
        route: nodes_of(&path.way(true).route),
    });
    let bonds = topology.bonds.iter().map(|path| DrawnBond {
        name: path.name.clone(),
        node: topology.nodes[path.node].clone(),
        to: topology.nodes[path.peer].clone(),
        links: path.config.links.clone(),
        mode: path.config.mode.kind().to_owned(),
    });
    let steps_of = |flow: usize| -> Vec<DrawnStep> {
        let mut steps: Vec<DrawnStep> = Vec::new();
        for Step { link, from, to } in topology.paths(testbed, flow).into_iter().flat_map(|path| path.steps) {
            let step = DrawnStep { link, from, to };
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        steps
    };
    let flows =
        testbed.traffic.iter().zip(&topology.flows).enumerate().map(|(flow, ((name, traffic), path))| {
            let (from, to) = traffic.ends();
            DrawnFlow {
                name: name.clone(),
                kind: traffic.kind().to_owned(),
                from: from.to_owned(),
                to: to.to_owned(),
                receivers: match &traffic.receivers()[..] {
                    [_] => Vec::new(),
                    several => several.iter().map(|host| (*host).to_owned()).collect(),
                },
                route: nodes_of(&path.route),
                steps: if path.fans.is_some() || !path.branches.is_empty() {
                    steps_of(flow)
                } else {
                    Vec::new()
                },
            }
        });
    Drawing {
        nodes: topology.nodes.iter().enumerate().map(node).collect(),
        links: links.collect(),
        circuits: circuits.collect(),
        tunnels: tunnels.collect(),
        bonds: bonds.collect(),
        flows: flows.collect(),
    }
}
