//! How the driver waits for the next event of the network.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::flow::Timer;
use crate::sys::thread;
use crate::time::MICROSECOND;

/// Waiting mode, as in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Clock {
    /// Choose by calibrating the timer.
    #[default]
    Auto,
    /// Sleep.
    Sleep,
    /// Sleep until shortly before the instant, then poll the clock.
    Hybrid,
    /// Poll the clock and the devices all the time; takes a whole core.
    Spin,
}

impl Clock {
    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Sleep => "sleep",
            Self::Hybrid => "hybrid",
            Self::Spin => "spin",
        }
    }
}

/// If the next event is at most this near (ns), the driver neither sleeps nor reads devices, because reading and injecting one packet can take this long (1 to
/// 5 us in traces).
const NEAR: u64 = 5 * MICROSECOND;
/// Time in ns for which the driver stays awake after a packet, so that a reply or the next packet need not wake it.
const AWAKE: u64 = 50 * MICROSECOND;
/// Bounds of the time before an instant at which `hybrid` wakes, in ns.
const MARGIN: (u64, u64) = (50 * MICROSECOND, 100 * MICROSECOND);
/// Longest time by which `sleep` wakes before an instant, in ns. The time is the 10th percentile of the lateness of sleeps: nine of ten sleeps are later than
/// that and end after the instant, so the driver rarely waits awake. A hypervisor takes tens of microseconds to signal an expired timer to its guest.
const EARLY: u64 = 50 * MICROSECOND;

/// The chosen way to wait, with the reason.
pub(super) struct WaitStrategy {
    clock: Clock,
    /// True if the configuration names the mode, instead of `auto`.
    asked: bool,
    /// Time before an instant at which a sleep ends, in ns.
    margin: u64,
    awake: u64,
    why: String,
    timer: Timer,
}

impl WaitStrategy {
    /// Takes the mode `asked`, or chooses one for `Auto`. `limit` is the allowed lateness in ns of this host's clock.
    pub(super) fn choose(asked: Clock, timer: Timer, limit: u64) -> Self {
        let late = timer.late(990_000);
        let us = |ns: u64| format!("{}.{} us", ns / 1000, ns % 1000 / 100);
        let (clock, why) = if asked != Clock::Auto {
            (asked, "as requested".to_owned())
        } else if late <= limit / 4 {
            let why = format!("99 of 100 sleeps end within {}, a quarter of the limit or less", us(late));
            (Clock::Sleep, why)
        } else if thread::cores().len() < 2 {
            (Clock::Sleep, "there is only one core, and polling on it would block everything else".to_owned())
        } else {
            let why = format!("sleeps end up to {} late, more than a quarter of the limit", us(late));
            (Clock::Hybrid, why)
        };
        let margin = match clock {
            Clock::Hybrid => timer.late(900_000).clamp(MARGIN.0, MARGIN.1),
            Clock::Sleep => timer.late(100_000).min(EARLY),
            Clock::Spin | Clock::Auto => 0,
        };
        // On one core nothing else can run while the driver is awake, so it sleeps at once. In mode `spin` it is always awake, and needs no such time.
        let awake = if thread::cores().len() < 2 || clock == Clock::Spin { 0 } else { AWAKE };
        Self { clock, asked: asked != Clock::Auto, margin, awake, why, timer }
    }

    /// Returns whether the driver stays awake for a while after a packet, provided that no thread waits for a core.
    #[inline]
    pub(super) fn stays_awake(&self) -> bool {
        self.awake > 0
    }

    /// Returns whether `due` is so near that the driver does nothing but wait for it.
    #[inline]
    pub(super) fn is_near(now: u64, due: u64) -> bool {
        due.saturating_sub(now) <= NEAR
    }

    /// Returns how long (ns) to sleep before an event at `due`, if the last packet was read or written at `last`. Zero means to poll only.
    #[inline]
    pub(super) fn nap(&self, now: u64, due: u64, last: u64) -> u64 {
        let left = due.saturating_sub(now);
        match self.clock {
            Clock::Spin => 0,
            _ if now < last + self.awake => 0,
            Clock::Hybrid | Clock::Sleep | Clock::Auto => left.saturating_sub(self.margin),
        }
    }

    /// Returns whether idle cores are kept awake even without packets: if the configuration asks for a precise mode.
    pub(super) fn keeps_cores_awake(&self) -> bool {
        self.asked && matches!(self.clock, Clock::Spin | Clock::Hybrid)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "mode": self.clock.name(),
            "why": self.why,
            "margin_ns": self.margin,
            "timer": self.timer.to_json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(clock: Clock) -> WaitStrategy {
        WaitStrategy {
            clock,
            asked: true,
            margin: 60_000,
            awake: 40_000,
            why: String::new(),
            timer: Timer::calibrate(0),
        }
    }

    #[test]
    fn nap_length_follows_clock_margin_and_last_packet() {
        let now = 1_000_000;
        let naps = |clock, last| [5, 70_000, 10_000_000].map(|left| pace(clock).nap(now, now + left, last));
        for clock in [Clock::Sleep, Clock::Hybrid] {
            assert_eq!(naps(clock, 0), [0, 10_000, 9_940_000]);
        }
        for clock in [Clock::Sleep, Clock::Hybrid] {
            assert_eq!(naps(clock, now - 39_999), [0; 3], "the thread stays awake after a packet");
            assert_ne!(naps(clock, now - 40_000), [0; 3]);
        }
        assert_eq!(naps(Clock::Spin, 0), [0; 3]);
        assert_eq!(pace(Clock::Sleep).nap(now, 10, 0), 0, "an instant in the past needs no nap");
        assert!(
            WaitStrategy::is_near(now, now + NEAR)
                && WaitStrategy::is_near(now, 10)
                && !WaitStrategy::is_near(now, now + NEAR + 1)
        );
    }

    #[test]
    fn wait_strategy_sleeps_if_the_lateness_limit_is_wide() {
        let chosen = |limit| WaitStrategy::choose(Clock::Auto, Timer::calibrate(1_000_000), limit).clock;
        assert_eq!(chosen(u64::MAX), Clock::Sleep);
        assert!(pace(Clock::Spin).keeps_cores_awake() && !pace(Clock::Sleep).keeps_cores_awake());
        assert!(!WaitStrategy::choose(Clock::Auto, Timer::calibrate(0), 0).keeps_cores_awake());
        let margin = |clock| WaitStrategy::choose(clock, Timer::calibrate(1_000_000), u64::MAX).margin;
        assert!(margin(Clock::Sleep) <= EARLY && margin(Clock::Spin) == 0);
        assert!((MARGIN.0..=MARGIN.1).contains(&margin(Clock::Hybrid)));
        let narrow = if thread::cores().len() < 2 { Clock::Sleep } else { Clock::Hybrid };
        assert_eq!(chosen(0), narrow);
    }
}
