//! Sender states, from which lines learn the reasons for their idle time.

use engpass_model::cell_train::PduId;

use super::Ledger;
use super::sender_states::{SenderState, SenderStates, StateTimes};

impl Ledger {
    /// Returns the index of a sender's states in `senders`; `None` for endpoints that write no data.
    #[inline(always)]
    pub(super) fn place_of(&self, sender: usize) -> Option<usize> {
        let Some(endpoint) = sender.checked_sub(self.processes) else { return Some(sender) };
        match endpoint.checked_sub(self.endpoints) {
            None => (endpoint % 2 == 0).then_some(self.processes + endpoint / 2),
            Some(outside) => Some(self.processes + self.endpoints / 2 + outside),
        }
    }

    /// Like `place_of`, but `None` if the ledger is off.
    #[inline(always)]
    pub fn states_of(&self, sender: usize) -> Option<usize> {
        if self.on { self.place_of(sender) } else { None }
    }

    /// Like [`Self::states_of`], for an endpoint that writes data: skips the general case.
    #[inline(always)]
    pub fn states_of_writer(&self, endpoint: usize) -> Option<usize> {
        let states = if self.on { Some(self.processes + endpoint / 2) } else { None };
        debug_assert_eq!(states, self.states_of(self.processes + endpoint));
        states
    }

    #[inline(always)]
    pub(super) fn sender(&mut self, sender: usize) -> Option<&mut SenderStates> {
        self.states_of(sender).map(|place| &mut self.senders[place])
    }

    /// Sets the state of the sender from `now` on.
    #[inline(always)]
    pub fn set_sender_state(&mut self, sender: usize, now: u64, wait: SenderState) {
        if let Some(sender) = self.sender(sender) {
            sender.set(now, wait);
        }
    }

    /// Like [`Self::set_sender_state`], for the sender whose states have the index `states`.
    #[inline(always)]
    pub fn set_state_at(&mut self, states: Option<usize>, now: u64, wait: SenderState) {
        if let Some(place) = states {
            self.senders[place].set(now, wait);
        }
    }

    /// Records that the sender's connection has sent a segment, or received a segment or a router's message.
    #[inline(always)]
    pub fn note_activity(&mut self, sender: usize, now: u64) {
        if let Some(sender) = self.sender(sender) {
            sender.note_activity(now);
        }
    }

    /// Like [`Self::note_activity`], for an endpoint that writes data.
    #[inline(always)]
    pub fn note_writer_activity(&mut self, endpoint: usize, now: u64) {
        if let Some(place) = self.states_of_writer(endpoint) {
            self.senders[place].note_activity(now);
        }
    }

    /// Records that the sender's retransmission timer expired: the time since its last segment or message becomes a wait for the timer.
    pub fn reassign_to_timer(&mut self, sender: usize, now: u64) {
        if let Some(sender) = self.sender(sender) {
            sender.reassign_to_timer(now);
        }
    }

    /// Records that a PDU of the sender enters the NIC; `has_data` is true if it carries data. Its last cell leaves the line at `until` if nothing delays it.
    #[inline]
    pub fn emitted(&mut self, sender: usize, pdu: PduId, has_data: bool, now: u64, until: u64) {
        if let Some(place) = self.emit(sender, has_data, now, until) {
            put(&mut self.stamps, pdu, &self.senders[place].sums());
        }
    }

    /// Records that a PDU of the sender waits in the NIC for the shaper, at least until `until`: the sender counts as sending.
    pub fn note_shaper_wait(&mut self, sender: usize, now: u64, until: u64) {
        if let Some(sender) = self.sender(sender) {
            sender.emit(now, until);
        }
    }

    /// Counts the sender as sending up to `until`. Returns the index of its states if the packet must carry a snapshot.
    #[inline(always)]
    pub(super) fn emit(&mut self, sender: usize, has_data: bool, now: u64, until: u64) -> Option<usize> {
        if !self.on {
            return None;
        }
        let place = self.place_of(sender)?;
        let waits = &mut self.senders[place];
        waits.emit(now, until);
        (has_data && waits.stamped).then_some(place)
    }
}

/// Stores the sender snapshot of an emitted PDU, whose index is `place`.
#[inline(always)]
pub(super) fn put(stamps: &mut Vec<StateTimes>, place: u32, stamp: &StateTimes) {
    let place = place as usize;
    if stamps.len() <= place {
        make_room(stamps, place);
    }
    stamps[place] = *stamp;
}

#[cold]
#[inline(never)]
fn make_room(stamps: &mut Vec<StateTimes>, place: usize) {
    stamps.resize(place + 1, [0; SenderState::COUNT]);
}
