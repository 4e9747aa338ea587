//! Queue disciplines of frame ports: what an Ethernet switch or a router keeps, loses and sends next.

pub mod drop_tail;

pub use drop_tail::DropTail;

use crate::complaint::Complaints;
use crate::family::family;

family! {
    /// A queue discipline, by its kind.
    Queue, "queue discipline" {
        "drop-tail" => DropTail(DropTail),
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail(DropTail::default())
    }
}

impl Queue {
    /// What is wrong with the values; complaints are below the `queue` of the table at hand.
    pub fn check_below(&self, complaints: &mut Complaints) {
        let mut own = Complaints::default();
        self.check(&mut own);
        complaints.below(&["queue", self.kind()], own);
    }

    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        match self {
            Self::DropTail(config) => config.check(complaints),
        }
    }
}
