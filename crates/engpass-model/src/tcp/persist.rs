//! Probing a closed window (RFC 9293 section 3.8.6.1) and the overriding timeout of silly window avoidance.

use super::connection::Connection;
use super::limited::LimitedBy;
use super::timers::Timer;
use crate::time::Time;

impl Connection {
    /// Whether only the other side's window keeps data back, with nothing in the network that would be answered.
    fn is_shut_out(&self) -> bool {
        if !self.is_open() || self.probe_due || self.tx.unsent() == 0 && !self.probing {
            return false;
        }
        if self.probing {
            return true;
        }
        let piece = self.tx.next_piece(&self.p, true);
        self.board.is_empty() && matches!(piece, Err(LimitedBy::ReceiveWindow | LimitedBy::SillyWindow))
    }

    /// Set or stop the persist timer, after any input.
    pub(super) fn rearm(&mut self, now: Time) {
        if !self.is_shut_out() {
            if !self.probe_due {
                self.timers.stop(Timer::Persist);
                self.persist_count = 0;
            }
        } else if !self.timers.is_set(Timer::Persist) {
            // "The transmitting host SHOULD send the first zero-window probe when a zero window has existed for the
            // retransmission timeout period […] and SHOULD increase exponentially the interval between successive
            // probes" (SHLD-29, SHLD-30).
            let doubled = u128::from(self.rtt.timeout(&self.p).ps()) << self.persist_count.min(32);
            let interval = u64::try_from(doubled).unwrap_or(u64::MAX);
            let interval = interval.clamp(self.p.persist_minimum.ps(), self.p.persist_maximum.ps());
            self.timers.set(Timer::Persist, now + Time(interval));
        }
    }

    /// The persist timer has expired.
    pub(super) fn on_persist(&mut self) {
        self.persist_count += 1;
        self.probe_due = true;
    }

    /// The window has changed: a probe that was refused may be sent as data now.
    pub(super) fn after_window_change(&mut self) {
        self.probe_due = false;
        if self.probing && self.tx.una + self.tx.window >= self.tx.next {
            self.probing = false;
            if !self.board.is_empty() {
                self.board.mark_lost(0);
                self.recovery.force = true;
            }
        }
    }
}
