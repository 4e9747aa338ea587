//! Selective drop: above a threshold, only PDUs of circuits with more than their share of the queue are discarded.
//!
//! R. Goyal, R. Jain, S. Kalyanaraman, S. Fahmy and B. Vandalore, "Improving the Performance of TCP over the ATM-UBR Service",
//! Computer Communications 21(10), 1998; ATM Forum 97-0423 (UBR+).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pdu_state::Pdus;
use super::{
    CellView, DiscardConfig, DiscardPolicy, QueueView, TrainView, check_threshold, default_threshold,
};
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::unit::{FillLevel, Share};

/// Discards a PDU as a whole if its first cell finds more cells in the queue than the threshold and its circuit has more than `z` times its
/// equal share of them. Otherwise, and on overflow, as `ppd`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelectiveDrop {
    /// Number of cells in the queue, or share of its capacity, up to which every PDU is accepted (0.9: an estimate). The space above the
    /// threshold should hold one or more PDUs, because accepted PDUs continue.
    #[serde(default = "default_threshold")]
    pub threshold: FillLevel,
    /// Multiple of its equal share of the queue above which a circuit's PDUs are discarded (80 %: an estimate).
    #[serde(default = "default_z")]
    pub z: Share,
}

/// Z = 0.8 (Goyal et al. 1998; quoted from memory: an estimate).
pub(super) fn default_z() -> Share {
    Share(Share::WHOLE / 10 * 8)
}

/// Maximum of `z`: no circuit has a million times its equal share of a queue.
const MOST_Z: Share = Share(Share::WHOLE * 1_000_000);

/// Adds an error for a `z` of zero or above [`MOST_Z`].
pub(super) fn check_z(z: Share, errors: &mut RangeErrors) {
    if z.0 == 0 {
        errors.add(
            &["z"],
            "every circuit has more than 0 % of its fair share",
            "give more than `0 %`, such as `80 %`",
        );
    } else if z > MOST_Z {
        errors.add(
            &["z"],
            "no circuit can have that much of its fair share",
            format!("give at most `{MOST_Z}`"),
        );
    }
}

impl DiscardConfig for SelectiveDrop {
    fn policy(&self, capacity: u64, _: Stream) -> Box<dyn DiscardPolicy> {
        Box::new(Fair::new(self.threshold.of(capacity), self.z, false))
    }

    fn check(&self, capacity: u64, errors: &mut RangeErrors) {
        check_threshold(self.threshold, capacity, errors);
        check_z(self.z, errors);
    }
}

/// Discards PDUs of circuits that have more than their share; the state of `selective-drop` and `fba`.
#[derive(Debug)]
pub(super) struct Fair {
    threshold: u64,
    z: Share,
    /// Whether the allowed share shrinks as the queue grows, as in `fba`.
    graded: bool,
    pdus: Pdus,
}

impl Fair {
    /// A policy that discards PDUs above `threshold` cells from circuits with more than `z` of their equal share. `graded` selects `fba`.
    pub(super) fn new(threshold: u64, z: Share, graded: bool) -> Self {
        Self { threshold, z, graded, pdus: Pdus::new(true) }
    }

    /// Whether a new PDU is discarded. With X cells in the queue, Y of them of this circuit, N circuits that have cells, capacity K and
    /// threshold R: if Y N / X > Z, or if `graded`, Y N / X > Z (1 + (K - X) / (X - R)) = Z (K - R) / (X - R).
    fn refuses(&self, queue: QueueView) -> bool {
        let above = queue.queued.saturating_sub(self.threshold);
        if above == 0 {
            return false;
        }
        let mut share = wide(queue.own) * wide(queue.active) * wide(Share::WHOLE);
        let mut allowed = wide(self.z.0) * wide(queue.queued);
        if self.graded {
            share = share.saturating_mul(wide(above));
            allowed = allowed.saturating_mul(wide(queue.capacity - self.threshold));
        }
        share > allowed
    }
}

fn wide(value: u64) -> u128 {
    u128::from(value)
}

impl DiscardPolicy for Fair {
    fn admits(&mut self, queue: QueueView, cell: CellView) -> bool {
        let refuses = self.refuses(queue);
        self.pdus.admit(queue, cell, || refuses)
    }

    fn try_admit_train(&mut self, train: TrainView) -> bool {
        train.most <= self.threshold && self.pdus.try_accept_train(train)
    }

    fn needs_per_vc_count(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discard::testing::{found, policy};

    fn shared(queued: u64, own: u64, active: u64) -> QueueView {
        QueueView { own, active, ..found(queued) }
    }

    #[test]
    fn selective_drop_refuses_pdus_of_circuits_above_the_share() {
        // Capacity 10, threshold 5, Z 0.8. Two circuits have 4 and 2 of 6 cells: 4 * 2 / 6 > 0.8, 2 * 2 / 6 < 0.8.
        let mut policy = policy("selective-drop", r#"{ "threshold": "50 %", "z": "80 %" }"#, 10);
        let cell = |vc| CellView { vc, last: false };
        assert!(policy.needs_per_vc_count());
        assert!(!policy.admits(shared(6, 4, 2), cell(0)));
        assert!(policy.admits(shared(6, 2, 2), cell(1)));
        assert!(policy.admits(shared(6, 0, 2), cell(2)), "a circuit without queued cells begins a PDU");
        assert!(policy.admits(shared(5, 5, 1), cell(3)), "a PDU begins at the threshold");
        assert!(
            !policy.admits(shared(6, 0, 2), CellView { vc: 0, last: true }),
            "the last cell of a refused PDU is discarded"
        );
    }

    #[test]
    fn selective_drop_admits_a_pdu_at_exactly_the_share() {
        // 2 of 5 cells, two circuits: 2 * 2 / 5 is exactly 0.8.
        let mut policy = policy("selective-drop", r#"{ "threshold": "4 cells" }"#, 10);
        assert!(policy.admits(shared(5, 2, 2), CellView { vc: 0, last: false }));
        assert!(!policy.admits(shared(5, 3, 2), CellView { vc: 1, last: false }));
    }

    #[test]
    fn selective_drop_discards_rest_of_pdu_after_overflow() {
        let mut policy = policy("selective-drop", "{}", 10);
        assert!(
            !policy.admits(shared(10, 1, 5), CellView { vc: 0, last: false }),
            "a full queue refuses the cell"
        );
        assert!(!policy.admits(shared(9, 1, 5), CellView { vc: 0, last: false }));
        assert!(policy.admits(shared(9, 1, 5), CellView { vc: 0, last: true }));
    }
}
