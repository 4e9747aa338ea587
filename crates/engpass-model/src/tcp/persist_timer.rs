//! Probes of a closed window (RFC 9293 section 3.8.6.1) and the overriding timeout of silly window avoidance.

use super::connection::Connection;
use super::limited_by::LimitedBy;
use super::rare::SlowPathFlags;
use super::timers::Timer;
use crate::time::Time;

impl Connection {
    /// Returns whether only the peer's window holds data back, with nothing in the network that would bring an acknowledgment.
    fn is_shut_out(&self) -> bool {
        let probe_due = self.special.has(SlowPathFlags::PROBE_DUE);
        let probing = self.special.has(SlowPathFlags::PROBING);
        if !self.is_open() || probe_due || self.tx.unsent() == 0 && !probing {
            return false;
        }
        if probing {
            return true;
        }
        let piece = self.tx.next_piece(&self.p, self.window.mss(), self.board.una(), true);
        self.board.is_empty() && matches!(piece, Err(LimitedBy::ReceiveWindow | LimitedBy::SillyWindow))
    }

    /// Sets or stops the persist timer. To be called after every input.
    #[inline]
    pub(super) fn update_persist_timer(&mut self, now: Time) {
        // Data in the network probes the window by itself.
        if !self.special.is_empty() || self.board.is_empty() && self.tx.unsent() > 0 {
            self.update_persist_timer_slow_path(now);
        }
    }

    #[inline(never)]
    fn update_persist_timer_slow_path(&mut self, now: Time) {
        if !self.is_shut_out() {
            if !self.special.has(SlowPathFlags::PROBE_DUE) {
                self.timers.stop(Timer::Persist);
                self.rare.iter_mut().for_each(|rare| rare.persist_count = 0);
                self.special.set(SlowPathFlags::PERSISTING, false);
            }
        } else if !self.timers.is_set(Timer::Persist) {
            // "The transmitting host SHOULD send the first zero-window probe when a zero window has existed for the
            // retransmission timeout period […] and SHOULD increase exponentially the interval between successive
            // probes" (SHLD-29, SHLD-30).
            let doubled = u128::from(self.timeout().ps())
                << self.rare.as_ref().map_or(0, |rare| rare.persist_count.min(32));
            let interval = u64::try_from(doubled).unwrap_or(u64::MAX);
            let interval = interval.clamp(self.p.persist_minimum.ps(), self.p.persist_maximum.ps());
            self.timers.set(Timer::Persist, now + Time(interval));
            self.special.set(SlowPathFlags::PERSISTING, true);
        }
    }

    /// Handles the expired persist timer.
    pub(super) fn on_persist(&mut self) {
        let rare = self.rare();
        rare.persist_count = rare.persist_count.saturating_add(1);
        self.special.set(SlowPathFlags::PROBE_DUE, true);
    }

    /// Handles a changed window: a probe that lay beyond the window may be resent as data now.
    pub(super) fn after_window_change(&mut self) {
        self.special.set(SlowPathFlags::PROBE_DUE, false);
        if self.special.has(SlowPathFlags::PROBING)
            && self.board.una() + u64::from(self.tx.window) >= self.tx.next
        {
            self.special.set(SlowPathFlags::PROBING, false);
            if !self.board.is_empty() {
                self.board.mark_lost(0);
                self.recovery.force = true;
            }
        }
    }
}
