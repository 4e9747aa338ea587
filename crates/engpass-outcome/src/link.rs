//! What went over a link.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LinkOutcome {
    /// Its two directions, that from the link's first end first.
    pub directions: Vec<DirectionOutcome>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DirectionOutcome {
    /// Node that sends.
    pub from: String,
    /// Node that receives.
    pub to: String,
    /// Share of the time that the line was busy; from `limit` the share that all flows at their limits take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// Cells that it carried, on ATM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<CellCounts>,
    /// Frames that it carried, elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FrameCounts>,
    /// Where its bit-times went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Ledger>,
    /// Line rate; from `limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_rate_bit_per_s: Option<f64>,
    /// Shares of the line by flow, in the order of the file; from `limit`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
}

/// Cells of one direction of an ATM link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CellCounts {
    /// Cells that it could have carried.
    pub capacity: u64,
    /// Cells sent.
    pub sent: u64,
    /// Cells sent with CLP = 1.
    pub clp1: u64,
    /// Cells sent with the EFCI mark.
    pub efci: u64,
    /// Cells lost in the queue or in the policer in front of it.
    pub lost: u64,
}

/// Frames of one direction of an Ethernet or point-to-point link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FrameCounts {
    /// Frames sent.
    pub sent: u64,
    /// Bytes of the line that they took, preamble and gap included.
    pub bytes: u64,
    /// Frames lost in the queue in front of the line, or damaged on it.
    pub lost: u64,
}

/// Bit-times of a line by account: `docs/ledger.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Ledger {
    /// Units in a bit: so many that a cell is a whole number of them.
    pub units_per_bit: u64,
    /// The sum of all accounts, in units.
    pub capacity: u128,
    /// Units by account; accounts without any are left out.
    pub accounts: IndexMap<String, u128>,
}

/// The share of a line that one flow takes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Share {
    /// Name of the flow.
    pub flow: String,
    /// Kind of traffic; `acknowledgements` for those of a `tcp-stream`.
    pub kind: String,
    /// Share of the line, 0 to 1.
    pub share: f64,
}
