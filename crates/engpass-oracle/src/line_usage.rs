//! The oracle's line ledger (docs/ledger.md): when each line was idle, and the cells or bytes that it carried of each datagram.

use std::collections::BTreeMap;

use crate::cell::LineId;

/// All postings so far.
#[derive(Debug)]
pub(crate) struct LineUsage {
    /// End of the warm-up in picoseconds; nothing up to it is counted. `None`: no warm-up.
    pub(crate) warmup: Option<u64>,
    /// Idle time in picoseconds, by link and end.
    pub(crate) idle: Vec<[u64; 2]>,
    /// Amounts carried, by line and datagram.
    pub(crate) carried: BTreeMap<(LineId, usize), Carried>,
    /// Cells or frames that a line sent entirely in the measurement window, and the sum of their cells or bytes.
    pub(crate) sent: BTreeMap<LineId, (u64, u64)>,
    /// Transmissions that the beginning of the measurement window clips, with their exact times.
    pub(crate) cut: BTreeMap<LineId, Cut>,
}

/// The amount that one line carried of one datagram.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// Cells, or bytes of frames without physical framing, sent entirely in the measurement window.
    pub(crate) units: u64,
    /// True if a part of the datagram on this line was not counted.
    pub(crate) partly: bool,
    /// Its packets on this line.
    pub(crate) packets: Vec<CarriedPacket>,
}

/// A packet that a line carried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarriedPacket {
    /// Bytes of tunnel headers after its IP header.
    pub(crate) tunnels: u64,
    /// Offset and length in the IP payload of its datagram, in bytes.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// The circuit direction that carried it; `None` for frames.
    pub(crate) vc: Option<usize>,
}

/// A transmission that an edge of the measurement window clips, in units of the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Begin of the busy period in picoseconds.
    pub(crate) base: u64,
    /// Cells or bytes of the busy period before this transmission, and at its end.
    pub(crate) units: (u64, u64),
}

impl LineUsage {
    /// Returns an empty line ledger.
    pub(crate) fn new(links: usize, warmup: u64) -> Self {
        Self {
            warmup: (warmup > 0).then_some(warmup),
            idle: vec![[0; 2]; links],
            carried: BTreeMap::new(),
            sent: BTreeMap::new(),
            cut: BTreeMap::new(),
        }
    }

    /// Returns the beginning of the measurement window in picoseconds.
    pub(crate) fn from(&self) -> u64 {
        self.warmup.unwrap_or(0)
    }

    /// Returns the idle time of a line in the measurement window, before the current transmission.
    pub(crate) fn idle_of(&self, line: LineId) -> u64 {
        self.idle[line.link][line.end]
    }

    pub(crate) fn counted(&self, since: u64, until: u64) -> u64 {
        until.saturating_sub(since.max(self.from()))
    }
}
