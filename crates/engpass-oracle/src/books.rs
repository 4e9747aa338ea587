//! The oracle's own books of every line (docs/ledger.md): when it was idle, and whose cells or bytes it carried with what fate.

use std::collections::BTreeMap;

use crate::cell::LineId;

/// What was booked so far.
#[derive(Debug)]
pub(crate) struct Books {
    /// What happens at or before it is not counted; `None`: everything is.
    pub(crate) warmup: Option<u64>,
    /// Picoseconds by link and end.
    pub(crate) idle: Vec<[u64; 2]>,
    /// What a line carried of a datagram.
    pub(crate) carried: BTreeMap<(LineId, usize), Carried>,
    /// Cells or frames that a line has sent within the counted time, and the cells or bytes that these are.
    pub(crate) sent: BTreeMap<LineId, (u64, u64)>,
    /// Units at the beginning of the counted time that had begun before: since when, exactly, and until when.
    pub(crate) cut: BTreeMap<LineId, Cut>,
}

/// What a line carried of a datagram.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// Cells, or bytes of frames without the physical framing, that began and ended in the counted time.
    pub(crate) units: u64,
    /// Some were not counted.
    pub(crate) partly: bool,
    /// Packets of it.
    pub(crate) packets: Vec<CarriedPacket>,
}

/// A packet that a line carried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarriedPacket {
    /// Bytes of tunnels' headers in it, behind its IP header.
    pub(crate) tunnels: u64,
    /// Where in the IP payload of its datagram it began, and how many bytes of that it had.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// The direction of a circuit that it was on, if it came in cells.
    pub(crate) vc: Option<usize>,
}

/// A transmission that the beginning of the counted time cut, in terms of the line's pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Start of the busy period in picoseconds.
    pub(crate) base: u64,
    /// Cells or bytes sent in it when this transmission began, and when it ended.
    pub(crate) units: (u64, u64),
}

impl Books {
    /// Empty books.
    pub(crate) fn new(links: usize, warmup: u64) -> Self {
        Self {
            warmup: (warmup > 0).then_some(warmup),
            idle: vec![[0; 2]; links],
            carried: BTreeMap::new(),
            sent: BTreeMap::new(),
            cut: BTreeMap::new(),
        }
    }

    /// When the counted time begins.
    pub(crate) fn from(&self) -> u64 {
        self.warmup.unwrap_or(0)
    }

    /// Idle time of a line in the counted time, before the transmission under way.
    pub(crate) fn idle_of(&self, line: LineId) -> u64 {
        self.idle[line.link][line.end]
    }

    pub(crate) fn counted(&self, since: u64, until: u64) -> u64 {
        until.saturating_sub(since.max(self.from()))
    }
}
