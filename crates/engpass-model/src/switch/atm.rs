//! An output-buffered ATM switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::Complaints;
use crate::discard::Discard;
use crate::schedule::Schedule;
use crate::unit::CellCount;

/// An ATM switch with a buffer at every output port. It forwards a cell when it has arrived whole.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtmSwitch {
    /// Cells an output port can hold, the one being sent included. With priorities, each class has so many.
    #[serde(default = "default_buffer")]
    pub output_buffer: CellCount,
    /// What is thrown away when a queue is full, or before.
    #[serde(default = "default_discard")]
    pub discard: Discard,
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

impl AtmSwitch {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        if self.output_buffer.0 == 0 {
            complaints.add(
                &["output_buffer"],
                "a port holds at least the cell it sends",
                "give at least `1 cell`",
            );
        }
    }
}
