//! Losses of cells, PDUs and packets, and of the datagrams that they belong to.

use engpass_cells::{CellTrain, PduId};
use engpass_ledger::{DeliveryStatus, Trail};

use super::flow_counters::DropLocation;
use super::shared_state::SharedState;

impl SharedState {
    /// Records the loss of a PDU, or of one of its cells, at `place`, and of its datagram.
    pub(super) fn lose_pdu(&mut self, pdu: PduId, place: DropLocation, at: u64) {
        let this = &mut self.pdus[pdu];
        this.incomplete = true;
        let datagram = this.datagram;
        self.lose_datagram(datagram, place, at);
    }

    /// Records a loss of a datagram. If it has several, the earliest one counts.
    pub(super) fn lose_datagram(&mut self, datagram: u32, place: DropLocation, at: u64) {
        let before = self.loss_of(datagram);
        let this = &mut self.datagrams[datagram];
        this.lost = true;
        let loss = before.map_or((at, place), |earlier| earlier.min((at, place)));
        let index = datagram as usize;
        if self.losses.len() <= index {
            self.losses.resize(index + 1, loss);
        }
        self.losses[index] = loss;
        if let Some(reports) = &mut self.reports
            && before != Some(loss)
        {
            reports.record_loss(datagram, this, loss, before);
        }
    }

    /// Fast path of a loss: takes a packet that is a whole datagram, without other references or per-hop record. Returns false, without effect, for all other
    /// packets.
    #[inline(always)]
    pub(super) fn try_drop_unfragmented(
        &mut self,
        datagram: u32,
        trail: Trail,
        place: DropLocation,
        at: u64,
    ) -> bool {
        let this = &self.datagrams[datagram];
        if !this.is_sole_packet() || self.reports.is_some() || self.ledger.deferred.is_some() {
            return false;
        }
        let load = self.load_of(this);
        let tally = &mut self.flows[this.flow as usize];
        if this.sent && this.counted {
            tally.in_flight -= 1;
        }
        if self.window.holds(at) {
            let rare = tally.rare();
            rare.lost += u64::from(this.counted);
            let losses = rare.losses(place);
            losses.cells += 1;
            losses.datagrams += 1;
        }
        self.ledger.lose((this.flow, this.to.get()), load, trail);
        self.datagrams.release(datagram);
        true
    }

    /// Returns time and place of a datagram's earliest loss, if there is one.
    pub(super) fn loss_of(&self, datagram: u32) -> Option<(u64, DropLocation)> {
        self.datagrams[datagram].lost.then(|| self.losses[datagram as usize])
    }

    /// Counts, at the end of the run, the losses of datagrams that are still in the network.
    pub(super) fn count_open_losses(&mut self) {
        self.settle_open_copies();
        for index in 0..self.datagrams.len() {
            if self.datagrams[index].refs > 0
                || self.ledger.deferred.as_ref().is_some_and(|deferred| deferred.holds(index))
            {
                if self.is_copied(index) {
                    // The receivers of a multicast datagram count their losses themselves.
                    let fate = self.status_of_open_copies(index);
                    self.datagrams[index].lost = fate == DeliveryStatus::Lost;
                    self.post_finished_datagram(index, fate == DeliveryStatus::InFlight);
                    continue;
                }
                self.post_finished_datagram(index, true);
                self.count_loss(index);
            }
        }
        self.ledger.end_runs();
    }

    #[inline]
    pub(super) fn count_loss(&mut self, datagram: u32) {
        if self.datagrams[datagram].lost {
            self.count_lost(datagram);
        }
    }

    fn count_lost(&mut self, datagram: u32) {
        let Some((at, place)) = self.loss_of(datagram) else { return };
        if !self.counts_for_receiver(datagram) {
            return;
        }
        let this = &self.datagrams[datagram];
        if self.reports.as_mut().is_some_and(|reports| reports.mark_loss_counted(datagram)) {
            return;
        }
        let tally = &mut self.flows[this.flow as usize];
        if this.sent && this.counted {
            tally.in_flight -= 1;
        }
        if self.window.holds(at) {
            tally.rare().lost += u64::from(this.counted);
            tally.losses(place).datagrams += 1;
        }
    }

    pub(super) fn lose_generated(&mut self, flow: usize, cells: &CellTrain, place: DropLocation, at: u64) {
        let tally = &mut self.flows[flow];
        tally.rare().lost_ever += cells.count;
        // The cells of a train may be lost at different instants, but all on one side of a window edge, because ports stop at the edges.
        if self.window.holds(at) {
            tally.rare().lost += cells.count;
            let losses = tally.losses(place);
            losses.datagrams += cells.count;
            losses.cells += if matches!(place, DropLocation::Reassembly(_)) { 0 } else { cells.count };
        }
    }
}
