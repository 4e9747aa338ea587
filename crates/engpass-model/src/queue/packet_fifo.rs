//! FIFO store of packets, used by the schedulers.

use std::collections::VecDeque;

use super::{Backlog, Packet};
use crate::time::Time;

/// A queued packet and its arrival time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) packet: Packet,
    pub(super) arrived: Time,
}

/// First in, first out. Grows on demand and never frees memory.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    held: VecDeque<Held>,
    backlog: Backlog,
}

impl Fifo {
    pub(super) fn push(&mut self, now: Time, packet: Packet) {
        self.held.push_back(Held { packet, arrived: now });
        self.backlog.add(packet.bytes);
    }

    /// Removes and returns the oldest packet.
    pub(super) fn pop(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.backlog.remove(held.packet.bytes);
        Some(held)
    }

    /// Removes and returns the newest packet.
    pub(super) fn pop_last(&mut self) -> Option<Held> {
        let held = self.held.pop_back()?;
        self.backlog.remove(held.packet.bytes);
        Some(held)
    }

    pub(super) fn head(&self) -> Option<&Packet> {
        self.held.front().map(|held| &held.packet)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }
}
