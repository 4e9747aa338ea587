//! Outer headers of tunnels, in captures.

use engpass_frames::tunnel_of;
use engpass_model::queue::Ecn;

use super::{Head, Outer};
use crate::trace::Trace;

/// Headers that are hidden by outer headers: for each tunnel that a packet is in, its direction, the sequence number of the packet, and the IP header that it
/// had on entry. The first tunnel entered comes first.
#[derive(Clone, Debug, Default)]
pub(crate) struct HiddenHeaders(Vec<(u32, u32, Head)>);

impl HiddenHeaders {
    /// Returns the innermost header and the outer headers, given the outermost one, which is not hidden.
    pub(super) fn around(&self, outermost: Head) -> (Head, Vec<Outer>) {
        let Some(((.., innermost), _)) = self.0.split_first() else { return (outermost, Vec::new()) };
        let heads = self.0[1..].iter().map(|(.., head)| *head).chain([outermost]);
        let outer = self.0.iter().zip(heads).map(|((direction, sequence, _), head)| {
            let (tunnel, forward) = tunnel_of(*direction);
            Outer { tunnel, forward, sequence: *sequence, head }
        });
        (*innermost, outer.collect())
    }
}

impl Trace {
    /// Records that a packet has entered a tunnel direction at a router, with a sequence number; it now has `bytes`, outer header included, and the TTL `outer_ttl`.
    pub(crate) fn enters(
        &mut self,
        packet: u32,
        (direction, sequence): (u32, u32),
        router: usize,
        (bytes, outer_ttl): (u32, u8),
        (ttl, ecn): (u8, Ecn),
    ) {
        let Some(taps) = &mut self.taps else { return };
        let head = Head { ttl, ecn, ..taps.packet_heads[packet as usize] };
        taps.hidden.entry(packet).or_default().0.push((direction, sequence, head));
        let next = &mut taps.next_of_routers[router];
        let id = std::mem::replace(next, next.wrapping_add(1));
        taps.packet_heads[packet as usize] =
            Head { id, bytes, offset: 0, more: false, ttl: outer_ttl, ecn, ..head };
    }

    /// Records that a packet has left the tunnel that it entered last.
    pub(crate) fn leaves_tunnel(&mut self, packet: u32) {
        let Some(taps) = &mut self.taps else { return };
        let Some(hidden) = taps.hidden.get_mut(&packet) else { return };
        let (.., head) = hidden.0.pop().expect("the packet is in a tunnel");
        if hidden.0.is_empty() {
            taps.hidden.remove(&packet);
        }
        taps.packet_heads[packet as usize] = head;
    }

    /// Returns the hidden headers of a packet.
    pub(crate) fn hidden_of(&self, packet: u32) -> Option<HiddenHeaders> {
        self.taps.as_ref()?.hidden.get(&packet).cloned()
    }

    /// Sets the hidden headers of a new packet.
    pub(crate) fn hides(&mut self, packet: u32, hidden: Option<HiddenHeaders>) {
        let Some(taps) = &mut self.taps else { return };
        match hidden {
            Some(hidden) => taps.hidden.insert(packet, hidden),
            None => taps.hidden.remove(&packet),
        };
    }
}
