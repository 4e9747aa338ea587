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
    /// What they have grown by since something last came in or went out.
    grown: Grown,
    state: Wait,
    /// Its frames carry its sums with them, because a line on their way is shared.
    pub(super) stamped: bool,
}

/// So many states are rarely more than a sender is in between two packets.
const FEW: usize = 3;

/// Picoseconds in a few states.
#[derive(Clone, Debug, Default)]
struct Grown {
    ps: [u64; FEW],
    states: [u8; FEW],
    count: u8,
    /// In the states beyond them.
    others: Option<Box<Sums>>,
}

impl Grown {
    #[inline(always)]
    fn add(&mut self, state: Wait, ps: u64) {
        let state = state as u8;
        match self.count {
            0 => (self.states[0], self.ps[0], self.count) = (state, ps, 1),
            1 if self.states[0] != state => (self.states[1], self.ps[1], self.count) = (state, ps, 2),
            _ => self.add_to_some(state, ps),
        }
    }

    #[inline(never)]
    fn add_to_some(&mut self, state: u8, ps: u64) {
        let count = usize::from(self.count);
        if let Some(place) = self.states[..count].iter().position(|known| *known == state) {
            self.ps[place] += ps;
        } else if count < FEW {
            (self.states[count], self.ps[count]) = (state, ps);
            self.count += 1;
        } else {
            self.others.get_or_insert_default()[usize::from(state)] += ps;
        }
    }

    #[inline]
    fn clear(&mut self) {
        self.count = 0;
        if let Some(others) = &mut self.others {
            **others = Sums::default();
        }
    }

    fn by_state(&self) -> Sums {
        let mut sums = self.others.as_deref().copied().unwrap_or_default();
        for place in 0..usize::from(self.count) {
            sums[usize::from(self.states[place])] += self.ps[place];
        }
        sums
    }
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            sums: [0; Wait::COUNT],
            until: 0,
            grown: Grown::default(),
            state: Wait::Application,
            stamped: false,
        }
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
        self.sums[state as usize] += ps;
        self.grown.add(state, ps);
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
        self.grown.clear();
    }

    /// The retransmission timer expires, and nothing has stirred since `since`: the wait was for the timer.
    pub(super) fn timed_out(&mut self, now: u64) {
        self.pass(now);
        let grown = self.grown.by_state();
        // A shaper that adapts may have begun a frame since: it goes on being sent.
        let ahead = self.until.saturating_sub(now).min(grown[Wait::Sending as usize]);
        let waited: u64 = grown.iter().sum();
        self.sums.iter_mut().zip(grown).for_each(|(sum, grown)| *sum -= grown);
        self.grown.clear();
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

    /// In more states than a few, in turns.
    #[test]
    fn what_was_waited_for_the_timer_is_all_since_the_last_packet() {
        let mut waits = Waits::default();
        let states = [Wait::Application, Wait::Cpu, Wait::Nic, Wait::SendBuffer, Wait::Nagle, Wait::Pacing];
        for round in 0..3 {
            let begin = waits.until;
            let before = waits.sums_at(begin);
            for step in 0..20 {
                waits.set(begin + 10 * step, states[step as usize % (2 + 2 * round)]);
            }
            let now = begin + 200;
            let mut then = waits.clone();
            waits.stir(now);
            assert_eq!(then.sums_at(now), waits.sums_at(now));
            then.timed_out(now);
            let after = then.sums_at(now);
            for (state, (after, before)) in after.into_iter().zip(before).enumerate() {
                let timer = state == Wait::RetransmissionTimer as usize;
                assert_eq!(after - before, if timer { 200 } else { 0 }, "{state}");
            }
        }
    }

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
