//! Copies of injected packets to groups that are still to be made.

use std::collections::BTreeMap;

/// A pending copy, which has not been made yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingCopy {
    pub(super) datagram: u32,
    /// Number of lines after which the packet is copied.
    pub(super) hop: u32,
    pub(super) route: u32,
}

/// Copies of datagrams in the network that have not been made.
#[derive(Debug, Default)]
pub(crate) struct PendingCopies {
    /// By the datagram of which they are made.
    pub(super) pending: BTreeMap<u32, Vec<PendingCopy>>,
    /// By the datagram of their root, until its host has handed that over; they count as sent then.
    pub(super) unsent: BTreeMap<u32, Vec<u32>>,
}

impl PendingCopies {
    /// Returns true if no packet in the network still has to be copied.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Removes and returns the copies of a datagram that are made after `hop` lines, with their routes.
    pub(crate) fn take_at(&mut self, datagram: u32, hop: u32) -> Vec<(u32, u32)> {
        let Some(pending) = self.pending.get_mut(&datagram) else { return Vec::new() };
        let here = pending
            .extract_if(.., |pending| pending.hop == hop)
            .map(|pending| (pending.datagram, pending.route))
            .collect();
        if pending.is_empty() {
            self.pending.remove(&datagram);
        }
        here
    }
}
