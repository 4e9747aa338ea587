//! Idle time of lines, and the edges of the measurement window.

use engpass_model::line::LineStatus;

use super::idle_reasons::Reasons;
use super::{Edge, Ledger, Line};

impl Ledger {
    /// Returns whether any flow crosses the line of `port`.
    pub fn carries(&self, port: usize) -> bool {
        !self.lines[port].usages.is_empty()
    }

    /// Adds the idle time of the line of `port` before its next transmission: picoseconds, and the ticks by which the previous end was rounded up.
    #[inline]
    pub fn idle(&mut self, port: usize, ps: u64, rounding: u64) {
        if !self.on {
            return;
        }
        let line = &mut self.lines[port];
        line.idle += ps;
        line.rounding += rounding;
    }

    /// Begins the window on the line of `port`, if it carries cells; `doing` is its status.
    pub fn begin_window_on(&mut self, port: usize, doing: LineStatus) {
        if self.lines[port].cells {
            self.lines[port].open(doing);
        }
    }

    /// Ends the window on the line of `port`; `doing` is its status.
    pub fn end_window_on(&mut self, port: usize, doing: LineStatus) {
        let line = &mut self.lines[port];
        line.edges[1] = line.edge(doing);
        if let Some(since) = self.down.get_mut(&port) {
            line.assign_to_line_down(*since, line.edges[1].idle);
            // Another window may follow.
            *since = line.edges[1].idle.max(*since);
        }
    }
}

impl Line {
    pub(super) fn open(&mut self, doing: LineStatus) {
        self.edges[0] = self.edge(doing);
        self.booked = self.edges[0].idle;
        self.reasons.iter_mut().for_each(|reasons| **reasons = Reasons::default());
    }

    pub(super) fn edge(&self, doing: LineStatus) -> Edge {
        let LineStatus { idle, rounding, begun } = doing;
        Edge { idle: self.idle + idle, rounding: self.rounding + rounding, begun }
    }
}
