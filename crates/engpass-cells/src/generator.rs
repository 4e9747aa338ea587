//! Generators: cells that are known in advance and need no events.

use engpass_model::random::Stream;
use engpass_model::source::on_off::Lengths;
use engpass_model::time::Pace;

use super::dedicated_line::DedicatedLine;
use super::{CellTrain, PduId, VcId, generated_by};

/// A generator: makes the trains of a `cbr` or `on-off` source, one after the other, when a queue needs them.
#[derive(Clone, Debug)]
pub struct Generator {
    vc: VcId,
    pdu: PduId,
    pace: Pace,
    /// Cells per picosecond, times 2^64; 0 if that is one cell or more.
    rate: u64,
    /// Picoseconds added to every instant: transmission time and delay up to the queue, if the cells bypass the queues before it.
    shift: u64,
    /// Latest instant at which the source emits a cell, in picoseconds.
    last: u64,
    clp: bool,
    pattern: Pattern,
    /// Number of cells in all trains drawn so far.
    made: u64,
    /// The dedicated line, if the cells cross one: trains then have the instants at which they leave it.
    line: Option<Box<DedicatedLine>>,
}

#[derive(Clone, Debug)]
enum Pattern {
    Constant { first: Option<u64> },
    Bursts { next: u64, on: u64, off: u64, lengths: Lengths, random: Stream },
}

impl Generator {
    /// Returns the generator of source number `flow`, with cells at a constant pace from `first` on and none after `last` (picoseconds).
    pub fn constant((flow, vc): (usize, VcId), pace: Pace, first: u64, last: u64) -> Self {
        Self::new((flow, vc), pace, last, Pattern::Constant { first: Some(first) })
    }

    /// Returns the generator of source number `flow`, with bursts: an on-time of mean length `on` begins at `first`, then follows an off-time of mean length
    /// `off`, and so on. No cell comes after `last`. All times are in picoseconds.
    pub fn bursts(
        (flow, vc): (usize, VcId),
        pace: Pace,
        (first, last): (u64, u64),
        (on, off): (u64, u64),
        lengths: Lengths,
        random: Stream,
    ) -> Self {
        Self::new((flow, vc), pace, last, Pattern::Bursts { next: first, on, off, lengths, random })
    }

    fn new((flow, vc): (usize, VcId), pace: Pace, last: u64, pattern: Pattern) -> Self {
        let (num, den) = pace.ratio();
        let rate = u64::try_from((u128::from(den) << 64) / u128::from(num)).unwrap_or(0);
        let pdu = generated_by(flow);
        Self { vc, pdu, pace, rate, shift: 0, last, clp: false, pattern, made: 0, line: None }
    }

    /// Returns the circuit direction of the generator's cells.
    pub fn vc(&self) -> VcId {
        self.vc
    }

    /// Returns whether the generator's cells have CLP = 1.
    pub fn clp(&self) -> bool {
        self.clp
    }

    /// Returns the time from cell to cell, within a burst for `on-off`.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Returns whether the generator's cells are evenly spaced from the first to the last, as those of `cbr` are.
    pub fn is_even(&self) -> bool {
        matches!(self.pattern, Pattern::Constant { .. })
    }

    /// Returns the generator with all instants moved by `shift` picoseconds.
    pub fn shifted(mut self, shift: u64) -> Self {
        self.shift = shift;
        self
    }

    /// Returns the generator with CLP set to `clp` in all its cells.
    pub fn with_clp(self, clp: bool) -> Self {
        Self { clp, ..self }
    }

    /// Returns the generator with a dedicated line behind it, whose `slot` is shorter than the generator's pace. Trains then have the instants at which they
    /// leave the line. The line counts the cells that leave up to `end`.
    pub fn through(mut self, slot: Pace, end: u64) -> Self {
        self.line = Some(Box::new(DedicatedLine::new(slot, end)));
        self
    }

    /// Returns the dedicated line, if there is one.
    pub fn line(&self) -> Option<&DedicatedLine> {
        self.line.as_deref()
    }

    /// Returns the number of cells in all trains of the source; `None` if the source may emit cells later than `end`.
    pub fn all_made(&self, end: u64) -> Option<u64> {
        (self.last <= end).then(|| {
            let mut rest = self.clone();
            rest.drain();
            rest.made
        })
    }

    /// Draws all remaining trains, only to count them.
    pub fn drain(&mut self) {
        while self.next_cells().is_some() {}
    }

    /// Returns the next train; `None` if there are no more.
    pub fn next_cells(&mut self) -> Option<CellTrain> {
        let mut cells = CellTrain::none(self.pace);
        self.next_into(&mut cells).then_some(cells)
    }

    /// Writes the next train to `cells`. Returns false if there are no more trains.
    #[inline]
    pub(super) fn next_into(&mut self, cells: &mut CellTrain) -> bool {
        let behind = self.line.as_mut().is_some_and(|line| line.behind_into(cells));
        if !behind {
            let Some((base, until)) = self.next_emitted() else { return false };
            let (vc, pdu, pace, clp) = (self.vc, self.pdu, self.pace, self.clp);
            let (behind, last) = self.behind_first(until);
            let (count, last) = (behind + 1, base + last);
            *cells = CellTrain { base, n: 0, pace, count, last, vc, pdu, cell: 0, of: 1, clp, efci: false };
            self.made += count;
            if let Some(line) = &mut self.line {
                line.pass(cells);
            }
        }
        (cells.base, cells.last) = (cells.base + self.shift, cells.last + self.shift);
        true
    }

    /// Returns the number of cells that a train has within `ps` picoseconds after its first cell, not counting that cell, and the time of the last one after
    /// the first.
    #[inline]
    fn behind_first(&self, ps: u64) -> (u64, u64) {
        let (num, den) = self.pace.ratio();
        match ps.checked_mul(den) {
            Some(parts) if self.rate > 0 => {
                // This count is exact or one too low. The remaining time gives the instant of the last cell without a division by the pace.
                let cells = ((u128::from(ps) * u128::from(self.rate)) >> 64) as u64;
                let left = parts - cells * num;
                let (cells, left) = if left >= num { (cells + 1, left - num) } else { (cells, left) };
                (cells, ps - left / den)
            }
            _ => {
                let cells = self.pace.units_within(ps);
                (cells, self.pace.after(cells))
            }
        }
    }

    /// Returns the instant at which the source emits the first cell of the next train, and for how long after it the train lasts, both in picoseconds; `None`
    /// if there are no more trains.
    #[inline]
    fn next_emitted(&mut self) -> Option<(u64, u64)> {
        match &mut self.pattern {
            Pattern::Constant { first } => {
                let base = first.take()?;
                Some((base, self.last.checked_sub(base)?))
            }
            Pattern::Bursts { next, on, off, lengths, random } => loop {
                let mut length = |mean: u64| match lengths {
                    Lengths::Fixed => mean,
                    Lengths::Exponential => random.exponential(mean),
                };
                let base = *next;
                let burst = length(*on);
                let pause = length(*off);
                if base > self.last {
                    return None;
                }
                *next = base.saturating_add(burst).saturating_add(pause);
                if burst > 0 {
                    return Some((base, (burst - 1).min(self.last - base)));
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fast_cell_count_equals_division(num in 1u128..1 << 40, den in 1u128..1 << 20, ps: u64, small in 0u32..64, near in 0u64..3) {
            let pace = Pace::new(num, den);
            let generator = Generator::constant((0, 0), pace, 0, 0);
            let ps = ps >> small;
            for ps in [ps, pace.after(pace.units_within(ps)).saturating_add(near).saturating_sub(1)] {
                let cells = pace.units_within(ps);
                prop_assert_eq!(generator.behind_first(ps), (cells, pace.after(cells)));
            }
        }
    }

    #[test]
    fn constant_source_stops_at_its_end() {
        let mut source = Generator::constant((0, 3), Pace::new(10, 1), 100, 130).shifted(7);
        let cells = source.next_cells().unwrap();
        assert_eq!((cells.base, cells.count, cells.vc), (107, 4, 3));
        assert_eq!(source.next_cells(), None);
        assert_eq!(Generator::constant((0, 3), Pace::new(10, 1), 100, 99).next_cells(), None);
    }

    #[test]
    fn burst_holds_the_cells_that_begin_within_it() {
        let random = Stream::new(1, "test");
        let mut source =
            Generator::bursts((0, 0), Pace::new(10, 1), (5, 1000), (30, 70), Lengths::Fixed, random);
        let first = source.next_cells().unwrap();
        assert_eq!((first.base, first.count), (5, 3));
        assert_eq!(source.next_cells().unwrap().base, 105);
    }
}
