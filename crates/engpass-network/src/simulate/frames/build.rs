//! From a topology to ports and routes for frames.

use engpass_model::random::Stream;
use engpass_model::switch::Switch;
use engpass_testbed::topology::{Hop, Leg, LinkEnds, NodeKind};
use engpass_testbed::{Testbed, Topology};

use super::choices::BRANCH;
use super::{END, Engine, FramePort, Frames, Route, Step, Tells};
use crate::simulate::SimError;
use crate::simulate::tally::Window;

/// Index of the transmitter of a hop.
pub(super) fn port_of(topology: &Topology, hop: &Hop) -> usize {
    hop.link * 2 + usize::from(topology.links[hop.link].ends[0] != hop.from)
}

impl Frames {
    /// Ports, routers and routes of a testbed at time zero.
    pub(in crate::simulate) fn new(
        testbed: &Testbed,
        topology: &Topology,
        seed: u64,
        window: Window,
        outside: bool,
    ) -> Result<Self, SimError> {
        let mut frames = Self { asks_everywhere: outside, ..Self::default() };
        let carries = |link: &&LinkEnds| !link.medium.is_atm();
        frames.ports.reserve_exact(2 * topology.links.iter().filter(carries).count());
        frames.places.reserve_exact(2 * topology.links.len());
        frames.routes.reserve_exact(2 * topology.flows.len());
        for link in &topology.links {
            for end in [0, 1] {
                if !carries(&link) {
                    frames.places.push(END);
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
                let lottery =
                    |of: &str| Stream::new(seed, format_args!("{of}.{}.{}", link.name, topology.nodes[from]));
                let number = frames.places.len() as u32;
                let mut port = FramePort::new(link, (number, end), latency, lottery);
                if let Some(from) = window.from {
                    port.opens_at(from);
                }
                frames.places.push(frames.ports.len() as u32);
                frames.ports.push(port);
            }
        }
        for (index, router) in testbed.routers.values().enumerate() {
            let node = topology.hosts + topology.switches + index;
            frames.routers.push(Engine { node, per_packet: router.per_packet.0, ..Engine::default() });
        }
        for (flow, traffic) in topology.flows.iter().zip(testbed.traffic.values()) {
            let back: Vec<Leg> = flow.legs.iter().rev().map(|leg| leg.back()).collect();
            for legs in [&flow.legs, &back] {
                let first = frames.steps.len();
                if flow.circuit.is_none() {
                    for leg in legs {
                        let step = frames.step(topology, leg, &flow.name)?;
                        let slot = (frames.steps.len() - first) as u16;
                        frames.steps.push(Step { slot, ..step });
                    }
                }
                let hops = frames.steps.len() - first;
                frames.steps.push(Step { slot: hops as u16, ..Step::MARK });
                let first = frames.share_steps(first);
                frames.routes.push(Route {
                    first: first as u32,
                    hops: u16::try_from(hops).expect("a way has fewer lines than 65 536"),
                    priority: traffic.priority(),
                    ttl: traffic.ttl().unwrap_or(u8::MAX),
                });
            }
        }
        frames.add_ways(testbed, topology)?;
        frames.steps.shrink_to_fit();
        frames.find_told();
        Ok(frames)
    }

    /// Flows one behind the other often go the same way: the steps from `first` on are not kept if they are those of one of the
    /// last ways. Returns where they stand.
    fn share_steps(&mut self, first: usize) -> usize {
        let own = &self.steps[first..];
        let mut recent = self.routes.iter().rev().take(4).map(|route| route.first as usize);
        let same = recent.find(|from| self.steps[*from..first].starts_with(own));
        if same.is_some() {
            self.steps.truncate(first);
        }
        same.unwrap_or(first)
    }

    /// Find the ports to which packets come one after the other from one line: that line tells them what comes.
    fn find_told(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Before {
            Nothing,
            One(u32),
            Several,
        }
        let mut before = vec![Before::Nothing; self.ports.len()];
        for pair in self.steps.windows(2).filter(|pair| pair[1].is_line()) {
            let from = pair[0].port;
            let this = &mut before[pair[1].port as usize];
            *this = match *this {
                // The line whose packets are asked where they go on tells nothing.
                _ if from == BRANCH => Before::Several,
                same if from == END => same,
                Before::Nothing => Before::One(from),
                Before::One(port) if port == from => Before::One(port),
                _ => Before::Several,
            };
        }
        for place in 1..self.steps.len() {
            let (from, this) = (self.steps[place - 1], self.steps[place]);
            let both = from.is_line() && this.is_line();
            let from = from.port;
            if !both || before[this.port as usize] != Before::One(from) {
                continue;
            }
            let in_order = self.ports[from as usize].is_in_order();
            if in_order && !this.takes_time && self.ports[this.port as usize].decides_on_arrival() {
                self.steps[place - 1].tells = Tells::Port;
            }
        }
    }

    /// At the end of a route is a host with one endpoint and nothing else: its last line tells it what comes.
    pub(in crate::simulate) fn tell_host(&mut self, route: u32) {
        let Route { first, hops, .. } = self.routes[route as usize];
        let last = first as usize + usize::from(hops);
        // A route with questions has no hops of its own.
        if hops > 0 && self.ports[self.steps[last - 1].port as usize].is_in_order() {
            self.steps[last - 1].tells = Tells::Host;
        }
    }

    pub(super) fn step(&self, topology: &Topology, leg: &Leg, flow: &str) -> Result<Step, SimError> {
        let Leg::Link(hop) = leg else {
            return Err(SimError::Unsupported(format!(
                "traffic `{flow}` crosses a circuit between routers, and `simulate` carries circuits only from host to host so far; `limit` answers for it"
            )));
        };
        let router = match topology.kind(hop.from) {
            NodeKind::Router(router) => router as u32,
            _ => END,
        };
        let mtu = u32::try_from(topology.links[hop.link].mtu).unwrap_or(u32::MAX);
        let takes_time = self.routers.get(router as usize).is_some_and(|engine| engine.per_packet > 0);
        Ok(Step {
            port: self.places[port_of(topology, hop)],
            router,
            mtu,
            slot: 0,
            tells: Tells::Nobody,
            takes_time,
        })
    }
}
