//! Keepalives of GRE tunnels: their timers, and keepalives that come back.

use engpass_frames::ControlKind;
use engpass_model::tunnel::gre::{KEEPALIVE_BYTES, KEEPALIVE_PRIORITY, KEEPALIVE_TTL};

use super::control::ControlPacket;
use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;

/// Position of the first end for ties: above those of IGMP.
const POSITION: usize = (1 << 27) + (1 << 26);

impl Network {
    /// Schedules the first keepalives of all tunnels at `from`.
    pub(super) fn begin_keepalives(&mut self, from: u64) {
        for end in 0..self.frames.keepalives.count() {
            self.clock.events.push(from, POSITION + end, Event::KeepaliveTimer(end as u32));
        }
    }

    /// Handles the timer of an end: it may take the tunnel for down, and sends its next keepalive.
    pub(crate) fn on_keepalive_timer(&mut self, end: u32) {
        let (next, goes_down) = self.frames.keepalive_sent(end as usize, self.clock.now);
        if goes_down {
            self.record_tunnel_change(end as usize, true);
        }
        if next <= self.clock.end {
            self.clock.events.push(next, POSITION + end as usize, Event::KeepaliveTimer(end));
        }
        self.send_keepalive(end as usize);
    }

    /// Passes a keepalive to the engine of the router at one end of its tunnel.
    fn send_keepalive(&mut self, end: usize) {
        let (router, route) = self.frames.keepalives.sender(end);
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
        if self.frames.keepalive_returned(end) {
            self.record_tunnel_change(end, false);
        }
    }

    /// Records for a timeline that an end takes its tunnel for down or up.
    fn record_tunnel_change(&mut self, end: usize, down: bool) {
        if let Some(trace) = &mut self.shared.trace {
            trace.tunnel_changed(self.clock.now, end, down);
        }
    }

    /// Returns the end whose keepalive a datagram is; `None` for other datagrams.
    pub(super) fn keepalive_end(&self, datagram: u32) -> Option<usize> {
        let ends = self.frames.keepalives.count();
        if ends == 0 {
            return None;
        }
        let first = self.frames.first_control_direction(ControlKind::Keepalive, self.hosts.endpoints.len());
        let direction = self.shared.datagrams[datagram].to.get()? as usize;
        direction.checked_sub(first).map(|ahead| ahead / 2).filter(|end| *end < ends)
    }

    /// Drops a packet at the entry of a tunnel that its router takes for down, unless it is a keepalive of this tunnel. Returns true if the packet may enter.
    pub(super) fn may_enter_tunnel(&mut self, id: u32, direction: u32) -> bool {
        let Some((end, router)) = self.frames.keepalives.down_end(direction) else { return true };
        let datagram = self.shared.datagrams.packet(id).datagram;
        if self.keepalive_end(datagram) == Some(end) {
            return true;
        }
        self.shared.drop_packet(&self.frames, id, DropLocation::TunnelDown(router), self.clock.now);
        false
    }
}
