//! Lone packets on a route: the time that packets take in an otherwise empty network, step by step.

use engpass_model::idle::{self, LonePacket};
use engpass_model::wire::Encapsulation;

use super::{Frames, Route, Step, Verdict};

/// Context in which lone packets cross the steps of a route.
#[derive(Clone, Copy)]
pub struct Crossing<'a> {
    /// Takes lone packets over a circuit direction, in which they have this encapsulation.
    pub circuits: &'a dyn Fn(u32, Encapsulation, &mut [LonePacket]),
    /// The packets go to a multicast group.
    pub is_multicast: bool,
}

impl Frames {
    /// Returns the index of the step at the end of a route without decision steps.
    pub fn end_of(&self, route: u32) -> u32 {
        let Route { first, hops, .. } = self.routes[route as usize];
        if hops > 0 {
            return first + u32::from(hops);
        }
        let steps = (first..).zip(&self.steps[first as usize..]);
        steps.into_iter().find(|(_, step)| step.is_end()).expect("a route has an end").0
    }

    /// Takes lone packets over routes without decision steps, one route after the other.
    pub fn cross_alone(&self, routes: &[u32], crossing: Crossing<'_>, packets: &mut Vec<LonePacket>) {
        let mut arrived = None;
        for route in routes {
            let first = self.routes[*route as usize].first;
            for place in first..self.end_of(*route) {
                self.take_step(place, crossing, &mut arrived, packets);
            }
        }
    }

    /// Takes lone packets over the route that ends at the step `end`.
    pub fn cross_alone_to(&self, end: u32, crossing: Crossing<'_>, packets: &mut Vec<LonePacket>) {
        let mut arrived = None;
        if !self.is_branched(end) {
            let before = self.steps[..end as usize].iter().rposition(Step::is_end);
            for place in before.map_or(0, |before| before as u32 + 1)..end {
                self.take_step(place, crossing, &mut arrived, packets);
            }
            return;
        }
        let places: Vec<u32> = self.carried(end, 0).collect();
        for place in places.into_iter().rev() {
            self.take_step(place, crossing, &mut arrived, packets);
        }
    }

    /// Takes lone packets over a step. `arrived` is the step to which they have come over a line since a router handled them.
    fn take_step(
        &self,
        place: u32,
        crossing: Crossing<'_>,
        arrived: &mut Option<u32>,
        packets: &mut Vec<LonePacket>,
    ) {
        let step = self.steps[place as usize];
        if step.is_routed()
            && let Some(arrived) = arrived.take()
        {
            self.pass_engines(step.router, (arrived, crossing.is_multicast), packets);
        }
        let mtu = u64::from(step.mtu);
        // Where a router resolves addresses, it fragments packets before it holds them.
        if matches!(step.verdict, Verdict::Out(_) | Verdict::Circuit(_) | Verdict::Hold(_))
            && step.is_routed()
        {
            idle::cut(packets, mtu);
        }
        match step.verdict {
            Verdict::Wrap(direction) => {
                let added = self.tunnels.directions[direction as usize].added;
                idle::enter_tunnel(packets, mtu, added.into());
            }
            Verdict::Unwrap(_) => idle::leave_tunnel(packets),
            Verdict::Circuit(entry) => {
                let entry = &self.entries[entry as usize];
                (crossing.circuits)(entry.vc, entry.encapsulation, packets);
                *arrived = Some(place + 1);
            }
            Verdict::Out(port) => {
                let line = &self.ports[port as usize];
                idle::cross_line(packets, line.lone_line(), |ip| line.line_bytes(ip));
                *arrived = Some(place + 1);
            }
            Verdict::Hold(_) | Verdict::Choose(_) | Verdict::Result(_) | Verdict::Up => {}
        }
    }
}
