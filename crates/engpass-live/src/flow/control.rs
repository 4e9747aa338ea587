//! Start and stop of a flow's threads, and the counters that they publish while they run.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::sys::clock;

/// Reason why a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub(crate) enum EndReason {
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

const REASONS: [EndReason; 9] = [
    EndReason::Duration,
    EndReason::Bytes,
    EndReason::Peer,
    EndReason::Stopped,
    EndReason::LimitRate,
    EndReason::LimitBytes,
    EndReason::LimitTime,
    EndReason::Silent,
    EndReason::Failed,
];

/// Start and stop signals of one flow, set by the agent and polled by the flow's threads.
#[derive(Debug, Default)]
pub(crate) struct Control {
    reason: AtomicU8,
    start: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Control {
    /// Lets the senders begin at the instant `at` of the monotonic clock, in ns.
    pub(crate) fn start(&self, at: u64) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
        self.changed.notify_all();
    }

    /// Returns the start instant, if `start` was called.
    pub(crate) fn started(&self) -> Option<u64> {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the flow. Only the first reason is kept.
    pub(crate) fn stop(&self, reason: EndReason) {
        let first = self.reason.compare_exchange(0, reason as u8, Ordering::Release, Ordering::Relaxed);
        if first.is_ok() {
            self.wake();
        }
    }

    /// Returns whether the threads must end.
    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.reason.load(Ordering::Relaxed) != 0
    }

    /// Returns the reason that was given to `stop`, if any.
    pub(crate) fn reason(&self) -> Option<EndReason> {
        let reason = self.reason.load(Ordering::Acquire);
        REASONS.into_iter().find(|known| *known as u8 == reason)
    }

    /// Wakes all waiting threads so that they check their conditions again.
    pub(crate) fn wake(&self) {
        // The lock is taken so that no thread is between its check and its wait.
        drop(self.start.lock());
        self.changed.notify_all();
    }

    /// Blocks until the start instant has come, and returns it. Returns `None` if the flow is stopped before.
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

    /// Blocks until `ready()` returns true or the instant `due` has come. Returns whether it was ready.
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

/// Progress counters of one stream, written by its thread alone and read by the monitor.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Meter {
    bytes: AtomicU64,
    messages: AtomicU64,
    lost: AtomicU64,
    first: AtomicU64,
    done: AtomicBool,
}

/// One reading of a stream's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    pub(crate) lost: u64,
}

impl Meter {
    /// Stores the totals of bytes and messages since the start of traffic.
    #[inline]
    pub(crate) fn set(&self, bytes: u64, messages: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.messages.store(messages, Ordering::Relaxed);
    }

    /// Stores the number of datagrams that are missing at present.
    #[inline]
    pub(crate) fn set_lost(&self, lost: u64) {
        self.lost.store(lost, Ordering::Relaxed);
    }

    /// Records the instant at which traffic began.
    pub(crate) fn began(&self, at: u64) {
        self.first.store(at, Ordering::Release);
    }

    /// Returns the instant at which traffic began, or `None` before that.
    pub(crate) fn first(&self) -> Option<u64> {
        Some(self.first.load(Ordering::Acquire)).filter(|at| *at > 0)
    }

    /// Marks the thread as ended.
    pub(crate) fn finish(&self) {
        self.done.store(true, Ordering::Release);
    }

    /// Returns whether the thread has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Returns the current totals.
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
    fn first_end_reason_is_kept() {
        let control = Control::default();
        assert_eq!(control.reason(), None);
        control.stop(EndReason::LimitBytes);
        control.stop(EndReason::Stopped);
        assert!(control.stopped());
        assert_eq!(control.reason(), Some(EndReason::LimitBytes));
        assert_eq!(control.wait_start(), None);
    }

    #[test]
    fn start_wakes_waiting_threads() {
        let control = Control::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| control.wait_start());
            let at = clock::now() + 1_000_000;
            control.start(at);
            assert_eq!(waiting.join().expect("the thread does not panic"), Some(at));
        });
        assert!(clock::now() >= control.started().expect("the start time was set"));
    }
}
