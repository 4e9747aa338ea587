//! Early and partial packet discard together: a PDU is refused early, and one that overflows nevertheless is cut.
//!
//! Romanow and Floyd, IEEE JSAC 13(4), 1995, sections 3 and 4; the frame discard of ATM Forum Traffic Management 4.0
//! permits both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::epd::Early;
use super::{DiscardConfig, DiscardPolicy, check_threshold, default_threshold};
use crate::complaint::RangeErrors;
use crate::random::Stream;
use crate::unit::FillLevel;

/// As `epd`; and after a PDU that was begun has lost a cell for want of room, the rest of it is thrown away, but for its last cell,
/// as with `ppd`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpdPpd {
    /// Cells in the queue, or share of its places, above which no PDU is begun (0.9: an estimate). What is
    /// left above it should hold a PDU or more: one that was begun goes on.
    #[serde(default = "default_threshold")]
    pub threshold: FillLevel,
}

impl DiscardConfig for EpdPpd {
    fn policy(&self, capacity: u64, _: Stream) -> Box<dyn DiscardPolicy> {
        Box::new(Early::new(self.threshold.of(capacity), true))
    }

    fn check(&self, capacity: u64, complaints: &mut RangeErrors) {
        check_threshold(self.threshold, capacity, complaints);
    }
}

#[cfg(test)]
mod tests {
    use crate::discard::CellView;
    use crate::discard::testing::{found, policy};

    #[test]
    fn an_overflow_cuts_and_a_refusal_takes_all() {
        let mut policy = policy("epd-ppd", r#"{ "threshold": "8 cells" }"#, 10);
        let (cell, end) = (CellView { vc: 0, last: false }, CellView { vc: 0, last: true });
        assert!(policy.admits(found(0), cell));
        assert!(!policy.admits(found(10), cell));
        assert!(!policy.admits(found(0), cell), "the rest is cut");
        assert!(policy.admits(found(9), end), "but for its end");
        assert!(!policy.admits(found(9), cell), "refused: nothing of it was sent");
        assert!(!policy.admits(found(0), end), "so its end is lost, too");
        assert!(policy.admits(found(0), cell));
    }
}
