//! No run exceeds a bound: a property of the oracle's random networks.

use engpass_limit::{limit, uses};
use engpass_model::source::Traffic;
use engpass_model::tcp::TcpParameters;
use engpass_model::tcp::parameters::SendBufferRule;
use engpass_model::time::{Pace, SECOND};
use engpass_outcome::FlowOutcome;
use engpass_simulate::{SimOutcome, simulate};
use engpass_testbed::topology::FlowPath;
use engpass_testbed::{Testbed, Topology};
use proptest::prelude::*;

use crate::networks::{
    Drawn, asking, bonds, engines, frames, groups, joined, narrow, network, network_with_tcp, port, tunnels,
};
use crate::resolve::resolve;

fn simulated(testbed: &Testbed, topology: &Topology, seed: u64) -> SimOutcome {
    simulate(testbed, topology, seed, &|| false).expect("the simulation succeeds")
}

/// Returns the payload bytes that a flow has not delivered when the measurement window begins: in flight, waiting at its host, or due.
/// `seen` is the outcome of a run that ends there.
fn backlog(
    testbed: &Testbed,
    (path, mtu): (&FlowPath, u64),
    traffic: &Traffic,
    seen: &FlowOutcome,
    seed: u64,
) -> f64 {
    let warmup = testbed.run.warmup.map_or(0, |warmup| warmup.0);
    let start = traffic.window().0.map_or(0, |start| start.0);
    let due = |pace: Pace| if warmup < start { 0 } else { pace.units_within(warmup - start) + 1 };
    let counts = seen.datagrams.expect("`simulate` counts datagrams");
    let in_flight = counts.in_flight.unwrap_or(0);
    let received = seen.goodput_bit_per_s * warmup as f64 / SECOND as f64 / 8.0;
    match traffic {
        Traffic::UdpStream(config) => {
            let message = config.message.bytes();
            let gone = counts.received + counts.lost;
            let begun = match config.rate {
                Some(rate) => due(Pace::of_bits(8 * message.max(1), rate.0)),
                // The CPU is working on one more.
                None => counts.sent + 1,
            };
            (begun.max(counts.sent + 1) - gone.min(begun)) as f64 * message as f64
        }
        Traffic::Poisson(_) | Traffic::UdpOnOff(_) | Traffic::Video(_) => {
            let (mut at, mut bytes) = (start, 0);
            for arrival in traffic.arrivals(seed, &path.name).expect("the traffic has arrivals of its own") {
                at = at.saturating_add(arrival.gap.ps());
                if at > warmup {
                    break;
                }
                bytes += arrival.bytes;
            }
            bytes as f64 - received
        }
        Traffic::TcpStream(config) => {
            let of =
                |host: usize| -> TcpParameters { config.tcp.over(&testbed.hosts[host].tcp).resolve(mtu) };
            let sender = of(path.from);
            let message = config.message.bytes();
            let buffer = match sender.send_buffer_rule {
                SendBufferRule::Bytes => sender.send_buffer,
                SendBufferRule::HighWater => sender.send_buffer + message,
                SendBufferRule::WholeWrites => sender.send_buffer.max(message),
            };
            let written = buffer as f64 * f64::from(config.streams);
            let waiting = config.rate.map_or(0.0, |rate| {
                let due = due(Pace::of_bits(8 * message, rate.0)) * message * u64::from(config.streams);
                (due as f64 - received).max(0.0)
            });
            in_flight as f64 * sender.mss as f64 + written + waiting
        }
        Traffic::Cbr(_) | Traffic::OnOff(_) => 48.0 * in_flight as f64,
        Traffic::Multicast(config) => {
            let message = config.message.bytes();
            let each = seen
                .receivers
                .iter()
                .filter_map(|(_, one)| one.datagrams.map(|counts| counts.received + counts.lost));
            let gone = each.min().expect("a group has a receiver");
            let begun = match traffic.arrivals(seed, &path.name) {
                Some(arrivals) => {
                    let dues = arrivals.scan(start, |at, arrival| {
                        *at = at.saturating_add(arrival.gap.ps());
                        Some(*at)
                    });
                    dues.take_while(|due| *due <= warmup).count() as u64
                }
                None => due(Pace::of_bits(8 * message, config.rate.0)),
            };
            let begun = begun.max(counts.sent + 1);
            (begun - gone.min(begun)) as f64 * message as f64
        }
        Traffic::RequestResponse(_) => unreachable!("no model engine supports request-response traffic"),
    }
}

/// Returns the undelivered bytes of each flow when the measurement window begins; none without a warm-up.
fn backlogs(testbed: &Testbed, topology: &Topology, seed: u64) -> Vec<f64> {
    let Some(warmup) = testbed.run.warmup.filter(|warmup| warmup.0 > 0) else {
        return vec![0.0; topology.flows.len()];
    };
    let mut before = testbed.clone();
    (before.run.duration, before.run.warmup) = (warmup, None);
    let seen = simulated(&before, topology, seed);
    let flows = testbed.traffic.values().zip(&topology.flows).zip(&seen.flows);
    let of = |path: &FlowPath| topology.segment_mtus(path)[0];
    flows
        .map(|((traffic, path), (_, flow))| backlog(testbed, (path, of(path)), traffic, flow, seed))
        .collect()
}

/// Checks that no flow gets more than its bound and its backlog, and that at their fair shares all flows together fit.
pub(crate) fn obeys(testbed: &Testbed, seed: u64) -> Result<(), TestCaseError> {
    let topology = &resolve(testbed);
    let outcome = limit(testbed, topology);
    let simulated = simulated(testbed, topology, seed);
    let counted = testbed.run.duration.0 - testbed.run.warmup.map_or(0, |warmup| warmup.0);
    let bytes = |rate: f64| rate * counted as f64 / SECOND as f64 / 8.0;
    for ((name, flow), backlog) in simulated.flows.iter().zip(backlogs(testbed, topology, seed)) {
        let limits = &outcome.flows[name];
        let (got, most) = (bytes(flow.goodput_bit_per_s), bytes(limits.bound_bit_per_s));
        prop_assert!(
            got <= most * (1.0 + 1e-9) + backlog + 1e-3,
            "`{}` gets {} bytes, bound {}, backlog {}: {}\n{:#?}",
            name,
            got,
            most,
            backlog,
            limits.bound_summary,
            limits.candidates
        );
        for ((host, receiver), (_, limits)) in flow.receivers.iter().zip(&limits.receivers) {
            let (got, most) = (bytes(receiver.goodput_bit_per_s), bytes(limits.bound_bit_per_s));
            prop_assert!(
                got <= most * (1.0 + 1e-9) + backlog + 1e-3,
                "`{}` gets {} bytes at {}, bound {}, backlog {}: {}",
                name,
                got,
                host,
                most,
                backlog,
                limits.bound_summary
            );
        }
    }
    for (name, capacity, used) in uses(testbed, topology) {
        prop_assert!(
            used <= capacity * (1.0 + 1e-9),
            "{} has capacity {}, but {} is used",
            name,
            capacity,
            used
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(engpass_cases::cases(1000))]

    #[test]
    fn no_flow_over_circuits_exceeds_its_bound(Drawn(testbed) in network(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
    }

    #[test]
    fn no_tcp_over_circuits_exceeds_its_bound(Drawn(testbed) in network_with_tcp(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
    }

    #[test]
    fn no_flow_of_frames_exceeds_its_bound(Drawn(testbed) in frames(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
    }

    #[test]
    fn no_flow_over_circuits_at_routers_exceeds_its_bound(Drawn(testbed) in joined(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
    }

    #[test]
    fn no_sender_that_discovers_the_path_mtu_exceeds_its_bound(Drawn(testbed) in narrow(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
    }

    #[test]
    fn no_flow_through_tunnels_exceeds_its_bound(Drawn(testbed) in tunnels(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
    }

    #[test]
    fn no_flow_over_bonds_exceeds_its_bound(Drawn(testbed) in bonds(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
    }

    #[test]
    fn no_multicast_flow_exceeds_its_bound(Drawn(testbed) in groups(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
    }

    #[test]
    fn no_flow_exceeds_its_bound_with_line_cards(Drawn(testbed) in engines(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
    }

    #[test]
    fn no_flow_exceeds_its_bound_with_address_resolution(Drawn(testbed) in asking(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
        let mut without = testbed.clone();
        without.routers.values_mut().for_each(|router| router.arp = None);
        prop_assert_eq!(limit(&testbed, &resolve(&testbed)), limit(&without, &resolve(&without)));
    }

    #[test]
    fn no_flow_through_a_contended_port_exceeds_its_bound(Drawn(testbed) in port(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
    }
}
