//! Needs of a flow on its path: lines, shapers, policers, token buckets and routers, with the acknowledgements on the way back.

use engpass_model::queue::Queue;
use engpass_model::shape::PolicingAction;
use engpass_model::time::{Pace, SECOND};
use engpass_model::wire::Encapsulation;
use engpass_model::wire::ip::{IP_HEADER_BYTES, MAX_UDP_PAYLOAD, UDP_HEADER_BYTES};
use engpass_outcome::{Bottleneck, BottleneckKind};
use engpass_testbed::topology::{Hop, Leg, NodeKind};

use super::connection::Connection;
use super::demand::{Builder, Demand, Need, Resource, application, named};
use super::layers::{Layer, Layers, Wire};

/// The unit that a flow is counted in. `lengths` has the IP payloads of its packets on each leg; the first begins with the transport header.
pub(super) enum Unit<'u> {
    /// A generator's cell.
    Cell,
    /// A datagram with all its packets.
    Datagram { lengths: &'u [Vec<u64>] },
    /// A datagram of the mean length, where lengths are drawn.
    Drawn { lengths: &'u [Vec<u64>] },
    /// A full TCP segment: its header and its payload in bytes. Some may be shorter.
    Segment { header: u64, segment: u64, lengths: &'u [Vec<u64>] },
}

impl Unit<'_> {
    /// Its bits on a line, by layer.
    fn on(&self, piece: &Piece) -> Layers {
        match self {
            Self::Cell => piece.wire.cell().expect("a generator sends over ATM links"),
            Self::Datagram { lengths } | Self::Drawn { lengths } => {
                piece.wire.packets(UDP_HEADER_BYTES, &lengths[piece.leg])
            }
            Self::Segment { header, lengths, .. } => piece.wire.packets(*header, &lengths[piece.leg]),
        }
    }

    /// Its need of a resource that `of` measures in layers.
    fn need(&self, demand: &Demand<'_>, piece: &Piece, of: impl Fn(&Layers) -> f64) -> Need {
        let layers = self.on(piece);
        let unit = of(&layers);
        let least = match self {
            Self::Cell | Self::Datagram { .. } => {
                unit * layers.parts_per_bit() as f64 / layers.parts(Layer::Payload) as f64
            }
            // A full packet without a UDP header: a fragment.
            Self::Drawn { .. } => piece.wire.least(0, longest_payload(piece.mtu), of),
            Self::Segment { header, segment, .. } => piece.wire.least(*header, *segment, of),
        };
        demand.need(unit, least)
    }

    /// Bits of its longest frame, and of the shortest frame that the flow may send instead, both without physical framing.
    fn longest_and_shortest(&self, piece: &Piece) -> [f64; 2] {
        let longest = |lengths: &[Vec<u64>]| {
            let longest = lengths[piece.leg].iter().max().copied().unwrap_or(0);
            frame_bits(&piece.wire.packets(0, &[longest]))
        };
        let shortest = |transport| frame_bits(&piece.wire.packet(transport, 1));
        match self {
            Self::Cell => [0.0; 2],
            Self::Datagram { lengths } => [longest(lengths); 2],
            Self::Drawn { lengths } => [longest(lengths), shortest(UDP_HEADER_BYTES)],
            Self::Segment { header, lengths, .. } => [longest(lengths), shortest(*header)],
        }
    }

    /// Packets per unit on a leg, and the fewest packets per bit of payload.
    fn packets(&self, leg: usize, mtu: u64) -> (f64, f64) {
        match self {
            Self::Cell => (1.0, 1.0),
            Self::Datagram { lengths } => {
                let (packets, bytes) = (lengths[leg].len() as f64, lengths[leg].iter().sum::<u64>());
                (packets, packets / (8 * (bytes - UDP_HEADER_BYTES)) as f64)
            }
            Self::Drawn { lengths } => (lengths[leg].len() as f64, 1.0 / (8 * longest_payload(mtu)) as f64),
            Self::Segment { segment, lengths, .. } => (lengths[leg].len() as f64, 1.0 / (8 * segment) as f64),
        }
    }
}

/// Bytes behind the IP header of the longest packet of a datagram for this MTU.
fn longest_payload(mtu: u64) -> u64 {
    (mtu - IP_HEADER_BYTES).min(MAX_UDP_PAYLOAD + UDP_HEADER_BYTES)
}

/// Bits of cells or frames, without physical framing.
fn frame_bits(layers: &Layers) -> f64 {
    (layers.line() - layers.parts(Layer::Physical)) as f64 / layers.parts_per_bit() as f64
}

/// A link of a way.
pub(super) struct Piece {
    /// Which leg it is in.
    leg: usize,
    /// The smallest MTU up to there.
    mtu: u64,
    /// The circuit it is in, and whether that is taken forward.
    pub(super) circuit: Option<(usize, bool)>,
    /// Its place in the leg.
    pub(super) position: usize,
    pub(super) hop: Hop,
    pub(super) wire: Wire,
}

impl<'a> Builder<'a> {
    /// The links of some legs, with the circuits they are in.
    pub(super) fn pieces(&self, legs: impl Iterator<Item = Leg>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut mtu = u64::MAX;
        for (index, leg) in legs.enumerate() {
            mtu = mtu.min(self.topology.mtu(leg));
            let circuit = match leg {
                Leg::Link(_) => None,
                Leg::Circuit { circuit, forward } => Some((circuit, forward)),
            };
            // Links of frames have no encapsulation.
            let encapsulation = circuit.map_or(Encapsulation::default(), |(circuit, _)| {
                self.topology.circuits[circuit].encapsulation
            });
            for (position, hop) in self.topology.hops(leg).into_iter().enumerate() {
                let link = &self.topology.links[hop.link];
                let wire = Wire::new(link, link.end_of(hop.from), encapsulation);
                pieces.push(Piece { leg: index, mtu, circuit, position, hop, wire });
            }
        }
        pieces
    }

    /// Lines, token buckets, policers and shapers on the way. Generators are not shaped.
    pub(super) fn route(&mut self, demand: &mut Demand<'a>, unit: &Unit<'_>) {
        let pieces = self.pieces(demand.path.legs.iter().copied());
        let first = pieces.first().expect("a route has a hop");
        let layers = unit.on(first);
        demand.weight = frame_bits(&layers);
        demand.payload_bits = layers.parts(Layer::Payload) as f64 / layers.parts_per_bit() as f64;
        for piece in &pieces {
            let cells = unit.need(demand, piece, |layers| layers.cells() as f64);
            self.police(demand, piece, cells);
            let line = unit.need(demand, piece, |layers| layers.line() as f64);
            let name = &self.topology.links[piece.hop.link].name;
            self.line(demand, piece, named(BottleneckKind::Link, name, format!("link `{name}`")), line);
            demand.limiters.last_mut().expect("a unit takes some of a line").line =
                Some((piece.hop, unit.on(piece)));
            let frames = unit.need(demand, piece, frame_bits);
            self.tokens(demand, piece, frames, unit.longest_and_shortest(piece));
        }
        let shaped = if demand.generator { &[] } else { pieces.as_slice() };
        for piece in shaped {
            let cells = unit.need(demand, piece, |layers| layers.cells() as f64);
            self.shape(demand, piece, cells);
        }
    }

    /// A line, less what others certainly take of it.
    fn line(&mut self, demand: &mut Demand<'a>, piece: &Piece, bottleneck: Bottleneck, need: Need) {
        let capacity = piece.wire.capacity() as f64;
        let hop = piece.hop;
        let line = self.resources.get(Resource::Line(hop.link, hop.from), || capacity);
        let cell = piece.wire.cell().map_or(0.0, |cell| cell.line() as f64);
        let others = self.certain.on(hop, demand.flow).map(|taken| (taken.flow, taken.cells(&demand.span)));
        let others: Vec<(usize, u64)> = others.filter(|(_, cells)| *cells > 0).collect();
        let taken: f64 = others.iter().map(|(_, cells)| *cells as f64 * cell).sum();
        // The gap behind the last frame may lie behind the end.
        let whole = capacity * demand.span.seconds() + piece.wire.gap() as f64;
        if let Some(limiter) = demand.add_bounded(bottleneck, (line, need), (whole - taken).max(0.0)) {
            limiter.certain = (others.into_iter().map(|(flow, _)| flow).collect(), taken / whole);
        }
    }

    /// The shaper where a circuit begins.
    fn shape(&mut self, demand: &mut Demand<'a>, piece: &Piece, cells: Need) {
        let (Some((circuit, true)), 0) = (piece.circuit, piece.position) else { return };
        let Some(pace) = self.topology.circuits[circuit].shaping else { return };
        let shaper = self.resources.get(Resource::Shaper(circuit), || pace.per_second());
        let name = &self.topology.circuits[circuit].name;
        let limiting = named(BottleneckKind::Shaper, name, format!("shaper of circuit `{name}`"));
        // The first cell needs no time.
        let supply = pace.per_second() * demand.span.seconds() + 1.0;
        if let Some(limiter) = demand.add_bounded(limiting, (shaper, cells), supply) {
            limiter.circuit = Some(circuit);
        }
    }

    /// The policer before the second link of a circuit.
    fn police(&mut self, demand: &mut Demand<'a>, piece: &Piece, cells: Need) {
        let (Some((circuit, true)), 1) = (piece.circuit, piece.position) else { return };
        // Tagged cells pass.
        let Some((pace, tolerance, PolicingAction::Discard)) = self.topology.circuits[circuit].policing
        else {
            return;
        };
        let policer = self.resources.get(Resource::Policer(circuit), || pace.per_second());
        let name = &self.topology.circuits[circuit].name;
        let limiting = named(BottleneckKind::Policer, name, format!("policer of circuit `{name}`"));
        // Cells that are early by the tolerance pass, too (I.371, GCRA).
        let time = demand.span.seconds() + tolerance.ps() as f64 / SECOND as f64;
        let supply = pace.per_second() * time + 1.0;
        if let Some(limiter) = demand.add_bounded(limiting, (policer, cells), supply) {
            limiter.circuit = Some(circuit);
        }
    }

    /// The token bucket of the transmitter, for `bits` of frames, given the bits of the longest frame of a unit and of the shortest frame of the
    /// flow. Links of cells have none: the length of a packet before segmentation is not defined there.
    fn tokens(&mut self, demand: &mut Demand<'a>, piece: &Piece, bits: Need, [longest, shortest]: [f64; 2]) {
        let (None, hop) = (piece.circuit, piece.hop) else { return };
        let link = &self.topology.links[hop.link];
        let Some(Queue::TokenBucket(bucket)) = &link.queues[link.end_of(hop.from)] else { return };
        let (rate, burst) = (bucket.rate.0 as f64, bucket.burst.bytes() as f64 * 8.0);
        // Frames longer than the bucket are lost.
        let (resource, capacity) = if longest <= burst {
            (Resource::Bucket(hop.link, hop.from), rate)
        } else {
            (Resource::Closed(hop.link, hop.from), 0.0)
        };
        let tokens = self.resources.get(resource, || capacity);
        let title = format!("token bucket of `{}` on link `{}`", self.topology.nodes[hop.from], link.name);
        // It is full at the start.
        let supply = if shortest <= burst { rate * demand.span.seconds() + burst } else { 0.0 };
        // If no acknowledgement passes the bucket, no connection opens.
        let need = Need { ahead: if supply > 0.0 { bits.ahead } else { 0.0 }, ..bits };
        demand.add_bounded(named(BottleneckKind::TokenBucket, &link.name, title), (tokens, need), supply);
    }

    /// The routers on the way, which take their time for every packet that comes to them, acknowledgements included.
    pub(super) fn routers(&mut self, demand: &mut Demand<'a>, unit: &Unit<'_>) {
        let path = demand.path;
        let ack = demand.connection.map(|connection| demand.need_of_ack(&connection, 1.0));
        let mut mtu = u64::MAX;
        for (index, leg) in path.legs.iter().enumerate() {
            mtu = mtu.min(self.topology.mtu(*leg));
            let Some(hop) = self.topology.hops(*leg).last().copied() else { continue };
            let NodeKind::Router(router) = self.topology.kind(hop.to) else { continue };
            let time = self.testbed.routers[router].per_packet.0 as f64;
            let (packets, least) = unit.packets(index, mtu);
            let [acks, least_acks] = ack.map_or([0.0; 2], |ack| [ack.unit, ack.least]);
            let need = demand.need(time * (packets + acks), time * (least + least_acks));
            // The last acknowledgements come after the end.
            let spared = ack.map_or(0.0, |ack| ack.ahead * ack.least * time);
            let supply = SECOND as f64 * demand.span.seconds() + spared;
            let cpu = self.resources.get(Resource::Cpu(hop.to), || SECOND as f64);
            let name = &self.topology.nodes[hop.to];
            let router = named(BottleneckKind::Router, name, format!("router `{name}`"));
            demand.add_bounded(router, (cpu, need), supply);
        }
    }

    /// The other direction of every link: packets without payload.
    pub(super) fn acknowledgements(&mut self, demand: &mut Demand<'a>, tcp: &Connection) {
        for piece in self.pieces(demand.path.legs.iter().rev().map(|leg| leg.back())) {
            let ack = piece.wire.packet(tcp.header, 0);
            let cells = demand.need_of_ack(tcp, ack.cells() as f64);
            self.shape(demand, &piece, cells);
            self.police(demand, &piece, cells);
            let bits = frame_bits(&ack);
            self.tokens(demand, &piece, demand.need_of_ack(tcp, bits), [bits; 2]);
            let name = &self.topology.links[piece.hop.link].name;
            let title = format!("acknowledgements on link `{name}`");
            let line = demand.need_of_ack(tcp, ack.line() as f64);
            self.line(demand, &piece, named(BottleneckKind::Acknowledgements, name, title), line);
        }
    }

    /// A generator: `rate` gives its mean cells per second from its pace, `most` the most cells in the counted time. It has no host cost and no
    /// shaper.
    pub(super) fn generator(&mut self, demand: &mut Demand<'a>, rate: impl Fn(Pace) -> f64, most: f64) {
        let cells = demand.path.cells.map_or(0.0, rate);
        let offered = self.resources.get(Resource::Application(demand.flow), || cells);
        // The application comes first in the order of needs: its offer is the load of the first line.
        demand.add(application(demand.name), &[(offered, 1.0)]);
        self.route(demand, &Unit::Cell);
        demand.limiters[0].at_most = Some(demand.span.rate(most * demand.payload_bits));
        demand.limiters.rotate_left(1);
    }
}
