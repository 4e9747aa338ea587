//! The states of senders over time (docs/ledger.md, "Sender states").
//!
//! A state is a question to the network: it is asked at the end of every instant at which anything happens, and holds until the next one.

use engpass_model::tcp::LimitedBy;

/// What a sender does, in the order of the accounts of idle time. Its data keeps a line idle while it does anything but send.
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

    /// The state of a connection that sends nothing for this reason, its copies and the rest of its write apart.
    pub(crate) fn of(limited: LimitedBy) -> Self {
        match limited {
            // A segment is ready for the host.
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

/// Picoseconds by state.
pub(crate) type StateSums = [u64; SenderState::COUNT];

/// A state that lasted from one instant to another.
#[derive(Clone, Copy, Debug)]
struct Stay {
    from: u64,
    to: u64,
    state: SenderState,
}

/// All that one sender did since the beginning.
#[derive(Clone, Debug)]
pub(crate) struct History {
    stays: Vec<Stay>,
    /// The state behind the last of them.
    state: SenderState,
    /// Packets of it in its NIC that are not wholly emitted.
    pub(crate) in_nic: u64,
    /// When a packet of it last entered the NIC, or a segment came to it.
    stirred: u64,
    /// The sums at the beginning of the counted time, as they were then.
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
    /// The instant up to which all is known: in the future while the last cell of a frame is emitted.
    fn until(&self) -> u64 {
        self.stays.last().map_or(0, |stay| stay.to)
    }

    /// It has done the same since the last change.
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

    /// It does this from `now` on.
    pub(crate) fn change(&mut self, now: u64, state: SenderState) {
        self.pass(now);
        self.state = state;
    }

    /// A packet enters the NIC.
    pub(crate) fn enters_nic(&mut self) {
        self.in_nic += 1;
    }

    /// A packet is emitted, and its last cell is being emitted until an instant that may be in the future.
    pub(crate) fn emitted(&mut self, now: u64, until: u64) {
        self.pass(now);
        self.stay(until, SenderState::Sending);
        self.in_nic -= 1;
    }

    /// A segment goes out or comes in.
    pub(crate) fn stirs(&mut self, now: u64) {
        self.stirred = now;
    }

    /// The retransmission timer expires: since something last stirred, whatever was no sending was a wait for it.
    pub(crate) fn times_out(&mut self, now: u64) {
        self.pass(now);
        let stays = std::mem::take(&mut self.stays);
        for Stay { from, to, state } in stays {
            let waited = if state == SenderState::Sending { state } else { SenderState::RetransmissionTimer };
            self.stay(to.min(self.stirred.max(from)), state);
            self.stay(to, waited);
        }
    }

    /// How long it was in each state up to `at`, everything up to which has happened.
    pub(crate) fn sums(&self, at: u64) -> StateSums {
        let mut sums = [0; SenderState::COUNT];
        for stay in &self.stays {
            sums[stay.state as usize] += stay.to.min(at).saturating_sub(stay.from);
        }
        sums[self.state as usize] += at.saturating_sub(self.until());
        sums
    }
}
