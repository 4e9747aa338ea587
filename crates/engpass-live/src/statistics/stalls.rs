//! Finds out why a sender on a schedule fell behind.

use serde_json::{Value, json};

use crate::time::MICROSECOND;

/// A message has a stall if its lateness grew by more than this (ns) since the message before.
const LEAST: u64 = 10 * MICROSECOND;

/// The clocks of a thread at one instant, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The host's monotonic clock.
    pub(crate) at: u64,
    /// CPU time of the thread.
    pub(crate) ran: u64,
    /// Time in which the thread was runnable while another thread had the core.
    pub(crate) waited: u64,
}

/// Values by cause: another thread had the core; no thread of this host had it (hypervisor, late timer); the kernel worked on the thread's CPU time.
type Causes<T> = [T; 3];

/// Stalls of one thread, and their causes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stalls {
    before: Option<(Mark, u64)>,
    count: u64,
    total: u64,
    longest: u64,
    times: Causes<u64>,
    /// Square of each stall, divided among the causes in proportion to time. The standard deviation follows from it.
    squares: Causes<u128>,
}

impl Stalls {
    /// Records that the message due at `due` has left at the instant of `mark`. Before it, the thread meant to sleep for `slept` ns.
    #[inline]
    pub(crate) fn record(&mut self, mark: Mark, due: u64, slept: u64) {
        let late = mark.at.saturating_sub(due);
        let before = self.before.replace((mark, late));
        if let Some((earlier, before)) = before
            && late > before + LEAST
        {
            self.add(late - before, earlier, mark, slept);
        }
    }

    #[cold]
    fn add(&mut self, stall: u64, earlier: Mark, mark: Mark, slept: u64) {
        let since = |of: fn(Mark) -> u64| of(mark).saturating_sub(of(earlier));
        let (ran, waited) = (since(|mark| mark.ran), since(|mark| mark.waited));
        let nowhere = since(|mark| mark.at).saturating_sub(ran + waited + slept);
        let waited = waited.min(stall);
        let stolen = nowhere.min(stall - waited);
        self.count += 1;
        self.total += stall;
        self.longest = self.longest.max(stall);
        for (index, part) in [waited, stolen, stall - waited - stolen].into_iter().enumerate() {
            self.times[index] += part;
            self.squares[index] += u128::from(part) * u128::from(stall);
        }
    }

    /// Returns the stalls as in results.
    pub(crate) fn to_json(&self) -> Value {
        let all: u128 = self.squares.iter().sum();
        let share = |cause: usize| self.squares[cause] * 1_000_000 / all.max(1);
        let [waited, stolen, kernel] = self.times;
        json!({
            "least_ns": LEAST,
            "count": self.count,
            "total_ns": self.total,
            "longest_ns": self.longest,
            "squares_ns2": u64::try_from(all).unwrap_or(u64::MAX),
            "waited": { "ns": waited, "squares_ppm": share(0) as u64 },
            "stolen": { "ns": stolen, "squares_ppm": share(1) as u64 },
            "kernel": { "ns": kernel, "squares_ppm": share(2) as u64 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(at: u64, ran: u64, waited: u64) -> Mark {
        Mark { at: at * MICROSECOND, ran: ran * MICROSECOND, waited: waited * MICROSECOND }
    }

    fn causes(marks: [(Mark, u64); 2], slept: u64) -> [u64; 3] {
        let mut stalls = Stalls::default();
        let [(first, due), (second, next)] = marks;
        stalls.record(first, due * MICROSECOND, 0);
        stalls.record(second, next * MICROSECOND, slept * MICROSECOND);
        stalls.times.map(|time| time / MICROSECOND)
    }

    #[test]
    fn stall_is_divided_among_its_causes() {
        // 1000 us late, 600 of them because another thread ran.
        assert_eq!(causes([(mark(100, 100, 0), 100), (mark(1200, 500, 600), 200)], 0), [600, 100, 300]);
        // The thread neither ran nor was runnable: the hypervisor had the core.
        assert_eq!(causes([(mark(100, 100, 0), 100), (mark(1200, 200, 0), 200)], 0), [0, 1000, 0]);
        // The thread meant to sleep for 60 us of the gap; the rest is due to the hypervisor or to a late timer.
        assert_eq!(causes([(mark(100, 100, 0), 100), (mark(1200, 140, 0), 200)], 60), [0, 1000, 0]);
        // All of the stall is in the thread's CPU time: interrupts, or its own call.
        assert_eq!(causes([(mark(100, 100, 0), 100), (mark(1200, 1200, 0), 200)], 0), [0, 0, 1000]);
    }

    #[test]
    fn constant_lateness_is_not_a_stall() {
        let mut stalls = Stalls::default();
        for index in 0..10 {
            stalls.record(mark(500 + index * 100, index * 100, 0), index * 100 * MICROSECOND, 0);
        }
        assert_eq!((stalls.count, &stalls.to_json()["waited"]["squares_ppm"]), (0, &json!(0)));
        stalls.record(mark(1800, 1000, 0), 1000 * MICROSECOND, 0);
        let value = stalls.to_json();
        assert_eq!((&value["count"], &value["longest_ns"]), (&json!(1), &json!(300_000)));
        assert_eq!(value["stolen"]["squares_ppm"], 1_000_000);
    }
}
