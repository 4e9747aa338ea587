//! Ways that part: trails that are no prefix of their lane, and datagrams of which a line has carried only some packets.

use std::collections::{BTreeMap, BTreeSet};

use super::{DatagramClass, DeliveryStatus, Ledger, Load, Run, book_all};

/// The lines that have carried a packet, by the slots of their books in its lane.
///
/// Small numbers stand for the first lines of a lane whose packets have no choice; the others are places in a list of trails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trail(u32);

/// The number of the first trail in the list: a lane without choices has fewer lines.
const LISTED: u32 = 1 << 16;

/// A packet of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where in the datagram's IP payload it begins.
    pub offset: u16,
    /// How many bytes of that it has.
    pub bytes: u16,
    /// Bytes of tunnels in it behind its IP header.
    pub added: u16,
}

/// What the ledger knows of ways that part.
#[derive(Debug, Default)]
pub(super) struct Parted {
    /// The slots of each trail in the list.
    trails: Vec<Box<[u16]>>,
    /// By trail: the lane and the run of datagrams that its lines have carried last, not yet booked.
    runs: Vec<(u32, Run)>,
    /// By datagram and slot: the packets that the line has carried, in the counted time or not, of datagrams that are written down.
    pieces: BTreeMap<(u32, u16), Vec<Piece>>,
}

impl Trail {
    /// The first `lines` lines of a lane whose packets have no choice of ways.
    #[inline(always)]
    pub const fn along(lines: u16) -> Self {
        Self(lines as u32)
    }

    /// The trail at this place of the list.
    #[inline(always)]
    pub const fn listed(place: u32) -> Self {
        Self(LISTED + place)
    }

    /// The place in the list of one that is in it.
    fn place(self) -> usize {
        (self.0 - LISTED) as usize
    }

    /// How many lines of the lane it covers from the first one on, if it is not in the list.
    #[inline(always)]
    pub(super) const fn lines(self) -> Option<usize> {
        if self.0 < LISTED { Some(self.0 as usize) } else { None }
    }
}

impl Ledger {
    /// Take over the list of trails.
    pub(super) fn list_trails(&mut self, trails: &[Box<[u16]>]) {
        self.parted.trails = trails.to_vec();
        let none = Load { cargo: DatagramClass::Control, header: 0, bytes: 0 };
        self.parted.runs = vec![(0, Run::of(none)); trails.len()];
    }

    /// Book `count` datagrams alike, each of which is carried wholly by the lines of a trail in the list.
    pub(super) fn book_listed(
        &mut self,
        lane: usize,
        trail: Trail,
        count: u64,
        fate: DeliveryStatus,
        load: Load,
        refused: u32,
    ) {
        let books = &mut self.books[self.first[lane] as usize..self.first[lane + 1] as usize];
        for slot in &self.parted.trails[trail.place()] {
            let book = &mut books[usize::from(*slot)..][..1];
            book_all(book, (&self.lines, &self.entries), None, count, fate, load, refused);
        }
    }

    /// A datagram was delivered that the lines of a trail in the list have carried wholly: book it with those like it.
    pub(super) fn settle_listed(&mut self, lane: usize, trail: Trail, load: Load) {
        let (whose, run) = &mut self.parted.runs[trail.place()];
        if *whose == lane as u32 && run.load() == load && run.goes_on() {
            run.count += 1;
            return;
        }
        self.end_listed_run(trail);
        if load.header > u16::MAX.into() {
            self.book_listed(lane, trail, 1, DeliveryStatus::Delivered, load, 0);
        } else {
            self.parted.runs[trail.place()] = (lane as u32, Run { count: 1, ..Run::of(load) });
        }
    }

    /// Book the run of a trail.
    fn end_listed_run(&mut self, trail: Trail) {
        let (lane, run) = &mut self.parted.runs[trail.place()];
        let (lane, count) = (*lane as usize, std::mem::take(&mut run.count));
        if count > 0 {
            let load = run.load();
            self.book_listed(lane, trail, count.into(), DeliveryStatus::Delivered, load, 0);
        }
    }

    /// Book the runs of all trails.
    pub(super) fn end_listed_runs(&mut self) {
        for place in 0..self.parted.runs.len() {
            self.end_listed_run(Trail::listed(place as u32));
        }
    }

    /// Forget what is not booked.
    pub(super) fn clear_listed_runs(&mut self) {
        self.parted.runs.iter_mut().for_each(|(_, run)| run.count = 0);
    }

    /// Whether what lines carry is written down packet by packet when it is sent: it is booked later, and some ways part.
    pub fn writes_pieces(&self) -> bool {
        self.later.is_some() && !self.parted.trails.is_empty()
    }

    /// The line whose book has this slot has carried a packet of a datagram that is written down.
    pub fn write_piece(&mut self, datagram: u32, slot: u16, piece: Piece) {
        if self.on {
            self.parted.pieces.entry((datagram, slot)).or_default().push(piece);
        }
    }

    /// Whether what lines have carried of a datagram is written down packet by packet.
    pub(super) fn has_pieces(&self, datagram: u32) -> bool {
        !self.parted.pieces.is_empty()
            && self.parted.pieces.range((datagram, 0)..=(datagram, u16::MAX)).next().is_some()
    }

    /// Nothing of a datagram is on the way: forget what lines have carried of it.
    pub fn forget_pieces(&mut self, datagram: u32) {
        while let Some((key, _)) = self.parted.pieces.range((datagram, 0)..=(datagram, u16::MAX)).next() {
            let key = *key;
            self.parted.pieces.remove(&key);
        }
    }

    /// The fate of a datagram is known, or a window ends: book what each line has carried of it, packet by packet. What an edge of the window cuts on a line is in
    /// flight there, and with it all that the line carried of the datagram.
    pub(super) fn book_pieces(
        &mut self,
        lane: usize,
        fate: DeliveryStatus,
        load: Load,
        datagram: u32,
        refused: u32,
    ) {
        let pieces = || self.parted.pieces.range((datagram, 0)..=(datagram, u16::MAX));
        let first = self.first[lane] as usize;
        let units_of = |slot: u16| self.carried[datagram as usize * self.stride + usize::from(slot)];
        // Packets that were cut differently before a line have several books of it.
        let mut whole: BTreeMap<u32, bool> = BTreeMap::new();
        for ((_, slot), pieces) in pieces() {
            let book = &self.books[first + usize::from(*slot)];
            let wire = self.entries[book.entry as usize].wire;
            let sent: u64 =
                pieces.iter().map(|piece| wire.units(u64::from(piece.bytes) + u64::from(piece.added))).sum();
            *whole.entry(book.line).or_insert(true) &= sent == u64::from(units_of(*slot));
        }
        let mut counted = BTreeSet::new();
        for ((_, slot), pieces) in pieces() {
            let slot = *slot;
            let units = u64::from(self.carried[datagram as usize * self.stride + usize::from(slot)]);
            if units == 0 {
                continue;
            }
            let book = &mut self.books[first + usize::from(slot)];
            if fate == DeliveryStatus::Lost || load.cargo == DatagramClass::Control {
                book.lose(units, load.cargo);
                continue;
            }
            let wire = self.entries[book.entry as usize].wire;
            let freight = book.freight.get_or_insert_default();
            if fate != DeliveryStatus::Delivered || !whole[&book.line] {
                freight.in_flight += units;
                continue;
            }
            if let (Some(stream), DatagramClass::FixedLength) = (&mut freight.stream, load.cargo) {
                stream.parted += u64::from(counted.insert(book.line));
            }
            let end = u64::from(load.header) + u64::from(load.bytes);
            for piece in pieces {
                let (offset, bytes) = (u64::from(piece.offset), u64::from(piece.bytes));
                let header = u64::from(load.header).saturating_sub(offset).min(bytes);
                let layers = wire.in_tunnel(piece.added.into(), header, bytes - header);
                freight.segments.add(&layers, 1);
                // The receiver refused the end of the payload.
                let wanted = (end - u64::from(refused)).max(offset + header);
                let refused_here = (offset + bytes).saturating_sub(wanted);
                freight.duplicate += refused_here * 8 * layers.parts_per_bit();
            }
        }
    }
}
