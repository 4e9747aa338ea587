//! Properties of the oracle on every network.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use engpass_model::discard::{Discard, EpdPpd, Fba, SelectiveDrop};
use engpass_model::queue::Queue;
use engpass_model::shape::PolicingAction;
use engpass_model::source::Traffic;
use engpass_model::switch::{AtmSwitch, Switch};
use engpass_model::time::SECOND;
use engpass_model::unit::Share;
use engpass_model::wire::{Framing, Medium};
use engpass_testbed::topology::{FlowPath, Hop, LinkEnds, PathSegment};
use engpass_testbed::{Testbed, Topology};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::cell::vc_index;
use crate::engine::Engine;
use crate::networks::{Drawn, asking, bonds, frames, joined, mesh, network, network_with_tcp, port};
use crate::outcome::{Departing, FlowSeen, Observed, Place, Times, compare};
use crate::queue::Cause;
use crate::resolve::resolve;

/// Later than everything in a drained network: an hour in picoseconds.
const LATE: u64 = 3_600_000_000_000_000;

/// Returns four instants of a run, the last one its end.
fn instants(testbed: &Testbed) -> [u64; 4] {
    let end = testbed.run.duration.0;
    [0, end / 3, end - end / 7, end]
}

/// Checks the internal state of the engine.
fn in_order(engine: &Engine<'_>, seen: &Observed) -> Result<(), TestCaseError> {
    engine.balance(seen).map_err(TestCaseError::fail)?;
    engine.frames_balance(seen).map_err(TestCaseError::fail)
}

/// Returns true if receivers of a traffic join or leave.
fn has_members(testbed: &Testbed, traffic: usize) -> bool {
    let name = testbed.traffic.get_index(traffic).map(|(name, _)| name);
    testbed.events.values().any(|event| event.traffic.is_some() && event.traffic.as_ref() == name)
}

/// Returns the counters of each traffic: its own, or those of its receivers after all traffic if there are several.
fn counted(testbed: &Testbed) -> Vec<Range<usize>> {
    let mut first = testbed.traffic.len();
    let of = |(index, traffic): (usize, &Traffic)| match traffic {
        Traffic::Multicast(config) if config.to.len() > 1 || has_members(testbed, index) => {
            first += config.to.len();
            first - config.to.len()..first
        }
        _ => index..index + 1,
    };
    testbed.traffic.values().enumerate().map(of).collect()
}

/// Checks that every datagram has one delivery status at every receiver; one that was lost before it was sent is lost and not sent.
fn fates(testbed: &Testbed, seen: &Observed) -> Result<(), TestCaseError> {
    for (index, at) in counted(testbed).into_iter().enumerate() {
        let flows = &seen.flows[at];
        for flow in flows {
            let known = flow.received + flow.lost + flow.in_flight;
            prop_assert!(known == flow.sent || known == flow.sent + 1, "{:?}", flow);
            prop_assert!(flow.received_bytes <= flow.sent_bytes, "{:?}", flow);
        }
        // Segments without data count as losses, but not of the flow.
        let lost = flows.iter().map(|flow| flow.lost).sum::<u64>();
        let here = seen.losses.iter().filter(|(key, _)| key.flow == index);
        let datagrams: u64 = here.map(|(_, lost)| lost.datagrams).sum();
        let connects = seen.flows[index].tcp.is_some();
        prop_assert!(datagrams == lost || (connects && datagrams > lost), "{:?}", flows);
    }
    Ok(())
}

/// Checks that the accounts of every line sum to its capacity in the measurement window.
fn books_balance(topology: &Topology, seen: &Observed) -> Result<(), TestCaseError> {
    for (&(link, end), accounts) in &seen.accounts {
        let ends = &topology.links[link];
        let line = ends.lines[end];
        let parts = match line.framing {
            // Bits per slot as a fraction in lowest terms: the denominator is the number of parts per bit.
            Framing::Cells { slot } => slot.stretched(line.rate, SECOND).ratio().1,
            _ => 1,
        };
        let bits = u128::from(seen.at) * u128::from(line.rate);
        let total: u128 = accounts.values().sum();
        prop_assert_eq!(total, bits * u128::from(parts) / u128::from(SECOND), "link {} end {}", link, end);
    }
    Ok(())
}

/// Checks that everything balances at every instant, and that nothing is in flight in the end.
fn balances(mut testbed: Testbed, seed: u64) -> Result<(), TestCaseError> {
    testbed.run.warmup = None;
    let topology = resolve(&testbed);
    let mut engine = Engine::new(&testbed, seed);
    for at in instants(&testbed) {
        engine.run_until(at);
        let seen = engine.snapshot(at);
        in_order(&engine, &seen)?;
        engine.within_buffers().map_err(TestCaseError::fail)?;
        fates(&testbed, &seen)?;
        books_balance(&topology, &seen)?;
    }
    // Sources have stopped, and the network drains. But a segment that is always lost is sent again for ever.
    let for_ever = testbed.traffic.values().any(|traffic| matches!(traffic, Traffic::TcpStream(_)));
    let late = if for_ever { 2 * testbed.run.duration.0 } else { LATE };
    engine.run_until(late);
    let seen = engine.snapshot(late);
    in_order(&engine, &seen)?;
    for flow in counted(&testbed).into_iter().flat_map(|at| &seen.flows[at]).filter(|_| !for_ever) {
        prop_assert_eq!(flow.in_flight, 0);
        prop_assert_eq!(flow.sent, flow.received + flow.lost);
    }
    Ok(())
}

fn at_the_end(testbed: &Testbed, seed: u64) -> Observed {
    let mut engine = Engine::new(testbed, seed);
    let end = testbed.run.duration.0;
    engine.run_until(end);
    engine.snapshot(end)
}

proptest! {
    #[test]
    fn cells_and_datagrams_balance_at_every_instant(Drawn(testbed) in network(), seed in any::<u64>()) {
        balances(testbed, seed)?;
    }

    #[test]
    fn segments_balance_at_every_instant(Drawn(testbed) in network_with_tcp(), seed in any::<u64>()) {
        balances(testbed, seed)?;
    }

    #[test]
    fn packets_balance_at_every_instant(Drawn(testbed) in frames(), seed in any::<u64>()) {
        balances(testbed, seed)?;
    }

    #[test]
    fn packets_balance_where_links_go_down(Drawn(testbed) in mesh(), seed in any::<u64>()) {
        balances(testbed, seed)?;
    }

    #[test]
    fn packets_balance_with_address_resolution(Drawn(testbed) in asking(), seed in any::<u64>()) {
        balances(testbed, seed)?;
    }

    #[test]
    fn packets_balance_where_bond_members_fail(Drawn(testbed) in bonds(), seed in any::<u64>()) {
        balances(testbed, seed)?;
    }

    #[test]
    fn packets_and_cells_balance_where_circuits_end_at_routers(Drawn(testbed) in joined(), seed in any::<u64>()) {
        balances(testbed, seed)?;
    }

    #[test]
    fn snapshots_do_not_change_the_oracle_run(Drawn(testbed) in network_with_tcp(), seed in any::<u64>()) {
        let mut engine = Engine::new(&testbed, seed);
        for at in instants(&testbed) {
            engine.run_until(at);
            engine.snapshot(at);
        }
        let end = testbed.run.duration.0;
        prop_assert_eq!(compare(&engine.snapshot(end), &at_the_end(&testbed, seed)), Ok(()));
    }

    #[test]
    fn warmup_subtracts_the_counts_before_the_window(Drawn(mut testbed) in network(), seed in any::<u64>()) {
        let end = testbed.run.duration.0;
        testbed.run.warmup = None;
        let mut engine = Engine::new(&testbed, seed);
        engine.run_until(end / 3);
        let before = engine.snapshot(end / 3);
        engine.run_until(end);
        let whole = engine.snapshot(end);
        testbed.run.warmup = Some(engpass_model::unit::Duration(end / 3));
        let warm = at_the_end(&testbed, seed);
        for ((before, whole), warm) in before.flows.iter().zip(&whole.flows).zip(&warm.flows) {
            prop_assert_eq!(warm.sent, whole.sent - before.sent);
            prop_assert_eq!(warm.received, whole.received - before.received);
            prop_assert_eq!(warm.lost, whole.lost - before.lost);
            prop_assert_eq!(warm.in_flight, whole.in_flight);
            prop_assert_eq!(&warm.receptions, &whole.receptions);
        }
        for (key, whole) in &whole.departures {
            let before = before.departures.get(key).map_or(0, |departed| departed.cells);
            prop_assert_eq!(warm.departures[key].cells, whole.cells - before);
        }
    }
}

/// Returns the longest delay, in picoseconds, of a ring of five links between switches in which every link passes cells on to the next one.
fn closed_ring(topology: &Topology, seen: &Observed) -> Option<u64> {
    let left = |circuit: usize, forward: bool, hop: Hop| {
        let end = usize::from(topology.links[hop.link].ends[0] != hop.from);
        let between = topology.links[hop.link].ends.iter().all(|end| *end >= topology.hosts);
        between && seen.departures.contains_key(&Departing { link: hop.link, end, circuit, forward })
    };
    let mut next: BTreeMap<Hop, BTreeSet<Hop>> = BTreeMap::new();
    for circuit in 0..topology.circuits.len() {
        for forward in [true, false] {
            let hops = topology.hops(PathSegment::Circuit { circuit, forward });
            for hops in hops.windows(2).filter(|hops| hops.iter().all(|hop| left(circuit, forward, *hop))) {
                next.entry(hops[0]).or_default().insert(hops[1]);
            }
        }
    }
    let goes_round = |first: Hop| {
        let (mut hop, mut delay) = (first, 0);
        for _ in 0..5 {
            delay = delay.max(topology.links[hop.link].delay.ps());
            hop = *next.get(&hop)?.first()?;
        }
        (hop == first).then_some(delay)
    };
    next.keys().find_map(|first| goes_round(*first))
}

fn fair(config: &AtmSwitch) -> bool {
    matches!(config.discard, Discard::SelectiveDrop(_) | Discard::Fba(_))
}

/// Size of a sample of random networks. `PROPTEST_CASES` makes it smaller in the same proportion as the number of cases of a property.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    all: u32,
    pub(crate) drawn: u32,
}

impl Sample {
    pub(crate) fn new(all: u32) -> Self {
        Self { all, drawn: engpass_cases::cases(all).cases.min(all) }
    }

    /// Returns how many of the drawn networks must show a thing that `times` of all must show: half their share in a smaller sample, where chance matters more.
    pub(crate) fn enough(self, times: u64) -> u64 {
        let share = times * u64::from(self.drawn) / u64::from(self.all) / 2;
        if self.drawn < self.all { share.max(1) } else { times }
    }
}

/// Size of a sample.
const NETWORKS: u32 = 600;

/// Number of networks of a whole sample that must show each thing.
const ENOUGH: u64 = 15;

/// Coverage: enough networks of a sample show each thing that a property test should meet.
#[test]
fn random_atm_networks_cover_all_cases() {
    let mut met: BTreeMap<&str, u64> = BTreeMap::new();
    let mut runner = TestRunner::deterministic();
    let mut most = 0;
    let sample = Sample::new(NETWORKS);
    let enough = sample.enough(ENOUGH);
    for _ in 0..sample.drawn {
        let testbed = network().new_tree(&mut runner).expect("the strategy generates a network").current().0;
        let topology = resolve(&testbed);
        let seen = at_the_end(&testbed, 1);
        most = most.max(seen.departures.values().map(|departed| departed.cells).sum());
        let mut meet = |what, there: bool| *met.entry(what).or_default() += u64::from(there);
        let lost = |place: fn(&Place) -> bool| seen.losses.keys().any(|key| place(&key.place));
        meet("loss at a port", lost(|place| matches!(place, Place::Port { .. })));
        meet("loss at a policer", lost(|place| matches!(place, Place::Policer { .. })));
        meet("loss at a reassembly", lost(|place| matches!(place, Place::Reassembly { .. })));
        meet("loss at a receive buffer", lost(|place| matches!(place, Place::ReceiveBuffer)));
        meet("something received", seen.flows.iter().any(|flow| flow.received > 0));
        meet("something in flight", seen.flows.iter().any(|flow| flow.in_flight > 0));
        // Without losses and marks there is nothing to distinguish.
        let idle = !lost(|place| matches!(place, Place::Port { .. }))
            && seen.departures.values().all(|departed| departed.efci == 0);
        // Losses or marks caused by a policy or a threshold, which tail drop would not have.
        let mut matters =
            |what: &'static str, of: &dyn Fn(&AtmSwitch) -> bool, without: fn(&mut AtmSwitch)| {
                // A second run of the network takes as long as the first.
                if met.get(what).is_some_and(|times| *times >= enough) {
                    return;
                }
                let mut other = testbed.clone();
                for switch in other.switches.values_mut() {
                    let Switch::Atm(config) = switch else { continue };
                    if of(config) {
                        without(config);
                    }
                }
                let matters = !idle && other != testbed && at_the_end(&other, 1) != seen;
                *met.entry(what).or_default() += u64::from(matters);
            };
        for kind in Discard::KINDS.iter().filter(|kind| **kind != "tail") {
            matters(kind, &|config| config.discard.kind() == *kind, |config| {
                config.discard = Discard::Tail(Default::default());
            });
        }
        matters("selective drop tells circuits apart", &fair, |config| {
            if let Discard::SelectiveDrop(SelectiveDrop { threshold, .. })
            | Discard::Fba(Fba { threshold, .. }) = config.discard
            {
                config.discard = Discard::EpdPpd(EpdPpd { threshold });
            }
        });
        matters("a CLP threshold matters", &|_| true, |config| config.clp_threshold = None);
        matters("an EFCI threshold matters", &|_| true, |config| config.efci_threshold = None);
        let mut meet = |what, there: bool| *met.entry(what).or_default() += u64::from(there);
        meet("a shaper that adapts matters", {
            let mut other = testbed.clone();
            for circuit in other.circuits.values_mut() {
                if let Some(adaptive) = &mut circuit.adaptive {
                    adaptive.increase = Share(Share::WHOLE / 10_000);
                }
            }
            other != testbed && at_the_end(&other, 1) != seen
        });
        meet("a PDU with EFCI", seen.flows.iter().any(|flow| flow.marked > 0));
        meet("a tagged cell", {
            let tagging = |circuit: usize| {
                topology.circuits[circuit]
                    .policing
                    .is_some_and(|(_, _, action)| action == PolicingAction::Tag)
            };
            seen.departures.iter().any(|(key, departed)| tagging(key.circuit) && departed.clp > 0)
        });
        meet("a warm-up", testbed.run.warmup.is_some());
        let ring = closed_ring(&topology, &seen);
        meet("cells all round a ring", ring.is_some());
        meet("cells all round a ring of links below 10 ns", ring.is_some_and(|delay| delay < 10_000));
        meet("cells all round a ring of links of 1 ps", ring == Some(1));
        meet("against a circuit", topology.flows.iter().any(|flow| !flow.forward));
        meet("three hops or more", topology.flows.iter().any(|flow| flow.route.len() > 2));
        meet("a rate for each direction", {
            let unequal = |hop: &Hop| topology.links[hop.link].lines[0] != topology.links[hop.link].lines[1];
            let mut flows = topology.flows.iter().zip(&seen.flows);
            flows.any(|(path, flow)| flow.received > 0 && path.route.iter().any(unequal))
        });
        meet("both directions of a circuit", {
            let used: Vec<usize> = topology
                .flows
                .iter()
                .map(|flow| vc_index(flow.circuit.expect("the flow has a circuit"), flow.forward))
                .collect();
            used.iter().any(|vc| used.contains(&(vc ^ 1)))
        });
    }
    for (what, times) in &met {
        assert!(*times >= enough, "{what}: only {times} of {} networks", sample.drawn);
    }
    assert!(most > 5_000 && most < 60_000, "cells sent in the largest network: {most}");
    println!("{met:?}, at most {most} cells");
}

/// How often a sample of networks meets each thing.
pub(crate) struct Met {
    times: BTreeMap<&'static str, u64>,
    pub(crate) sample: Sample,
}

impl Met {
    pub(crate) fn new(networks: u32) -> Self {
        Self { times: BTreeMap::new(), sample: Sample::new(networks) }
    }

    pub(crate) fn meet(&mut self, what: &'static str, there: bool) {
        *self.times.entry(what).or_default() += u64::from(there);
    }

    /// Fails if the sample meets something too rarely.
    pub(crate) fn enough(&self) {
        println!("{:?}", self.times);
        for (what, times) in &self.times {
            assert!(
                *times >= self.sample.enough(ENOUGH),
                "{what}: only {times} of {} networks",
                self.sample.drawn
            );
        }
    }

    /// Records what TCP meets.
    pub(crate) fn tcp(&mut self, testbed: &Testbed, seen: &Observed) {
        let slow = |traffic: &Traffic| {
            let (from, to) = traffic.ends();
            [from, to]
                .iter()
                .any(|host| testbed.hosts[*host].memory.is_some() || testbed.hosts[*host].io_bus.is_some())
        };
        self.meet("a memory or an I/O bus on the way", testbed.traffic.values().any(slow));
        let flows = || seen.flows.iter().filter_map(|flow| flow.tcp.as_ref());
        self.meet("a retransmission", flows().any(|tcp| tcp.retransmitted > 0));
        self.meet("a timeout", flows().any(|tcp| tcp.timeouts > 0));
        self.meet("a fast retransmit", flows().any(|tcp| tcp.fast_retransmits > 0));
        let several = |traffic: &Traffic| matches!(traffic, Traffic::TcpStream(stream) if stream.streams > 1);
        self.meet("several streams", testbed.traffic.values().any(several));
        let booked = |account: &str| seen.accounts.values().any(|accounts| accounts.contains_key(account));
        self.meet("a duplicate", booked("duplicate"));
        for account in [
            "idle: application",
            "idle: CPU",
            "idle: NIC buffer",
            "idle: send buffer",
            "idle: receive window",
            "idle: congestion window",
            "idle: retransmission timer",
            "idle: Nagle",
            "idle: handshake",
            "idle: upstream",
            "idle: no sender",
        ] {
            self.meet(account, booked(account));
        }
        let lost: Vec<_> = (0..seen.flows.len())
            .map(|flow| {
                seen.losses.iter().filter(move |(key, _)| key.flow == flow).map(|(_, lost)| lost.datagrams)
            })
            .map(Iterator::sum::<u64>)
            .collect();
        let beside = seen.flows.iter().zip(lost);
        self.meet("an acknowledgment lost", beside.clone().any(|(flow, lost)| lost > flow.lost));
    }
}

/// TCP on circuits crosses several hops, with losses at more than one of them.
#[test]
fn random_tcp_networks_cover_all_cases() {
    let mut met = Met::new(NETWORKS);
    let mut runner = TestRunner::deterministic();
    for _ in 0..met.sample.drawn {
        let drawn = network_with_tcp().new_tree(&mut runner).expect("the strategy generates a network");
        let Drawn(testbed) = drawn.current();
        let topology = resolve(&testbed);
        let seen = at_the_end(&testbed, 1);
        met.tcp(&testbed, &seen);
        let tcp = || topology.flows.iter().zip(&seen.flows).filter(|(_, flow)| flow.tcp.is_some());
        for hops in 1..=4 {
            let what = ["one hop", "two hops", "three hops", "four hops"][hops - 1];
            met.meet(what, tcp().any(|(path, flow)| path.route.len() == hops && flow.received > 0));
        }
        let ports = |flow: usize| {
            let ports = seen.losses.keys().filter(|key| key.flow == flow).filter_map(|key| match key.place {
                Place::Port { link, end, .. } => Some((link, end)),
                _ => None,
            });
            ports.collect::<BTreeSet<_>>().len()
        };
        met.meet("loss at two ports of a way", (0..seen.flows.len()).any(|flow| ports(flow) > 1));
        let adapts = |path: &FlowPath| {
            path.forward
                && path.circuit.is_some_and(|circuit| {
                    testbed.circuits.get_index(circuit).is_some_and(|(_, circuit)| circuit.adaptive.is_some())
                })
        };
        met.meet(
            "TCP through a shaper that adapts",
            tcp().any(|(path, flow)| adapts(path) && flow.received > 0),
        );
        met.meet(
            "TCP beside UDP",
            tcp().count() < seen.flows.len() && tcp().any(|(_, flow)| flow.received > 0),
        );
    }
    met.enough();
}

/// Frames meet drops of every discipline, corruption, and fragmentation.
#[test]
fn random_frame_networks_cover_all_cases() {
    let mut met = Met::new(NETWORKS);
    let mut runner = TestRunner::deterministic();
    for _ in 0..met.sample.drawn {
        let Drawn(testbed) =
            frames().new_tree(&mut runner).expect("the strategy generates a network").current();
        let topology = resolve(&testbed);
        let seen = at_the_end(&testbed, 1);
        met.tcp(&testbed, &seen);
        for cause in Cause::ALL {
            met.meet(cause.text(), seen.losses.keys().any(|key| queue_cause(&key.place) == Some(cause)));
        }
        for kind in Queue::KINDS {
            let of_kind = |queue: &Option<Queue>| queue.as_ref().is_some_and(|queue| queue.kind() == *kind);
            let on_the_way = |hop: &Hop| {
                let link = &topology.links[hop.link];
                of_kind(&link.queues[usize::from(link.ends[0] != hop.from)])
            };
            let meets =
                |(path, flow): (&FlowPath, &FlowSeen)| flow.received > 0 && path.route.iter().any(on_the_way);
            met.meet(kind, topology.flows.iter().zip(&seen.flows).any(meets));
        }
        let lost = |place: fn(&Place) -> bool| seen.losses.keys().any(|key| place(&key.place));
        met.meet("damage on the line", lost(|place| matches!(place, Place::Line { .. })));
        met.meet("a time to live that ran out", lost(|place| matches!(place, Place::TimeToLive { .. })));
        met.meet("loss at a receive buffer", lost(|place| matches!(place, Place::ReceiveBuffer)));
        let reaches = |flow: usize| seen.flows[flow].received > 0;
        let paths = || topology.flows.iter().enumerate().filter(|(flow, _)| reaches(*flow));
        met.meet("cut on the way", paths().any(|(_, path)| path.path_mtu < path.mtu));
        met.meet("three hops or more", paths().any(|(_, path)| path.route.len() > 2));
        met.meet("bursts", testbed.traffic.values().any(|traffic| matches!(traffic, Traffic::UdpOnOff(_))));
        met.meet("video", testbed.traffic.values().any(|traffic| matches!(traffic, Traffic::Video(_))));
        let ended = |flow: &FlowSeen| flow.transfer.is_some_and(|transfer| transfer.times.is_some());
        met.meet("a transfer that ended", seen.flows.iter().any(ended));
        met.meet("Poisson", testbed.traffic.values().any(|traffic| matches!(traffic, Traffic::Poisson(_))));
        let on_way = |of: fn(&LinkEnds) -> bool| {
            paths().any(|(_, path)| path.route.iter().any(|hop| of(&topology.links[hop.link])))
        };
        met.meet("jitter", on_way(|link| link.jitter.ps() > 0));
        met.meet("reordering", on_way(|link| link.reorder.is_some()));
        met.meet("a VLAN tag", on_way(|link| link.vlan));
        met.meet("point to point", on_way(|link| link.medium == Medium::PointToPoint));
        met.meet("a rate for each direction", on_way(|link| link.lines[0] != link.lines[1]));
    }
    met.enough();
}

/// At contended ports every discipline drops for every cause that it has.
#[test]
fn contended_packet_ports_cover_every_drop_cause() {
    let mut met: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut runner = TestRunner::deterministic();
    let ports = Sample::new(NETWORKS / 2);
    for _ in 0..ports.drawn {
        let Drawn(testbed) = port().new_tree(&mut runner).expect("the strategy generates a port").current();
        let kind = match (testbed.switches.values().next(), testbed.routers.values().next()) {
            (Some(Switch::Ethernet(config)), _) => config.queue.kind(),
            (_, router) => router.expect("the testbed has a switch or a router").queue.kind(),
        };
        let seen = at_the_end(&testbed, 1);
        let causes: BTreeSet<Cause> = seen.losses.keys().filter_map(|key| queue_cause(&key.place)).collect();
        for cause in causes {
            *met.entry((kind, cause.text())).or_default() += 1;
        }
    }
    println!("{met:?}");
    let causes = |kind| match kind {
        "red" => vec![Cause::Full, Cause::Early],
        "codel" | "fq-codel" => vec![Cause::Full, Cause::CoDel],
        "token-bucket" => vec![Cause::Full, Cause::LongerThanBurst],
        _ => vec![Cause::Full],
    };
    for kind in Queue::KINDS {
        for cause in causes(*kind) {
            let times = met.get(&(*kind, cause.text())).copied().unwrap_or_default();
            assert!(
                times >= ports.enough(5),
                "{kind}, {}: only {times} of {} ports",
                cause.text(),
                ports.drawn
            );
        }
    }
}

fn queue_cause(place: &Place) -> Option<Cause> {
    match place {
        Place::Queue { cause, .. } => Some(*cause),
        _ => None,
    }
}

#[test]
fn compare_names_every_difference() {
    let testbed = network()
        .new_tree(&mut TestRunner::deterministic())
        .expect("the strategy generates a network")
        .current()
        .0;
    let oracle = at_the_end(&testbed, 1);
    let mut fast = oracle.clone();
    assert_eq!(compare(&fast, &oracle), Ok(()));
    fast.flows[0].received += 1;
    let key = *fast.departures.keys().next().expect("a port has sent a cell");
    fast.departures.remove(&key);
    let differences = compare(&fast, &oracle).unwrap_err();
    assert_eq!(differences.lines().count(), 2, "{differences}");
    assert!(differences.starts_with("flow 0: fast FlowSeen"), "{differences}");
    assert!(differences.contains(": fast None, oracle Some(Departed"), "{differences}");
    let exact =
        Times { min: 1_000_000, mean: 1_900_000, quantiles: [2_000_000; 4], max: 2_000_000, floor: 0 };
    let mut oracle = oracle;
    oracle.delays[0] = Some(exact);
    for (delays, right) in [
        (exact, true),
        (Times { quantiles: [1_969_000; 4], ..exact }, true),
        (Times { quantiles: [1_968_000; 4], ..exact }, false),
        (Times { quantiles: [2_000_001; 4], ..exact }, false),
        (Times { min: 1_000_001, ..exact }, false),
        (Times { mean: 1_900_001, ..exact }, false),
    ] {
        let mut fast = oracle.clone();
        fast.delays[0] = Some(delays);
        assert_eq!(compare(&fast, &oracle).is_ok(), right, "{delays:?}");
    }
}
