//! The fast engine, which users run, must equal the oracle bit for bit.

use std::collections::{BTreeMap, BTreeSet};

use engpass_limit::limit;
use engpass_model::discard::{Discard, Epd};
use engpass_model::link::{DirectedRates, LineRate};
use engpass_model::queue::Backlog;
use engpass_model::schedule::Schedule;
use engpass_model::source::{Traffic, UdpStream};
use engpass_model::switch::Switch;
use engpass_model::unit::{FillLevel, Rate};
use engpass_model::wire::Medium;
use engpass_oracle::acted::Mechanism;
use engpass_outcome::{Datagrams, Delays, FlowOutcome, Outage, Quantiles};
use engpass_simulate::{Carried, Drop, LineUsageStats, QueueUse, SimOutcome, simulate};
use engpass_testbed::{Testbed, Topology};
use proptest::prelude::*;

use crate::bench::{bench, cbr, circuit, hosts, link, q, switch, udp};
use crate::engine::Engine;
use crate::networks::{Drawn, frames, network, network_with_tcp, port};
use crate::outcome::{
    Accounts, Booked, Booking, Cause, Departed, Departing, FlowSeen, FramesSeen, Losing, Lost, MemberSeen,
    Observed, OutageSeen, Place, QueueSeen, Receptions, TcpSeen, Times, TransferSeen, compare,
};
use crate::queue;
use crate::resolve::resolve;

/// Returns the observations of a whole run of the fast engine.
fn fast(testbed: &Testbed, topology: &Topology, seed: u64) -> Observed {
    let outcome = simulate(testbed, topology, seed, &|| false).expect("the simulation succeeds");
    no_message_is_faster_than_on_an_idle_way(&outcome, testbed, topology);
    observed(&outcome, testbed, topology)
}

/// Checks the idle delay of `limit`: no message is faster.
fn no_message_is_faster_than_on_an_idle_way(outcome: &SimOutcome, testbed: &Testbed, topology: &Topology) {
    let idle = limit(testbed, topology);
    for (name, flow) in &outcome.flows {
        if let (Traffic::UdpStream(UdpStream { sentinels: false, .. }), Some(delays)) =
            (&testbed.traffic[name], &flow.delay_s)
        {
            let idle = idle.flows[name].idle_delay_s.expect("the flow sends datagrams");
            let least = delays.network.min;
            assert!(least >= idle, "`{name}`: {least} s, idle {idle} s");
        }
    }
}

/// Converts an outcome into the observations of the oracle.
pub(crate) fn observed(outcome: &SimOutcome, testbed: &Testbed, topology: &Topology) -> Observed {
    let counted = testbed.run.duration.0 - testbed.run.warmup.map_or(0, |warmup| warmup.0);
    // Rates come from whole bytes.
    let bytes = |rate: f64| (rate * (counted as f64 / 1e12) / 8.0).round() as u64;
    let ps = |seconds: f64| (seconds * 1e12).round() as u64;
    let receptions = |all: engpass_simulate::Receptions| Receptions {
        last: all.last,
        times: all.times,
        weighted: all.weighted,
    };
    let counted_flow = |datagrams: Option<Datagrams>, offered: f64, goodput: f64, outage: Option<Outage>| {
        let datagrams = datagrams.expect("`simulate` counts datagrams");
        FlowSeen {
            sent: datagrams.sent,
            received: datagrams.received,
            lost: datagrams.lost,
            in_flight: datagrams.in_flight.expect("`simulate` counts datagrams in flight"),
            sent_bytes: bytes(offered),
            received_bytes: bytes(goodput),
            outage: outage.map(|Outage { longest_s, lost }| OutageSeen { longest: ps(longest_s), lost }),
            ..FlowSeen::default()
        }
    };
    let of_flow = |name: &String, flow: &FlowOutcome| {
        let instants = &outcome.instants[name];
        let count = |count: Option<u64>| count.expect("`simulate` counts the events of TCP");
        FlowSeen {
            marked: flow.efci_pdus.unwrap_or(0),
            receptions: receptions(instants.receptions),
            tcp: flow.tcp.as_ref().map(|tcp| TcpSeen {
                retransmitted: count(tcp.retransmitted_segments),
                timeouts: count(tcp.timeouts),
                fast_retransmits: count(tcp.fast_retransmits),
                smoothed_rtt: tcp.smoothed_rtt_s.map(ps),
            }),
            transfer: flow
                .transfer
                .map(|transfer| TransferSeen { bytes: transfer.received_bytes, times: instants.transfer }),
            ..counted_flow(flow.datagrams, flow.offered_bit_per_s, flow.goodput_bit_per_s, flow.outage)
        }
    };
    let is_group = |flow: &FlowOutcome| {
        flow.receivers.len() > 1 || flow.receivers.values().any(|received| received.member_share.is_some())
    };
    let flows = outcome.flows.iter().map(|(name, flow)| match is_group(flow) {
        false => of_flow(name, flow),
        // Its results are counted at the receivers.
        true => FlowSeen {
            sent: flow.datagrams.map_or(0, |datagrams| datagrams.sent),
            marked: flow.efci_pdus.unwrap_or(0),
            sent_bytes: bytes(flow.offered_bit_per_s),
            ..FlowSeen::default()
        },
    });
    let receivers = || {
        let groups = outcome.flows.iter().filter(|(_, flow)| is_group(flow));
        groups.flat_map(|(name, flow)| flow.receivers.values().zip(&outcome.instants[name].receivers))
    };
    let flows = flows.chain(receivers().map(|(received, instants)| FlowSeen {
        receptions: receptions(*instants),
        member: received.member_share.map(|share| MemberSeen {
            within: (share * counted as f64).round() as u64,
            join: received.join_delay_s.map(ps),
            leave: received.leave_delay_s.map(ps),
        }),
        ..counted_flow(
            received.datagrams,
            received.offered_bit_per_s,
            received.goodput_bit_per_s,
            received.outage,
        )
    }));
    let times = |all: Quantiles| Times {
        min: ps(all.min),
        mean: ps(all.mean.expect("simulate gives means")),
        quantiles: [all.p50, all.p90, all.p99, all.p99_9].map(ps),
        max: ps(all.max),
        floor: 0,
    };
    let one_way = |of: fn(Delays) -> Option<Quantiles>| {
        let seen = |delays: Option<Delays>| delays.and_then(of).map(times);
        let flows = outcome.flows.values().map(|flow| seen(flow.delay_s.filter(|_| !is_group(flow))));
        flows.chain(receivers().map(|(received, _)| seen(received.delay_s))).collect()
    };
    let delays = one_way(|delays| Some(delays.network));
    let queueing = one_way(|delays| delays.queueing);
    let message_delays = one_way(|delays| delays.message);
    let round_trips = outcome.flows.values().map(|flow| flow.tcp.and_then(|tcp| tcp.rtt_s).map(times));
    let round_trips = round_trips.chain(receivers().map(|_| None));
    let round_trips = round_trips.collect();
    let (mut departures, mut frames) = (BTreeMap::new(), BTreeMap::new());
    for (link, (_, used)) in outcome.links.iter().enumerate() {
        for (end, direction) in used.directions.iter().enumerate() {
            for vc in &direction.vcs {
                let key = Departing { link, end, circuit: vc.circuit, forward: vc.forward };
                if let Some(last) = vc.last_sent {
                    departures.insert(key, Departed { cells: vc.sent, clp: vc.clp, efci: vc.efci, last });
                }
            }
            if let Carried::Frames { frames: sent, bytes, .. } = direction.carried
                && sent > 0
            {
                frames.insert((link, end), FramesSeen { frames: sent, bytes });
            }
        }
    }
    let mut losses = BTreeMap::new();
    for drop in &outcome.drops {
        let flow = testbed.traffic.get_index_of(&drop.flow).expect("a drop belongs to a flow");
        let place = place(drop, testbed, topology);
        // Receivers of one group may have equal losses.
        let lost: &mut Lost = losses.entry(Losing { place, flow }).or_default();
        (lost.cells, lost.datagrams) = (lost.cells + drop.cells, lost.datagrams + drop.datagrams);
    }
    let (idle, books, accounts) = books(outcome);
    let at = testbed.run.duration.0;
    let flows = flows.collect();
    let (queues, busy) = (queues(outcome), busy(outcome, testbed, topology));
    Observed {
        at,
        flows,
        delays,
        queueing,
        message_delays,
        round_trips,
        departures,
        frames,
        losses,
        idle,
        books,
        accounts,
        queues,
        busy,
    }
}

/// Returns the queues that were not empty.
fn queues(outcome: &SimOutcome) -> BTreeMap<(usize, usize), QueueSeen> {
    let links = outcome.links.iter().enumerate();
    let ports = links.flat_map(|(link, (_, used))| {
        used.directions.iter().enumerate().map(move |(end, direction)| ((link, end), direction.queue))
    });
    let seen = ports.filter_map(|(port, queue)| {
        let seen = match queue? {
            QueueUse::Cells { longest } => QueueSeen { cells: longest, ..QueueSeen::default() },
            QueueUse::Packets { longest: Backlog { bytes, packets }, marked } => {
                QueueSeen { bytes, packets, marked, ..QueueSeen::default() }
            }
        };
        (seen != QueueSeen::default()).then_some((port, seen))
    });
    seen.collect()
}

/// Returns the busy times of nodes that were not idle.
fn busy(outcome: &SimOutcome, testbed: &Testbed, topology: &Topology) -> BTreeMap<(usize, usize), u64> {
    let node =
        |name: &String| topology.nodes.iter().position(|node| node == name).expect("a node has a name");
    let times = outcome.nodes.iter().flat_map(|used| {
        used.engines
            .iter()
            .map(|engine| ((node(&used.node), engine_number(testbed, &used.node, &engine.name)), engine.busy))
    });
    times.filter(|(_, busy)| *busy > 0).collect()
}

/// Returns the number of an engine: 0 for a CPU or route processor, else that of the line card.
fn engine_number(testbed: &Testbed, node: &str, engine: &str) -> usize {
    let card = testbed.routers.get(node).and_then(|router| router.cards.get_index_of(engine));
    card.map_or(0, |card| card + 1)
}

/// Returns the place of a loss.
fn place(drop: &Drop, testbed: &Testbed, topology: &Topology) -> Place {
    let node = || {
        let node = topology.nodes.iter().position(|node| *node == drop.place.node);
        node.expect("a drop location has a node")
    };
    let Some((link, end)) = drop.port else {
        return match drop.cause {
            "reassembly" => {
                let first = topology.hosts + topology.switches;
                let node = topology.nodes.iter().position(|node| *node == drop.place.node);
                Place::Reassembly { router: node.filter(|node| *node >= first) }
            }
            "receive buffer" => Place::ReceiveBuffer,
            "time to live" => Place::TimeToLive { node: node() },
            "too big" => Place::TooBig { node: node() },
            "no ARP reply" => Place::NoReply { node: node() },
            "ARP hold full" => Place::HoldFull { node: node() },
            "input queue full" => {
                let card = drop.place.card.as_deref();
                let engine = card.map_or(0, |card| engine_number(testbed, &drop.place.node, card));
                Place::InputFull { node: node(), engine }
            }
            "no known member" => Place::NoMember { node: node() },
            "reassembly timeout" => Place::ReassemblyTimeout { node: node() },
            "reassembly memory" => Place::ReassemblyMemory { node: node() },
            "out of sequence" => Place::OutOfSequence { node: node() },
            "tunnel down" => Place::TunnelDown { node: node() },
            other => panic!("unknown drop cause: {other}"),
        };
    };
    match drop.cause {
        "damaged on the line" => return Place::Line { link, end },
        "inactive member" => return Place::Inactive { link, end },
        "line down" => return Place::Down { link, end },
        _ => {}
    }
    let at_router = topology.links[link].ends[end] >= topology.hosts + topology.switches;
    if topology.links[link].medium.is_atm() && !at_router {
        let cause = match drop.cause {
            "buffer full" => Cause::Full,
            "CLP threshold" => Cause::LowPriority,
            "discard policy" => Cause::Policy,
            "policer" => return Place::Policer { link, end },
            other => panic!("unknown drop cause: {other}"),
        };
        return Place::Port { link, end, cause };
    }
    let cause = queue::Cause::ALL.into_iter().find(|cause| cause.text() == drop.cause);
    Place::Queue { link, end, cause: cause.expect("the drop cause belongs to a discipline") }
}

/// The ledger's idle time, counts and accounts.
type Books = (Vec<[u64; 2]>, BTreeMap<Booking, Booked>, BTreeMap<(usize, usize), Accounts>);

/// Returns the idle time of every line, usage by flow, and accounts, from the ledger.
fn books(outcome: &SimOutcome) -> Books {
    let (mut idle, mut books, mut accounts) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for (link, (_, used)) in outcome.links.iter().enumerate() {
        idle.push([0, 1].map(|end| used.directions[end].idle));
        for (end, direction) in used.directions.iter().enumerate() {
            for book in &direction.usages {
                let LineUsageStats { flow, against: back, whole, dead, in_flight, control, generated } =
                    *book;
                // Every connection has separate records.
                let booked: &mut Booked = books.entry(Booking { link, end, flow, back }).or_default();
                booked.whole += whole;
                booked.dead += dead;
                booked.in_flight += in_flight;
                booked.control += control;
                booked.generated += generated;
            }
            let all = direction.ledger.iter().map(|(account, parts)| (account.to_owned(), parts));
            accounts.insert((link, end), all.collect());
        }
    }
    books.retain(|_, booked| *booked != Booked::default());
    (idle, books, accounts)
}

/// A generator has priority over a stream, but waits for the cell being sent, so its next cell may find it in the queue. This matters with a threshold of 0.
#[test]
fn priority_generator_queues_behind_its_own_cells() {
    let thresholds = [(0, None), (1, None), (1, Some(0)), (1, Some(1)), (40, Some(4))];
    let lost_or_marked = thresholds.map(|(threshold, efci)| {
        let mut testbed = bench("20 ms");
        hosts(&mut testbed, &["a", "g", "c"]);
        switch(&mut testbed, "x", 60, Schedule::Priority(Default::default()));
        for host in ["a", "g", "c"] {
            link(&mut testbed, [host, "x"], Medium::Oc3c);
        }
        circuit(&mut testbed, "a", "c");
        udp(&mut testbed, "a", "c", 1000);
        cbr(&mut testbed, "g", "c", q("80 %"));
        let Switch::Atm(config) = &mut testbed.switches["x"] else { panic!("`x` is an ATM switch") };
        config.discard = Discard::Epd(Epd { threshold: FillLevel::Cells(threshold) });
        config.efci_threshold = efci.map(FillLevel::Cells);
        let topology = resolve(&testbed);
        let mut oracle = Engine::new(&testbed, 1);
        oracle.run_until(testbed.run.duration.0);
        let seen = oracle.snapshot(testbed.run.duration.0);
        assert_eq!(compare(&fast(&testbed, &topology, 1), &seen), Ok(()), "{threshold}, {efci:?}");
        seen.flows[1].lost + seen.flows[1].marked > 0
    });
    assert_eq!(lost_or_marked, [true, false, true, false, false]);
}

/// A generator has priority over a stream at a port whose line is slower or faster than the generator, while the opposite direction is the other way round.
#[test]
fn port_uses_the_rate_of_its_own_direction() {
    let lost = [(20, 200), (200, 20)].map(|(down, up)| {
        let mut testbed = bench("20 ms");
        hosts(&mut testbed, &["a", "g", "c"]);
        switch(&mut testbed, "x", 60, Schedule::Priority(Default::default()));
        link(&mut testbed, ["a", "x"], Medium::Oc3c);
        for (ends, forward, backward) in [(["g", "x"], 100, 200), (["x", "c"], down, up)] {
            link(&mut testbed, ends, Medium::Atm);
            let [forward, backward] = [forward, backward].map(|mbit_s| Rate(mbit_s * 1_000_000));
            testbed.links[&ends.join("-")].rate = Some(LineRate::Each(DirectedRates { forward, backward }));
        }
        circuit(&mut testbed, "a", "c");
        udp(&mut testbed, "a", "c", 1000);
        cbr(&mut testbed, "g", "c", q("30 %"));
        assert_eq!(difference(&testbed, 1), Ok(()), "{down} down, {up} up");
        let outcome = fast(&testbed, &resolve(&testbed), 1);
        outcome.flows[1].lost > 0
    });
    assert_eq!(lost, [true, false]);
}

/// Compares the two engines.
pub(crate) fn difference(testbed: &Testbed, seed: u64) -> Result<(), String> {
    compared(testbed, seed).map(|_| ())
}

/// Returns the mechanisms that acted in a network on which both engines agree.
///
/// # Errors
/// The difference between the engines.
pub(crate) fn compared(testbed: &Testbed, seed: u64) -> Result<BTreeSet<Mechanism>, String> {
    let topology = resolve(testbed);
    let mut oracle = Engine::new(testbed, seed);
    let end = testbed.run.duration.0;
    oracle.run_until(end);
    compare(&fast(testbed, &topology, seed), &oracle.snapshot(end))?;
    Ok(oracle.acted())
}

/// Checks that both engines agree.
fn equal(testbed: &Testbed, seed: u64) -> Result<(), TestCaseError> {
    difference(testbed, seed).map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(engpass_cases::cases(1000))]

    #[test]
    fn train_engine_equals_cell_oracle(Drawn(testbed) in network(), seed in any::<u64>()) {
        equal(&testbed, seed)?;
    }

    #[test]
    fn frame_engine_equals_oracle(Drawn(testbed) in frames(), seed in any::<u64>()) {
        equal(&testbed, seed)?;
    }

    #[test]
    fn contended_packet_port_equals_oracle(Drawn(testbed) in port(), seed in any::<u64>()) {
        equal(&testbed, seed)?;
    }

    #[test]
    fn tcp_over_trains_equals_tcp_over_cells(Drawn(testbed) in network_with_tcp(), seed in any::<u64>()) {
        equal(&testbed, seed)?;
    }
}
