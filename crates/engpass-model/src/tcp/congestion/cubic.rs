//! CUBIC (RFC 9438) in integers.
//!
//! Time is in microseconds, the window in bytes. `t^3` has 128 bits, and the cube root is computed bit by bit. If the stack counts whole segments,
//! the window grows as in Linux (`tcp_cubic.c`): the distance of the curve below its origin is rounded down to whole segments, so that a window of a
//! few segments returns to the origin much sooner than the curve.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, CongestionConfig, CongestionControl, Signal, Window};
use crate::tcp::parameters::TcpParameters;
use crate::time::{SECOND, Time};

/// A window that grows with the cube of the time since the last loss, independent of the round trip (RFC 9438).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cubic {
    /// Whether a window that shrinks before it reached its last maximum leaves more room to other flows.
    pub fast_convergence: bool,
    /// Whether the window grows at least as fast as Reno's.
    pub reno_friendly: bool,
}

impl Default for Cubic {
    fn default() -> Self {
        Self { fast_convergence: true, reno_friendly: true }
    }
}

impl CongestionConfig for Cubic {
    fn control(&self, p: &TcpParameters) -> Option<Box<dyn CongestionControl>> {
        Some(Box::new(CubicState::new(self, p)))
    }

    /// Until then it is in slow start, as Reno is.
    fn is_reno_until_loss(&self) -> bool {
        true
    }
}

/// The state of CUBIC.
#[derive(Clone, Debug)]
pub struct CubicState {
    config: Cubic,
    /// W_max in bytes.
    maximum: u64,
    /// Start of the current congestion avoidance, if it has begun.
    epoch: Option<Time>,
    /// K in microseconds.
    k: u64,
    /// The window at the origin of the curve, in bytes: W_max, or the window at the start of the epoch if larger.
    origin: u64,
    /// W_est in bytes.
    estimate: u64,
    /// Remainder of the division by which W_est grows.
    estimate_rest: u64,
    /// Remainder of the division by which the window grows.
    rest: u64,
    /// The window before the last reduction, in bytes (cwnd_prior).
    prior: u64,
    /// K and W_max are those of a start without a preceding loss (RFC 9438 section 4.8).
    fresh: bool,
    /// W_max before the last reduction, for undo.
    maximum_before: u64,
    /// State of the growth in whole segments.
    whole: Whole,
}

/// State of a window that grows in whole segments.
#[derive(Clone, Copy, Debug)]
struct Whole {
    /// Number of acknowledged segments for which it grows by one.
    every: u32,
    /// The window in segments for which `every` was computed, and when that was.
    segments: u32,
    found: Time,
    /// The smallest smoothed round trip; [`Time::MAX`] before there is one.
    fastest: Time,
}

/// Nothing is computed yet.
const UNKNOWN: Whole = Whole { every: 2, segments: 0, found: Time::ZERO, fastest: Time::MAX };

/// Returns the largest `r` with `r^3 <= x`.
fn cube_root(x: u128) -> u64 {
    let mut root: u128 = 0;
    for bit in (0..42).rev() {
        let next = root | (1 << bit);
        if next * next * next <= x {
            root = next;
        }
    }
    root as u64
}

/// Cubic microseconds in a cubic second.
const SECOND3: u128 = 1_000_000_000_000_000_000;

impl CubicState {
    pub(crate) fn new(config: &Cubic, _: &TcpParameters) -> Self {
        Self {
            config: config.clone(),
            maximum: 0,
            epoch: None,
            k: 0,
            origin: 0,
            estimate: 0,
            estimate_rest: 0,
            rest: 0,
            prior: 0,
            fresh: true,
            maximum_before: 0,
            whole: UNKNOWN,
        }
    }

    /// Forgets W_max and the growth, as Linux does when a connection enters the state Loss (`bictcp_reset`): after a timeout, and when segments
    /// become shorter.
    fn forget(&mut self) {
        (self.maximum, self.fresh, self.whole) = (0, true, UNKNOWN);
    }

    fn begin(&mut self, window: &Window, now: Time) {
        self.epoch = Some(now);
        self.estimate = window.size;
        (self.estimate_rest, self.rest) = (0, 0);
        if self.fresh || self.maximum <= window.size {
            self.k = 0;
            self.origin = window.size;
        } else {
            // RFC 9438 figure 2: K = cbrt((W_max - cwnd_epoch) / C), in segments; C = 0.4.
            let rise = u128::from(self.maximum - window.size);
            self.k = cube_root(rise * SECOND3 * 10 / (4 * u128::from(window.mss())));
            self.origin = self.maximum;
        }
    }

    /// Returns W_cubic(t) in bytes, `t` in microseconds since the epoch (RFC 9438 figure 1).
    fn curve(&self, t: u64, window: &Window) -> u64 {
        let mss = window.mss();
        let offset = t.abs_diff(self.k).min(1 << 40);
        let height = if offset < 1 << 21 {
            // Below 2^21 us, the cube has at most 63 bits.
            offset * offset * offset / (SECOND3 / 1_000_000) as u64 * 4 * mss / 10_000_000
        } else {
            let offset = u128::from(offset);
            let height = offset * offset * offset / (SECOND3 / 1_000_000) * 4 * u128::from(mss) / 10_000_000;
            u64::try_from(height).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
        };
        let height = window.cut(height);
        if t < self.k { self.origin.saturating_sub(height) } else { self.origin + height }
    }

    /// Grows W_est by `alpha * segments_acked / cwnd` segments (RFC 9438 figure 4).
    fn grow_estimate(&mut self, window: &Window, acked: u64) {
        // alpha = 3 * (1 - beta) / (1 + beta) = 9/17 until W_est has reached the window before the loss, then 1.
        let (num, den) = if self.estimate < self.prior { (9, 17) } else { (1, 1) };
        // A segment has 16 bits and a window 30: the sums fit.
        let sum = window.mss() * acked * num + self.estimate_rest;
        let by = window.size * den;
        self.estimate += sum / by;
        self.estimate_rest = sum % by;
    }

    fn avoid(&mut self, window: &mut Window, ack: &Ack) {
        if self.epoch.is_none() {
            self.begin(window, ack.now);
        }
        let epoch = self.epoch.expect("the epoch has begun");
        let t = ack.now.saturating_sub(epoch).ps() / 1_000_000;
        if self.config.reno_friendly {
            self.grow_estimate(window, ack.acked);
            // RFC 9438 section 4.3: "if W_cubic(t) < W_est(t)", cwnd is set to W_est.
            if self.curve(t, window) < self.estimate {
                window.size = window.size.max(self.estimate);
                return;
            }
        }
        // RFC 9438 section 4.2: target = W_cubic(t + RTT), between cwnd and 1.5 cwnd.
        let rtt = ack.smoothed_rtt.unwrap_or(Time::ZERO).ps() / 1_000_000;
        let target = self.curve(t + rtt, window).clamp(window.size, window.size + window.size / 2);
        // RFC 9438 sections 4.4 and 4.5: cwnd grows by (target - cwnd) / cwnd for every segment acknowledged.
        let sum = (target - window.size) * ack.acked + self.rest;
        self.rest = sum % window.size;
        window.size += sum / window.size;
    }

    /// Grows the window as Linux does (`bictcp_cong_avoid`, `tcp_cong_avoid_ai`).
    fn avoid_whole(&mut self, window: &mut Window, ack: &Ack) {
        self.whole.fastest = self.whole.fastest.min(ack.smoothed_rtt.unwrap_or(Time::ZERO));
        let begins = self.epoch.is_none();
        if begins {
            self.begin(window, ack.now);
        }
        self.estimate_rest += ack.acked;
        // `every` is computed again at the start of an epoch, when the window has another number of segments, and after more than 1/32 s.
        let segments = (window.size / window.mss()) as u32;
        if begins || self.whole.segments != segments || ack.now.saturating_sub(self.whole.found) > SECOND32 {
            self.whole.every = self.segments_for_one(window, ack.now) as u32;
            (self.whole.found, self.whole.segments) = (ack.now, segments);
        }
        let step = u64::from(self.whole.every) * window.mss();
        if self.rest >= step {
            // Credit saved while the window grew more slowly counts only once.
            self.rest = 0;
            window.size += window.mss();
        }
        self.rest += ack.acked;
        window.size += self.rest / step * window.mss();
        self.rest %= step;
    }

    /// Returns how many segments must be acknowledged for the window to grow by one (`bictcp_update`).
    fn segments_for_one(&mut self, window: &Window, now: Time) -> u64 {
        let size = window.cut(window.size).max(window.mss());
        let epoch = self.epoch.expect("the epoch has begun");
        let t = now.saturating_sub(epoch) + self.whole.fastest;
        let target = self.curve(t.ps() / 1_000_000, window);
        let mut every = size.checked_div(target.saturating_sub(size)).unwrap_or(100 * (size / window.mss()));
        if self.maximum == 0 {
            // Without a known maximum, the window grows by at least 5 % in a round trip.
            every = every.min(20);
        }
        if self.config.reno_friendly {
            // W_est grows by 8/15 of a segment for each window acknowledged, also beyond the window before the loss. 15 is Linux' `beta_scale` in
            // integers.
            let round = size / window.mss() * 15 / 8 * window.mss();
            let rounds = self.estimate_rest.saturating_sub(1) / round;
            self.estimate += rounds * window.mss();
            self.estimate_rest -= rounds * round;
            every = size
                .checked_div(self.estimate.saturating_sub(size))
                .map_or(every, |friendly| friendly.min(every));
        }
        every.max(2)
    }
}

/// HZ / 32 of `bictcp_update`.
const SECOND32: Time = Time(SECOND / 32);

impl CongestionControl for CubicState {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.recovering || ack.acked == 0 {
            return;
        }
        if !ack.window_limited {
            return;
        }
        if window.in_slow_start() {
            window.slow_start(ack.acked);
        } else if window.counts_segments() {
            self.avoid_whole(window, ack);
        } else {
            self.avoid(window, ack);
        }
    }

    fn on_signal(&mut self, window: &mut Window, signal: Signal, in_flight: u64, _now: Time) {
        let repeated = signal == Signal::Timeout { repeated: true };
        if !repeated {
            self.prior = window.size;
            self.maximum_before = self.maximum;
            // RFC 9438 section 4.7: fast convergence, W_max = cwnd * (1 + beta) / 2.
            let size = window.cut(window.size);
            self.maximum = if self.config.fast_convergence && size < self.maximum {
                window.cut(size / 20 * 17)
            } else {
                size
            };
            // Section 4.6: ssthresh = flight_size * beta, at least two segments; beta = 0.7.
            window.threshold = window.least_two(in_flight * 7 / 10);
        }
        self.epoch = None;
        self.fresh = false;
        window.size = match signal {
            Signal::Loss | Signal::Mark => window.threshold,
            Signal::Timeout { .. } => {
                // Section 4.8: after a timeout the first congestion avoidance starts with K = 0 at the present window.
                self.fresh = true;
                if window.counts_segments() {
                    self.forget();
                }
                window.mss()
            }
        };
    }

    fn on_idle(&mut self, idle: Time) {
        // RFC 9438 section 5.8: an idle time does not count.
        if let Some(epoch) = &mut self.epoch {
            *epoch += idle;
        }
    }

    fn on_shorter_segments(&mut self, window: &Window, _before: u64) {
        // K is a time that depends on the segment size; the next epoch computes it again.
        self.epoch = None;
        if window.counts_segments() {
            self.forget();
        }
    }

    fn on_undo(&mut self, _window: &Window) {
        self.maximum = self.maximum_before;
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    #[test]
    fn cube_roots_are_exact() {
        for root in [0u64, 1, 2, 999, 1_000_000, 123_456_789] {
            let cube = u128::from(root).pow(3);
            assert_eq!(cube_root(cube), root);
            if root > 0 {
                assert_eq!(cube_root(cube + 1), root);
                assert_eq!(cube_root(cube - 1), root - 1);
            }
        }
    }

    /// Returns the window in whole segments after this number of acknowledgments of one segment, 25 ms apart, that follow the loss of one in a window
    /// of four.
    fn after_a_loss(whole: bool, acknowledgments: u64) -> u64 {
        let p = TcpParameters { whole_segments: whole, ..Profile::Linux6.parameters(1040) };
        let mut control = CubicState::new(&Cubic { reno_friendly: false, ..Cubic::default() }, &p);
        let mut window = Window { size: 4000, ..Window::new(&p) };
        control.on_signal(&mut window, Signal::Loss, 4000, Time::ZERO);
        for n in 0..acknowledgments {
            let ack = Ack {
                now: Time(n * 25_000_000_000),
                acked: 1000,
                delivered: 1000,
                total_delivered: 0,
                in_flight_before: 0,
                in_flight: 0,
                next: 0,
                unacknowledged: 0,
                rtt: None,
                smoothed_rtt: Some(Time(10_000_000_000)),
                window_limited: true,
                marked: false,
                recovering: false,
                lost: 0,
                rate: None,
            };
            control.on_ack(&mut window, &ack);
        }
        window.size / 1000
    }

    /// After the segment size falls from 1000 to 500 bytes, the window grows from its present size. The old curve, whose K depends on the old size,
    /// must not make it jump. Linux also forgets W_max.
    #[test]
    fn cubic_starts_a_new_epoch_when_segments_get_shorter() {
        for (whole, maximum) in [(true, 0), (false, 100_000)] {
            let p = TcpParameters { whole_segments: whole, ..Profile::Linux6.parameters(1040) };
            let mut control = CubicState::new(&Cubic { reno_friendly: false, ..Cubic::default() }, &p);
            let mut window = Window { size: 100_000, ..Window::new(&p) };
            control.on_signal(&mut window, Signal::Loss, 100_000, Time::ZERO);
            control.begin(&window, Time::ZERO);
            window.shrink_segments(500);
            control.on_shorter_segments(&window, 1000);
            assert_eq!((control.epoch, control.maximum), (None, maximum));
            control.begin(&window, Time(SECOND));
            assert!(control.curve(0, &window).abs_diff(window.size) <= 500, "{whole}");
        }
    }

    /// From two segments, with W_max = 4, K = 1.71 s. The curve is a little less than two segments below W_max, which is one when rounded down. It is
    /// less than one segment below from 0.353 s on.
    #[test]
    fn cubic_in_whole_segments_reaches_w_max_earlier() {
        let found: Vec<u64> = [1, 2, 14, 15, 100].map(|n| after_a_loss(true, n)).to_vec();
        assert_eq!(found, [2, 3, 3, 4, 4]);
        let curve: Vec<u64> = [1, 4, 15, 60, 100].map(|n| after_a_loss(false, n)).to_vec();
        assert_eq!(curve, [2, 2, 3, 3, 4], "the window is 2.8 segments at first, then follows the curve");
    }
}
