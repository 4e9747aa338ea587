//! A host's CPU (docs/model.md, "CPU" and "Interrupts").

use std::collections::VecDeque;

/// What the CPU is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    /// The next fragment of a process.
    Send { flow: usize },
    /// A datagram in the receive buffer.
    Receive { datagram: usize },
    /// A piece of what the application of an endpoint writes.
    Write { endpoint: usize },
    /// The next segment of an endpoint, which is formed when the item begins.
    Output { endpoint: usize },
    /// A segment that has come.
    Input { datagram: usize },
}

impl Item {
    /// It goes before pieces of writes, and interrupts them.
    pub(crate) fn goes_first(self) -> bool {
        matches!(self, Self::Output { .. } | Self::Input { .. })
    }

    pub(crate) fn is_write(self) -> bool {
        matches!(self, Self::Write { .. })
    }

    /// If it costs nothing it is done within the act in which it begins.
    pub(crate) fn may_take_no_turn(self) -> bool {
        matches!(self, Self::Output { .. } | Self::Write { .. })
    }
}

/// A host's CPU: one item at a time, first come first served.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) busy: Option<Busy>,
    /// Items that wait, with what they cost. (That of an output item is not known before it begins.)
    pub(crate) waiting: VecDeque<(u64, Item)>,
    /// Items begun, or gone on with.
    pub(crate) begun: u64,
    /// An item has ended, and what it was for is being done: the next one begins after that.
    pub(crate) ending: bool,
}

#[derive(Debug)]
pub(crate) struct Busy {
    pub(crate) item: Item,
    pub(crate) number: u64,
    pub(crate) ends: u64,
}
