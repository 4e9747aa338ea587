//! Cell admission: thresholds and discard policy in front of a bounded queue.

use std::collections::VecDeque;

use engpass_model::discard::{CellView, DiscardPolicy, QueueView, TrainView};
use engpass_model::random::Stream;
use engpass_model::switch::AtmSwitch;
use engpass_model::unit::FillLevel;

use super::{CellTrain, VcId};

/// Thresholds of a queue, in cells.
#[derive(Clone, Copy, Debug)]
pub struct CellThresholds {
    /// Capacity in cells, including the cell being sent.
    pub capacity: u64,
    /// A cell with CLP = 1 joins only if it finds at most this many cells.
    pub clp: Option<u64>,
    /// A cell that finds more cells than this is marked with EFCI.
    pub efci: Option<u64>,
}

/// Why a cell was lost at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellDropCause {
    /// The queue was full.
    Full,
    /// The queue held more cells than a cell with CLP = 1 may find.
    LowPriority,
    /// There was room, but the discard policy dropped the cell.
    Policy,
}

impl CellDropCause {
    /// Returns the text for a table of drops.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Full => "buffer full",
            Self::LowPriority => "CLP threshold",
            Self::Policy => "discard policy",
        }
    }
}

/// Thresholds and discard policy of one queue.
pub struct CellAdmission {
    capacity: u64,
    /// Cells with CLP = 1 join only if there are fewer cells than this in the queue.
    clp_limit: u64,
    efci: u64,
    policy: Box<dyn DiscardPolicy>,
    /// Count of the cells in the queue by circuit, if the policy needs it.
    per_vc_count: Option<PerVcCount>,
}

impl CellAdmission {
    /// Returns the admission for an empty queue at an output port of `switch`. Its discard policy takes random numbers, if any, from `random`.
    pub fn of_port(switch: &AtmSwitch, random: Stream) -> Self {
        let capacity = switch.output_buffer.0;
        let cells = |level: Option<FillLevel>| level.map(|level| level.of(capacity));
        let bounds =
            CellThresholds { capacity, clp: cells(switch.clp_threshold), efci: cells(switch.efci_threshold) };
        Self::new(bounds, switch.discard.config().policy(capacity, random))
    }

    /// Returns the admission for an empty queue with these thresholds and this policy.
    pub fn new(bounds: CellThresholds, policy: Box<dyn DiscardPolicy>) -> Self {
        let capacity = bounds.capacity;
        Self {
            capacity,
            clp_limit: bounds.clp.map_or(capacity, |found| found.saturating_add(1).min(capacity)),
            efci: bounds.efci.unwrap_or(u64::MAX),
            per_vc_count: policy.needs_per_vc_count().then(PerVcCount::default),
            policy,
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns true for plain tail drop: a cell is lost only if the queue is full, and no cell is marked.
    pub fn drops_only_when_full(&self) -> bool {
        self.policy.drops_only_when_full() && self.clp_limit == self.capacity && self.efci == u64::MAX
    }

    /// Returns whether cells of a generator like `cell` can skip admission, given that each finds at most one cell in the queue: all then join unmarked.
    /// Consumes the admission, because the question changes the state of its policy; the caller makes one for this question alone.
    pub fn can_skip_admission(mut self, cell: &CellTrain) -> bool {
        !self.needs_per_vc_count() && self.admit_train(cell, (0, 1)) == Some(cell.efci)
    }

    /// Returns whether the admission counts cells by circuit. If so, the queue must report all departures with [`Self::left`].
    pub(super) fn needs_per_vc_count(&self) -> bool {
        self.per_vc_count.is_some()
    }

    #[inline]
    fn limit(&self, clp: bool) -> u64 {
        if clp { self.clp_limit } else { self.capacity }
    }

    /// Decides whether `cell`, which finds `queued` cells, joins. A cell that joins is marked and counted. Fails with the cause of the loss.
    #[inline]
    pub(super) fn admit(&mut self, queued: u64, cell: &mut CellTrain) -> Result<(), CellDropCause> {
        let (own, active) =
            self.per_vc_count.as_ref().map_or((0, 0), |per_vc_count| per_vc_count.seen_by(cell.vc));
        let queue = QueueView { queued, capacity: self.capacity, limit: self.limit(cell.clp), own, active };
        // The policy sees every cell that comes here, even one without room: its state follows the ends of PDUs. Cells that join as a train, or that a
        // tail-drop queue takes in bulk, do not come here.
        let admitted = self.policy.admits(queue, CellView { vc: cell.vc, last: cell.ends_pdu() });
        if queued >= self.capacity {
            return Err(CellDropCause::Full);
        }
        if !queue.has_room() {
            return Err(CellDropCause::LowPriority);
        }
        if !admitted {
            return Err(CellDropCause::Policy);
        }
        cell.efci |= queued > self.efci;
        self.joined(cell.vc, 1);
        Ok(())
    }

    /// Returns the EFCI of the cells if all cells of `train`, which find from `least` to `most` cells, join; otherwise `None`. If they join, the policy has
    /// seen them, and [`Self::admit`] is not called for each. The caller counts them with [`Self::joined`].
    pub(super) fn admit_train(&mut self, train: &CellTrain, (least, most): (u64, u64)) -> Option<bool> {
        let marked = least > self.efci;
        if most >= self.limit(train.clp) || marked != (most > self.efci) {
            return None;
        }
        let taken = self.policy.try_admit_train(TrainView { vc: train.vc, most, ends: train.ends_pdu() });
        taken.then_some(train.efci || marked)
    }

    /// Counts `count` cells of the circuit `vc` that have joined, if the policy needs the count.
    #[inline]
    pub(super) fn joined(&mut self, vc: VcId, count: u64) {
        if let Some(per_vc_count) = &mut self.per_vc_count {
            per_vc_count.join(vc, count);
        }
    }

    /// Counts the `count` oldest cells as gone from the queue, if the policy needs the count.
    #[inline]
    pub(super) fn left(&mut self, count: u64) {
        if let Some(per_vc_count) = &mut self.per_vc_count {
            per_vc_count.leave(count);
        }
    }

    #[inline]
    pub(super) fn emptied(&mut self) {
        if let Some(per_vc_count) = &mut self.per_vc_count {
            *per_vc_count = PerVcCount::default();
        }
    }
}

/// Count of the cells in a FIFO queue, by circuit.
#[derive(Debug, Default)]
struct PerVcCount {
    /// Circuit and length of each run of consecutive cells in the queue.
    runs: VecDeque<(VcId, u64)>,
    /// Number of cells in the queue, by circuit direction.
    cells: Vec<u64>,
    /// Number of circuits with cells in the queue.
    active: u64,
}

impl PerVcCount {
    fn seen_by(&self, vc: VcId) -> (u64, u64) {
        (self.cells.get(vc as usize).copied().unwrap_or(0), self.active)
    }

    fn join(&mut self, vc: VcId, count: u64) {
        let index = vc as usize;
        if index >= self.cells.len() {
            self.cells.resize(index + 1, 0);
        }
        self.active += u64::from(self.cells[index] == 0 && count > 0);
        self.cells[index] += count;
        match self.runs.back_mut() {
            Some((last, run)) if *last == vc => *run += count,
            _ => self.runs.push_back((vc, count)),
        }
    }

    fn leave(&mut self, mut count: u64) {
        while count > 0 {
            let (vc, run) = self.runs.front_mut().expect("a departing cell was counted when it joined");
            let leaving = count.min(*run);
            let cells = &mut self.cells[*vc as usize];
            *cells -= leaving;
            *run -= leaving;
            count -= leaving;
            self.active -= u64::from(*cells == 0);
            if *run == 0 {
                self.runs.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NO_PDU;
    use engpass_model::discard::{DiscardConfig, Epd, Fba, Tail};
    use engpass_model::time::Pace;
    use engpass_model::unit::Share;

    fn policy(config: &dyn DiscardConfig) -> Box<dyn DiscardPolicy> {
        config.policy(10, Stream::new(1, "test"))
    }

    fn cell(vc: VcId, clp: bool) -> CellTrain {
        let pace = Pace::new(1, 1);
        let (base, n, count, last) = (0, 0, 1, 0);
        CellTrain { base, n, pace, count, last, vc, pdu: NO_PDU, cell: 0, of: 9, clp, efci: false }
    }

    #[test]
    fn low_priority_cells_are_dropped_above_clp_threshold() {
        let bounds = CellThresholds { capacity: 10, clp: Some(4), efci: None };
        let mut admission = CellAdmission::new(bounds, policy(&Tail {}));
        assert!(!admission.drops_only_when_full());
        assert_eq!(admission.admit(4, &mut cell(0, true)), Ok(()));
        assert_eq!(admission.admit(5, &mut cell(0, true)), Err(CellDropCause::LowPriority));
        assert_eq!(admission.admit(9, &mut cell(0, false)), Ok(()));
        assert_eq!(admission.admit(10, &mut cell(0, true)), Err(CellDropCause::Full));
        assert_eq!(admission.admit_train(&cell(0, true), (3, 5)), None);
        assert_eq!(admission.admit_train(&cell(0, true), (2, 4)), Some(false));
    }

    #[test]
    fn efci_marks_cells_above_the_threshold() {
        let bounds = CellThresholds { capacity: 10, clp: None, efci: Some(4) };
        let mut admission = CellAdmission::new(bounds, policy(&Tail {}));
        let mut marked = |queued| {
            let mut cell = cell(0, false);
            admission.admit(queued, &mut cell).map(|()| cell.efci)
        };
        assert_eq!((marked(4), marked(5)), (Ok(false), Ok(true)));
        assert_eq!(admission.admit_train(&cell(0, false), (3, 4)), Some(false));
        assert_eq!(
            admission.admit_train(&cell(0, false), (4, 5)),
            None,
            "only part of the train exceeds the EFCI threshold"
        );
        assert_eq!(admission.admit_train(&cell(0, false), (5, 6)), Some(true));
    }

    #[test]
    fn admission_is_skipped_only_if_one_cell_always_joins_unmarked() {
        let epd = |threshold| policy(&Epd { threshold: FillLevel::Cells(threshold) });
        let plain = CellThresholds { capacity: 10, clp: None, efci: None };
        let generated = CellTrain { pdu: crate::generated_by(0), of: 1, ..cell(0, false) };
        let may = |bounds, policy| CellAdmission::new(bounds, policy).can_skip_admission(&generated);
        assert!(may(plain, epd(1)) && !may(plain, epd(0)));
        assert!(
            may(CellThresholds { efci: Some(1), ..plain }, epd(1))
                && !may(CellThresholds { efci: Some(0), ..plain }, epd(1))
        );
        assert!(
            may(CellThresholds { capacity: 2, ..plain }, epd(1))
                && !may(CellThresholds { capacity: 1, ..plain }, epd(1))
        );
        let low = CellThresholds { clp: Some(0), ..plain };
        assert!(may(low, epd(1)), "the CLP threshold does not apply to cells with CLP = 0");
        assert!(!CellAdmission::new(low, epd(1)).can_skip_admission(&CellTrain { clp: true, ..generated }));
    }

    #[test]
    fn per_vc_accounting_follows_joins_and_departures() {
        let fba = Fba { threshold: FillLevel::Cells(5), z: Share(Share::WHOLE) };
        let mut admission =
            CellAdmission::new(CellThresholds { capacity: 10, clp: None, efci: None }, policy(&fba));
        admission.joined(3, 2);
        admission.joined(0, 1);
        admission.joined(3, 1);
        let seen = |admission: &CellAdmission, vc| {
            admission.per_vc_count.as_ref().expect("`fba` counts cells by circuit").seen_by(vc)
        };
        assert_eq!((seen(&admission, 3), seen(&admission, 0), seen(&admission, 9)), ((3, 2), (1, 2), (0, 2)));
        admission.left(3);
        assert_eq!((seen(&admission, 3), seen(&admission, 0)), ((1, 1), (0, 1)));
        admission.emptied();
        assert_eq!(seen(&admission, 3), (0, 0));
    }
}
