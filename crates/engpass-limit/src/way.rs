//! Needs of a lane on its paths: of lines, shapers, policers, token buckets and routers, for data and for acknowledgements.

use engpass_model::queue::Queue;
use engpass_model::shape::PolicingAction;
use engpass_model::time::{Pace, SECOND};
use engpass_model::wire::ip::{IP_HEADER_BYTES, MAX_UDP_PAYLOAD, UDP_HEADER_BYTES};
use engpass_model::wire::layers::{Layer, Layers};
use engpass_outcome::{Bottleneck, BottleneckKind};
use engpass_testbed::topology::NodeKind;

use super::bound::restarts;
use super::connection::Connection;
use super::demand::Builder;
use super::engine_work::StepWork;
use super::need::{Demand, Need, Resource, application, named};
use super::need::{Place, Spot};
use super::piece::{Arriving, LineLayers, Part, PathLink, pieces};

/// The unit in which a flow is counted.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    /// A generator's cell.
    Cell,
    /// A datagram with all its packets.
    Datagram,
    /// A datagram of the mean length, if lengths are random.
    Drawn,
    /// A full TCP segment: its header and its payload in bytes. Some may be shorter.
    Segment { header: u64, segment: u64 },
}

impl Unit {
    /// Returns the packets of a unit at the sender. A datagram has `message` bytes of payload.
    pub(super) fn sent(self, message: u64) -> Vec<Part> {
        match self {
            Self::Cell => vec![Part::one(0, 0)],
            Self::Datagram | Self::Drawn => vec![Part::one(UDP_HEADER_BYTES, message)],
            Self::Segment { header, segment } => vec![Part::one(header, segment)],
        }
    }

    /// Returns the layers of one packet of the unit on a line.
    fn packet(self, piece: &PathLink, part: &Part) -> Layers {
        match self {
            Self::Cell => piece.wire.cell().expect("a generator sends over ATM links"),
            _ => part.on(&piece.wire),
        }
    }

    /// Returns the layers of all packets of the unit on a line.
    fn on(self, piece: &PathLink) -> LineLayers {
        LineLayers::new(piece, piece.parts.iter().map(|part| (part.count, self.packet(piece, part))))
    }

    /// Returns the unit's need of a resource. `of` returns the amount that a packet with these layers takes.
    pub(super) fn need(self, demand: &Demand<'_>, piece: &PathLink, of: impl Fn(&Layers) -> f64) -> Need {
        let amount = |part: &Part| of(&self.packet(piece, part));
        let unit = piece.parts.iter().map(|part| part.count * amount(part)).sum();
        let least = match self {
            Self::Cell | Self::Datagram if piece.surely => {
                let layers = self.on(piece);
                unit * layers.parts_per_bit() / layers.parts(Layer::Payload)
            }
            // Perhaps only the packets with the smallest need per bit come here, and the others take another path.
            Self::Cell | Self::Datagram => {
                piece.parts.iter().map(|part| amount(part) / part.bits()).fold(f64::INFINITY, f64::min)
            }
            // A full packet without a UDP header is possible: a later fragment.
            Self::Drawn => piece.wire.least(piece.added, longest_payload(piece.mtu), of),
            Self::Segment { header, segment } => piece.wire.least(piece.added + header, segment, of),
        };
        demand.need(unit, least)
    }

    /// Returns the bits of the unit's longest frame, and of the shortest frame that the flow may send instead, without physical framing.
    fn longest_and_shortest(self, piece: &PathLink) -> [f64; 2] {
        let frames = || piece.parts.iter().map(|part| frame_bits(&self.packet(piece, part)));
        let longest = frames().fold(0.0, f64::max);
        let shortest = |transport| frame_bits(&piece.wire.packet(transport, 1));
        match self {
            Self::Cell => [0.0; 2],
            Self::Datagram if piece.surely => [longest; 2],
            Self::Datagram => [longest, frames().fold(f64::INFINITY, f64::min)],
            Self::Drawn => [longest, shortest(UDP_HEADER_BYTES)],
            Self::Segment { header, .. } => [longest, shortest(header)],
        }
    }

    /// Returns the number of packets per unit on a link, and the least number of packets per bit of payload.
    fn packets(self, piece: &PathLink) -> (f64, f64) {
        let packets: f64 = piece.parts.iter().map(|part| part.count).sum();
        let least = match self {
            Self::Cell => 1.0,
            Self::Datagram if piece.surely => {
                packets / piece.parts.iter().map(|part| part.count * part.bits()).sum::<f64>()
            }
            Self::Datagram => piece.parts.iter().map(|part| 1.0 / part.bits()).fold(f64::INFINITY, f64::min),
            Self::Drawn => 1.0 / (8 * longest_payload(piece.mtu)) as f64,
            Self::Segment { segment, .. } => 1.0 / (8 * segment) as f64,
        };
        (packets, least)
    }
}

/// Returns the largest number of bytes that a packet of a datagram has behind its IP header, for this MTU.
fn longest_payload(mtu: u64) -> u64 {
    (mtu - IP_HEADER_BYTES).min(MAX_UDP_PAYLOAD + UDP_HEADER_BYTES)
}

/// Returns the bits of a packet's cells or frames, without physical framing.
pub(super) fn frame_bits(layers: &Layers) -> f64 {
    (layers.line() - layers.parts(Layer::Physical)) as f64 / layers.parts_per_bit() as f64
}

/// The links on a lane's paths to the receiver, and the packets that come to the stops of these paths.
pub(super) struct There {
    pub(super) pieces: Vec<PathLink>,
    pub(super) arriving: Vec<Arriving>,
}

impl There {
    /// Returns the packets of a unit at the receiver, and the MTU of the widest path to it.
    pub(super) fn received(&self) -> (f64, u64) {
        let end = self.arriving.last().expect("a path has an end");
        (end.parts.iter().map(|part| part.count).sum(), end.mtu)
    }
}

impl<'a> Builder<'a> {
    /// Returns the links on a unit's paths to the receiver. A datagram has `message` bytes of payload.
    pub(super) fn there(&self, demand: &Demand<'a>, unit: Unit, message: u64) -> There {
        let (pieces, arriving) = pieces(self.topology, &demand.lane.there, unit.sent(message), true);
        There { pieces, arriving }
    }

    /// Returns the links on the paths back, for an acknowledgement with a transport header of `header` bytes.
    fn back(&self, demand: &Demand<'a>, header: u64) -> Vec<PathLink> {
        pieces(self.topology, &demand.lane.back, vec![Part::one(header, 0)], false).0
    }

    /// Adds the needs of lines, token buckets, policers and shapers on the paths to the receiver, and places there that let nothing through. Generators are not shaped.
    pub(super) fn route(&mut self, demand: &mut Demand<'a>, unit: Unit, there: &There) {
        // There are several first links if the sender has a bond.
        let first = there.pieces.iter().filter(|piece| piece.level == 0).map(|piece| unit.on(piece));
        (demand.weight, demand.payload_bits) = first.fold((0.0, 0.0), |(weight, payload), layers| {
            let own = (layers.line() - layers.parts(Layer::Physical)) / layers.parts_per_bit();
            (weight + own, payload + layers.parts(Layer::Payload) / layers.parts_per_bit())
        });
        for piece in &there.pieces {
            let cells = unit.need(demand, piece, |layers| layers.cells() as f64);
            self.police(demand, piece, false, cells);
            let line = unit.need(demand, piece, |layers| layers.line() as f64);
            let name = &self.topology.links[piece.hop.link].name;
            let bottleneck = named(BottleneckKind::Link, name, format!("link `{name}`"));
            let before = demand.limiters.len();
            self.line(demand, piece, false, bottleneck, line);
            for limiter in &mut demand.limiters[before..] {
                limiter.line = Some(unit.on(piece));
            }
            let frames = unit.need(demand, piece, frame_bits);
            self.tokens(demand, piece, false, frames, unit.longest_and_shortest(piece));
            if matches!(unit, Unit::Datagram) {
                self.refusal(demand, piece, frames);
            }
        }
        self.expiry(demand, unit, there);
        let shaped = if demand.generator { &[] } else { there.pieces.as_slice() };
        for piece in shaped {
            let cells = unit.need(demand, piece, |layers| layers.cells() as f64);
            self.shape(demand, piece, false, cells);
        }
    }

    /// Adds the need of a line; its supply is reduced by the capacity that generators certainly take.
    fn line(
        &mut self,
        demand: &mut Demand<'a>,
        piece: &PathLink,
        back: bool,
        bottleneck: Bottleneck,
        need: Need,
    ) {
        let capacity = piece.wire.capacity() as f64;
        let hop = piece.hop;
        let line = self.resources.get(Resource::Line(hop.link, hop.from), || capacity);
        let cell = piece.wire.cell().map_or(0.0, |cell| cell.line() as f64);
        let others = self.certain.on(hop, demand.flow).map(|taken| (taken.flow, taken.cells(&demand.span)));
        let others: Vec<(usize, u64)> = others.filter(|(_, cells)| *cells > 0).collect();
        let taken: f64 = others.iter().map(|(_, cells)| *cells as f64 * cell).sum();
        // The gap behind the last frame may lie after the end of the run.
        let whole = capacity * demand.span.seconds() + piece.wire.gap() as f64;
        let place = Place { back, level: piece.level, spot: Spot::Line(hop) };
        let supply = (whole - taken).max(0.0);
        if let Some(limiter) = demand.add_bounded(bottleneck, (line, need), supply, Some(place)) {
            limiter.share = piece.share;
            limiter.certain = (others.into_iter().map(|(flow, _)| flow).collect(), taken / whole);
        }
    }

    /// Adds the need of the shaper at the begin of a circuit.
    fn shape(&mut self, demand: &mut Demand<'a>, piece: &PathLink, back: bool, cells: Need) {
        let (Some((circuit, true)), 0) = (piece.circuit(), piece.position) else { return };
        let Some(pace) = self.topology.circuits[circuit].shaping else { return };
        let shaper = self.resources.get(Resource::Shaper(circuit), || pace.per_second());
        let name = &self.topology.circuits[circuit].name;
        let limiting = named(BottleneckKind::Shaper, name, format!("shaper of circuit `{name}`"));
        // The first cell needs no time.
        let supply = pace.per_second() * demand.span.seconds() + 1.0;
        let place = Place { back, level: piece.level, spot: Spot::Leg(piece.hop, piece.leg) };
        if let Some(limiter) = demand.add_bounded(limiting, (shaper, cells), supply, Some(place)) {
            limiter.share = piece.share;
            limiter.circuit = Some(circuit);
        }
    }

    /// Adds the need of the policer before the second link of a circuit.
    fn police(&mut self, demand: &mut Demand<'a>, piece: &PathLink, back: bool, cells: Need) {
        let (Some((circuit, true)), 1) = (piece.circuit(), piece.position) else { return };
        // A policer that tags cells drops none, so it is no limit.
        let Some((pace, tolerance, PolicingAction::Discard)) = self.topology.circuits[circuit].policing
        else {
            return;
        };
        let policer = self.resources.get(Resource::Policer(circuit), || pace.per_second());
        let name = &self.topology.circuits[circuit].name;
        let limiting = named(BottleneckKind::Policer, name, format!("policer of circuit `{name}`"));
        // Cells that come too early by at most the tolerance pass as well (I.371, GCRA).
        let time = demand.span.seconds() + tolerance.ps() as f64 / SECOND as f64;
        let supply = pace.per_second() * time + 1.0;
        let place = Place { back, level: piece.level, spot: Spot::Leg(piece.hop, piece.leg) };
        if let Some(limiter) = demand.add_bounded(limiting, (policer, cells), supply, Some(place)) {
            limiter.share = piece.share;
            limiter.circuit = Some(circuit);
        }
    }

    /// Adds the need of the token bucket of a line, for `bits` of frames. `longest` is the longest frame of a unit in bits, `shortest` the shortest frame of
    /// the flow. Cell links have no bucket here, because the length of a packet before segmentation is not defined there.
    fn tokens(
        &mut self,
        demand: &mut Demand<'a>,
        piece: &PathLink,
        back: bool,
        bits: Need,
        [longest, shortest]: [f64; 2],
    ) {
        self.short_buffer(demand, piece, back, bits, [longest, shortest]);
        let (None, hop) = (piece.circuit(), piece.hop) else { return };
        let link = &self.topology.links[hop.link];
        let Some(Queue::TokenBucket(bucket)) = &link.queues[link.end_of(hop.from)] else { return };
        let (rate, burst) = (bucket.rate.0 as f64, bucket.burst.bytes() as f64 * 8.0);
        // Frames that are longer than the bucket are lost.
        let (resource, capacity) = if longest <= burst {
            (Resource::Bucket(hop.link, hop.from), rate)
        } else {
            (Resource::Closed(hop.link, hop.from), 0.0)
        };
        let tokens = self.resources.get(resource, || capacity);
        let title = format!("token bucket of `{}` on link `{}`", self.topology.nodes[hop.from], link.name);
        // The bucket is full at the start, and again after the line has been down.
        let fillings = 1.0 + restarts(self.testbed, self.topology, hop.link, &demand.span);
        let supply = if shortest <= burst { rate * demand.span.seconds() + burst * fillings } else { 0.0 };
        // If no acknowledgement passes the bucket, no connection opens.
        let need = Need { ahead: if supply > 0.0 { bits.ahead } else { 0.0 }, ..bits };
        let place = Place { back, level: piece.level, spot: Spot::Leg(hop, piece.leg) };
        let bottleneck = named(BottleneckKind::TokenBucket, &link.name, title);
        if let Some(limiter) = demand.add_bounded(bottleneck, (tokens, need), supply, Some(place)) {
            limiter.share = piece.share;
        }
    }

    /// Adds the needs of routers on the paths. A router takes its time for every incoming packet, acknowledgements included.
    pub(super) fn routers(&mut self, demand: &mut Demand<'a>, unit: Unit, there: &There) {
        let tcp = demand.connection;
        let back = tcp.map_or(Vec::new(), |tcp| self.back(demand, tcp.header));
        // With a single path each router forwards all packets, and all acknowledgements.
        let is_one_way = demand.is_one_way();
        let mut needs: Vec<(Place, usize, f64, Need)> = Vec::new();
        let there = there.pieces.iter().map(|piece| (piece, false));
        for (piece, back) in there.chain(back.iter().map(|piece| (piece, true))) {
            let Some(node) = piece.end(self.topology) else { continue };
            let NodeKind::Router(router) = self.topology.kind(node) else { continue };
            let spread = if back { &demand.lane.back } else { &demand.lane.there };
            for step in demand.work.at(router, piece.hop.link, spread, piece.to) {
                let need = self.need_of_engine(demand, unit, (piece, back), &step, is_one_way);
                let (spot, level) = (Spot::Node(node), piece.level + 1);
                let here = Place { back, level, spot };
                // If another copy of a packet comes to the same router, it counts again.
                let is_same = |place: &Place| place.spot == spot && demand.copy(*place) == demand.copy(here);
                match needs.iter_mut().find(|(place, engine, ..)| *engine == step.engine && is_same(place)) {
                    Some((place, _, _, known)) if back && !place.back => {
                        known.unit += need.unit;
                        (known.least, known.ahead) = (known.least + need.least, need.ahead);
                    }
                    Some((_, _, share, known)) => {
                        *share += piece.share;
                        (known.unit, known.least) = (known.unit + need.unit, known.least.min(need.least));
                    }
                    None => needs.push((here, step.engine, piece.share, need)),
                }
            }
        }
        for (place, engine, share, need) in needs {
            let Spot::Node(node) = place.spot else { unreachable!("an engine belongs to a node") };
            let name = &self.topology.nodes[node];
            let (resource, title) = match engine {
                0 => (Resource::Cpu(node), format!("router `{name}`")),
                card => {
                    let (card_name, _) = self.testbed.routers[name]
                        .cards
                        .get_index(card - 1)
                        .expect("the router has the card");
                    (Resource::Card(node, card), format!("card `{card_name}` of router `{name}`"))
                }
            };
            let engine = self.resources.get(resource, || SECOND as f64);
            let router = named(BottleneckKind::Router, name, title);
            let supply = SECOND as f64 * demand.span.seconds();
            let need = Need { ahead: if need.least > 0.0 { need.ahead / need.least } else { 0.0 }, ..need };
            if let Some(limiter) = demand.add_bounded(router, (engine, need), supply, Some(place)) {
                limiter.share = share;
            }
        }
    }

    /// Returns the need of one engine at the end of a link: of the packets of a unit there, or of acknowledgements on the way back.
    fn need_of_engine(
        &self,
        demand: &Demand<'a>,
        unit: Unit,
        (piece, back): (&PathLink, bool),
        step: &StepWork,
        is_one_way: bool,
    ) -> Need {
        if let Some(tcp) = demand.connection.as_ref().filter(|_| back) {
            let ack = demand.need_of_ack(tcp, step.time);
            let unit = ack.unit * piece.share;
            // Acknowledgements that may take another path do not certainly come here. The last ones come after the end.
            let least = if is_one_way { ack.least } else { 0.0 };
            return Need { unit, least, ahead: ack.ahead * least };
        }
        let (packets, least) = unit.packets(piece);
        // Other paths to the router may come by another card.
        let least = if piece.surely || !demand.work.has_kinds(piece.hop.to) { least } else { 0.0 };
        let fragments = match step.per_fragment > 0.0 {
            true => demand.work.fragments(&demand.lane.there, piece.to, &piece.parts),
            false => 0.0,
        };
        let least_fragments = match unit {
            Unit::Datagram if packets > 0.0 => least * fragments / packets,
            _ => 0.0,
        };
        demand.need(
            step.time * packets + step.per_fragment * fragments,
            step.time * least + step.per_fragment * least_fragments,
        )
    }

    /// Adds the resources on the paths back, which carry packets without payload.
    pub(super) fn acknowledgements(&mut self, demand: &mut Demand<'a>, tcp: &Connection) {
        for piece in self.back(demand, tcp.header) {
            let ack = Part { added: piece.added, ..Part::one(tcp.header, 0) }.on(&piece.wire);
            let share = piece.share;
            let need = |demand: &Demand<'_>, amount: f64| {
                let need = demand.need_of_ack(tcp, amount);
                Need { unit: need.unit * share, ..need }
            };
            let cells = need(demand, ack.cells() as f64);
            self.shape(demand, &piece, true, cells);
            self.police(demand, &piece, true, cells);
            let bits = frame_bits(&ack);
            self.tokens(demand, &piece, true, need(demand, bits), [bits; 2]);
            let name = &self.topology.links[piece.hop.link].name;
            let title = format!("acknowledgements on link `{name}`");
            let line = need(demand, ack.line() as f64);
            self.line(demand, &piece, true, named(BottleneckKind::Acknowledgements, name, title), line);
        }
    }

    /// Adds the needs of a generator, which has no host cost and no shaper. `rate` returns its mean number of cells per second for its pace; `most` is the
    /// largest number of cells in the measurement window.
    pub(super) fn generator(&mut self, demand: &mut Demand<'a>, rate: impl Fn(Pace) -> f64, most: f64) {
        let cells = demand.path.cells.map_or(0.0, rate);
        let offered = self.resources.get(Resource::Application(demand.index), || cells);
        // The application comes first in the order of needs, because its offer is the load of the first line.
        demand.add(application(demand.table), &[(offered, 1.0)]);
        let there = self.there(demand, Unit::Cell, 0);
        self.route(demand, Unit::Cell, &there);
        demand.limiters[0].at_most = Some(demand.span.rate(most * demand.payload_bits));
        demand.limiters.rotate_left(1);
    }
}
