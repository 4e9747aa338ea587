//! State times of senders: how long each was in which state. Their growth gives the reasons for the idle time of lines.

use engpass_model::tcp::LimitedBy;

/// State of a sender at an instant. Common states come first, rare states behind `Sending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderState {
    /// The application has nothing to send: it has not begun, has ended, pauses, or keeps to its rate.
    Application,
    /// The sender waits for room in the NIC.
    Nic,
    /// The receiver's window has no room for a segment.
    ReceiveWindow,
    /// The congestion window has no room for a segment.
    CongestionWindow,
    /// Only the expiry of the retransmission timer lets the sender go on.
    RetransmissionTimer,
    /// The connection is not open yet.
    Handshake,
    /// A packet of the sender is in its NIC.
    Sending,
    /// The host's CPU works for the sender, or for others ahead of it.
    Cpu,
    /// The application waits for room in the send buffer.
    SendBuffer,
    /// Nagle's rule holds a small segment back (RFC 1122 section 4.2.3.4).
    Nagle,
    /// The window has room for only a part of a segment (RFC 1122 section 4.2.3.4).
    SillyWindow,
    /// Pacing delays the next segment.
    Pacing,
}

/// Picoseconds by [`SenderState`].
pub type StateTimes = [u64; SenderState::COUNT];

/// Picoseconds by state: the common states, and the rare states.
pub(super) type CommonTimes = [u64; USUAL];
pub(super) type ColdTimes = [u64; SenderState::COUNT - USUAL];

/// Number of common states. The last one is `Sending`.
pub(super) const USUAL: usize = SenderState::Sending as usize + 1;

/// Joins the times of common and rare states.
pub(super) fn sums_of(usual: &CommonTimes, others: Option<&ColdTimes>) -> StateTimes {
    let mut sums = [0; SenderState::COUNT];
    let (first, behind) = sums.split_at_mut(USUAL);
    first.copy_from_slice(usual);
    if let Some(others) = others {
        behind.copy_from_slice(others);
    }
    sums
}

/// Splits the times into those of common states and, if any of these is not zero, of rare states.
pub(super) fn parts_of(sums: &StateTimes) -> (&CommonTimes, Option<&ColdTimes>) {
    let (usual, others) = sums.split_first_chunk().expect("the common states are a prefix of all states");
    (usual, others.first_chunk().filter(|others| **others != [0; SenderState::COUNT - USUAL]))
}

impl SenderState {
    pub(super) const COUNT: usize = 12;

    /// Returns the sender state for the reason that limits a connection.
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

/// State times of one sender since the start of the run, in picoseconds.
#[derive(Clone, Debug)]
pub(super) struct SenderStates {
    /// Time in the common states.
    sums: CommonTimes,
    /// Instant up to which `sums` are complete. It lies in the future while the NIC sends.
    until: u64,
    /// Growth of the state times since the connection last sent or received: time and state of up to `FEW` states. A count above `FEW` means that further
    /// states have grown; they are in [`Rare`].
    grown: [u64; FEW],
    grown_states: [u8; FEW],
    grown_count: u8,
    state: SenderState,
    /// True if the sender's packets carry a snapshot, because a line on their path is shared.
    pub(super) stamped: bool,
    rare: Option<Box<Rare>>,
}

/// Number of states whose growth is stored in place; a sender is rarely in more between two packets.
const FEW: usize = 3;
/// Value of `grown_count` for a sender without retransmission timer: its growth is not recorded.
const UNASKED: u8 = u8::MAX;

// Every sender of a run has one of these; therefore its size counts.
const _: () = assert!(size_of::<SenderStates>() == 104);

/// Data that few senders need.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// Time in the rare states.
    sums: ColdTimes,
    /// Growth of the states beyond the first few.
    grown: StateTimes,
}

impl Default for SenderStates {
    fn default() -> Self {
        Self {
            sums: CommonTimes::default(),
            until: 0,
            grown: [0; FEW],
            grown_states: [0; FEW],
            grown_count: 0,
            state: SenderState::Application,
            stamped: false,
            rare: None,
        }
    }
}

impl SenderStates {
    /// Returns the states of a UDP process, which has no retransmission timer.
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

    /// Like `pass`, without recording the growth.
    #[inline(always)]
    fn pass_without_growth(&mut self, now: u64) {
        if now > self.until {
            self.sum(self.state, now - self.until);
            self.until = now;
        }
    }

    /// Counts the sender as sending up to `until`, without recording the growth.
    #[inline(always)]
    fn send_without_growth(&mut self, until: u64) {
        if until > self.until {
            self.sum(SenderState::Sending, until - self.until);
            self.until = until;
        }
    }

    #[inline]
    fn add(&mut self, state: SenderState, ps: u64) {
        self.sum(state, ps);
        self.grow(state as u8, ps);
    }

    #[inline(always)]
    fn sum(&mut self, state: SenderState, ps: u64) {
        match self.sums.get_mut(state as usize) {
            Some(sum) => *sum += ps,
            None => self.add_cold(state, ps),
        }
    }

    #[inline(never)]
    fn add_cold(&mut self, state: SenderState, ps: u64) {
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
    fn reset_growth(&mut self) {
        if usize::from(self.grown_count) > FEW
            && let Some(rare) = &mut self.rare
        {
            rare.grown = StateTimes::default();
        }
        self.grown_count = 0;
    }

    fn grown(&self) -> StateTimes {
        let mut sums = self.rare.as_ref().map_or(StateTimes::default(), |rare| rare.grown);
        for place in 0..usize::from(self.grown_count).min(FEW) {
            sums[usize::from(self.grown_states[place])] += self.grown[place];
        }
        sums
    }

    /// Sets the state from `now` on. The sender counts as sending for as long as its NIC still sends its packets.
    #[inline]
    pub(super) fn set(&mut self, now: u64, state: SenderState) {
        self.pass(now);
        self.state = state;
    }

    /// Counts the sender as sending up to `until`: a packet or PDU enters the NIC at `now`, which will have sent it at `until` if nothing else delays it.
    #[inline(always)]
    pub(super) fn emit(&mut self, now: u64, until: u64) {
        self.pass(now);
        if until > self.until {
            self.add(SenderState::Sending, until - self.until);
            self.until = until;
        }
    }

    /// Forgets the growth, because the connection sent or received something: a wait for the retransmission timer begins anew.
    #[inline]
    pub(super) fn note_activity(&mut self, now: u64) {
        // The growth is cleared below and therefore need not be recorded.
        self.pass_without_growth(now);
        self.reset_growth();
    }

    /// Like [`emit`](Self::emit), for a process whose application then has nothing more to send.
    #[inline(always)]
    pub(super) fn emit_then_idle(&mut self, now: u64, until: u64) {
        debug_assert_eq!(self.grown_count, UNASKED, "a process has no retransmission timer");
        self.pass_without_growth(now);
        self.send_without_growth(until);
        self.state = SenderState::Application;
    }

    /// Like [`emit`](Self::emit) and [`note_activity`](Self::note_activity) together; skips the growth, which `note_activity` would clear.
    #[inline(always)]
    pub(super) fn emit_and_note_activity(&mut self, now: u64, until: u64) {
        self.note_activity(now);
        self.send_without_growth(until);
    }

    /// Handles the expiry of the retransmission timer: all time since the last activity becomes a wait for the timer, except the time of sending.
    pub(super) fn reassign_to_timer(&mut self, now: u64) {
        self.pass(now);
        let mut grown = self.grown();
        // An adaptive shaper may have emitted a PDU since then that was handed to it before. That time stays sending.
        grown[SenderState::Sending as usize] = 0;
        let waited: u64 = grown.iter().sum();
        let others = self.rare.iter_mut().flat_map(|rare| &mut rare.sums);
        self.sums.iter_mut().chain(others).zip(grown).for_each(|(sum, grown)| *sum -= grown);
        self.reset_growth();
        self.add(SenderState::RetransmissionTimer, waited);
    }

    /// Returns the state times up to `self.until`: common states, and rare states if the sender was in any.
    #[inline(always)]
    pub(super) fn parts(&self) -> (&CommonTimes, Option<&ColdTimes>) {
        (&self.sums, self.rare.as_ref().map(|rare| &rare.sums))
    }

    /// Returns the state times up to `self.until`, in picoseconds.
    pub(super) fn sums(&self) -> StateTimes {
        let (usual, others) = self.parts();
        sums_of(usual, others)
    }

    /// Returns whether a NIC of the sender's host still sends packets of the sender after `at`.
    #[inline(always)]
    pub(super) fn is_emitting_after(&self, at: u64) -> bool {
        self.until > at
    }

    /// Returns the state times up to `now`, in picoseconds. `now` must not lie in the past.
    pub(super) fn sums_at(&self, now: u64) -> StateTimes {
        let mut sums = self.sums();
        match now.checked_sub(self.until) {
            Some(passed) => sums[self.state as usize] += passed,
            // Only the time of sending is counted ahead of time.
            None => sums[SenderState::Sending as usize] -= self.until - now,
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses more than `FEW` states, which alternate.
    #[test]
    fn timer_expiry_reassigns_waits_since_the_last_packet() {
        let mut waits = SenderStates::default();
        let states = [
            SenderState::Application,
            SenderState::Cpu,
            SenderState::Nic,
            SenderState::SendBuffer,
            SenderState::Nagle,
            SenderState::Pacing,
        ];
        for round in 0..3 {
            let begin = waits.until;
            let before = waits.sums_at(begin);
            for step in 0..20 {
                waits.set(begin + 10 * step, states[step as usize % (2 + 2 * round)]);
            }
            let now = begin + 200;
            let mut then = waits.clone();
            waits.note_activity(now);
            assert_eq!(then.sums_at(now), waits.sums_at(now));
            then.reassign_to_timer(now);
            let after = then.sums_at(now);
            for (state, (after, before)) in after.into_iter().zip(before).enumerate() {
                let timer = state == SenderState::RetransmissionTimer as usize;
                assert_eq!(after - before, if timer { 200 } else { 0 }, "{state}");
            }
        }
    }

    #[test]
    fn timer_expiry_keeps_the_time_of_a_frame_being_sent() {
        let mut waits = SenderStates::default();
        waits.set(0, SenderState::CongestionWindow);
        waits.note_activity(0);
        // An adaptive shaper begins a PDU that was handed to it before.
        waits.emit(10, 100);
        waits.reassign_to_timer(40);
        let sums = waits.sums_at(40);
        assert_eq!(sums[SenderState::RetransmissionTimer as usize], 10);
        assert_eq!(sums.iter().sum::<u64>(), 40);
        assert_eq!(waits.sums_at(130)[SenderState::Sending as usize], 90);
        assert_eq!(waits.sums_at(130).iter().sum::<u64>(), 130);
    }
}
