//! Waiting for an instant, and what this host's timer is good for.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::statistic::Distribution;
use crate::sys::{clock, thread};
use crate::time::{MICROSECOND, MILLISECOND};

/// How messages are held back until they are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pacing {
    /// The timer's calibration chooses.
    #[default]
    Auto,
    /// Read the clock until it is time: most exact, a whole core.
    Busy,
    /// Sleep until a little before, then as `Busy`.
    Hybrid,
    /// Sleep.
    Sleep,
    /// The kernel paces the socket.
    Kernel,
    /// Several messages leave together, at the mean rate.
    Burst,
}

/// What the timer of this host does when it is asked to sleep.
#[derive(Clone, Debug)]
pub(crate) struct Timer {
    clock_read_ns: u64,
    late: Distribution,
}

/// The gap of the calibration's sleeps.
const NAP: u64 = 100 * MICROSECOND;

impl Timer {
    /// Sleep again and again for about so long, and see how late this thread wakes.
    pub(crate) fn calibrate(duration_ns: u64) -> Self {
        thread::exact_timers();
        let begin = clock::now();
        let reads = 1000;
        let last = (0..reads).map(|_| clock::now()).max().unwrap_or(begin);
        let clock_read_ns = (last - begin) / reads;
        let mut late = Distribution::new();
        let end = last.saturating_add(duration_ns);
        let mut due = last + NAP;
        while due < end {
            clock::sleep_until(due);
            let woken = clock::now();
            late.record(woken.saturating_sub(due));
            due = woken + NAP;
        }
        Self { clock_read_ns, late }
    }

    /// As in `hello`.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "clock_read_ns": self.clock_read_ns,
            "resolution_ns": clock::resolution(),
            "samples": self.late.count(),
            "sleep_p50_ns": self.late.quantile(500_000),
            "sleep_p90_ns": self.late.quantile(900_000),
            "sleep_p99_ns": self.late.quantile(990_000),
            "sleep_max_ns": self.late.quantile(1_000_000),
        })
    }

    /// How late, in ns, a sleep ends at most in so many of a million cases.
    pub(crate) fn late(&self, millionths: u32) -> u64 {
        self.late.quantile(millionths)
    }

    /// How long before an instant a sleep must end so that this thread is awake at it nine times of ten, and a bit.
    fn margin(&self) -> u64 {
        (self.late.quantile(900_000) + 10 * MICROSECOND).clamp(20 * MICROSECOND, MILLISECOND)
    }

    /// Choose for messages with this mean gap, and say why. `exact`: the instants are what is measured.
    pub(crate) fn choose(&self, gap_ns: u64, exact: bool, segmented: bool) -> (Pacing, String) {
        let us = |ns: u64| format!("{}.{} us", ns / 1000, ns % 1000 / 100);
        let (gap, margin) = (us(gap_ns), us(self.margin()));
        if segmented {
            (Pacing::Burst, "datagrams that the kernel segments leave together".to_owned())
        } else if !exact {
            (Pacing::Sleep, "messages a little late do no harm here".to_owned())
        } else if thread::cores().len() < 2 {
            (Pacing::Sleep, "there is one core, and who waits on it stops everything else".to_owned())
        } else if gap_ns < 2 * self.margin() {
            (Pacing::Busy, format!("the gap of {gap} is too short to sleep with a margin of {margin}"))
        } else {
            (Pacing::Hybrid, format!("the gap of {gap} leaves time to sleep to {margin} before each"))
        }
    }

    /// A way to wait as chosen, for messages with this mean gap: hybrid never spins for more than half of it, which is its promise.
    pub(crate) fn waiter(&self, pacing: Pacing, gap_ns: u64) -> Waiter {
        match pacing {
            Pacing::Busy => Waiter { sleep: false, margin: 0, spin: true },
            Pacing::Auto | Pacing::Hybrid => {
                Waiter { sleep: true, margin: self.margin().min(gap_ns / 2), spin: true }
            }
            Pacing::Sleep | Pacing::Burst => Waiter { sleep: true, margin: 0, spin: false },
            Pacing::Kernel => Waiter { sleep: false, margin: 0, spin: false },
        }
    }
}

/// What was due before the end of a flow is sent if it is less late than this, so that a host that stumbles does not change the count; a
/// schedule that cannot be kept is further behind, and ends in time.
const GRACE: u64 = 100 * MILLISECOND;

/// Whether a message that is due at `due` is still sent at `now`.
#[inline]
pub(crate) fn in_time(due: u64, now: u64, end: u64) -> bool {
    due < end && (now < end || now - due < GRACE)
}

/// The longest sleep at once: a flow that is stopped ends within it.
const NAP_AT_MOST: u64 = 50 * MILLISECOND;

/// Waits for instants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    sleep: bool,
    margin: u64,
    spin: bool,
}

impl Waiter {
    /// For how long it means to sleep when it waits for `due` from `now` on.
    #[inline]
    pub(crate) fn sleep(self, due: u64, now: u64) -> u64 {
        if self.sleep { due.saturating_sub(self.margin).saturating_sub(now) } else { 0 }
    }

    /// Wait until `due`, on the monotonic clock, or until `stopped`; the time then.
    #[inline]
    pub(crate) fn wait(self, due: u64, stopped: impl Fn() -> bool) -> u64 {
        let mut now = clock::now();
        if self.sleep {
            while now + self.margin < due {
                clock::sleep_until((due - self.margin).min(now + NAP_AT_MOST));
                now = clock::now();
                if stopped() {
                    return now;
                }
            }
        }
        if self.spin {
            let mut turns = 0_u32;
            while now < due {
                std::hint::spin_loop();
                now = clock::now();
                turns = turns.wrapping_add(1);
                if turns.is_multiple_of(4096) && stopped() {
                    return now;
                }
            }
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_follows_the_gap() {
        let mut late = Distribution::new();
        late.record_n(30 * MICROSECOND, 100);
        let timer = Timer { clock_read_ns: 20, late };
        let choice = |gap, exact, segmented| timer.choose(gap * MICROSECOND, exact, segmented).0;
        if thread::cores().len() > 1 {
            assert_eq!(choice(118, true, false), Pacing::Hybrid);
            assert_eq!(choice(20, true, false), Pacing::Busy);
        } else {
            assert_eq!(choice(118, true, false), Pacing::Sleep);
        }
        assert_eq!(choice(118, false, false), Pacing::Sleep);
        assert_eq!(choice(118, true, true), Pacing::Burst);
    }

    #[test]
    fn nobody_is_woken_early() {
        let timer = Timer::calibrate(5 * MILLISECOND);
        assert!(timer.late.count() > 0);
        for pacing in [Pacing::Busy, Pacing::Hybrid, Pacing::Sleep] {
            let due = clock::now() + MILLISECOND;
            assert!(timer.waiter(pacing, MILLISECOND).wait(due, || false) >= due);
        }
        let before = clock::now();
        timer.waiter(Pacing::Busy, MILLISECOND).wait(before + 3600 * crate::time::SECOND, || true);
        assert!(clock::now() < before + 60 * crate::time::SECOND);
    }
}
