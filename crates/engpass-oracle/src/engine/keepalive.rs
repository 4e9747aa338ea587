//! Keepalives of GRE tunnels: an end that gets none of several back takes its tunnel for down (docs/model.md, "Tunnels").

use engpass_model::tunnel::Keepalive;
use engpass_testbed::topology::NodeId;

use super::Engine;
use crate::acted::Mechanism;
use crate::event_queue::{Event, Group};
use crate::ledger::Datagram;
use crate::outcome::Place;
use crate::packet::{Out, Packet, Way};

/// An end of a tunnel that sends keepalives.
#[derive(Debug)]
pub(crate) struct KeepaliveEnd {
    /// The tunnel direction that they enter.
    pub(crate) tunnel: usize,
    /// Index of their path.
    way: usize,
    config: Keepalive,
    /// Number of keepalives since the last one that came back.
    silent: u64,
    pub(crate) is_down: bool,
}

/// Time to live and priority of a keepalive.
const TTL: u8 = 64;
const PRIORITY: u8 = 6;
/// Bytes of its GRE header, in the packet that enters the tunnel.
pub(crate) const GRE_BYTES: u64 = 4;

impl Engine<'_> {
    /// Sets up all ends that send keepalives, and schedules their first ones.
    pub(crate) fn keepalives_begin(&mut self) {
        for tunnel in 0..self.tunnels.len() {
            let path = &self.topology.tunnels[tunnel / 2];
            let Some(config) = path.config.keepalive.filter(|_| path.is_up) else { continue };
            // Through the tunnel, and back like an outer packet of the other direction.
            let mut at = self.ways[self.tunnels[tunnel ^ 1].way].at.clone();
            at.insert(self.tunnels[tunnel].from, vec![Out::Tunnel(tunnel)]);
            self.ways.push(Way { first: Out::Tunnel(tunnel), at });
            let way = self.ways.len() - 1;
            let end = self.keepalives.len();
            self.keepalives.push(KeepaliveEnd { tunnel, way, config, silent: 0, is_down: false });
            self.agenda.put(0, Group::Keepalive, (end, 0), Event::KeepaliveIsDue { end });
        }
    }

    /// Handles the timer of an end of a tunnel.
    pub(crate) fn keepalive_is_due(&mut self, now: u64, end: usize) {
        let this = &mut self.keepalives[end];
        if this.silent >= this.config.retries && !this.is_down {
            this.is_down = true;
            self.acted.note(Mechanism::TunnelDown);
        }
        this.silent += 1;
        let (way, router, next) = (this.way, self.tunnels[this.tunnel].from, now + this.config.period.0);
        if next <= self.end() {
            self.agenda.put(next, Group::Keepalive, (end, 0), Event::KeepaliveIsDue { end });
        }
        // Like ARP and IGMP, keepalives are counted behind all flows and receivers.
        let flow = self.topology.flows.len() + self.receivers.len();
        let datagram = self.ledger.begin(now, Datagram::keepalive(flow));
        let number = self.senders().len() + self.messages().len() + 2;
        self.packets.push(Packet {
            bytes: GRE_BYTES,
            way,
            // The router that creates it does not decrement the TTL.
            ttl: TTL + 1,
            priority: PRIORITY,
            keepalive: Some(end),
            ..Packet::of_sender(flow, datagram, number)
        });
        let router = router - self.topology.hosts - self.topology.switches;
        self.comes_to_engine(now, router, self.packets.len() - 1);
    }

    /// Returns true if a packet is a keepalive that is back at its router, in no tunnel.
    pub(crate) fn is_keepalive_back(&self, node: NodeId, packet: usize) -> bool {
        let Packet { keepalive, carries, came_by, .. } = self.packets[packet];
        let ends_at = |end: usize| self.tunnels[self.keepalives[end].tunnel].from == node;
        carries.is_none() && came_by.is_some() && keepalive.is_some_and(ends_at)
    }

    /// Handles a keepalive that has come back.
    pub(crate) fn keepalive_returns(&mut self, now: u64, end: usize, packet: usize) {
        self.ledger.received(now, self.packets[packet].datagram, 0, None);
        let this = &mut self.keepalives[end];
        this.silent = 0;
        if std::mem::replace(&mut this.is_down, false) {
            self.acted.note(Mechanism::TunnelUpAgain);
        }
    }

    /// Returns true if the router at the beginning of a tunnel direction takes it for up.
    pub(crate) fn is_tunnel_up(&self, tunnel: usize) -> bool {
        !self.keepalives.iter().any(|end| end.tunnel == tunnel && end.is_down)
    }

    /// Loses a packet in front of a tunnel that is down, unless it is a keepalive of this tunnel. Returns true if it may enter.
    pub(crate) fn may_enter(&mut self, now: u64, tunnel: usize, packet: usize) -> bool {
        let is_own = |end: usize| self.keepalives[end].tunnel == tunnel;
        if self.is_tunnel_up(tunnel) || self.packets[packet].keepalive.is_some_and(is_own) {
            return true;
        }
        self.acted.note(Mechanism::LostBeforeTunnel);
        let place = Place::TunnelDown { node: self.tunnels[tunnel].from };
        self.ledger.lose_carrier(now, place, self.packets[packet].datagram);
        false
    }
}
