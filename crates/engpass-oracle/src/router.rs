//! Routers (docs/model.md, "Ethernet switches", "Forwarding" and "Engines of routers").

use std::collections::VecDeque;

/// An engine of a router: the route processor, or a line card.
#[derive(Debug, Default)]
pub(crate) struct RouterEngine {
    /// Packets that wait for it, the one in work in front.
    pub(crate) waiting: VecDeque<Waiting>,
    /// When it began with the packet in work.
    pub(crate) since: Option<u64>,
    /// Busy time in the measurement window before that, in picoseconds.
    pub(crate) worked: u64,
}

/// A packet that waits for an engine, or is in work.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) packet: usize,
    /// How long the engine works on it, in picoseconds.
    pub(crate) time: u64,
    /// The work of the route processor that follows, if this engine hands the packet over.
    pub(crate) then: Option<Job>,
}

/// Work of an engine on a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// 0 for the route processor, else the number of the card, from 1.
    pub(crate) engine: usize,
    /// Time of the packet without the interrupt, in picoseconds.
    pub(crate) time: u64,
    /// Additional time of a packet that finds the engine idle, in picoseconds.
    pub(crate) interrupt: u64,
}
