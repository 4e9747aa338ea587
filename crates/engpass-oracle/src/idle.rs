//! Idle delays: the time of a datagram in a network without other traffic (docs/model.md, "The end").

use engpass_model::time::Pace;

use crate::cell::{LineId, after};

/// A step of a packet on its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Crossing {
    /// It crosses a line of frames.
    Line(LineId),
    /// It crosses a circuit direction.
    Circuit(usize),
    /// It enters a tunnel direction.
    Enters(usize),
    /// It leaves the tunnel that it entered last.
    Leaves,
    /// Engines of a router work on it for these times, without copies, fragments and interrupts.
    Engines(Vec<u64>),
}

/// A packet of a datagram that is alone in the network.
#[derive(Clone, Debug)]
pub(crate) struct Alone {
    /// Bytes of IP payload.
    pub(crate) bytes: u64,
    /// Its instant at the current place, in picoseconds.
    pub(crate) at: u64,
    /// The packets around which tunnels have put headers: number and bytes of IP payload, the outermost last.
    pub(crate) inner: Vec<(usize, u64)>,
}

/// A line or shaper that serves units one after the other and was idle before.
pub(crate) struct Busy {
    pace: Pace,
    /// Begin of the busy period, its units so far, and its end.
    begin: u64,
    units: u64,
    end: Option<u64>,
}

impl Busy {
    pub(crate) fn new(pace: Pace) -> Self {
        Self { pace, begin: 0, units: 0, end: None }
    }

    /// Takes `units` that come at `at`. Returns when they begin.
    pub(crate) fn takes(&mut self, at: u64, units: u64) -> u64 {
        if self.end.is_none_or(|end| at > end) {
            (self.begin, self.units) = (at, 0);
        }
        let begins = self.begin + after(self.pace, self.units);
        self.units += units;
        self.end = Some(self.begin + after(self.pace, self.units));
        begins
    }

    /// Returns when all units but the last `gap` have left.
    pub(crate) fn left(&self, gap: u64) -> u64 {
        self.begin + after(self.pace, self.units - gap)
    }
}
