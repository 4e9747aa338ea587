//! What senders had done when packets were emitted, and when the last packet had left a line that they share with others.

use super::waits::{Others, Sums, Usual, parts_of, sums_of};

/// No stamp.
pub(super) const NO_STAMP: u32 = u32::MAX;

/// What most senders do of a stamp: one line of the caches, since hardly any is still there when it is looked at.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Stamp(Usual);

/// Sums of senders, of packets on their way and of books. A book can take that of a packet which needs it no more, without
/// copying it.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// Of what most senders do; and of the others, once a sender with any has sent a packet.
    usual: Vec<Stamp>,
    others: Vec<Others>,
    /// By packet, its place among them.
    places: Vec<u32>,
}

impl Stamps {
    /// A place for a book's, in which nothing has happened.
    pub(super) fn begin(&mut self) -> u32 {
        if !self.others.is_empty() {
            self.others.push(Others::default());
        }
        self.usual.push(Stamp::default());
        self.usual.len() as u32 - 1
    }

    fn at(&self, place: u32) -> Option<Sums> {
        let usual = self.usual.get(place as usize)?;
        Some(sums_of(&usual.0, self.others.get(place as usize)))
    }

    /// That of a book, or nothing.
    pub(super) fn of_book(&self, place: u32) -> Sums {
        self.at(place).unwrap_or_default()
    }

    /// That of a packet.
    pub(super) fn of_packet(&self, packet: u32) -> Sums {
        self.known(packet).expect("the packet was stamped when it was emitted")
    }

    /// Those of a packet and of a book, if all senders do only what is usual.
    #[inline(always)]
    pub(super) fn usual(&self, packet: u32, book: u32) -> Option<(&Usual, &Usual)> {
        if !self.others.is_empty() {
            return None;
        }
        let place = *self.places.get(packet as usize)? as usize;
        Some((&self.usual.get(place)?.0, &self.usual.get(book as usize)?.0))
    }

    /// That of a packet, if it is stamped.
    pub(super) fn known(&self, packet: u32) -> Option<Sums> {
        self.at(*self.places.get(packet as usize)?)
    }

    /// A packet is emitted.
    #[inline(always)]
    pub(super) fn put(&mut self, packet: u32, (usual, others): (&Usual, Option<&Others>)) {
        let place = self.places.get(packet as usize).copied().unwrap_or(NO_STAMP);
        match self.usual.get_mut(place as usize) {
            Some(own) => {
                own.0 = *usual;
                if others.is_some() || !self.others.is_empty() {
                    self.put_others(place, others);
                }
            }
            None => self.put_first(packet as usize, usual, others),
        }
    }

    #[inline(never)]
    fn put_others(&mut self, place: u32, others: Option<&Others>) {
        if self.others.is_empty() {
            self.others.resize(self.usual.len(), Others::default());
        }
        self.others[place as usize] = others.copied().unwrap_or_default();
    }

    /// The same, the first time that one with this number is stamped.
    #[cold]
    #[inline(never)]
    fn put_first(&mut self, packet: usize, usual: &Usual, others: Option<&Others>) {
        if self.places.len() <= packet {
            self.places.resize(packet + 1, NO_STAMP);
        }
        if self.usual.len() == self.usual.capacity() {
            // Not twice as many: they are large.
            self.usual.reserve_exact((self.usual.len() / 32).max(128));
        }
        let place = self.begin();
        self.places[packet] = place;
        self.usual[place as usize] = Stamp(*usual);
        if others.is_some() {
            self.put_others(place, others);
        }
    }

    /// A book has this stamp from now on.
    pub(super) fn take(&mut self, book: u32, sums: &Sums) {
        if let Some(own) = self.usual.get_mut(book as usize) {
            let (usual, others) = parts_of(sums);
            own.0 = *usual;
            if others.is_some() || !self.others.is_empty() {
                self.put_others(book, others);
            }
        }
    }

    /// A book has the stamp of a packet from now on.
    #[inline(always)]
    pub(super) fn copy(&mut self, book: u32, packet: u32) {
        let place = self.places[packet as usize] as usize;
        let stamp = self.usual[place];
        if let Some(own) = self.usual.get_mut(book as usize) {
            *own = stamp;
            if !self.others.is_empty() {
                self.others[book as usize] = self.others[place];
            }
        }
    }

    /// The same, of a packet that needs it no more.
    #[inline(always)]
    pub(super) fn swap(&mut self, book: &mut u32, packet: u32) {
        std::mem::swap(book, &mut self.places[packet as usize]);
    }

    /// No packet is on its way, and those to come begin anew: only what books have is kept.
    pub(super) fn forget_packets<'a>(&mut self, books: impl Iterator<Item = &'a mut u32>) {
        let mut kept = Self::default();
        for place in books.filter(|place| **place != NO_STAMP) {
            kept.usual.push(self.usual[*place as usize]);
            kept.others.extend(self.others.get(*place as usize));
            *place = kept.usual.len() as u32 - 1;
        }
        *self = kept;
    }
}
