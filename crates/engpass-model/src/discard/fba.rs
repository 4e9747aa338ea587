//! Fair buffer allocation: selective drop with an allowed share that shrinks as the queue fills.
//!
//! J. Heinanen and K. Kilkki, "A Fair Buffer Allocation Scheme", Computer Communications 21(3), 1998 (written in 1995).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selective::{Fair, check_z, default_z};
use super::{DiscardConfig, DiscardPolicy, check_threshold, default_threshold};
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::unit::{FillLevel, Share};

/// As `selective-drop`, but the allowed share depends on the queue length. With X cells in a queue of K cells and a threshold R, a circuit
/// may have z (1 + (K - X) / (X - R)) times its equal share: many times just above the threshold, and `z` times when the queue is full.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fba {
    /// Number of cells in the queue, or share of its capacity, up to which every PDU is accepted (0.9: an estimate). The space above the
    /// threshold should hold one or more PDUs, because accepted PDUs continue.
    #[serde(default = "default_threshold")]
    pub threshold: FillLevel,
    /// Multiple of its equal share of a full queue above which a circuit's PDUs are discarded (80 %: an estimate).
    #[serde(default = "default_z")]
    pub z: Share,
}

impl DiscardConfig for Fba {
    fn policy(&self, capacity: u64, _: Stream) -> Box<dyn DiscardPolicy> {
        Box::new(Fair::new(self.threshold.of(capacity), self.z, true))
    }

    fn check(&self, capacity: u64, errors: &mut RangeErrors) {
        check_threshold(self.threshold, capacity, errors);
        check_z(self.z, errors);
    }
}

#[cfg(test)]
mod tests {
    use crate::discard::testing::{found, policy};
    use crate::discard::{CellView, QueueView};

    #[test]
    fn fba_allowed_share_shrinks_as_the_queue_fills() {
        // K = 10, R = 5, Z = 0.8, two circuits. Allowed are 0.8 * 5 / (X - 5) equal shares: 4 with 6 cells, 1 with 9 cells, 0.8 with 10
        // cells.
        let mut policy = policy("fba", r#"{ "threshold": "5 cells" }"#, 10);
        let mut begins = |queued, own, vc| {
            let queue = QueueView { own, active: 2, ..found(queued) };
            policy.admits(queue, CellView { vc, last: false })
        };
        assert!(begins(6, 6, 0), "2 shares are within 4");
        assert!(begins(8, 5, 1), "1.25 shares are within 1.33");
        assert!(!begins(8, 6, 2), "1.5 shares are not within 1.33");
        assert!(!begins(9, 5, 3), "1.11 shares are not within 1");
        assert!(begins(9, 4, 4), "0.89 shares are within 1");
    }
}
