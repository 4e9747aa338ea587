//! One run with a clock beside it, in the fast engine or in the oracle.

use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use engpass_network::simulate::{Network, SimOutcome, simulate};
use engpass_oracle::engine::Engine;
use engpass_oracle::outcome::Observed;
use engpass_testbed::Point;

/// Which engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that users run.
    Simulate,
    /// The same without its ledger: what that costs.
    Unbooked,
    /// The one in which every cell is an event.
    Oracle,
}

/// What a run showed; equal for both engines, except the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Sent, received, lost, in flight, and the two sums over the times of receptions, of every flow.
    pub flows: Vec<[u64; 6]>,
    /// Cells that left a transmitter, of all links.
    pub cells: u64,
    /// Cells that were lost at a port or policer.
    pub lost: u64,
}

impl Seen {
    /// Cells that a transmitter sent or refused: what there was to do, in units of a cell over a link.
    pub fn cell_hops(&self) -> u64 {
        self.cells + self.lost
    }
}

impl From<&SimOutcome> for Seen {
    fn from(outcome: &SimOutcome) -> Self {
        let flows = outcome.flows.iter().map(|(_, flow)| {
            let receptions = &flow.receptions;
            [
                flow.sent_datagrams,
                flow.received_datagrams,
                flow.lost_datagrams,
                flow.in_flight_datagrams,
                receptions.times,
                receptions.weighted,
            ]
        });
        let directions = || outcome.links.iter().flat_map(|(_, link)| &link.directions);
        Self {
            flows: flows.collect(),
            cells: directions().map(|direction| direction.carried.sent()).sum(),
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
            cells: observed.departures.values().map(|departed| departed.cells).sum(),
            lost: observed.losses.values().map(|lost| lost.cells).sum(),
        }
    }
}

/// A run that was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Time on the clock on the wall.
    pub wall: Duration,
    /// Time that the processor worked on it: what a busy machine does not change.
    pub cpu: Duration,
    /// What it showed.
    pub seen: Seen,
    /// Events that the fast engine handled; the oracle does not count its own.
    pub events: Option<u64>,
}

/// Run `point` once with `seed`.
///
/// # Panics
/// When the engine does not carry it.
pub fn measure(point: &Point, which: Which, seed: u64) -> Measured {
    let (testbed, topology) = (&point.testbed, &point.topology);
    match which {
        Which::Simulate => {
            let run = || simulate(testbed, topology, seed, &|| false).expect("a workload is carried");
            let (outcome, wall, cpu) = timed(run);
            Measured { wall, cpu, seen: Seen::from(&outcome), events: Some(outcome.events) }
        }
        Which::Unbooked => {
            let run = || {
                let mut network = Network::new(testbed, topology, seed).expect("a workload is carried");
                network.keep_no_books();
                network.run(&|| false).expect("nobody interrupts it");
                network.outcome(testbed, topology).expect("what is not booked is not wrong")
            };
            let (outcome, wall, cpu) = timed(run);
            Measured { wall, cpu, seen: Seen::from(&outcome), events: Some(outcome.events) }
        }
        Which::Oracle => {
            let end = testbed.run.duration.0;
            let (observed, wall, cpu) = timed(|| {
                let mut engine = Engine::new(testbed, topology, seed);
                engine.run_until(end);
                engine.snapshot(end)
            });
            Measured { wall, cpu, seen: Seen::from(&observed), events: None }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the clock is what a benchmark is for")]
fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration, Duration) {
    let (wall, cpu) = (Instant::now(), ThreadTime::now());
    let result = run();
    (result, wall.elapsed(), cpu.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{KYOTO, line, point};

    #[test]
    fn both_engines_show_the_same() {
        let short = ("run.duration", "20 ms");
        let message = ("traffic.stream.message", "9 kB");
        for point in [point(&line(3), "base", &[short]), point(KYOTO, "congested", &[short, message])] {
            let [fast, oracle] = [Which::Simulate, Which::Oracle].map(|which| measure(&point, which, 7).seen);
            assert_eq!(fast, oracle);
            assert!(fast.cells > 5_000, "{fast:?}");
        }
    }
}
