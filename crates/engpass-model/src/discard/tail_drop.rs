//! Tail drop: a cell that finds the queue full is dropped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellView, DiscardConfig, DiscardPolicy, QueueView};
use crate::random::Stream;

/// A cell that finds the queue full is dropped, regardless of its PDU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tail {}

impl DiscardConfig for Tail {
    fn policy(&self, _: u64, _: Stream) -> Box<dyn DiscardPolicy> {
        Box::new(self.clone())
    }
}

impl DiscardPolicy for Tail {
    fn admits(&mut self, queue: QueueView, _: CellView) -> bool {
        queue.has_room()
    }

    fn drops_only_when_full(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_drop_admits_cells_until_the_buffer_is_full() {
        let cell = CellView { vc: 0, last: true };
        let queue = QueueView { queued: 9, capacity: 10, limit: 10, own: 0, active: 0 };
        assert!(Tail {}.admits(queue, cell));
        assert!(!Tail {}.admits(QueueView { queued: 10, ..queue }, cell));
    }
}
