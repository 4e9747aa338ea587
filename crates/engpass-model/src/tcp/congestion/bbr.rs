//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), in integers.
//!
//! The sender paces at the measured rate of the path and keeps about twice the bandwidth-delay product in flight. Loss and marks move the window only
//! as far as packet conservation in recovery does. Differences from the draft: the phase in which `ProbeBW` begins depends on the present instant
//! instead of on a random number, and the send quantum is one segment.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, CongestionConfig, CongestionControl, RateSample, Signal, Window};
use crate::tcp::parameters::TcpParameters;
use crate::time::{SECOND, Time};

/// Sets pacing rate and window from a model of the path's rate and round trip (BBR version 1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bbr {}

impl CongestionConfig for Bbr {
    fn control(&self, p: &TcpParameters) -> Option<Box<dyn CongestionControl>> {
        Some(Box::new(BbrState::new(p)))
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn wants_rates(&self) -> bool {
        true
    }
}

/// The state of BBR (section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRoundTrip,
}

/// A gain of 1.
const ONE: u64 = 1000;
/// BBRHighGain, 2/ln(2).
const HIGH_GAIN: u64 = 2885;
/// Its inverse, for `Drain`.
const DRAIN_GAIN: u64 = 347;
/// BBRGainCycle (section 4.3.4.3): one phase each round trip.
const CYCLE: [u64; 8] = [1250, 750, ONE, ONE, ONE, ONE, ONE, ONE];
/// BtlBwFilterLen, in rounds.
const BANDWIDTH_ROUNDS: u64 = 10;
/// RTpropFilterLen.
const ROUND_TRIP_TIME: Time = Time::from_secs(10);
/// ProbeRTTDuration.
const PROBE_TIME: Time = Time(SECOND / 5);
/// BBRMinPipeCwnd, in segments.
const LEAST_SEGMENTS: u64 = 4;

/// The state of BBR.
#[derive(Clone, Debug)]
pub struct BbrState {
    mode: Mode,
    initial_window: u64,
    /// Largest delivery rates of the last rounds in bytes/s, in falling order, with their rounds.
    rates: VecDeque<(u64, u64)>,
    /// RTprop, and when it was measured.
    round_trip: Option<(Time, Time)>,
    /// Number of rounds, and the delivered count that ends the current one.
    round: u64,
    round_end: u64,
    round_start: bool,
    /// BBR.full_bw, BBR.full_bw_count, BBR.filled_pipe.
    full_rate: u64,
    full_count: u32,
    filled: bool,
    pacing_gain: u64,
    window_gain: u64,
    /// Index of the phase in the cycle, and when it began.
    phase: usize,
    phase_start: Time,
    /// In `ProbeRTT`, once the pipe is drained: the earliest end, and the round that must be over by then.
    probe_end: Option<Time>,
    probe_round: u64,
    /// The window to restore, in bytes.
    prior_window: u64,
    /// Packet conservation lasts until this round begins (section 4.2.3.4).
    conserve_until: Option<u64>,
    in_recovery: bool,
    /// Pacing rate in bit/s; `None` before the first acknowledgment.
    pace: Option<u64>,
}

impl BbrState {
    pub(crate) fn new(p: &TcpParameters) -> Self {
        Self {
            mode: Mode::Startup,
            initial_window: p.initial_window,
            rates: VecDeque::new(),
            round_trip: None,
            round: 0,
            round_end: 0,
            round_start: false,
            full_rate: 0,
            full_count: 0,
            filled: false,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            phase: 0,
            phase_start: Time::ZERO,
            probe_end: None,
            probe_round: 0,
            prior_window: 0,
            conserve_until: None,
            in_recovery: false,
            pace: None,
        }
    }

    /// Returns BtlBw in bytes/s.
    fn bandwidth(&self) -> u64 {
        self.rates.front().map_or(0, |first| first.0)
    }

    /// Returns BBRInflight(gain) in bytes: `gain` times the bandwidth-delay product, and room for three quanta.
    fn in_flight(&self, window: &Window, gain: u64) -> u64 {
        let Some((round_trip, _)) = self.round_trip else { return self.initial_window * window.mss() };
        let product = u128::from(self.bandwidth()) * u128::from(round_trip.ps()) / u128::from(SECOND);
        let scaled = product * u128::from(gain) / u128::from(ONE);
        u64::try_from(scaled).unwrap_or(u64::MAX / 2) + 3 * window.mss()
    }

    /// Sections 4.1.1.3 and 4.1.1.5: rounds, and the maximum filter.
    fn update_bandwidth(&mut self, ack: &Ack) {
        self.round_start = false;
        let Some(rate) = &ack.rate else { return };
        if rate.prior_delivered >= self.round_end {
            self.round_end = ack.total_delivered;
            self.round += 1;
            self.round_start = true;
        }
        let Some(sample) = self.sample(rate) else { return };
        if sample < self.bandwidth() && rate.application_limited {
            return;
        }
        while self.rates.back().is_some_and(|last| last.0 <= sample) {
            self.rates.pop_back();
        }
        self.rates.push_back((sample, self.round));
        while self.rates.front().is_some_and(|first| first.1 + BANDWIDTH_ROUNDS <= self.round) {
            self.rates.pop_front();
        }
    }

    fn sample(&self, rate: &RateSample) -> Option<u64> {
        // A sample over less than a round trip comes from compressed acknowledgments.
        let least = self.round_trip.map_or(Time(1), |(round_trip, _)| round_trip.max(Time(1)));
        let valid = rate.interval >= least;
        valid.then(|| {
            let per_second = u128::from(rate.delivered) * u128::from(SECOND) / u128::from(rate.interval.ps());
            u64::try_from(per_second).unwrap_or(u64::MAX)
        })
    }

    /// Section 4.3.2.2: the pipe is full after three rounds in which the rate has not grown by a quarter.
    fn check_full(&mut self, ack: &Ack) {
        let limited = ack.rate.is_some_and(|rate| rate.application_limited);
        if self.filled || !self.round_start || limited {
            return;
        }
        if self.bandwidth() >= self.full_rate / 4 * 5 {
            self.full_rate = self.bandwidth();
            self.full_count = 0;
            return;
        }
        self.full_count += 1;
        self.filled = self.full_count >= 3;
    }

    fn enter(&mut self, mode: Mode) {
        self.mode = mode;
        (self.pacing_gain, self.window_gain) = match mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.phase], 2 * ONE),
            Mode::ProbeRoundTrip => (ONE, ONE),
        };
    }

    /// Enters `ProbeBW` in any phase but the one that drains.
    fn begin_cycle(&mut self, now: Time) {
        let place = (now.ps() / 1000 % 7) as usize;
        self.phase = if place == 0 { 0 } else { place + 1 };
        self.phase_start = now;
        self.enter(Mode::ProbeBandwidth);
    }

    /// Section 4.3.4.3: BBRIsNextCyclePhase.
    fn advance_cycle(&mut self, window: &Window, ack: &Ack) {
        let round_trip = self.round_trip.map_or(Time::ZERO, |(round_trip, _)| round_trip);
        let long = ack.now.saturating_sub(self.phase_start) > round_trip;
        let next = match self.pacing_gain {
            ONE => long,
            gain if gain > ONE => {
                long && (ack.lost > 0 || ack.in_flight_before >= self.in_flight(window, gain))
            }
            _ => long || ack.in_flight_before <= self.in_flight(window, ONE),
        };
        if next {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_start = ack.now;
            self.enter(Mode::ProbeBandwidth);
        }
    }

    /// Sections 4.1.2.3 and 4.3.5: the minimum filter, and `ProbeRTT` when it has expired.
    fn update_round_trip(&mut self, window: &mut Window, ack: &Ack) {
        let expired = self.round_trip.is_some_and(|(_, at)| ack.now.saturating_sub(at) > ROUND_TRIP_TIME);
        if let Some(rtt) = ack.rtt
            && (expired || self.round_trip.is_none_or(|(least, _)| rtt <= least))
        {
            self.round_trip = Some((rtt, ack.now));
        }
        if expired && self.mode != Mode::ProbeRoundTrip {
            self.prior_window = self.prior_window.max(window.size);
            self.probe_end = None;
            self.enter(Mode::ProbeRoundTrip);
        }
        if self.mode != Mode::ProbeRoundTrip {
            return;
        }
        match self.probe_end {
            None if ack.in_flight <= LEAST_SEGMENTS * window.mss() => {
                self.probe_end = Some(ack.now + PROBE_TIME);
                self.probe_round = self.round;
                self.round_end = ack.total_delivered;
            }
            Some(end) if ack.now >= end && self.round > self.probe_round => {
                if let Some((least, _)) = self.round_trip {
                    self.round_trip = Some((least, ack.now));
                }
                window.size = window.size.max(self.prior_window);
                self.prior_window = 0;
                if self.filled { self.begin_cycle(ack.now) } else { self.enter(Mode::Startup) }
            }
            _ => {}
        }
    }

    /// Section 4.2.1: the pacing rate, which begins at the rate of the initial window and only rises until the pipe is full.
    fn set_pace(&mut self, window: &Window, ack: &Ack) {
        let pace = |rate: u128| {
            let pace = rate * 8 * u128::from(self.pacing_gain) / u128::from(ONE);
            u64::try_from(pace).unwrap_or(u64::MAX).max(1)
        };
        let old = self.pace.unwrap_or_else(|| {
            let rtt = ack.smoothed_rtt.unwrap_or(Time(SECOND / 1000)).ps().max(1);
            pace(u128::from(self.initial_window * window.mss()) * u128::from(SECOND) / u128::from(rtt))
        });
        let new = pace(self.bandwidth().into());
        self.pace = Some(if self.filled { new } else { new.max(old) });
    }

    /// Section 4.2.3: the window.
    fn set_window(&mut self, window: &mut Window, ack: &Ack) {
        let target = self.in_flight(window, self.window_gain);
        if self.conserve_until.is_some_and(|round| self.round >= round) {
            self.conserve_until = None;
        }
        if self.in_recovery && self.conserve_until.is_some() {
            window.size = window.size.max(ack.in_flight + ack.delivered);
        } else if self.filled {
            window.size = (window.size + ack.delivered).min(target);
        } else if window.size < target || ack.total_delivered < self.initial_window * window.mss() {
            window.size += ack.delivered;
        }
        window.size = window.size.max(LEAST_SEGMENTS * window.mss());
        if self.mode == Mode::ProbeRoundTrip {
            window.size = window.size.min(LEAST_SEGMENTS * window.mss());
        }
    }
}

impl CongestionControl for BbrState {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.update_bandwidth(ack);
        if self.mode == Mode::ProbeBandwidth {
            self.advance_cycle(window, ack);
        }
        self.check_full(ack);
        if self.mode == Mode::Startup && self.filled {
            self.enter(Mode::Drain);
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.in_flight(window, ONE) {
            self.begin_cycle(ack.now);
        }
        self.update_round_trip(window, ack);
        self.set_pace(window, ack);
        self.set_window(window, ack);
    }

    fn on_signal(&mut self, window: &mut Window, signal: Signal, in_flight: u64, _now: Time) {
        match signal {
            // Version 1 does not react to marks.
            Signal::Mark => {}
            Signal::Loss => {
                if !self.in_recovery {
                    self.prior_window = self.prior_window.max(window.size);
                }
                self.in_recovery = true;
                // One round of packet conservation.
                self.conserve_until = Some(self.round + 1);
                window.size = in_flight.max(window.mss());
            }
            Signal::Timeout { .. } => {
                self.prior_window = self.prior_window.max(window.size);
                self.in_recovery = true;
                self.conserve_until = Some(self.round + 1);
                window.size = window.mss();
            }
        }
    }

    fn on_recovered(&mut self, window: &mut Window, _now: Time) {
        self.in_recovery = false;
        self.conserve_until = None;
        if self.mode != Mode::ProbeRoundTrip {
            window.size = window.size.max(self.prior_window);
            self.prior_window = 0;
        }
    }

    fn on_shorter_segments(&mut self, window: &Window, before: u64) {
        self.prior_window = window.rescale(self.prior_window, before);
    }

    fn on_undo(&mut self, _window: &Window) {
        self.in_recovery = false;
        self.conserve_until = None;
        self.prior_window = 0;
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pace
    }
}
