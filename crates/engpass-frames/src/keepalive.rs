//! Keepalives of GRE tunnels (docs/model.md, "Tunnels").
//!
//! A keepalive goes through the tunnel to its other end, and from there outside the tunnel back to the router that sent it. This way is one route. Each end that
//! sends keepalives has such a route, and a flow direction behind those of IGMP.

use engpass_model::forward::Headers;
use engpass_model::tunnel::Keepalive;
use engpass_model::tunnel::gre::{KEEPALIVE_BYTES, KEEPALIVE_PRIORITY, KEEPALIVE_TTL};
use engpass_model::wire::ip::MIN_MTU;
use engpass_testbed::topology::{NodeId, PathSegment};
use engpass_testbed::{Testbed, Topology};

use super::routes::{Known, Length, RouteRequest};
use super::verdict::tunnel_of;
use super::{Frames, Route, TooManyPaths};

/// All ends of tunnels that send keepalives, sorted by tunnel direction.
#[derive(Debug, Default)]
pub struct Keepalives {
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

impl Keepalives {
    /// Returns true if no tunnel has keepalives.
    pub fn is_idle(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of flow directions for keepalives: two for each end, of which the second is unused.
    pub(crate) fn count_directions(&self) -> usize {
        2 * self.ends.len()
    }

    /// Returns the number of ends.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the router at an end, and the route of its keepalives.
    pub fn sender(&self, end: usize) -> (NodeId, u32) {
        let KeepaliveEnd { router, route, .. } = self.ends[end];
        (router, route)
    }

    /// Returns the routes of the keepalives of all ends.
    pub fn routes(&self) -> impl Iterator<Item = u32> {
        self.ends.iter().map(|end| end.route)
    }

    /// Returns the end that takes the tunnel of this direction for down, and its router.
    pub fn down_end(&self, direction: u32) -> Option<(usize, NodeId)> {
        let mut ends = self.ends.iter().enumerate();
        let (end, this) = ends.find(|(_, end)| end.direction == direction && end.is_down)?;
        Some((end, this.router))
    }

    /// Returns the name of an end, as `TUNNEL at ROUTER`.
    pub fn name_of_end(&self, end: usize, topology: &Topology) -> String {
        let KeepaliveEnd { direction, router, .. } = &self.ends[end];
        format!("{} at {}", topology.tunnels[tunnel_of(*direction).0].name, topology.nodes[*router])
    }

    /// Returns, for each end, the tunnel and the direction in which its keepalives enter it.
    pub fn all(&self) -> impl Iterator<Item = (usize, bool)> {
        self.ends.iter().map(|end| tunnel_of(end.direction))
    }
}

impl Frames {
    /// Adds the routes of keepalives: those with decision steps if `branched` is true, otherwise those without.
    pub(crate) fn add_keepalive_ways(
        &mut self,
        testbed: &Testbed,
        topology: &Topology,
        branched: bool,
    ) -> Result<(), TooManyPaths> {
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
    pub fn keepalive_heads(&self, end: usize) -> Headers {
        self.tunnels.directions[self.keepalives.ends[end].direction as usize ^ 1].heads
    }

    /// Records that an end sends a keepalive at `now`. Returns the instant of the next one, and true if the end now takes its tunnel for down: policies at
    /// its router no longer use the tunnel.
    pub fn keepalive_sent(&mut self, end: usize, now: u64) -> (u64, bool) {
        let this = &mut self.keepalives.ends[end];
        let next = now.saturating_add(this.config.period.0);
        let goes_down = !this.is_down && this.unanswered >= this.config.retries;
        this.unanswered += 1;
        if goes_down {
            self.set_tunnel_state(end, false);
        }
        (next, goes_down)
    }

    /// Records that a keepalive has come back to its end. Returns true if the end now takes its tunnel for up, so that policies at its router use it.
    pub fn keepalive_returned(&mut self, end: usize) -> bool {
        let this = &mut self.keepalives.ends[end];
        this.unanswered = 0;
        let comes_up = this.is_down;
        if comes_up {
            self.set_tunnel_state(end, true);
        }
        comes_up
    }

    fn set_tunnel_state(&mut self, end: usize, up: bool) {
        let this = &mut self.keepalives.ends[end];
        this.is_down = !up;
        let (tunnel, forward) = tunnel_of(this.direction);
        self.choices.set_members(this.router, up, |leg| *leg == PathSegment::Tunnel { tunnel, forward });
    }
}
