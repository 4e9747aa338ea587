//! Measures clocks, timers and system calls.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;

use super::sample_stats::quantile;
use super::sys;

/// Quality of this host's clock and timers. All times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Timer {
    /// Resolution of the clock, as reported by the kernel.
    pub resolution: u64,
    /// CPU time of one clock read.
    pub reading: f64,
    /// CPU time of the shortest system call.
    pub system_call: f64,
    /// Median lateness of sleeps that end 100 us apart.
    pub late_half: u64,
    /// Lateness that 99 % of these sleeps do not exceed.
    pub late_99: u64,
    /// Greatest lateness of these sleeps.
    pub late_most: u64,
    /// Longest time during which a thread that only reads the clock did not run.
    pub longest_gap: u64,
    /// Fraction of the time that such a thread lost in gaps of more than 10 us.
    pub stolen: f64,
}

const PERIOD: u64 = 100_000;

/// Measures clock, timers and system calls on this CPU.
///
/// # Errors
/// Fails when the thread cannot be started.
pub(super) fn timer(cpu: usize, quick: bool) -> io::Result<Timer> {
    let (sleeps, calls) = if quick { (500, 50_000) } else { (3_000, 300_000) };
    let work = move || {
        sys::pin(cpu);
        sys::exact_timers();
        let reading = least_of(5, calls, || {
            std::hint::black_box(sys::now());
        });
        let system_call = least_of(5, calls, sys::empty_call);
        let mut late: Vec<u64> = Vec::with_capacity(sleeps);
        let mut next = sys::now();
        for _ in 0..sleeps {
            next += PERIOD;
            sys::sleep_until(next);
            let now = sys::now();
            late.push(now.saturating_sub(next));
            // Missed periods are skipped, not made up for.
            next = next.max(now.saturating_sub(PERIOD));
        }
        late.sort_unstable();
        let (longest_gap, stolen) = spin(if quick { 50_000_000 } else { 300_000_000 });
        Timer {
            resolution: sys::resolution(),
            reading,
            system_call,
            late_half: quantile(&late, 500),
            late_99: quantile(&late, 990),
            late_most: quantile(&late, 1000),
            longest_gap,
            stolen,
        }
    };
    sys::aside(work)
}

/// Returns the CPU time per call in nanoseconds: the least of `tries` tries with `calls` calls each.
pub(super) fn least_of(tries: usize, calls: u32, mut call: impl FnMut()) -> f64 {
    let one = |call: &mut dyn FnMut()| {
        let begin = sys::thread_cpu();
        for _ in 0..calls {
            call();
        }
        (sys::thread_cpu() - begin) as f64 / f64::from(calls)
    };
    (0..tries).map(|_| one(&mut call)).fold(f64::INFINITY, f64::min)
}

/// Returns the longest gap (ns) between two clock reads, and the fraction of the time spent in gaps of more than 10 us.
fn spin(duration: u64) -> (u64, f64) {
    let begin = sys::now();
    let (mut before, mut longest, mut stolen) = (begin, 0, 0);
    while before - begin < duration {
        let now = sys::now();
        let gap = now - before;
        longest = longest.max(gap);
        if gap > 10_000 {
            stolen += gap;
        }
        before = now;
    }
    (longest, stolen as f64 / (before - begin) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_lateness_quantiles_are_in_order() {
        let found = timer(sys::cpus()[0], true).unwrap();
        assert!(found.late_half <= found.late_99 && found.late_99 <= found.late_most, "{found:?}");
        assert!(found.reading > 0.0 && found.system_call > 0.0 && found.longest_gap > 0, "{found:?}");
        assert!((0.0..=1.0).contains(&found.stolen), "{found:?}");
    }
}
