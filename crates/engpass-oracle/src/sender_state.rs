//! The states of senders over time (docs/ledger.md, "Sender states").
//!
//! The state is determined at the end of every instant with an event, and holds until the next such instant.

use engpass_model::tcp::LimitedBy;

/// State of a sender, in the order of the idle accounts. In every state but `Sending`, its data leaves a line idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SenderState {
    Application,
    Cpu,
    NicBuffer,
    SendBuffer,
    ReceiveWindow,
    CongestionWindow,
    RetransmissionTimer,
    Nagle,
    SillyWindow,
    Handshake,
    Pacing,
    Sending,
}

impl SenderState {
    pub(crate) const COUNT: usize = Self::Sending as usize + 1;

    /// Returns the state of a connection that sends nothing for this reason. The caller handles pending copies and the rest of a write.
    pub(crate) fn of(limited: LimitedBy) -> Self {
        match limited {
            // A segment is ready for the CPU of the host.
            LimitedBy::Nothing => Self::Cpu,
            LimitedBy::Handshake => Self::Handshake,
            LimitedBy::Application | LimitedBy::SendBuffer | LimitedBy::Closed => Self::Application,
            LimitedBy::ReceiveWindow => Self::ReceiveWindow,
            LimitedBy::CongestionWindow => Self::CongestionWindow,
            LimitedBy::Nagle => Self::Nagle,
            LimitedBy::SillyWindow => Self::SillyWindow,
            LimitedBy::RetransmissionTimer => Self::RetransmissionTimer,
            LimitedBy::Pacing => Self::Pacing,
        }
    }
}

/// Time per state in picoseconds.
pub(crate) type StateSums = [u64; SenderState::COUNT];

/// A period in one state.
#[derive(Clone, Copy, Debug)]
struct Stay {
    from: u64,
    to: u64,
    state: SenderState,
}

/// The states of one sender since the beginning.
#[derive(Clone, Debug)]
pub(crate) struct History {
    stays: Vec<Stay>,
    /// The state after the last of them.
    state: SenderState,
    /// Number of its packets in the NIC that are not completely emitted.
    pub(crate) in_nic: u64,
    /// Time at which a segment was last sent or received.
    stirred: u64,
    /// The time per state at the beginning of the measurement window.
    pub(crate) before: StateSums,
}

impl Default for History {
    fn default() -> Self {
        Self {
            stays: Vec::new(),
            state: SenderState::Application,
            in_nic: 0,
            stirred: 0,
            before: [0; SenderState::COUNT],
        }
    }
}

impl History {
    /// Returns the instant up to which the states are known. It is in the future during the last cell of a PDU, and in the gap behind a frame.
    fn until(&self) -> u64 {
        self.stays.last().map_or(0, |stay| stay.to)
    }

    /// Extends the current state up to `now`.
    fn pass(&mut self, now: u64) {
        self.stay(now, self.state);
    }

    fn stay(&mut self, to: u64, state: SenderState) {
        let from = self.until();
        match self.stays.last_mut() {
            _ if to <= from => {}
            Some(last) if last.state == state => last.to = to,
            _ => self.stays.push(Stay { from, to, state }),
        }
    }

    /// Sets the state from `now` on.
    pub(crate) fn change(&mut self, now: u64, state: SenderState) {
        self.pass(now);
        self.state = state;
    }

    pub(crate) fn enters_nic(&mut self) {
        self.in_nic += 1;
    }

    /// Records that a packet is emitted. Its last cell, or the gap behind its frame, ends at `until`, which may be in the future.
    pub(crate) fn emitted(&mut self, now: u64, until: u64) {
        self.pass(now);
        self.stay(until, SenderState::Sending);
        self.in_nic -= 1;
    }

    /// Records that a segment is sent or received.
    pub(crate) fn stirs(&mut self, now: u64) {
        self.stirred = now;
    }

    /// Handles an expiry of the retransmission timer: all time since the last segment, except sending, becomes a wait for the timer.
    pub(crate) fn on_timeout(&mut self, now: u64) {
        self.pass(now);
        let stays = std::mem::take(&mut self.stays);
        for Stay { from, to, state } in stays {
            let waited = if state == SenderState::Sending { state } else { SenderState::RetransmissionTimer };
            self.stay(to.min(self.stirred.max(from)), state);
            self.stay(to, waited);
        }
    }

    /// Returns the time in each state up to `at`. All events up to `at` must have been handled.
    pub(crate) fn sums(&self, at: u64) -> StateSums {
        let mut sums = [0; SenderState::COUNT];
        for stay in &self.stays {
            sums[stay.state as usize] += stay.to.min(at).saturating_sub(stay.from);
        }
        sums[self.state as usize] += at.saturating_sub(self.until());
        sums
    }
}
