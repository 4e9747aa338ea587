//! Adaptive shapers: PDUs wait for their turn, and feedback from the receiver sets the rate.

use std::collections::VecDeque;

use engpass_cells::{PduId, VcId};
use engpass_model::shape::AdaptiveRate;

use super::cell_ports::CellNetwork;
use super::clock::Clock;
use super::event_queue::Event;
use super::shared_state::{SharedState, Vc};

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

impl AdaptiveShaper {
    /// Adds a PDU behind those that wait. Returns true if none waits before it.
    pub(super) fn enqueue(&mut self, sender: usize, pdu: PduId) -> bool {
        self.waiting.push_back((sender, pdu));
        self.waiting.len() == 1
    }

    /// Restarts the shaper of the circuit at the current rate, for the next PDU.
    pub(super) fn restart(&mut self, now: u64, vcs: &mut [Vc]) {
        vcs[self.vc as usize].shaper.restart(now, self.rate.begin());
    }

    /// Schedules the start of the first waiting PDU, if there is one. Until then the senders of all waiting PDUs count as sending.
    pub(super) fn schedule_next_pdu(&self, number: usize, shared: &mut SharedState, clock: &mut Clock) {
        if self.waiting.is_empty() {
            return;
        }
        let next = shared.vcs[self.vc as usize].shaper.next();
        for &(sender, _) in &self.waiting {
            shared.ledger.note_shaper_wait(sender, clock.now, next);
        }
        clock.events.push(next, self.vc as usize, Event::NextPdu(number as u32));
    }
}

impl CellNetwork {
    /// Returns, for each adaptive shaper of this NIC with waiting PDUs, the earliest start of the first one.
    pub(super) fn next_begins(&self, nic: usize, shared: &SharedState) -> impl Iterator<Item = u64> {
        let here = self.shapers.iter().filter(move |this| this.nic == nic && !this.waiting.is_empty());
        here.map(|this| shared.vcs[this.vc as usize].shaper.next())
    }

    /// Schedules the feedback to the sender of a PDU whose end has arrived, if its circuit has an adaptive shaper. It says whether the PDU arrived with EFCI.
    pub(super) fn schedule_feedback(&self, pdu: PduId, shared: &SharedState, clock: &mut Clock) {
        let this = &shared.pdus[pdu];
        let Some(shaper) = shared.vcs[this.vc as usize].adaptive_shaper else { return };
        let at = clock.now + self.shapers[shaper].back;
        clock.events.push(at, this.vc as usize, Event::ShaperFeedback(shaper as u32, this.efci));
    }
}
