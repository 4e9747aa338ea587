//! The timers of a connection, in one table.

use crate::time::{SECOND, Time};

/// Time that Linux adds to the waits of RACK and of tail loss probes (`TCP_TIMEOUT_MIN_US`).
pub(super) const TIMER_SLACK: Time = Time(SECOND / 500);

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Probe of a closed window (RFC 9293 section 3.8.6.1).
    Persist,
    /// End of TIME-WAIT.
    TimeWait,
    /// End of the pacing gap before the next segment.
    Pacing,
    /// End of RACK's reordering window (RFC 8985 section 6).
    Reordering,
    /// Tail loss probe (RFC 8985 section 7).
    TailProbe,
    /// Retransmission (RFC 6298), of the SYN too.
    Retransmission,
}

/// Number of timers that not every connection needs: all except retransmission.
const OTHERS: usize = Timer::Retransmission as usize;

/// When each timer expires. The acknowledgment timer is in [`super::delayed_ack`].
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// [`Time::MAX`] while stopped, as for the others.
    retransmission: Time,
    others: Option<Box<[Time; OTHERS]>>,
}

impl Default for Timers {
    fn default() -> Self {
        Self { retransmission: Time::MAX, others: None }
    }
}

impl Timers {
    #[inline]
    pub(super) fn set(&mut self, timer: Timer, at: Time) {
        // A timer that is set to [`Time::MAX`] never expires.
        let place = match timer {
            Timer::Retransmission => &mut self.retransmission,
            other => &mut self.others.get_or_insert_with(|| Box::new([Time::MAX; OTHERS]))[other as usize],
        };
        *place = at;
    }

    #[inline]
    pub(super) fn stop(&mut self, timer: Timer) {
        match (timer, &mut self.others) {
            (Timer::Retransmission, _) => self.retransmission = Time::MAX,
            (other, Some(others)) => others[other as usize] = Time::MAX,
            (_, None) => {}
        }
    }

    #[inline]
    pub(super) fn is_set(&self, timer: Timer) -> bool {
        self.at(timer).is_some()
    }

    /// Returns whether `timer` has expired, and stops it in that case.
    pub(super) fn expired(&mut self, timer: Timer, now: Time) -> bool {
        let expired = self.at(timer).is_some_and(|at| at <= now);
        if expired {
            self.stop(timer);
        }
        expired
    }

    #[inline]
    pub(super) fn at(&self, timer: Timer) -> Option<Time> {
        let at = match (timer, &self.others) {
            (Timer::Retransmission, _) => self.retransmission,
            (other, Some(others)) => others[other as usize],
            (_, None) => Time::MAX,
        };
        (at != Time::MAX).then_some(at)
    }

    /// Frees the table of the other timers if none of them runs.
    pub(super) fn release_unused_memory(&mut self) {
        self.others.take_if(|others| **others == [Time::MAX; OTHERS]);
    }

    pub(super) fn stop_all(&mut self) {
        self.retransmission = Time::MAX;
        if let Some(others) = &mut self.others {
            **others = [Time::MAX; OTHERS];
        }
    }

    /// Returns when the earliest timer expires; [`Time::MAX`] if none runs.
    #[inline]
    pub(super) fn next(&self) -> Time {
        let others = self
            .others
            .as_ref()
            .map_or(Time::MAX, |others| others.iter().fold(Time::MAX, |least, at| least.min(*at)));
        self.retransmission.min(others)
    }
}
