//! Decision steps: the choice among equal-cost paths, for one packet.

use engpass_frames::{Frames, Packet};
use engpass_model::forward::Headers;

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
