//! Early and partial packet discard: a PDU that arrives above the threshold is discarded as a whole, and the rest of one that overflows is
//! discarded.
//!
//! Romanow and Floyd, IEEE JSAC 13(4), 1995, sections 3 and 4. The frame discard of ATM Forum Traffic Management 4.0 permits both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::epd::EarlyDiscard;
use super::{DiscardConfig, DiscardPolicy, check_threshold, default_threshold};
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::unit::FillLevel;

/// As `epd`. In addition, once an accepted PDU has lost a cell that found no room, its remaining cells except the last are discarded, as
/// with `ppd`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpdPpd {
    /// Number of cells in the queue, or share of its capacity, above which a PDU is discarded (0.9: an estimate). The space above the
    /// threshold should hold one or more PDUs, because accepted PDUs continue.
    #[serde(default = "default_threshold")]
    pub threshold: FillLevel,
}

impl DiscardConfig for EpdPpd {
    fn policy(&self, capacity: u64, _: Stream) -> Box<dyn DiscardPolicy> {
        Box::new(EarlyDiscard::new(self.threshold.of(capacity), true))
    }

    fn check(&self, capacity: u64, errors: &mut RangeErrors) {
        check_threshold(self.threshold, capacity, errors);
    }

    fn refuses_above(&self, capacity: u64) -> Option<(&'static str, u64)> {
        Some(("threshold", self.threshold.of(capacity)))
    }
}

#[cfg(test)]
mod tests {
    use crate::discard::CellView;
    use crate::discard::testing::{found, policy};

    #[test]
    fn epd_ppd_keeps_last_cell_after_overflow_not_after_refusal() {
        let mut policy = policy("epd-ppd", r#"{ "threshold": "8 cells" }"#, 10);
        let (cell, end) = (CellView { vc: 0, last: false }, CellView { vc: 0, last: true });
        assert!(policy.admits(found(0), cell));
        assert!(!policy.admits(found(10), cell));
        assert!(!policy.admits(found(0), cell), "the rest of a damaged PDU is discarded");
        assert!(policy.admits(found(9), end), "the last cell of a damaged PDU is kept");
        assert!(!policy.admits(found(9), cell), "a PDU above the threshold is refused");
        assert!(!policy.admits(found(0), end), "the last cell of a refused PDU is discarded");
        assert!(policy.admits(found(0), cell));
    }
}
