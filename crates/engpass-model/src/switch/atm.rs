//! An output-buffered ATM switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::discard::Discard;
use crate::range_errors::RangeErrors;
use crate::schedule::Schedule;
use crate::unit::{CellCount, FillLevel};

/// An output-buffered ATM switch. It forwards a cell after its last bit has arrived.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtmSwitch {
    /// Capacity of an output port in cells, the one in transmission included. With `priority`, every class has this capacity.
    #[serde(default = "default_buffer")]
    pub output_buffer: CellCount,
    /// Discard policy: which cells are dropped when a queue is full, or before.
    #[serde(default = "default_discard")]
    pub discard: Discard,
    /// A cell with CLP = 1 (low priority) is dropped if it finds more than this number of cells in its queue, or than this share of the
    /// capacity. If not given, CLP is ignored (selective cell discard, ATM Forum TM 4.0).
    pub clp_threshold: Option<FillLevel>,
    /// A cell is marked if it finds more than this number of cells in its queue, or than this share of the capacity: explicit forward
    /// congestion indication (EFCI; ITU-T I.371). The receiving host uses the mark of the last cell of a PDU.
    pub efci_threshold: Option<FillLevel>,
    /// Which cell is sent next: `priority` (CBR before UBR) or `fifo` (one shared queue).
    #[serde(default = "default_schedule")]
    pub schedule: Schedule,
}

fn default_buffer() -> CellCount {
    CellCount(384)
}

fn default_discard() -> Discard {
    Discard::Tail(Default::default())
}

fn default_schedule() -> Schedule {
    Schedule::Priority(Default::default())
}

/// Maximum of `output_buffer` in cells.
const MOST_CELLS: u64 = 10_000_000;

impl AtmSwitch {
    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        if self.output_buffer.0 == 0 {
            errors.add(
                &["output_buffer"],
                "the buffer must hold at least the cell that is being sent",
                "give at least `1 cell`",
            );
        }
        if self.output_buffer.0 > MOST_CELLS {
            errors.add(
                &["output_buffer"],
                "too large for the buffer of a port",
                format!("give at most {}", CellCount(MOST_CELLS)),
            );
        }
        let capacity = self.output_buffer.0;
        self.discard.check(capacity, errors);
        for (key, level) in [("clp_threshold", self.clp_threshold), ("efci_threshold", self.efci_threshold)] {
            if let Some(level) = level {
                errors.below_capacity(&[key], level, capacity);
            }
        }
    }
}
