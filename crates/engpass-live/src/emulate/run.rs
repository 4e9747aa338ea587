//! Packets for one host that go into one write.

use super::packet::{Change, Packet};
use super::store::PacketPool;

/// The most datagrams that are joined.
pub(super) const MOST: usize = 64;

/// A run of segments of a super-packet, or of datagrams alike.
#[derive(Default)]
pub(super) struct WriteBatch {
    /// Of what they are parts, or the first datagram; none of `ats` where there is nothing.
    pub(super) slot: u32,
    pub(super) first: u32,
    /// Datagrams of a packet each that are joined to the first one.
    joined: Vec<u32>,
    /// No datagram can be joined behind one that is shorter than the first one.
    closed: bool,
    pub(super) from: usize,
    pub(super) change: Change,
    /// When each was due.
    pub(super) ats: Vec<u64>,
}

impl WriteBatch {
    /// The packet for the host comes from that one, and with that change.
    pub(super) fn begin(&mut self, (slot, segment): (u32, u32), from: usize, change: Change) {
        (self.slot, self.first, self.from, self.change) = (slot, segment, from, change);
        self.joined.clear();
        self.closed = false;
    }

    /// Whether the packet is the segment behind the last one here.
    #[inline]
    pub(super) fn goes_on(&self, slot: u32, segment: u32, change: Change) -> bool {
        !self.ats.is_empty()
            && self.joined.is_empty()
            && self.slot == slot
            && self.first + self.ats.len() as u32 == segment
            && self.change == change
    }

    /// Join the datagram in that slot to those that are here, if it is like them; whether it is.
    pub(super) fn join(&mut self, store: &PacketPool, slot: u32, from: usize, change: Change) -> bool {
        let count = self.ats.len();
        // Segments of a super-packet are joined already.
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

    /// Whether it is datagrams, not segments.
    pub(super) fn is_joined(&self) -> bool {
        !self.joined.is_empty()
    }

    /// Slot and segment of one of the packets here.
    #[inline]
    pub(super) fn part(&self, index: u32) -> (u32, u32) {
        match index.checked_sub(1).and_then(|behind| self.joined.get(behind as usize)) {
            Some(slot) => (*slot, 0),
            None => (self.slot, self.first + index),
        }
    }

    /// What all datagrams here make together.
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
