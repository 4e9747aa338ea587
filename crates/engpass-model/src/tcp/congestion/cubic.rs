//! CUBIC (RFC 9438) in integers.
//!
//! Time is in microseconds, the window in bytes; `t^3` is kept in 128 bits, the cube root is found bit by bit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, CongestionControl, Signal, Window};
use crate::tcp::parameters::TcpParameters;
use crate::time::Time;

/// A window that grows with the cube of the time since the last loss, independent of the round trip (RFC 9438).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cubic {
    /// Whether a window that has to shrink before it reached its last maximum leaves more room to others.
    pub fast_convergence: bool,
    /// Whether the window grows at least as fast as Reno's.
    pub reno_friendly: bool,
}

impl Default for Cubic {
    fn default() -> Self {
        Self { fast_convergence: true, reno_friendly: true }
    }
}

/// The state of CUBIC.
#[derive(Clone, Debug)]
pub struct Control {
    config: Cubic,
    /// W_max in bytes.
    maximum: u64,
    /// Start of the current congestion avoidance, while there is one.
    epoch: Option<Time>,
    /// K in microseconds.
    k: u64,
    /// The window at the origin of the curve, in bytes: W_max, or the window at the start of the epoch if larger.
    origin: u64,
    /// W_est in bytes.
    estimate: u64,
    /// Rest of the division that W_est grows by.
    estimate_rest: u64,
    /// Rest of the division that the window grows by.
    rest: u64,
    /// The window before the last reduction, in bytes (cwnd_prior).
    prior: u64,
    /// K and W_max are those of a start without a preceding loss (RFC 9438 section 4.8).
    fresh: bool,
    /// W_max before the last reduction, for undo.
    maximum_before: u64,
}

/// The largest `r` with `r^3 <= x`.
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

/// Microseconds cubed in a second cubed.
const SECOND3: u128 = 1_000_000_000_000_000_000;

impl Control {
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
        }
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

    /// W_cubic(t) in bytes, `t` in microseconds since the epoch (RFC 9438 figure 1).
    fn curve(&self, t: u64, mss: u64) -> u64 {
        let offset = t.abs_diff(self.k).min(1 << 40);
        let height = if offset < 1 << 21 {
            // Two seconds: the cube has 63 bits.
            offset * offset * offset / (SECOND3 / 1_000_000) as u64 * 4 * mss / 10_000_000
        } else {
            let offset = u128::from(offset);
            let height = offset * offset * offset / (SECOND3 / 1_000_000) * 4 * u128::from(mss) / 10_000_000;
            u64::try_from(height).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
        };
        if t < self.k { self.origin.saturating_sub(height) } else { self.origin + height }
    }

    /// W_est grows by `alpha * segments_acked / cwnd` segments (RFC 9438 figure 4).
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
            if self.curve(t, window.mss()) < self.estimate {
                window.size = window.size.max(self.estimate);
                return;
            }
        }
        // RFC 9438 section 4.2: target = W_cubic(t + RTT), between cwnd and 1.5 cwnd.
        let rtt = ack.smoothed_rtt.unwrap_or(Time::ZERO).ps() / 1_000_000;
        let target = self.curve(t + rtt, window.mss()).clamp(window.size, window.size + window.size / 2);
        // Sections 4.4 and 4.5: cwnd grows by (target - cwnd) / cwnd for every segment acknowledged.
        let sum = (target - window.size) * ack.acked + self.rest;
        self.rest = sum % window.size;
        window.size += sum / window.size;
    }
}

impl CongestionControl for Control {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.recovering || ack.acked == 0 {
            return;
        }
        if !ack.window_limited {
            return;
        }
        if window.in_slow_start() {
            window.slow_start(ack.acked);
        } else {
            self.avoid(window, ack);
        }
    }

    fn on_signal(&mut self, window: &mut Window, signal: Signal, in_flight: u64, _now: Time) {
        let again = signal == Signal::Timeout { again: true };
        if !again {
            self.prior = window.size;
            self.maximum_before = self.maximum;
            // RFC 9438 section 4.7: fast convergence, W_max = cwnd * (1 + beta) / 2.
            self.maximum = if self.config.fast_convergence && window.size < self.maximum {
                window.size / 20 * 17
            } else {
                window.size
            };
            // Section 4.6: ssthresh = flight_size * beta, at least two segments; beta = 0.7.
            window.threshold = (in_flight * 7 / 10).max(2 * window.mss());
        }
        self.epoch = None;
        self.fresh = false;
        window.size = match signal {
            Signal::Loss | Signal::Mark => window.threshold,
            Signal::Timeout { .. } => {
                // Section 4.8: after a timeout the first congestion avoidance starts with K = 0 where it is.
                self.fresh = true;
                window.mss()
            }
        };
    }

    fn on_idle(&mut self, idle: Time) {
        // RFC 9438 section 5.8: time in which nothing limited the sender does not count.
        if let Some(epoch) = &mut self.epoch {
            *epoch += idle;
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
}
