//! What a unit of every flow needs of the lines, shapers, policers, CPUs and of its own application.
//!
//! The unit is a UDP message with all its fragments, a full TCP segment, or a generator's cell.

use std::collections::BTreeMap;

use engpass_model::circuit::Category;
use engpass_model::host::{CpuCost, DataPath, Transfer};
use engpass_model::queue::Queue;
use engpass_model::schedule::Schedule;
use engpass_model::shape::PolicingAction;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::tcp::TcpConfig;
use engpass_model::tcp::parameters::AckCounting;
use engpass_model::time::{Pace, SECOND};
use engpass_model::wire::Encapsulation;
use engpass_model::wire::ip::{Fragments, TCP_HEADER_BYTES, UDP_HEADER_BYTES};
use engpass_testbed::topology::{FlowPath, Hop, Leg, NodeId, NodeKind};
use engpass_testbed::{Testbed, Topology};

use super::fill::Use;
use super::layers::{Layer, Layers, Wire};
use super::outcome::CandidateKind;

/// What is shared. The order of the variants means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resource {
    /// A direction of a link, in parts of its bits.
    Line(usize, NodeId),
    /// A circuit's shaper, in cells.
    Shaper(usize),
    /// A circuit's policer, in cells.
    Policer(usize),
    /// A host's CPU or a router's forwarding engine, in picoseconds.
    Cpu(NodeId),
    /// A host's memory, in bytes moved.
    Memory(NodeId),
    /// A host's I/O bus towards its device, or from it, in bytes.
    Bus(NodeId, bool),
    /// Both directions of an I/O bus where they share it.
    BothWays(NodeId),
    /// A flow's turns of CPU and DMA at one host, in picoseconds.
    Turns(usize, NodeId),
    /// Tokens of the discipline of a direction of a link, in bits of frames.
    Bucket(usize, NodeId),
    /// The same where the bucket is too small for a frame and lets nothing through.
    Closed(usize, NodeId),
    /// What a flow's application offers, in units.
    Application(usize),
}

/// All resources, by index.
#[derive(Default)]
pub(super) struct Resources {
    index: BTreeMap<Resource, usize>,
    /// What each has per second.
    pub(super) capacities: Vec<f64>,
    /// The flows that need each, in their order.
    pub(super) users: Vec<Vec<usize>>,
}

impl Resources {
    pub(super) fn get(&mut self, resource: Resource, capacity: impl FnOnce() -> f64) -> usize {
        *self.index.entry(resource).or_insert_with(|| {
            self.capacities.push(capacity());
            self.users.push(Vec::new());
            self.capacities.len() - 1
        })
    }

    /// All flows are known.
    fn note_users(&mut self, demands: &[Demand<'_>]) {
        for (flow, demand) in demands.iter().enumerate() {
            for need in &demand.uses {
                let users = &mut self.users[need.resource];
                if users.last() != Some(&flow) {
                    users.push(flow);
                }
            }
        }
    }

    /// Index of the direction of `link` that begins at `from`, if anything uses it.
    pub(super) fn line(&self, link: usize, from: NodeId) -> Option<usize> {
        self.index.get(&Resource::Line(link, from)).copied()
    }
}

/// Something that could limit a flow: resources that count as one.
pub(super) struct Limiter {
    pub(super) kind: CandidateKind,
    pub(super) name: String,
    pub(super) resources: Vec<usize>,
    /// For a link of the route: the hop and the layers of a unit on it.
    pub(super) line: Option<(Hop, Layers)>,
    /// For a shaper or policer: its circuit.
    pub(super) circuit: Option<usize>,
    /// For memory, I/O bus and turns: the way of the data, and what a byte needs on it.
    pub(super) data: Option<(DataPath, Transfer)>,
}

/// A flow and its needs.
pub(super) struct Demand<'a> {
    pub(super) name: &'a str,
    pub(super) traffic: &'a Traffic,
    pub(super) path: &'a FlowPath,
    /// Whether it sends cells whatever becomes of them. A class has only generators or none.
    pub(super) generator: bool,
    /// Classes are served in this order; see [`class`].
    pub(super) class: u8,
    /// Bits of cells or frames in a unit on the first link, without physical framing, over the number of connections.
    pub(super) weight: f64,
    /// Payload bits of a unit.
    pub(super) payload_bits: f64,
    /// Segments that one acknowledgement acknowledges; 0 for what is no TCP.
    pub(super) segments_per_ack: f64,
    /// Needs of one unit, in the order in which it meets them.
    pub(super) uses: Vec<Use>,
    pub(super) limiters: Vec<Limiter>,
}

impl Demand<'_> {
    pub(super) fn add(&mut self, kind: CandidateKind, name: String, needs: &[(usize, f64)]) {
        let needs: Vec<_> = needs.iter().filter(|(_, amount)| *amount > 0.0).copied().collect();
        // What costs nothing limits nothing.
        if needs.is_empty() {
            return;
        }
        self.uses.extend(needs.iter().map(|(resource, amount)| Use { resource: *resource, amount: *amount }));
        let resources = needs.iter().map(|(resource, _)| *resource).collect();
        self.limiters.push(Limiter { kind, name, resources, line: None, circuit: None, data: None });
    }
}

/// The needs of every flow, in the order of the file.
pub(super) fn demands<'a>(testbed: &'a Testbed, topology: &'a Topology) -> (Resources, Vec<Demand<'a>>) {
    let mut builder = Builder { testbed, topology, resources: Resources::default() };
    let demands: Vec<_> = testbed
        .traffic
        .iter()
        .zip(&topology.flows)
        .enumerate()
        .map(|(flow, ((name, traffic), path))| builder.demand(flow, name, traffic, path))
        .collect();
    builder.resources.note_users(&demands);
    (builder.resources, demands)
}

/// Generators before streams, because they do not yield; where all switches on the way serve by priority, all that is of
/// the `cbr` category before all that is not.
fn class(testbed: &Testbed, topology: &Topology, path: &FlowPath, generator: bool) -> u8 {
    let first = path.circuit.is_some_and(|circuit| topology.circuits[circuit].category == Category::Cbr);
    let (_, between) = path.route.split_last().expect("a route has a hop");
    let by_priority = between.iter().all(|hop| match testbed.switches.get(&topology.nodes[hop.to]) {
        Some(Switch::Atm(switch)) => matches!(switch.schedule, Schedule::Priority(_)),
        _ => false,
    });
    let privileged = first && by_priority && !between.is_empty();
    2 * u8::from(!privileged) + u8::from(!generator)
}

/// Bytes of the timestamps option with its padding (RFC 7323 appendix A).
const TIMESTAMPS_BYTES: u64 = 12;

/// A connection that is open.
struct Tcp {
    /// Payload of a full segment, in bytes.
    segment: u64,
    /// Header of every segment, options included, in bytes.
    header: u64,
    /// Full segments that one acknowledgement acknowledges.
    segments_per_ack: f64,
}

/// What a flow is counted in.
enum Unit<'u> {
    /// A generator's cell.
    Cell,
    /// A message or segment: on each leg the IP payloads of its packets, the first of which begins with the transport
    /// header.
    Packets { transport: u64, lengths: &'u [Vec<u64>] },
}

impl Unit<'_> {
    /// What it takes of a line.
    fn on(&self, piece: &Piece) -> Layers {
        match self {
            Self::Cell => piece.wire.cell().expect("a generator sends over ATM links"),
            Self::Packets { transport, lengths } => piece.wire.packets(*transport, &lengths[piece.leg]),
        }
    }

    /// Bits of its longest frame, without physical framing.
    fn longest(&self, piece: &Piece) -> f64 {
        match self {
            Self::Cell => 0.0,
            Self::Packets { lengths, .. } => {
                let longest = lengths[piece.leg].iter().max().copied().unwrap_or(0);
                frame_bits(&piece.wire.packets(0, &[longest]))
            }
        }
    }
}

/// Bits of cells or frames, without physical framing.
fn frame_bits(layers: &Layers) -> f64 {
    (layers.line() - layers.parts(Layer::Physical)) as f64 / layers.parts_per_bit() as f64
}

/// A link of a way.
struct Piece {
    /// Which leg it is in.
    leg: usize,
    /// The circuit it is in, and whether that is taken forward.
    circuit: Option<(usize, bool)>,
    /// Its place in the leg.
    position: usize,
    hop: Hop,
    wire: Wire,
}

pub(super) struct Builder<'a> {
    pub(super) testbed: &'a Testbed,
    pub(super) topology: &'a Topology,
    pub(super) resources: Resources,
}

impl<'a> Builder<'a> {
    fn demand(&mut self, flow: usize, name: &'a str, traffic: &'a Traffic, path: &'a FlowPath) -> Demand<'a> {
        let generator = matches!(traffic, Traffic::Cbr(_) | Traffic::OnOff(_));
        let mut demand = Demand {
            name,
            traffic,
            path,
            generator,
            class: class(self.testbed, self.topology, path, generator),
            weight: 1.0,
            payload_bits: 0.0,
            segments_per_ack: 0.0,
            uses: Vec::new(),
            limiters: Vec::new(),
        };
        match traffic {
            Traffic::UdpStream(_) | Traffic::Poisson(_) | Traffic::UdpOnOff(_) => {
                // What is drawn is taken as if every datagram were of the mean length.
                let (message, rate) = traffic.datagrams().expect("it sends datagrams");
                let packets = self.fragments(path, message + UDP_HEADER_BYTES);
                self.route(&mut demand, &Unit::Packets { transport: UDP_HEADER_BYTES, lengths: &packets });
                let forwarded: Vec<f64> = packets.iter().map(|packets| packets.len() as f64).collect();
                self.routers(&mut demand, &forwarded);
                // What is cut on the way comes in pieces.
                let [sent, received] = [packets.first(), packets.last()]
                    .map(|packets| packets.map_or(0, |all| all.len() as u64));
                self.hosts(
                    &mut demand,
                    flow,
                    |cost| cost.datagram(message, sent) as f64,
                    |cost| cost.datagram(message, received) as f64,
                );
                if let Some(rate) = rate {
                    self.offers(&mut demand, flow, rate.0 as f64);
                }
            }
            Traffic::TcpStream(config) => {
                let tcp = self.tcp(path, &config.tcp, config.message.bytes());
                let packets = self.fragments(path, tcp.header + tcp.segment);
                self.route(&mut demand, &Unit::Packets { transport: tcp.header, lengths: &packets });
                demand.weight /= f64::from(config.streams);
                demand.segments_per_ack = tcp.segments_per_ack;
                let acks = 1.0 / tcp.segments_per_ack;
                let forwarded: Vec<f64> = packets.iter().map(|packets| packets.len() as f64 + acks).collect();
                self.routers(&mut demand, &forwarded);
                let writes = tcp.segment as f64 / config.message.bytes().max(1) as f64;
                let reading = |cost: &CpuCost| {
                    cost.segment() as f64 + cost.bytes(tcp.segment) as f64 + cost.ack() as f64 * acks
                };
                let writing = |cost: &CpuCost| writes * cost.write() as f64 + reading(cost);
                self.hosts(&mut demand, flow, writing, reading);
                self.acknowledgements(&mut demand, &tcp);
                if let Some(rate) = config.rate {
                    self.offers(&mut demand, flow, rate.0 as f64 * f64::from(config.streams));
                }
            }
            Traffic::RequestResponse(_) | Traffic::Multicast(_) => {
                panic!("`unmodelled` refuses traffic that the model does not carry")
            }
            Traffic::Cbr(_) => self.generator(&mut demand, flow, Pace::per_second),
            Traffic::OnOff(config) => self.generator(&mut demand, flow, |pace| config.mean(pace)),
        }
        demand
    }

    /// An application that writes this much payload in a second, in bit/s, and no more.
    fn offers(&mut self, demand: &mut Demand<'_>, flow: usize, bit_per_s: f64) {
        let offered = self.resources.get(Resource::Application(flow), || bit_per_s);
        // The payload of a message: an empty one has no rate of payload.
        let payload = demand.payload_bits;
        demand.add(CandidateKind::Application, application(demand.name), &[(offered, payload)]);
    }

    /// The IP payloads of the packets that carry a datagram on each leg: cut by the host for the first one, and by routers
    /// for those after it. A packet that is cut stays cut up to the receiver (RFC 791 section 3.2).
    fn fragments(&self, path: &FlowPath, ip_payload: u64) -> Vec<Vec<u64>> {
        let mut packets = vec![ip_payload];
        let mut legs = Vec::new();
        for leg in &path.legs {
            packets = Fragments::cut(&packets, self.topology.mtu(*leg));
            legs.push(packets.clone());
        }
        legs
    }

    /// What two hosts agree on: the smaller segment size, and timestamps if both have them (RFC 7323 section 3.2).
    fn tcp(&self, path: &FlowPath, own: &TcpConfig, message: u64) -> Tcp {
        // TCP finds the path MTU (RFC 1191).
        let of = |host: NodeId| own.over(&self.testbed.hosts[host].tcp).resolve(path.path_mtu);
        let (sender, receiver) = (of(path.from), of(path.to));
        let timestamps = sender.timestamps && receiver.timestamps;
        let options = if timestamps { TIMESTAMPS_BYTES } else { 0 };
        // RFC 6691: the segment size counts the options of a segment.
        let segment = sender.mss.min(receiver.mss) - options;
        // Where bytes count, an acknowledgement waits for so many full segments; the one that completes them may bring
        // nearly one more where segments end with writes.
        let tails = sender.write_boundaries
            && !message.is_multiple_of(segment)
            && receiver.ack_counting != AckCounting::Segments;
        Tcp {
            segment,
            header: TCP_HEADER_BYTES + options,
            segments_per_ack: f64::from(receiver.ack_every + u32::from(tails)),
        }
    }

    /// The links of some legs, with the circuits they are in.
    fn pieces(&self, legs: impl Iterator<Item = Leg>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (index, leg) in legs.enumerate() {
            let circuit = match leg {
                Leg::Link(_) => None,
                Leg::Circuit { circuit, forward } => Some((circuit, forward)),
            };
            // Where there are no cells, no encapsulation is needed.
            let encapsulation = circuit.map_or(Encapsulation::default(), |(circuit, _)| {
                self.topology.circuits[circuit].encapsulation
            });
            for (position, hop) in self.topology.hops(leg).into_iter().enumerate() {
                let link = &self.topology.links[hop.link];
                let wire = Wire::new(link, link.end_of(hop.from), encapsulation);
                pieces.push(Piece { leg: index, circuit, position, hop, wire });
            }
        }
        pieces
    }

    /// Lines, token buckets, policers and shapers on the way. Generators are not shaped.
    fn route(&mut self, demand: &mut Demand<'a>, unit: &Unit<'_>) {
        let pieces = self.pieces(demand.path.legs.iter().copied());
        let first = pieces.first().expect("a route has a hop");
        let layers = unit.on(first);
        demand.weight = frame_bits(&layers);
        demand.payload_bits = layers.parts(Layer::Payload) as f64 / layers.parts_per_bit() as f64;
        for piece in &pieces {
            let layers = unit.on(piece);
            self.police(demand, piece, layers.cells() as f64);
            let hop = piece.hop;
            let line =
                self.resources.get(Resource::Line(hop.link, hop.from), || piece.wire.capacity() as f64);
            let name = format!("link `{}`", self.topology.links[hop.link].name);
            demand.add(CandidateKind::Link, name, &[(line, layers.line() as f64)]);
            demand.limiters.last_mut().expect("a unit takes some of a line").line = Some((hop, layers));
            self.tokens(demand, piece, frame_bits(&layers), unit.longest(piece));
        }
        let shaped = if demand.generator { &[] } else { pieces.as_slice() };
        for piece in shaped {
            self.shape(demand, piece, unit.on(piece).cells() as f64);
        }
    }

    /// The shaper where a circuit begins, for `cells` a unit.
    fn shape(&mut self, demand: &mut Demand<'a>, piece: &Piece, cells: f64) {
        let (Some((circuit, true)), 0) = (piece.circuit, piece.position) else { return };
        let Some(pace) = self.topology.circuits[circuit].shaping else { return };
        let shaper = self.resources.get(Resource::Shaper(circuit), || pace.per_second());
        let name = format!("shaper of circuit `{}`", self.topology.circuits[circuit].name);
        demand.add(CandidateKind::Shaper, name, &[(shaper, cells)]);
        demand.limiters.last_mut().expect("a unit has cells").circuit = Some(circuit);
    }

    /// The policer before the second link of a circuit, for `cells` a unit.
    fn police(&mut self, demand: &mut Demand<'a>, piece: &Piece, cells: f64) {
        let (Some((circuit, true)), 1) = (piece.circuit, piece.position) else { return };
        // What is tagged goes on.
        let Some((pace, _, PolicingAction::Discard)) = self.topology.circuits[circuit].policing else {
            return;
        };
        let policer = self.resources.get(Resource::Policer(circuit), || pace.per_second());
        let name = format!("policer of circuit `{}`", self.topology.circuits[circuit].name);
        demand.add(CandidateKind::Policer, name, &[(policer, cells)]);
        demand.limiters.last_mut().expect("a unit has cells").circuit = Some(circuit);
    }

    /// The token bucket of the transmitter, for so many bits of frames a unit, of which the longest has `longest`. Where
    /// cells are sent it is left out: no rule says what packets are long there before they are cells.
    fn tokens(&mut self, demand: &mut Demand<'a>, piece: &Piece, bits: f64, longest: f64) {
        let (None, hop) = (piece.circuit, piece.hop) else { return };
        let link = &self.topology.links[hop.link];
        let queue = &link.queues[usize::from(link.ends[0] != hop.from)];
        let Some(Queue::TokenBucket(bucket)) = queue else { return };
        // What is longer than the bucket is lost.
        let passes = longest <= bucket.burst.bytes() as f64 * 8.0;
        let resource =
            if passes { Resource::Bucket(hop.link, hop.from) } else { Resource::Closed(hop.link, hop.from) };
        let tokens = self.resources.get(resource, || if passes { bucket.rate.0 as f64 } else { 0.0 });
        let name = format!("token bucket of `{}` on link `{}`", self.topology.nodes[hop.from], link.name);
        demand.add(CandidateKind::TokenBucket, name, &[(tokens, bits)]);
    }

    /// The routers on the way, which take their time for every packet of a unit that comes to them: so many on each leg.
    fn routers(&mut self, demand: &mut Demand<'a>, packets: &[f64]) {
        let path = demand.path;
        for (leg, packets) in path.legs.iter().zip(packets) {
            let Some(hop) = self.topology.hops(*leg).last().copied() else { continue };
            let NodeKind::Router(index) = self.topology.kind(hop.to) else { continue };
            let time = packets * self.testbed.routers[index].per_packet.0 as f64;
            let needs = [(self.resources.get(Resource::Cpu(hop.to), || SECOND as f64), time)];
            let name = format!("router `{}`", self.topology.nodes[hop.to]);
            demand.add(CandidateKind::Router, name, &needs);
        }
    }

    /// The other direction of every link: packets without payload, one for so many segments.
    fn acknowledgements(&mut self, demand: &mut Demand<'a>, tcp: &Tcp) {
        for piece in self.pieces(demand.path.legs.iter().rev().map(|leg| leg.back())) {
            let ack = piece.wire.packet(tcp.header, 0);
            let cells = ack.cells() as f64 / tcp.segments_per_ack;
            self.shape(demand, &piece, cells);
            self.police(demand, &piece, cells);
            self.tokens(demand, &piece, frame_bits(&ack) / tcp.segments_per_ack, frame_bits(&ack));
            let hop = piece.hop;
            let line =
                self.resources.get(Resource::Line(hop.link, hop.from), || piece.wire.capacity() as f64);
            let name = format!("acknowledgements on link `{}`", self.topology.links[hop.link].name);
            demand.add(
                CandidateKind::Acknowledgements,
                name,
                &[(line, ack.line() as f64 / tcp.segments_per_ack)],
            );
        }
    }

    /// A generator with this mean rate of cells, which its pace tells. It has no host cost and no shaper.
    fn generator(&mut self, demand: &mut Demand<'a>, flow: usize, rate: impl Fn(Pace) -> f64) {
        let cells = demand.path.cells.map_or(0.0, rate);
        let offered = self.resources.get(Resource::Application(flow), || cells);
        // First in the order: what it offers is what its first line meets.
        demand.add(CandidateKind::Application, application(demand.name), &[(offered, 1.0)]);
        self.route(demand, &Unit::Cell);
        demand.limiters.rotate_left(1);
    }
}

fn application(name: &str) -> String {
    format!("application `{name}`")
}
