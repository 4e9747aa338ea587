//! NIC buffers and shapers (docs/model.md, "NIC room" and "The way from a NIC").

use std::collections::VecDeque;

use engpass_model::shape::Adaptive;
use engpass_model::time::Pace;
use engpass_model::unit::Share;
use engpass_model::wire::Framing;
use engpass_testbed::{Testbed, Topology};

use crate::cell::{Cell, Vc, after};
use crate::event_queue::Sender;

/// The buffer of the NIC at a host's end of a link.
#[derive(Debug, Default)]
pub(crate) struct Nic {
    /// Bytes of packets that were handed over and have not left.
    pub(crate) occupied: u64,
    /// Senders that wait for room, in order of service.
    pub(crate) waiting: VecDeque<Sender>,
}

/// The shaper of one direction of a circuit.
#[derive(Debug)]
pub(crate) struct Shaper {
    pace: Pace,
    pub(crate) base: u64,
    /// Number of emissions since `base`.
    pub(crate) n: u64,
    /// Cells handed over but not emitted.
    pub(crate) waiting: VecDeque<Cell>,
    /// Rate of an adaptive shaper; `None` for other shapers.
    pub(crate) rate: Option<Rate>,
}

/// The rate of an adaptive shaper.
#[derive(Debug)]
pub(crate) struct Rate {
    pub(crate) config: Adaptive,
    /// Slot of the first link.
    slot: Pace,
    /// Rate in 1/10 000 of the cell rate of the first link.
    pub(crate) parts: u64,
    /// PDUs begun since the last feedback.
    pub(crate) unanswered: u32,
}

impl Rate {
    /// Returns the initial rate in 1/10 000.
    fn at_first(&self) -> u64 {
        parts(self.config.start.unwrap_or(self.config.min))
    }

    pub(crate) fn lower(&mut self) {
        let left = self.parts * (1_000_000_000 - self.config.decrease.0) / 1_000_000_000;
        self.parts = left.max(parts(self.config.min));
    }
}

/// Converts a share to 1/10 000.
pub(crate) fn parts(share: Share) -> u64 {
    share.0 / 100_000
}

impl Shaper {
    /// Builds a shaper in its initial state.
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

    /// Returns true for an adaptive shaper.
    pub(crate) fn adapts(&self) -> bool {
        self.rate.is_some()
    }

    /// Returns true if its rate differs from the initial one.
    pub(crate) fn has_adapted(&self) -> bool {
        self.rate.as_ref().is_some_and(|rate| rate.parts != rate.at_first())
    }

    /// Returns true if its cells are farther apart than `pace`.
    pub(crate) fn is_slower_than(&self, pace: Pace) -> bool {
        let ((num, den), (other, of)) = (self.pace.ratio(), pace.ratio());
        u128::from(num) * u128::from(of) > u128::from(other) * u128::from(den)
    }

    /// Returns the time of the earliest next emission.
    pub(crate) fn next(&self) -> u64 {
        self.base + after(self.pace, self.n)
    }

    /// Updates the pace of an adaptive shaper, just before it emits the first cell of a PDU at `now`.
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
