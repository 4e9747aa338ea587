//! Reassembly where circuits end, and reception at the host (docs/model.md, "Reassembly and reception", "Circuits that end at routers").

use crate::cell::Cell;

/// Cells of one direction of a circuit since the last end of a PDU.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    pub(crate) cells: Vec<Cell>,
    /// Order of the last cell that arrived.
    pub(crate) last: Option<u64>,
    /// Cells that arrived.
    pub(crate) count: u64,
}
