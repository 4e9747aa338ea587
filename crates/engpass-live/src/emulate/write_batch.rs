//! Packets for one host that are written together.

use super::packet::{Change, Packet};
use super::packet_pool::PacketPool;

/// Maximum number of datagrams joined in one run.
pub(super) const MOST: usize = 64;

/// A run of consecutive segments of a GSO packet, or of datagrams with equal headers.
#[derive(Default)]
pub(super) struct WriteBatch {
    /// Slot of the GSO packet, or of the first datagram. Meaningless while `ats` is empty.
    pub(super) slot: u32,
    pub(super) first: u32,
    /// Slots of the datagrams joined to the first one.
    joined: Vec<u32>,
    /// True if the last datagram is shorter than the first one, so that no other can follow in a GSO packet.
    closed: bool,
    pub(super) from: usize,
    pub(super) change: Change,
    /// Instant at which each packet was due, in picoseconds.
    pub(super) ats: Vec<u64>,
}

impl WriteBatch {
    /// Starts a batch with a packet from host `from` that the network has changed by `change`.
    pub(super) fn begin(&mut self, (slot, segment): (u32, u32), from: usize, change: Change) {
        (self.slot, self.first, self.from, self.change) = (slot, segment, from, change);
        self.joined.clear();
        self.closed = false;
    }

    /// Returns whether the packet is the next segment of the batch's GSO packet.
    #[inline]
    pub(super) fn goes_on(&self, slot: u32, segment: u32, change: Change) -> bool {
        !self.ats.is_empty()
            && self.joined.is_empty()
            && self.slot == slot
            && self.first + self.ats.len() as u32 == segment
            && self.change == change
    }

    /// Joins the datagram in this slot to the batch if its headers match. Returns whether it did.
    pub(super) fn join(&mut self, store: &PacketPool, slot: u32, from: usize, change: Change) -> bool {
        let count = self.ats.len();
        // Segments of a GSO packet cannot be joined with other packets.
        if count == 0 || count == MOST || self.closed || count != self.joined.len() + 1 {
            return false;
        }
        let ((first, bytes), (other, theirs)) = (store.get(self.slot), store.get(slot));
        let joins = (self.from, self.change) == (from, change)
            && first.may_be_followed(bytes, count as u32, other, theirs);
        if joins {
            self.joined.push(slot);
            self.closed = other.length < first.length;
        }
        joins
    }

    /// Returns whether the batch consists of joined datagrams.
    pub(super) fn is_joined(&self) -> bool {
        !self.joined.is_empty()
    }

    /// Returns slot and segment of the batch's packet at this index.
    #[inline]
    pub(super) fn part(&self, index: u32) -> (u32, u32) {
        match index.checked_sub(1).and_then(|behind| self.joined.get(behind as usize)) {
            Some(slot) => (*slot, 0),
            None => (self.slot, self.first + index),
        }
    }

    /// Returns the GSO packet that the joined datagrams form.
    pub(super) fn whole(&self, store: &PacketPool) -> Packet {
        let all = [self.slot].into_iter().chain(self.joined.iter().copied());
        let payload = all.map(|slot| {
            let (packet, bytes) = store.get(slot);
            packet.datagram(bytes).len() as u32
        });
        let payload = payload.sum();
        store.get(self.slot).0.joined(payload)
    }
}
