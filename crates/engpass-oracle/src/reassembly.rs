//! Reassembly where circuits end, and reception at the host (docs/model.md, "Reassembly and reception", "Circuits that end at routers").

use crate::cell::Cell;

/// Cells of one circuit direction since the last end of a PDU.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    pub(crate) cells: Vec<Cell>,
    /// `order` of the last cell that arrived.
    pub(crate) last: Option<u64>,
    /// Number of cells that arrived.
    pub(crate) count: u64,
}
