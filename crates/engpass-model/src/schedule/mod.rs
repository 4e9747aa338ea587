//! Schedulers: which cell an output port sends next.

pub mod fifo;
pub mod priority;

pub use fifo::Fifo;
pub use priority::Priority;

use crate::component_family::family;

family! {
    /// A scheduler, by its kind.
    Schedule, "scheduler" {
        "priority" => Priority(Priority),
        "fifo" => Fifo(Fifo),
    }
}
