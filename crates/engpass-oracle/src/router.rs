//! Routers (docs/model.md, "Ethernet switches" and "Routers").

use std::collections::{BTreeMap, VecDeque};

/// Packets that wait for a router, the one in work in front.
#[derive(Debug, Default)]
pub(crate) struct Router {
    pub(crate) waiting: VecDeque<usize>,
    /// By waiting packet, the number of packets that leave for it.
    pub(crate) copies: BTreeMap<usize, u64>,
    /// When it began with the packet in work.
    pub(crate) since: Option<u64>,
    /// Busy time in the measurement window before that, in picoseconds.
    pub(crate) worked: u64,
}
