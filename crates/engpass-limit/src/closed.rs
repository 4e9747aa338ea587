//! Places that let nothing through: tunnels and buffers that packets are too long for, and routers at which their TTL ends.

use engpass_outcome::BottleneckKind;
use engpass_testbed::topology::{NodeId, NodeKind};
use engpass_testbed::{Spread, Topology};

use super::demand::Builder;
use super::need::{Demand, Need, Place, Resource, Spot, named};
use super::piece::PathLink;
use super::way::{There, Unit, frame_bits};

impl<'a> Builder<'a> {
    /// Adds the limit of a tunnel that drops all datagrams of the lane that come to it, because they are too long. If only some packets to a line meet such a
    /// tunnel, the line stays open, and the tunnel is listed in `refused`.
    pub(super) fn refusal(&mut self, demand: &mut Demand<'a>, piece: &PathLink, bits: Need) {
        let Some((tunnel, all)) = piece.refused else { return };
        if !all {
            demand.refused.push(tunnel);
            return;
        }
        let place = Place { back: false, level: piece.level, spot: Spot::Leg(piece.hop, piece.leg) };
        let closed = self.resources.get(Resource::Refusing(tunnel), || 0.0);
        let name = &self.topology.tunnels[tunnel].name;
        let bottleneck = named(BottleneckKind::Tunnel, name, format!("tunnel `{name}`"));
        if let Some(limiter) = demand.add_bounded(bottleneck, (closed, bits), 0.0, Some(place)) {
            limiter.share = piece.share;
        }
    }

    /// Adds the limit of a buffer that is shorter than a frame, for `bits` of frames: it drops the frame even if it is empty. `longest` is the longest frame of
    /// a unit in bits, `shortest` the shortest frame of the flow. A buffer on a cell link counts cells, and has room for one.
    pub(super) fn short_buffer(
        &mut self,
        demand: &mut Demand<'a>,
        piece: &PathLink,
        back: bool,
        bits: Need,
        [longest, shortest]: [f64; 2],
    ) {
        let (None, hop) = (piece.circuit(), piece.hop) else { return };
        let link = &self.topology.links[hop.link];
        let Some(queue) = &link.queues[link.end_of(hop.from)] else { return };
        let room = queue.limit().bytes as f64 * 8.0;
        if longest <= room {
            return;
        }
        let closed = self.resources.get(Resource::Full(hop.link, hop.from), || 0.0);
        let title = format!("buffer of `{}` on link `{}`", self.topology.nodes[hop.from], link.name);
        // Shorter frames may fill the line.
        let line = link.line_from(hop.from).rate as f64 * demand.span.seconds() + longest;
        let supply = if shortest <= room { line } else { 0.0 };
        // If no acknowledgement has room, no connection opens.
        let need = Need { ahead: if supply > 0.0 { bits.ahead } else { 0.0 }, ..bits };
        let place = Place { back, level: piece.level, spot: Spot::Leg(hop, piece.leg) };
        let bottleneck = named(BottleneckKind::Buffer, &link.name, title);
        if let Some(limiter) = demand.add_bounded(bottleneck, (closed, need), supply, Some(place)) {
            limiter.share = piece.share;
        }
    }

    /// Adds the limit of a router that drops all packets of a lane because their TTL ends there.
    pub(super) fn expiry(&mut self, demand: &mut Demand<'a>, unit: Unit, there: &There) {
        let Some(ttl) = demand.traffic.ttl() else { return };
        let Some(stop) = expires_at(self.topology, &demand.lane.there, ttl) else { return };
        let node = demand.lane.there.stops[stop].node;
        let Some(piece) = there.pieces.iter().find(|piece| piece.hop.to == node) else { return };
        let need = unit.need(demand, piece, frame_bits);
        let place = Place { back: false, level: there.arriving[stop].level, spot: Spot::Node(node) };
        let closed = self.resources.get(Resource::Expiry(node), || 0.0);
        let name = &self.topology.nodes[node];
        let bottleneck = named(BottleneckKind::TimeToLive, name, format!("TTL at router `{name}`"));
        demand.add_bounded(bottleneck, (closed, need), 0.0, Some(place));
    }
}

/// Returns the stop of a router at which the TTL of packets ends; `None` if some of them may arrive. Every router decrements it and drops a packet whose TTL
/// becomes zero (RFC 1812 section 5.3.1). Inside a tunnel the outer packets have a TTL of their own.
fn expires_at(topology: &Topology, spread: &Spread, ttl: u8) -> Option<usize> {
    let is_router = |node: NodeId| matches!(topology.kind(node), NodeKind::Router(_));
    // By stop: the fewest routers on a path to it, itself included.
    let mut routers = vec![u64::MAX; spread.stops.len()];
    routers[0] = 0;
    for (place, stop) in spread.stops.iter().enumerate() {
        for onward in &stop.onward {
            let next = &spread.stops[onward.to];
            let counts = next.tunnels.is_empty() && is_router(next.node);
            let met = routers[place].saturating_add(u64::from(counts));
            routers[onward.to] = routers[onward.to].min(met);
        }
    }
    let ttl = u64::from(ttl);
    let last = routers.last().copied()?;
    let ends =
        |(stop, met): (usize, &u64)| (*met == ttl && is_router(spread.stops[stop].node)).then_some(stop);
    if ttl > 0 && last >= ttl { routers.iter().enumerate().find_map(ends) } else { None }
}
