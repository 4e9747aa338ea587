//! Adaptive shapers: PDUs wait for their turn, and feedback from the receiver sets the rate.

use std::collections::VecDeque;

use engpass_cells::{PduId, VcId};
use engpass_model::shape::AdaptiveRate;

use super::cell_ports::CellNetwork;
use super::clock::{NewEvent, NewEvents};
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

    /// Returns the event of the start of the first waiting PDU, if there is one. Until then the senders of all waiting PDUs count as sending.
    fn next_start(&self, number: usize, now: u64, shared: &mut SharedState) -> Option<NewEvent> {
        if self.waiting.is_empty() {
            return None;
        }
        let next = shared.vcs[self.vc as usize].shaper.next();
        for &(sender, _) in &self.waiting {
            shared.ledger.note_shaper_wait(sender, now, next);
        }
        Some((next, self.vc as usize, Event::NextPdu(number as u32)))
    }
}

impl CellNetwork {
    /// Returns, for each adaptive shaper of this NIC with waiting PDUs, the earliest start of the first one.
    pub(super) fn next_begins(&self, nic: usize, shared: &SharedState) -> impl Iterator<Item = u64> {
        let here = self.shapers.iter().filter(move |this| this.nic == nic && !this.waiting.is_empty());
        here.map(|this| shared.vcs[this.vc as usize].shaper.next())
    }

    /// Passes a sender's PDU to the shaper of its circuit. An adaptive shaper starts to emit it when the PDUs before it are emitted.
    #[inline]
    pub(super) fn hand_to_shaper(
        &mut self,
        sender: usize,
        pdu: PduId,
        now: u64,
        shared: &mut SharedState,
    ) -> NewEvents {
        let vc = &shared.vcs[shared.pdus[pdu].vc as usize];
        let next = vc.shaper.next();
        let Some(number) = vc.adaptive_shaper else {
            return [Some(self.emit(pdu, Some(sender), now, shared)), None];
        };
        let shaper = &mut self.shapers[number];
        if !shaper.enqueue(sender, pdu) {
            shared.ledger.note_shaper_wait(sender, now, next);
            return [None; 2];
        }
        if now >= next {
            return self.start_next_pdu(number as u32, now, shared);
        }
        [shaper.next_start(number, now, shared), None]
    }

    /// Starts the emission of the first waiting PDU, at the shaper's current rate.
    pub(super) fn start_next_pdu(&mut self, number: u32, now: u64, shared: &mut SharedState) -> NewEvents {
        let number = number as usize;
        let this = &mut self.shapers[number];
        let (sender, pdu) = this.waiting.pop_front().expect("a PDU waits at the shaper");
        this.restart(now, &mut shared.vcs);
        let arrival = self.emit(pdu, Some(sender), now, shared);
        [Some(arrival), self.shapers[number].next_start(number, now, shared)]
    }

    /// Returns the event of the feedback to the sender of a PDU whose end has arrived, if its circuit has an adaptive shaper. It says whether the PDU arrived
    /// with EFCI.
    pub(super) fn feedback(&self, pdu: PduId, shared: &SharedState, now: u64) -> Option<NewEvent> {
        let this = &shared.pdus[pdu];
        let shaper = shared.vcs[this.vc as usize].adaptive_shaper?;
        let at = now + self.shapers[shaper].back;
        Some((at, this.vc as usize, Event::ShaperFeedback(shaper as u32, this.efci)))
    }
}
