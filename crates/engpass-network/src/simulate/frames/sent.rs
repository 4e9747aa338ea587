//! What a line was given: until it has left it has a place in the queue before the line, until it arrives it is on its way.

use engpass_model::queue::Backlog;

/// No packet: whoever is at the other end knows already what comes.
pub(super) const TOLD: u32 = u32::MAX;

/// A packet that a line was given.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// When its last bit has left.
    left: u64,
    /// Bytes that it takes of the queue.
    bytes: u32,
    /// [`TOLD`] if nothing is to arrive.
    packet: u32,
}

/// What a line was given, in the order in which it leaves: one ring with two beginnings.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct SentOff {
    /// When the last of all leaves.
    last: u64,
    /// Bytes in the queue.
    bytes: u64,
    /// Numbers, modulo 2^32, of the first that may still be in the queue, of the next one, and of the first that is to arrive.
    queued: u32,
    next: u32,
    flying: u32,
    /// The number for which there may be no place.
    full: u32,
    /// A power of two of places.
    places: Box<[Sent]>,
}

impl SentOff {
    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        number as usize & self.places.len().wrapping_sub(1)
    }

    #[inline(always)]
    fn get(&self, number: u32) -> Sent {
        self.places[self.place(number)]
    }

    /// A packet is given to the line, behind all that were before.
    #[inline(always)]
    pub(super) fn push(&mut self, left: u64, bytes: u32, packet: u32) {
        if self.next == self.full {
            self.make_room();
        }
        let place = self.place(self.next);
        self.places[place] = Sent { left, bytes, packet };
        self.bytes += u64::from(bytes);
        self.last = left;
        if packet == TOLD && self.flying == self.next {
            self.flying = self.flying.wrapping_add(1);
        }
        self.next = self.next.wrapping_add(1);
    }

    /// Find how many places there are for more, or make more of them.
    #[inline(never)]
    fn make_room(&mut self) {
        self.find_room();
        if !self.has_place() {
            self.grow();
            self.find_room();
        }
    }

    /// Find how many places there are for more.
    #[inline(always)]
    fn find_room(&mut self) {
        let held = self.next.wrapping_sub(self.queued).max(self.next.wrapping_sub(self.flying));
        self.full = self.next.wrapping_sub(held).wrapping_add(self.places.len() as u32);
    }

    #[cold]
    fn grow(&mut self) {
        let count = (2 * self.places.len()).max(8);
        let held = self.places.len() as u32;
        let mut places = vec![Sent::default(); count].into_boxed_slice();
        for back in 1..=held {
            let number = self.next.wrapping_sub(back);
            places[number as usize & (count - 1)] = self.get(number);
        }
        self.places = places;
    }

    /// Packets come to the line: make places before any has to wait.
    #[inline(always)]
    pub(super) fn make_first_places(&mut self) {
        if self.places.is_empty() {
            self.make_room();
        }
    }

    /// Whether there is surely a place for one more.
    #[inline(always)]
    pub(super) fn has_place(&self) -> bool {
        self.next != self.full
    }

    /// Whether what is in the queue at `now` leaves room, as `fits` says of it. What has left is only forgotten where that matters.
    #[inline(always)]
    pub(super) fn has_room(&mut self, now: u64, fits: impl Fn(Backlog) -> bool) -> bool {
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

    /// Forget of the queue the first one, if it has left by `now`: whether that is so.
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

    /// Forget of the queue all: it has left.
    #[inline(always)]
    pub(super) fn release_all(&mut self) {
        (self.queued, self.bytes) = (self.next, 0);
    }

    /// Forget of the queue what has left by `now`.
    #[inline(never)]
    pub(super) fn release(&mut self, now: u64) {
        if now >= self.last {
            self.release_all();
        } else {
            while self.release_first(now) {}
        }
        self.find_room();
    }

    /// What is in the queue, by what was released.
    #[inline(always)]
    pub(super) fn queue(&self) -> Backlog {
        Backlog { bytes: self.bytes, packets: self.next.wrapping_sub(self.queued).into() }
    }

    /// When the last one of the queue has left, if it is empty, by what was released.
    pub(super) fn idle_since(&self) -> Option<u64> {
        (self.queued == self.next).then_some(self.last)
    }

    /// Bytes of what has not left at `at`.
    pub(super) fn backlog(&self, at: u64) -> u64 {
        let queued =
            (0..self.next.wrapping_sub(self.queued)).map(|place| self.get(self.queued.wrapping_add(place)));
        queued.filter(|sent| sent.left > at).map(|sent| u64::from(sent.bytes)).sum()
    }

    /// When the first one of the queue leaves.
    pub(super) fn first_leaves(&self) -> Option<u64> {
        (self.queued != self.next).then(|| self.get(self.queued).left)
    }

    /// The packet that arrives next has arrived: which one, and when the one behind it has left.
    #[inline(always)]
    pub(super) fn land(&mut self) -> (u32, Option<u64>) {
        let landed = self.get(self.flying).packet;
        loop {
            self.flying = self.flying.wrapping_add(1);
            if self.flying == self.next {
                return (landed, None);
            }
            let next = self.get(self.flying);
            if next.packet != TOLD {
                return (landed, Some(next.left));
            }
        }
    }
}
