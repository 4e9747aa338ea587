//! What a sender was doing, summed up: the reasons why a line that it could have used was idle.

use engpass_model::tcp::LimitedBy;

/// What a sender is doing at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulate) enum Wait {
    /// Its application has nothing to send: it has not begun, has ended, pauses, or keeps to its rate.
    Application,
    /// The host's CPU works for it, or for others before it.
    Cpu,
    /// It waits for room in the NIC.
    Nic,
    SendBuffer,
    ReceiveWindow,
    CongestionWindow,
    RetransmissionTimer,
    Nagle,
    SillyWindow,
    Handshake,
    Pacing,
    /// Its NIC emits frames of it.
    Sending,
}

/// Picoseconds by [`Wait`].
pub(super) type Sums = [u64; Wait::COUNT];

impl Wait {
    pub(super) const COUNT: usize = 12;

    /// What the connection's reason is in the ledger.
    pub(in crate::simulate) fn of(limited: LimitedBy) -> Self {
        match limited {
            // A segment is ready and waits for the host.
            LimitedBy::Nothing => Self::Cpu,
            LimitedBy::Handshake => Self::Handshake,
            LimitedBy::Application | LimitedBy::Closed => Self::Application,
            LimitedBy::SendBuffer => Self::SendBuffer,
            LimitedBy::ReceiveWindow => Self::ReceiveWindow,
            LimitedBy::CongestionWindow => Self::CongestionWindow,
            LimitedBy::Nagle => Self::Nagle,
            LimitedBy::SillyWindow => Self::SillyWindow,
            LimitedBy::RetransmissionTimer => Self::RetransmissionTimer,
            LimitedBy::Pacing => Self::Pacing,
        }
    }
}

/// The states of one sender since the beginning: how long it was in each.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    sums: Sums,
    /// Everything before this is in the sums; in the future while the NIC emits.
    until: u64,
    state: Wait,
    /// A bit for every state in which the sums are others than when something last came in or went out, and what they were then.
    moved: u16,
    active: Sums,
    /// Its frames carry its sums with them, because a line on their way is shared.
    pub(super) stamped: bool,
}

impl Default for Waits {
    fn default() -> Self {
        let nothing = [0; Wait::COUNT];
        Self { sums: nothing, until: 0, state: Wait::Application, moved: 0, active: nothing, stamped: false }
    }
}

impl Waits {
    #[inline]
    fn pass(&mut self, now: u64) {
        if now > self.until {
            self.add(self.state, now - self.until);
            self.until = now;
        }
    }

    #[inline]
    fn add(&mut self, state: Wait, ps: u64) {
        let bit = 1 << state as u16;
        let sum = &mut self.sums[state as usize];
        if self.moved & bit == 0 {
            self.moved |= bit;
            self.active[state as usize] = *sum;
        }
        *sum += ps;
    }

    /// From `now` on it does this. While the NIC emits, that is what it does, whatever its process does.
    #[inline]
    pub(super) fn set(&mut self, now: u64, state: Wait) {
        self.pass(now);
        self.state = state;
    }

    /// A frame of it enters the NIC, whose last cell will have been sent at `until` if nothing else is in its way.
    #[inline]
    pub(super) fn emit(&mut self, now: u64, until: u64) {
        self.pass(now);
        if until > self.until {
            self.add(Wait::Sending, until - self.until);
            self.until = until;
        }
    }

    /// Something came in or went out: a wait for the retransmission timer begins anew.
    #[inline]
    pub(super) fn stir(&mut self, now: u64) {
        self.pass(now);
        self.moved = 0;
    }

    /// The retransmission timer expires, and nothing has stirred since `since`: the wait was for the timer.
    pub(super) fn timed_out(&mut self, now: u64) {
        self.pass(now);
        let sending = Wait::Sending as usize;
        // A shaper that adapts may have begun a frame since: it goes on being sent.
        let mut active = self.sums;
        for state in (0..Wait::COUNT).filter(|state| self.moved >> state & 1 == 1) {
            active[state] = self.active[state];
        }
        let ahead = self.until.saturating_sub(now).min(self.sums[sending] - active[sending]);
        let waited: u64 = self.sums.iter().sum::<u64>() - active.iter().sum::<u64>();
        (self.sums, self.moved) = (active, 0);
        self.add(Wait::RetransmissionTimer, waited - ahead);
        self.add(Wait::Sending, ahead);
    }

    /// How long it was in each state up to what is known.
    pub(super) fn sums(&self) -> &Sums {
        &self.sums
    }

    /// How long it was in each state up to `now`, which is not in the past.
    pub(super) fn sums_at(&self, now: u64) -> Sums {
        let mut sums = self.sums;
        match now.checked_sub(self.until) {
            Some(passed) => sums[self.state as usize] += passed,
            // Only emissions are known in advance.
            None => sums[Wait::Sending as usize] -= self.until - now,
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_goes_on_being_sent_when_the_timer_expires() {
        let mut waits = Waits::default();
        waits.set(0, Wait::CongestionWindow);
        waits.stir(0);
        // A shaper that adapts begins a frame that was handed to it before.
        waits.emit(10, 100);
        waits.timed_out(40);
        let sums = waits.sums_at(40);
        assert_eq!(sums[Wait::RetransmissionTimer as usize], 40);
        assert_eq!(sums.iter().sum::<u64>(), 40);
        assert_eq!(waits.sums_at(130)[Wait::Sending as usize], 60);
        assert_eq!(waits.sums_at(130).iter().sum::<u64>(), 130);
    }
}
