//! Sending on a schedule: the scheduling class and idle states that a sender requests, how it catches up after a delay, and the causes of its stalls.

use serde_json::{Value, json};

use super::pacing::{Pacing, Waiter};
use crate::statistics::{Mark, Stalls};
use crate::sys::clock;
use crate::sys::thread::Watch;
use crate::sys::thread_priority::{Class, CpuLatencyHold, RaisedNice, real_time};
use crate::time::MICROSECOND;

/// If the mean gap between messages is shorter than this (ns), there is no time to read the thread's clocks for every message.
const TIME_TO_LOOK: u64 = 50 * MICROSECOND;

/// Send times of a sender that is late: at most twice the rate of the schedule, so that a stall does not end in a burst.
#[derive(Debug, Default)]
struct CatchUp {
    due: u64,
    left: u64,
}

impl CatchUp {
    /// Returns the instant at which to send the message that is due at `due`: later than that if the sender is late.
    fn instant(&mut self, due: u64) -> u64 {
        let step = due.saturating_sub(self.due);
        self.due = due;
        due.max(self.left.saturating_add(step / 2))
    }
}

/// State of a sender on a schedule, owned by its thread.
#[derive(Debug)]
pub(super) struct PacedSender {
    catch_up: CatchUp,
    class: Class,
    _heavy: Option<RaisedNice>,
    awake: Option<CpuLatencyHold>,
    watch: Option<Watch>,
    stalls: Stalls,
    slept: u64,
}

impl PacedSender {
    /// Sets up the calling thread to send messages with the mean gap `gap` (ns).
    pub(super) fn new(pacing: Pacing, gap: u64) -> Self {
        let exact = matches!(pacing, Pacing::Busy | Pacing::Hybrid);
        // If other threads want its core, the kernel stops a real-time thread that never sleeps for 50 ms of every second, in one piece. Occasional short
        // sleeps do not prevent that. Therefore only `Hybrid`, with a gap long enough to sleep, runs in real time.
        let urgent = pacing == Pacing::Hybrid && gap >= TIME_TO_LOOK && real_time();
        let heavy = if exact && !urgent { RaisedNice::ask() } else { None };
        let class = if urgent {
            Class::RealTime
        } else if heavy.is_some() {
            Class::Heavy
        } else {
            Class::Normal
        };
        Self {
            catch_up: CatchUp::default(),
            class,
            _heavy: heavy,
            awake: if exact { CpuLatencyHold::hold() } else { None },
            watch: if gap >= TIME_TO_LOOK { Watch::here() } else { None },
            stalls: Stalls::default(),
            slept: 0,
        }
    }

    /// Returns the instant at which to send the message that is due at `due`: later than that while the sender catches up.
    #[inline]
    pub(super) fn instant(&mut self, due: u64, waiter: &Waiter) -> u64 {
        let at = self.catch_up.instant(due);
        if self.watch.is_some() {
            self.slept = waiter.sleep(at, clock::now());
        }
        at
    }

    /// Records that the message due at `due` left at `at`, after its send call has returned. Only measured messages count in the stalls.
    #[inline]
    pub(super) fn left(&mut self, at: u64, due: u64, measured: bool) {
        self.catch_up.left = at;
        if let Some(waited) = self.watch.as_ref().filter(|_| measured).and_then(Watch::waited) {
            self.stalls.record(Mark { at: clock::now(), ran: clock::ran(), waited }, due, self.slept);
        }
    }

    /// Returns the granted class, the idle-state request and the stalls, as in `pacing` of results.
    pub(super) fn to_json(&self) -> Value {
        let stalls = if self.watch.is_some() { self.stalls.to_json() } else { Value::Null };
        json!({ "class": self.class, "awake": self.awake.is_some(), "stalls": stalls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_sender_catches_up_at_twice_the_rate() {
        let mut catch_up = CatchUp { due: 0, left: 0 };
        let mut instants = Vec::new();
        for index in 1..=20_u64 {
            let at = catch_up.instant(index * 100);
            // The third message is delayed by 450.
            let at = if index == 3 { 750 } else { at };
            catch_up.left = at;
            instants.push(at);
        }
        // 100, 200, 750, then every 50 until it is back on the schedule, which has not moved.
        assert_eq!(instants[..6], [100, 200, 750, 800, 850, 900]);
        assert!(instants[3..].windows(2).all(|pair| pair[1] - pair[0] >= 50));
        assert_eq!(instants[19], 2000);
    }

    #[test]
    fn messages_due_together_are_sent_together() {
        let mut catch_up = CatchUp::default();
        for due in [100, 100, 100, 300] {
            let at = catch_up.instant(due);
            catch_up.left = at;
            assert_eq!(at, due);
        }
    }
}
