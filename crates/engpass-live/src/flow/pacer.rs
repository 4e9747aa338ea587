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

    /// A way to wait as chosen, for messages with this mean gap.
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

/// Keeps a thread that sleeps and then reads the clock to half a core, whatever its messages cost: the margin before each instant is what is left of
/// it. How late sleeps end was calibrated by a thread of the usual class, on cores that fell asleep; the sender has neither, wakes sooner, and
/// would wait longer.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// The margin that would be best, in ns.
    most: u64,
    /// Since the last look: waits, and what the clocks were then.
    waits: u64,
    at: u64,
    ran: u64,
}

impl Budget {
    /// Waits from one look to the next.
    const LOOK: u64 = 32;
    /// Parts of a thousand of a core that may be used: a little less than half, for a look comes late.
    const SHARE: u64 = 480;

    /// The margin from now on, if it was `margin` before.
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

    /// The margin after so many ns, of which the thread had a core for `ran`.
    fn next(&self, margin: u64, elapsed: u64, ran: u64) -> u64 {
        let allowed = elapsed * Self::SHARE / 1000;
        let less = ran.saturating_sub(allowed) / Self::LOOK;
        // More by half of what is left at a time: with a longer margin the sleeps may end as late as before.
        let more = allowed.saturating_sub(ran) / Self::LOOK / 2;
        (margin + more).saturating_sub(less).min(self.most)
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

/// Less late than this a message is punctual.
const PUNCTUAL: u64 = MILLISECOND;

/// When messages count. A host that stumbles sends late what was due, and it counts when it was due; but of a schedule that cannot be kept that
/// would be a part of the window only, so there it counts when it leaves. Who has stood still for a time catches up at twice the rate, which
/// takes as long again.
#[derive(Debug)]
pub(crate) struct Behind {
    /// When a message was punctual last.
    punctual: u64,
}

impl Behind {
    /// Nothing has been late before `start`.
    pub(crate) fn new(start: u64) -> Self {
        Self { punctual: start }
    }

    /// When a message counts that was due at `due` and leaves at `now`.
    #[inline]
    pub(crate) fn counts_at(&mut self, due: u64, now: u64) -> u64 {
        if now < due + PUNCTUAL {
            self.punctual = now;
        }
        if now.saturating_sub(self.punctual) < 2 * GRACE { due } else { now }
    }
}

/// The longest sleep at once: a flow that is stopped ends within it.
const NAP_AT_MOST: u64 = 50 * MILLISECOND;

/// Waits for instants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    sleep: bool,
    margin: u64,
    spin: bool,
    budget: Option<Budget>,
}

impl Waiter {
    /// For how long it means to sleep when it waits for `due` from `now` on.
    #[inline]
    pub(crate) fn sleep(&self, due: u64, now: u64) -> u64 {
        if self.sleep { due.saturating_sub(self.margin).saturating_sub(now) } else { 0 }
    }

    /// Wait until `due`, on the monotonic clock, or until `stopped`; the time then.
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

    /// How many messages with these gaps count in a window from 1 s to 3 s, when each takes so long to send, and one takes longer.
    fn counted(gap_us: u64, takes_us: u64, stumble: (u64, u64)) -> u64 {
        let (mut behind, mut now, mut counted) = (Behind::new(0), 0, 0);
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
    fn a_schedule_that_cannot_be_kept_is_counted_as_it_leaves() {
        // Messages of 1 ms each, due every 0.5 ms, 0.8 ms and 0.98 ms: 2000 leave in the window.
        assert_eq!(counted(500, 1000, (0, 0)), 2000);
        assert_eq!(counted(800, 1000, (0, 0)), 2000);
        assert_eq!(counted(980, 1000, (0, 0)), 2000);
        // It can be kept: as many as are due, also if the host stumbles where the window begins or ends.
        for stumble in [(0, 0), (960, 70), (1500, 300), (2970, 60)] {
            assert_eq!(counted(1000, 100, stumble), 2000, "{stumble:?}");
        }
        // And if it catches up at twice the rate.
        assert_eq!(counted(1000, 500, (2920, 90)), 2000);
    }

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

    /// The margin and the share of a core, if each of many messages costs so much and each sleep ends so late; all in us.
    fn kept(gap: u64, cost: u64, late: u64) -> (u64, f64) {
        let mut budget = Budget { most: 61, waits: 0, at: 0, ran: 0 };
        let mut margin = budget.most.min(gap / 4);
        let mut ran = 0;
        for _ in 0..50 {
            // It waits from when it wakes to the instant, if that is still to come.
            ran = Budget::LOOK * (cost + margin.saturating_sub(late));
            margin = budget.next(margin, Budget::LOOK * gap, ran);
            budget.waits = 1;
        }
        (margin, ran as f64 / (Budget::LOOK * gap) as f64)
    }

    #[test]
    fn hybrid_keeps_to_half_a_core() {
        // 1472 B at 100 Mbit/s, in one call of 12 us: as sleeps end usually, and as they do when the core did not fall asleep.
        assert_eq!(kept(118, 12, 51).0, 61, "all of the margin that it wants");
        let (margin, share) = kept(118, 12, 3);
        assert!((45..=50).contains(&margin) && share <= 0.5, "{margin} us, {share}");
        let (margin, share) = kept(40, 12, 3);
        assert!((5..=12).contains(&margin) && share <= 0.5, "{margin} us, {share}");
        // Sending alone is more than half a core.
        assert_eq!(kept(20, 15, 3).0, 0);
        assert_eq!(kept(10_000, 12, 3).0, 61);
    }

    #[test]
    fn hybrid_keeps_to_half_a_core_on_this_host() {
        let mut late = Distribution::new();
        late.record_n(300 * MICROSECOND, 100);
        let timer = Timer { clock_read_ns: 20, late };
        let gap = 200 * MICROSECOND;
        // What a hypervisor takes away while it reads the clock counts as its own time: a run in which that happened is made again.
        let kept = (0..5).find_map(|_| {
            let mut waiter = timer.waiter(Pacing::Hybrid, gap);
            let mut due = clock::now();
            let (mut begin, mut longest) = ((0, 0), 0);
            for message in 0..1500 {
                due += gap;
                let now = waiter.wait(due, || false);
                // A call of 30 us; who was held up does not hurry.
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
        assert!(margin > 0, "the rest is used");
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
