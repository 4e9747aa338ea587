//! Generators: sources of cells without hosts (docs/model.md, "Generators").

use engpass_model::random::Stream;
use engpass_model::source::on_off::Lengths;
use engpass_model::source::{Cbr, OnOff};
use engpass_model::time::Pace;

use crate::cell::after;
use crate::cost::ps;

/// A `cbr` or `on-off` source: evenly spaced cells in on-times. A `cbr` source has a single on-time without an end.
#[derive(Debug)]
pub(crate) struct Generator {
    random: Stream,
    pub(crate) pace: Option<Pace>,
    pub(crate) stop: Option<u64>,
    /// Means of on- and off-times in picoseconds; `None` for `cbr`.
    pub(crate) means: Option<(u64, u64, Lengths)>,
    /// Begin of the on-time in picoseconds.
    pub(crate) begun: u64,
    /// Length of the on-time in picoseconds; `None` means forever.
    pub(crate) length: Option<u64>,
    /// Cells sent in the on-time.
    pub(crate) cells: u64,
}

impl Generator {
    pub(crate) fn draw(&mut self, mean: u64, lengths: Lengths) -> u64 {
        match lengths {
            Lengths::Fixed => mean,
            Lengths::Exponential => self.random.exponential(mean),
        }
    }
}

impl Generator {
    pub(crate) fn cbr(config: &Cbr, pace: Option<Pace>, mut random: Stream) -> Self {
        let phase = pace.map_or(0, |pace| random.below(after(pace, 1)));
        let begun = ps(config.start) + phase;
        let stop = config.stop.map(|stop| stop.0);
        Self { random, pace, stop, means: None, begun, length: None, cells: 0 }
    }

    /// Builds an `on-off` source before its first on-time.
    pub(crate) fn on_off(config: &OnOff, pace: Option<Pace>, mut random: Stream) -> Self {
        let phase = random.below(config.on.0 + config.off.0);
        let begun = ps(config.start) + phase;
        let stop = config.stop.map(|stop| stop.0);
        let means = Some((config.on.0, config.off.0, config.lengths));
        Self { random, pace, stop, means, begun, length: Some(0), cells: 0 }
    }

    /// Returns when the next cell of this on-time reaches the line; `None` after the last one.
    pub(crate) fn next(&self, end: u64) -> Option<u64> {
        let offset = after(self.pace?, self.cells);
        let at = self.begun + offset;
        let on = self.length.is_none_or(|length| offset < length);
        (on && self.stop.is_none_or(|stop| at < stop) && at <= end).then_some(at)
    }
}
