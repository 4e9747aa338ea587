//! Discard policies: what a queue throws away.
//!
//! The queue counts and keeps, a policy decides: it sees the queue and the cell and returns whether the cell may join.

pub mod ppd;
pub mod tail;

pub use ppd::Ppd;
pub use tail::Tail;

use crate::family::family;

family! {
    /// A discard policy, by its kind.
    Discard, "discard policy": DiscardConfig {
        "tail" => Tail(Tail),
        "ppd" => Ppd(Ppd),
    }
}

/// A queue as a policy sees it when a cell arrives.
#[derive(Clone, Copy, Debug)]
pub struct QueueView {
    /// Cells in it, the one being sent included.
    pub queued: u64,
    /// Cells it can hold.
    pub capacity: u64,
}

impl QueueView {
    /// Whether one more cell fits.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.queued < self.capacity
    }
}

/// A cell as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct CellView {
    /// Its circuit, one direction of it.
    pub vc: u32,
    /// Whether it begins a frame.
    pub first: bool,
    /// Whether it ends a frame (AUU = 1).
    pub last: bool,
}

/// The settings of a discard policy.
pub trait DiscardConfig {
    /// The policy of one new queue.
    fn policy(&self) -> Box<dyn DiscardPolicy>;
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

    /// Whether, as things stand, every cell that finds room joins and leaves the policy as it is: then whole trains that find room
    /// may pass without it.
    fn takes_what_fits(&self) -> bool {
        self.only_when_full()
    }
}

impl Discard {
    /// The policy of a new queue.
    pub fn policy(&self) -> Box<dyn DiscardPolicy> {
        self.config().policy()
    }
}
