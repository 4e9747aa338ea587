//! Adaptive shapers: PDUs wait for their turn, and feedback from the receiver sets the rate.

use std::collections::VecDeque;

use engpass_cells::{PduId, VcId};
use engpass_model::shape::AdaptiveRate;

use super::Network;
use super::event_queue::Event;

/// An adaptive shaper (ABR). It restarts the shaper of its circuit, with the current rate, for every PDU.
#[derive(Debug)]
pub(super) struct AdaptiveShaper {
    pub(super) vc: VcId,
    /// Port of the NIC's line.
    pub(super) nic: usize,
    pub(super) rate: AdaptiveRate,
    /// Delay of the feedback after the arrival of a PDU, in picoseconds.
    pub(super) back: u64,
    /// PDUs that wait for their turn, each with its sender. An event is pending for the first of them.
    pub(super) waiting: VecDeque<(usize, PduId)>,
}

impl Network {
    /// Passes a PDU to an adaptive shaper. Its emission starts when the PDUs before it are emitted.
    pub(super) fn enqueue_pdu(&mut self, shaper: usize, sender: usize, pdu: PduId) {
        let this = &mut self.cells.shapers[shaper];
        let vc = this.vc;
        let next = self.shared.vcs[vc as usize].shaper.next();
        this.waiting.push_back((sender, pdu));
        if this.waiting.len() > 1 {
            self.shared.ledger.note_shaper_wait(sender, self.clock.now, next);
        } else if self.clock.now >= next {
            self.start_next_pdu(shaper as u32);
        } else {
            self.schedule_next_pdu(shaper);
        }
    }

    /// Schedules the start of the first waiting PDU. Until then the senders of all waiting PDUs count as sending.
    fn schedule_next_pdu(&mut self, shaper: usize) {
        let this = &self.cells.shapers[shaper];
        if this.waiting.is_empty() {
            return;
        }
        let next = self.shared.vcs[this.vc as usize].shaper.next();
        for &(sender, _) in &this.waiting {
            self.shared.ledger.note_shaper_wait(sender, self.clock.now, next);
        }
        self.clock.events.push(next, this.vc as usize, Event::NextPdu(shaper as u32));
    }

    /// Starts the emission of the first waiting PDU, at the shaper's current rate.
    pub(super) fn start_next_pdu(&mut self, shaper: u32) {
        let shaper = shaper as usize;
        let this = &mut self.cells.shapers[shaper];
        let (sender, pdu) = this.waiting.pop_front().expect("a PDU waits at the shaper");
        let (vc, pace) = (this.vc as usize, this.rate.begin());
        self.shared.vcs[vc].shaper.restart(self.clock.now, pace);
        self.emit_pdu(sender, pdu);
        self.schedule_next_pdu(shaper);
    }

    /// Returns, for each adaptive shaper of this NIC with waiting PDUs, the earliest start of the first one.
    pub(super) fn next_begins(&self, nic: usize) -> impl Iterator<Item = u64> {
        let here =
            self.cells.shapers.iter().filter(move |this| this.nic == nic && !this.waiting.is_empty());
        here.map(|this| self.shared.vcs[this.vc as usize].shaper.next())
    }

    /// Schedules the feedback to the sender of a PDU whose end has arrived, if its circuit has an adaptive shaper.
    pub(super) fn schedule_feedback(&mut self, pdu: PduId) {
        let this = &self.shared.pdus[pdu];
        let Some(shaper) = self.shared.vcs[this.vc as usize].adaptive_shaper else { return };
        let at = self.clock.now + self.cells.shapers[shaper].back;
        self.clock.events.push(at, this.vc as usize, Event::ShaperFeedback(shaper as u32, this.efci));
    }

    /// Passes the receiver's feedback to a shaper. `marked` is true if the PDU arrived with EFCI.
    pub(super) fn on_feedback(&mut self, shaper: u32, marked: bool) {
        self.cells.shapers[shaper as usize].rate.answer(marked);
    }
}
