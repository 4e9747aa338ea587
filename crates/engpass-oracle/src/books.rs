//! The oracle's own books of every line (docs/ledger.md): when it was idle, and whose cells it carried with what fate.

use std::collections::BTreeMap;

use crate::cell::{Cell, LineId};
use crate::engine::Engine;
use crate::ledger::Fate;
use crate::outcome::{Booked, Booking};

/// What was booked so far.
#[derive(Debug)]
pub(crate) struct Books {
    /// What happens at or before it is not counted; `None`: everything is.
    warmup: Option<u64>,
    /// Picoseconds by link and end.
    idle: Vec<[u64; 2]>,
    /// Cells of a datagram that left a line and had begun in the counted time: by line, traffic, datagram.
    cells: BTreeMap<(LineId, usize, usize), u64>,
    /// Cells of generators: by line and traffic.
    generated: BTreeMap<(LineId, usize), u64>,
}

impl Books {
    /// Empty books.
    pub(crate) fn new(links: usize, warmup: u64) -> Self {
        Self {
            warmup: (warmup > 0).then_some(warmup),
            idle: vec![[0; 2]; links],
            cells: BTreeMap::new(),
            generated: BTreeMap::new(),
        }
    }

    fn counted(&self, since: u64, until: u64) -> u64 {
        until.saturating_sub(since.max(self.warmup.unwrap_or(0)))
    }
}

impl Engine<'_> {
    /// A cell joins a line: it may have been idle until now.
    pub(crate) fn book_idle(&mut self, now: u64, line: LineId) {
        if let Some(since) = self.line(line).idle_since() {
            self.books.idle[line.link][line.end] += self.books.counted(since, now);
        }
    }

    /// A cell is about to leave a line.
    pub(crate) fn book_cell(&mut self, now: u64, line: LineId) {
        let warmup = self.books.warmup;
        if warmup.is_some_and(|warmup| now <= warmup || self.line(line).began_before(warmup)) {
            return;
        }
        let cell = self.line(line).cells().next().expect("a cell leaves").clone();
        let Cell { frame, .. } = cell;
        let (flow, datagram) = (self.frames[frame].flow, self.frames[frame].datagram);
        if self.generates(flow) {
            *self.books.generated.entry((line, flow)).or_default() += 1;
        } else {
            *self.books.cells.entry((line, flow, datagram)).or_default() += 1;
        }
    }

    /// Picoseconds in which every line was idle, up to `at`.
    pub(crate) fn idle(&self, at: u64) -> Vec<[u64; 2]> {
        let mut idle = self.books.idle.clone();
        for (sums, lines) in idle.iter_mut().zip(&self.lines) {
            for (sum, line) in sums.iter_mut().zip(lines) {
                *sum += line.idle_since().map_or(0, |since| self.books.counted(since, at));
            }
        }
        idle
    }

    /// Cells by what became of their datagrams so far.
    pub(crate) fn booked(&self) -> BTreeMap<Booking, Booked> {
        let mut sizes = BTreeMap::new();
        for frame in &self.frames {
            *sizes.entry((frame.flow, frame.datagram)).or_insert(0) += frame.cells;
        }
        let mut booked: BTreeMap<Booking, Booked> = BTreeMap::new();
        for (&(line, flow, datagram), &cells) in &self.books.cells {
            let entry = booked.entry(booking(line, flow)).or_default();
            match self.ledger.fate(flow, datagram) {
                Fate::Received if cells == sizes[&(flow, datagram)] => entry.whole += 1,
                Fate::Lost => entry.dead += cells,
                _ => entry.in_flight += cells,
            }
        }
        for (&(line, flow), &cells) in &self.books.generated {
            booked.entry(booking(line, flow)).or_default().generated = cells;
        }
        booked
    }
}

fn booking(line: LineId, flow: usize) -> Booking {
    Booking { link: line.link, end: line.end, flow }
}
