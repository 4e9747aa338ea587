//! Round-trip time and retransmission timeout (RFC 6298), in integers.

use super::parameters::{RtoFloor, TcpParameters};
use crate::time::Time;

/// Estimates the round-trip time and says how long to wait for an acknowledgment.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    /// SRTT times 8, in picoseconds; 0 before the first sample.
    smoothed8: u64,
    /// RTTVAR times 4, in picoseconds.
    variance4: u64,
    /// The smallest sample.
    minimum: Time,
    /// RTO without back-off.
    timeout: Time,
    /// How often the timeout has doubled.
    backoff: u32,
}

impl Rtt {
    pub(super) fn new(p: &TcpParameters) -> Self {
        Self { smoothed8: 0, variance4: 0, minimum: Time::MAX, timeout: p.rto_initial, backoff: 0 }
    }

    /// Take a sample that Karn's rule allows, of a segment sent at `sent`.
    pub(super) fn sample(&mut self, p: &TcpParameters, sent: Time, now: Time) {
        let exact = now.saturating_sub(sent);
        self.minimum = self.minimum.min(exact);
        let r = if p.rto_heartbeat {
            // A BSD counts ticks of its slow timer while it waits, and a count of 1 means less than one tick.
            (p.ticks(now, p.rto_tick) - p.ticks(sent, p.rto_tick)).max(1) * p.rto_tick.ps()
        } else {
            exact.ps()
        };
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
        let smoothed = self.smoothed8 / 8;
        // RFC 6298 (2.3): "RTO <- SRTT + max (G, K*RTTVAR)", K = 4.
        let spread = self.variance4.max(p.rto_tick.ps());
        let timeout = match p.rto_floor {
            RtoFloor::Timeout => (smoothed + spread).max(p.rto_minimum.ps()),
            RtoFloor::Variance => smoothed + spread.max(p.rto_minimum.ps()),
        };
        self.timeout = Time(timeout.min(p.rto_maximum.ps()));
        // RFC 6298 (5.7), note: a new measurement ends the back-off.
        self.backoff = 0;
    }

    /// RFC 6298 (5.5): "back off the timer".
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    /// RFC 6298 (5.7): after a lost SYN the timeout for data is at least 3 seconds.
    pub(super) fn after_lost_syn(&mut self) {
        self.backoff = 0;
        if self.smoothed8 == 0 {
            self.timeout = self.timeout.max(Time::from_secs(3));
        }
    }

    /// The timeout, back-off included.
    pub(super) fn timeout(&self, p: &TcpParameters) -> Time {
        let doubled = u128::from(self.timeout.ps()) << self.backoff;
        Time(u64::try_from(doubled).unwrap_or(u64::MAX).min(p.rto_maximum.ps()))
    }

    /// When a timer that is set at `now` expires.
    pub(super) fn deadline(&self, p: &TcpParameters, now: Time) -> Time {
        let at = now + self.timeout(p);
        if p.rto_heartbeat { p.next_tick(at, p.rto_tick) } else { at }
    }

    pub(super) fn smoothed(&self) -> Option<Time> {
        (self.smoothed8 > 0).then_some(Time(self.smoothed8 / 8))
    }

    pub(super) fn minimum(&self) -> Option<Time> {
        (self.minimum != Time::MAX).then_some(self.minimum)
    }
}
