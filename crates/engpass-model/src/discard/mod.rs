//! Discard policies: what a queue throws away.
//!
//! The queue counts and keeps, a policy decides: it sees the queue and the cell and returns whether the cell may join.

pub mod epd;
pub mod epd_ppd;
pub mod fba;
mod pdus;
pub mod ppd;
pub mod random_epd;
pub mod selective;
pub mod tail;

pub use epd::Epd;
pub use epd_ppd::EpdPpd;
pub use fba::Fba;
pub use ppd::Ppd;
pub use random_epd::RandomEpd;
pub use selective::SelectiveDrop;
pub use tail::Tail;

use crate::complaint::RangeErrors;
use crate::family::family;
use crate::random::Stream;
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

/// A queue as a policy sees it when a cell arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueView {
    /// Cells in it, the one being sent included.
    pub queued: u64,
    /// Cells it can hold.
    pub capacity: u64,
    /// The arriving cell fits if there are fewer cells than this: the capacity, or less for a cell of low priority.
    pub limit: u64,
    /// Cells in it of the arriving cell's circuit; 0 unless the policy [counts circuits](DiscardPolicy::counts_circuits).
    pub own: u64,
    /// Circuits with cells in it; 0 unless the policy counts circuits.
    pub active: u64,
}

impl QueueView {
    /// Whether the arriving cell fits.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.queued < self.limit
    }
}

/// A cell as a policy sees it. A switch knows PDUs only by their ends: the first cell of a PDU is the one that comes after an end.
#[derive(Clone, Copy, Debug)]
pub struct CellView {
    /// Its circuit, one direction of it.
    pub vc: u32,
    /// Whether it ends a PDU (AUU = 1).
    pub last: bool,
}

/// Cells of one circuit, all of which find room.
#[derive(Clone, Copy, Debug)]
pub struct TrainView {
    /// Their circuit, one direction of it.
    pub vc: u32,
    /// None of them finds more cells than this in the queue.
    pub most: u64,
    /// Whether the last of them ends a PDU. (Others may, too.)
    pub ends: bool,
}

/// The settings of a discard policy.
pub trait DiscardConfig {
    /// The policy of one new queue that can hold `capacity` cells, which draws from `random` if it draws at all.
    fn policy(&self, capacity: u64, random: Stream) -> Box<dyn DiscardPolicy>;

    /// What is wrong with the values, for queues that can hold `capacity` cells.
    fn check(&self, _capacity: u64, _complaints: &mut RangeErrors) {}
}

/// Decides whether a cell may join a queue. Every queue has its own.
pub trait DiscardPolicy: Send {
    /// Whether `cell` joins. It is asked for every cell, in the order of arrival; a cell that finds no room is lost whatever the
    /// answer.
    fn admits(&mut self, queue: QueueView, cell: CellView) -> bool;

    /// Whether every cell that finds room joins, always: then the policy is asked only where the queue is short of room, and
    /// whole trains may pass without it.
    fn only_when_full(&self) -> bool {
        false
    }

    /// Whether every cell of `train` joins. With a yes they have joined: the policy has taken note of them and is not asked
    /// again. With a no nothing has changed, and it is asked for every cell.
    fn takes_train(&mut self, _train: TrainView) -> bool {
        self.only_when_full()
    }

    /// Whether it wants to know whose cells are in the queue.
    fn counts_circuits(&self) -> bool {
        false
    }
}

impl Discard {
    /// What is wrong with the values, for queues that can hold `capacity` cells; paths begin with `discard`.
    pub fn check(&self, capacity: u64, complaints: &mut RangeErrors) {
        let mut own = RangeErrors::default();
        self.config().check(capacity, &mut own);
        complaints.under(&["discard", self.kind()], own);
    }
}

/// A threshold if the file gives none: 0.9 of the buffer, as in R. Goyal, R. Jain, S. Kalyanaraman, S. Fahmy and B. Vandalore,
/// "Improving the Performance of TCP over the ATM-UBR Service", Computer Communications 21(10), 1998 (quoted from memory: an
/// estimate). A rule of thumb for EPD is the buffer less one to three PDUs of the largest size.
fn default_threshold() -> FillLevel {
    FillLevel::Share(Share(Share::WHOLE / 10 * 9))
}

/// Complain about a threshold that is never exceeded.
fn check_threshold(threshold: FillLevel, capacity: u64, complaints: &mut RangeErrors) {
    complaints.below_capacity(&["threshold"], threshold, capacity);
}

#[cfg(test)]
mod testing {
    use super::{Discard, DiscardPolicy, QueueView};
    use crate::random::Stream;

    /// The policy of `kind` with a config in JSON, for a queue of so many places.
    pub(super) fn policy(kind: &str, config: &str, capacity: u64) -> Box<dyn DiscardPolicy> {
        let mut config = serde_json::Deserializer::from_str(config);
        let discard =
            Discard::read(kind, &mut config).expect("the kind is known").expect("the config is right");
        discard.config().policy(capacity, Stream::new(1, "test"))
    }

    /// A queue with 10 places, this many of them taken.
    pub(super) fn found(queued: u64) -> QueueView {
        QueueView { queued, capacity: 10, limit: 10, own: 0, active: 0 }
    }
}
