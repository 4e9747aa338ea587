//! Discard policies: what a queue throws away.

pub mod tail;

pub use tail::Tail;

use crate::family::family;

family! {
    /// A discard policy, by its kind.
    Discard, "discard policy" {
        "tail" => Tail(Tail),
    }
}
