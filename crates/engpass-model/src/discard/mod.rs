//! Discard policies: what a queue throws away.
//!
//! The queue counts and keeps, a policy decides: it sees the queue and the cell and returns whether the cell may join.

pub mod tail;

pub use tail::Tail;

use crate::family::family;

family! {
    /// A discard policy, by its kind.
    Discard, "discard policy" {
        "tail" => Tail(Tail),
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

/// A cell as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct CellView {
    /// Its circuit.
    pub vc: u32,
    /// Whether it begins a frame.
    pub first: bool,
    /// Whether it ends a frame (AUU = 1).
    pub last: bool,
}

/// Decides whether a cell may join a queue.
pub trait DiscardPolicy: Send {
    /// Whether `cell` joins. A full queue cannot take it whatever the answer.
    fn admits(&mut self, queue: QueueView, cell: CellView) -> bool;

    /// Whether every cell that finds room joins, so that trains need not be looked at cell by cell.
    fn only_when_full(&self) -> bool {
        false
    }
}

impl Discard {
    /// The policy of a new queue.
    pub fn policy(&self) -> Box<dyn DiscardPolicy> {
        match self {
            Self::Tail(config) => Box::new(config.clone()),
        }
    }
}
