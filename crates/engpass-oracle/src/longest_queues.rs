//! The longest queues of ports (docs/model.md, "Longest queues").

use std::collections::BTreeMap;

use crate::cell::LineId;
use crate::outcome::QueueSeen;
use crate::queue::Length;

/// The longest queues in the measurement window so far.
#[derive(Debug, Default)]
pub(crate) struct LongestQueues {
    /// End of the warm-up in picoseconds, 0 without one.
    warmup: u64,
    by_line: BTreeMap<LineId, QueueSeen>,
}

impl LongestQueues {
    pub(crate) fn new(warmup: u64) -> Self {
        Self { warmup, by_line: BTreeMap::new() }
    }

    fn at(&mut self, now: u64, line: LineId) -> Option<&mut QueueSeen> {
        (self.warmup == 0 || now > self.warmup).then(|| self.by_line.entry(line).or_default())
    }

    /// Records the number of cells of a category, when one has joined.
    pub(crate) fn cells(&mut self, now: u64, line: LineId, cells: u64) {
        if let Some(seen) = self.at(now, line) {
            seen.cells = seen.cells.max(cells);
        }
    }

    /// Records the length of a queue of packets, when one has come.
    pub(crate) fn packets(&mut self, now: u64, line: LineId, length: Length) {
        if let Some(seen) = self.at(now, line) {
            seen.packets = seen.packets.max(length.packets);
            seen.bytes = seen.bytes.max(length.bytes);
        }
    }

    /// Records that a discipline has marked a packet.
    pub(crate) fn marked(&mut self, now: u64, line: LineId) {
        if let Some(seen) = self.at(now, line) {
            seen.marked += 1;
        }
    }

    /// Records the length of a queue at the end of the warm-up.
    pub(crate) fn begin(&mut self, line: LineId, cells: u64, length: Length) {
        let seen = self.by_line.entry(line).or_default();
        seen.cells = seen.cells.max(cells);
        seen.packets = seen.packets.max(length.packets);
        seen.bytes = seen.bytes.max(length.bytes);
    }

    /// Returns all ports that had a queue.
    pub(crate) fn seen(&self) -> BTreeMap<(usize, usize), QueueSeen> {
        let seen = self.by_line.iter().filter(|(_, seen)| **seen != QueueSeen::default());
        seen.map(|(line, seen)| ((line.link, line.end), *seen)).collect()
    }
}
