//! What leaves a line, gathered: a train that others have come between is handed on once, in pieces.

use super::{Cells, Outlet, Piece, VcId};

/// How many of the last trains of a way are looked at for one that goes on.
const OPEN: usize = 3;

/// Cells that have left, or will have, and were not handed on.
#[derive(Debug, Default)]
pub(super) struct Departures {
    ways: Vec<Way>,
    /// There are some.
    any: bool,
    /// Some of them are of frames, not of generators.
    frames: bool,
    /// Pieces of cells that go to a host are not kept.
    gather: bool,
    /// Cells that were not sent end a train.
    exact: bool,
    /// Pieces that a way has room for from the beginning.
    room: usize,
}

#[derive(Debug, Default)]
struct Way {
    /// Until they are handed on, `last` is the place of the last cell.
    trains: Vec<Cells>,
    pieces: Vec<Piece>,
}

/// A train to which cells are added: its way, and its place there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    way: usize,
    train: u32,
}

impl Departures {
    /// Of a queue that holds so many cells.
    pub(super) fn of(capacity: u64) -> Self {
        Self { room: capacity.min(512) as usize, ..Self::default() }
    }

    /// Cells that were not sent end a train from now on.
    pub(super) fn tell_cells(&mut self) {
        self.exact = true;
    }

    /// Departures in what comes are, or are not, kept in pieces where they only count.
    pub(super) fn gathers(&mut self, gather: bool) {
        self.gather = gather;
    }

    /// Whether cells of frames wait to be handed on.
    pub(super) fn hold_frames(&self) -> bool {
        self.frames
    }

    /// Whether cells of this circuit are only counted.
    pub(super) fn only_count(&self, vc: VcId, out: &impl Outlet) -> bool {
        self.gather && out.way(vc) == 0
    }

    /// The train that cells like `cells`, the first of them at their place, are part of. Those between may have been lost.
    pub(super) fn open(&mut self, cells: &Cells, out: &impl Outlet) -> Open {
        let way = out.way(cells.vc);
        if way >= self.ways.len() {
            self.ways.resize_with(way + 1, Way::default);
            self.ways[way].pieces.reserve(self.room);
        }
        let trains = &mut self.ways[way].trains;
        let gapless = |train: &Cells| train.cell + train.step() * train.count as u32 == cells.cell;
        let goes_on = |train: &Cells| {
            train.frame == cells.frame
                && train.base == cells.base
                && train.pace == cells.pace
                && train.alike(cells)
                && (!self.exact || gapless(train))
        };
        // Nothing else of the circuit may have come between: what a host makes of its cells depends on their order.
        let last = trains.iter().rev().take(OPEN).position(|train| train.vc == cells.vc);
        let train = match last.map(|back| trains.len() - 1 - back) {
            Some(place) if goes_on(&trains[place]) => place,
            _ => {
                trains.push(Cells { count: 0, ..*cells });
                trains.len() - 1
            }
        };
        self.any = true;
        self.frames |= !cells.are_generated();
        Open { way, train: train as u32 }
    }

    /// `count` cells from place `n` on.
    #[inline]
    pub(super) fn piece(&mut self, open: Open, n: u64, count: u64) {
        if open.way == 0 && self.gather {
            return;
        }
        let pieces = &mut self.ways[open.way].pieces;
        match pieces.last_mut() {
            Some(last) if last.train == open.train && last.n + last.count == n => last.count += count,
            _ => pieces.push(Piece { n, count, train: open.train }),
        }
    }

    /// The same where cells of another train are before it.
    #[inline(always)]
    pub(super) fn new_piece(&mut self, open: Open, n: u64, count: u64) {
        if open.way > 0 || !self.gather {
            self.ways[open.way].pieces.push(Piece { n, count, train: open.train });
        }
    }

    /// `count` cells were added to a train, at places from the first to the last of these, whether the last ends its frame or not.
    pub(super) fn joined(&mut self, open: Open, count: u64, (first, last): (u64, u64), ends: bool) {
        let train = &mut self.ways[open.way].trains[open.train as usize];
        if train.count == 0 {
            train.n = first;
        }
        train.count += count;
        train.last = last;
        if ends && !train.are_generated() {
            // Where cells between were lost, its place in the frame says that it has the end.
            train.cell = (u64::from(train.of) - train.count) as u32;
        }
    }

    /// Cells that follow each other.
    pub(super) fn add(&mut self, cells: &Cells, out: &impl Outlet) {
        let open = self.open(cells, out);
        self.piece(open, cells.n, cells.count);
        self.joined(open, cells.count, (cells.n, cells.n + cells.count - 1), cells.ends_frame());
    }

    /// Hand everything on.
    pub(super) fn flush(&mut self, out: &mut impl Outlet) {
        if !self.any {
            return;
        }
        (self.any, self.frames) = (false, false);
        for (index, way) in self.ways.iter_mut().enumerate() {
            if way.trains.is_empty() {
                continue;
            }
            for train in way.trains.iter_mut().filter(|train| train.count > 0) {
                train.last = train.base + train.pace.after(train.last);
            }
            out.sent_along(index, &mut way.trains, &way.pieces);
            way.trains.clear();
            way.pieces.clear();
        }
    }
}
