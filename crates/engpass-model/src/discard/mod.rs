//! Discard policies of cell queues.
//!
//! The queue counts and stores cells. The policy sees the queue and an arriving cell and decides whether the cell joins.

pub mod epd;
pub mod epd_ppd;
pub mod fba;
mod pdu_state;
pub mod ppd;
pub mod random_epd;
pub mod selective;
pub mod tail_drop;

pub use epd::Epd;
pub use epd_ppd::EpdPpd;
pub use fba::Fba;
pub use ppd::Ppd;
pub use random_epd::RandomEpd;
pub use selective::SelectiveDrop;
pub use tail_drop::Tail;

use crate::component_family::family;
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::unit::{FillLevel, Share};

family! {
    /// A discard policy, by its kind.
    Discard, "discard policy": DiscardConfig {
        "tail" => Tail(Tail),
        "ppd" => Ppd(Ppd),
        "epd" => Epd(Epd),
        "epd-ppd" => EpdPpd(EpdPpd),
        "selective-drop" => SelectiveDrop(SelectiveDrop),
        "fba" => Fba(Fba),
        "random-epd" => RandomEpd(RandomEpd),
    }
}

/// A cell queue as a policy sees it when a cell arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueView {
    /// Cells in the queue, the one in transmission included.
    pub queued: u64,
    /// Capacity of the queue in cells.
    pub capacity: u64,
    /// The arriving cell fits if `queued` is below this: the capacity, or less for a low-priority cell.
    pub limit: u64,
    /// Cells of the arriving cell's circuit in the queue; 0 unless the policy [counts circuits](DiscardPolicy::needs_per_vc_count).
    pub own: u64,
    /// Number of circuits with cells in the queue; 0 unless the policy counts circuits.
    pub active: u64,
}

impl QueueView {
    /// Whether the arriving cell fits.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.queued < self.limit
    }
}

/// A cell as a policy sees it. A switch recognizes only the end of a PDU, so the first cell of a PDU is the one that follows an end.
#[derive(Clone, Copy, Debug)]
pub struct CellView {
    /// Circuit direction of the cell.
    pub vc: u32,
    /// Whether the cell ends a PDU (AUU = 1).
    pub last: bool,
}

/// A cell train of one circuit. The queue has room for all of its cells.
#[derive(Clone, Copy, Debug)]
pub struct TrainView {
    /// Circuit direction of the train.
    pub vc: u32,
    /// Largest queue length, in cells, that a cell of the train finds on arrival.
    pub most: u64,
    /// Whether the last cell of the train ends a PDU. Other cells may end PDUs, too.
    pub ends: bool,
}

/// The settings of a discard policy.
pub trait DiscardConfig {
    /// Creates the policy of one queue with a capacity of `capacity` cells. Random policies draw from `random`.
    fn policy(&self, capacity: u64, random: Stream) -> Box<dyn DiscardPolicy>;

    /// Adds an error for every invalid value, for queues with a capacity of `capacity` cells.
    fn check(&self, _capacity: u64, _complaints: &mut RangeErrors) {}

    /// Returns the number of cells in the queue above which no PDU may begin, and the key that gives it. `None` if a PDU may begin in any
    /// queue with room.
    fn refuses_above(&self, _capacity: u64) -> Option<(&'static str, u64)> {
        None
    }

    /// Whether its policies draw random numbers, so that their decisions depend on the seed.
    fn draws(&self) -> bool {
        false
    }
}

/// Decides whether a cell may join a queue. Every queue has its own policy state.
pub trait DiscardPolicy: Send {
    /// Whether `cell` joins. Called in the order of arrival for every cell that the queue decides alone, also for one without room, which is dropped
    /// regardless of the result. Not called for cells that join as a train ([`try_admit_train`](Self::try_admit_train)), nor for those that a queue
    /// takes or loses in bulk ([`drops_only_when_full`](Self::drops_only_when_full)).
    fn admits(&mut self, queue: QueueView, cell: CellView) -> bool;

    /// Whether the policy accepts every cell that fits, always, and draws no number. A queue without thresholds may then take cells in bulk, and lose them
    /// in bulk when it is full, without calling the policy. It need not: a policed circuit, and strict priority outside its fast paths, call
    /// [`admits`](Self::admits) for every cell all the same.
    fn drops_only_when_full(&self) -> bool {
        false
    }

    /// Accepts or declines a train as a whole; the queue has room for all of it. If true, all its cells join, the state is updated, and `admits` is not
    /// called for them. If false, the state is unchanged, and the queue decides about the cells in another way.
    fn try_admit_train(&mut self, _train: TrainView) -> bool {
        self.drops_only_when_full()
    }

    /// Whether the policy needs per-VC accounting: [`QueueView::own`] and [`QueueView::active`].
    fn needs_per_vc_count(&self) -> bool {
        false
    }
}

impl Discard {
    /// Adds an error for every invalid value, for queues with a capacity of `capacity` cells. Paths begin with `discard`.
    pub fn check(&self, capacity: u64, errors: &mut RangeErrors) {
        let mut own = RangeErrors::default();
        self.config().check(capacity, &mut own);
        errors.under(&["discard", self.kind()], own);
    }
}

/// Default threshold: 0.9 of the buffer, as in R. Goyal, R. Jain, S. Kalyanaraman, S. Fahmy and B. Vandalore, "Improving the Performance of
/// TCP over the ATM-UBR Service", Computer Communications 21(10), 1998 (quoted from memory: an estimate). A rule of thumb for EPD is the
/// buffer size less one to three PDUs of maximum size.
fn default_threshold() -> FillLevel {
    FillLevel::Share(Share(Share::WHOLE / 10 * 9))
}

/// Adds an error for a threshold that the queue can never exceed.
fn check_threshold(threshold: FillLevel, capacity: u64, errors: &mut RangeErrors) {
    errors.below_capacity(&["threshold"], threshold, capacity);
}

#[cfg(test)]
mod tests {
    use super::testing::policy_with;
    use super::{CellView, Discard, QueueView};
    use crate::random::Stream;

    #[test]
    fn only_policies_that_draw_depend_on_the_seed() {
        for kind in Discard::KINDS {
            let made = [1, 2].map(|seed| policy_with(kind, "{}", 100, Stream::new(seed, "test")));
            let [(config, mut one), (_, mut other)] = made;
            let mut numbers = Stream::new(3, "cells");
            let differ = (0..10_000).filter(|_| {
                let queued = numbers.below(101);
                let queue = QueueView {
                    queued,
                    capacity: 100,
                    limit: 100,
                    own: numbers.below(queued + 1),
                    active: 2,
                };
                let cell = CellView { vc: numbers.below(3) as u32, last: numbers.below(4) == 0 };
                one.admits(queue, cell) != other.admits(queue, cell)
            });
            assert_eq!(differ.count() > 0, config.config().draws(), "{kind}");
        }
    }
}

#[cfg(test)]
mod testing {
    use super::{Discard, DiscardPolicy, QueueView};
    use crate::random::Stream;

    /// The policy of `kind` with a config in JSON, for a queue with this capacity.
    pub(super) fn policy(kind: &str, config: &str, capacity: u64) -> Box<dyn DiscardPolicy> {
        policy_with(kind, config, capacity, Stream::new(1, "test")).1
    }

    /// `policy`, with its settings and with this random stream.
    pub(super) fn policy_with(
        kind: &str,
        config: &str,
        capacity: u64,
        random: Stream,
    ) -> (Discard, Box<dyn DiscardPolicy>) {
        let mut config = serde_json::Deserializer::from_str(config);
        let discard =
            Discard::read(kind, &mut config).expect("the kind is known").expect("the config is valid");
        let policy = discard.config().policy(capacity, random);
        (discard, policy)
    }

    /// A queue with a capacity of 10 cells, of which `queued` are used.
    pub(super) fn found(queued: u64) -> QueueView {
        QueueView { queued, capacity: 10, limit: 10, own: 0, active: 0 }
    }
}
