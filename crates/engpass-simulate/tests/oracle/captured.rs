//! Captures at every link point of a random network: records against the counts of the outcome, and the outcome against that of a run without capture.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use engpass_simulate::{
    CaptureRecord, CaptureSink, Carried, Cell, Content, Packet, Pdu, SimOutcome, Unit, captured, simulate,
};
use engpass_testbed::topology::Hop;
use engpass_testbed::{Testbed, Topology};
use proptest::prelude::*;

use crate::networks::{Drawn, bonds, frames, groups, joined, mesh, network, network_with_tcp};
use crate::resolve::resolve;

/// Keeps all records.
#[derive(Default)]
struct All(Vec<CaptureRecord>);

impl CaptureSink for All {
    fn passed(&mut self, passing: &CaptureRecord) -> ControlFlow<()> {
        self.0.push(passing.clone());
        ControlFlow::Continue(())
    }

    fn wants_more(&self) -> bool {
        true
    }
}

pub(crate) fn capture(testbed: &Testbed, topology: &Topology, seed: u64) -> (SimOutcome, Vec<CaptureRecord>) {
    let ports: Vec<usize> = (0..2 * topology.links.len()).collect();
    let mut all = All::default();
    let outcome = captured(testbed, topology, seed, &ports, &|| false, &mut all);
    (outcome.expect("the simulation of a generated testbed succeeds"), all.0)
}

/// Identity of a cell or packet, unique in a run. The last part has identification and offset of every outer header.
type Name = (usize, bool, u32, u64, u32, u32, Vec<(u16, u32)>);

fn name(packet: &Packet, place: u32) -> Name {
    let number = match packet.content {
        Content::Datagram { index, .. } => index,
        // The identification of a segment is unique.
        Content::Segment { .. } | Content::TooBig { .. } => u64::from(packet.head.id),
        Content::Keepalive { tunnel, forward } => {
            u64::from(packet.head.id) | u64::from(forward) << 16 | (tunnel as u64) << 17
        }
        Content::Outside { .. } => unreachable!("a simulated run has no injected packets"),
    };
    let outer = packet.outer.iter().map(|outer| (outer.head.id, outer.head.offset)).collect();
    (packet.flow, packet.back, packet.source, number, packet.head.offset, place, outer)
}

/// Checks counts and order, and that everything that passes a port has passed the one before.
fn law(testbed: &Testbed, seed: u64) -> Result<(), TestCaseError> {
    let topology = resolve(testbed);
    let alone = simulate(testbed, &topology, seed, &|| false)
        .expect("the simulation of a generated testbed succeeds");
    let (outcome, all) = capture(testbed, &topology, seed);
    prop_assert_eq!(&SimOutcome { events: alone.events, ..outcome }, &alone);
    prop_assert!(all.is_sorted_by_key(|passing| (passing.at, passing.port)));
    let begin = testbed.run.warmup.map_or(0, |warmup| warmup.0);
    let counted = |passing: &&CaptureRecord| begin == 0 || passing.at > begin;
    for (link, (_, used)) in alone.links.iter().enumerate() {
        for (end, direction) in used.directions.iter().enumerate() {
            let here: Vec<&CaptureRecord> =
                all.iter().filter(|passing| passing.port == 2 * link + end).collect();
            let window = here.iter().copied().filter(counted).count() as u64;
            prop_assert_eq!(window, direction.carried.sent(), "link {} end {}", link, end);
            let cell = |passing: &CaptureRecord| match &passing.unit {
                Unit::Cell(cell) => Some((passing.at, cell.clone())),
                Unit::Packet(_) | Unit::Arp(_) | Unit::Igmp(_) => None,
            };
            let cells: Vec<(u64, Cell)> = here.iter().filter_map(|passing| cell(passing)).collect();
            if let Carried::Cells { .. } = direction.carried {
                prop_assert_eq!(cells.len(), here.len());
                for vc in &direction.vcs {
                    let mine: Vec<_> = cells
                        .iter()
                        .filter(|(_, cell)| (cell.circuit, cell.forward) == (vc.circuit, vc.forward))
                        .collect();
                    let inside = || mine.iter().filter(|(at, _)| begin == 0 || *at > begin);
                    prop_assert_eq!(inside().count() as u64, vc.sent);
                    prop_assert_eq!(inside().filter(|(_, cell)| cell.clp).count() as u64, vc.clp);
                    prop_assert_eq!(inside().filter(|(_, cell)| cell.efci).count() as u64, vc.efci);
                    prop_assert_eq!(mine.last().map(|(at, _)| *at), vc.last_sent);
                }
            }
        }
    }
    passed_before(&topology, &all)
}

/// Checks along every circuit and route that what passes a port has passed the one before, earlier by at least its delay.
fn passed_before(topology: &Topology, all: &[CaptureRecord]) -> Result<(), TestCaseError> {
    let port = |hop: &Hop| 2 * hop.link + usize::from(topology.links[hop.link].ends[0] != hop.from);
    // Cells of circuits in order, by port, circuit and direction.
    let mut cells: BTreeMap<(usize, usize, bool), BTreeMap<Name, u64>> = BTreeMap::new();
    let mut generated: BTreeMap<(usize, usize, bool, usize), Vec<u64>> = BTreeMap::new();
    for passing in all {
        let Unit::Cell(cell) = &passing.unit else { continue };
        let key = (passing.port, cell.circuit, cell.forward);
        match &cell.pdu {
            Pdu::Packet(packet) => {
                let before = cells.entry(key).or_default().insert(name(packet, cell.place), passing.at);
                prop_assert_eq!(before, None, "a cell passes a port once: {:?}", passing);
            }
            Pdu::Generated(flow) => {
                generated.entry((key.0, key.1, key.2, *flow)).or_default().push(passing.at);
            }
        }
    }
    for (circuit, path) in topology.circuits.iter().enumerate() {
        for forward in [true, false] {
            let hops: Vec<Hop> = if forward {
                path.route.clone()
            } else {
                path.route.iter().rev().map(|hop| hop.back()).collect()
            };
            for pair in hops.windows(2) {
                let (from, to) = (port(&pair[0]), port(&pair[1]));
                let delay = topology.links[pair[0].link].delay.ps();
                let Some(after) = cells.get(&(to, circuit, forward)) else { continue };
                let before = &cells[&(from, circuit, forward)];
                for (name, at) in after {
                    let left = before.get(name).copied();
                    prop_assert!(left.is_some_and(|left| left + delay < *at), "{:?} {:?} {}", name, left, at);
                }
                for ((_, _, _, flow), after) in generated
                    .iter()
                    .filter(|((port, index, way, _), _)| (*port, *index, *way) == (to, circuit, forward))
                {
                    let before = &generated[&(from, circuit, forward, *flow)];
                    // Generated cells are identical: the k-th here is the k-th there, or a later one.
                    for (first, second) in before.iter().zip(after) {
                        prop_assert!(first + delay < *second);
                    }
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(engpass_cases::cases(300))]

    #[test]
    fn cell_capture_equals_outcome_counts(Drawn(testbed) in network(), seed in any::<u64>()) {
        law(&testbed, seed)?;
    }

    #[test]
    fn tcp_cell_capture_equals_outcome_counts(Drawn(testbed) in network_with_tcp(), seed in any::<u64>()) {
        law(&testbed, seed)?;
    }

    #[test]
    fn frame_capture_equals_outcome_counts(Drawn(testbed) in frames(), seed in any::<u64>()) {
        law(&testbed, seed)?;
    }

    #[test]
    fn ecmp_capture_equals_outcome_counts(Drawn(testbed) in mesh(), seed in any::<u64>()) {
        law(&testbed, seed)?;
    }

    #[test]
    fn bond_capture_equals_outcome_counts(Drawn(testbed) in bonds(), seed in any::<u64>()) {
        law(&testbed, seed)?;
    }

    #[test]
    fn circuit_at_router_capture_equals_outcome_counts(Drawn(testbed) in joined(), seed in any::<u64>()) {
        law(&testbed, seed)?;
    }

    #[test]
    fn multicast_capture_equals_outcome_counts(Drawn(testbed) in groups(), seed in any::<u64>()) {
        law(&testbed, seed)?;
    }
}

/// A capture that reaches its limit, and one that breaks off.
#[test]
fn a_capture_may_end_before_the_run() {
    struct First(u64, bool);
    impl CaptureSink for First {
        fn passed(&mut self, _: &CaptureRecord) -> ControlFlow<()> {
            self.0 -= 1;
            if self.1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
        fn wants_more(&self) -> bool {
            self.0 > 0
        }
    }
    use crate::bench::{bench, circuit, hosts, link, udp};
    let mut testbed = bench("100 ms");
    hosts(&mut testbed, &["a", "b"]);
    link(&mut testbed, ["a", "b"], engpass_model::wire::Medium::Oc3c);
    circuit(&mut testbed, "a", "b");
    udp(&mut testbed, "a", "b", 1000);
    let topology = resolve(&testbed);
    let run = |first: &mut First| captured(&testbed, &topology, 1, &[0, 1], &|| false, first);
    let alone = simulate(&testbed, &topology, 1, &|| false).expect("the simulation succeeds");
    let mut few = First(10, false);
    assert_eq!(run(&mut few).expect("the simulation succeeds"), alone);
    assert_eq!(few.0, 0);
    assert!(run(&mut First(10, true)).is_err());
}
