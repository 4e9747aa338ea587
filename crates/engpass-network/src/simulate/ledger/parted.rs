//! Ways that part: trails that are no prefix of their lane, and datagrams of which a line has carried only some packets.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::{Cargo, Fate, Ledger, Load};

/// The lines that have carried a packet, by the slots of their books in its lane.
///
/// Small numbers stand for the first lines of a lane whose packets have no choice; the others are places in a list of trails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::simulate) struct Trail(u32);

/// The number of the first trail in the list: a lane without choices has fewer lines.
const LISTED: u32 = 1 << 16;

/// Packets of datagrams: where in the datagram's IP payload each begins, and how many bytes of that it has.
type Pieces = Vec<(u32, u32)>;

/// What the ledger knows of ways that part.
#[derive(Debug, Default)]
pub(super) struct Parted {
    /// The slots of each trail in the list.
    trails: Vec<Box<[u16]>>,
    /// By datagram and slot: the packets that the line has carried, in the counted time or not, of datagrams that are written down.
    pieces: BTreeMap<(u32, u16), Pieces>,
}

impl Trail {
    /// The first `lines` lines of a lane whose packets have no choice of ways.
    #[inline(always)]
    pub(in crate::simulate) const fn along(lines: u16) -> Self {
        Self(lines as u32)
    }

    /// The trail at this place of the list.
    #[inline(always)]
    pub(in crate::simulate) const fn listed(place: u32) -> Self {
        Self(LISTED + place)
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
    }

    /// The slots of a trail.
    pub(super) fn slots(&self, trail: Trail) -> Vec<u16> {
        match trail.lines() {
            Some(lines) => (0..lines as u16).collect(),
            None => self.parted.trails[(trail.0 - LISTED) as usize].to_vec(),
        }
    }

    /// Whether what lines carry is written down packet by packet when it is sent: it is booked later, and some ways part.
    pub(in crate::simulate) fn writes_pieces(&self) -> bool {
        self.later.is_some() && !self.parted.trails.is_empty()
    }

    /// The line whose book has this slot has carried a packet of a datagram that is written down, of `ip` bytes with its header, whose
    /// payload begins at `offset` of the datagram's.
    pub(in crate::simulate) fn write_piece(&mut self, datagram: u32, slot: u16, (offset, ip): (u32, u32)) {
        if self.on {
            let piece = (offset, ip - IP_HEADER_BYTES as u32);
            self.parted.pieces.entry((datagram, slot)).or_default().push(piece);
        }
    }

    /// Whether what lines have carried of a datagram is written down packet by packet.
    pub(super) fn has_pieces(&self, datagram: u32) -> bool {
        !self.parted.pieces.is_empty()
            && self.parted.pieces.range((datagram, 0)..=(datagram, u16::MAX)).next().is_some()
    }

    /// Nothing of a datagram is on the way: forget what lines have carried of it.
    pub(in crate::simulate) fn forget_pieces(&mut self, datagram: u32) {
        while let Some((key, _)) = self.parted.pieces.range((datagram, 0)..=(datagram, u16::MAX)).next() {
            let key = *key;
            self.parted.pieces.remove(&key);
        }
    }

    /// The fate of a datagram is known, or a window ends: book what each line has carried of it, packet by packet. What an edge of the window cuts on a line is in
    /// flight there, and with it all that the line carried of the datagram.
    pub(super) fn book_pieces(&mut self, lane: usize, fate: Fate, load: Load, datagram: u32, refused: u32) {
        let pieces = || self.parted.pieces.range((datagram, 0)..=(datagram, u16::MAX));
        let first = self.first[lane] as usize;
        let units_of = |slot: u16| self.carried[datagram as usize * self.stride + usize::from(slot)];
        // Packets that were cut differently before a line have several books of it.
        let mut whole: BTreeMap<u32, bool> = BTreeMap::new();
        for ((_, slot), pieces) in pieces() {
            let book = &self.books[first + usize::from(*slot)];
            let wire = self.entries[book.entry as usize].wire;
            let sent: u64 = pieces.iter().map(|(_, bytes)| wire.units((*bytes).into())).sum();
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
            if fate == Fate::Dead || load.cargo == Cargo::Control {
                book.lose(units, load.cargo);
                continue;
            }
            let wire = self.entries[book.entry as usize].wire;
            let freight = book.freight.get_or_insert_default();
            if fate != Fate::Delivered || !whole[&book.line] {
                freight.in_flight += units;
                continue;
            }
            if let (Some(stream), Cargo::Datagram) = (&mut freight.stream, load.cargo) {
                stream.parted += u64::from(counted.insert(book.line));
            }
            let end = u64::from(load.header) + u64::from(load.bytes);
            for (offset, bytes) in pieces {
                let (offset, bytes) = (u64::from(*offset), u64::from(*bytes));
                let header = u64::from(load.header).saturating_sub(offset).min(bytes);
                let layers = wire.packet(header, bytes - header);
                freight.segments.add(&layers, 1);
                // The receiver refused the end of the payload.
                let wanted = (end - u64::from(refused)).max(offset + header);
                let refused_here = (offset + bytes).saturating_sub(wanted);
                freight.duplicate += refused_here * 8 * layers.parts_per_bit();
            }
        }
    }
}
