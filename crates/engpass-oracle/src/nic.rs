//! NICs: their memory, and the shapers (docs/model.md, "NIC room" and "The way from a NIC").

use std::collections::VecDeque;

use engpass_model::shape::Adaptive;
use engpass_model::time::Pace;
use engpass_model::unit::Share;
use engpass_model::wire::Framing;
use engpass_testbed::{Testbed, Topology};

use crate::agenda::Sender;
use crate::cell::{Cell, Vc, after};

/// Memory of the NIC at a host's end of a link.
#[derive(Debug, Default)]
pub(crate) struct Nic {
    /// Bytes of the packets that were handed over and have not left.
    pub(crate) occupied: u64,
    /// Who waits for room, the first to be served in front.
    pub(crate) waiting: VecDeque<Sender>,
}

/// The shaper of one direction of a circuit.
#[derive(Debug)]
pub(crate) struct Shaper {
    pace: Pace,
    pub(crate) base: u64,
    /// Emissions since `base`.
    pub(crate) n: u64,
    /// Cells handed over and not emitted.
    pub(crate) waiting: VecDeque<Cell>,
    /// If it adapts.
    pub(crate) rate: Option<Rate>,
}

/// The rate of a shaper that adapts.
#[derive(Debug)]
pub(crate) struct Rate {
    pub(crate) config: Adaptive,
    /// Slot of the first link.
    slot: Pace,
    /// In parts of 10 000 of its cells.
    pub(crate) parts: u64,
    /// Frames begun since the last answer.
    pub(crate) unanswered: u32,
}

impl Rate {
    /// The rate with which it begins, in parts of 10 000.
    fn at_first(&self) -> u64 {
        parts(self.config.start.unwrap_or(self.config.min))
    }

    pub(crate) fn lower(&mut self) {
        let left = self.parts * (1_000_000_000 - self.config.decrease.0) / 1_000_000_000;
        self.parts = left.max(parts(self.config.min));
    }
}

/// Parts of 10 000.
pub(crate) fn parts(share: Share) -> u64 {
    share.0 / 100_000
}

impl Shaper {
    /// A shaper that has emitted nothing.
    pub(crate) fn new(testbed: &Testbed, topology: &Topology, vc: &Vc) -> Self {
        let first = vc.lines[0];
        let Framing::Cells { slot } = topology.links[first.link].lines[first.end].framing else {
            panic!("the oracle knows ATM links only")
        };
        let shaping = topology.circuits[vc.circuit].shaping.filter(|_| vc.forward);
        let circuit = testbed.circuits.get_index(vc.circuit).filter(|_| vc.forward);
        let rate = circuit.and_then(|(_, circuit)| circuit.adaptive.clone()).map(|config| Rate {
            parts: parts(config.start.unwrap_or(config.min)),
            unanswered: 0,
            slot,
            config,
        });
        Self { pace: shaping.unwrap_or(slot), base: 0, n: 0, waiting: VecDeque::new(), rate }
    }

    /// Whether its rate adapts.
    pub(crate) fn adapts(&self) -> bool {
        self.rate.is_some()
    }

    /// Whether its rate is not the one with which it began.
    pub(crate) fn has_adapted(&self) -> bool {
        self.rate.as_ref().is_some_and(|rate| rate.parts != rate.at_first())
    }

    /// Whether its cells are further apart than this.
    pub(crate) fn is_slower_than(&self, pace: Pace) -> bool {
        let ((num, den), (other, of)) = (self.pace.ratio(), pace.ratio());
        u128::from(num) * u128::from(of) > u128::from(other) * u128::from(den)
    }

    /// When the next emission may be.
    pub(crate) fn next(&self) -> u64 {
        self.base + after(self.pace, self.n)
    }

    /// If the rate adapts, the first cell of a frame is about to be emitted, at `now`.
    pub(crate) fn begins_frame(&mut self, now: u64) {
        let Some(rate) = &mut self.rate else { return };
        if rate.unanswered >= rate.config.patience {
            rate.lower();
        }
        rate.unanswered += 1;
        self.pace = rate.slot.stretched(10_000, rate.parts);
        (self.base, self.n) = (now, 0);
    }
}
