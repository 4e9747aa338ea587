//! Outer packets that routers fragment, and their reassembly at the end of the tunnel.

use std::collections::BTreeSet;

use engpass_model::queue::Ecn;
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_testbed::topology::NodeId;

use super::{Encapsulation, FragmentedOuter, Packet, Tunnels};
use crate::NONE;

/// Kind of a packet at the end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelArrival {
    /// A packet that is no fragment of an outer packet.
    Whole,
    /// A fragment of an outer packet.
    Fragment,
    /// A fragment of an outer packet whose reassembly has timed out.
    Late,
}

/// Values that all fragments of an outer packet get while a router creates them.
#[derive(Clone, Copy, Debug)]
pub struct OuterCut {
    /// Number of the fragmented outer packet.
    pub number: u32,
    /// True if the packet is not itself a fragment of an outer packet: the number is new.
    pub is_new: bool,
    /// Offset of the first fragment, in units of 8 bytes.
    pub begin: u16,
    hidden: Encapsulation,
    depth: usize,
}

/// A fragment that has joined the reassembly of its outer packet.
#[derive(Clone, Copy, Debug)]
pub struct Gathered {
    /// Number of the fragmented outer packet.
    number: u32,
    /// The tunnel direction at whose end it is.
    pub tunnel: u32,
    /// True if all fragments are there.
    pub is_whole: bool,
    /// True if an earlier fragment has come by another path.
    pub paths_differ: bool,
}

/// A reassembly that has ended: the outer packet is complete, or its time is over.
#[derive(Clone, Copy, Debug)]
pub struct EndedReassembly {
    /// Number of the fragmented outer packet.
    pub number: u32,
    /// The packet as it was before, with the congestion mark that a fragment has got.
    pub whole: Packet,
    /// Number of fragments that have come to the end of the tunnel.
    pub fragments: u32,
    hidden: Encapsulation,
}

impl Tunnels {
    /// Returns what a packet is at the end of a tunnel, step `place`.
    pub fn arrival(&self, packet: u32, place: u32) -> TunnelArrival {
        let depth = self.at(place).len();
        let cut = self.cut.get(&self.hidden[packet as usize].cut);
        if cut.is_some_and(|cut| cut.depth == depth) {
            TunnelArrival::Fragment
        } else if self.is_fragment(packet, depth) {
            TunnelArrival::Late
        } else {
            TunnelArrival::Whole
        }
    }

    /// Returns true if a packet is a fragment of an outer packet with `depth` outer headers, even if the outer packet is no longer known.
    fn is_fragment(&self, packet: u32, depth: usize) -> bool {
        let Encapsulation { cut, depth: of, .. } = self.hidden[packet as usize];
        cut > 0 && usize::from(of) == depth
    }

    /// Records that a router fragments an outer packet.
    pub fn begin_cut(&mut self, id: u32, whole: Packet) -> OuterCut {
        let depth = self.at(whole.place).len();
        let hidden = self.hidden[id as usize];
        // A fragment keeps its number, even if its outer packet is no longer in the list. The `offset` of a packet that is no fragment is that of the inner
        // packet.
        if self.is_fragment(id, depth) {
            return OuterCut { number: hidden.cut, is_new: false, begin: whole.offset, hidden, depth };
        }
        self.cuts += 1;
        let cut = FragmentedOuter {
            whole,
            hidden,
            depth,
            packets: Vec::new(),
            come: (0, 0),
            place: NONE,
            ecn: whole.ecn,
            until: (0, 0),
        };
        self.cut.insert(self.cuts, cut);
        OuterCut { number: self.cuts, is_new: true, begin: 0, hidden, depth }
    }

    /// Records the values that outer headers hide, for the packet with number `fragment`, a fragment of an outer packet.
    pub fn add_fragment(&mut self, fragment: u32, cut: &OuterCut) {
        let OuterCut { number, depth, hidden, .. } = *cut;
        *self.hide(fragment) = Encapsulation { cut: number, depth: depth as u8, ..hidden };
    }

    /// Records that these fragments take the place of the packet `id`.
    pub fn replace_by_fragments(&mut self, id: u32, cut: &OuterCut, fragments: &[u32]) {
        if let Some(known) = self.cut.get_mut(&cut.number) {
            known.packets.retain(|packet| *packet != id);
            known.packets.extend(fragments);
        }
    }

    /// Removes fragmented outer packets whose fragments are all lost from the list, if this has at least `room` entries. `exists` is true for the packets in
    /// the network. Returns the numbers of those that are removed.
    pub fn forget_lost_cuts(&mut self, exists: impl Fn(u32) -> bool) -> Vec<u32> {
        let Self { cut, hidden, room, .. } = self;
        let mut removed = Vec::new();
        if cut.len() < *room {
            return removed;
        }
        // Newest first: a fragmented packet inside another one was fragmented before that.
        let numbers: Vec<u32> = cut.keys().rev().copied().collect();
        let mut needed = BTreeSet::new();
        for number in numbers {
            let this = &cut[&number];
            let is_fragment = |packet: &u32| hidden[*packet as usize].cut == number && exists(*packet);
            if this.come.1 > 0 || needed.contains(&number) || this.packets.iter().any(is_fragment) {
                needed.insert(this.hidden.cut);
            } else {
                cut.remove(&number);
                removed.push(number);
            }
        }
        *room = 64.max(2 * cut.len());
        removed
    }

    /// Takes a fragment at the end of a tunnel, step `place`, into reassembly.
    ///
    /// # Errors
    /// The router at the end of the tunnel, if its memory has no room for the fragment.
    pub fn gather(&mut self, id: u32, packet: &Packet, place: u32, now: u64) -> Result<Gathered, NodeId> {
        let Packet { ip, ecn, .. } = *packet;
        let number = self.hidden[id as usize].cut;
        let stack = self.at(place);
        let tunnel = stack[stack.len() - 1];
        let direction = &mut self.directions[tunnel as usize];
        if direction.bytes + u64::from(ip) > direction.memory {
            return Err(direction.end);
        }
        direction.bytes += u64::from(ip);
        let cut = self.cut.get_mut(&number).expect("the fragment's outer packet is known");
        if cut.come.1 == 0 {
            cut.until = (now.saturating_add(direction.timeout), direction.waited);
            direction.waited += 1;
            direction.waiting.insert(cut.until, number);
        }
        let payload = ip - IP_HEADER_BYTES as u32;
        let paths_differ = cut.come.1 > 0 && cut.place != place;
        (cut.come, cut.place) = ((cut.come.0 + payload, cut.come.1 + 1), place);
        cut.ecn = if ecn == Ecn::Marked { ecn } else { cut.ecn };
        let is_whole = cut.come.0 + IP_HEADER_BYTES as u32 == cut.whole.ip;
        Ok(Gathered { number, tunnel, is_whole, paths_differ })
    }

    /// Ends the reassembly of an outer packet of which all fragments are there.
    pub fn reassemble(&mut self, gathered: Gathered) -> EndedReassembly {
        let Gathered { number, tunnel, .. } = gathered;
        self.directions[tunnel as usize].waiting.remove(&self.cut[&number].until);
        self.end_reassembly(number, tunnel)
    }

    /// Removes an outer packet from the list, and its fragments from the memory at the end of the tunnel.
    fn end_reassembly(&mut self, number: u32, tunnel: u32) -> EndedReassembly {
        let FragmentedOuter { whole, hidden, come, ecn, .. } =
            self.cut.remove(&number).expect("the outer packet is in reassembly");
        let direction = &mut self.directions[tunnel as usize];
        direction.bytes -= u64::from(come.0) + u64::from(come.1) * IP_HEADER_BYTES;
        EndedReassembly { number, whole: Packet { ecn, ..whole }, fragments: come.1, hidden }
    }

    /// Records the values that outer headers hide, for the packet with number `packet`, which takes the place of its fragments.
    pub fn restore(&mut self, packet: u32, outer: &EndedReassembly) {
        *self.hide(packet) = outer.hidden;
    }

    /// Returns the earliest reassembly timeout at the end of a tunnel, and the router there, if the caller must schedule an event for it.
    pub fn next_timeout(&mut self, tunnel: u32) -> Option<(u64, NodeId)> {
        let direction = &mut self.directions[tunnel as usize];
        let ((until, _), _) = direction.waiting.first_key_value()?;
        (!std::mem::replace(&mut direction.is_awaited, true)).then_some((*until, direction.end))
    }

    /// Records that the scheduled reassembly timeout of a tunnel has come.
    pub fn on_timeout(&mut self, tunnel: u32) {
        self.directions[tunnel as usize].is_awaited = false;
    }

    /// Removes and returns an outer packet whose reassembly has timed out by `now`, with the router at the end of the tunnel.
    pub fn pop_timed_out(&mut self, tunnel: u32, now: u64) -> Option<(EndedReassembly, NodeId)> {
        let direction = &mut self.directions[tunnel as usize];
        let end = direction.end;
        let entry = direction.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        let number = entry.remove();
        Some((self.end_reassembly(number, tunnel), end))
    }
}
