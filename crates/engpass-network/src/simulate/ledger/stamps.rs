//! What senders had done when packets were emitted, and when the last packet had left a line that they share with others.

use super::waits::{Sums, Wait};

/// No stamp.
pub(super) const NO_STAMP: u32 = u32::MAX;

/// Sums of senders, of packets on their way and of books. A book can take that of a packet which needs it no more, without
/// copying it.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    sums: Vec<Sums>,
    /// By packet, its place among them.
    places: Vec<u32>,
}

impl Stamps {
    /// A place for a book's, in which nothing has happened.
    pub(super) fn begin(&mut self) -> u32 {
        self.sums.push([0; Wait::COUNT]);
        self.sums.len() as u32 - 1
    }

    /// That of a book, or nothing.
    pub(super) fn of_book(&self, place: u32) -> &Sums {
        self.sums.get(place as usize).unwrap_or(&[0; Wait::COUNT])
    }

    /// That of a packet.
    #[inline(always)]
    pub(super) fn of_packet(&self, packet: u32) -> &Sums {
        &self.sums[self.places[packet as usize] as usize]
    }

    /// A packet is emitted.
    #[inline(always)]
    pub(super) fn put(&mut self, packet: u32, sums: &Sums) {
        let place = self.places.get(packet as usize).copied().unwrap_or(NO_STAMP);
        match self.sums.get_mut(place as usize) {
            Some(own) => *own = *sums,
            None => self.put_first(packet as usize, sums),
        }
    }

    /// The same, the first time that one with this number is stamped.
    #[cold]
    #[inline(never)]
    fn put_first(&mut self, packet: usize, sums: &Sums) {
        if self.places.len() <= packet {
            self.places.resize(packet + 1, NO_STAMP);
        }
        if self.sums.len() == self.sums.capacity() {
            // Not twice as many: they are large.
            self.sums.reserve_exact((self.sums.len() / 32).max(64));
        }
        self.places[packet] = self.begin();
        self.sums[self.places[packet] as usize] = *sums;
    }

    /// That of a packet, if it is stamped.
    pub(super) fn known(&self, packet: u32) -> Option<Sums> {
        let place = self.places.get(packet as usize)?;
        self.sums.get(*place as usize).copied()
    }

    /// A book has the stamp of a packet from now on.
    #[inline(always)]
    pub(super) fn take(&mut self, book: u32, sums: &Sums) {
        if let Some(own) = self.sums.get_mut(book as usize) {
            *own = *sums;
        }
    }

    /// The same, of a packet that needs it no more.
    #[inline(always)]
    pub(super) fn swap(&mut self, book: &mut u32, packet: u32) {
        std::mem::swap(book, &mut self.places[packet as usize]);
    }

    /// No packet is on its way, and those to come begin anew: only what books have is kept.
    pub(super) fn forget_packets<'a>(&mut self, books: impl Iterator<Item = &'a mut u32>) {
        let mut kept = Vec::new();
        for place in books.filter(|place| **place != NO_STAMP) {
            kept.push(self.sums[*place as usize]);
            *place = kept.len() as u32 - 1;
        }
        *self = Self { sums: kept, places: Vec::new() };
    }
}
