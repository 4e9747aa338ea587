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

/// What is this near is not worth a sleep, in nanoseconds.
const NEAR: u64 = 3 * MICROSECOND;
/// Where between these hybrid wakes before an instant, in nanoseconds.
const MARGIN: (u64, u64) = (50 * MICROSECOND, 100 * MICROSECOND);

/// A way to wait, and why.
pub(super) struct Pace {
    clock: Clock,
    margin: u64,
    why: String,
    timer: Timer,
}

impl Pace {
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
        let margin = timer.late(900_000).clamp(MARGIN.0, MARGIN.1);
        Self { clock, margin, why, timer }
    }

    /// How long to sleep now for something that is due then; 0 is only a look.
    #[inline]
    pub(super) fn nap(&self, now: u64, due: u64) -> u64 {
        let left = due.saturating_sub(now);
        match self.clock {
            Clock::Spin => 0,
            Clock::Hybrid => left.saturating_sub(self.margin),
            Clock::Sleep | Clock::Auto if left <= NEAR => 0,
            Clock::Sleep | Clock::Auto => left,
        }
    }

    /// Whether a sleep ends before it is time.
    #[inline]
    pub(super) fn spins(&self) -> bool {
        matches!(self.clock, Clock::Spin | Clock::Hybrid)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "mode": self.clock.name(),
            "why": self.why,
            "margin_ns": if self.clock == Clock::Hybrid { self.margin } else { 0 },
            "timer": self.timer.to_json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(clock: Clock) -> Pace {
        Pace { clock, margin: 60_000, why: String::new(), timer: Timer::calibrate(0) }
    }

    #[test]
    fn naps_end_when_they_should() {
        let naps = |clock| [5, 2_000, 70_000, 10_000_000].map(|left| pace(clock).nap(1000, 1000 + left));
        assert_eq!(naps(Clock::Sleep), [0, 0, 70_000, 10_000_000]);
        assert_eq!(naps(Clock::Hybrid), [0, 0, 10_000, 9_940_000]);
        assert_eq!(naps(Clock::Spin), [0; 4]);
        assert_eq!(pace(Clock::Sleep).nap(1000, 10), 0, "what is over is not waited for");
    }

    #[test]
    fn a_wide_limit_lets_it_sleep() {
        let chosen = |limit| Pace::choose(Clock::Auto, Timer::calibrate(1_000_000), limit).clock;
        assert_eq!(chosen(u64::MAX), Clock::Sleep);
        let narrow = if thread::cores().len() < 2 { Clock::Sleep } else { Clock::Hybrid };
        assert_eq!(chosen(0), narrow);
    }
}
