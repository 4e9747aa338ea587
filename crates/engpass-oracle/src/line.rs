//! A transmitter and its queue of cells (docs/model.md, "A line").

use std::collections::VecDeque;

use engpass_model::time::Pace;

use crate::cell::{Cell, after};

/// The transmitter of one direction of an ATM link, with its queues.
#[derive(Debug)]
pub(crate) struct Line {
    slot: Pace,
    /// Propagation delay in picoseconds.
    pub(crate) delay: u64,
    /// Waiting cells, one queue per class; the class served first comes first.
    waiting: Vec<VecDeque<Cell>>,
    /// The cell in transmission and its class.
    sending: Option<(Cell, usize)>,
    /// Begin of the busy period in picoseconds.
    base: u64,
    /// Cells whose transmission began in the busy period.
    n: u64,
    /// End of the last transmission; `None` before the first.
    ended: Option<u64>,
}

impl Line {
    /// Builds an idle line with this number of classes.
    pub(crate) fn new(slot: Pace, delay: u64, classes: usize) -> Self {
        let waiting = vec![VecDeque::new(); classes];
        Self { slot, delay, waiting, sending: None, base: 0, n: 0, ended: None }
    }

    pub(crate) fn classes(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of cells of a class here, the one in transmission included.
    pub(crate) fn held(&self, class: usize) -> u64 {
        let sending = self.sending.as_ref().is_some_and(|(_, of)| *of == class);
        self.waiting[class].len() as u64 + u64::from(sending)
    }

    /// Returns the cells of a class here, the one in transmission included.
    pub(crate) fn of_class(&self, class: usize) -> impl Iterator<Item = &Cell> {
        let sending = self.sending.iter().filter(move |(_, of)| *of == class).map(|(cell, _)| cell);
        sending.chain(&self.waiting[class])
    }

    /// Returns all cells here, the one in transmission first, then class by class.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.sending.iter().map(|(cell, _)| cell).chain(self.waiting.iter().flatten())
    }

    /// Returns the time since which it is idle; `None` while a cell is here.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        self.cells().next().is_none().then(|| self.ended.unwrap_or(0))
    }

    pub(crate) fn pace(&self) -> Pace {
        self.slot
    }

    /// Returns the begin of the busy period and the cells sent in it before the current transmission.
    pub(crate) fn begun(&self) -> Option<(u64, u64)> {
        self.sending.is_some().then(|| (self.base, self.n - 1))
    }

    /// Returns when the last of the cells here will have left. The line must have a single class.
    pub(crate) fn all_left(&self) -> u64 {
        self.base + after(self.slot, self.n + self.waiting[0].len() as u64)
    }

    /// Adds a cell to the queue of its class at `now`.
    pub(crate) fn join(&mut self, now: u64, cell: Cell, class: usize) {
        let idle = self.cells().next().is_none();
        if idle && self.ended.is_none_or(|ended| now > ended) {
            self.base = now;
            self.n = 0;
        }
        self.waiting[class].push_back(cell);
    }

    /// Takes the next cell if the transmitter is free and one waits. Returns when it will have left.
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

    /// Ends the transmission at `now` and returns the cell.
    pub(crate) fn end(&mut self, now: u64) -> Cell {
        self.ended = Some(now);
        self.sending.take().expect("the line has a cell in transmission").0
    }
}
