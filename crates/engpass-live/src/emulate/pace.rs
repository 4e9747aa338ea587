//! How the driver waits for the next instant of the network.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::flow::Timer;
use crate::sys::thread;
use crate::time::MICROSECOND;

/// As a configuration asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Clock {
    /// Chosen by a calibration of the timer.
    #[default]
    Auto,
    /// Sleep.
    Sleep,
    /// Sleep until a little before, then read the clock until it is time.
    Hybrid,
    /// Read clock and devices all the time: a whole core.
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

/// What is this near is worth no sleep, and no look at the devices either, in nanoseconds: reading a packet and handing it to the network takes
/// up to so long (1 to 5 us, as traced).
const NEAR: u64 = 5 * MICROSECOND;
/// How long after a packet the driver stays awake, in nanoseconds: what answers it, or follows it, need not wake it.
const AWAKE: u64 = 50 * MICROSECOND;
/// Where between these hybrid wakes before an instant, in nanoseconds.
const MARGIN: (u64, u64) = (50 * MICROSECOND, 100 * MICROSECOND);
/// The most by which `sleep` wakes before an instant, in nanoseconds. Nine of ten sleeps of a host end at least so late that none of this is
/// spent awake: a hypervisor takes tens of microseconds to tell its guest that a timer has expired.
const EARLY: u64 = 50 * MICROSECOND;

/// A way to wait, and why.
pub(super) struct WaitStrategy {
    clock: Clock,
    /// By name.
    asked: bool,
    /// How long before an instant a sleep is to end, in nanoseconds.
    margin: u64,
    awake: u64,
    why: String,
    timer: Timer,
}

impl WaitStrategy {
    /// `asked`, or what this host's timer makes of `Auto`, where `limit` is how late a packet may be in nanoseconds of this host.
    pub(super) fn choose(asked: Clock, timer: Timer, limit: u64) -> Self {
        let late = timer.late(990_000);
        let us = |ns: u64| format!("{}.{} us", ns / 1000, ns % 1000 / 100);
        let (clock, why) = if asked != Clock::Auto {
            (asked, "as asked".to_owned())
        } else if late <= limit / 4 {
            let why = format!("99 of 100 sleeps end within {}, a quarter of the limit or less", us(late));
            (Clock::Sleep, why)
        } else if thread::cores().len() < 2 {
            (Clock::Sleep, "there is one core, and who waits on it stops everything else".to_owned())
        } else {
            let why = format!("sleeps end up to {} late, more than a quarter of the limit", us(late));
            (Clock::Hybrid, why)
        };
        let margin = match clock {
            Clock::Hybrid => timer.late(900_000).clamp(MARGIN.0, MARGIN.1),
            Clock::Sleep => timer.late(100_000).min(EARLY),
            Clock::Spin | Clock::Auto => 0,
        };
        // On one core nobody answers while the driver is awake; and one that spins always is.
        let awake = if thread::cores().len() < 2 || clock == Clock::Spin { 0 } else { AWAKE };
        Self { clock, asked: asked != Clock::Auto, margin, awake, why, timer }
    }

    /// Whether it stays awake for a while after a packet, where that is in nobody's way.
    #[inline]
    pub(super) fn stays_awake(&self) -> bool {
        self.awake > 0
    }

    /// Whether it is so near that there is only waiting for it.
    #[inline]
    pub(super) fn is_near(now: u64, due: u64) -> bool {
        due.saturating_sub(now) <= NEAR
    }

    /// How long to sleep now for something that is due then, when the last packet came or went at `last`; 0 is only a look.
    #[inline]
    pub(super) fn nap(&self, now: u64, due: u64, last: u64) -> u64 {
        let left = due.saturating_sub(now);
        match self.clock {
            Clock::Spin => 0,
            _ if now < last + self.awake => 0,
            Clock::Hybrid | Clock::Sleep | Clock::Auto => left.saturating_sub(self.margin),
        }
    }

    /// Whether to keep idle cores awake whatever comes: where somebody has asked for instants that are kept.
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
    fn naps_end_when_they_should() {
        let now = 1_000_000;
        let naps = |clock, last| [5, 70_000, 10_000_000].map(|left| pace(clock).nap(now, now + left, last));
        for clock in [Clock::Sleep, Clock::Hybrid] {
            assert_eq!(naps(clock, 0), [0, 10_000, 9_940_000]);
        }
        for clock in [Clock::Sleep, Clock::Hybrid] {
            assert_eq!(naps(clock, now - 39_999), [0; 3], "it stays awake after a packet");
            assert_ne!(naps(clock, now - 40_000), [0; 3]);
        }
        assert_eq!(naps(Clock::Spin, 0), [0; 3]);
        assert_eq!(pace(Clock::Sleep).nap(now, 10, 0), 0, "what is over is not waited for");
        assert!(
            WaitStrategy::is_near(now, now + NEAR)
                && WaitStrategy::is_near(now, 10)
                && !WaitStrategy::is_near(now, now + NEAR + 1)
        );
    }

    #[test]
    fn a_wide_limit_lets_it_sleep() {
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
