//! The packets that a port has scheduled: each counts in the queue until it has left, and is on the line until it arrives.

use engpass_model::queue::Backlog;

/// Packet number of an entry whose packet was handed ahead (lookahead), so that no arrival follows.
pub(crate) const DELIVERED_AHEAD: u32 = u32::MAX;

/// A scheduled packet.
#[derive(Clone, Copy, Debug, Default)]
struct TransmitEntry {
    /// Instant at which the last bit leaves, in picoseconds.
    left: u64,
    /// Bytes that the packet takes in the queue.
    bytes: u32,
    /// Packet number, or [`DELIVERED_AHEAD`].
    packet: u32,
}

/// Scheduled packets in the order of departure: a ring buffer with two heads, one for the queue and one for arrivals.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct TransmitRing {
    /// Instant at which the last packet leaves.
    last: u64,
    /// Bytes in the queue, as of the last release.
    bytes: u64,
    /// Sequence numbers, modulo 2^32: of the first packet that may still be queued, of the next packet to be added, and of the first one still to arrive.
    queued: u32,
    next: u32,
    in_flight: u32,
    /// First sequence number for which the ring may have no free entry.
    full: u32,
    /// The ring; its length is a power of two.
    entries: Box<[TransmitEntry]>,
}

impl TransmitRing {
    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        number as usize & self.entries.len().wrapping_sub(1)
    }

    #[inline(always)]
    fn get(&self, number: u32) -> TransmitEntry {
        self.entries[self.place(number)]
    }

    /// Appends a packet that leaves at `left`.
    #[inline(always)]
    pub(crate) fn push(&mut self, left: u64, bytes: u32, packet: u32) {
        if self.next == self.full {
            self.make_room();
        }
        let place = self.place(self.next);
        self.entries[place] = TransmitEntry { left, bytes, packet };
        self.bytes += u64::from(bytes);
        self.last = left;
        if packet == DELIVERED_AHEAD && self.in_flight == self.next {
            self.in_flight = self.in_flight.wrapping_add(1);
        }
        self.next = self.next.wrapping_add(1);
    }

    /// Recomputes how many entries are free, and enlarges the ring if none is.
    #[inline(never)]
    fn make_room(&mut self) {
        self.find_room();
        if !self.has_place() {
            self.grow();
            self.find_room();
        }
    }

    /// Recomputes how many entries are free.
    #[inline(always)]
    fn find_room(&mut self) {
        let held = self.next.wrapping_sub(self.queued).max(self.next.wrapping_sub(self.in_flight));
        self.full = self.next.wrapping_sub(held).wrapping_add(self.entries.len() as u32);
    }

    #[cold]
    fn grow(&mut self) {
        let count = (2 * self.entries.len()).max(8);
        let held = self.entries.len() as u32;
        let mut entries = vec![TransmitEntry::default(); count].into_boxed_slice();
        for back in 1..=held {
            let number = self.next.wrapping_sub(back);
            entries[number as usize & (count - 1)] = self.get(number);
        }
        self.entries = entries;
    }

    /// Allocates the ring when the first packet arrives.
    #[inline(always)]
    pub(crate) fn make_first_places(&mut self) {
        if self.entries.is_empty() {
            self.make_room();
        }
    }

    /// Returns true if the ring surely has a free entry.
    #[inline(always)]
    pub(crate) fn has_place(&self) -> bool {
        self.next != self.full
    }

    /// Returns true if the queue at `now` satisfies `fits`. Removes packets that have left only as far as needed.
    #[inline(always)]
    pub(crate) fn has_room(&mut self, now: u64, fits: impl Fn(Backlog) -> bool) -> bool {
        if !self.has_place() {
            self.release(now);
        }
        while !fits(self.queue()) {
            if !self.release_first(now) {
                return false;
            }
        }
        true
    }

    /// Removes the first packet from the queue if it has left by `now`. Returns true if it was removed.
    #[inline(always)]
    fn release_first(&mut self, now: u64) -> bool {
        if self.queued == self.next {
            return false;
        }
        let first = self.get(self.queued);
        let gone = first.left <= now;
        if gone {
            self.queued = self.queued.wrapping_add(1);
            self.bytes -= u64::from(first.bytes);
        }
        gone
    }

    /// Removes all packets from the queue, because all have left.
    #[inline(always)]
    pub(crate) fn release_all(&mut self) {
        (self.queued, self.bytes) = (self.next, 0);
    }

    /// Removes the packets that have left by `now` from the queue.
    #[inline(never)]
    pub(crate) fn release(&mut self, now: u64) {
        if now >= self.last {
            self.release_all();
        } else {
            while self.release_first(now) {}
        }
        self.find_room();
    }

    /// Returns the queue, including packets that have left since the last release.
    #[inline(always)]
    pub(crate) fn queue(&self) -> Backlog {
        Backlog { bytes: self.bytes, packets: self.next.wrapping_sub(self.queued).into() }
    }

    /// Returns the instant since which the queue is empty; `None` if it is not, as of the last release.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        (self.queued == self.next).then_some(self.last)
    }

    /// Returns the queue at the instant `at`: the packets that have not left by then.
    pub(crate) fn backlog(&self, at: u64) -> Backlog {
        let queued =
            (0..self.next.wrapping_sub(self.queued)).map(|place| self.get(self.queued.wrapping_add(place)));
        let queued = queued.filter(|sent| sent.left > at);
        queued.fold(Backlog::default(), |queue, sent| queue.with(sent.bytes))
    }

    /// Returns the instant at which the first packet of the queue leaves; `None` if the queue is empty.
    pub(crate) fn first_leaves(&self) -> Option<u64> {
        (self.queued != self.next).then(|| self.get(self.queued).left)
    }

    /// Removes the packet that arrives next. Returns its number, and the departure of the packet that arrives after it, if there is one.
    #[inline(always)]
    pub(crate) fn pop_arrival(&mut self) -> (u32, Option<u64>) {
        let landed = self.get(self.in_flight).packet;
        loop {
            self.in_flight = self.in_flight.wrapping_add(1);
            if self.in_flight == self.next {
                return (landed, None);
            }
            let next = self.get(self.in_flight);
            if next.packet != DELIVERED_AHEAD {
                return (landed, Some(next.left));
            }
        }
    }
}
