//! The links on all paths of a lane, with the packets of a unit that cross each link.

use std::collections::BTreeMap;

use engpass_model::wire::Encapsulation;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};
use engpass_testbed::topology::{Hop, NodeId, PathSegment};
use engpass_testbed::{Spread, Topology};

use engpass_model::wire::layers::{Layer, Layers, Wire};

/// Packets of a unit that all have the same length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// Mean number of packets of this length per unit (message, segment or cell) at this place. 0 if such packets come here only after an event, or only from
    /// datagrams of another length than the flow's.
    pub(super) count: f64,
    /// Bytes of tunnel headers in each packet.
    pub(super) added: u64,
    /// Bytes of the transport header in each packet.
    pub(super) header: u64,
    /// Bytes of payload in each packet.
    pub(super) data: u64,
}

impl Part {
    /// Returns one packet.
    pub(super) fn one(header: u64, data: u64) -> Self {
        Self { count: 1.0, added: 0, header, data }
    }

    /// Returns the layers of one packet on a line.
    pub(super) fn on(&self, wire: &Wire) -> Layers {
        wire.in_tunnel(self.added, self.header, self.data)
    }

    /// Returns the length of one packet in bytes, IP header included.
    fn bytes(&self) -> u64 {
        IP_HEADER_BYTES + self.added + self.header + self.data
    }

    /// Returns the payload of one packet, in bits.
    pub(super) fn bits(&self) -> f64 {
        (8 * self.data) as f64
    }
}

/// A link on the paths of a lane.
pub(super) struct PathLink {
    /// Number of links before this one, equal on every path.
    pub(super) level: usize,
    pub(super) leg: PathSegment,
    /// The stop to which its path segment leads.
    pub(super) to: usize,
    /// Its position in the path segment.
    pub(super) position: usize,
    pub(super) hop: Hop,
    pub(super) wire: Wire,
    /// The packets of a unit that cross the link.
    pub(super) parts: Vec<Part>,
    /// Share of the lane's packets on this level that cross the link.
    pub(super) share: f64,
    /// True if all packets of the lane cross the link, because there is no choice before it.
    pub(super) surely: bool,
    /// Smallest MTU on the path up to and including the link, without MTUs inside tunnels; of several paths, the largest value.
    pub(super) mtu: u64,
    /// Bytes that tunnels add to each packet that is not fragmented in them; of several paths to the link, the fewest.
    pub(super) added: u64,
    /// A tunnel that drops packets before they come to this link, and whether such tunnels drop all of them.
    pub(super) refused: Option<(usize, bool)>,
}

impl PathLink {
    /// Returns the circuit that the link belongs to, and true if packets take it in its forward direction.
    pub(super) fn circuit(&self) -> Option<(usize, bool)> {
        match self.leg {
            PathSegment::Link(_) | PathSegment::Tunnel { .. } => None,
            PathSegment::Circuit { circuit, forward } => Some((circuit, forward)),
        }
    }

    /// Returns the node at the end of the path segment if this is the last link of it; otherwise `None`.
    pub(super) fn end(&self, topology: &Topology) -> Option<NodeId> {
        (self.position + 1 == topology.hops(self.leg).len()).then_some(self.hop.to)
    }
}

/// The layers of all packets of a unit that cross a line, in parts of a bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineLayers {
    pub(super) hop: Hop,
    pub(super) level: usize,
    parts_per_bit: u64,
    parts: [f64; Layer::ALL.len()],
}

impl LineLayers {
    /// Adds up the layers of packets, given the number of packets and the layers of each.
    pub(super) fn new(piece: &PathLink, packets: impl IntoIterator<Item = (f64, Layers)>) -> Self {
        let nothing = piece.wire.nothing();
        let (hop, level, parts_per_bit) = (piece.hop, piece.level, nothing.parts_per_bit());
        let mut all = Self { hop, level, parts_per_bit, parts: [0.0; Layer::ALL.len()] };
        for (count, layers) in packets {
            for (sum, layer) in all.parts.iter_mut().zip(Layer::ALL) {
                *sum += count * layers.parts(layer) as f64;
            }
        }
        all
    }

    /// Returns the parts of one layer, over all packets.
    pub(super) fn parts(&self, layer: Layer) -> f64 {
        self.parts[layer as usize]
    }

    /// Returns the parts of all layers.
    pub(super) fn line(&self) -> f64 {
        self.parts.iter().sum()
    }

    /// Returns the parts per bit.
    pub(super) fn parts_per_bit(&self) -> f64 {
        self.parts_per_bit as f64
    }
}

/// The packets of a unit (a message or segment) that come to a stop, a node on the paths of the flow.
pub(super) struct Arriving {
    /// Number of links before the stop.
    pub(super) level: usize,
    pub(super) parts: Vec<Part>,
    surely: bool,
    /// Smallest MTU on the path up to the stop, without MTUs inside tunnels; of several paths, the largest value.
    pub(super) mtu: u64,
    /// For each tunnel around the packets: the packets as they entered it.
    entered: Vec<Vec<Part>>,
    /// The tunnel that the packets have entered last, if it drops some of them.
    refused: Option<usize>,
}

impl Arriving {
    /// Adds packets that come to the stop over `level` links.
    fn add(&mut self, level: usize, surely: bool, mtu: u64, parts: Vec<Part>) {
        self.surely &= surely;
        (self.level, self.mtu) = (level, self.mtu.max(mtu));
        parts.into_iter().for_each(|part| add(&mut self.parts, part));
    }
}

/// Returns all links of a spread, level by level, and the packets that come to each of its stops. The sender sends the unit as the packets `sent`; routers
/// fragment them if `cut` is set.
pub(super) fn pieces(
    topology: &Topology,
    spread: &Spread,
    sent: Vec<Part>,
    cut: bool,
) -> (Vec<PathLink>, Vec<Arriving>) {
    let nothing = |_| Arriving {
        level: 0,
        parts: Vec::new(),
        surely: true,
        mtu: 0,
        entered: Vec::new(),
        refused: None,
    };
    let mut arriving: Vec<Arriving> = (0..spread.stops.len()).map(nothing).collect();
    (arriving[0].parts, arriving[0].mtu) = (sent, u64::MAX);
    let mut pieces: Vec<PathLink> = Vec::new();
    let mut known: BTreeMap<(PathSegment, usize), usize> = BTreeMap::new();
    for (place, stop) in spread.stops.iter().enumerate() {
        for onward in &stop.onward {
            let here = &arriving[place];
            let surely = here.surely && stop.onward.len() == 1;
            let mut entered = here.entered.clone();
            let Some(leg) = onward.by.leg() else {
                // The end of a tunnel reassembles packets that were fragmented in it.
                let parts = entered.pop().expect("the packet is in a tunnel");
                let (level, mtu) = (here.level, here.mtu);
                arriving[onward.to].add(level, surely, mtu, parts);
                arriving[onward.to].entered = entered;
                continue;
            };
            let mtu = topology.mtu(leg);
            let mut parts = Vec::new();
            for part in &here.parts {
                let part = Part { count: part.count * onward.share, ..*part };
                if cut { cut_into(&mut parts, part, mtu) } else { add(&mut parts, part) }
            }
            let mtu = if stop.tunnels.is_empty() { here.mtu.min(mtu) } else { here.mtu };
            let level = here.level;
            if let PathSegment::Tunnel { tunnel, .. } = leg {
                let too_long = |part: &Part| part.count > 0.0 && part.bytes() > topology.mtu(leg);
                let refuses = topology.refuses(leg) && here.parts.iter().any(too_long);
                let refused = refuses.then_some(tunnel).or(here.refused);
                entered.push(parts.clone());
                let bytes = topology.tunnels[tunnel].added;
                parts.iter_mut().for_each(|part| part.added += bytes);
                arriving[onward.to].add(level, surely, mtu, parts);
                arriving[onward.to].entered = entered;
                arriving[onward.to].refused = refused;
                continue;
            }
            let refused = here.refused;
            let hops = topology.hops(leg);
            let added = stop.tunnels.iter().map(|tunnel| topology.tunnels[*tunnel].added).sum();
            for (position, hop) in hops.iter().enumerate() {
                let new = pieces.len();
                let index = *known.entry((leg, position)).or_insert(new);
                if index < new {
                    let piece = &mut pieces[index];
                    parts.iter().for_each(|part| add(&mut piece.parts, *part));
                    (piece.surely, piece.mtu) = (false, piece.mtu.max(mtu));
                    piece.added = piece.added.min(added);
                    let all = piece.refused.is_some_and(|(_, all)| all) && refused.is_some();
                    let some = piece.refused.map(|(tunnel, _)| tunnel).or(refused);
                    piece.refused = some.map(|tunnel| (tunnel, all));
                    continue;
                }
                let encapsulation = match leg {
                    // Frame links need no encapsulation in cells.
                    PathSegment::Link(_) | PathSegment::Tunnel { .. } => Encapsulation::default(),
                    PathSegment::Circuit { circuit, .. } => topology.circuits[circuit].encapsulation,
                };
                let link = &topology.links[hop.link];
                let wire = link.wire(link.end_of(hop.from), encapsulation);
                let (level, hop, parts) = (level + position, *hop, parts.clone());
                pieces.push(PathLink {
                    level,
                    leg,
                    to: onward.to,
                    position,
                    hop,
                    wire,
                    parts,
                    share: 1.0,
                    surely,
                    mtu,
                    added,
                    refused: refused.map(|tunnel| (tunnel, true)),
                });
            }
            arriving[onward.to].add(level + hops.len(), surely, mtu, parts);
            arriving[onward.to].entered = entered;
        }
    }
    pieces.sort_by_key(|piece| piece.level);
    let count = |piece: &PathLink| piece.parts.iter().map(|part| part.count).sum::<f64>();
    for level in pieces.chunk_by_mut(|one, other| one.level == other.level) {
        let all: f64 = level.iter().map(count).sum();
        level.iter_mut().for_each(|piece| piece.share = count(piece) / all);
    }
    (pieces, arriving)
}

/// Adds packets to the list, to others of the same length if there are any.
fn add(parts: &mut Vec<Part>, part: Part) {
    let lengths = |part: &Part| (part.added, part.header, part.data);
    match parts.iter_mut().find(|known| lengths(known) == lengths(&part)) {
        Some(known) => known.count += part.count,
        None => parts.push(part),
    }
}

/// Adds the fragments of packets for an MTU to the list. The first fragments have the tunnel headers, then the transport header.
pub(super) fn cut_into(parts: &mut Vec<Part>, part: Part, mtu: u64) {
    let cut = Fragments::of(part.added + part.header + part.data, mtu);
    let (mut added, mut header) = (part.added, part.header);
    for index in 0..cut.count {
        let length = cut.payload(index);
        let of_tunnels = added.min(length);
        let own = header.min(length - of_tunnels);
        (added, header) = (added - of_tunnels, header - own);
        add(parts, Part { added: of_tunnels, header: own, data: length - of_tunnels - own, ..part });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_header_is_in_the_first_fragments() {
        let mut parts = Vec::new();
        cut_into(&mut parts, Part { count: 0.5, added: 0, header: 52, data: 100 }, 68);
        let part = |count, header, data| Part { count, added: 0, header, data };
        assert_eq!(parts, [part(0.5, 48, 0), part(0.5, 4, 44), part(0.5, 0, 48), part(0.5, 0, 8)]);
    }
}
