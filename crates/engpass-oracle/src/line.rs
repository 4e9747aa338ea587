//! A transmitter and the cells that wait for it (docs/model.md, "A line").

use std::collections::VecDeque;

use engpass_model::time::Pace;

use crate::cell::{Cell, after};

/// The transmitter of one direction of an ATM link, with its queues.
#[derive(Debug)]
pub(crate) struct Line {
    slot: Pace,
    /// Propagation delay in picoseconds.
    pub(crate) delay: u64,
    /// Cells that wait, one queue for each class, the one served first in front.
    waiting: Vec<VecDeque<Cell>>,
    /// The cell being sent and its class.
    sending: Option<(Cell, usize)>,
    /// When the busy period began.
    base: u64,
    /// Cells begun in it.
    n: u64,
    /// End of the last transmission; `None` before the first.
    ended: Option<u64>,
}

impl Line {
    /// An idle line with so many classes.
    pub(crate) fn new(slot: Pace, delay: u64, classes: usize) -> Self {
        let waiting = vec![VecDeque::new(); classes];
        Self { slot, delay, waiting, sending: None, base: 0, n: 0, ended: None }
    }

    /// Number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.waiting.len()
    }

    /// Cells of a class that are here, the one being sent included.
    pub(crate) fn held(&self, class: usize) -> u64 {
        let sending = self.sending.as_ref().is_some_and(|(_, of)| *of == class);
        self.waiting[class].len() as u64 + u64::from(sending)
    }

    /// The cells of a class that are here, the one being sent included.
    pub(crate) fn of_class(&self, class: usize) -> impl Iterator<Item = &Cell> {
        let sending = self.sending.iter().filter(move |(_, of)| *of == class).map(|(cell, _)| cell);
        sending.chain(&self.waiting[class])
    }

    /// All cells that are here, the one being sent first, then class by class.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.sending.iter().map(|(cell, _)| cell).chain(self.waiting.iter().flatten())
    }

    /// When it fell idle, if no cell is here.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        self.cells().next().is_none().then(|| self.ended.unwrap_or(0))
    }

    /// Pace of a cell.
    pub(crate) fn pace(&self) -> Pace {
        self.slot
    }

    /// Start of the busy period, and the cells sent in it before the transmission under way.
    pub(crate) fn begun(&self) -> Option<(u64, u64)> {
        self.sending.is_some().then(|| (self.base, self.n - 1))
    }

    /// When the last of the cells that are here will have left, where there is one class.
    pub(crate) fn all_left(&self) -> u64 {
        self.base + after(self.slot, self.n + self.waiting[0].len() as u64)
    }

    /// A cell joins its class's queue at `now`.
    pub(crate) fn join(&mut self, now: u64, cell: Cell, class: usize) {
        let idle = self.cells().next().is_none();
        if idle && self.ended.is_none_or(|ended| now > ended) {
            self.base = now;
            self.n = 0;
        }
        self.waiting[class].push_back(cell);
    }

    /// Take the next cell, if the transmitter is free and one waits; when it will have left.
    pub(crate) fn take(&mut self) -> Option<u64> {
        if self.sending.is_some() {
            return None;
        }
        let class = self.waiting.iter().position(|queue| !queue.is_empty())?;
        let cell = self.waiting[class].pop_front().expect("the queue is not empty");
        self.sending = Some((cell, class));
        self.n += 1;
        Some(self.base + after(self.slot, self.n))
    }

    /// The transmission ends at `now`: the cell has left.
    pub(crate) fn end(&mut self, now: u64) -> Cell {
        self.ended = Some(now);
        self.sending.take().expect("a transmission that ends has begun").0
    }
}
