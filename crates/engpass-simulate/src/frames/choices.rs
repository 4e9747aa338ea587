//! Decision steps: the choice among equal-cost paths, for one packet.

use engpass_frames::{Frames, Packet};
use engpass_model::forward::Headers;

use super::hop::Links;
use crate::progress::Progress;
use crate::shared_state::SharedState;

impl SharedState {
    /// Returns the headers of a packet, as policies see them.
    pub(super) fn heads_of(&self, packet: &Packet, frames: &Frames) -> Headers {
        if let Some(end) = self.keepalive_end(packet.datagram, frames) {
            return frames.keepalive_heads(end);
        }
        let heads = &frames.choices.heads;
        let Some(reports) = &self.reports else { return heads[packet.sender as usize] };
        let this = &self.datagrams[packet.datagram];
        match this.to.get() {
            // Headers of routers' messages are at the end of the list.
            Some(direction) => heads[heads.len() - frames.icmp.ways.len() + direction as usize / 2],
            None => {
                let transport = reports.head(packet.datagram).transport;
                frames.choices.injected_heads(this.flow as usize, transport)
            }
        }
    }
}

impl Links<'_> {
    /// Decides at a decision step where a packet continues: a router's forwarding engine has finished it, or it has arrived at a switch. A packet whose TTL
    /// expires here does not reach the policy.
    #[inline(never)]
    pub(super) fn choose_path(&mut self, id: u32, place: u32, decision: u32) -> Progress {
        let Self { frames, shared, clock } = self;
        let packet = shared.datagrams.packet_mut(id);
        if packet.ttl <= 1 && frames.steps[place as usize].is_routed() {
            packet.ttl = 0;
            let now = clock.now;
            return self.stop(id, place, now);
        }
        let packet = *packet;
        let takes_first = shared.reports.as_ref().is_some_and(|reports| reports.takes_first(packet.datagram));
        let first = if takes_first { frames.choices.first_of_equal(decision) } else { None };
        let chosen = first.unwrap_or_else(|| {
            let fragment = shared.datagrams[packet.datagram].fragments > 1;
            let outer = frames.outer_heads(decision);
            let heads = outer.unwrap_or_else(|| shared.heads_of(&packet, frames));
            frames.choices.decide(decision, &heads, fragment)
        });
        shared.datagrams.packet_mut(id).place = chosen;
        Progress::Ahead(clock.now)
    }
}
