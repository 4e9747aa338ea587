//! A host's CPU (docs/model.md, "CPU" and "Interrupts").

use std::collections::VecDeque;

/// An item of work for the CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    /// The next fragment of a process.
    Send { flow: usize },
    /// A datagram in the receive buffer.
    Receive { datagram: usize },
    /// A piece of a write of the application of an endpoint.
    Write { endpoint: usize },
    /// The next segment of an endpoint. It is formed when the CPU begins the item.
    Output { endpoint: usize },
    /// An arrived segment.
    Input { datagram: usize },
}

impl Item {
    /// Returns true if the item has precedence over pieces of writes and interrupts them.
    pub(crate) fn goes_first(self) -> bool {
        matches!(self, Self::Output { .. } | Self::Input { .. })
    }

    pub(crate) fn is_write(self) -> bool {
        matches!(self, Self::Write { .. })
    }

    /// Returns true if the item, at zero cost, is done within the event in which it begins.
    pub(crate) fn may_take_no_turn(self) -> bool {
        matches!(self, Self::Output { .. } | Self::Write { .. })
    }
}

/// A host's CPU: one item at a time, first come first served.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) busy: Option<Busy>,
    /// Waiting items with their costs in picoseconds. The cost of an output item is unknown until it begins.
    pub(crate) waiting: VecDeque<(u64, Item)>,
    /// Number of items begun or resumed.
    pub(crate) begun: u64,
    /// Busy time in the measurement window before the item in work, in picoseconds.
    pub(crate) worked: u64,
    /// True while the effects of an ended item are processed. The next item begins after that.
    pub(crate) ending: bool,
}

#[derive(Debug)]
pub(crate) struct Busy {
    pub(crate) item: Item,
    pub(crate) number: u64,
    /// Begin of the item, or of its rest.
    pub(crate) since: u64,
    pub(crate) ends: u64,
}
