//! What lanes need, and what there is: resources, the places that limit a lane, and the lane itself.

use std::collections::BTreeMap;

use engpass_model::host::{DataPath, Transfer};
use engpass_model::source::Traffic;
use engpass_outcome::{Bottleneck, BottleneckKind};
use engpass_testbed::Lane;
use engpass_testbed::topology::{FlowPath, Hop, NodeId, PathSegment};

use super::bound::Span;
use super::connection::Connection;
use super::fill::ResourceUse;
use super::piece::LineLayers;

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
    pub(super) line: Option<LineLayers>,
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
    /// The group of which it is a receiver: what several receivers need for one copy they need once.
    pub(super) group: Option<usize>,
    /// By links before it, the copy of its group's packets that crosses a link of its way.
    pub(super) copies: &'a [usize],
    pub(super) lane: Lane,
    pub(super) name: &'a str,
    /// Name of the traffic in the file: of a receiver's that of its group.
    pub(super) table: &'a str,
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
    pub(super) uses: Vec<ResourceUse>,
    pub(super) limiters: Vec<Limiter>,
    /// The most payload past each place of its ways, also where packets come only after an event.
    pub(super) gates: Vec<LaneBound>,
    /// Tunnels that drop some of its packets, while others take another way.
    pub(super) refused: Vec<usize>,
    /// By stop there, what is certain where packets take turns.
    pub(super) turns: BTreeMap<usize, Turns>,
}

impl Limiter {
    pub(super) fn kind(&self) -> BottleneckKind {
        self.bottleneck.kind
    }
}

impl Demand<'_> {
    /// Adds a limiter over some resources at the ends, unless the flow needs none of them.
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
        self.gates.extend(place.map(|place| LaneBound { place, most, ahead }));
        let limiter = self.add_at(place, bottleneck, &[(resource, need.unit)])?;
        (limiter.at_most, limiter.ahead, limiter.place) = (Some(most), ahead, place);
        Some(limiter)
    }

    /// Which copy of its group's packets comes to a place of its way; 0 without a group.
    pub(super) fn copy(&self, place: Place) -> usize {
        // A router copies what has come to it: it has the packets of the link before.
        let at_node = matches!(place.spot, Spot::Node(_));
        self.copies.get(place.level - usize::from(at_node)).copied().unwrap_or(0)
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

/// Where on its ways a lane needs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// On the way of the packets that come back.
    pub(super) back: bool,
    /// Links before it.
    pub(super) level: usize,
    pub(super) spot: Spot,
}

/// A place among those of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spot {
    /// A line.
    Line(Hop),
    /// What stands before a line for the packets of a leg: a token bucket, a policer or a shaper.
    Leg(Hop, PathSegment),
    /// A router, as many links behind the sender as its level says.
    Node(NodeId),
}

/// The most payload of a lane past a place over the counted time, in bit/s.
pub(super) struct LaneBound {
    pub(super) place: Place,
    pub(super) most: f64,
    /// The part of it that does not need the place in the counted time.
    pub(super) ahead: f64,
}

/// A stop whose legs packets take in turns, and no packets of other flows.
pub(super) struct Turns {
    /// Payload of the longest packets, over that of the shortest.
    pub(super) ratio: f64,
    /// By leg, most bits of payload above its share, because turns have no end in the counted time.
    pub(super) above: Vec<f64>,
}

pub(super) fn application(name: &str) -> Bottleneck {
    named(BottleneckKind::Application, name, format!("application `{name}`"))
}

/// Something with a name in the file.
pub(super) fn named(kind: BottleneckKind, name: &str, title: String) -> Bottleneck {
    Bottleneck { kind, name: Some(name.to_owned()), title }
}

/// Something that has no name there.
pub(super) fn unnamed(kind: BottleneckKind, title: &str) -> Bottleneck {
    Bottleneck { kind, name: None, title: title.to_owned() }
}
