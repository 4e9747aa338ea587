//! Keepalives of GRE tunnels: their timers, and keepalives that come back.

use engpass_frames::{ControlKind, Frames};
use engpass_model::tunnel::gre::{KEEPALIVE_BYTES, KEEPALIVE_PRIORITY, KEEPALIVE_TTL};

use super::control::{ControlPacket, Said};
use super::hop::Links;
use crate::clock::Clock;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::progress::Departed;
use crate::shared_state::SharedState;

/// Position of the first end for ties: above those of IGMP.
const POSITION: usize = (1 << 27) + (1 << 26);

/// Schedules the first keepalives of all tunnels at `from`.
pub(super) fn begin_keepalives(from: u64, frames: &Frames, clock: &mut Clock) {
    for end in 0..frames.keepalives.count() {
        clock.events.push(from, POSITION + end, Event::KeepaliveTimer(end as u32));
    }
}

/// Returns a keepalive at the router that sends it.
pub(super) fn packet(end: usize, frames: &Frames) -> ControlPacket {
    let (_, route) = frames.keepalives.sender(end);
    let place = frames.routes[route as usize].first;
    // The router decrements the TTL, although it does not forward the keepalive.
    let ttl = KEEPALIVE_TTL + 1;
    ControlPacket { sender: end, place, bytes: KEEPALIVE_BYTES, ttl, priority: KEEPALIVE_PRIORITY }
}

impl Links<'_> {
    /// Handles the timer of an end: it may take the tunnel for down, and sends its next keepalive.
    pub(super) fn on_keepalive_timer(&mut self, end: u32) -> Departed {
        let (number, now) = (end as usize, self.clock.now);
        let (next, goes_down) = self.frames.keepalive_sent(number, now);
        if goes_down {
            self.shared.record_tunnel_change(number, true, now);
        }
        let timer = (next, POSITION + number, Event::KeepaliveTimer(end));
        let events = [(next <= self.clock.end).then_some(timer), None];
        (events, Some(self.say(Said::Keepalive(number))))
    }
}

impl SharedState {
    /// Tells a capture that a router sends a keepalive.
    pub(super) fn tap_keepalive(&mut self, end: usize, packet: u32, frames: &Frames) {
        if let Some(trace) = &mut self.trace {
            let router = frames.keepalives.sender(end).0 - frames.engines[0].node;
            trace.made(packet, router, (KEEPALIVE_BYTES as u32, KEEPALIVE_TTL, KEEPALIVE_PRIORITY), None);
        }
    }

    /// Records for a timeline that an end takes its tunnel for down or up.
    pub(super) fn record_tunnel_change(&mut self, end: usize, down: bool, now: u64) {
        if let Some(trace) = &mut self.trace {
            trace.tunnel_changed(now, end, down);
        }
    }

    /// Returns the end whose keepalive a datagram is; `None` for other datagrams.
    pub(super) fn keepalive_end(&self, datagram: u32, frames: &Frames) -> Option<usize> {
        let ends = frames.keepalives.count();
        if ends == 0 {
            return None;
        }
        let first = frames.first_control_direction(ControlKind::Keepalive, self.endpoints);
        let direction = self.datagrams[datagram].to.get()? as usize;
        direction.checked_sub(first).map(|ahead| ahead / 2).filter(|end| *end < ends)
    }

    /// Drops a packet at the entry of a tunnel that its router takes for down, unless it is a keepalive of this tunnel. Returns true if the packet may enter.
    pub(super) fn may_enter_tunnel(&mut self, id: u32, direction: u32, frames: &Frames, now: u64) -> bool {
        let Some((end, router)) = frames.keepalives.down_end(direction) else { return true };
        let datagram = self.datagrams.packet(id).datagram;
        if self.keepalive_end(datagram, frames) == Some(end) {
            return true;
        }
        self.drop_packet(frames, id, DropLocation::TunnelDown(router), now);
        false
    }
}
