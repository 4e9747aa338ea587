//! Computes the needs of one unit of every lane: of lines, shapers, policers, CPUs and its application.
//!
//! The unit is a UDP message with all its fragments, a full TCP segment, or a generator's cell. A lane is made of the connections of a flow whose packets
//! take the same paths; most flows have one lane.

use std::collections::BTreeMap;

use engpass_model::circuit::Category;
use engpass_model::host::CpuCost;
use engpass_model::schedule::Schedule;
use engpass_model::source::{Poisson, TcpStream, Traffic, poisson};
use engpass_model::switch::Switch;
use engpass_model::time::{Pace, SECOND};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES, MAX_UDP_PAYLOAD, UDP_HEADER_BYTES};
use engpass_outcome::BottleneckKind;
use engpass_testbed::topology::FlowPath;
use engpass_testbed::{Lane, Testbed, Topology, lanes};

use super::acks::Sharing;
use super::bound::Span;
use super::certain::Certain;
use super::connection::{Connection, Window, connection};
use super::engine_work::EngineWork;
use super::need::{Demand, Resource, Resources, application, unnamed};
use super::receivers::SeparateReceivers;
use super::way::Unit;

/// Returns the resources, and the needs of every lane, in the order of the flows in the file. `apart` holds the separate receivers, if the testbed has
/// multicast groups.
pub(super) fn demands<'a>(
    testbed: &'a Testbed,
    topology: &'a Topology,
    apart: Option<&'a SeparateReceivers>,
) -> (Resources, Vec<Demand<'a>>) {
    let (certain, sharing) = (Certain::new(testbed, topology), Sharing::new(testbed, topology));
    let mut builder = Builder { testbed, topology, resources: Resources::default(), certain, sharing };
    let mut demands = Vec::with_capacity(testbed.traffic.len());
    for flow in 0..testbed.traffic.len() {
        for lane in lanes(testbed, topology, flow) {
            let is_group = matches!(testbed.traffic[flow], Traffic::Multicast(_));
            let mut demand = builder.new_demand(demands.len(), flow, lane);
            if let Some(apart) = apart {
                demand.group = Some(apart.of[flow]).filter(|_| is_group);
                (demand.table, demand.copies) = (apart.table(flow), &apart.copies[flow]);
                demand.work.copies = Some(&apart.copy_points[apart.of[flow]]).filter(|_| is_group);
            }
            builder.fill(&mut demand);
            demands.push(demand);
        }
    }
    builder.resources.note_users(&demands);
    (builder.resources, demands)
}

/// Returns the class of a flow; classes are served in ascending order. Generators come before streams, because they do not yield. If all switches on the path
/// serve by priority, all traffic of the `cbr` category comes before all other traffic.
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
    /// Returns a lane whose needs are still to be added.
    fn new_demand(&self, index: usize, flow: usize, lane: Lane) -> Demand<'a> {
        let (name, traffic) =
            self.testbed.traffic.get_index(flow).expect("every flow belongs to a traffic entry");
        let path = &self.topology.flows[flow];
        let generator = matches!(traffic, Traffic::Cbr(_) | Traffic::OnOff(_));
        Demand {
            index,
            flow,
            group: None,
            copies: &[],
            work: EngineWork::new(self.testbed, self.topology, traffic),
            lane,
            name,
            table: name,
            traffic,
            path,
            generator,
            class: class(self.testbed, self.topology, path, generator),
            weight: 1.0,
            payload_bits: 0.0,
            connection: None,
            span: Span::new(self.testbed, traffic, path),
            idle_delay: None,
            uses: Vec::new(),
            limiters: Vec::new(),
            gates: Vec::new(),
            refused: Vec::new(),
            turns: BTreeMap::new(),
        }
    }

    /// Adds all needs of a lane.
    fn fill(&mut self, demand: &mut Demand<'a>) {
        let (traffic, path) = (demand.traffic, demand.path);
        match traffic {
            Traffic::TcpStream(config) => self.segments(demand, config),
            Traffic::Cbr(_) => {
                let cells = path.cells.map_or(0.0, |pace| demand.span.even(pace));
                self.generator(demand, Pace::per_second, cells)
            }
            Traffic::OnOff(config) => {
                let times = [config.on.0, config.off.0];
                let cells = path.cells.map_or(0.0, |pace| demand.span.bursts(pace, times, config.lengths));
                self.generator(demand, |pace| config.mean(pace), cells)
            }
            _ if traffic.datagrams().is_some() => self.datagrams(demand),
            _ => panic!("`unmodelled` rejects unsupported traffic"),
        }
    }

    fn datagrams(&mut self, demand: &mut Demand<'a>) {
        let path = demand.path;
        // For the fair share every datagram of random length has the mean length.
        let (message, rate) = demand.traffic.datagrams().expect("the flow sends datagrams");
        let drawn =
            matches!(demand.traffic, Traffic::Poisson(Poisson { sizes: poisson::Sizes::Exponential, .. }));
        let unit = if drawn { Unit::Drawn } else { Unit::Datagram };
        let there = self.there(demand, unit, message);
        self.route(demand, unit, &there);
        self.routers(demand, unit, &there);
        if !drawn {
            demand.turns = self.turns(demand, &there);
        }
        // The receiver also handles the fragments made by routers: at least as many as the sender made.
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
        let span = demand.span;
        let all = demand.traffic.transfer().map(|transfer| 8.0 * transfer.bytes as f64);
        let Some(rate) = rate else { return self.offers_all(demand, all) };
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
            traffic => {
                let frames = traffic.frame_pattern().map(|frames| span.frames(frames));
                frames.unwrap_or_else(|| span.even(even)) * bits
            }
        };
        self.offers_up_to(demand, all, rate.0 as f64, offered);
    }

    fn segments(&mut self, demand: &mut Demand<'a>, config: &TcpStream) {
        let mut tcp = connection(demand.work, demand.path, &demand.lane, config);
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
        // A lane has a part of the connections.
        let (streams, of_table) = (demand.streams(), f64::from(config.streams));
        let all = demand.traffic.transfer().map(|transfer| 8.0 * transfer.bytes as f64 * streams / of_table);
        match config.rate {
            Some(rate) => {
                let writes = demand.span.even(Pace::of_bits(8 * config.message.bytes().max(1), rate.0));
                let offered = writes * 8.0 * message * streams;
                self.offers_up_to(demand, all, rate.0 as f64 * streams, offered);
            }
            None => self.offers_all(demand, all),
        }
    }

    /// Adds the limit of TCP's window: one window per round trip on every connection.
    fn window(&mut self, demand: &mut Demand<'a>, tcp: &Connection) {
        let Window { round_trip, .. } = tcp.window;
        let windows = demand.windows(tcp);
        let capacity = windows * SECOND as f64 / round_trip;
        let resource = self.resources.get(Resource::Window(demand.index), || capacity);
        let time = demand.span.seconds() * SECOND as f64;
        // An acknowledgement at the end of the warm-up lets a whole window go at once.
        let ahead = if demand.span.warm { windows } else { 0.0 };
        let most = demand.span.rate(8.0 * tcp.window.bytes_within(time) * demand.streams() + ahead);
        let needs = [(resource, demand.payload_bits)];
        if let Some(limiter) = demand.add(unnamed(BottleneckKind::SocketBuffers, "socket buffers"), &needs) {
            limiter.at_most = Some(most);
        }
    }

    /// Adds the limiter of an application without a rate: a transfer of `all` bits, if it has one.
    fn offers_all(&mut self, demand: &mut Demand<'_>, all: Option<f64>) {
        if let Some(all) = all {
            self.offers(demand, demand.span.rate(all), all);
        }
    }

    /// Adds the limiter of an application with a rate, as [`Self::offers`], which ends after a transfer of `all` bits if it has one.
    fn offers_up_to(&mut self, demand: &mut Demand<'_>, all: Option<f64>, bit_per_s: f64, most: f64) {
        let (all, each) = (all.unwrap_or(f64::INFINITY), demand.span.rate(all.unwrap_or(f64::INFINITY)));
        self.offers(demand, bit_per_s.min(each), most.min(all));
    }

    /// Adds the limiter of an application that writes `bit_per_s` of payload, and at most `most` bits in the measurement window.
    fn offers(&mut self, demand: &mut Demand<'_>, bit_per_s: f64, most: f64) {
        let offered = self.resources.get(Resource::Application(demand.index), || bit_per_s);
        // The application is needed by the payload of a unit. An empty message needs nothing, so it is not limited.
        let (payload, at_most) = (demand.payload_bits, demand.span.rate(most));
        let name = application(demand.table);
        if let Some(limiter) = demand.add(name, &[(offered, payload)]) {
            limiter.at_most = Some(at_most);
        }
    }
}
