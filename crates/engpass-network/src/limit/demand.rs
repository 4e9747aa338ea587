//! What a unit of every lane needs of the lines, shapers, policers, CPUs and of its own application.
//!
//! The unit is a UDP message with all its fragments, a full TCP segment, or a generator's cell. A lane is made of the connections of a flow
//! whose packets take the same ways; most flows have one lane.

use std::collections::BTreeMap;

use engpass_model::circuit::Category;
use engpass_model::host::{CpuCost, DataPath, Transfer};
use engpass_model::schedule::Schedule;
use engpass_model::source::{Poisson, TcpStream, Traffic, poisson};
use engpass_model::switch::Switch;
use engpass_model::time::{Pace, SECOND};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES, MAX_UDP_PAYLOAD, UDP_HEADER_BYTES};
use engpass_outcome::{Bottleneck, BottleneckKind};
use engpass_testbed::topology::{FlowPath, NodeId};
use engpass_testbed::{Lane, Testbed, Topology, lanes};

use super::acks::Sharing;
use super::bound::Span;
use super::certain::Certain;
use super::connection::{Connection, Window, connection};
use super::cut::{Gate, Place, Turns};
use super::fill::Use;
use super::piece::OnLine;
use super::way::Unit;

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
    /// A lane's turns of CPU and DMA at one host, in picoseconds.
    Turns(usize, NodeId),
    /// Tokens of the discipline of a direction of a link, in bits of frames.
    Bucket(usize, NodeId),
    /// The same where the bucket is too small for a frame and lets nothing through.
    Closed(usize, NodeId),
    /// A tunnel, for packets that are too long for it.
    Refusing(usize),
    /// What a lane's application offers, in units.
    Application(usize),
    /// Payload bits per second that the windows of a lane's connections let through.
    Window(usize),
}

/// All resources, by index.
#[derive(Default)]
pub(super) struct Resources {
    index: BTreeMap<Resource, usize>,
    /// What each has per second.
    pub(super) capacities: Vec<f64>,
    /// The lanes that need each, in their order.
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

    /// All lanes are known.
    fn note_users(&mut self, demands: &[Demand<'_>]) {
        for demand in demands {
            for need in &demand.uses {
                let users = &mut self.users[need.resource];
                if users.last() != Some(&demand.index) {
                    users.push(demand.index);
                }
            }
        }
    }

    /// Every resource in words, with its index.
    pub(super) fn named(&self) -> impl Iterator<Item = (String, usize)> {
        self.index.iter().map(|(resource, place)| (format!("{resource:?}"), *place))
    }

    /// Index of the direction of `link` that begins at `from`, if anything uses it.
    pub(super) fn line(&self, link: usize, from: NodeId) -> Option<usize> {
        self.index.get(&Resource::Line(link, from)).copied()
    }
}

/// Something that could limit a flow: resources that count as one.
pub(super) struct Limiter {
    pub(super) bottleneck: Bottleneck,
    pub(super) resources: Vec<usize>,
    /// For a link there: the layers of a unit on it.
    pub(super) line: Option<OnLine>,
    /// Its place on the ways; `None` for what is at the ends.
    pub(super) place: Option<Place>,
    /// Share of the lane's packets, or of its acknowledgements, that need it.
    pub(super) share: f64,
    /// For a shaper or policer: its circuit.
    pub(super) circuit: Option<usize>,
    /// For memory, I/O bus and turns: the way of the data, and what a byte needs on it.
    pub(super) data: Option<(DataPath, Transfer)>,
    /// Bound of the lane's goodput by these resources over the counted time, in bit/s; `None` if the lane alone on the resources decides it.
    pub(super) at_most: Option<f64>,
    /// The part of it that needs nothing of the resources in the counted time.
    pub(super) ahead: f64,
    /// Generators that certainly take a part of a line, and that part as a share of its capacity in the counted time.
    pub(super) certain: (Vec<usize>, f64),
    /// Fair share in the long run, in bit/s, where the resources together allow less than each of them alone; else infinite.
    pub(super) in_the_long_run: f64,
}

/// The amount of a resource that a flow uses.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// Amount per unit, if all segments are full and every acknowledgement arrives.
    pub(super) unit: f64,
    /// Least amount per bit of payload.
    pub(super) least: f64,
    /// Bits of payload that arrive in the counted time without use of the resource in it.
    pub(super) ahead: f64,
}

/// A lane of a flow and its needs.
pub(super) struct Demand<'a> {
    /// Index of the lane among all.
    pub(super) index: usize,
    /// Index of the flow.
    pub(super) flow: usize,
    pub(super) lane: Lane,
    pub(super) name: &'a str,
    pub(super) traffic: &'a Traffic,
    pub(super) path: &'a FlowPath,
    /// Whether it sends cells whatever becomes of them. A class has only generators or none.
    pub(super) generator: bool,
    /// Classes are served in this order; see [`class`].
    pub(super) class: u8,
    /// Bits of cells or frames in a unit on the first link, without physical framing, over the number of connections of the lane.
    pub(super) weight: f64,
    /// Payload bits of a unit.
    pub(super) payload_bits: f64,
    /// The connections of a `tcp-stream`.
    pub(super) connection: Option<Connection>,
    /// The counted time, as far as it can use it.
    pub(super) span: Span,
    /// Picoseconds from the beginning of a unit until its receiver has it, if it meets nothing else; `None` for a generator.
    pub(super) idle_delay: Option<u64>,
    /// Needs of one unit, in the order in which it meets them.
    pub(super) uses: Vec<Use>,
    pub(super) limiters: Vec<Limiter>,
    /// The most payload past each place of its ways, also where packets come only after an event.
    pub(super) gates: Vec<Gate>,
    /// By stop there, what is certain where packets take turns.
    pub(super) turns: BTreeMap<usize, Turns>,
}

impl Limiter {
    pub(super) fn kind(&self) -> BottleneckKind {
        self.bottleneck.kind
    }
}

impl Demand<'_> {
    /// Adds a limiter over some resources, unless the flow needs none of them.
    pub(super) fn add(&mut self, bottleneck: Bottleneck, needs: &[(usize, f64)]) -> Option<&mut Limiter> {
        let needs: Vec<_> = needs.iter().filter(|(_, amount)| *amount > 0.0).copied().collect();
        // A need of zero limits nothing.
        if needs.is_empty() {
            return None;
        }
        self.uses.extend(needs.iter().map(|(resource, amount)| Use { resource: *resource, amount: *amount }));
        let resources = needs.iter().map(|(resource, _)| *resource).collect();
        let (at_most, in_the_long_run) = (None, f64::INFINITY);
        self.limiters.push(Limiter {
            bottleneck,
            resources,
            line: None,
            place: None,
            share: 1.0,
            circuit: None,
            data: None,
            at_most,
            ahead: 0.0,
            certain: (Vec::new(), 0.0),
            in_the_long_run,
        });
        self.limiters.last_mut()
    }

    /// Adds a limiter over one resource, of which the counted time has `supply`.
    pub(super) fn add_bounded(
        &mut self,
        bottleneck: Bottleneck,
        (resource, need): (usize, Need),
        supply: f64,
        place: Option<Place>,
    ) -> Option<&mut Limiter> {
        // A need of zero bounds nothing.
        if need.least <= 0.0 && need.unit <= 0.0 {
            return None;
        }
        let (most, ahead) = (self.span.rate(supply / need.least + need.ahead), self.span.rate(need.ahead));
        self.gates.extend(place.map(|place| Gate { place, most, ahead }));
        let limiter = self.add(bottleneck, &[(resource, need.unit)])?;
        (limiter.at_most, limiter.ahead, limiter.place) = (Some(most), ahead, place);
        Some(limiter)
    }

    /// Seconds that a unit occupies a resource if the flow has it alone.
    pub(super) fn time(&self, resources: &Resources, resource: usize) -> f64 {
        let needs = self.uses.iter().filter(|need| need.resource == resource).map(|need| need.amount);
        needs.sum::<f64>() / resources.capacities[resource]
    }

    /// The need of data: an amount per unit and the least amount per bit of payload.
    pub(super) fn need(&self, unit: f64, least: f64) -> Need {
        Need { unit, least, ahead: 0.0 }
    }

    /// The need of acknowledgements that take the amount `ack` each. Fewer than the receiver sends are enough.
    pub(super) fn need_of_ack(&self, connection: &Connection, ack: f64) -> Need {
        Need {
            unit: ack / connection.segments_per_ack,
            least: ack * connection.least_acks,
            // The last windows are acknowledged after the end. Where one acknowledgement per window is enough, the SYN-ACK replaces the
            // missing one.
            ahead: if self.span.warm || connection.certain { self.windows(connection) } else { 0.0 },
        }
    }

    /// Bits of payload that all of its windows hold.
    pub(super) fn windows(&self, connection: &Connection) -> f64 {
        8.0 * connection.window.bytes as f64 * self.streams()
    }

    /// Connections of the lane; 1 of what has none.
    pub(super) fn streams(&self) -> f64 {
        f64::from(self.lane.connections)
    }

    /// Whether all of its packets, and all that come back, certainly take one way.
    pub(super) fn is_one_way(&self) -> bool {
        self.lane.there.only_way().is_some() && self.lane.back.only_way().is_some()
    }
}

/// The needs of every lane, in the order of the flows in the file.
pub(super) fn demands<'a>(testbed: &'a Testbed, topology: &'a Topology) -> (Resources, Vec<Demand<'a>>) {
    let (certain, sharing) = (Certain::new(testbed, topology), Sharing::new(testbed, topology));
    let mut builder = Builder { testbed, topology, resources: Resources::default(), certain, sharing };
    let mut demands = Vec::with_capacity(testbed.traffic.len());
    for flow in 0..testbed.traffic.len() {
        for lane in lanes(testbed, topology, flow) {
            demands.push(builder.demand(demands.len(), flow, lane));
        }
    }
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

pub(super) struct Builder<'a> {
    pub(super) testbed: &'a Testbed,
    pub(super) topology: &'a Topology,
    pub(super) resources: Resources,
    pub(super) certain: Certain,
    pub(super) sharing: Sharing,
}

impl<'a> Builder<'a> {
    fn demand(&mut self, index: usize, flow: usize, lane: Lane) -> Demand<'a> {
        let (name, traffic) = self.testbed.traffic.get_index(flow).expect("every flow is a traffic's");
        let path = &self.topology.flows[flow];
        let generator = matches!(traffic, Traffic::Cbr(_) | Traffic::OnOff(_));
        let mut demand = Demand {
            index,
            flow,
            lane,
            name,
            traffic,
            path,
            generator,
            class: class(self.testbed, self.topology, path, generator),
            weight: 1.0,
            payload_bits: 0.0,
            connection: None,
            span: Span::new(&self.testbed.run, traffic),
            idle_delay: None,
            uses: Vec::new(),
            limiters: Vec::new(),
            gates: Vec::new(),
            turns: BTreeMap::new(),
        };
        match traffic {
            Traffic::TcpStream(config) => self.segments(&mut demand, config),
            Traffic::Cbr(_) => {
                let cells = path.cells.map_or(0.0, |pace| demand.span.even(pace));
                self.generator(&mut demand, Pace::per_second, cells)
            }
            Traffic::OnOff(config) => {
                let times = [config.on.0, config.off.0];
                let cells = path.cells.map_or(0.0, |pace| demand.span.bursts(pace, times, config.lengths));
                self.generator(&mut demand, |pace| config.mean(pace), cells)
            }
            _ if traffic.datagrams().is_some() => self.datagrams(&mut demand),
            _ => panic!("`unmodelled` refuses traffic that the model does not carry"),
        }
        demand
    }

    fn datagrams(&mut self, demand: &mut Demand<'a>) {
        let path = demand.path;
        // The fair share takes every drawn datagram as one of the mean length.
        let (message, rate) = demand.traffic.datagrams().expect("it sends datagrams");
        let drawn =
            matches!(demand.traffic, Traffic::Poisson(Poisson { sizes: poisson::Sizes::Exponential, .. }));
        let unit = if drawn { Unit::Drawn } else { Unit::Datagram };
        let there = self.there(demand, unit, message);
        self.route(demand, unit, &there);
        self.routers(demand, unit, &there);
        if !drawn {
            demand.turns = self.turns(demand, &there);
        }
        // The receiver handles the fragments of routers, too: at least those of the sender.
        let sent = Fragments::of(message + UDP_HEADER_BYTES, path.mtu).count as f64;
        let (received, widest) = there.received();
        let least_received = if demand.is_one_way() { received } else { sent };
        let bits = demand.payload_bits;
        let time = |fragments: f64, least_fragments: f64, mtu: u64| {
            let of = move |cost: &CpuCost, fragments: f64| {
                cost.datagram(message, 0) as f64 + fragments * cost.fragment(0) as f64
            };
            (
                move |cost: &CpuCost| of(cost, fragments),
                move |cost: &CpuCost| {
                    if !drawn {
                        return of(cost, least_fragments) / bits;
                    }
                    // The longest datagrams, in full packets, cost least per byte.
                    let most = MAX_UDP_PAYLOAD as f64;
                    cost.datagram_start() as f64 / (8.0 * most)
                        + cost.fragment(0) as f64 / (8 * (mtu - IP_HEADER_BYTES)) as f64
                        + cost.byte().ps() / 8.0
                },
            )
        };
        self.hosts(demand, time(sent, sent, path.mtu), time(received, least_received, widest), 0.0);
        demand.idle_delay = Some(self.idle_datagram(demand, message));
        let Some(rate) = rate else { return };
        let span = demand.span;
        let even = Pace::of_bits(8 * message.max(1), rate.0);
        let offered = match demand.traffic {
            Traffic::Poisson(config) => {
                let gap = Pace::of_bits(8, config.rate.0).after(message);
                span.poisson(message, gap, config.sizes)
            }
            Traffic::UdpOnOff(config) => {
                let pace = Pace::of_bits(8 * message.max(1), config.rate.0);
                span.bursts(pace, [config.on.0, config.off.0], config.lengths) * bits
            }
            _ => span.even(even) * bits,
        };
        self.offers(demand, rate.0 as f64, offered);
    }

    fn segments(&mut self, demand: &mut Demand<'a>, config: &TcpStream) {
        let mut tcp = connection(self.testbed, self.topology, demand.path, &demand.lane, config);
        let acks = self.certain_acks(demand, config, &tcp);
        if acks > tcp.least_acks {
            (tcp.least_acks, tcp.certain) = (acks, true);
        }
        demand.connection = Some(tcp);
        let unit = Unit::Segment { header: tcp.header, segment: tcp.segment };
        let there = self.there(demand, unit, 0);
        self.route(demand, unit, &there);
        demand.weight /= demand.streams();
        self.routers(demand, unit, &there);
        let message = config.message.bytes().max(1) as f64;
        let (acks, bits) = (1.0 / tcp.segments_per_ack, (8 * tcp.segment) as f64);
        let reading = |cost: &CpuCost| {
            cost.segment() as f64 + cost.bytes(tcp.segment) as f64 + cost.ack() as f64 * acks
        };
        // Full segments cost least per byte.
        let least_reading = |cost: &CpuCost| {
            cost.segment() as f64 / bits + cost.byte().ps() / 8.0 + cost.ack() as f64 * tcp.least_acks
        };
        let writes = tcp.segment as f64 / message;
        let writing = |cost: &CpuCost| writes * cost.write() as f64 + reading(cost);
        let least_writing = |cost: &CpuCost| cost.write() as f64 / (8.0 * message) + least_reading(cost);
        let ack = demand.need_of_ack(&tcp, 1.0);
        let acks_ahead = ack.ahead * ack.least;
        self.hosts(demand, (writing, least_writing), (reading, least_reading), acks_ahead);
        self.acknowledgements(demand, &tcp);
        self.window(demand, &tcp);
        let payload = tcp.segment.min(config.message.bytes());
        demand.idle_delay = Some(self.idle_segment(demand, tcp.header, payload));
        if let Some(rate) = config.rate {
            let streams = demand.streams();
            let writes = demand.span.even(Pace::of_bits(8 * config.message.bytes().max(1), rate.0));
            self.offers(demand, rate.0 as f64 * streams, writes * 8.0 * message * streams);
        }
    }

    /// Adds the limiter of one window per round trip on every connection.
    fn window(&mut self, demand: &mut Demand<'a>, tcp: &Connection) {
        let Window { round_trip, .. } = tcp.window;
        let windows = demand.windows(tcp);
        let capacity = windows * SECOND as f64 / round_trip;
        let resource = self.resources.get(Resource::Window(demand.index), || capacity);
        let time = demand.span.seconds() * SECOND as f64;
        // An acknowledgement at the end of the warm-up lets a whole window out at once.
        let ahead = if demand.span.warm { windows } else { 0.0 };
        let most = demand.span.rate(8.0 * tcp.window.bytes_within(time) * demand.streams() + ahead);
        let needs = [(resource, demand.payload_bits)];
        if let Some(limiter) = demand.add(unnamed(BottleneckKind::SocketBuffers, "socket buffers"), &needs) {
            limiter.at_most = Some(most);
        }
    }

    /// Adds the limiter of an application that writes `bit_per_s` of payload, and at most `most` bits in the counted time.
    fn offers(&mut self, demand: &mut Demand<'_>, bit_per_s: f64, most: f64) {
        let offered = self.resources.get(Resource::Application(demand.index), || bit_per_s);
        // The payload of a message: an empty one has no rate of payload.
        let (payload, at_most) = (demand.payload_bits, demand.span.rate(most));
        let name = application(demand.name);
        if let Some(limiter) = demand.add(name, &[(offered, payload)]) {
            limiter.at_most = Some(at_most);
        }
    }
}

pub(super) fn application(name: &str) -> Bottleneck {
    named(BottleneckKind::Application, name, format!("application `{name}`"))
}

/// Something with a name in the file.
pub(super) fn named(kind: BottleneckKind, name: &str, title: String) -> Bottleneck {
    Bottleneck { kind, name: Some(name.to_owned()), title }
}

fn unnamed(kind: BottleneckKind, title: &str) -> Bottleneck {
    Bottleneck { kind, name: None, title: title.to_owned() }
}
