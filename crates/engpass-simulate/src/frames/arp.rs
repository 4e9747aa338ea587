//! Address resolution: packets that routers hold, and timers of requests.

use engpass_frames::{ArpMessage, Frames};
use engpass_model::wire::arp::BYTES;

use super::control::ControlPacket;
use crate::shared_state::SharedState;
use crate::tap::Arp as Seen;

/// Returns an ARP packet at the node where its line begins.
pub(super) fn packet(said: &ArpMessage, frames: &Frames) -> ControlPacket {
    let (sender, place) = frames.arp.place_on_line(said);
    // The router decrements the TTL.
    ControlPacket { sender, place, bytes: BYTES, ttl: 2, priority: 0 }
}

/// Registers an ARP packet that is about to be sent.
pub(super) fn register(said: ArpMessage, datagram: u32, frames: &mut Frames, shared: &mut SharedState) {
    frames.arp.register(datagram, said);
    if let Some(trace) = &mut shared.trace {
        let [router, station] = frames.arp.parties(&said);
        trace.asks(datagram, Seen { operation: said.operation, router, station });
    }
}
