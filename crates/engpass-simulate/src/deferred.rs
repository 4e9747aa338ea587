//! Deferred postings: transmissions that were computed ahead of virtual time are posted when their time has come, and then release their datagrams.

use engpass_ledger::Arrivals;

use super::flow_counters::DropLocation;
use super::shared_state::SharedState;

impl SharedState {
    /// Posts all deferred transmissions that have ended at or before `until`, on all lines.
    pub(super) fn post_until(&mut self, until: u64) {
        for port in 0..self.ledger.lines() {
            self.write_frames(port, until);
            self.write_cells(port, until);
            self.write_arrivals(port, until);
        }
    }

    /// Posts all deferred transmissions that have ended before `at`, and reports the losses of cells before that. Returns true if every injected packet is now
    /// reported.
    pub(super) fn report_losses_before(&mut self, at: u64) -> bool {
        self.post_until(at - 1);
        self.reports.as_mut().is_some_and(|reports| {
            reports.confirm_losses_before(at);
            reports.count_unreported() == 0
        })
    }

    /// Like [`Self::post_until`] for frames only, and only if many may have ended.
    #[inline]
    pub(super) fn post_batch_until(&mut self, until: u64) {
        if !self.ledger.has_many() {
            return;
        }
        for port in 0..self.ledger.lines() {
            self.write_frames(port, until);
        }
        self.ledger.schedule_next_look();
    }

    /// Posts the deferred frames of a line that have ended at or before `until`.
    pub(super) fn write_frames(&mut self, port: usize, until: u64) {
        while let Some((datagram, entries)) = self.ledger.write_frame(port, until) {
            self.release_later(datagram, entries);
        }
    }

    /// Posts the deferred cells that a line has sent at or before `until`.
    pub(super) fn write_cells(&mut self, port: usize, until: u64) {
        while let Some(due) = self.ledger.next_cells(port, until) {
            let (counter, cells) = due.cells();
            let counted = self.count_sent(port, counter, cells);
            self.ledger.write_cells(port, &due, counted);
            if let Some(datagram) = due.releases() {
                self.release_later(datagram, 1);
            }
        }
    }

    /// Counts the cells of generators that have arrived at or before `until`.
    fn write_arrivals(&mut self, port: usize, until: u64) {
        while let Some(Arrivals { cells, flow, bad, cut }) = self.ledger.next_arrivals(port, until) {
            if let Some((pdu, count)) = cut {
                self.lose_pdu(pdu, DropLocation::Reassembly(None), cells.nth(0));
                self.release_cells(pdu, count);
            }
            self.receive_generated(flow, cells, 0, bad);
        }
    }

    /// Releases a datagram from `entries` deferred postings; finishes it if nothing else refers to it.
    fn release_later(&mut self, datagram: u32, entries: u32) {
        let Some(deferred) = &mut self.ledger.deferred else { return };
        if deferred.release(datagram, entries) && self.datagrams[datagram].refs == 0 {
            self.finish_datagram(datagram);
        }
    }
}
