//! Keepalives of GRE tunnels (docs/model.md, "Tunnels").
//!
//! A keepalive has a route like any packet: through the tunnel, and back to its router outside it. In the ledger it has a flow direction, behind those of IGMP.

use engpass_ledger::{FlowDirection, FlowDirectionLine};
use engpass_model::forward::Headers;
use engpass_model::tunnel::Keepalive;
use engpass_model::tunnel::gre::{KEEPALIVE_BYTES, KEEPALIVE_PRIORITY, KEEPALIVE_TTL};
use engpass_model::wire::ip::MIN_MTU;
use engpass_testbed::topology::{NodeId, PathSegment};
use engpass_testbed::{Testbed, Topology};

use super::choices::Choices;
use super::control::{ControlKind, ControlPacket};
use super::routes::{Known, Length, RouteRequest};
use super::verdict::tunnel_of;
use super::{Frames, Route, RouteLine};
use crate::simulate::event_queue::Event;
use crate::simulate::flow_counters::DropLocation;
use crate::simulate::{Network, SimError};

/// All ends of tunnels that send keepalives, sorted by tunnel direction.
#[derive(Debug, Default)]
pub(in crate::simulate) struct Keepalives {
    ends: Vec<KeepaliveEnd>,
}

/// An end of a tunnel that sends keepalives.
#[derive(Debug)]
struct KeepaliveEnd {
    /// The tunnel direction that the keepalives enter.
    direction: u32,
    router: NodeId,
    route: u32,
    config: Keepalive,
    /// Number of keepalives sent since the last one came back.
    unanswered: u64,
    is_down: bool,
}

/// Position of the first end for ties: above those of IGMP.
const POSITION: usize = (1 << 27) + (1 << 26);

impl Keepalives {
    /// Returns true if no tunnel has keepalives.
    pub(in crate::simulate) fn is_idle(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of flow directions for keepalives in the ledger: two for each end, of which the second is unused.
    pub(in crate::simulate) fn count_directions(&self) -> usize {
        2 * self.ends.len()
    }

    /// Returns the name of an end, as `TUNNEL at ROUTER`.
    pub(in crate::simulate) fn name_of_end(&self, end: usize, topology: &Topology) -> String {
        let KeepaliveEnd { direction, router, .. } = &self.ends[end];
        format!("{} at {}", topology.tunnels[tunnel_of(*direction).0].name, topology.nodes[*router])
    }

    /// Returns the tunnel and direction of the keepalives of each end.
    pub(in crate::simulate) fn all(&self) -> impl Iterator<Item = (usize, bool)> {
        self.ends.iter().map(|end| tunnel_of(end.direction))
    }
}

impl Frames {
    /// Adds the routes of keepalives: those with decision steps if `branched` is true, otherwise those without.
    pub(super) fn add_keepalive_ways(
        &mut self,
        testbed: &Testbed,
        topology: &Topology,
        branched: bool,
    ) -> Result<(), SimError> {
        for direction in 0..2 * topology.tunnels.len() as u32 {
            let (tunnel, forward) = tunnel_of(direction);
            let path = &topology.tunnels[tunnel];
            let Some(config) = path.config.keepalive.filter(|_| path.has_keepalives()) else { continue };
            let [router, _] = path.from_to(forward);
            let request = RouteRequest {
                testbed,
                topology,
                fan: &path.keepalive_fan(tunnel, forward),
                ends: (router, router),
                // Outside the tunnel it shows the addresses of an outer packet that goes back.
                heads: self.tunnels.directions[direction as usize ^ 1].heads,
                length: Length::Constant(KEEPALIVE_BYTES),
                mtu: MIN_MTU,
            };
            let (ttl, priority) = (KEEPALIVE_TTL, KEEPALIVE_PRIORITY);
            let (first, route) = (self.steps.len(), Route { first: 0, hops: 0, ttl, priority });
            if let Some(route) = self.add_way(&request, route, branched, &mut Known::new())? {
                self.work_at_ends(testbed, topology, router, first);
                self.keepalives.ends.push(KeepaliveEnd {
                    direction,
                    router,
                    route,
                    config,
                    unanswered: 0,
                    is_down: false,
                });
            }
        }
        self.keepalives.ends.sort_by_key(|end| end.direction);
        Ok(())
    }

    /// Returns the headers that policies see in keepalives outside their tunnel: those of outer packets of the other direction.
    pub(super) fn keepalive_heads(&self, end: usize) -> Headers {
        self.tunnels.directions[self.keepalives.ends[end].direction as usize ^ 1].heads
    }

    /// Returns the flow directions of keepalives for the ledger.
    pub(in crate::simulate) fn keepalive_directions<'a>(
        &'a self,
        line: impl Fn(RouteLine) -> FlowDirectionLine + 'a,
    ) -> impl Iterator<Item = Option<FlowDirection<'a>>> {
        self.keepalives.ends.iter().flat_map(move |end| {
            let lines = self.lines_of(&[], end.route, MIN_MTU).into_iter().map(&line).collect();
            self.ledger_directions(MIN_MTU, lines)
        })
    }
}

impl Choices {
    /// Records in all policies of a node that a tunnel that begins there is up or down.
    fn set_tunnel_state(&mut self, router: NodeId, (tunnel, forward): (usize, bool), up: bool) {
        let entry = PathSegment::Tunnel { tunnel, forward };
        for group in self.groups.iter_mut().filter(|group| group.node == router) {
            for (leg, member) in group.legs.iter().zip(&mut group.members) {
                if *leg == entry {
                    (member.up, member.carrier) = (up, up);
                }
            }
        }
    }
}

impl Network {
    /// Schedules the first keepalives of all tunnels at `from`.
    pub(super) fn begin_keepalives(&mut self, from: u64) {
        for end in 0..self.frames.keepalives.ends.len() {
            self.events.push(from, POSITION + end, Event::KeepaliveTimer(end as u32));
        }
    }

    /// Handles the timer of an end: it may take the tunnel for down, and sends its next keepalive.
    pub(in crate::simulate) fn on_keepalive_timer(&mut self, end: u32) {
        let this = &mut self.frames.keepalives.ends[end as usize];
        let next = self.now.saturating_add(this.config.period.0);
        let is_overdue = !this.is_down && this.unanswered >= this.config.retries;
        this.unanswered += 1;
        if is_overdue {
            self.set_tunnel_state(end as usize, false);
        }
        if next <= self.end {
            self.events.push(next, POSITION + end as usize, Event::KeepaliveTimer(end));
        }
        self.send_keepalive(end as usize);
    }

    /// Passes a keepalive to the engine of the router at one end of its tunnel.
    fn send_keepalive(&mut self, end: usize) {
        let KeepaliveEnd { route, router, .. } = self.frames.keepalives.ends[end];
        let (_, packet) = self.begin_control(
            ControlKind::Keepalive,
            ControlPacket {
                sender: end,
                place: self.frames.routes[route as usize].first,
                bytes: KEEPALIVE_BYTES,
                // The router decrements the TTL, although it does not forward the keepalive.
                ttl: KEEPALIVE_TTL + 1,
                priority: KEEPALIVE_PRIORITY,
            },
        );
        if let Some(trace) = &mut self.shared.trace {
            let router = router - self.frames.engines[0].node;
            let (ttl, priority) = (KEEPALIVE_TTL, KEEPALIVE_PRIORITY);
            trace.made(packet, router, (KEEPALIVE_BYTES as u32, ttl, priority), None);
        }
        self.receive_or_forward(packet);
    }

    /// Handles a keepalive that has come back: the end takes the tunnel for up.
    pub(super) fn take_keepalive(&mut self, end: usize) {
        let this = &mut self.frames.keepalives.ends[end];
        this.unanswered = 0;
        if this.is_down {
            self.set_tunnel_state(end, true);
        }
    }

    /// Records that an end takes its tunnel for up or down: policies at its router use the tunnel only while it is up.
    fn set_tunnel_state(&mut self, end: usize, up: bool) {
        let this = &mut self.frames.keepalives.ends[end];
        this.is_down = !up;
        self.frames.choices.set_tunnel_state(this.router, tunnel_of(this.direction), up);
        if let Some(trace) = &mut self.shared.trace {
            trace.tunnel_changed(self.now, end, !up);
        }
    }

    /// Returns the end whose keepalive a datagram is; `None` for other datagrams.
    pub(super) fn keepalive_end(&self, datagram: u32) -> Option<usize> {
        let ends = self.frames.keepalives.ends.len();
        if ends == 0 {
            return None;
        }
        let first = self.frames.first_control_direction(ControlKind::Keepalive, self.endpoints.len());
        let direction = self.shared.datagrams[datagram].to.get()? as usize;
        direction.checked_sub(first).map(|ahead| ahead / 2).filter(|end| *end < ends)
    }

    /// Drops a packet at the entry of a tunnel that its router takes for down, unless it is a keepalive of this tunnel. Returns true if the packet may enter.
    pub(super) fn may_enter_tunnel(&mut self, id: u32, direction: u32) -> bool {
        let mut ends = self.frames.keepalives.ends.iter();
        let Some(end) = ends.position(|end| end.direction == direction && end.is_down) else { return true };
        let datagram = self.shared.datagrams.packet(id).datagram;
        if self.keepalive_end(datagram) == Some(end) {
            return true;
        }
        let router = self.frames.keepalives.ends[end].router;
        self.drop_packet(id, DropLocation::TunnelDown(router), self.now);
        false
    }
}
