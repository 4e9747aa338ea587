//! The part of a line that generators certainly take from other flows.
//!
//! Only a `cbr` generator never slows down. It certainly loses no cell where only other generators can be in its way: on the line of its own host, and at the
//! first port that it shares, if the port serves its class first and has room for every cell that can wait there.

use std::collections::BTreeMap;

use engpass_model::circuit::Category;
use engpass_model::discard::Discard;
use engpass_model::schedule::Schedule;
use engpass_model::shape::PolicingAction;
use engpass_model::source::Traffic;
use engpass_model::switch::{AtmSwitch, Switch};
use engpass_model::time::Pace;
use engpass_model::wire::Framing;
use engpass_model::wire::aal5::{MAX_SDU_BYTES, cells};
use engpass_model::wire::ip::{IP_HEADER_BYTES, UDP_HEADER_BYTES};
use engpass_testbed::topology::{Hop, NodeId, PathSegment};
use engpass_testbed::{Testbed, Topology};

use super::acks::possible_hops;
use super::bound::Span;

/// Cells of a generator that certainly leave a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// Index of the generator.
    pub(super) flow: usize,
    pace: Pace,
    /// Start and end of the generator, in picoseconds.
    begins: u64,
    stops: u64,
    /// Least and largest time from the sending of a cell until the cell has left the line, in picoseconds.
    lag: [u64; 2],
}

impl Taken {
    /// Returns the number of the generator's cells that leave the line while another flow is served.
    pub(super) fn cells(&self, span: &Span) -> u64 {
        let first = self.begins.max(span.from.saturating_sub(self.lag[0]));
        let last = self.stops.min(span.until.saturating_sub(self.lag[1]));
        self.pace.units_within(last.saturating_sub(first).saturating_sub(1))
    }
}

/// A line by its link and the node that sends.
type Line = (usize, NodeId);

/// The cells that generators certainly send on every line.
#[derive(Default)]
pub(super) struct Certain(BTreeMap<Line, Vec<Taken>>);

/// The course of a generator up to the first line that it shares.
struct Course {
    flow: usize,
    pace: Pace,
    /// Index in the generator's route of the first line that others may use, too.
    meets: usize,
}

impl Certain {
    pub(super) fn new(testbed: &Testbed, topology: &Topology) -> Self {
        let mut users: BTreeMap<Line, Vec<usize>> = BTreeMap::new();
        let mut courses = Vec::new();
        if !testbed.traffic.values().any(|traffic| matches!(traffic, Traffic::Cbr(_))) {
            return Self::default();
        }
        for (flow, (traffic, path)) in testbed.traffic.values().zip(&topology.flows).enumerate() {
            // Notes all lines to which a choice or an event may bring the flow.
            for hop in possible_hops(topology, path) {
                note(&mut users, (hop.link, hop.from), flow);
                if matches!(traffic, Traffic::TcpStream(_)) {
                    note(&mut users, (hop.link, hop.to), flow);
                }
            }
        }
        let of = |hop: &Hop| &users[&(hop.link, hop.from)];
        for (flow, (traffic, path)) in testbed.traffic.values().zip(&topology.flows).enumerate() {
            if let (Traffic::Cbr(_), Some(pace)) = (traffic, path.cells) {
                let meets = path.route.iter().position(|hop| of(hop).len() > 1);
                courses.push(Course { flow, pace, meets: meets.unwrap_or(path.route.len()) });
            }
        }
        let mut certain = Self::default();
        for course in &courses {
            certain.follow(testbed, topology, &courses, course, of);
        }
        certain
    }

    /// Returns the cells that generators other than `flow` certainly take of a line.
    pub(super) fn on(&self, hop: Hop, flow: usize) -> impl Iterator<Item = &Taken> {
        let all = self.0.get(&(hop.link, hop.from)).into_iter().flatten();
        all.filter(move |taken| taken.flow != flow)
    }

    /// Records the cells of a generator on the lines that it has alone, and on the first line that it shares.
    fn follow<'u>(
        &mut self,
        testbed: &Testbed,
        topology: &Topology,
        courses: &[Course],
        course: &Course,
        users: impl Fn(&Hop) -> &'u Vec<usize>,
    ) {
        let path = &topology.flows[course.flow];
        let (start, stop) = testbed.traffic[course.flow].window();
        let circuit = &topology.circuits[path.circuit.expect("a generator has a circuit")];
        let polices = path.forward && matches!(circuit.policing, Some((_, _, PolicingAction::Discard)));
        let mut lag = 0;
        for (place, hop) in path.route.iter().enumerate() {
            let link = &topology.links[hop.link];
            let Framing::Cells { slot } = link.line_from(hop.from).framing else { return };
            if !course.pace.is_at_least(slot) || (polices && place == 1) {
                return;
            }
            let waits = if place < course.meets {
                0
            } else if place == 0 {
                let others = users(hop).iter().filter(|flow| **flow != course.flow);
                match behind_nic(testbed, topology, hop, slot, others.copied(), courses) {
                    Some(waits) => waits,
                    None => return,
                }
            } else if !goes_first(topology, course.flow) {
                return;
            } else {
                let classmates = users(hop).iter().copied().filter(|flow| goes_first(topology, *flow));
                match behind_classmates(testbed, topology, hop, slot, classmates.collect(), courses) {
                    Some(waits) => waits,
                    None => return,
                }
            };
            let least = lag + slot.at_least();
            let taken = Taken {
                flow: course.flow,
                pace: course.pace,
                begins: start.map_or(0, |start| start.0),
                stops: stop.map_or(u64::MAX, |stop| stop.0),
                // Every line rounds instants up to picoseconds again.
                lag: [least, least.saturating_add(waits).saturating_add(place as u64 + 1)],
            };
            self.0.entry((hop.link, hop.from)).or_default().push(taken);
            if place == course.meets {
                return;
            }
            lag = least + link.delay.ps();
        }
    }
}

/// Records that a flow may use a line. Flows come in ascending order.
fn note(users: &mut BTreeMap<Line, Vec<usize>>, line: Line, flow: usize) {
    let users = users.entry(line).or_default();
    if users.last() != Some(&flow) {
        users.push(flow);
    }
}

/// Returns whether a flow may use a circuit of the category that switches serve first.
fn goes_first(topology: &Topology, flow: usize) -> bool {
    let path = &topology.flows[flow];
    let fans = path.fans.iter().flat_map(|fans| fans.iter()).flat_map(|fan| fan.legs());
    let legs = path.legs.iter().copied().chain(fans).flat_map(|leg| topology.legs_within(leg));
    legs.into_iter().any(|leg| match leg {
        PathSegment::Circuit { circuit, .. } => topology.circuits[circuit].category == Category::Cbr,
        PathSegment::Link(_) | PathSegment::Tunnel { .. } => false,
    })
}

/// Returns the longest wait of a cell behind PDUs of other flows in the same NIC, in picoseconds; `None` if generators alone fill the line.
fn behind_nic(
    testbed: &Testbed,
    topology: &Topology,
    hop: &Hop,
    slot: Pace,
    others: impl Iterator<Item = usize>,
    courses: &[Course],
) -> Option<u64> {
    let host = &testbed.hosts[&topology.nodes[hop.from]];
    // The shortest datagram takes one cell. One PDU of any length enters an empty NIC buffer.
    let shortest = IP_HEADER_BYTES + UDP_HEADER_BYTES;
    let mut waiting = (host.nic_buffer.bytes() / shortest + cells(MAX_SDU_BYTES)) as f64;
    let own = courses.iter().filter(|course| topology.flows[course.flow].route[0] == *hop);
    let load: f64 = own.map(|course| course.pace.per_second() / slot.per_second()).sum();
    for other in others {
        match testbed.traffic[other] {
            Traffic::Cbr(_) => waiting += 1.0,
            // The bursts of this source have no bound here.
            Traffic::OnOff(_) => return None,
            _ => {}
        }
    }
    let slots = (waiting + 2.0) / (1.0 - load);
    (load < 1.0 && slots < 1e9).then(|| slot.after(slots as u64 + 1))
}

/// Returns the longest wait of a cell behind others of its class, at a port that serves this class first, in picoseconds; `None` if cells may be lost there.
fn behind_classmates(
    testbed: &Testbed,
    topology: &Topology,
    hop: &Hop,
    slot: Pace,
    classmates: Vec<usize>,
    courses: &[Course],
) -> Option<u64> {
    let Some(Switch::Atm(switch)) = testbed.switches.get(&topology.nodes[hop.from]) else { return None };
    if !loses_only_when_full(switch) {
        return None;
    }
    let mut load = 0.0;
    for flow in &classmates {
        let course = courses.iter().find(|course| course.flow == *flow)?;
        // A generator that shared an earlier line arrives in clumps.
        if topology.flows[*flow].route.get(course.meets) != Some(hop) {
            return None;
        }
        load += course.pace.per_second() / slot.per_second();
    }
    // At any instant each generator has at most one cell there. One more cell comes while another class is served, and one because the count is rounded.
    let most = classmates.len() as u64 + 2;
    (load <= 1.0 && switch.output_buffer.0 >= most).then(|| slot.after(most))
}

/// Returns whether the first class of a switch drops cells only when its buffer is full.
fn loses_only_when_full(switch: &AtmSwitch) -> bool {
    matches!(switch.schedule, Schedule::Priority(_))
        && matches!(switch.discard, Discard::Tail(_) | Discard::Ppd(_))
        && switch.clp_threshold.is_none()
}
