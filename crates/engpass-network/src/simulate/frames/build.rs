//! From a topology to ports and routes for frames.

use engpass_model::switch::Switch;
use engpass_model::wire::Framing;
use engpass_testbed::topology::{Hop, Leg, NodeKind};
use engpass_testbed::{Testbed, Topology};

use super::{Engine, FramePort, Frames, Route, Step};
use crate::simulate::SimError;

/// Index of the transmitter of a hop.
fn port_of(topology: &Topology, hop: &Hop) -> usize {
    hop.link * 2 + usize::from(topology.links[hop.link].ends[0] != hop.from)
}

impl Frames {
    /// Ports, routers and routes of a testbed at time zero.
    pub(in crate::simulate) fn new(
        testbed: &Testbed,
        topology: &Topology,
        seed: u64,
    ) -> Result<Self, SimError> {
        let mut frames = Self::default();
        for link in &topology.links {
            for end in [0, 1] {
                if matches!(link.framing, Framing::Cells { .. }) {
                    frames.ports.push(None);
                    continue;
                }
                let (from, to) = (link.ends[end], link.ends[1 - end]);
                let latency = match topology.kind(to) {
                    NodeKind::Switch(switch) => match &testbed.switches[switch] {
                        Switch::Ethernet(switch) => switch.latency.0,
                        Switch::Atm(_) => 0,
                    },
                    _ => 0,
                };
                // Parallel links between two nodes have lotteries of their own.
                let name = format!("{}.{}", link.name, topology.nodes[from]);
                frames.ports.push(Some(FramePort::new(link, end, &name, seed, latency)));
            }
        }
        for (index, router) in testbed.routers.values().enumerate() {
            let node = topology.hosts + topology.switches + index;
            frames.routers.push(Engine { node, per_packet: router.per_packet.0, ..Engine::default() });
        }
        for (flow, traffic) in topology.flows.iter().zip(testbed.traffic.values()) {
            let back: Vec<Leg> = flow.legs.iter().rev().map(|leg| leg.back()).collect();
            for legs in [&flow.legs, &back] {
                let mut route = Route {
                    steps: Vec::new(),
                    priority: traffic.priority(),
                    ttl: traffic.ttl().unwrap_or(u8::MAX),
                };
                if flow.circuit.is_none() {
                    for leg in legs {
                        route.steps.push(step(topology, leg, &flow.name)?);
                    }
                }
                frames.routes.push(route);
            }
        }
        Ok(frames)
    }
}

fn step(topology: &Topology, leg: &Leg, flow: &str) -> Result<Step, SimError> {
    let Leg::Link(hop) = leg else {
        return Err(SimError::Unsupported(format!(
            "traffic `{flow}` crosses a circuit between routers, and `simulate` carries circuits only from host to host so far; `limit` answers for it"
        )));
    };
    let router = match topology.kind(hop.from) {
        NodeKind::Router(router) => Some(router),
        _ => None,
    };
    Ok(Step { port: port_of(topology, hop), router, mtu: topology.links[hop.link].mtu })
}
