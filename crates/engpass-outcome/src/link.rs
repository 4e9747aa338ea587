//! The outcome of a link.

use crate::signal::{count, number, rate, share};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkOutcome {
    /// Its two directions. The first one starts at the first of the link's `ends`.
    pub directions: Vec<DirectionOutcome>,
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectionOutcome {
    /// Sending node.
    pub from: String,
    /// Receiving node.
    pub to: String,
    /// Fraction of time in which the line was busy. With `limit`: the share of the line used if every flow sends at its limit.
    #[schemars(extend("x-signal" = share("Utilisation").summary(&[])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// Cell counts, on ATM links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<CellCounts>,
    /// Frame counts, on other links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FrameCounts>,
    /// The queue in front of the line; only from `simulate`, at switches and routers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueOutcome>,
    /// Use of the line's bit-times by account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Ledger>,
    /// Line rate in bit/s; only from `limit`.
    #[schemars(extend("x-signal" = rate("Line rate")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_rate_bit_per_s: Option<f64>,
    /// Shares of the line by flow, in the order of the file; only from `limit`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
}

/// Cells on one direction of an ATM link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellCounts {
    /// Number of cells that the line could have carried.
    #[schemars(extend("x-signal" = count("Cell slots", "cells").column("capacity_cells")))]
    pub capacity: u64,
    /// Number of cells sent.
    #[schemars(extend("x-signal" = count("Cells", "cells").column("sent_cells")))]
    pub sent: u64,
    /// Number of cells sent with CLP = 1.
    #[schemars(extend("x-signal" = count("CLP 1 cells", "cells").column("clp1_cells")))]
    pub clp1: u64,
    /// Number of cells sent with the EFCI mark.
    #[schemars(extend("x-signal" = count("EFCI cells", "cells").column("efci_cells")))]
    pub efci: u64,
    /// Number of cells lost in the queue of the line or in the policer in front of it.
    #[schemars(extend("x-signal" = count("Lost cells", "cells").column("lost_cells").lower().summary(&[])))]
    pub lost: u64,
}

/// Frames on one direction of an Ethernet or point-to-point link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrameCounts {
    /// Number of frames sent.
    #[schemars(extend("x-signal" = count("Frames", "frames").column("sent_frames")))]
    pub sent: u64,
    /// Bytes of these frames on the line, preamble and gap included.
    #[schemars(extend("x-signal" = count("Bytes", "B").column("sent_bytes")))]
    pub bytes: u64,
    /// Number of frames lost in the queue of the line or corrupted on the line.
    #[schemars(extend("x-signal" = count("Lost frames", "frames").column("lost_frames").lower().summary(&[])))]
    pub lost: u64,
}

/// The queue of an output port in the measurement window; see `docs/model.md`, "Longest queues".
///
/// The two longest queues are exact, and may belong to different instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueOutcome {
    /// Longest queue in bytes, as the limit of the queue counts them: of frames with their headers, without preamble and gap; of the SDUs
    /// of packets in front of a circuit; 53 for a cell.
    #[schemars(extend("x-signal" = number("Longest queue", "B").maximum().column("longest_queue_bytes").lower()))]
    pub longest_bytes: u64,
    /// Longest queue in packets; not for cells.
    #[schemars(extend("x-signal" = number("Longest queue in packets", "packets").maximum().column("longest_queue_packets").lower().summary(&[])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_packets: Option<u64>,
    /// Longest queue in cells, the cell being sent included; only at ATM switches.
    #[schemars(extend("x-signal" = number("Longest queue in cells", "cells").maximum().column("longest_queue_cells").lower().summary(&[])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_cells: Option<u64>,
    /// Number of packets that the queue discipline marked CE; not for cells. Packets that came with the mark do not count.
    #[schemars(extend("x-signal" = count("ECN marks", "packets").column("ecn_marked_packets").summary(&[])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_marked: Option<u64>,
}

/// Bit-times of a line by account; see `docs/ledger.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// Number of units per bit, chosen such that a cell is a whole number of units.
    pub units_per_bit: u64,
    /// Sum of all accounts in units.
    pub capacity: u128,
    /// Units by account. Empty accounts are omitted.
    pub accounts: IndexMap<String, u128>,
}

/// Share of a line that one flow uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Name of the flow.
    pub flow: String,
    /// Kind of traffic; `acknowledgements` for the acknowledgements of a `tcp-stream`.
    pub kind: String,
    /// Share of the line, 0 to 1.
    pub share: f64,
}
