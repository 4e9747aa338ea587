//! How a flow's threads are started and stopped, and what they tell while they run.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::sys::clock;

/// Why a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub(crate) enum Ended {
    Duration = 1,
    Bytes,
    Peer,
    Stopped,
    LimitRate,
    LimitBytes,
    LimitTime,
    Silent,
    Failed,
}

const REASONS: [Ended; 9] = [
    Ended::Duration,
    Ended::Bytes,
    Ended::Peer,
    Ended::Stopped,
    Ended::LimitRate,
    Ended::LimitBytes,
    Ended::LimitTime,
    Ended::Silent,
    Ended::Failed,
];

/// The reins of one flow: its threads look at them, the agent holds them.
#[derive(Debug, Default)]
pub(crate) struct Control {
    reason: AtomicU8,
    start: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Control {
    /// Let the senders begin at this instant of the monotonic clock.
    pub(crate) fn start(&self, at: u64) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
        self.changed.notify_all();
    }

    /// When it starts, if that was said.
    pub(crate) fn started(&self) -> Option<u64> {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// End the flow; the first reason counts.
    pub(crate) fn stop(&self, reason: Ended) {
        let first = self.reason.compare_exchange(0, reason as u8, Ordering::Release, Ordering::Relaxed);
        if first.is_ok() {
            self.wake();
        }
    }

    /// Whether its threads have to end.
    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.reason.load(Ordering::Relaxed) != 0
    }

    /// Why it was stopped from outside its threads.
    pub(crate) fn reason(&self) -> Option<Ended> {
        let reason = self.reason.load(Ordering::Acquire);
        REASONS.into_iter().find(|known| *known as u8 == reason)
    }

    /// Let those who wait look again.
    pub(crate) fn wake(&self) {
        // The lock is taken so that nobody is between looking and waiting.
        drop(self.start.lock());
        self.changed.notify_all();
    }

    /// Wait until the start is known, then until it comes; `None` if the flow is stopped before.
    pub(crate) fn wait_start(&self) -> Option<u64> {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.stopped() {
                return None;
            }
            if let Some(at) = *start {
                let now = clock::now();
                if now >= at {
                    return Some(at);
                }
                let wait = Duration::from_nanos((at - now).min(50_000_000));
                drop(start);
                clock::sleep_until(now + wait.as_nanos() as u64);
                start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
            } else {
                start = self.changed.wait(start).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Wait until `ready` or `due`; whether it was ready.
    pub(crate) fn wait_until(&self, due: u64, ready: impl Fn() -> bool) -> bool {
        let mut guard = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if ready() {
                return true;
            }
            let left = due.saturating_sub(clock::now());
            if left == 0 {
                return false;
            }
            let waited = self.changed.wait_timeout(guard, Duration::from_nanos(left));
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// What one stream's thread tells while it runs: written by it alone, read by the monitor.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Meter {
    bytes: AtomicU64,
    messages: AtomicU64,
    lost: AtomicU64,
    first: AtomicU64,
    done: AtomicBool,
}

/// A reading of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    pub(crate) lost: u64,
}

impl Meter {
    /// Totals since the beginning.
    #[inline]
    pub(crate) fn set(&self, bytes: u64, messages: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.messages.store(messages, Ordering::Relaxed);
    }

    /// Datagrams that are missing so far.
    #[inline]
    pub(crate) fn set_lost(&self, lost: u64) {
        self.lost.store(lost, Ordering::Relaxed);
    }

    /// Traffic began at this instant.
    pub(crate) fn began(&self, at: u64) {
        self.first.store(at, Ordering::Release);
    }

    /// When traffic began.
    pub(crate) fn first(&self) -> Option<u64> {
        Some(self.first.load(Ordering::Acquire)).filter(|at| *at > 0)
    }

    /// The thread has ended.
    pub(crate) fn finish(&self) {
        self.done.store(true, Ordering::Release);
    }

    /// Whether the thread has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Totals now.
    pub(crate) fn read(&self) -> Reading {
        Reading {
            bytes: self.bytes.load(Ordering::Relaxed),
            messages: self.messages.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_counts() {
        let control = Control::default();
        assert_eq!(control.reason(), None);
        control.stop(Ended::LimitBytes);
        control.stop(Ended::Stopped);
        assert!(control.stopped());
        assert_eq!(control.reason(), Some(Ended::LimitBytes));
        assert_eq!(control.wait_start(), None);
    }

    #[test]
    fn those_who_wait_are_woken() {
        let control = Control::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| control.wait_start());
            let at = clock::now() + 1_000_000;
            control.start(at);
            assert_eq!(waiting.join().expect("no panic"), Some(at));
        });
        assert!(clock::now() >= control.started().expect("it was said"));
    }
}
