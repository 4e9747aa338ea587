//! Tail drop by bytes or by packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::Complaints;
use crate::unit::Size;

/// One queue, first in, first out; a packet that does not fit is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DropTail {
    /// Bytes it holds.
    pub limit: Option<Size>,
    /// Packets it holds.
    pub packets: Option<u64>,
}

impl DropTail {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        if self.limit.is_some_and(|limit| limit.bytes() == 0) {
            complaints.add(&["limit"], "a queue that holds nothing sends nothing", "give at least `1 B`");
        }
        if self.packets == Some(0) {
            complaints.add(&["packets"], "a queue that holds nothing sends nothing", "give at least `1`");
        }
    }
}
