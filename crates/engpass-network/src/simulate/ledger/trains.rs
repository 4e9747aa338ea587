//! Books of trains: datagrams alike, of one packet each, that share what is written down of the one line that carries them.

use super::{Book, Cargo, Fate, Ledger, Load, User, book_all, booked, layers_of};
use crate::simulate::fabric::{Datagram, Fabric};

impl Fabric {
    /// As [`Self::settle_books`], for each of the datagrams of a train.
    pub(in crate::simulate) fn settle_train(&mut self, datagram: u32, open: bool) {
        let Datagram { flow, counted, header, bytes, fragments, arrived, .. } = self.datagrams[datagram];
        let cargo = if counted { Cargo::Segment } else { Cargo::Control };
        let load = Load { cargo, header, bytes };
        let waiting = self.ledger.later.as_ref().map_or(0, |later| later.waiting(datagram));
        let arrived = if open { arrived } else { fragments };
        self.ledger.settle_train(flow, load, datagram, fragments - waiting, arrived);
    }
}

impl Ledger {
    /// Whether several senders use the line of a port.
    pub(in crate::simulate) fn is_shared(&self, port: usize) -> bool {
        self.lines[port].user == User::Shared
    }

    /// The fate of datagrams of one frame each is known that share what is written down of their one line: so many of them have left it, the
    /// last of these in the window, and so many have arrived.
    fn settle_train(&mut self, flow: u32, load: Load, datagram: u32, left: u32, arrived: u32) {
        let place = datagram as usize * self.stride;
        let sum = self.carried[place];
        if !self.on || sum == 0 {
            return;
        }
        let book = self.first[self.lane(flow, None)] as usize;
        let Book { wire, cuts, line, .. } = &self.books[book];
        let whole = booked(&layers_of(wire, load.header.into(), load.bytes, cuts));
        let each = (whole / self.lines[*line as usize].unit) as u32;
        // Those before them had left before the window began.
        let counted = sum / each;
        let delivered = arrived.min(left).saturating_sub(left - counted);
        for (count, fate) in [(delivered, Fate::Delivered), (counted - delivered, Fate::InFlight)] {
            let books = &mut self.books[book..=book];
            book_all(books, &self.lines, Some(&[each]), count.into(), fate, load, 0);
        }
    }
}
