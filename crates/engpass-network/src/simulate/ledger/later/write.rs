//! What stands in the books of later is written when its time has come.

use super::{Arrivals, FEW, Later, SentCells, split};
use crate::simulate::fabric::Fabric;
use crate::simulate::ledger::Ledger;
use crate::simulate::tally::Place;

impl Fabric {
    /// Book what has ended at or before `until`.
    pub(in crate::simulate) fn write_all(&mut self, until: u64) {
        for port in 0..self.ledger.lines.len() {
            self.write_frames(port, until);
            self.write_cells(port, until);
            self.write_arrivals(port, until);
        }
    }

    /// Book frames that have ended at or before `until`, where there may be many of them: soon enough that their datagrams are still in
    /// the CPU's caches.
    #[inline]
    pub(in crate::simulate) fn write_many(&mut self, until: u64) {
        let many = |later: &Later| later.frames >= later.look;
        if !self.ledger.later.as_deref().is_some_and(many) {
            return;
        }
        for port in 0..self.ledger.lines.len() {
            self.write_frames(port, until);
        }
        if let Some(later) = &mut self.ledger.later {
            // Those that are left have not ended yet.
            later.look = 2 * later.frames + FEW;
        }
    }

    pub(in crate::simulate) fn write_frames(&mut self, port: usize, until: u64) {
        let window = self.ledger.window;
        while let Some(later) = &mut self.ledger.later {
            let this = &mut later.lines[port];
            let Some(front) = this.frames.front_mut().filter(|front| front.sent.end <= until) else { return };
            let is_one = front.end <= until
                && (window.holds_all(front.sent.begin.0, front.end)
                    || window.from.is_some_and(|from| front.end <= from));
            let frame = if front.count == 1 || is_one {
                let frame = *front;
                this.frames.pop_front();
                frame
            } else {
                Ledger::split_off(&self.ledger.lines[port], front)
            };
            later.frames -= frame.count as usize;
            (this.idle, this.rounding) = (frame.idle, frame.rounding);
            (this.end, this.end_rounding) = (frame.end, frame.end_rounding);
            this.totals.sent += u64::from(frame.count);
            this.totals.bits += u64::from(frame.count) * frame.sent.bytes * 8;
            self.ledger.book_frame(port, &frame);
            self.release_later(frame.datagram, frame.count);
        }
    }

    /// Book cells that a line has sent at or before `until`.
    pub(in crate::simulate) fn write_cells(&mut self, port: usize, until: u64) {
        while let Some(later) = &mut self.ledger.later {
            let this = &mut later.lines[port];
            let Some(front) = this.cells.front_mut() else { return };
            let (Some(ended), rest) = split(&front.cells, until) else { return };
            let sent = SentCells { cells: ended, ..*front };
            match rest {
                Some(rest) => front.cells = rest,
                None => drop(this.cells.pop_front()),
            }
            this.totals.sent += ended.count;
            this.totals.bits += ended.count * engpass_model::wire::aal5::CELL_BITS;
            self.write_sent(port, &sent);
            if let (None, Some(datagram)) = (rest, sent.datagram) {
                self.release_later(datagram, 1);
            }
        }
    }

    fn write_sent(&mut self, port: usize, sent: &SentCells) {
        let SentCells { cells, counter, hop, datagram, shows } = sent;
        let counted = self.count_sent(port, *counter, cells);
        let ledger = &mut self.ledger;
        let begun = ledger.begun(port, cells, counted);
        let Some(datagram) = *datagram else {
            let flow = engpass_cells::generator_of(cells.frame);
            ledger.generated(flow.expect("cells of no datagram are a generator's"), *hop, begun);
            return;
        };
        let place = datagram as usize * ledger.stride + usize::from(*hop);
        ledger.carried[place] += begun as u32;
        if let Some((book, stamp)) = shows {
            ledger.cells_left(port, *book, cells.count, stamp.as_ref().filter(|_| cells.ends_frame()));
        }
    }

    /// Count a generator's cells that have arrived at or before `until`.
    fn write_arrivals(&mut self, port: usize, until: u64) {
        while let Some(later) = &mut self.ledger.later {
            let this = &mut later.lines[port];
            let Some(front) = this.arrivals.front_mut() else { return };
            let (Some(come), rest) = split(&front.cells, until) else { return };
            let arrived = Arrivals { cells: come, ..*front };
            match rest {
                Some(rest) => *front = Arrivals { cells: rest, bad: false, cut: None, ..arrived },
                None => drop(this.arrivals.pop_front()),
            }
            let Arrivals { flow, bad, cut, .. } = arrived;
            if let Some((frame, count)) = cut {
                self.lose_frame(frame, Place::Reassembly(None), come.nth(0));
                self.settle(frame, count);
            }
            self.receive_generated(flow, come, 0, bad);
        }
    }

    /// So many entries of the datagram are booked.
    fn release_later(&mut self, datagram: u32, entries: u32) {
        let Some(later) = &mut self.ledger.later else { return };
        let holds = &mut later.holds[datagram as usize];
        *holds -= entries;
        if *holds == 0 && self.datagrams[datagram].holds == 0 {
            self.end_datagram(datagram);
        }
    }
}
