//! The links of all ways of a lane, with the packets of a unit that cross each of them.

use std::collections::BTreeMap;

use engpass_model::wire::Encapsulation;
use engpass_model::wire::ip::Fragments;
use engpass_testbed::topology::{Hop, Leg, NodeId};
use engpass_testbed::{Spread, Topology};

use super::layers::{Layer, Layers, Wire};

/// Packets of a unit that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// How many there are in the mean: 0 where only an event makes packets come, or a datagram of another length.
    pub(super) count: f64,
    /// Bytes of the transport header in each.
    pub(super) header: u64,
    /// Bytes of payload in each.
    pub(super) data: u64,
}

impl Part {
    /// One packet.
    pub(super) fn one(header: u64, data: u64) -> Self {
        Self { count: 1.0, header, data }
    }

    /// Bits of its payload.
    pub(super) fn bits(&self) -> f64 {
        (8 * self.data) as f64
    }
}

/// A link of the ways of a lane.
pub(super) struct Piece {
    /// Number of links before it: every way has as many.
    pub(super) level: usize,
    pub(super) leg: Leg,
    /// Its place in the leg.
    pub(super) position: usize,
    pub(super) hop: Hop,
    pub(super) wire: Wire,
    /// The packets of a unit that cross it.
    pub(super) parts: Vec<Part>,
    /// Share of the packets of the lane that cross it, of all that cross links of its level.
    pub(super) share: f64,
    /// Whether all of them cross it, because there is no choice before it.
    pub(super) surely: bool,
    /// The smallest MTU up to there; of several ways to it the one with the largest of these.
    pub(super) mtu: u64,
}

impl Piece {
    /// The circuit that it is in, and whether that is taken forward.
    pub(super) fn circuit(&self) -> Option<(usize, bool)> {
        match self.leg {
            Leg::Link(_) => None,
            Leg::Circuit { circuit, forward } => Some((circuit, forward)),
        }
    }

    /// The node that the packets of its leg come to behind it; `None` inside a circuit.
    pub(super) fn end(&self, topology: &Topology) -> Option<NodeId> {
        (self.position + 1 == topology.hops(self.leg).len()).then_some(self.hop.to)
    }
}

/// The layers of the packets of a unit that cross a line, in parts of a bit of the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnLine {
    pub(super) hop: Hop,
    pub(super) level: usize,
    parts_per_bit: u64,
    parts: [f64; Layer::ALL.len()],
}

impl OnLine {
    /// So many packets with these layers each.
    pub(super) fn new(piece: &Piece, packets: impl IntoIterator<Item = (f64, Layers)>) -> Self {
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

    /// Parts of one layer.
    pub(super) fn parts(&self, layer: Layer) -> f64 {
        self.parts[layer as usize]
    }

    /// Parts of all layers.
    pub(super) fn line(&self) -> f64 {
        self.parts.iter().sum()
    }

    /// Parts that make a bit.
    pub(super) fn parts_per_bit(&self) -> f64 {
        self.parts_per_bit as f64
    }
}

/// The packets that come to a stop of a spread.
pub(super) struct Arriving {
    /// Links before it.
    pub(super) level: usize,
    pub(super) parts: Vec<Part>,
    surely: bool,
    /// The smallest MTU up to there; of several ways to it the one with the largest of these.
    pub(super) mtu: u64,
}

/// All links of a spread in the order of their levels, and what comes to each of its stops, of a unit that its sender sends as these packets.
/// Routers cut them if `cut`.
pub(super) fn pieces(
    topology: &Topology,
    spread: &Spread,
    sent: Vec<Part>,
    cut: bool,
) -> (Vec<Piece>, Vec<Arriving>) {
    let nothing = |_| Arriving { level: 0, parts: Vec::new(), surely: true, mtu: 0 };
    let mut arriving: Vec<Arriving> = (0..spread.stops.len()).map(nothing).collect();
    (arriving[0].parts, arriving[0].mtu) = (sent, u64::MAX);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut known: BTreeMap<(Leg, usize), usize> = BTreeMap::new();
    for (place, stop) in spread.stops.iter().enumerate() {
        for onward in &stop.onward {
            let here = &arriving[place];
            let mtu = topology.mtu(onward.leg);
            let mut parts = Vec::new();
            for part in &here.parts {
                let part = Part { count: part.count * onward.share, ..*part };
                if cut { cut_into(&mut parts, part, mtu) } else { add(&mut parts, part) }
            }
            let surely = here.surely && stop.onward.len() == 1;
            let (level, mtu) = (here.level, here.mtu.min(mtu));
            let hops = topology.hops(onward.leg);
            for (position, hop) in hops.iter().enumerate() {
                let new = pieces.len();
                let index = *known.entry((onward.leg, position)).or_insert(new);
                if index < new {
                    let piece = &mut pieces[index];
                    parts.iter().for_each(|part| add(&mut piece.parts, *part));
                    (piece.surely, piece.mtu) = (false, piece.mtu.max(mtu));
                    continue;
                }
                let encapsulation = match onward.leg {
                    // Links of frames have none.
                    Leg::Link(_) => Encapsulation::default(),
                    Leg::Circuit { circuit, .. } => topology.circuits[circuit].encapsulation,
                };
                let link = &topology.links[hop.link];
                let wire = Wire::new(link, link.end_of(hop.from), encapsulation);
                let (level, leg, hop, parts) = (level + position, onward.leg, *hop, parts.clone());
                pieces.push(Piece { level, leg, position, hop, wire, parts, share: 1.0, surely, mtu });
            }
            let there = &mut arriving[onward.to];
            there.surely &= surely;
            (there.level, there.mtu) = (level + hops.len(), there.mtu.max(mtu));
            parts.into_iter().for_each(|part| add(&mut there.parts, part));
        }
    }
    pieces.sort_by_key(|piece| piece.level);
    let count = |piece: &Piece| piece.parts.iter().map(|part| part.count).sum::<f64>();
    for level in pieces.chunk_by_mut(|one, other| one.level == other.level) {
        let all: f64 = level.iter().map(count).sum();
        level.iter_mut().for_each(|piece| piece.share = count(piece) / all);
    }
    (pieces, arriving)
}

/// Adds packets to those that are like them.
fn add(parts: &mut Vec<Part>, part: Part) {
    match parts.iter_mut().find(|known| (known.header, known.data) == (part.header, part.data)) {
        Some(known) => known.count += part.count,
        None => parts.push(part),
    }
}

/// Adds packets that are cut for an MTU. The first fragments have the transport header.
pub(super) fn cut_into(parts: &mut Vec<Part>, part: Part, mtu: u64) {
    let cut = Fragments::of(part.header + part.data, mtu);
    let mut header = part.header;
    for index in 0..cut.count {
        let length = cut.payload(index);
        let own = header.min(length);
        header -= own;
        add(parts, Part { header: own, data: length - own, ..part });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_packets_have_the_header_first() {
        let mut parts = Vec::new();
        cut_into(&mut parts, Part { count: 0.5, header: 52, data: 100 }, 68);
        let part = |count, header, data| Part { count, header, data };
        assert_eq!(parts, [part(0.5, 48, 0), part(0.5, 4, 44), part(0.5, 0, 48), part(0.5, 0, 8)]);
    }
}
