//! Resources, limiters, and the needs of lanes (connections of a flow whose packets take the same paths).

use std::collections::BTreeMap;

use engpass_model::host::{DataPath, Transfer};
use engpass_model::source::Traffic;
use engpass_outcome::{Bottleneck, BottleneckKind};
use engpass_testbed::Lane;
use engpass_testbed::topology::{FlowPath, Hop, NodeId, PathSegment};

use super::bound::Span;
use super::connection::Connection;
use super::engine_work::EngineWork;
use super::max_min::ResourceUse;
use super::piece::LineLayers;

/// A shared resource, with the unit in which it is counted. The order of the variants has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resource {
    /// A direction of a link, in parts of its bits.
    Line(usize, NodeId),
    /// A circuit's shaper, in cells.
    Shaper(usize),
    /// A circuit's policer, in cells.
    Policer(usize),
    /// A host's CPU or a router's route processor, in picoseconds.
    Cpu(NodeId),
    /// The engine of a line card, by the number of the card from 1, in picoseconds.
    Card(NodeId, usize),
    /// A host's memory, in bytes moved.
    Memory(NodeId),
    /// A host's I/O bus towards its device, or from it, in bytes.
    Bus(NodeId, bool),
    /// Both directions of a half-duplex I/O bus, in bytes.
    BothWays(NodeId),
    /// Time of a lane's alternating CPU and DMA work at one host, in picoseconds.
    Turns(usize, NodeId),
    /// Tokens of the token bucket of a line, in bits of frames.
    Bucket(usize, NodeId),
    /// A token bucket that is smaller than a frame and therefore lets nothing through.
    Closed(usize, NodeId),
    /// A buffer before a line that is shorter than a frame and therefore lets nothing through.
    Full(usize, NodeId),
    /// A tunnel that drops packets that are too long for it.
    Refusing(usize),
    /// A router at which the TTL of packets ends.
    Expiry(NodeId),
    /// Offer of a lane's application, in units.
    Application(usize),
    /// Payload bits per second that the windows of a lane's connections let through.
    Window(usize),
}

/// All resources, by index.
#[derive(Default)]
pub(super) struct Resources {
    index: BTreeMap<Resource, usize>,
    /// Capacity of each resource per second.
    pub(super) capacities: Vec<f64>,
    /// Lanes that need each resource, in ascending order.
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

    /// Records which lanes use each resource, once all lanes are known.
    pub(super) fn note_users(&mut self, demands: &[Demand<'_>]) {
        for demand in demands {
            for need in &demand.uses {
                let users = &mut self.users[need.resource];
                if users.last() != Some(&demand.index) {
                    users.push(demand.index);
                }
            }
        }
    }

    /// Returns every resource as text, with its index.
    pub(super) fn named(&self) -> impl Iterator<Item = (String, usize)> {
        self.index.iter().map(|(resource, place)| (format!("{resource:?}"), *place))
    }

    /// Returns the index of the direction of `link` that begins at `from`, if any lane uses it.
    pub(super) fn line(&self, link: usize, from: NodeId) -> Option<usize> {
        self.find(Resource::Line(link, from))
    }

    /// Returns the index of a resource; `None` if no lane uses it.
    pub(super) fn find(&self, resource: Resource) -> Option<usize> {
        self.index.get(&resource).copied()
    }
}

/// A possible limit of a flow: one or more resources that count as one bottleneck.
pub(super) struct Limiter {
    pub(super) bottleneck: Bottleneck,
    pub(super) resources: Vec<usize>,
    /// For a link in the direction of the data: the layers of a unit on it.
    pub(super) line: Option<LineLayers>,
    /// Place of the resources on the lane's paths; `None` for resources at the hosts.
    pub(super) place: Option<Place>,
    /// Share of the lane's packets, or of its acknowledgements, that need the resources.
    pub(super) share: f64,
    /// For a shaper or policer: index of its circuit.
    pub(super) circuit: Option<usize>,
    /// For memory, I/O bus, and CPU and DMA in turn: the data path, and the needs of a byte on it.
    pub(super) data: Option<(DataPath, Transfer)>,
    /// Bound that these resources set on the lane's goodput over the measurement window, in bit/s. If `None`, it follows from the capacities with the lane
    /// alone on the resources.
    pub(super) at_most: Option<f64>,
    /// The part of `at_most` that arrives without using the resources in the measurement window.
    pub(super) ahead: f64,
    /// Indices of generators that certainly take a part of the line, and this part as a share of the line's capacity in the measurement window.
    pub(super) certain: (Vec<usize>, f64),
    /// Fair share in the long run, in bit/s, if the resources together allow less than each of them alone; otherwise infinite.
    pub(super) in_the_long_run: f64,
}

/// Need of a resource by a lane.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// Amount per unit if all segments are full and every acknowledgement arrives.
    pub(super) unit: f64,
    /// Least amount per bit of payload.
    pub(super) least: f64,
    /// Bits of payload that arrive in the measurement window without using the resource within the window.
    pub(super) ahead: f64,
}

/// A lane of a flow and its needs.
pub(super) struct Demand<'a> {
    /// Index of the lane among all lanes.
    pub(super) index: usize,
    /// Index of the flow.
    pub(super) flow: usize,
    /// Index of the multicast group, if the lane is one of its receivers. Receivers behind the same copy share the need of a resource.
    pub(super) group: Option<usize>,
    /// For a receiver of a group: number of the copy on each link of its path, by the number of links before.
    pub(super) copies: &'a [usize],
    /// Work of routers on its packets.
    pub(super) work: EngineWork<'a>,
    pub(super) lane: Lane,
    pub(super) name: &'a str,
    /// Name of the traffic table in the file; for a receiver that of its group.
    pub(super) table: &'a str,
    pub(super) traffic: &'a Traffic,
    pub(super) path: &'a FlowPath,
    /// True for a generator, which sends cells regardless of losses. A class has either only generators or none.
    pub(super) generator: bool,
    /// Classes are served in ascending order; see `class`.
    pub(super) class: u8,
    /// Bits of cells or frames in a unit on the first link, without physical framing, divided by the number of connections of the lane.
    pub(super) weight: f64,
    /// Payload bits of a unit.
    pub(super) payload_bits: f64,
    /// Parameters of the connections of a `tcp-stream`.
    pub(super) connection: Option<Connection>,
    /// The part of the measurement window in which the flow can be served.
    pub(super) span: Span,
    /// Time from the begin of a unit until its receiver has it, without other traffic, in picoseconds; `None` for a generator.
    pub(super) idle_delay: Option<u64>,
    /// Needs of one unit, in the order in which it meets the resources.
    pub(super) uses: Vec<ResourceUse>,
    pub(super) limiters: Vec<Limiter>,
    /// Largest payload that passes each place on the lane's paths, including places that packets reach only after an event.
    pub(super) gates: Vec<LaneBound>,
    /// Indices of tunnels that drop some of the lane's packets while others take another path.
    pub(super) refused: Vec<usize>,
    /// By stop on the path to the receiver: the limits that strict round-robin certainly sets.
    pub(super) turns: BTreeMap<usize, Turns>,
}

impl Limiter {
    pub(super) fn kind(&self) -> BottleneckKind {
        self.bottleneck.kind
    }
}

impl Demand<'_> {
    /// Returns the rate of payload in sentinels over the measurement window, in bit/s. They count in the goodput, but not as messages.
    pub(super) fn sentinels(&self) -> f64 {
        let bytes = self.traffic.transfer().map_or(0, |transfer| transfer.sentinel_bytes());
        self.span.rate(8.0 * bytes as f64)
    }

    /// Adds a limiter of some resources at the ends, unless all needs are zero.
    pub(super) fn add(&mut self, bottleneck: Bottleneck, needs: &[(usize, f64)]) -> Option<&mut Limiter> {
        self.add_at(None, bottleneck, needs)
    }

    fn add_at(
        &mut self,
        place: Option<Place>,
        bottleneck: Bottleneck,
        needs: &[(usize, f64)],
    ) -> Option<&mut Limiter> {
        let needs: Vec<_> = needs.iter().filter(|(_, amount)| *amount > 0.0).copied().collect();
        // A need of zero limits nothing.
        if needs.is_empty() {
            return None;
        }
        let copy = place.map_or(0, |place| self.copy(place));
        let need =
            |(resource, amount): &(usize, f64)| ResourceUse { resource: *resource, amount: *amount, copy };
        self.uses.extend(needs.iter().map(need));
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

    /// Adds a limiter of one resource, of which `supply` is available in the measurement window.
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
        self.gates.extend(place.map(|place| LaneBound { place, most, ahead }));
        let limiter = self.add_at(place, bottleneck, &[(resource, need.unit)])?;
        (limiter.at_most, limiter.ahead, limiter.place) = (Some(most), ahead, place);
        Some(limiter)
    }

    /// Returns the number of the copy of its group's packets that comes to a place; 0 without a group.
    pub(super) fn copy(&self, place: Place) -> usize {
        // A router receives the copy of the link before it.
        let at_node = matches!(place.spot, Spot::Node(_));
        self.copies.get(place.level - usize::from(at_node)).copied().unwrap_or(0)
    }

    /// Returns the time in seconds for which a unit occupies a resource that the flow has alone.
    pub(super) fn time(&self, resources: &Resources, resource: usize) -> f64 {
        let needs = self.uses.iter().filter(|need| need.resource == resource).map(|need| need.amount);
        needs.sum::<f64>() / resources.capacities[resource]
    }

    /// Returns the need of data: the amount per unit, and the least amount per bit of payload.
    pub(super) fn need(&self, unit: f64, least: f64) -> Need {
        Need { unit, least, ahead: 0.0 }
    }

    /// Returns the need of acknowledgements that take the amount `ack` each. Fewer than the receiver sends may be enough.
    pub(super) fn need_of_ack(&self, connection: &Connection, ack: f64) -> Need {
        Need {
            unit: ack / connection.segments_per_ack,
            least: ack * connection.least_acks,
            // The last windows may be acknowledged after the end. If one acknowledgement per window is enough, the SYN-ACK stands for the missing one.
            ahead: if self.span.warm || connection.certain { self.windows(connection) } else { 0.0 },
        }
    }

    /// Returns the bits of payload in the windows of all connections of the lane.
    pub(super) fn windows(&self, connection: &Connection) -> f64 {
        8.0 * connection.window.bytes as f64 * self.streams()
    }

    /// Returns the number of connections of the lane; 1 if it has none.
    pub(super) fn streams(&self) -> f64 {
        f64::from(self.lane.connections)
    }

    /// Returns whether all packets in both directions certainly take a single path.
    pub(super) fn is_one_way(&self) -> bool {
        self.lane.there.only_way().is_some() && self.lane.back.only_way().is_some()
    }
}

/// A place on the paths of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// True for a place on the path back.
    pub(super) back: bool,
    /// Number of links before the place.
    pub(super) level: usize,
    pub(super) spot: Spot,
}

/// One of the places that are parallel on a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spot {
    /// A line.
    Line(Hop),
    /// Token bucket, policer or shaper before a line, for the packets of a path segment.
    Leg(Hop, PathSegment),
    /// A router; its level is the number of links before it.
    Node(NodeId),
}

/// Largest payload of a lane that passes a place, over the measurement window, in bit/s.
pub(super) struct LaneBound {
    pub(super) place: Place,
    pub(super) most: f64,
    /// The part of `most` that arrives without using the place in the measurement window.
    pub(super) ahead: f64,
}

/// A stop at which packets take the path segments in turn (round-robin), without packets of other flows.
pub(super) struct Turns {
    /// Payload of the longest packets divided by that of the shortest ones.
    pub(super) ratio: f64,
    /// By path segment: largest payload beyond its equal share, in bits, because the last round may be incomplete.
    pub(super) above: Vec<f64>,
}

pub(super) fn application(name: &str) -> Bottleneck {
    named(BottleneckKind::Application, name, format!("application `{name}`"))
}

/// Returns a bottleneck with a name in the file.
pub(super) fn named(kind: BottleneckKind, name: &str, title: String) -> Bottleneck {
    Bottleneck { kind, name: Some(name.to_owned()), title }
}

/// Returns a bottleneck without a name in the file.
pub(super) fn unnamed(kind: BottleneckKind, title: &str) -> Bottleneck {
    Bottleneck { kind, name: None, title: title.to_owned() }
}
