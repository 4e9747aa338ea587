//! Packets injected when modelled hosts would send them have the same results as those of modelled hosts.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::arp::Arp;
use engpass_model::forward::{Ecmp, HashFields};
use engpass_model::host::{Cost, ps};
use engpass_model::source::poisson::Sizes;
use engpass_model::source::{Poisson, Traffic};
use engpass_model::unit::{Duration, Rate, Size};
use engpass_outcome::FlowOutcome;
use engpass_simulate::injection::{DeliveryReport, InjectedNetwork, Packet};
use engpass_simulate::{Direction, Network, SimOutcome, simulate};
use engpass_testbed::{Source, Testbed, Topology, heads, load};
use proptest::prelude::*;

use super::choices::choices;
use crate::networks::{Drawn, frames, network, text};
use crate::resolve::resolve;

pub(crate) const SEED: u64 = 11;

/// A packet of the schedule: instant, hosts, packet.
pub(crate) type Planned = (u64, (String, String), Packet);

/// Returns the drawn network with hosts without costs, and at most one Poisson process from a host to another.
pub(crate) fn plain(drawn: &Drawn) -> Testbed {
    let mut testbed = drawn.0.clone();
    for host in testbed.hosts.values_mut() {
        (host.cost, host.receive_cost, host.pauses) = (Cost::default(), Cost::default(), None);
        (host.memory, host.io_bus) = (None, None);
        host.nic_buffer = Size(1 << 40);
    }
    let mut pairs = BTreeSet::new();
    let duration = testbed.run.duration.0;
    testbed.traffic.retain(|_, traffic| {
        let (from, to) = traffic.ends();
        traffic.cells().is_some() || pairs.insert((from.to_owned(), to.to_owned()))
    });
    for traffic in testbed.traffic.values_mut() {
        let ((from, to), (start, stop)) = (traffic.ends(), traffic.window());
        let (message, fixed) = match &*traffic {
            Traffic::UdpStream(config) => (config.message.bytes().min(20_000), true),
            Traffic::TcpStream(config) => (config.message.bytes().min(3_000), false),
            Traffic::Poisson(config) => (config.message.bytes(), config.sizes == Sizes::Fixed),
            _ => match traffic.datagrams() {
                Some((bytes, _)) => (bytes, true),
                None => continue,
            },
        };
        // About thirty datagrams in a run.
        let rate = (u128::from(message) * 8 * 30 * 1_000_000_000_000 / u128::from(duration)) as u64;
        *traffic = Traffic::Poisson(Poisson {
            from: from.into(),
            to: to.into(),
            message: Size(message),
            rate: Rate(rate.max(1)),
            sizes: if fixed || message > 8000 { Sizes::Fixed } else { Sizes::Exponential },
            circuit: traffic.circuit().map(str::to_owned),
            send_path: None,
            receive_path: None,
            receive_buffer: None,
            live: Default::default(),
            priority: traffic.priority(),
            ttl: traffic.ttl().unwrap_or(64),
            start,
            stop,
        });
    }
    // Without groups there are no members.
    testbed.events.retain(|_, event| !event.is_of_member());
    let warmup = testbed.run.warmup.map_or(0, |warmup| warmup.0).max(duration / 7);
    testbed.run.warmup = Some(Duration(warmup));
    testbed
}

/// Returns the packets that the processes of a testbed send, with their instants.
pub(crate) fn plan(testbed: &Testbed) -> Vec<Planned> {
    let (mut planned, topology) = (Vec::new(), topology(testbed));
    for (flow, (name, traffic)) in testbed.traffic.iter().enumerate() {
        let Traffic::Poisson(config) = traffic else { continue };
        let stop = config.stop.map_or(u64::MAX, |stop| stop.0).min(testbed.run.duration.0);
        let mut due = ps(config.start);
        for (token, arrival) in traffic.arrivals(SEED, name).into_iter().flatten().enumerate() {
            due += arrival.gap.ps();
            if due >= stop {
                break;
            }
            let Poisson { priority, ttl, .. } = *config;
            let (bytes, token) = (arrival.bytes as u32 + 28, token as u64);
            let transport = heads(testbed, &topology, flow, 0).transport();
            let packet = Packet { bytes, header: 8, priority, ttl, transport, token, ..Packet::default() };
            planned.push((due, (config.from.clone(), config.to.clone()), packet));
        }
    }
    planned.sort_by_key(|(at, _, _)| *at);
    planned
}

/// Returns the topology of a testbed, whose routers may end circuits.
pub(crate) fn topology(testbed: &Testbed) -> Topology {
    let ends_circuit = |router: &String| {
        testbed.circuits.values().any(|circuit| [&circuit.from, &circuit.to].contains(&router))
    };
    if !testbed.routers.keys().any(ends_circuit) {
        return resolve(testbed);
    }
    let mut testbed = testbed.clone();
    // The buffer exceeds what a file may have.
    testbed.hosts.values_mut().for_each(|host| host.nic_buffer = Size(1 << 20));
    let source = Source { name: "random.toml".into(), text: text::text(&testbed) };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point("base", &[]).unwrap_or_else(|found| panic!("{}", found.render(false))).topology
}

/// Returns the path between two hosts.
pub(crate) fn way(outside: &InjectedNetwork, (from, to): &(String, String)) -> u32 {
    let name = format!("{from} to {to}");
    outside.ways().iter().position(|way| way.name == name).expect("the two hosts have a path") as u32
}

/// Returns the parts of a direction by account. Idle time of a modelled application corresponds to that of a real host.
fn accounts(direction: &Direction) -> BTreeMap<&str, u128> {
    let name = |account| if account == "idle: real host" { "idle: application" } else { account };
    direction.ledger.iter().map(|(account, parts)| (name(account), parts)).collect()
}

/// Returns the testbed with a process for every path of its injected network, in the order of the paths; added processes send nothing.
fn with_all_ways(testbed: &Testbed) -> Testbed {
    let mut all = testbed.clone();
    let topology = topology(testbed);
    let outside = InjectedNetwork::new(testbed, &topology, SEED).expect("the model supports the testbed");
    let mut order = Vec::new();
    for (place, way) in outside.ways().iter().enumerate() {
        let [from, to] = [way.from, way.to].map(|host| topology.nodes[host].clone());
        let of = |ends: (&str, &str)| {
            let mut all = testbed.traffic.iter();
            all.find(|(_, traffic)| traffic.cells().is_none() && traffic.ends() == ends)
        };
        let name = match of((&from, &to)) {
            Some((name, _)) => name.clone(),
            None => {
                let back = of((&to, &from)).and_then(|(_, traffic)| traffic.circuit());
                let silent = Poisson {
                    from: from.clone(),
                    to: to.clone(),
                    message: Size(1),
                    rate: Rate(1),
                    sizes: Sizes::Fixed,
                    circuit: back.map(str::to_owned),
                    send_path: None,
                    receive_path: None,
                    receive_buffer: None,
                    live: Default::default(),
                    priority: 0,
                    ttl: 64,
                    start: Some(Duration(testbed.run.duration.0 + 1)),
                    stop: None,
                };
                let name = format!("silent-{place}");
                all.traffic.insert(name.clone(), Traffic::Poisson(silent));
                name
            }
        };
        order.push(name);
    }
    all.traffic.sort_by_key(|name, _| order.iter().position(|of| of == name));
    all
}

/// Compares the results of injected packets with those of processes.
fn compare(
    testbed: &Testbed,
    modelled: &SimOutcome,
    seen: &SimOutcome,
    reports: &[(String, DeliveryReport)],
) {
    let mut names = BTreeMap::new();
    for (name, flow) in &modelled.flows {
        let (from, to) = testbed.traffic[name].ends();
        let generated = testbed.traffic[name].cells().is_some();
        let other = if generated { name.clone() } else { format!("{from} to {to}") };
        names.insert(name.clone(), other.clone());
        match seen.flows.get(&other) {
            None => {
                let counts = flow.datagrams.unwrap();
                let counts = [counts.sent, counts.received, counts.lost, counts.in_flight.unwrap()];
                assert_eq!(counts, [0; 4], "{other} has no packets");
            }
            Some(own) => {
                assert_eq!(own.datagrams, flow.datagrams, "{other}");
                let network = |flow: &FlowOutcome| flow.delay_s.map(|delays| delays.network);
                assert_eq!((own.efci_pdus, network(own)), (flow.efci_pdus, network(flow)), "{other}");
                assert_eq!(own.goodput_bit_per_s, flow.goodput_bit_per_s, "{other}");
                assert_eq!(own.offered_bit_per_s, flow.offered_bit_per_s, "{other}");
            }
        }
        if !generated {
            let mut times = (None, 0_u64, 0_u64);
            for (way, output) in reports {
                if let (true, DeliveryReport::Delivered { at, token, .. }) = (*way == other, output) {
                    let weighted = at.wrapping_mul(token + 1);
                    times = (Some(*at), times.1.wrapping_add(*at), times.2.wrapping_add(weighted));
                }
            }
            let own = modelled.instants[name].receptions;
            assert_eq!(
                times,
                (own.last, own.times, own.weighted),
                "{other}: deliveries are at the same instants"
            );
        }
    }
    for ((name, link), (_, own)) in modelled.links.iter().zip(&seen.links) {
        for (one, other) in link.directions.iter().zip(&own.directions) {
            let place = format!("{name} from {}", one.from);
            assert_eq!(other.carried, one.carried, "{place}");
            assert_eq!((other.idle, other.capacity), (one.idle, one.capacity), "{place}");
            assert_eq!(accounts(other), accounts(one), "{place}");
        }
    }
    let drops = |outcome: &SimOutcome| -> BTreeSet<_> {
        let named = |name: &String| names.get(name).unwrap_or(name).clone();
        let drops = outcome.drops.iter();
        drops
            .map(|drop| (drop.place.clone(), drop.cause, named(&drop.flow), drop.cells, drop.datagrams))
            .filter(|drop| drop.3 + drop.4 > 0)
            .collect()
    };
    assert_eq!(drops(seen), drops(modelled));
}

fn equal(testbed: &Testbed, topology: &Topology, modelled: &SimOutcome) {
    let mut outside = InjectedNetwork::new(testbed, topology, SEED).expect("the model supports the testbed");
    let mut reports = Vec::new();
    outside.begin_events(0);
    for (at, ends, packet) in plan(testbed) {
        let way = way(&outside, &ends);
        outside.inject(at, way, packet);
    }
    let [from, end] = [testbed.run.warmup.expect("the testbed has a warm-up").0, testbed.run.duration.0];
    outside.begin_window(from, &mut |output| reports.push(output));
    let seen = outside.end_window(end, &mut |output| reports.push(output)).expect("the ledger balances");
    let named = |output: DeliveryReport| {
        let (DeliveryReport::Delivered { way, .. } | DeliveryReport::Lost { way, .. }) = output else {
            panic!("expected a delivery or a loss: {output:?}")
        };
        (outside.ways()[way as usize].name.clone(), output)
    };
    let reports: Vec<_> = reports.into_iter().map(named).collect();
    compare(testbed, modelled, &seen, &reports);
}

proptest! {
    #[test]
    fn injecting_frames_equals_modelled_hosts(drawn in frames()) {
        let testbed = with_all_ways(&plain(&drawn));
        let topology = resolve(&testbed);
        let modelled = simulate(&testbed, &topology, SEED, &|| false).expect("the simulation succeeds and its ledger balances");
        equal(&testbed, &topology, &modelled);
    }

    #[test]
    fn injecting_cells_equals_modelled_hosts(drawn in network()) {
        let testbed = with_all_ways(&plain(&drawn));
        let topology = resolve(&testbed);
        let modelled = simulate(&testbed, &topology, SEED, &|| false).expect("the simulation succeeds and its ledger balances");
        equal(&testbed, &topology, &modelled);
    }

    /// Injected packets need a decision wherever there is a choice, so modelled ones do here, too.
    #[test]
    fn injecting_with_ecmp_and_outages_equals_modelled_hosts(drawn in choices(), hold in prop::option::of(0u64..4)) {
        let mut testbed = plain(&drawn);
        for router in testbed.routers.values_mut() {
            // Routers may resolve addresses, too.
            let (lifetime, retry) = (Duration(3_000_000_000), Duration(1_000_000_000));
            router.arp = hold.map(|hold| Arp { lifetime, hold, retry, attempts: 2 });
            // Injected packets have other ports.
            if let Ecmp::Hash(hash) = &mut router.ecmp {
                hash.fields = HashFields::Layer3;
            }
        }
        let testbed = with_all_ways(&testbed);
        let topology = topology(&testbed);
        let mut network = Network::with_all_decisions(&testbed, &topology, SEED).expect("the model supports the testbed");
        network.run(&|| false).expect("no interrupt is requested");
        let modelled = network.outcome(&testbed, &topology).expect("the ledger balances");
        equal(&testbed, &topology, &modelled);
    }
}
