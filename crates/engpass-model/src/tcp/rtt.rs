//! Round-trip time and retransmission timeout (RFC 6298), in integers.

use super::parameters::{RtoFloor, TcpParameters};
use crate::time::Time;

/// Round-trip estimates, which give the retransmission timeout.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    /// SRTT times 8, in picoseconds; 0 before the first sample.
    smoothed8: u64,
    /// RTTVAR times 4, in picoseconds.
    variance4: u64,
    /// The smallest sample.
    minimum: Time,
}

/// Number of times that the timeout has doubled, and whether a lost SYN requires a longer one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    doubled: u8,
    lost_syn: bool,
}

impl Backoff {
    /// RFC 6298 (5.5): "back off the timer".
    pub(super) fn back_off(&mut self) {
        self.doubled = (self.doubled + 1).min(32);
    }

    /// Returns `timeout` after all doublings, in picoseconds.
    #[inline(never)]
    fn of(self, timeout: u64) -> u64 {
        u64::try_from(u128::from(timeout) << self.doubled).unwrap_or(u64::MAX)
    }

    /// RFC 6298 (5.7): after a lost SYN the timeout for data is at least 3 seconds.
    pub(super) fn after_lost_syn(&mut self) {
        *self = Self { doubled: 0, lost_syn: true };
    }
}

/// Returns the round trip in picoseconds as BSD measures it: in ticks of its slow timer during the wait, at least one.
#[inline(never)]
fn in_ticks(p: &TcpParameters, sent: Time, now: Time) -> u64 {
    (p.ticks(now, p.rto_tick) - p.ticks(sent, p.rto_tick)).max(1) * p.rto_tick.ps()
}

/// Returns when BSD's slow timer ticks next, at or after `at`.
#[inline(never)]
fn next_tick(p: &TcpParameters, at: Time) -> Time {
    p.next_tick(at, p.rto_tick)
}

impl Rtt {
    pub(super) fn new() -> Self {
        Self { smoothed8: 0, variance4: 0, minimum: Time::MAX }
    }

    /// Processes a sample that Karn's rule allows, of a segment sent at `sent`.
    #[inline(always)]
    pub(super) fn sample(&mut self, p: &TcpParameters, backoff: &mut Backoff, sent: Time, now: Time) {
        let exact = now.saturating_sub(sent);
        self.minimum = self.minimum.min(exact);
        let r = if p.rto_heartbeat { in_ticks(p, sent, now) } else { exact.ps() };
        if self.smoothed8 == 0 {
            // RFC 6298 (2.2): "SRTT <- R, RTTVAR <- R/2".
            self.smoothed8 = (r * 8).max(1);
            self.variance4 = r * 2;
        } else {
            // RFC 6298 (2.3), alpha = 1/8 and beta = 1/4; RTTVAR is computed with the SRTT before the update.
            let error = (self.smoothed8 / 8).abs_diff(r);
            self.variance4 = self.variance4 - self.variance4 / 4 + error;
            self.smoothed8 = (self.smoothed8 - self.smoothed8 / 8 + r).max(1);
        }
        // RFC 6298 (5.7), note: a new measurement ends the back-off.
        backoff.doubled = 0;
    }

    /// Returns the timeout without back-off, in picoseconds.
    #[inline(always)]
    fn base(&self, p: &TcpParameters, backoff: Backoff) -> u64 {
        if self.smoothed8 == 0 {
            let initial = p.rto_initial;
            return if backoff.lost_syn { initial.max(Time::from_secs(3)) } else { initial }.ps();
        }
        let smoothed = self.smoothed8 / 8;
        // RFC 6298 (2.3): "RTO <- SRTT + max (G, K*RTTVAR)", K = 4.
        let spread = self.variance4.max(p.rto_tick.ps());
        match p.rto_floor {
            RtoFloor::Timeout => (smoothed + spread).max(p.rto_minimum.ps()),
            RtoFloor::Variance => smoothed + spread.max(p.rto_minimum.ps()),
        }
    }

    /// Returns the timeout, back-off included.
    #[inline(always)]
    pub(super) fn timeout(&self, p: &TcpParameters, backoff: Backoff) -> Time {
        let most = p.rto_maximum.ps();
        let base = self.base(p, backoff);
        if backoff.doubled == 0 {
            return Time(base.min(most));
        }
        Time(backoff.of(base).min(most))
    }

    /// Returns when a timer that is set at `now` expires.
    #[inline(always)]
    pub(super) fn deadline(&self, p: &TcpParameters, backoff: Backoff, now: Time) -> Time {
        let at = now + self.timeout(p, backoff);
        if p.rto_heartbeat { next_tick(p, at) } else { at }
    }

    pub(super) fn smoothed(&self) -> Option<Time> {
        (self.smoothed8 > 0).then_some(Time(self.smoothed8 / 8))
    }

    pub(super) fn minimum(&self) -> Option<Time> {
        (self.minimum != Time::MAX).then_some(self.minimum)
    }
}
