//! The timers of a connection, in one table.

use crate::time::Time;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Retransmission (RFC 6298), of the SYN too.
    Retransmission,
    /// Probe of a closed window (RFC 9293 section 3.8.6.1).
    Persist,
    /// End of TIME-WAIT.
    TimeWait,
    /// Pacing lets the next segment out.
    Pacing,
    /// RACK's reordering window ends (RFC 8985 section 6).
    Reordering,
    /// Tail loss probe (RFC 8985 section 7).
    TailProbe,
}

const COUNT: usize = 6;

/// When each timer expires. The acknowledgment timer is in [`super::delayed_ack`].
#[derive(Clone, Debug, Default)]
pub(super) struct Timers([Option<Time>; COUNT]);

impl Timers {
    pub(super) fn set(&mut self, timer: Timer, at: Time) {
        self.0[timer as usize] = Some(at);
    }

    pub(super) fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = None;
    }

    pub(super) fn is_set(&self, timer: Timer) -> bool {
        self.0[timer as usize].is_some()
    }

    /// Whether `timer` has expired; then it is stopped.
    pub(super) fn expired(&mut self, timer: Timer, now: Time) -> bool {
        let expired = self.0[timer as usize].is_some_and(|at| at <= now);
        if expired {
            self.stop(timer);
        }
        expired
    }

    pub(super) fn at(&self, timer: Timer) -> Option<Time> {
        self.0[timer as usize]
    }

    pub(super) fn stop_all(&mut self) {
        self.0 = [None; COUNT];
    }

    /// The earliest.
    pub(super) fn next(&self) -> Option<Time> {
        self.0.iter().flatten().min().copied()
    }
}
