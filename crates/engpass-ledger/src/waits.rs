//! What a sender was doing, summed up: the reasons why a line that it could have used was idle.

use engpass_model::tcp::LimitedBy;

/// What a sender is doing at an instant: first what most senders do now and then, behind it what only some do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Its application has nothing to send: it has not begun, has ended, pauses, or keeps to its rate.
    Application,
    /// It waits for room in the NIC.
    Nic,
    /// The receiver's window has no room for a segment.
    ReceiveWindow,
    /// The congestion window has no room for a segment.
    CongestionWindow,
    /// Nothing but the expiry of the retransmission timer lets it go on.
    RetransmissionTimer,
    /// The connection is not open yet.
    Handshake,
    /// Its NIC emits frames of it.
    Sending,
    /// The host's CPU works for it, or for others before it.
    Cpu,
    /// The application waits for room in the send buffer.
    SendBuffer,
    /// Nagle's rule holds a small segment back (RFC 1122 section 4.2.3.4).
    Nagle,
    /// The window has room for a part of a segment only (RFC 1122 section 4.2.3.4).
    SillyWindow,
    /// The next segment is not due yet.
    Pacing,
}

/// Picoseconds by [`Wait`].
pub type Sums = [u64; Wait::COUNT];

/// Those of what most senders do, and of what others do.
pub(super) type Usual = [u64; USUAL];
pub(super) type Others = [u64; Wait::COUNT - USUAL];

/// So many are usual; the last of them is sending.
pub(super) const USUAL: usize = Wait::Sending as usize + 1;

/// All of them.
pub(super) fn sums_of(usual: &Usual, others: Option<&Others>) -> Sums {
    let mut sums = [0; Wait::COUNT];
    let (first, behind) = sums.split_at_mut(USUAL);
    first.copy_from_slice(usual);
    if let Some(others) = others {
        behind.copy_from_slice(others);
    }
    sums
}

/// Apart again: what others do, if it did any of it.
pub(super) fn parts_of(sums: &Sums) -> (&Usual, Option<&Others>) {
    let (usual, others) = sums.split_first_chunk().expect("the usual are some of all");
    (usual, others.first_chunk().filter(|others| **others != [0; Wait::COUNT - USUAL]))
}

impl Wait {
    pub(super) const COUNT: usize = 12;

    /// What the connection's reason is in the ledger.
    pub fn of(limited: LimitedBy) -> Self {
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
    /// In those that most senders are in.
    sums: Usual,
    /// Everything before this is in the sums; in the future while the NIC emits.
    until: u64,
    /// What they have grown by since something last came in or went out: of so many states, or more than a few.
    grown: [u64; FEW],
    grown_states: [u8; FEW],
    grown_count: u8,
    state: Wait,
    /// Its frames carry its sums with them, because a line on their way is shared.
    pub(super) stamped: bool,
    rare: Option<Box<Rare>>,
}

/// So many states are rarely more than a sender is in between two packets.
const FEW: usize = 3;
/// Nobody asks what the sums have grown by: the sender has no timer.
const UNASKED: u8 = u8::MAX;

// Every sender has them.
const _: () = assert!(size_of::<Waits>() == 104);

/// What few senders need.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// In the other states.
    sums: Others,
    /// What sums of more than a few states have grown by.
    grown: Sums,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            sums: Usual::default(),
            until: 0,
            grown: [0; FEW],
            grown_states: [0; FEW],
            grown_count: 0,
            state: Wait::Application,
            stamped: false,
            rare: None,
        }
    }
}

impl Waits {
    /// Those of a process, which sends nothing again.
    pub(super) fn of_process() -> Self {
        Self { grown_count: UNASKED, ..Self::default() }
    }

    #[inline]
    fn pass(&mut self, now: u64) {
        if now > self.until {
            self.add(self.state, now - self.until);
            self.until = now;
        }
    }

    /// The same where nobody asks what the sums have grown by.
    #[inline(always)]
    fn pass_unasked(&mut self, now: u64) {
        if now > self.until {
            self.sum(self.state, now - self.until);
            self.until = now;
        }
    }

    /// The NIC emits until then; nobody asks either.
    #[inline(always)]
    fn send_unasked(&mut self, until: u64) {
        if until > self.until {
            self.sum(Wait::Sending, until - self.until);
            self.until = until;
        }
    }

    #[inline]
    fn add(&mut self, state: Wait, ps: u64) {
        self.sum(state, ps);
        self.grow(state as u8, ps);
    }

    #[inline(always)]
    fn sum(&mut self, state: Wait, ps: u64) {
        match self.sums.get_mut(state as usize) {
            Some(sum) => *sum += ps,
            None => self.add_rarely(state, ps),
        }
    }

    #[inline(never)]
    fn add_rarely(&mut self, state: Wait, ps: u64) {
        self.rare.get_or_insert_default().sums[state as usize - USUAL] += ps;
    }

    #[inline(always)]
    fn grow(&mut self, state: u8, ps: u64) {
        match self.grown_count {
            0 => (self.grown_states[0], self.grown[0], self.grown_count) = (state, ps, 1),
            1 if self.grown_states[0] != state => {
                (self.grown_states[1], self.grown[1], self.grown_count) = (state, ps, 2);
            }
            UNASKED => {}
            _ => self.grow_some(state, ps),
        }
    }

    #[inline(never)]
    fn grow_some(&mut self, state: u8, ps: u64) {
        let count = usize::from(self.grown_count).min(FEW);
        if let Some(place) = self.grown_states[..count].iter().position(|known| *known == state) {
            self.grown[place] += ps;
        } else if count < FEW {
            (self.grown_states[count], self.grown[count]) = (state, ps);
            self.grown_count += 1;
        } else {
            self.grown_count = FEW as u8 + 1;
            self.rare.get_or_insert_default().grown[usize::from(state)] += ps;
        }
    }

    #[inline]
    fn grow_anew(&mut self) {
        if usize::from(self.grown_count) > FEW
            && let Some(rare) = &mut self.rare
        {
            rare.grown = Sums::default();
        }
        self.grown_count = 0;
    }

    fn grown(&self) -> Sums {
        let mut sums = self.rare.as_ref().map_or(Sums::default(), |rare| rare.grown);
        for place in 0..usize::from(self.grown_count).min(FEW) {
            sums[usize::from(self.grown_states[place])] += self.grown[place];
        }
        sums
    }

    /// From `now` on it does this. While the NIC emits, that is what it does, whatever its process does.
    #[inline]
    pub(super) fn set(&mut self, now: u64, state: Wait) {
        self.pass(now);
        self.state = state;
    }

    /// A frame of it enters the NIC, whose last cell will have been sent at `until` if nothing else is in its way.
    #[inline(always)]
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
        // What the sums have grown by is not asked for any more.
        self.pass_unasked(now);
        self.grow_anew();
    }

    /// As [`emit`](Self::emit) of a process, whose application has nothing more to send then.
    #[inline(always)]
    pub(super) fn emit_last(&mut self, now: u64, until: u64) {
        debug_assert_eq!(self.grown_count, UNASKED, "a process has no timer");
        self.pass_unasked(now);
        self.send_unasked(until);
        self.state = Wait::Application;
    }

    /// As [`emit`](Self::emit) and [`stir`](Self::stir): what is forgotten at once is not noted.
    #[inline(always)]
    pub(super) fn emit_and_stir(&mut self, now: u64, until: u64) {
        self.stir(now);
        self.send_unasked(until);
    }

    /// The retransmission timer expires: since something last stirred, the sender waited for it.
    pub(super) fn timed_out(&mut self, now: u64) {
        self.pass(now);
        let mut grown = self.grown();
        // A shaper that adapts may have emitted a frame since, that was handed to it before.
        grown[Wait::Sending as usize] = 0;
        let waited: u64 = grown.iter().sum();
        let others = self.rare.iter_mut().flat_map(|rare| &mut rare.sums);
        self.sums.iter_mut().chain(others).zip(grown).for_each(|(sum, grown)| *sum -= grown);
        self.grow_anew();
        self.add(Wait::RetransmissionTimer, waited);
    }

    /// How long it was in each state up to what is known: those that most are in, and the others if it was in any.
    #[inline(always)]
    pub(super) fn parts(&self) -> (&Usual, Option<&Others>) {
        (&self.sums, self.rare.as_ref().map(|rare| &rare.sums))
    }

    /// The same as one.
    pub(super) fn sums(&self) -> Sums {
        let (usual, others) = self.parts();
        sums_of(usual, others)
    }

    /// Whether the NICs of its host emit packets of it after `at`.
    #[inline(always)]
    pub(super) fn is_emitting_after(&self, at: u64) -> bool {
        self.until > at
    }

    /// How long it was in each state up to `now`, which is not in the past.
    pub(super) fn sums_at(&self, now: u64) -> Sums {
        let mut sums = self.sums();
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
        assert_eq!(sums[Wait::RetransmissionTimer as usize], 10);
        assert_eq!(sums.iter().sum::<u64>(), 40);
        assert_eq!(waits.sums_at(130)[Wait::Sending as usize], 90);
        assert_eq!(waits.sums_at(130).iter().sum::<u64>(), 130);
    }
}
