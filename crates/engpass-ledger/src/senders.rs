//! States of senders, by which idle time is booked.

use engpass_cells::FrameId;

use super::Ledger;
use super::waits::{Sums, Wait, Waits};

impl Ledger {
    /// Where the states of a sender are kept; not those of an endpoint that only reads, which nobody asks for.
    #[inline(always)]
    pub(super) fn place_of(&self, sender: usize) -> Option<usize> {
        let Some(endpoint) = sender.checked_sub(self.processes) else { return Some(sender) };
        match endpoint.checked_sub(self.endpoints) {
            None => (endpoint % 2 == 0).then_some(self.processes + endpoint / 2),
            Some(outside) => Some(self.processes + self.endpoints / 2 + outside),
        }
    }

    /// The same, if they are kept at all.
    #[inline(always)]
    pub fn states_of(&self, sender: usize) -> Option<usize> {
        if self.on { self.place_of(sender) } else { None }
    }

    /// The same of an endpoint that writes.
    #[inline(always)]
    pub fn states_of_writer(&self, endpoint: usize) -> Option<usize> {
        let states = if self.on { Some(self.processes + endpoint / 2) } else { None };
        debug_assert_eq!(states, self.states_of(self.processes + endpoint));
        states
    }

    #[inline(always)]
    pub(super) fn sender(&mut self, sender: usize) -> Option<&mut Waits> {
        self.states_of(sender).map(|place| &mut self.senders[place])
    }

    /// From `now` on this is what the sender does.
    #[inline(always)]
    pub fn waits(&mut self, sender: usize, now: u64, wait: Wait) {
        if let Some(sender) = self.sender(sender) {
            sender.set(now, wait);
        }
    }

    /// The same of a sender whose states are kept there.
    #[inline(always)]
    pub fn waits_at(&mut self, states: Option<usize>, now: u64, wait: Wait) {
        if let Some(place) = states {
            self.senders[place].set(now, wait);
        }
    }

    /// The sender's connection was spoken to.
    #[inline(always)]
    pub fn stirs(&mut self, sender: usize, now: u64) {
        if let Some(sender) = self.sender(sender) {
            sender.stir(now);
        }
    }

    /// The same of an endpoint that writes.
    #[inline(always)]
    pub fn writer_stirs(&mut self, endpoint: usize, now: u64) {
        if let Some(place) = self.states_of_writer(endpoint) {
            self.senders[place].stir(now);
        }
    }

    /// The sender's retransmission timer expired, and nothing had come in or gone out before.
    pub fn timed_out(&mut self, sender: usize, now: u64) {
        if let Some(sender) = self.sender(sender) {
            sender.timed_out(now);
        }
    }

    /// A frame, `elastic` if it carries data of the sender, enters the NIC; its last cell leaves the line at `until` if nothing else is in its way.
    #[inline]
    pub fn emitted(&mut self, sender: usize, frame: FrameId, elastic: bool, now: u64, until: u64) {
        if let Some(place) = self.emit(sender, elastic, now, until) {
            put(&mut self.stamps, frame, &self.senders[place].sums());
        }
    }

    /// A frame of the sender waits in the NIC for its turn, until then at least.
    pub fn held_back(&mut self, sender: usize, now: u64, until: u64) {
        if let Some(sender) = self.sender(sender) {
            sender.emit(now, until);
        }
    }

    /// The place of the sender, if the frame must carry its sums with it.
    #[inline(always)]
    pub(super) fn emit(&mut self, sender: usize, elastic: bool, now: u64, until: u64) -> Option<usize> {
        if !self.on {
            return None;
        }
        let place = self.place_of(sender)?;
        let waits = &mut self.senders[place];
        waits.emit(now, until);
        (elastic && waits.stamped).then_some(place)
    }
}

/// A frame of cells is emitted.
#[inline(always)]
pub(super) fn put(stamps: &mut Vec<Sums>, place: u32, stamp: &Sums) {
    let place = place as usize;
    if stamps.len() <= place {
        make_room(stamps, place);
    }
    stamps[place] = *stamp;
}

#[cold]
#[inline(never)]
fn make_room(stamps: &mut Vec<Sums>, place: usize) {
    stamps.resize(place + 1, [0; Wait::COUNT]);
}
