//! Posts deferred entries once virtual time has reached them.

use engpass_model::cell_train::CellTrain;

use super::{Arrivals, DeferredPostings, FEW, SentCells, split};
use crate::Ledger;

/// Deferred cells that have left by now. The network first counts those in the window and then posts them.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    sent: SentCells,
    /// True if no cells of the deferred entry remain.
    is_all: bool,
}

impl Due {
    /// Returns the index of the port's counter that counts the cells, and the cells.
    pub fn cells(&self) -> (usize, &CellTrain) {
        (self.sent.counter, &self.sent.cells)
    }

    /// Returns the datagram, if posting these cells completes one of its entries.
    pub fn releases(&self) -> Option<u32> {
        self.sent.datagram.filter(|_| self.is_all)
    }
}

impl Ledger {
    /// Returns the number of lines.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether enough frames are deferred that it is worth looking for those that have ended. The threshold is small enough for their datagrams to be
    /// still in the CPU's caches.
    #[inline]
    pub fn has_many(&self) -> bool {
        self.deferred.as_deref().is_some_and(|deferred| deferred.frames >= deferred.look)
    }

    /// Sets the number of deferred frames for the next look, after all frames that have ended are posted.
    pub fn schedule_next_look(&mut self) {
        if let Some(deferred) = &mut self.deferred {
            // The remaining frames have not ended yet.
            deferred.look = 2 * deferred.frames + FEW;
        }
    }

    /// Posts the first deferred frame of a line, or train of frames, if it has ended at or before `until`. Returns its datagram and the number of frames.
    #[inline]
    pub fn write_frame(&mut self, port: usize, until: u64) -> Option<(u32, u32)> {
        let window = self.window;
        let deferred = self.deferred.as_mut()?;
        let this = &mut deferred.lines[port];
        let front = this.frames.front_mut().filter(|front| front.sent.end <= until)?;
        let is_one = front.end <= until
            && (window.holds_all(front.sent.begin.0, front.end)
                || window.from.is_some_and(|from| front.end <= from));
        let frame = if front.count == 1 || is_one {
            let frame = *front;
            this.frames.pop_front();
            frame
        } else {
            Self::split_off(&self.lines[port], front)
        };
        deferred.frames -= frame.count as usize;
        (this.idle, this.rounding) = (frame.idle, frame.rounding);
        (this.end, this.end_rounding) = (frame.end, frame.end_rounding);
        this.totals.sent += u64::from(frame.count);
        this.totals.bits += u64::from(frame.count) * frame.sent.bytes * 8;
        self.post_frame(port, &frame);
        Some((frame.datagram, frame.count))
    }

    /// Removes and returns the first deferred cells of a line that have left at or before `until`.
    pub fn next_cells(&mut self, port: usize, until: u64) -> Option<Due> {
        let this = &mut self.deferred.as_mut()?.lines[port];
        let front = this.cells.front_mut()?;
        let (Some(ended), rest) = split(&front.cells, until) else { return None };
        let sent = SentCells { cells: ended, ..*front };
        match rest {
            Some(rest) => front.cells = rest,
            None => drop(this.cells.pop_front()),
        }
        this.totals.sent += ended.count;
        this.totals.bits += ended.count * engpass_model::wire::aal5::CELL_BITS;
        Some(Due { sent, is_all: rest.is_none() })
    }

    /// Posts the cells `due`, of which `counted` left in the window.
    pub fn write_cells(&mut self, port: usize, due: &Due, counted: u64) {
        let SentCells { cells, hop, datagram, shows, .. } = &due.sent;
        let begun = self.begun(port, cells, counted);
        let Some(datagram) = *datagram else {
            let flow = engpass_model::cell_train::generator_of(cells.pdu);
            self.generated(flow.expect("cells without a datagram come from a generator"), *hop, begun);
            return;
        };
        let place = datagram as usize * self.stride + usize::from(*hop);
        self.carried[place] += begun as u32;
        if let Some((usage, stamp)) = shows {
            self.cells_left(port, *usage, cells.count, stamp.as_ref().filter(|_| cells.ends_pdu()));
        }
    }

    /// Removes and returns the first deferred cells of a generator that have arrived behind a line at or before `until`.
    pub fn next_arrivals(&mut self, port: usize, until: u64) -> Option<Arrivals> {
        let this = &mut self.deferred.as_mut()?.lines[port];
        let front = this.arrivals.front_mut()?;
        let (Some(come), rest) = split(&front.cells, until) else { return None };
        let arrived = Arrivals { cells: come, ..*front };
        match rest {
            Some(rest) => *front = Arrivals { cells: rest, bad: false, cut: None, ..arrived },
            None => drop(this.arrivals.pop_front()),
        }
        Some(arrived)
    }
}

impl DeferredPostings {
    /// Removes `entries` posted entries of a datagram from its count, and returns whether none are left.
    pub fn release(&mut self, datagram: u32, entries: u32) -> bool {
        let holds = &mut self.holds[datagram as usize];
        *holds -= entries;
        *holds == 0
    }
}
