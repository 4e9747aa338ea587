//! Measures one run in the fast engine or in the oracle.

use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use engpass_oracle::engine::Engine;
use engpass_oracle::outcome::Observed;
use engpass_simulate::{Network, SimError, SimOutcome};
use engpass_testbed::{Point, Testbed, Topology};

use crate::heap;

/// The engine to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The fast engine, as users run it.
    Simulate,
    /// The fast engine without its ledger, to measure the cost of the ledger.
    Unbooked,
    /// The fast engine, in which routers decide for every packet of flows with several paths, even if the answer is the same for all.
    Asking,
    /// The oracle, in which every cell is an event.
    Oracle,
}

/// Results of a run, equal in both engines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// For every flow: datagrams sent, received, lost and in flight, and the two sums over reception times.
    pub flows: Vec<[u64; 6]>,
    /// Cells or frames that left the transmitters of all links.
    pub sent: u64,
    /// Cells or frames dropped at a port or policer, or lost on a line.
    pub lost: u64,
}

impl Seen {
    /// Cells or frames sent or dropped: the amount of work, in units of one cell over one link.
    pub fn hops(&self) -> u64 {
        self.sent + self.lost
    }
}

impl From<&SimOutcome> for Seen {
    fn from(outcome: &SimOutcome) -> Self {
        let flows = outcome.flows.values().zip(outcome.instants.values()).map(|(flow, instants)| {
            let counts = flow.datagrams.expect("`simulate` counts datagrams");
            let in_flight = counts.in_flight.expect("`simulate` counts datagrams in flight");
            let receptions = instants.receptions;
            [counts.sent, counts.received, counts.lost, in_flight, receptions.times, receptions.weighted]
        });
        let directions = || outcome.links.iter().flat_map(|(_, link)| &link.directions);
        Self {
            flows: flows.collect(),
            sent: directions().map(|direction| direction.carried.sent()).sum(),
            lost: directions().map(|direction| direction.carried.lost()).sum(),
        }
    }
}

impl From<&Observed> for Seen {
    fn from(observed: &Observed) -> Self {
        let flows = observed.flows.iter().map(|flow| {
            [
                flow.sent,
                flow.received,
                flow.lost,
                flow.in_flight,
                flow.receptions.times,
                flow.receptions.weighted,
            ]
        });
        Self {
            flows: flows.collect(),
            sent: observed.departures.values().map(|departed| departed.cells).sum(),
            lost: observed.losses.values().map(|lost| lost.cells).sum(),
        }
    }
}

/// Measurements of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Wall-clock time.
    pub wall: Duration,
    /// Processor time, which a busy machine hardly changes.
    pub cpu: Duration,
    /// Results of the run.
    pub seen: Seen,
    /// Number of events of the fast engine; `None` for the oracle, which does not count them.
    pub events: Option<u64>,
    /// Goodput of every flow in bit/s; empty for the oracle.
    pub goodput: Vec<f64>,
    /// Peak heap use of the run in bytes: network and outcome, without the testbed. Zero in a program without the counting allocator.
    pub heap: u64,
}

/// Runs `point` once with `seed`.
///
/// # Panics
/// If the engine does not support the testbed.
pub fn measure(point: &Point, which: Which, seed: u64) -> Measured {
    let (testbed, topology) = (&point.testbed, &point.topology);
    let fast = |build: fn(&Testbed, &Topology, u64) -> Result<Network, SimError>, books: bool| {
        let (outcome, took) = timed(|| {
            let mut network = build(testbed, topology, seed).expect("the model supports the workload");
            if !books {
                network.disable_ledger();
            }
            network.run(&|| false).expect("no interrupt is requested");
            network.outcome(testbed, topology).expect("the ledger balances")
        });
        let goodput = outcome.flows.iter().map(|(_, flow)| flow.goodput_bit_per_s).collect();
        Measured { seen: Seen::from(&outcome), events: Some(outcome.events), goodput, ..took }
    };
    match which {
        Which::Simulate => fast(Network::new, true),
        Which::Unbooked => fast(Network::new, false),
        Which::Asking => fast(Network::with_all_decisions, true),
        Which::Oracle => {
            let end = testbed.run.duration.0;
            let (observed, took) = timed(|| {
                let mut engine = Engine::new(testbed, seed);
                engine.run_until(end);
                engine.snapshot(end)
            });
            Measured { seen: Seen::from(&observed), ..took }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the clock is what a benchmark is for")]
fn timed<T>(run: impl FnOnce() -> T) -> (T, Measured) {
    let before = heap::live();
    heap::begin();
    let (wall, cpu) = (Instant::now(), ThreadTime::now());
    let result = run();
    let (wall, cpu) = (wall.elapsed(), cpu.elapsed());
    let heap = u64::try_from(heap::most() - before).expect("the heap peak is at least its initial size");
    (result, Measured { wall, cpu, heap, ..Measured::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dumbbell::{NEW_RENO, OC3, SACK, dumbbell};
    use crate::line::{frames, line};
    use crate::workload::{KYOTO, point};

    #[test]
    fn both_engines_show_the_same() {
        let short = ("run.duration", "20 ms");
        let message = ("traffic.stream.message", "9 kB");
        for point in [point(&line(3), "base", &[short]), point(KYOTO, "congested", &[short, message])] {
            let [fast, oracle] = [Which::Simulate, Which::Oracle].map(|which| measure(&point, which, 7).seen);
            assert_eq!(fast, oracle);
            assert!(fast.sent > 5_000, "{fast:?}");
        }
    }

    #[test]
    fn the_bottleneck_is_full() {
        for tcp in [NEW_RENO, SACK] {
            let text = dumbbell(4, OC3, tcp);
            let measured = measure(&point(&text, "base", &[("run.duration", "2 s")]), Which::Simulate, 1);
            let goodput: f64 = measured.goodput.iter().sum();
            // 1448 of 1502 bytes are payload, and a queue of 200 packets is more than half of the bandwidth-delay product.
            assert!((0.85..1.0).contains(&(goodput / (155e6 * 1448.0 / 1502.0))), "{goodput}");
        }
    }

    #[test]
    fn routers_carry_what_is_offered() {
        let long = point(&frames(3), "base", &[("run.duration", "200 ms")]);
        let measured = measure(&long, Which::Simulate, 1);
        // 90 Mbit/s over five links, and three times 60 Mbit/s over three links, in datagrams of 1000 bytes.
        let offered = (90e6 * 5.0 + 3.0 * 60e6 * 3.0) * 0.2 / 8000.0;
        assert!((0.9..1.05).contains(&(measured.seen.hops() as f64 / offered)), "{:?}", measured.seen);
    }
}
