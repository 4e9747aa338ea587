//! Waiting for an instant, and calibration of this host's timer.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::statistics::Distribution;
use crate::sys::{clock, thread};
use crate::time::{MICROSECOND, MILLISECOND};

/// How a sender waits until a message is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pacing {
    /// Choose by the timer's calibration.
    #[default]
    Auto,
    /// Poll the clock: most precise, but takes a whole core.
    Busy,
    /// Sleep until shortly before the instant, then poll the clock.
    Hybrid,
    /// Sleep until the instant.
    Sleep,
    /// Let the kernel pace the socket.
    Kernel,
    /// Send several messages together, at the mean rate.
    Burst,
}

/// Calibration of this host's timer: the cost of a clock read and the lateness of sleeps.
#[derive(Clone, Debug)]
pub(crate) struct Timer {
    clock_read_ns: u64,
    late: Distribution,
}

/// Time from one wake-up of the calibration to the next, in ns.
const NAP: u64 = 100 * MICROSECOND;

impl Timer {
    /// Sleeps again and again for about `duration_ns` in all and records how late this thread wakes.
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

    /// Returns the calibration as `timer` of `hello`.
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

    /// Returns the quantile of the lateness of sleeps, in ns; the argument is the quantile in millionths.
    pub(crate) fn late(&self, millionths: u32) -> u64 {
        self.late.quantile(millionths)
    }

    /// Returns how long before an instant a sleep must end, in ns, so that nine of ten sleeps end in time; plus 10 us.
    fn margin(&self) -> u64 {
        (self.late.quantile(900_000) + 10 * MICROSECOND).clamp(20 * MICROSECOND, MILLISECOND)
    }

    /// Chooses the pacing for messages with the mean gap `gap_ns`, and returns it with the reason. `exact` is true if the send times themselves are measured.
    pub(crate) fn choose(&self, gap_ns: u64, exact: bool, segmented: bool) -> (Pacing, String) {
        let us = |ns: u64| format!("{}.{} us", ns / 1000, ns % 1000 / 100);
        let (gap, margin) = (us(gap_ns), us(self.margin()));
        if segmented {
            (Pacing::Burst, "the kernel segments the datagrams, so several are sent together".to_owned())
        } else if !exact {
            (Pacing::Sleep, "exact send times are not needed".to_owned())
        } else if thread::cores().len() < 2 {
            (
                Pacing::Sleep,
                "there is only one core, and polling on it would block everything else".to_owned(),
            )
        } else if gap_ns < 2 * self.margin() {
            (Pacing::Busy, format!("the gap of {gap} is too short to sleep with a margin of {margin}"))
        } else {
            (
                Pacing::Hybrid,
                format!("the gap of {gap} leaves time to sleep until {margin} before each message"),
            )
        }
    }

    /// Returns a waiter for this pacing and mean gap (ns).
    pub(crate) fn waiter(&self, pacing: Pacing, gap_ns: u64) -> Waiter {
        match pacing {
            Pacing::Busy => Waiter { sleep: false, margin: 0, spin: true, budget: None },
            Pacing::Auto | Pacing::Hybrid => {
                let most = self.margin();
                let budget = Some(Budget { most, waits: 0, at: 0, ran: 0 });
                Waiter { sleep: true, margin: most.min(gap_ns / 4), spin: true, budget }
            }
            Pacing::Sleep | Pacing::Burst => Waiter { sleep: true, margin: 0, spin: false, budget: None },
            Pacing::Kernel => Waiter { sleep: false, margin: 0, spin: false, budget: None },
        }
    }
}

/// Keeps the CPU use of a thread that sleeps and then polls below half a core, whatever its messages cost, by adjusting the time before each instant at which
/// it wakes (the margin). The margin must adapt, because the calibration ran in a thread of normal priority on cores that went idle. The sender avoids both, so
/// it wakes earlier and would poll for longer.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Upper bound of the margin, in ns: the calibrated one.
    most: u64,
    /// Number of waits since the last check of the clocks.
    waits: u64,
    /// Monotonic clock at that check, in ns.
    at: u64,
    /// CPU time of the thread at that check, in ns.
    ran: u64,
}

impl Budget {
    /// Number of waits from one check of the clocks to the next.
    const LOOK: u64 = 32;
    /// Thousandths of a core that the thread may use. Slightly less than half, because a check sees the use only afterwards.
    const SHARE: u64 = 480;

    /// Returns the margin for the next wait, given the current one. Reads the clocks only every `LOOK` waits.
    #[inline]
    fn margin(&mut self, margin: u64) -> u64 {
        if self.waits > 0 && self.waits < Self::LOOK {
            self.waits += 1;
            return margin;
        }
        let (at, ran) = (clock::now(), clock::ran());
        let next = if self.waits == 0 {
            margin
        } else {
            self.next(margin, at.saturating_sub(self.at), ran.saturating_sub(self.ran))
        };
        (self.waits, self.at, self.ran) = (1, at, ran);
        next
    }

    /// Returns the new margin after `elapsed` ns in which the thread used `ran` ns of CPU time.
    fn next(&self, margin: u64, elapsed: u64, ran: u64) -> u64 {
        let allowed = elapsed * Self::SHARE / 1000;
        let less = ran.saturating_sub(allowed) / Self::LOOK;
        // The margin grows by half of the unused time per step, because with a longer margin the sleeps can end as late as before.
        let more = allowed.saturating_sub(ran) / Self::LOOK / 2;
        (margin + more).saturating_sub(less).min(self.most)
    }
}

/// A message that was due before the end of the flow is still sent if it is less late than this (ns), so that a short stall does not change the count. If a
/// schedule cannot be kept, messages are later than that, and the flow ends in time.
const GRACE: u64 = 100 * MILLISECOND;

/// Returns whether a message that was due at `due` is still sent at `now`; `end` is the end of the flow.
#[inline]
pub(crate) fn in_time(due: u64, now: u64, end: u64) -> bool {
    due < end && (now < end || now - due < GRACE)
}

/// A message less late than this (ns) is punctual.
const PUNCTUAL: u64 = MILLISECOND;

/// Decides at which instant a message counts for the measurement window. After a short stall, a late message counts at the instant at which it was due. If the
/// schedule cannot be kept, that would count only a part of the window, so a message counts when it leaves. A sender that stalled catches up at twice the rate,
/// which takes as long as the stall; therefore the limit is twice `GRACE`.
#[derive(Debug)]
pub(crate) struct LatenessTracker {
    /// Send time of the last punctual message.
    punctual: u64,
}

impl LatenessTracker {
    /// Starts the tracker at `start`, with no lateness before.
    pub(crate) fn new(start: u64) -> Self {
        Self { punctual: start }
    }

    /// Returns the instant at which a message counts that was due at `due` and leaves at `now`.
    #[inline]
    pub(crate) fn counts_at(&mut self, due: u64, now: u64) -> u64 {
        if now < due + PUNCTUAL {
            self.punctual = now;
        }
        if now.saturating_sub(self.punctual) < 2 * GRACE { due } else { now }
    }
}

/// Longest single sleep, in ns; it bounds the time until a stopped flow ends.
const NAP_AT_MOST: u64 = 50 * MILLISECOND;

/// Waits for instants with one method of pacing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    sleep: bool,
    margin: u64,
    spin: bool,
    budget: Option<Budget>,
}

impl Waiter {
    /// Returns how long (ns) a wait for `due` that starts at `now` will sleep.
    #[inline]
    pub(crate) fn sleep(&self, due: u64, now: u64) -> u64 {
        if self.sleep { due.saturating_sub(self.margin).saturating_sub(now) } else { 0 }
    }

    /// Waits until `due` on the monotonic clock, or until `stopped()` returns true. Returns the time at the end.
    #[inline]
    pub(crate) fn wait(&mut self, due: u64, stopped: impl Fn() -> bool) -> u64 {
        if let Some(budget) = &mut self.budget {
            self.margin = budget.margin(self.margin);
        }
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

    /// Counts the messages in a window from 1 s to 3 s for a given gap and send time. Message `stumble.0` takes `stumble.1` ms longer.
    fn counted(gap_us: u64, takes_us: u64, stumble: (u64, u64)) -> u64 {
        let (mut behind, mut now, mut counted) = (LatenessTracker::new(0), 0, 0);
        for number in 0.. {
            let due = number * gap_us * MICROSECOND;
            now = due.max(now);
            if !in_time(due, now, 3000 * MILLISECOND) {
                break;
            }
            counted += u64::from((1000..3000).contains(&(behind.counts_at(due, now) / MILLISECOND)));
            now += takes_us * MICROSECOND + if number == stumble.0 { stumble.1 * MILLISECOND } else { 0 };
        }
        counted
    }

    #[test]
    fn schedule_beyond_capacity_is_counted_as_sent() {
        // Messages of 1 ms each, due every 0.5 ms, 0.8 ms and 0.98 ms: 2000 leave in the window.
        assert_eq!(counted(500, 1000, (0, 0)), 2000);
        assert_eq!(counted(800, 1000, (0, 0)), 2000);
        assert_eq!(counted(980, 1000, (0, 0)), 2000);
        // A schedule that can be kept counts exactly the messages that are due, even with a stall at an edge of the window.
        for stumble in [(0, 0), (960, 70), (1500, 300), (2970, 60)] {
            assert_eq!(counted(1000, 100, stumble), 2000, "{stumble:?}");
        }
        // The same holds while the sender catches up at twice the rate.
        assert_eq!(counted(1000, 500, (2920, 90)), 2000);
    }

    #[test]
    fn pacing_method_depends_on_the_gap() {
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

    /// Returns the final margin and share of a core for messages of this gap and CPU cost when each sleep ends `late` late; all in us.
    fn kept(gap: u64, cost: u64, late: u64) -> (u64, f64) {
        let mut budget = Budget { most: 61, waits: 0, at: 0, ran: 0 };
        let mut margin = budget.most.min(gap / 4);
        let mut ran = 0;
        for _ in 0..50 {
            // The sender polls from its wake-up until the instant, unless it wakes after the instant.
            ran = Budget::LOOK * (cost + margin.saturating_sub(late));
            margin = budget.next(margin, Budget::LOOK * gap, ran);
            budget.waits = 1;
        }
        (margin, ran as f64 / (Budget::LOOK * gap) as f64)
    }

    #[test]
    fn hybrid_margin_keeps_cpu_time_within_half_a_core() {
        // 1472 B at 100 Mbit/s, 12 us per call: with the usual lateness of sleeps (51 us), and with that of a core that stayed awake (3 us).
        assert_eq!(kept(118, 12, 51).0, 61, "the margin has its full length");
        let (margin, share) = kept(118, 12, 3);
        assert!((45..=50).contains(&margin) && share <= 0.5, "{margin} us, {share}");
        let (margin, share) = kept(40, 12, 3);
        assert!((5..=12).contains(&margin) && share <= 0.5, "{margin} us, {share}");
        // Sending alone takes more than half a core.
        assert_eq!(kept(20, 15, 3).0, 0);
        assert_eq!(kept(10_000, 12, 3).0, 61);
    }

    #[test]
    fn hybrid_pacing_stays_within_half_a_core_on_this_host() {
        let mut late = Distribution::new();
        late.record_n(300 * MICROSECOND, 100);
        let timer = Timer { clock_read_ns: 20, late };
        let gap = 200 * MICROSECOND;
        // Time that a hypervisor steals during polling counts as CPU time of the thread, so a run with such a stall is repeated.
        let kept = (0..5).find_map(|_| {
            let mut waiter = timer.waiter(Pacing::Hybrid, gap);
            let mut due = clock::now();
            let (mut begin, mut longest) = ((0, 0), 0);
            for message in 0..1500 {
                due += gap;
                let now = waiter.wait(due, || false);
                // A call of 30 us. After a delay the schedule moves: the sender does not hurry.
                let end = clock::ran() + 30 * MICROSECOND;
                while clock::ran() < end {}
                longest = longest.max(clock::now() - due);
                due = due.max(now);
                if message == 500 {
                    begin = (clock::now(), clock::ran());
                }
            }
            let share = (clock::ran() - begin.1) as f64 / (clock::now() - begin.0) as f64;
            (longest < 3 * MILLISECOND).then_some((share, waiter.margin))
        });
        let Some((share, margin)) = kept else {
            return println!("skipped: this machine stood still in each of five runs");
        };
        assert!(share <= 0.52, "{share} of a core");
        assert!(margin > 0, "polling uses the CPU time that sending leaves");
    }

    #[test]
    fn waiter_never_wakes_before_the_due_time() {
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
